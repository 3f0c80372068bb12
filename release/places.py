"""Where the toolkit keeps what it may keep: one cache folder, and nothing else of the user's."""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]


def cache_folder() -> Path:
    """Return the cache folder: ``TRITON_WASM_CACHE``, else ``triton-wasm`` in the user's cache directory."""
    if chosen := os.environ.get("TRITON_WASM_CACHE"):
        return Path(chosen).expanduser().resolve()
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser().resolve() / "triton-wasm"
