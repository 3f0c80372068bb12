"""Every way a case can end badly, provoked in a real Pyodide: each is one failed result with one short line."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from release.check.attempt import MESSAGE_LIMIT, OUTPUT_LIMIT
from release.check.junit import to_junit
from release.check.model import Case, CaseResult, CheckReport
from release.check.node import check_package
from release.progress import Progress
from release.toolchain.model import Toolchain
from tests.check.junit_shape import parse
from tests.check.tiny import tiny_package

# name: (program, what the message says); each program runs in a process of its own.
PROGRAMS = {
    "exception": (
        "print('before', end='')\ntry: 1 / 0\nexcept ArithmeticError as e: raise LookupError('no\\nkey') from e",
        "LookupError: no key",
    ),
    "exit-zero": ("import sys\nprint('half a line', end='')\nsys.exit(0)", "SystemExit: 0"),
    "os-exit": ("import os\nos._exit(0)", "Pyodide died of Exit: Program terminated with exit(0)"),
    "endless": ("print('so far')\nopen('/out/partial', 'w').write('x')\nwhile True: pass", "stopped after 1."),
    "abort": ("import os\nos.abort()", "Pyodide died of RuntimeError: unreachable"),
    "fatal-error": (
        "import pyodide_js\npyodide_js._api.fatal_error(ValueError('x'))",
        "Pyodide died of Error: A value of type object",
    ),
    "node-exit": ("import js\njs.process.exit(0)", "node exited with 0 before the case was over"),
    "node-abort": ("import js\njs.process.abort()", "node died of SIGABRT before the case was over"),
    "node-killed": (
        "import js\njs.process.kill(js.process.pid, 'SIGKILL')",
        "node was killed, most likely for lack of memory",
    ),
    "node-heap": (
        "from pyodide.code import run_js\nrun_js('const a = []; for (;;) a.push(new Array(1 << 24).fill(0))')",
        "JavaScript heap out of memory",
    ),
    "rejection": (
        "from pyodide.code import run_js\nrun_js('void Promise.reject(new Error(\"lost\"))')",
        "Error: lost",
    ),
    "thrown-later": (
        "import asyncio\nfrom pyodide.code import run_js\n"
        "run_js('setTimeout(() => { throw 7 })')\nawait asyncio.sleep(9)",
        "a thrown number: 7",
    ),
    "never": ("import js\nawait js.Promise.new(lambda *_: None)", "it awaits something that can no longer happen"),
    "out-of-memory": ("import ctypes\nctypes.CDLL(None).malloc(2**31 - 2**20)\nbytearray(2**31 - 1)", "MemoryError"),
    "huge-output": (
        "for _ in range(20_000): print('x' * 999)\nraise ValueError('\\x1b[31m' + 'y' * 100_000 + '\\n' * 99)",
        "ValueError: \\x1b[31myyy",
    ),
}


@pytest.fixture(scope="module")
def keep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept cases")


@pytest.fixture(scope="module")
def report(keep: Path, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    folder = tmp_path_factory.mktemp("programs")
    cases = []
    for name, (program, _) in PROGRAMS.items():
        path = folder / f"{name}.py"
        path.write_text(program)
        cases.append(Case(name=name, program=path, limit_seconds=1.0 if name == "endless" else 60.0))
    return check_package(
        tiny_package(folder, pyodide=toolchain.pyodide),
        cases,
        loaders=["wheel"],
        imports=["tiny"],
        toolchain=toolchain,
        keep=keep,
        progress=Progress(quiet=True),
        at_once=2,
    )


@pytest.fixture(scope="module")
def results(report: CheckReport) -> Mapping[str, CaseResult]:
    return {result.name: result for result in report.results}


def test_results_are_in_the_order_of_the_cases(report: CheckReport) -> None:
    assert [result.name for result in report.results] == list(PROGRAMS)
    assert not report.passed


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_fails_with_one_short_line(name: str, results: Mapping[str, CaseResult]) -> None:
    result = results[name]
    assert not result.passed
    assert PROGRAMS[name][1] in result.message
    assert len(result.message.splitlines()) == 1
    assert len(result.message) <= MESSAGE_LIMIT
    assert result.message.isprintable()
    assert 0 < result.load_seconds < 60
    assert 50e6 < result.peak_memory < 4e9
    assert max(map(len, result.output.splitlines()), default=0) < 66_000


def test_a_traceback_is_in_the_output_below_what_was_printed(results: Mapping[str, CaseResult]) -> None:
    output = results["exception"].output
    assert output.startswith("beforeTraceback (most recent call last):\n")
    assert 'File "/case/exception.py", line 2, in <module>\n    try: 1 / 0\n' in output
    assert output.endswith("LookupError: no\nkey\n")
    assert results["exit-zero"].output.startswith("half a line")


def test_an_endless_loop_is_stopped_and_what_it_wrote_is_kept(results: Mapping[str, CaseResult], keep: Path) -> None:
    result = results["endless"]
    assert 1.0 <= result.run_seconds < 3.0
    assert result.message.endswith("its limit is 1 s")
    assert result.output == "so far\n"
    assert (keep / "wheel" / "endless" / "files" / "partial").read_text() == "x"
    assert list(result.files) == ["partial"]


def test_a_fatal_error_shows_where_python_was(results: Mapping[str, CaseResult]) -> None:
    assert 'File "/case/abort.py", line 2' in results["abort"].output


def test_output_is_kept_within_bounds(results: Mapping[str, CaseResult], keep: Path) -> None:
    kept = (keep / "wheel" / "huge-output" / "output.txt").stat().st_size
    assert OUTPUT_LIMIT < kept < OUTPUT_LIMIT + 200_000
    output = results["huge-output"].output
    assert len(output) < 66_000
    assert output.startswith("[cut; all of it is in output.txt]\n")


def test_the_report_of_all_that_is_good_junit(report: CheckReport) -> None:
    (suite,) = parse(to_junit(report))
    assert suite.attrib["failures"] == str(len(PROGRAMS))
    messages = [case.find("failure") for case in suite.iter("testcase")]
    assert [each.attrib["message"] for each in messages if each is not None] == [r.message for r in report.results]
