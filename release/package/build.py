"""Making the package: one tree of files, written once, offered as wheel, as Pyodide package zip and by lock file.

The wheel and the zip are the same bytes under two names, so nothing can differ between them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from release.artifacts import files_below
from release.errors import Finding, WrongUsage
from release.package.abi import extension_suffix, wheel_tag
from release.package.archive import Source, write_archive
from release.package.lock import LOCK, runtime_info, write_lock
from release.package.metadata import Distribution, describe
from release.package.model import Contents, Package
from release.package.readback import read_back
from release.pins.model import PinSet


def build_package(contents: Contents, pins: PinSet, *, pyodide: Path, folder: Path) -> Package:
    """Write the three forms of the package into ``folder``, after each was read back and found right.

    ``pyodide`` is the unpacked npm package that ``pins`` names. The files are the same, byte for byte, whenever and
    wherever they are made from the same contents with the same ``archive.identity()``.

    Raises WrongUsage for contents that cannot be packaged, Finding for a package that breaks a rule of the boundary,
    BrokenEnvironment when ``pyodide`` is another one. ``folder`` then holds none of the three.
    """
    _require(contents)
    info = runtime_info(pyodide, pins)
    distribution = describe(contents, pins)
    module = contents.extension.replace(".", "/") + extension_suffix(pyodide)
    files = _lay_out(contents, distribution, module)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".package.", suffix=".part", dir=folder) as temporary:
        made = _package_in(Path(temporary), distribution, pins)
        write_archive(made.wheel, files, dist_info=distribution.dist_info)
        shutil.copyfile(made.wheel, made.zip)
        write_lock(made.lock, made.wheel, contents, version=distribution.version, info=info)
        read_back(made, contents, pins, module=module)
        package = _package_in(folder, distribution, pins)
        for source, target in ((made.wheel, package.wheel), (made.zip, package.zip), (made.lock, package.lock)):
            source.chmod(0o644)
            source.replace(target)
    return package


def _require(contents: Contents) -> None:
    if not contents.python.is_dir():
        raise WrongUsage(
            f"There is no folder {contents.python} with the package's Python files.",
            remedy="Give the folder whose contents belong at the root of site-packages.",
        )
    licences = (("licence", path) for path in contents.license_files.values())
    for what, path in (("side module", contents.module), *licences):
        if not path.is_file():
            raise WrongUsage(
                f"There is no file {path} with the {what} of {contents.name}.", remedy="Give the path of the file."
            )
    if not all(part.isidentifier() for part in contents.extension.split(".")):
        raise WrongUsage(
            f"{contents.extension!r} is not the dotted import name of a module.",
            remedy="Write one such as exprc._exprc.",
        )


def _package_in(folder: Path, distribution: Distribution, pins: PinSet) -> Package:
    return Package(
        wheel=folder / f"{distribution.stem}-{wheel_tag(pins)}.whl",
        zip=folder / f"{distribution.stem}.zip",
        lock=folder / LOCK,
    )


def _lay_out(contents: Contents, distribution: Distribution, module: str) -> dict[str, Source]:
    """Name every file of the package by its place below site-packages."""
    files: dict[str, Source] = {}
    for path in files_below(contents.python):
        files[_name_of(path, contents.python)] = path
    # A link would be followed if it led to a file and forgotten if it led to a folder: neither is what was meant.
    links = sorted(path for path in contents.python.rglob("*") if path.is_symlink())
    if links:
        raise Finding(
            f"{links[0]} is a symbolic link, and a package holds files only.",
            remedy="Put the file or folder itself in its place.",
        )
    ours: dict[str, Source] = {f"{distribution.dist_info}/{name}": text for name, text in distribution.files.items()}
    ours[module] = contents.module
    if taken := sorted(name for name in files if name in ours or name.startswith(f"{distribution.dist_info}/")):
        raise Finding(
            f"{contents.python} already holds {taken[0]}, which the package stage writes.",
            remedy="Take the file out of the Python tree.",
        )
    return files | ours


def _name_of(path: Path, root: Path) -> str:
    # The bytes of the name and not what Python made of them: in the C locale it reads names that are not ASCII anew.
    name = os.fsencode(path.relative_to(root).as_posix())
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise Finding(
            f"{name.decode(errors='backslashreplace')} in {root} has a name that is not UTF-8.",
            remedy="Rename the file.",
        ) from error
