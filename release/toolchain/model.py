"""A proved toolchain: what runs em++ and wasm-opt, and what the module is compiled against and loaded by."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from release.process import Completed, run


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool that was run and said its version; ``digest`` is the SHA-256 of what makes its output what it is."""

    name: str
    version: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Proved paths and versions.

    ``enter`` is the command prefix and ``env`` the environment with which a command finds the tools; paths of the
    checkout, the cache and the work dir mean the same inside as outside. ``python_include`` holds the target's
    ``Python.h`` and its wasm32 ``pyconfig.h``. ``pyodide`` is the unpacked npm package, ``node`` the Node that runs it.
    ``mismatches`` says which pinned versions were not met and accepted all the same; it is empty otherwise.
    """

    provider: Literal["path", "emsdk", "debian"]
    enter: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    emscripten: Tool
    binaryen: Tool
    node: Path
    node_version: str
    pyodide: Path
    python_include: Path
    python_include_digest: str
    mismatches: tuple[str, ...] = ()

    def run(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout: float | None = None,
    ) -> Completed:
        """Run a command that names a tool by its bare name (``em++``, ``wasm-opt``) or is a path of this machine."""
        return run([*self.enter, *command], cwd=cwd, env={**self.env, **(env or {})}, stdin=stdin, timeout=timeout)

    def identity(self) -> dict[str, object]:
        """What of the toolchain changes the bits it makes, for the inputs of a stage."""
        return {
            "emscripten": self.emscripten.digest,
            "binaryen": self.binaryen.digest,
            "python_include": self.python_include_digest,
        }
