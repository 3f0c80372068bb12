"""Where the toolchain lives in the cache folder."""

from __future__ import annotations

import shutil
from pathlib import Path


def home(cache: Path) -> Path:
    """Return the part of the cache folder that is the toolchain's."""
    return cache / "toolchain"


def sweep(folder: Path) -> None:
    """Remove what runs that were killed have left half-done in ``folder``, whose lock the caller must hold."""
    for leftover in folder.glob(".*.part"):
        shutil.rmtree(leftover, ignore_errors=True)
