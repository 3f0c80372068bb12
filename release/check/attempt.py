"""One case with one loader in a Node process of its own: started, kept within its limits, judged.

The harness in Node notes in a journal what happens, so what it had to say outlives it, whatever kills it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release.artifacts import files_below, sha256_of
from release.check.model import Case, CaseResult, Loader
from release.package.model import Package
from release.process import Completed, run

LOAD_LIMIT_SECONDS = 180.0
"""How long Pyodide and the package may take to load: a hundred times what they take on a quiet machine."""

MESSAGE_LIMIT = 400
"""Characters of a message."""

OUTPUT_LIMIT = 4 << 20
"""Bytes of a case's output that are kept in ``output.txt``."""

_RESULT_OUTPUT = 64 << 10
_HARNESS = Path(__file__).with_name("harness.mjs")

# JavaScript's own heap, which holds neither WebAssembly code nor memory; Node's default is up to 4 GB.
_NODE_FLAGS = ("--max-old-space-size=1024",)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What all attempts of a check share; ``digests`` gives the SHA-256 expected of wheel and zip by bare name."""

    package: Package
    imports: tuple[str, ...]
    digests: Mapping[str, str]
    node: Path
    pyodide: Path


class Attempt:
    """One case with one loader. ``run`` blocks; the other methods may be called from another thread meanwhile."""

    def __init__(self, case: Case, loader: Loader, setup: Setup, *, folder: Path) -> None:
        self._case, self._loader, self._setup = case, loader, setup
        self._folder = folder.resolve()
        self._journal_file = self._folder / "journal.jsonl"
        self._output_file = self._folder / "output.txt"
        self._files = self._folder / "files"
        self._started = time.monotonic()
        self._loaded: float | None = None
        self._stopped = False

    @property
    def label(self) -> str:
        """Name case and loader for people."""
        return f"{self._case.name} ({self._loader})"

    def run(self) -> CaseResult:
        """Run the case to its end in a fresh Node process and an emptied folder. Raises BrokenEnvironment."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._files.mkdir(parents=True)
        self._started = time.monotonic()
        completed = run(
            [self._setup.node, *_NODE_FLAGS, _HARNESS],
            cwd=self._folder,
            env={"NODE_OPTIONS": ""},  # the user's own have no place in a check
            stdin=json.dumps(self._job()),
            # A net below enforce_limits, for a Node that never gets as far as its journal.
            timeout=LOAD_LIMIT_SECONDS + self._case.limit_seconds + 60,
        )
        journal = read_journal(self._journal_file)
        message = one_line(self._judge(journal, completed))
        return CaseResult(
            name=self._case.name,
            loader=self._loader,
            passed=not message,
            message=message,
            load_seconds=round(journal.get("loaded", {}).get("seconds", 0.0), 3),
            run_seconds=round(self._run_seconds(journal), 3),
            peak_memory=completed.peak_memory,
            output=self._output(completed.output),
            files={path.relative_to(self._files).as_posix(): sha256_of(path) for path in files_below(self._files)},
        )

    def enforce_limits(self) -> None:
        """End the process when it loads or runs for too long; to be called every tenth of a second or so."""
        journal, now = read_journal(self._journal_file), time.monotonic()
        if "passed" in journal or "failed" in journal:
            return
        if self._loaded is None and "loaded" in journal:
            self._loaded = now
        limit = LOAD_LIMIT_SECONDS if self._loaded is None else self._case.limit_seconds
        if now - (self._loaded or self._started) > limit:
            self._stopped = True
            self.end()

    def end(self) -> None:
        """Kill the process, if there is one by now."""
        if started := read_journal(self._journal_file).get("started"):
            with suppress(ProcessLookupError, PermissionError):  # it ended by itself
                os.killpg(started["pid"], signal.SIGKILL)

    def _job(self) -> dict[str, Any]:
        package = self._setup.package
        file = package.zip if self._loader == "zip" else package.wheel
        return {
            "loader": self._loader,
            "file": str(file.resolve()),
            "sha256": self._setup.digests[file.name],
            "lock": str(package.lock.resolve()),
            "imports": self._setup.imports,
            "pyodide": str(self._setup.pyodide.resolve()),
            "program": str(self._case.program.resolve()),
            "journal": str(self._journal_file),
            "output": str(self._output_file),
            "output_limit": OUTPUT_LIMIT,
            "files": str(self._files),
        }

    def _judge(self, journal: Mapping[str, dict[str, Any]], completed: Completed) -> str:
        """Return why the case failed, or nothing."""
        limit = self._case.limit_seconds
        loading = "" if "loaded" in journal else "loading: "
        if failed := journal.get("failed"):
            return f"{loading}{failed['message']}"
        if passed := journal.get("passed"):
            return f"took {passed['seconds']:.2f} s, its limit is {limit:g} s" if passed["seconds"] > limit else ""
        if self._stopped and loading:
            return f"loading: stopped after {completed.seconds:.1f} s, the limit is {LOAD_LIMIT_SECONDS:g} s"
        if self._stopped:
            return f"stopped after {self._run_seconds(journal):.2f} s, its limit is {limit:g} s"
        fatal = next((line for line in completed.output.splitlines() if "FATAL ERROR" in line), "")
        return f"{loading}{completed.explain()} before the case was over{fatal and f': {fatal}'}"

    def _run_seconds(self, journal: Mapping[str, dict[str, Any]]) -> float:
        ended = journal.get("passed") or journal.get("failed")
        if ended and "loaded" in journal:
            return float(ended["seconds"])
        return time.monotonic() - self._loaded if self._loaded is not None else 0.0

    def _output(self, of_node: str) -> str:
        """Add what Node itself printed to the output file, and return the end of that."""
        with self._output_file.open("ab") as file:
            file.write(of_node[-OUTPUT_LIMIT:].encode())
        return end_of_output(self._output_file)


def read_journal(path: Path) -> dict[str, dict[str, Any]]:
    """Return what a harness has noted so far, by event; a line without its end is still being written."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return {}
    entries = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return {entry["event"]: entry for entry in entries}


def end_of_output(path: Path) -> str:
    """Return the end of what a case has printed, as a result holds it; ``path`` is the file that has all of it."""
    output = path.read_bytes()
    cut = f"[cut; all of it is in {path.name}]\n" if len(output) > _RESULT_OUTPUT else ""
    return cut + output[-_RESULT_OUTPUT:].decode(errors="replace")


def one_line(text: str) -> str:
    """Return a message as one printable line of at most ``MESSAGE_LIMIT`` characters."""
    line = " ".join(text.split())
    line = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in line)
    return line if len(line) <= MESSAGE_LIMIT else f"{line[: MESSAGE_LIMIT - 2]} …"
