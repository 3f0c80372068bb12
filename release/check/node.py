"""Checking a package in Node: every case with every loader, each in a fresh process with a fresh Pyodide."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from release.artifacts import sha256_of
from release.check.attempt import Attempt, Setup
from release.check.model import Case, CaseResult, CheckReport, Loader, Runtime
from release.errors import BrokenEnvironment, WrongUsage
from release.package.model import Package
from release.progress import Progress

_TICK_SECONDS = 0.1
_MOST_AT_ONCE = 4


def check_package(
    package: Package,
    cases: Sequence[Case],
    *,
    loaders: Sequence[Loader] = ("wheel", "zip", "lock"),
    imports: Sequence[str],
    toolchain: Runtime,
    keep: Path,
    progress: Progress,
    expected_sha256: Mapping[str, str] | None = None,
    at_once: int | None = None,
) -> CheckReport:
    """Run every case with every loader; whatever goes wrong in Node is a failed result, never an exception.

    ``imports`` are imported after loading, and belong to it. Output and files of a case are kept in the folder
    ``keep/LOADER/CASE``, emptied before. ``expected_sha256`` gives the digests of wheel and zip by bare file name;
    left out, they are what the files have now. ``at_once`` processes run side by side: by default one for each core
    up to four, as each takes up to 1 GB. Results are in the order of loaders, then cases.

    Raises WrongUsage for a package without its files or digests, BrokenEnvironment when Node or Pyodide is missing.
    """
    started = time.monotonic()
    version = pyodide_version(toolchain.pyodide)
    setup = Setup(
        package=package,
        imports=tuple(imports),
        digests=_digests(package, expected_sha256),
        node=toolchain.node,
        pyodide=toolchain.pyodide,
    )
    attempts = [Attempt(case, loader, setup, folder=keep / loader / case.name) for loader in loaders for case in cases]
    return CheckReport(
        results=tuple(_run_all(attempts, at_once or default_at_once(), progress)),
        where="node",
        runtime=f"Node {toolchain.node_version}",
        pyodide_version=version,
        seconds=round(time.monotonic() - started, 3),
    )


def _run_all(attempts: Sequence[Attempt], at_once: int, progress: Progress) -> list[CaseResult]:
    results: dict[Attempt, CaseResult] = {}
    waiting = deque(attempts)
    running: dict[Future[CaseResult], Attempt] = {}
    with progress.steps("check", len(attempts)) as steps, ThreadPoolExecutor(at_once) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    attempt = waiting.popleft()
                    steps.begin(attempt.label)
                    running[pool.submit(attempt.run)] = attempt
                done, _ = wait(running, timeout=_TICK_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    attempt = running.pop(future)
                    results[attempt] = future.result()
                    if message := results[attempt].message:
                        progress.note(f"  check      {attempt.label} failed: {message}")
                for attempt in running.values():
                    attempt.enforce_limits()
        except BaseException:
            # The processes have groups of their own: Ctrl-C reached this one only.
            while running and wait(running, timeout=_TICK_SECONDS).not_done:
                for attempt in running.values():
                    attempt.end()
            raise
    return [results[attempt] for attempt in attempts]


def default_at_once() -> int:
    """Return how many cases run side by side where nobody says: one for each core, up to four."""
    return min(_MOST_AT_ONCE, os.cpu_count() or 1)


def _digests(package: Package, expected: Mapping[str, str] | None) -> dict[str, str]:
    for path in (package.wheel, package.zip, package.lock):
        if not path.is_file():
            raise WrongUsage(f"There is no file {path} to check.", remedy="Run the package stage first.")
    if expected is None:
        return {path.name: sha256_of(path) for path in (package.wheel, package.zip)}
    for path in (package.wheel, package.zip):
        if path.name not in expected:
            raise WrongUsage(
                f"No SHA-256 is expected of {path.name}.", remedy="Give the digests of wheel and zip, or none at all."
            )
    return {path.name: expected[path.name] for path in (package.wheel, package.zip)}


def pyodide_version(pyodide: Path) -> str:
    """Read the version of an unpacked npm package of Pyodide. Raises BrokenEnvironment for a folder that is none."""
    try:
        return str(json.loads((pyodide / "package.json").read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError) as error:
        raise BrokenEnvironment(
            f"{pyodide} is not an unpacked npm package of Pyodide.", remedy="Run `triton-wasm toolchain` to install it."
        ) from error
