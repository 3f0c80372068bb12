"""Which Python and which Pyodide a wheel is for: the tag in its name, in its ``WHEEL`` file, and in its extension."""

from __future__ import annotations

import ast
import re
from email.parser import BytesParser
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.pins.model import PinSet

TAG = re.compile(r"^cp\d+-cp\d+-pyemscripten_\d{4}_\d+_wasm32$")
"""What a wheel for Pyodide is tagged with (PEP 783). PyPI takes no other; loaders and test indexes do not look."""


def wheel_tag(pins: PinSet) -> str:
    """Return the one tag of wheels for ``pins``, such as ``cp315-cp315-pyemscripten_2026_5_wasm32``."""
    tag = f"{pins.wheel_python}-{pins.wheel_python}-{pins.wheel_platform}"
    if not TAG.match(tag):
        raise WrongUsage(
            f"Pin set {pins.name} makes the wheel tag {tag}, which is not of the form {TAG.pattern} (PEP 783).",
            remedy="Correct `python` and `abi` of [pyodide]; npm pyodide's pyodide-lock.json names both under `info`.",
        )
    return tag


def check_abi(wheel: Path, pins: PinSet) -> None:
    """Refuse a wheel whose name or ``WHEEL`` file says that it is for anything but the Pyodide of ``pins``.

    Raises Finding, with both tags in one sentence.
    """
    expected = wheel_tag(pins)
    try:
        found = {str(tag) for tag in parse_wheel_filename(wheel.name)[3]}
    except InvalidWheelFilename as error:
        raise Finding(
            f"{wheel.name} is not the name of a wheel: {str(error).rstrip('.')}.",
            remedy=f"Name it <name>-<version>-{expected}.whl, or run the package stage again.",
        ) from error
    for place, tags in (("its name", found), ("its WHEEL file", _tags_inside(wheel))):
        if tags != {expected}:
            listed = ", ".join(sorted(tags)) or "nothing"
            raise Finding(
                f"{wheel.name} is for {listed} by {place}, but pin set {pins.name} needs {expected}.",
                remedy=f"Build the package with --pins {pins.name}, or check it against the pin set it was built from.",
            )


def extension_suffix(pyodide: Path) -> str:
    """Return how Pyodide's Python names extension modules, such as ``.cpython-315-wasm32-emscripten.so``.

    ``pyodide`` is the unpacked npm package; the answer is ``EXT_SUFFIX`` in the sysconfig data of its own Python.
    Raises BrokenEnvironment when it is not there.
    """
    stdlib = pyodide / "python_stdlib.zip"
    try:
        with ZipFile(stdlib) as archive:
            name = next(name for name in archive.namelist() if re.fullmatch(r"_sysconfigdata_\w*[\w-]*\.py", name))
            return _constant(archive.read(name).decode(), "EXT_SUFFIX")
    except (OSError, BadZipFile, StopIteration, KeyError) as error:
        raise BrokenEnvironment(
            f"{stdlib} does not say how Pyodide names extension modules (no EXT_SUFFIX in its sysconfig data).",
            remedy="Run `triton-wasm toolchain` to unpack npm's pyodide anew.",
        ) from error


def _tags_inside(wheel: Path) -> set[str]:
    try:
        with ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/WHEEL", name)]
            return {tag for name in names for tag in BytesParser().parsebytes(archive.read(name)).get_all("Tag", [])}
    except (OSError, BadZipFile) as error:
        raise Finding(
            f"{wheel.name} cannot be read as a zip archive: {error}.", remedy="Run the package stage again."
        ) from error


def _constant(source: str, key: str) -> str:
    # The file is Python, and its other values are f-strings: it is read as a tree, not run and not evaluated.
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            for name, value in zip(node.keys, node.values, strict=True):
                if isinstance(name, ast.Constant) and name.value == key and isinstance(value, ast.Constant):
                    return str(value.value)
    raise KeyError(key)
