"""A package of a few bytes in its three forms, for the harness to load; and the same with something wrong in it."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from release.artifacts import sha256_of
from release.package.model import Package

PYTHON = {"tiny/__init__.py": "from importlib.resources import files\nANSWER = 42\nWHERE = __file__\n"}


def tiny_package(
    folder: Path, *, pyodide: Path, files: Mapping[str, str] = PYTHON, tag: str = "py3-none-any"
) -> Package:
    folder.mkdir(parents=True, exist_ok=True)
    package = Package(
        wheel=folder / f"tiny-1.0-{tag}.whl", zip=folder / "tiny-1.0.zip", lock=folder / "pyodide-lock.json"
    )
    info = "tiny-1.0.dist-info"
    content = {
        **files,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{name},,\n" for name in (*content, f"{info}/RECORD"))
    for path in (package.wheel, package.zip):
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in {**content, f"{info}/RECORD": record}.items():
                archive.writestr(name, text)
    write_lock(package, pyodide=pyodide)
    return package


def write_lock(
    package: Package, *, pyodide: Path, info: Mapping[str, str] | None = None, entry: Mapping[str, str] | None = None
) -> None:
    """Write the lock file of ``package``, with what ``info`` and ``entry`` say in place of what is right."""
    runtime = json.loads((pyodide / "pyodide-lock.json").read_text())["info"]
    tiny = {
        "name": "tiny",
        "version": "1.0",
        "file_name": package.wheel.name,
        "install_dir": "site",
        "sha256": sha256_of(package.wheel),
        "package_type": "package",
        "imports": ["tiny"],
        "depends": [],
        "unvendored_tests": False,
    }
    lock = {"info": runtime | dict(info or {}), "packages": {"tiny": tiny | dict(entry or {})}}
    package.lock.write_text(json.dumps(lock))
