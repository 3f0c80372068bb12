"""What a build has, what a release of it has, and what is between the two."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import Artifact, sha256_of
from release.errors import Finding, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.publish.host import HostedAsset
from release.trust.model import is_bundle

MAXIMUM_ASSETS = 1000
MAXIMUM_SIZE = 2**31 - 1
"""GitHub's limits: assets of a release, bytes of an asset ("under 2 GiB")."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*(?<!\.)")  # what GitHub leaves as it is
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_PRERELEASE = re.compile(r"-|\d\.?(a|b|rc|dev)\d*")
_SUM = re.compile(r"([0-9a-f]{64})  ([^/\n]+)")


@dataclass(frozen=True, kw_only=True)
class Build:
    """A release folder: its files, and the SHA-256 of SHA256SUMS, by which a draft of just this build is known again.

    Signatures are not in SHA256SUMS, so signing again does not make it another build.
    """

    folder: Path
    assets: tuple[Artifact, ...]
    digest: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What makes the assets of a release those of a build."""

    keep: tuple[HostedAsset, ...]
    replace: tuple[HostedAsset, ...]
    upload: tuple[Artifact, ...]
    foreign: tuple[HostedAsset, ...]

    @property
    def done(self) -> bool:
        """Whether all are there, all are equal, and nothing else is."""
        return not (self.replace or self.upload or self.foreign)

    def explain(self) -> str:
        """Say in one clause what is different."""
        parts = [
            f"{len(names)} {what} ({', '.join(sorted(names)[:3])}{', …' if len(names) > 3 else ''})"
            for what, names in (
                ("not complete", [asset.name for asset in self.replace if not asset.complete]),
                ("different", [asset.name for asset in self.replace if asset.complete]),
                ("missing", self._missing()),
                ("not of this build", [asset.name for asset in self.foreign]),
            )
            if names
        ]
        return ", ".join(parts) or "nothing is different"

    def _missing(self) -> list[str]:
        replaced = {asset.name for asset in self.replace}
        return [artifact.name for artifact in self.upload if artifact.name not in replaced]


def read_build(folder: Path) -> Build:
    """Read a release folder and check that a release can hold it and that it is what SHA256SUMS says.

    Raises WrongUsage for a folder that is none, or has what GitHub would rename or refuse; Finding for a file that is
    missing, differs from SHA256SUMS, or is not in it and no signature either.
    """
    sums = folder / CHECKSUMS
    if not sums.is_file():
        raise WrongUsage(f"{folder} has no {CHECKSUMS}.", remedy="Give the --out folder of a release.")
    listed = {}
    for line in sums.read_text().splitlines():
        match = _SUM.fullmatch(line)
        if not match:
            raise WrongUsage(f"{sums} has a line that is no checksum.", remedy="Build the release again.")
        listed[match[2]] = match[1]
    paths = sorted(folder.iterdir())
    _check_fits(paths)
    assets = tuple(Artifact.of(path) for path in paths)
    found = {artifact.name: artifact.sha256 for artifact in assets}
    for name in sorted(listed.keys() | found.keys() - {CHECKSUMS}):
        if name not in listed and is_bundle(name):
            continue
        if listed.get(name) != found.get(name):
            state = "is not listed" if name not in listed else "is missing" if name not in found else "differs"
            raise Finding(f"{name} {state} ({sums}).", remedy="Build the release again; nothing was published.")
    return Build(folder=folder, assets=assets, digest=sha256_of(sums))


def compare(build: Build, hosted: Sequence[HostedAsset], digest: Callable[[HostedAsset], str]) -> Plan:
    """Compare by content; ``digest`` downloads an asset whose host does not tell, and is asked for no other."""
    ours = {artifact.name: artifact for artifact in build.assets}
    foreign = tuple(asset for asset in hosted if asset.name not in ours)
    known = [asset for asset in hosted if asset.name in ours]
    equal = {asset.id for asset in known if is_equal(ours[asset.name], asset, digest)}
    kept = {asset.name for asset in known if asset.id in equal}
    return Plan(
        keep=tuple(asset for asset in known if asset.id in equal),
        replace=tuple(asset for asset in known if asset.id not in equal),
        upload=tuple(artifact for artifact in build.assets if artifact.name not in kept),
        foreign=foreign,
    )


def is_equal(artifact: Artifact, asset: HostedAsset, digest: Callable[[HostedAsset], str]) -> bool:
    """Whether an asset is the whole of a file, by size and SHA-256."""
    if not asset.complete or asset.size != artifact.size:
        return False
    return (asset.sha256 or digest(asset)) == artifact.sha256


def check_names(tag: str, commit: str) -> None:
    """Raise WrongUsage for a tag or a commit that is none."""
    if not _TAG.fullmatch(tag) or ".." in tag or tag.endswith((".", ".lock")):
        raise WrongUsage(f"{tag!r} is not the name of a tag.", remedy="Give it without refs/tags/, such as v3.5.0.")
    if not _COMMIT.fullmatch(commit):
        raise WrongUsage(f"{commit!r} is not a commit.", remedy="Give all of its hex digits.")


def is_prerelease(tag: str) -> bool:
    """Whether a tag names something before a release: 1.0a1, 1.0b2, 1.0rc1, 1.0.dev3, or anything with a hyphen.

    What follows a plus does not count: a commit such as 50b2f73 looks like 0b2.
    """
    return _PRERELEASE.search(tag.partition("+")[0]) is not None


def _check_fits(paths: list[Path]) -> None:
    for path in paths:
        if not path.is_file() or path.is_symlink():
            raise WrongUsage(f"{path} is not a plain file.", remedy="A release has files only: move it away.")
        if not _NAME.fullmatch(path.name):
            raise WrongUsage(
                f"GitHub would rename the asset {path.name!r}.",
                remedy="Use letters, digits, and . _ + - inside the name.",
            )
        size = path.stat().st_size
        if not 0 < size <= MAXIMUM_SIZE:
            raise WrongUsage(
                f"{path.name} has {size:,} bytes; an asset has at least 1 and at most {MAXIMUM_SIZE:,}.",
                remedy="Split it into parts." if size else "Build the release again.",
            )
    if len(paths) > MAXIMUM_ASSETS:
        raise WrongUsage(f"{len(paths)} files are more than a release holds.", remedy=f"At most {MAXIMUM_ASSETS}.")
    folded = {path.name.lower() for path in paths}
    if len(folded) < len(paths):
        raise WrongUsage("Two files differ in upper and lower case only.", remedy="Rename one of them.")
