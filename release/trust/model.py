"""What a signed release consists of, and whose signature is believed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from release.errors import WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS

GITHUB_ISSUER = "https://token.actions.githubusercontent.com"
BUNDLE_SUFFIX = ".sigstore.json"
PROVENANCE = "provenance" + BUNDLE_SUFFIX
"""The bundle of the one in-toto statement over all assets."""
SBOM = "sbom.cdx.json"
_SIGNED = (".whl", ".zip", ".json")
_REPOSITORY = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
_PLAIN = re.compile(r"[A-Za-z0-9._/+@:%-]+")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """An exact signer: the subject of its certificate, and who vouched for it. Nothing in it is a pattern.

    Raises WrongUsage for what looks like one.
    """

    subject: str
    issuer: str = GITHUB_ISSUER

    def __post_init__(self) -> None:
        for value in (self.subject, self.issuer):
            if not value.startswith("https://") or not _PLAIN.fullmatch(value):
                raise WrongUsage(
                    f"{value!r} is not an exact identity.",
                    remedy="Give the full https:// address of the workflow with its @ref, and no pattern.",
                )

    @classmethod
    def of_workflow(cls, repository: str, workflow: str, ref: str, *, issuer: str = GITHUB_ISSUER) -> Identity:
        """Return the identity of a file of ``.github/workflows`` in ``OWNER/NAME`` at a ref such as ``refs/tags/v1``.

        Fulcio takes it from ``job_workflow_ref``: of a reusable workflow it is the called file, not the caller.
        """
        if not _REPOSITORY.fullmatch(repository):
            raise WrongUsage(f"{repository!r} is not OWNER/NAME.", remedy="Give the repository as GitHub spells it.")
        return cls(subject=f"https://github.com/{repository}/.github/workflows/{workflow}@{ref}", issuer=issuer)


@dataclass(frozen=True, kw_only=True)
class SignedRelease:
    """A release folder with a bundle beside each signed file, and one provenance bundle over all assets."""

    folder: Path
    assets: tuple[Path, ...]
    """What was released before it was signed: everything in SHA256SUMS, and that file."""
    bundles: tuple[Path, ...]
    provenance: Path
    identity: Identity


def is_bundle(name: str) -> bool:
    """Whether a file of a release is a signature and not an asset that is signed."""
    return name.endswith(BUNDLE_SUFFIX)


def wants_signature(name: str) -> bool:
    """Whether an asset gets a bundle of its own: packages, manifests and checksums; the provenance covers the rest."""
    return not is_bundle(name) and (name == CHECKSUMS or name.endswith(_SIGNED))


def bundles_of(names: Iterable[str]) -> dict[str, str]:
    """Return the bundle of each file that has one of its own, by the files' names."""
    return {name: name + BUNDLE_SUFFIX for name in sorted(names) if wants_signature(name)}
