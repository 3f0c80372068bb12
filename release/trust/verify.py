"""Verification as a consumer does it, with nothing but the files: may this release be used, and who made it of what?

>>> identity = Identity.of_workflow("owner/name", "release.yml", "refs/tags/v3.6.0")
>>> print(describe(verify_release(Path("dist"), identity=identity, root=public_root())))
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from release.artifacts import sha256_of
from release.errors import Finding
from release.manifest.models import REPORTS, CasesReport, Manifest
from release.package.abi import check_abi
from release.package.boundary import check_boundary
from release.package.lock import check_lock
from release.trust.model import SBOM, Identity
from release.trust.root import TrustRoot
from release.trust.sbom import check_sbom
from release.trust.signatures import Signed, verify_signatures

_LOCK = "pyodide-lock.json"
_REMEDY = "Do not use it, and tell its publisher."


@dataclass(frozen=True, kw_only=True)
class Verification:
    """A release that may be used: what it is, what its signatures say, and the trust root that they hold by."""

    name: str
    version: str
    cases: int
    signed: Signed
    root: TrustRoot


def verify_release(folder: Path, *, identity: Identity, root: TrustRoot) -> Verification:
    """Verify a release folder: digests, signatures, provenance, bill of materials, manifests, boundary.

    ``folder`` holds the files of one release and nothing else. Raises Finding for the first thing that is not as it
    has to be, WrongUsage for a folder that is no release.
    """
    signed = verify_signatures(folder, identity=identity, root=root)
    # From here on a fault is the publisher's, for the bytes are what was signed.
    manifest, tests = _manifests(folder)
    packages = {path.name: sha256_of(path) for path in folder.iterdir() if path.suffix in (".whl", ".zip")}
    _check_assets(folder, manifest)
    _check_sbom(folder, packages)
    _check_package(folder, manifest)
    _check_tested(tests, packages)
    return Verification(name=manifest.name, version=manifest.version, cases=len(tests.cases), signed=signed, root=root)


def describe(verified: Verification) -> str:
    """Say who built it where, of which commit, and what was looked at."""
    signed = verified.signed
    return "\n".join(
        (
            f"{verified.name} {verified.version} is what it says it is.",
            f"  built by    {signed.workflow}",
            f"  at commit   {signed.commit} of {signed.repository}",
            f"  in          {signed.run}",
            f"  signed by   {signed.identity.subject}",
            f"  vouched by  {signed.identity.issuer}",
            f"  trust root  {verified.root.origin}",
            f"  files       {signed.files}, each by digest, signature or provenance",
            f"  checks      {verified.cases} passed before it was released; the package holds text-only compilers",
        )
    )


def _manifests(folder: Path) -> tuple[Manifest, CasesReport]:
    read = {}
    for name, model in REPORTS.items():
        path = folder / f"{name}.json"
        if not path.is_file():
            if name in ("manifest", "tests", "sizes"):
                raise Finding(f"The release has no {path.name}.", remedy=_REMEDY)
            continue
        try:
            read[name] = model.model_validate_json(path.read_text())
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"])) or "the whole"
            raise Finding(
                f"{path.name} breaks its schema at {where}: {error.errors()[0]['msg']}.",
                remedy="Verify with the version of the toolkit that the release was made with. " + _REMEDY,
            ) from error
    manifest, tests = read["manifest"], read["tests"]
    assert isinstance(manifest, Manifest) and isinstance(tests, CasesReport)  # noqa: S101 - REPORTS says so
    if not tests.passed or not tests.cases:
        raise Finding("The release says itself that its checks have not passed.", remedy=_REMEDY)
    return manifest, tests


def _check_assets(folder: Path, manifest: Manifest) -> None:
    for asset in manifest.assets:
        path = folder / asset.name
        if not path.is_file() or (path.stat().st_size, sha256_of(path)) != (asset.size, asset.sha256):
            raise Finding(f"The manifest names another {asset.name} than is here.", remedy=_REMEDY)


def _check_tested(tests: CasesReport, packages: dict[str, str]) -> None:
    for run in tests.runs:
        if run.package not in packages.values():
            raise Finding(f"What {run.runtime} has checked is another package than is here.", remedy=_REMEDY)


def _check_sbom(folder: Path, packages: dict[str, str]) -> None:
    if not (folder / SBOM).is_file():
        raise Finding(f"The release has no bill of materials ({SBOM}).", remedy=_REMEDY)
    check_sbom((folder / SBOM).read_text(), packages)


def _check_package(folder: Path, manifest: Manifest) -> None:
    wheels, zips = sorted(folder.glob("*.whl")), sorted(folder.glob("*.zip"))
    if len(wheels) != 1 or len(zips) != 1:
        raise Finding(f"The release has {len(wheels)} wheels and {len(zips)} zips, not one of each.", remedy=_REMEDY)
    check_abi(wheels[0], manifest.pins)
    check_lock(folder / _LOCK, wheels[0])
    if sha256_of(wheels[0]) != sha256_of(zips[0]):
        raise Finding("Wheel and zip are not the same bytes.", remedy=_REMEDY)
    imports = json.loads((folder / _LOCK).read_text())["packages"][manifest.name]["imports"]
    if findings := check_boundary(wheels[0], top_level={name.partition(".")[0] for name in imports}):
        raise Finding(f"The package holds what it must not: {findings[0]}.", remedy=_REMEDY)
