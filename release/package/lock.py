"""Pyodide's lock file with one package in it: how a stock Pyodide loads the wheel by name."""

from __future__ import annotations

from pathlib import Path

from packaging.utils import canonicalize_name
from pyodide_lock import PackageSpec, PyodideLockSpec
from pyodide_lock.spec import InfoSpec

from release.artifacts import sha256_of
from release.errors import BrokenEnvironment, Finding
from release.package.model import Contents
from release.pins.model import PinSet

LOCK = "pyodide-lock.json"


def runtime_info(pyodide: Path, pins: PinSet) -> InfoSpec:
    """Return what the lock file of the unpacked npm package ``pyodide`` says of the runtime itself.

    Raises BrokenEnvironment when there is none to read, or when it is not the runtime that ``pins`` names.
    """
    try:
        info = PyodideLockSpec.from_json(pyodide / LOCK).info
    except Exception as error:
        raise BrokenEnvironment(
            f"{pyodide / LOCK} cannot be read as Pyodide's lock file: {error}.",
            remedy="Run `triton-wasm toolchain` to unpack npm's pyodide anew.",
        ) from error
    if (info.abi_version, info.python) != (pins.pyodide.abi, pins.pyodide.python):
        raise BrokenEnvironment(
            f"{pyodide} is a Pyodide of ABI {info.abi_version} with Python {info.python}, but pin set {pins.name} "
            f"names ABI {pins.pyodide.abi} with Python {pins.pyodide.python}.",
            remedy="Run `triton-wasm toolchain` for this pin set.",
        )
    return info


def write_lock(path: Path, wheel: Path, contents: Contents, *, version: str, info: InfoSpec) -> None:
    """Write the lock file at ``path``: the runtime's own ``info`` and the entry of ``wheel``, a file beside it."""
    name = canonicalize_name(contents.name)
    entry = PackageSpec(
        name=name,
        version=version,
        file_name=wheel.name,
        install_dir="site",
        sha256=sha256_of(wheel),
        imports=list(contents.imports),
    )
    PyodideLockSpec(info=info, packages={name: entry}).to_json(path, indent=2)


def check_lock(path: Path, wheel: Path) -> None:
    """Read the lock file again and compare its one entry with the wheel.

    Raises Finding. Pyodide in Node loads a wheel with another digest without a word; this does not.
    """
    try:
        lock = PyodideLockSpec.from_json(path)
        lock.check_wheel_filenames()
        (entry,) = lock.packages.values()
    except Exception as error:
        raise Finding(
            f"{path.name} is not a lock file with one package: {error}.", remedy="Run the package stage again."
        ) from error
    if entry.file_name != wheel.name or entry.depends or entry.sha256 != sha256_of(wheel):
        raise Finding(
            f"{path.name} names {entry.file_name} with SHA-256 {entry.sha256 or 'missing'} and dependencies "
            f"{entry.depends}, but the wheel is {wheel.name} with SHA-256 {sha256_of(wheel)} and has none.",
            remedy="Run the package stage again; never change the wheel after it.",
        )
