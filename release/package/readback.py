"""Reading a package again as its users will, and refusing it when anything is not as it should be."""

from __future__ import annotations

import hashlib
from pathlib import Path
from zipfile import ZipFile

from installer.exceptions import InstallerError
from installer.records import parse_record_file
from installer.sources import WheelFile
from packaging.metadata import Metadata

from release.artifacts import sha256_of
from release.errors import Finding
from release.package.abi import check_abi
from release.package.boundary import check_boundary
from release.package.lock import check_lock
from release.package.model import Contents, Package
from release.pins.model import PinSet


def read_back(package: Package, contents: Contents, pins: PinSet, *, module: str) -> None:
    """Open the built files and compare them with what they were made from.

    Checked are tag, ``RECORD``, metadata, the boundary, the module's bytes at ``module``, and that zip and lock file
    belong to the wheel. Raises Finding for the first thing wrong.
    """
    check_abi(package.wheel, pins)
    _check_boundary(package.wheel, contents)
    _check_record(package.wheel)
    _check_metadata(package.wheel)
    _check_module(package.wheel, contents.module, module)
    if sha256_of(package.zip) != sha256_of(package.wheel):
        _refuse(f"{package.zip.name} and {package.wheel.name} are not the same bytes")
    check_lock(package.lock, package.wheel)


def _check_boundary(wheel: Path, contents: Contents) -> None:
    top_level = {name.partition(".")[0] for name in (contents.extension, *contents.imports)}
    if findings := check_boundary(wheel, top_level=top_level):
        more = f" ({len(findings) - 1} more)" if len(findings) > 1 else ""
        raise Finding(
            f"{wheel.name} may not be released: {findings[0]}{more}.",
            remedy=f"Take it out of {contents.python}; docs/package.md lists what a package may not hold.",
        )


def _check_record(wheel: Path) -> None:
    try:
        with WheelFile.open(wheel) as source:
            source.validate_record()
            listed = [row[0] for row in parse_record_file(source.read_dist_info("RECORD").splitlines())]
        with ZipFile(wheel) as archive:
            missing = sorted(set(listed) - set(archive.namelist()))  # installer looks the other way only
    except (InstallerError, ValueError) as error:
        raise Finding(
            f"{wheel.name} is not what its RECORD says: {error}.", remedy="Run the package stage again."
        ) from error
    if missing:
        _refuse(f"RECORD of {wheel.name} lists {missing[0]}, which is not there")


def _check_metadata(wheel: Path) -> None:
    with WheelFile.open(wheel) as source:
        metadata = Metadata.from_email(source.read_dist_info("METADATA"))
    if metadata.requires_dist:
        _refuse(f"{wheel.name} depends on {metadata.requires_dist[0]}, and must need nothing but Pyodide")


def _check_module(wheel: Path, module: Path, name: str) -> None:
    with ZipFile(wheel) as archive, archive.open(name) as packed:
        digest = hashlib.file_digest(packed, "sha256").hexdigest()  # type: ignore[arg-type]  # ZipExtFile has readinto
    if digest != sha256_of(module):
        _refuse(f"{name} in {wheel.name} is not the module {module}")


def _refuse(sentence: str) -> None:
    raise Finding(f"{sentence}.", remedy="Run the package stage again; if it says the same, this is a bug of ours.")
