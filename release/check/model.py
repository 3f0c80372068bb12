"""What is checked, and how it went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

type Loader = Literal["wheel", "zip", "lock"]
"""How the package gets into Pyodide: ``loadPackage(wheel)``, ``unpackArchive(zip)``, or by name from the lock file."""


type Where = Literal["node", "chromium-worker", "chromium-main"]
"""What runs the package: Node, or a browser in a worker or on the main thread of a page."""


class Runtime(Protocol):
    """What a package is loaded by: a Node, and the unpacked npm package of a Pyodide."""

    @property
    def node(self) -> Path:
        """Where Node is."""

    @property
    def node_version(self) -> str:
        """Its version, such as ``24.19.0``."""

    @property
    def pyodide(self) -> Path:
        """The folder of Pyodide."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A Python program to run in a fresh Pyodide.

    It passes when it ends without an exception within ``limit_seconds`` of wall time, loading excluded. Files it writes
    below ``/out`` are kept.
    """

    name: str
    program: Path
    limit_seconds: float


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """How one case went with one loader: times in seconds, memory in bytes, and one line saying why it failed.

    ``output`` is the end of what it printed, traceback included; ``files`` gives the SHA-256 of each file it wrote, by
    its name below ``/out``.
    """

    name: str
    loader: Loader
    passed: bool
    message: str
    load_seconds: float
    run_seconds: float
    peak_memory: int
    output: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """All results, and what they were made in: ``runtime`` has the version, such as ``Node 24.19.0``."""

    results: tuple[CaseResult, ...]
    where: Where
    runtime: str
    pyodide_version: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether there were cases and every one passed."""
        return bool(self.results) and all(result.passed for result in self.results)
