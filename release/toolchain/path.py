"""The first provider: whatever em++ and wasm-opt are on PATH."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from release.errors import BrokenEnvironment
from release.pins.model import PinSet
from release.progress import Steps
from release.toolchain.installation import Installation

NAME = "path"


def find(pins: PinSet, cache: Path) -> list[Installation]:
    """Return the tools on PATH, if both are there."""
    if not shutil.which("em++") or not shutil.which("wasm-opt"):
        return []
    # Where they keep their cache and configuration is their owner's affair; the rest of the environment is not theirs.
    names = ("PATH", "HOME", "EMSDK", "EMSDK_NODE", "EMSDK_PYTHON", "EM_CACHE", "EM_CONFIG")
    env = {name: os.environ[name] for name in names if name in os.environ}
    return [Installation(provider="path", env={**env, "LC_ALL": "C.UTF-8"})]


def install(pins: PinSet, cache: Path, *, allow_mismatch: bool, steps: Steps) -> Installation:
    """Refuse: what is on PATH is the user's."""
    missing = [name for name in ("em++", "wasm-opt") if not shutil.which(name)]
    raise BrokenEnvironment(
        f"There is no {' and no '.join(missing)} on PATH.",
        remedy=f"Put Emscripten {pins.emscripten.version} on PATH.",
    )


def remove(installation: Installation) -> None:
    """Leave it: what is on PATH is the user's."""
