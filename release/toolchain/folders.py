"""Where the toolchain lives in the cache folder."""

from __future__ import annotations

from pathlib import Path


def home(cache: Path) -> Path:
    """Return the part of the cache folder that is the toolchain's."""
    return cache / "toolchain"
