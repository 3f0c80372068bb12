"""Remembering that a toolchain was proved, for as long as nothing about it has changed.

Proving takes seconds and a release in which nothing changed may take one in all. So what was proved is written down
with the state of each file that it stood on: its size, its times and its inode, which no change leaves as they were.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from release.artifacts import write_atomically
from release.toolchain.installation import Installation
from release.toolchain.model import Tool


@dataclass(frozen=True, kw_only=True)
class Proved:
    """A toolchain without the folders that one run shows to it."""

    installation: Installation
    emscripten: Tool
    binaryen: Tool
    node: Path
    node_version: str
    pyodide: Path
    python_include: Path
    python_include_digest: str
    mismatches: tuple[str, ...]


def remember(stamp: Path, proved: Proved, *, choice: Mapping[str, Any], files: Iterable[Path]) -> None:
    """Write down what was proved, what led to its being chosen, and the files it stands on."""
    record = {"proved": asdict(proved), "choice": choice, "files": {str(path): _state(path) for path in files}}
    write_atomically(stamp, json.dumps(record, indent=1, default=str) + "\n")


def recall(stamp: Path, *, choice: Mapping[str, Any]) -> Proved | None:
    """Return what was proved, unless another choice would be made now or one of its files has changed."""
    try:
        record = json.loads(stamp.read_text())
        if record["choice"] != choice or any(_state(Path(path)) != state for path, state in record["files"].items()):
            return None
        return _from_json(record["proved"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # nothing was proved yet, or a file is gone


def _state(path: Path) -> list[int]:
    state = path.stat()
    return [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]


def _from_json(proved: dict[str, Any]) -> Proved:
    installation = proved["installation"]
    paths = {name: Path(proved[name]) for name in ("node", "pyodide", "python_include")}
    for name in ("root", "folder"):
        installation[name] = installation[name] and Path(installation[name])
    tools = {name: Tool(**proved[name]) for name in ("emscripten", "binaryen")}
    whole = {**proved, **paths, **tools, "installation": Installation(**installation)}
    return Proved(**{**whole, "mismatches": tuple(proved["mismatches"])})
