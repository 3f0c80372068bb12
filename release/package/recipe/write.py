"""Writing the recipes: a folder of two, as in Pyodide's tree of recipes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from string import Template
from typing import Any

from release.artifacts import files_below, replacing_folder, write_atomically
from release.errors import WrongUsage
from release.module.build import FIXED_ADDRESSES
from release.package.abi import extension_suffix
from release.package.metadata import describe
from release.package.model import Contents
from release.package.recipe.commands import commands
from release.package.recipe.model import Library, Linking, Parts
from release.pins.model import PinSet

PACKAGES = "packages"
"""The folder in which pyodide-build looks for recipes."""

_TEMPLATES = Path(__file__).parent / "templates"
_BACKEND = ("pyproject.toml", "side_module.py")


def write_recipes(
    parts: Parts, contents: Contents, pins: PinSet, folder: Path, *, pyodide: Path, copy: bool = True
) -> None:
    """Write the two recipes to ``folder``/packages; what was there is replaced.

    Of ``contents`` everything is taken but its module, which the recipe links. With ``copy=False`` objects and
    libraries are linked to and not copied, for whoever builds at once. Raises WrongUsage for an object or archive that
    is not there, and what ``describe`` raises.
    """
    _require(parts)
    with replacing_folder(folder / PACKAGES) as packages:
        _write_library(parts.library, contents.name, packages / parts.library.name, copy=copy)
        _write_package(parts, contents, pins, packages / contents.name, pyodide=pyodide, copy=copy)


def _require(parts: Parts) -> None:
    linking = parts.linking
    for name in linking.names:
        first, _, rest = name.partition("/")
        if (place := linking.libraries.get(first)) is not None:
            path = parts.library.folder / place / rest
        else:
            path = linking.objects.get(first, Path(first)) / rest
        if not path.is_file():
            raise WrongUsage(
                f"There is no {path}, which the module is linked from.", remedy="Run the stages before this one again."
            )


def _write_library(library: Library, package: str, folder: Path, *, copy: bool) -> None:
    values = {"name": library.name, "version": library.version, "summary": library.summary, "license": library.license}
    _fill("library.yaml", folder / "meta.yaml", package=package, **_quoted(values))
    (folder / "source").mkdir()
    _take(library.folder, folder / "source" / "prefix", copy=copy)


def _write_package(parts: Parts, contents: Contents, pins: PinSet, folder: Path, *, pyodide: Path, copy: bool) -> None:
    distribution = describe(contents, pins)
    linking = parts.linking
    values = {
        "name": contents.name,
        "version": distribution.version,
        "library": parts.library.name,
        "imports": list(contents.imports),
        "summary": contents.summary,
        "license": contents.license,
    }
    _fill("package.yaml", folder / "meta.yaml", **_quoted(values))
    source = folder / "source"
    for name in _BACKEND:
        write_atomically(source / name, (_TEMPLATES / name).read_text())
    recipe = {
        "dist_info": distribution.dist_info,
        "module": contents.extension.replace(".", "/") + extension_suffix(pyodide),
        "output": linking.output,
        "libraries": dict(linking.libraries),
        "fixed_addresses": FIXED_ADDRESSES,
        "commands": commands(linking),
    }
    write_atomically(source / "recipe.json", json.dumps(recipe, indent=2, ensure_ascii=False) + "\n")
    for path in files_below(contents.python):
        target = source / "files" / path.relative_to(contents.python)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for name, content in distribution.files.items():
        write_atomically(source / "files" / distribution.dist_info / name, content)
    _lay_objects(linking, source / "link", copy=copy)


def _lay_objects(linking: Linking, folder: Path, *, copy: bool) -> None:
    folder.mkdir()
    for name, path in linking.objects.items():
        _take(path, folder / name, copy=copy)


def _take(source: Path, target: Path, *, copy: bool) -> None:
    if not copy:
        target.symlink_to(source.resolve())
    elif source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def _fill(template: str, target: Path, **values: str) -> None:
    write_atomically(target, Template((_TEMPLATES / template).read_text()).substitute(values))


def _quoted(values: dict[str, Any]) -> dict[str, str]:
    # JSON is YAML, whatever is in the text.
    return {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
