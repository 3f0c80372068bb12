"""Checking a package in a browser: each case in a browser of its own, in a worker or on the main thread of a page.

The page loads the package as a page of somebody else would: by name from the lock file, from another origin, with the
digest enforced by the browser.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser as Running
from playwright.async_api import ConsoleMessage, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from release.artifacts import files_below, sha256_of
from release.check.attempt import LOAD_LIMIT_SECONDS, OUTPUT_LIMIT, end_of_output, one_line, read_journal
from release.check.model import Case, CaseResult, CheckReport, Runtime
from release.check.node import default_at_once, pyodide_version
from release.check.origins import CDN_HEADERS, HOST, Attempts, serving
from release.errors import BrokenEnvironment, WrongUsage
from release.package.model import Package
from release.progress import Progress, Steps
from release.toolchain.chromium import Browser

type Place = Literal["worker", "main"]
"""Where Pyodide runs: in a module worker, or on the main thread of the page."""

_PAGE = Path(__file__).with_name("page")
_TICK_SECONDS = 0.1
_CLOSING_SECONDS = 10.0
_COMPLAINTS = 3

# Besides those that Playwright gives to every browser. No name is looked up and no address but ours is asked, whatever
# the package, the page or the browser itself would like to.
_FLAGS = (
    "--disable-gpu",
    "--proxy-server=direct://",
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}",
)
# What the browser has to say to an answer that it did not give to the page is in no exception, for the page's protection.
_TELLING = re.compile(r"CORS policy|'integrity' attribute|Failed to load resource")


def check_in_browser(
    package: Package,
    cases: Sequence[Case],
    *,
    place: Place,
    imports: Sequence[str],
    toolchain: Runtime,
    browser: Browser,
    keep: Path,
    progress: Progress,
    expected_sha256: Mapping[str, str] | None = None,
    at_once: int | None = None,
) -> CheckReport:
    """Run every case by the lock file's loader; whatever goes wrong in the browser is a failed result, no exception.

    ``imports`` are imported after loading, and belong to it. Output and files of a case are kept in the folder
    ``keep/lock/CASE``, emptied before. ``expected_sha256`` gives the digest of the wheel by bare file name; left out, it
    is what the file has now. ``at_once`` browsers run side by side, as many as ``check_package`` has processes.
    Results are in the order of the cases. A result's peak memory is that of the largest of the browser's processes, in
    which the page is.

    Raises WrongUsage for a package without its files or digest, BrokenEnvironment when the browser does not start or
    there is no Pyodide.
    """
    started = time.monotonic()
    version = pyodide_version(toolchain.pyodide)
    attempts = Attempts()
    with ExitStack() as origins:
        roots = {"page": _PAGE, "pyodide": toolchain.pyodide}
        here = origins.enter_context(serving(roots, attempts=attempts))
        elsewhere = origins.enter_context(serving({"": package.lock.parent}, headers=CDN_HEADERS))
        job = {
            "pyodide": f"{here}/pyodide/pyodide.mjs",
            "lock": f"{elsewhere}/{package.lock.name}",
            "file": package.wheel.name,
            "sha256": _digest(package, expected_sha256),
            "imports": list(imports),
            "output_limit": OUTPUT_LIMIT,
        }
        setup = _Setup(place=place, job=job, page=f"{here}/page/index.html", attempts=attempts, browser=browser)
        results = asyncio.run(
            _run_all(
                [_Attempt(case, setup, folder=keep / "lock" / case.name) for case in cases],
                at_once or default_at_once(),
                progress,
            )
        )
    return CheckReport(
        results=tuple(results),
        where="chromium-worker" if place == "worker" else "chromium-main",
        runtime=f"{browser.name} {browser.version}, {'worker' if place == 'worker' else 'main thread'}",
        pyodide_version=version,
        seconds=round(time.monotonic() - started, 3),
    )


def _digest(package: Package, expected: Mapping[str, str] | None) -> str:
    for path in (package.wheel, package.lock):
        if not path.is_file():
            raise WrongUsage(f"There is no file {path} to check.", remedy="Run the package stage first.")
    if expected is None:
        return sha256_of(package.wheel)
    if digest := expected.get(package.wheel.name):
        return digest
    raise WrongUsage(f"No SHA-256 is expected of {package.wheel.name}.", remedy="Give its digest, or none at all.")


async def _run_all(attempts: Sequence[_Attempt], at_once: int, progress: Progress) -> list[CaseResult]:
    turn = asyncio.Semaphore(at_once)

    async def run(attempt: _Attempt, driver: Playwright, steps: Steps) -> CaseResult:
        async with turn:
            steps.begin(attempt.label)
            result = await attempt.run(driver)
        if result.message:
            progress.note(f"  check      {attempt.label} failed: {result.message}")
        return result

    with progress.steps("check", len(attempts)) as steps:
        async with async_playwright() as driver, asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(attempt, driver, steps)) for attempt in attempts]
    return [task.result() for task in tasks]


@dataclass(frozen=True, kw_only=True)
class _Setup:
    """What all attempts of a check share."""

    place: Place
    job: Mapping[str, Any]
    page: str
    attempts: Attempts
    browser: Browser


class _Attempt:
    """One case in a browser of its own: started, kept within its limits, judged, ended."""

    def __init__(self, case: Case, setup: _Setup, *, folder: Path) -> None:
        self._case, self._setup, self._folder = case, setup, folder
        self._complaints: list[str] = []
        self._lost = ""  # how the page or the browser was lost, if it was
        self._peak_memory = 0
        self._run_seconds = 0.0

    @property
    def label(self) -> str:
        """Name the case and its place for people."""
        return f"{self._case.name} ({self._setup.place})"

    async def run(self, driver: Playwright) -> CaseResult:
        """Run the case to its end, or end it. Raises BrokenEnvironment."""
        self._prepare()
        browser = await self._launch(driver)
        try:
            stopped = await self._watch(browser)
        finally:
            with suppress(PlaywrightError, TimeoutError):  # it has ended by itself
                await asyncio.wait_for(browser.close(), _CLOSING_SECONDS)
        journal = read_journal(self._folder / "journal")
        message = one_line(self._judge(journal, stopped))
        files = self._folder / "files"
        return CaseResult(
            name=self._case.name,
            loader="lock",
            passed=not message,
            message=message,
            load_seconds=round(journal.get("loaded", {}).get("seconds", 0.0), 3),
            run_seconds=round(self._run_seconds, 3),
            peak_memory=self._peak_memory,
            output=end_of_output(self._folder / "output"),
            files={path.relative_to(files).as_posix(): sha256_of(path) for path in files_below(files)},
        )
