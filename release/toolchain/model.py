"""A proved toolchain: what runs em++ and wasm-opt, and what the module is compiled against and loaded by."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from release.process import Completed, run

type Provider = Literal["path", "emsdk", "debian"]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool that was run and said its version; ``digest`` is the SHA-256 of what makes its output what it is."""

    name: str
    version: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Proved paths and versions.

    ``enter`` is the command prefix with which a command finds the tools and an environment made for them, with nothing
    of ours in it; paths of the checkout, the cache, the work dir and the temporary directory mean the same inside as
    outside. ``python_include`` holds the target's ``Python.h`` and its wasm32 ``pyconfig.h``. ``pyodide`` is the
    unpacked npm package, ``node`` the Node that runs it. ``mismatches`` says which pinned versions were not met and
    accepted all the same; it is empty otherwise.
    """

    provider: Provider
    enter: tuple[str, ...] = ()
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
        """Run a command that names a tool by its bare name (``em++``, ``wasm-opt``) or is a path of this machine.

        ``cwd`` is the temporary directory unless given, and ``env`` is added to the environment of the tools.
        """
        folder = cwd or Path(tempfile.gettempdir())
        completed = run(self.command(command, env=env), cwd=folder, stdin=stdin, timeout=timeout)
        # What ended is the command, not the prefix that became it.
        return replace(completed, command=tuple(os.fspath(part) for part in command))

    def command(
        self, command: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """Return ``command`` as a command of this machine, for whoever runs it by other means than ``run``."""
        assignments = (f"{name}={value}" for name, value in (env or {}).items())
        return (*self.enter, *assignments, *(os.fspath(part) for part in command))

    def identity(self) -> dict[str, object]:
        """What of the toolchain changes the bits it makes, for the inputs of a stage."""
        return {
            "emscripten": self.emscripten.digest,
            "binaryen": self.binaryen.digest,
            "python_include": self.python_include_digest,
        }
