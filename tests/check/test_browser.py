"""Loading a package in a real Chromium as a page of somebody else would, and every way in which that can end badly."""

import hashlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from release.check import browser as checking
from release.check.attempt import MESSAGE_LIMIT
from release.check.browser import Place, check_in_browser
from release.check.cases import load_cases
from release.check.model import Case, CaseResult, CheckReport
from release.check.node import check_package
from release.errors import BrokenEnvironment, WrongUsage
from release.package.model import Package
from release.places import CHECKOUT
from release.progress import Progress
from release.toolchain import chromium
from release.toolchain.chromium import Browser, find_chromium
from release.toolchain.model import Toolchain
from tests.check.test_node import NONSENSE, PROGRAM
from tests.check.tiny import tiny_package, write_lock

QUIET = Progress(quiet=True)
PLACES: tuple[Place, ...] = ("worker", "main")
ENDLESS = "print('so far')\nwhile True: pass"

# name: (program, what the message says); each program runs in a browser of its own.
PROGRAMS = {
    "works": (PROGRAM, ""),
    "exception": (
        "print('before', end='')\nopen('/out/partial', 'w').write('x')\n1 / 0",
        "ZeroDivisionError: division",
    ),
    "endless": (ENDLESS, "stopped after 1."),
    "abort": ("import os\nos.abort()", "Pyodide died of RuntimeError: unreachable"),
    "rejection": ("from pyodide.code import run_js\nrun_js('void Promise.reject(new Error(\"lost\"))')", "Error: lost"),
    "huge-output": (
        "for _ in range(20_000): print('x' * 999)\nraise ValueError('\\x1b[31m' + 'y' * 1000)",
        "ValueError: \\x1b[31myyy",
    ),
}


@pytest.fixture(scope="module")
def chrome(cache: Path) -> Browser:
    return find_chromium(cache, QUIET)


@pytest.fixture
def package(tmp_path: Path, toolchain: Toolchain) -> Package:
    return tiny_package(tmp_path / "a package", pyodide=toolchain.pyodide)


def case_of(folder: Path, program: str, *, name: str = "case", limit_seconds: float = 60.0) -> Case:
    path = folder / f"{name} program.py"
    path.write_text(program)
    return Case(name=name, program=path, limit_seconds=limit_seconds)


def check(
    package: Package, case: Case, toolchain: Toolchain, chrome: Browser, place: Place = "worker", *, expected: str = ""
) -> CaseResult:
    (result,) = check_in_browser(
        package,
        [case],
        place=place,
        imports=["tiny"],
        toolchain=toolchain,
        browser=chrome,
        keep=case.program.parent / "kept",
        progress=QUIET,
        expected_sha256={package.wheel.name: expected} if expected else None,
    ).results
    return result


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def keep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept cases")


@pytest.fixture(scope="module")
def report(
    place: Place, keep: Path, toolchain: Toolchain, chrome: Browser, tmp_path_factory: pytest.TempPathFactory
) -> CheckReport:
    folder = tmp_path_factory.mktemp("programs")
    return check_in_browser(
        tiny_package(folder / "package", pyodide=toolchain.pyodide),
        [
            case_of(folder, program, name=name, limit_seconds=1.0 if name == "endless" else 60.0)
            for name, (program, _) in PROGRAMS.items()
        ],
        place=place,
        imports=["tiny"],
        toolchain=toolchain,
        browser=chrome,
        keep=keep,
        progress=QUIET,
        at_once=2,
    )


@pytest.fixture(scope="module")
def results(report: CheckReport) -> Mapping[str, CaseResult]:
    return {result.name: result for result in report.results}


class TestCases:
    def test_the_report_says_where_it_was_made(
        self, report: CheckReport, place: Place, chrome: Browser, toolchain: Toolchain
    ) -> None:
        assert [result.name for result in report.results] == list(PROGRAMS)
        assert {result.loader for result in report.results} == {"lock"}
        assert not report.passed
        assert report.where == f"chromium-{place}"
        assert report.runtime.startswith(f"{chrome.name} {chrome.version}, {place}")
        assert f'"version": "{report.pyodide_version}"' in (toolchain.pyodide / "package.json").read_text()

    def test_each_ends_as_it_should_with_one_short_line(self, results: Mapping[str, CaseResult]) -> None:
        for name, (_, message) in PROGRAMS.items():
            result = results[name]
            assert result.passed == (name == "works")
            assert message in result.message
            assert bool(message) == bool(result.message)
            assert len(result.message.splitlines()) <= 1
            assert len(result.message) <= MESSAGE_LIMIT
            assert result.message.isprintable()
            assert 0 < result.load_seconds < 60
            assert 50e6 < result.peak_memory < 2e9

    def test_what_it_printed_and_wrote_is_kept(self, results: Mapping[str, CaseResult], keep: Path) -> None:
        kernel = b"def kernel(): return tiny.ANSWER\n"
        assert results["works"].output == "err\nπ"
        assert results["works"].files == {"sub/é.txt": hashlib.sha256(kernel).hexdigest()}
        assert (keep / "lock" / "works" / "files" / "sub" / "é.txt").read_bytes() == kernel
        failed = results["exception"]
        assert failed.output.startswith("beforeTraceback (most recent call last):\n")
        assert failed.output.endswith("ZeroDivisionError: division by zero\n")
        assert failed.files == {"partial": hashlib.sha256(b"x").hexdigest()}
        huge = (keep / "lock" / "huge-output" / "output.txt").read_text()
        assert 4_000_000 < len(huge) < 4_500_000
        assert "[the rest is left out]" in huge

    def test_an_endless_loop_is_stopped(self, results: Mapping[str, CaseResult]) -> None:
        assert 1.0 <= results["endless"].run_seconds < 3.0
        assert results["endless"].message.endswith("its limit is 1 s")
        assert results["endless"].output == "so far\n"


@pytest.mark.parametrize("place", PLACES)
def test_the_sample_writes_in_a_browser_what_it_writes_in_node(
    sample_package: Package, toolchain: Toolchain, chrome: Browser, tmp_path: Path, place: Place
) -> None:
    cases = load_cases(CHECKOUT / "samples" / "exprc" / "cases")[:2]
    here = check_in_browser(
        sample_package,
        cases,
        place=place,
        imports=["exprc"],
        toolchain=toolchain,
        browser=chrome,
        keep=tmp_path / place,
        progress=QUIET,
    )
    there = check_package(
        sample_package,
        cases,
        loaders=["lock"],
        imports=["exprc"],
        toolchain=toolchain,
        keep=tmp_path / "node",
        progress=QUIET,
    )
    assert here.passed, here
    assert any(result.files for result in here.results)
    assert [result.files for result in here.results] == [result.files for result in there.results]


class TestPackages:
    @pytest.fixture
    def case(self, tmp_path: Path) -> Case:
        return case_of(tmp_path, "")

    def test_another_digest_than_expected(
        self, package: Package, case: Case, toolchain: Toolchain, chrome: Browser
    ) -> None:
        result = check(package, case, toolchain, chrome, expected=NONSENSE)
        found = hashlib.sha256(package.wheel.read_bytes()).hexdigest()
        assert result.message == (
            f"loading: the lock file says SHA-256 {found} of {package.wheel.name}, expected {NONSENSE}"
        )

    @pytest.mark.parametrize("place", PLACES)
    def test_the_browser_refuses_another_file_than_the_lock_file_names(
        self, package: Package, case: Case, toolchain: Toolchain, chrome: Browser, place: Place
    ) -> None:
        write_lock(package, pyodide=toolchain.pyodide, entry={"sha256": NONSENSE})
        result = check(package, case, toolchain, chrome, place, expected=NONSENSE)
        found = hashlib.sha256(package.wheel.read_bytes()).hexdigest()
        assert result.message.startswith("loading: http://127.0.0.1:")
        assert result.message.endswith(f"/{package.wheel.name} has SHA-256 {found}, expected {NONSENSE}")

    def test_no_wheel_beside_the_lock_file(
        self, package: Package, case: Case, toolchain: Toolchain, chrome: Browser, tmp_path: Path
    ) -> None:
        lock = Path(shutil.copy(package.lock, tmp_path))
        result = check(replace(package, lock=lock), case, toolchain, chrome)
        assert result.message.startswith("loading: http://127.0.0.1:")
        assert result.message.endswith(f"/{package.wheel.name} is answered with status 404")

    def test_no_cors(
        self,
        package: Package,
        case: Case,
        toolchain: Toolchain,
        chrome: Browser,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(checking, "CDN_HEADERS", {})
        result = check(package, case, toolchain, chrome)
        assert result.message.startswith("loading: http://127.0.0.1:")
        assert result.message.endswith(f"/{package.lock.name} comes without Access-Control-Allow-Origin")

    def test_an_import_that_never_ends(
        self, case: Case, toolchain: Toolchain, chrome: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(checking, "LOAD_LIMIT_SECONDS", 4)
        endless = tiny_package(tmp_path, pyodide=toolchain.pyodide, files={"tiny/__init__.py": "while True: pass"})
        result = check(endless, case, toolchain, chrome, "main")
        assert result.message.startswith("loading: stopped after 4.")
        assert result.message.endswith("s, the limit is 4 s")

    def test_files_that_are_not_there_are_not_results(
        self, package: Package, case: Case, toolchain: Toolchain, chrome: Browser
    ) -> None:
        with pytest.raises(BrokenEnvironment, match="not an unpacked npm package"):
            check(package, case, replace(toolchain, pyodide=Path("/no-such-folder")), chrome)
        package.lock.unlink()
        with pytest.raises(WrongUsage, match=r"There is no file .*pyodide-lock\.json"):
            check(package, case, toolchain, chrome)


@pytest.mark.parametrize("place", PLACES)
def test_a_harness_that_does_not_start_is_seen_at_once(
    package: Package,
    toolchain: Toolchain,
    chrome: Browser,
    tmp_path: Path,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = tmp_path / "page"
    shutil.copytree(checking._PAGE, page)
    (page / "outcome.mjs").unlink()
    monkeypatch.setattr(checking, "_PAGE", page)
    result = check(package, case_of(tmp_path, ""), toolchain, chrome, place)
    assert result.message.startswith("loading: the page failed (")


@pytest.mark.parametrize(("victim", "message"), [("browser", "the browser died"), ("renderer", "the page crashed")])
def test_what_is_killed_is_a_failed_result(
    package: Package, toolchain: Toolchain, chrome: Browser, tmp_path: Path, victim: str, message: str
) -> None:
    """As the kernel would for lack of memory, once the case has begun."""
    started, case = tmp_path / "pid", case_of(tmp_path, ENDLESS)
    watched = wrapped(chrome, tmp_path, before=f"echo $$ > {shlex.quote(str(started))}")

    def kill() -> None:
        wait_for(tmp_path / "kept" / "lock" / "case" / "output.txt")
        browser = int(started.read_text())
        for pid in [browser] if victim == "browser" else renderers(browser):
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    result = check(package, case, toolchain, watched)
    killer.join()
    assert result.message == f"{message} before the case was over"
    assert result.output == "so far\n"


def test_a_browser_that_stops_answering_is_ended(
    package: Package, toolchain: Toolchain, chrome: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, seconds in (("LOAD_LIMIT_SECONDS", 8), ("_NET_SECONDS", 0), ("_CLOSING_SECONDS", 1)):
        monkeypatch.setattr(checking, limit, seconds)
    started = tmp_path / "pid"
    watched = wrapped(chrome, tmp_path, before=f"(sleep 2; kill -STOP $$) & echo $$ > {shlex.quote(str(started))}")
    result = check(package, case_of(tmp_path, ENDLESS, limit_seconds=1), toolchain, watched)
    assert result.message.endswith("the browser stopped answering before the case was over")
    assert not Path(f"/proc/{started.read_text().strip()}").exists()


def test_nobody_else_is_asked(package: Package, toolchain: Toolchain, chrome: Browser, tmp_path: Path) -> None:
    """Neither by the page nor by the browser itself, which notes each connection that it tries."""
    log = tmp_path / "net.json"
    with listening() as (host, port, asked):
        program = (
            "from pyodide.http import pyfetch\n"
            f"for url in 'http://{host}:{port}/', 'http://localhost:{port}/', 'https://example.org/':\n"
            "    try: await pyfetch(url, mode='no-cors')\n"
            "    except OSError as error: print('refused')\n"
        )
        noting = wrapped(chrome, tmp_path, options=f"--log-net-log={shlex.quote(str(log))}")
        result = check(package, case_of(tmp_path, program), toolchain, noting)
        assert result.passed, result
        assert result.output == "refused\n" * 3
        assert not asked.is_set()
    notes = json.loads(log.read_text())
    kind = notes["constants"]["logEventTypes"]["TCP_CONNECT_ATTEMPT"]
    tried = {
        note["params"]["address"].rpartition(":")[0]
        for note in notes["events"]
        if note["type"] == kind and "address" in note.get("params", {})
    }
    assert tried == {"127.0.0.1"}


def test_ctrl_c_leaves_no_process(package: Package, toolchain: Toolchain, chrome: Browser, tmp_path: Path) -> None:
    case = case_of(tmp_path, ENDLESS)
    script = tmp_path / "check.py"
    script.write_text(
        "from pathlib import Path, PosixPath\n"
        "from release.check.browser import *; from release.check.model import *\n"
        "from release.package.model import Package; from release.toolchain.model import *\n"
        f"check_in_browser({package!r}, [{case!r}], place='main', imports=['tiny'], toolchain={toolchain!r},\n"
        f"    browser={chrome!r}, keep=Path({str(tmp_path / 'kept')!r}), progress=Progress(quiet=True))\n"
    )
    # The profile of the browser is made in the temporary directory: by its path the browser of this check is known.
    env = os.environ | {"PYTHONPATH": str(CHECKOUT), "TMPDIR": str(tmp_path)}
    ours = subprocess.Popen([sys.executable, script], env=env, stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for(tmp_path / "kept" / "lock" / "case" / "output.txt")
    assert mentioning(f"--user-data-dir={tmp_path}")
    ours.send_signal(signal.SIGINT)
    assert ours.wait(timeout=20) != 0
    assert not mentioning(f"--user-data-dir={tmp_path}")


class TestFinding:
    def test_the_one_that_is_named_comes_first(
        self, chrome: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        named = wrapped(chrome, tmp_path)
        monkeypatch.setenv(chromium.VARIABLE, str(named.path))
        assert find_chromium(tmp_path, QUIET) == named

    def test_then_one_on_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = script_of(tmp_path / "google-chrome", "echo 'Google Chrome 141.0.7390.54 beta'")
        monkeypatch.delenv(chromium.VARIABLE, raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        found = find_chromium(tmp_path, QUIET)
        assert found == Browser(path=path, name="Google Chrome", version="141.0.7390.54")

    def test_then_that_of_debian_laid_into_the_cache(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(chromium.VARIABLE, raising=False)
        monkeypatch.setattr(chromium, "_NAMES", ())
        found = find_chromium(cache, QUIET)
        assert found.path.is_relative_to(cache)
        assert found.name == "Chromium"
        assert (found.path.parent / "root" / "usr" / "lib" / "chromium" / "chromium").is_file()

    def test_none_at_all(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(chromium.VARIABLE, raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(BrokenEnvironment, match="There is no Chromium: This is no Debian") as caught:
            find_chromium(tmp_path, QUIET)
        assert chromium.VARIABLE in caught.value.remedy

    @pytest.mark.parametrize(
        ("says", "found"), [("echo Firefox 150.0", "Firefox 150.0"), ("exit 127", "exited with 127")]
    )
    def test_one_that_is_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, found: str) -> None:
        monkeypatch.setenv(chromium.VARIABLE, str(script_of(tmp_path / "other", says)))
        with pytest.raises(BrokenEnvironment, match=found):
            find_chromium(tmp_path, QUIET)
        monkeypatch.setenv(chromium.VARIABLE, "/no-such-browser")
        with pytest.raises(BrokenEnvironment, match="/no-such-browser"):
            find_chromium(tmp_path, QUIET)

    def test_one_that_does_not_start(self, package: Package, toolchain: Toolchain, tmp_path: Path) -> None:
        path = script_of(tmp_path / "chromium", "echo 'cannot open shared object file' >&2; exit 127")
        broken = Browser(path=path, name="Chromium", version="1.2.3.4")
        with pytest.raises(
            BrokenEnvironment, match="chromium does not start: cannot open shared object file"
        ) as caught:
            check(package, case_of(tmp_path, ""), toolchain, broken)
        assert chromium.VARIABLE in caught.value.remedy


def script_of(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def wrapped(chrome: Browser, folder: Path, *, before: str = ":", options: str = "") -> Browser:
    """Return the same browser with something done before it starts, in the same process."""
    command = f'exec {shlex.quote(str(chrome.path))} {options} "$@"'
    return replace(chrome, path=script_of(folder / "wrapped chromium", before, command))


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 60
    while not (file.exists() and file.stat().st_size):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def renderers(browser: int) -> list[int]:
    """Return the processes below the browser that have a page in them."""
    return [pid for pid in mentioning("--type=renderer") if browser in ancestors(pid)]


def ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def mentioning(text: str) -> list[int]:
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if text in command_of(process)]


def command_of(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""  # it ended meanwhile


@contextmanager
def listening() -> Iterator[tuple[str, int, threading.Event]]:
    """Listen at another address of this machine than the browser may ask, and note whether somebody came."""
    asked = threading.Event()
    with socket.create_server(("127.0.0.2", 0)) as server:

        def accept() -> None:
            with suppress(OSError):  # closed
                server.accept()
                asked.set()

        threading.Thread(target=accept, daemon=True).start()
        yield *server.getsockname()[:2], asked
