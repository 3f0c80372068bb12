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
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Playwright, async_playwright

from release.artifacts import files_below, sha256_of
from release.check.attempt import LOAD_LIMIT_SECONDS, OUTPUT_LIMIT, end_of_output, one_line, read_journal
from release.check.model import Case, CaseResult, CheckReport, Runtime
from release.check.node import default_at_once, pyodide_version
from release.check.origins import CDN_HEADERS, HOST, Attempts, serving
from release.errors import BrokenEnvironment, WrongUsage
from release.package.model import Package
from release.progress import Progress, Steps
from release.toolchain.chromium import VARIABLE, Browser

type Place = Literal["worker", "main"]
"""Where Pyodide runs: in a module worker, or on the main thread of the page."""

_PAGE = Path(__file__).with_name("page")
_LAUNCH_SECONDS = 60.0
_TICK_SECONDS = 0.1
_CLOSING_SECONDS = 10.0
_NET_SECONDS = 60.0

# Besides those that Playwright gives to every browser. No name is looked up and no address but ours is asked, whatever
# the package, the page or the browser itself would like to.
_FLAGS = (
    "--disable-gpu",
    "--proxy-server=direct://",
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}",
)


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
    ``keep/lock/CASE``, emptied before. ``expected_sha256`` gives the digest of the wheel by bare file name; left out,
    it is what the file has now. ``at_once`` browsers run side by side: by default as many as ``check_package`` has
    processes. Results are in the order of the cases. Their peak memory is that of the largest of the browser's
    processes, which is the one with the page in it.

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
        async with async_playwright() as driver:
            tasks = [asyncio.create_task(run(attempt, driver, steps)) for attempt in attempts]
            try:
                return await asyncio.gather(*tasks)
            finally:  # when one raised, the others end their browsers
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


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
        self._case, self._setup, self._folder = case, setup, folder.resolve()
        self._journal_file = self._folder / "journal.jsonl"
        self._loading = time.monotonic()
        self._running: float | None = None  # since when
        self._lost = ""  # how the page or the browser was lost, if it was
        self._ended = 0.0  # when that was seen
        self._peak_memory = 0

    @property
    def label(self) -> str:
        """Name the case and its place for people."""
        return f"{self._case.name} ({self._setup.place})"

    async def run(self, driver: Playwright) -> CaseResult:
        """Run the case to its end, or end it. Raises BrokenEnvironment."""
        self._prepare()
        browser = await self._launch(driver)
        try:
            await self._watch(browser)
        finally:
            with suppress(PlaywrightError, TimeoutError):  # it has ended by itself, or ends with the driver
                await asyncio.wait_for(browser.close(), _CLOSING_SECONDS)
        journal = read_journal(self._journal_file)
        message = one_line(self._judge(journal))
        files = self._folder / "files"
        return CaseResult(
            name=self._case.name,
            loader="lock",
            passed=not message,
            message=message,
            load_seconds=round(journal.get("loaded", {}).get("seconds", 0.0), 3),
            run_seconds=round(self._run_seconds(journal), 3),
            peak_memory=self._peak_memory,
            output=end_of_output(self._folder / "output.txt"),
            files={path.relative_to(files).as_posix(): sha256_of(path) for path in files_below(files)},
        )

    def _prepare(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        (self._folder / "files").mkdir(parents=True)
        (self._folder / "output.txt").touch()
        program = {"program": self._case.program.name, "source": self._case.program.read_text(encoding="utf-8")}
        self._setup.attempts.add(self._case.name, {**self._setup.job, **program}, self._folder)

    async def _launch(self, driver: Playwright) -> Running:
        path = self._setup.browser.path
        try:
            return await driver.chromium.launch(executable_path=path, args=_FLAGS, timeout=_LAUNCH_SECONDS * 1000)
        except PlaywrightError as error:
            own = re.search(r"\[err\] (.+)", error.message)
            said = one_line(own[1] if own else error.message.splitlines()[0]).rstrip(".")
            raise BrokenEnvironment(
                f"{path} does not start: {said}.", remedy=f"Name another Chromium or Chrome in {VARIABLE}."
            ) from error

    async def _watch(self, browser: Running) -> None:
        """Open the page and return when the case is over, too late or lost."""
        try:
            # A net below _is_over, for a browser that does not even answer how it is.
            async with asyncio.timeout(LOAD_LIMIT_SECONDS + self._case.limit_seconds + _NET_SECONDS):
                page = await browser.new_page()
                page.on("pageerror", lambda error: self._lose(f"the page failed ({error.message})"))
                page.on("crash", lambda _: self._lose("the page crashed"))
                browser.on("disconnected", lambda _: self._lose("the browser died"))
                system = await browser.new_browser_cdp_session()
                self._loading = time.monotonic()
                address = f"{self._setup.page}?attempt={self._case.name}&place={self._setup.place}"
                await page.goto(address, wait_until="commit")
                while not self._is_over():
                    await asyncio.sleep(_TICK_SECONDS)
                    self._measure(await system.send("SystemInfo.getProcessInfo"))
        except TimeoutError:
            self._lose("the browser stopped answering")
        except PlaywrightError as error:
            self._lose(f"the browser failed: {error.message}")
        finally:
            self._ended = time.monotonic()

    def _is_over(self) -> bool:
        journal, now = read_journal(self._journal_file), time.monotonic()
        if self._lost or "passed" in journal or "failed" in journal:
            return True
        if self._running is None and "loaded" in journal:
            self._running = now
        limit = LOAD_LIMIT_SECONDS if self._running is None else self._case.limit_seconds
        return now - (self._running or self._loading) > limit

    def _judge(self, journal: Mapping[str, dict[str, Any]]) -> str:
        """Return why the case failed, or nothing."""
        limit, loading = self._case.limit_seconds, "" if "loaded" in journal else "loading: "
        if failed := journal.get("failed"):
            return f"{loading}{failed['message']}"
        if passed := journal.get("passed"):
            return f"took {passed['seconds']:.2f} s, its limit is {limit:g} s" if passed["seconds"] > limit else ""
        if self._lost:
            return f"{loading}{self._lost} before the case was over"
        if loading:
            seconds = self._ended - self._loading
            return f"loading: stopped after {seconds:.1f} s, the limit is {LOAD_LIMIT_SECONDS:g} s"
        return f"stopped after {self._run_seconds(journal):.2f} s, its limit is {limit:g} s"

    def _run_seconds(self, journal: Mapping[str, dict[str, Any]]) -> float:
        ended = journal.get("passed") or journal.get("failed")
        if ended and "loaded" in journal:
            return float(ended["seconds"])
        return self._ended - self._running if self._running is not None else 0.0

    def _lose(self, how: str) -> None:
        if not self._ended:  # what we end ourselves is not lost
            self._lost = self._lost or how

    def _measure(self, system: Mapping[str, Any]) -> None:
        """Note how large each process of the browser has been at most, as the kernel tells it."""
        for process in system["processInfo"]:
            with suppress(OSError):  # it is gone
                status = Path(f"/proc/{process['id']}/status").read_text()
                if found := re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE):
                    self._peak_memory = max(self._peak_memory, int(found[1]) * 1024)
