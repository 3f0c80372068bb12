"""Loading a package in each way into a real Pyodide, refusing what is not the package, and ending what was begun."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from release.check.model import Case, CaseResult, Loader
from release.check.node import check_package
from release.errors import BrokenEnvironment, WrongUsage
from release.package.model import Package
from release.progress import Progress
from release.toolchain.model import Toolchain
from tests.check.tiny import tiny_package, write_lock

PROGRAM = """
import asyncio, inspect, pathlib, sys, tiny

def kernel(): return tiny.ANSWER

await asyncio.sleep(0)
assert __name__ == "__main__" and __file__.startswith("/case/") and tiny.WHERE.startswith("/lib/python3.")
pathlib.Path("/out/sub").mkdir()
pathlib.Path("/out/sub/é.txt").write_text(inspect.getsource(kernel))
print("π", end="")
print("err", file=sys.stderr)
"""
NONSENSE = "0" * 64


@pytest.fixture
def case(tmp_path: Path) -> Case:
    program = tmp_path / "a program.py"
    program.write_text(PROGRAM)
    return Case(name="works", program=program, limit_seconds=60)


@pytest.fixture
def package(tmp_path: Path, toolchain: Toolchain) -> Package:
    return tiny_package(tmp_path / "a package", pyodide=toolchain.pyodide)


def check(
    package: Package, case: Case, toolchain: Toolchain, *loaders: Loader, imports: str = "tiny", **expected: str
) -> tuple[CaseResult, ...]:
    return check_package(
        package,
        [case],
        loaders=loaders,
        imports=[imports],
        toolchain=toolchain,
        keep=case.program.parent / "kept",
        progress=Progress(quiet=True),
        expected_sha256={package.wheel.name: NONSENSE, package.zip.name: NONSENSE} if expected else None,
        at_once=2,
    ).results


def test_each_loader_loads_it(package: Package, case: Case, toolchain: Toolchain, tmp_path: Path) -> None:
    report = check_package(
        package,
        [case],
        imports=["tiny"],
        toolchain=toolchain,
        keep=tmp_path / "kept",
        progress=Progress(quiet=True),
        at_once=2,
    )
    assert report.passed, report
    assert [result.loader for result in report.results] == ["wheel", "zip", "lock"]
    assert report.runtime == f"Node {toolchain.node_version}"
    assert f'"version": "{report.pyodide_version}"' in (toolchain.pyodide / "package.json").read_text()
    kernel = b"def kernel(): return tiny.ANSWER\n"
    for result in report.results:
        assert result.message == ""
        assert result.output == "err\nπ"
        assert result.files == {"sub/é.txt": hashlib.sha256(kernel).hexdigest()}
        assert (tmp_path / "kept" / result.loader / "works" / "files" / "sub" / "é.txt").read_bytes() == kernel
        assert 0 < result.run_seconds < result.load_seconds < report.seconds
        assert 50e6 < result.peak_memory < 2e9


def test_another_digest_than_expected_is_a_failure_naming_both(
    package: Package, case: Case, toolchain: Toolchain
) -> None:
    results = check(package, case, toolchain, "wheel", "zip", "lock", expected="another")
    for result, path in zip(results, (package.wheel, package.zip, package.wheel), strict=True):
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        assert result.message == f"loading: {path.name} has SHA-256 {found}, expected {NONSENSE}"


def test_a_lock_file_of_another_wheel_is_a_failure(package: Package, case: Case, toolchain: Toolchain) -> None:
    write_lock(package, pyodide=toolchain.pyodide, entry={"sha256": NONSENSE})
    (result,) = check(package, case, toolchain, "lock")
    found = hashlib.sha256(package.wheel.read_bytes()).hexdigest()
    assert result.message == (
        f"loading: pyodide-lock.json says SHA-256 {NONSENSE} of {package.wheel.name}, which has {found}"
    )
    write_lock(package, pyodide=toolchain.pyodide, entry={"file_name": "https://example.org/tiny.whl"})
    (result,) = check(package, case, toolchain, "lock")
    assert result.message == f"loading: pyodide-lock.json has no entry with file_name {package.wheel.name}"


def test_a_lock_file_for_another_abi_is_a_failure(package: Package, case: Case, toolchain: Toolchain) -> None:
    write_lock(package, pyodide=toolchain.pyodide, info={"abi_version": "2001_0"})
    (result,) = check(package, case, toolchain, "lock")
    assert result.message.startswith("loading: Error: ")
    assert "2001_0" in result.message


def test_broken_archives_are_failures(package: Package, case: Case, toolchain: Toolchain) -> None:
    for path in (package.wheel, package.zip):
        path.write_bytes(path.read_bytes()[:-100])
    by_wheel, by_zip = check(package, case, toolchain, "wheel", "zip")
    assert by_wheel.message.startswith("loading: loadPackage says: ")
    assert by_zip.message.startswith("loading: shutil.ReadError: ")


def test_a_module_of_another_abi_cannot_be_imported(case: Case, toolchain: Toolchain, tmp_path: Path) -> None:
    foreign = tiny_package(
        tmp_path / "foreign",
        pyodide=toolchain.pyodide,
        files={"tiny.cpython-311-wasm32-emscripten.so": "\0asm"},
        tag="cp311-cp311-pyemscripten_2001_0_wasm32",
    )
    (result,) = check(foreign, case, toolchain, "wheel")
    assert result.message.startswith("loading: ModuleNotFoundError: No module named 'tiny'")


def test_a_case_that_ends_late_fails_with_both_figures(
    package: Package, case: Case, toolchain: Toolchain, tmp_path: Path
) -> None:
    late = tmp_path / "node"
    late.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        "with open(json.load(sys.stdin)['journal'], 'w') as journal:\n"
        """    print('{"event": "loaded", "seconds": 2}\\n{"event": "passed", "seconds": 60.5}', file=journal)\n"""
    )
    late.chmod(0o755)
    (result,) = check(package, case, replace(toolchain, node=late), "wheel")
    assert (result.message, result.run_seconds) == ("took 60.50 s, its limit is 60 s", 60.5)


def test_no_node_no_pyodide_and_no_package_are_not_results(package: Package, case: Case, toolchain: Toolchain) -> None:
    with pytest.raises(BrokenEnvironment, match="no-such-node"):
        check(package, case, replace(toolchain, node=Path("/no-such-node")), "wheel")
    with pytest.raises(BrokenEnvironment, match="not an unpacked npm package"):
        check(package, case, replace(toolchain, pyodide=Path("/no-such-folder")), "wheel")
    package.zip.unlink()
    with pytest.raises(WrongUsage, match=r"There is no file .*tiny-1\.0\.zip"):
        check(package, case, toolchain, "wheel")


def test_ctrl_c_leaves_no_process(package: Package, case: Case, toolchain: Toolchain, tmp_path: Path) -> None:
    case.program.write_text("while True: pass")
    script = tmp_path / "check.py"
    script.write_text(
        "from pathlib import Path, PosixPath\n"
        "from release.check.model import *; from release.check.node import *\n"
        "from release.package.model import Package; from release.toolchain.model import *\n"
        f"check_package({package!r}, [{case!r}], imports=['tiny'], toolchain={toolchain!r},\n"
        f"    keep=Path({str(tmp_path / 'kept')!r}), progress=Progress(quiet=True), at_once=2)\n"
    )
    ours = subprocess.Popen([sys.executable, script], env=os.environ | {"PYTHONPATH": str(Path.cwd())})
    journals = [tmp_path / "kept" / loader / "works" / "journal.jsonl" for loader in ("wheel", "zip")]
    deadline = time.monotonic() + 60
    while not all(journal.exists() and journal.read_text() for journal in journals):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    ours.send_signal(signal.SIGINT)
    assert ours.wait(timeout=20) != 0
    assert not [pid for pid in Path("/proc").iterdir() if runs_in(pid, tmp_path)]


def runs_in(process: Path, folder: Path) -> bool:
    try:
        return folder in (process / "cwd").readlink().parents
    except OSError:
        return False  # no process, or none of ours
