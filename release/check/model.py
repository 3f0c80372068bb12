"""What is checked, and how it went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

type Loader = Literal["wheel", "zip", "lock"]
"""How the package gets into Pyodide: ``loadPackage(wheel)``, ``unpackArchive(zip)``, or by name from the lock file."""


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
    """All results, and the runtime they were made with."""

    results: tuple[CaseResult, ...]
    node_version: str
    pyodide_version: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether there were cases and every one passed."""
        return bool(self.results) and all(result.passed for result in self.results)
