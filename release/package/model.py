"""What a package is made of, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What goes into a package.

    ``module`` is the side module's wasm file and ``extension`` its dotted import name (``exprc._exprc``);
    ``python`` is a folder whose files are laid as they are at the root of site-packages; ``license_files`` are the
    licences of all that is in the module, by the name that each has in the package. ``entry_points`` is the text of
    ``entry_points.txt``, empty for none.
    """

    name: str
    version: str
    summary: str
    license: str
    license_files: Mapping[str, Path]
    module: Path
    extension: str
    python: Path
    imports: tuple[str, ...]
    entry_points: str = ""


@dataclass(frozen=True, kw_only=True)
class Package:
    """The package in its three forms: wheel, Pyodide package zip, and a lock file with its entry."""

    wheel: Path
    zip: Path
    lock: Path
