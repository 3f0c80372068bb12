"""Triton's objects and their link, on a tree of Triton's shape that compiles in seconds."""

import json
import os
import signal
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.llvm import LLVMLibraries
from release.machine import Machine
from release.module import triton
from release.module.triton import INPUTS, LINKED, TritonRequest, compile_host, compile_triton, link_triton, needs
from release.module.wasm import read_wasm
from release.pins.load import load_profile
from release.pins.model import PinSet
from release.progress import Progress
from release.toolchain import prepare
from release.toolchain.model import Toolchain

CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(triton CXX)
set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -fPIC -std=gnu++17 -Werror")
find_package(Python3 REQUIRED COMPONENTS Development.Module Interpreter)
find_package(pybind11 CONFIG REQUIRED)
include_directories(${LLVM_INCLUDE_DIRS})
set(CMAKE_SHARED_LIBRARY_SUFFIX ".so")
add_library(triton SHARED main.cc lib/value.cc)
target_link_libraries(triton PRIVATE Python3::Module pybind11::headers z LLVMX86CodeGen)
target_link_libraries(triton PRIVATE ${LLVM_LIBRARY_DIR}/libLLVMTiny.a)
"""
MAIN = """\
#include <pybind11/pybind11.h>
#include "llvm/tiny.h"
#include "llvm/Passes/PassPlugin.h"
int value();
PYBIND11_MODULE(libtriton, m) { m.def("value", [] { return value() + tiny() + PLUGIN; }); }
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("triton")


@pytest.fixture(scope="module")
def toolchain(pins: PinSet, cache: Path, here: Path) -> Toolchain:
    return prepare(pins, cache=cache, allow_mismatch=False, progress=Progress(quiet=True), bind=[here])


@pytest.fixture(scope="module")
def request_(pins: PinSet, here: Path, toolchain: Toolchain) -> TritonRequest:
    source, prefix = here / "source", here / "prefix"
    write(source / "CMakeLists.txt", CMAKE)
    write(source / "main.cc", MAIN)
    write(source / "lib/value.cc", "[[deprecated]] int old(); int value() { return 1; }\n")
    write(prefix / "include/llvm/tiny.h", "int tiny();\n")
    write(prefix / "include/llvm/Plugins/PassPlugin.h", "#define PLUGIN 4\n")
    write(prefix / "bin/mlir-tblgen", "")
    write(here / "tiny.cc", "int tiny() { return 2; }\n")
    (prefix / "lib").mkdir()
    profile = load_profile("release", pins)
    for command in (
        ["em++", *profile.compile.flags, "-c", "tiny.cc", "-o", "tiny.o"],
        ["emar", "crs", "prefix/lib/libLLVMTiny.a", "tiny.o"],
    ):
        assert toolchain.run(command, cwd=here).returncode == 0
    stage: Any = SimpleNamespace()
    libraries = LLVMLibraries(prefix=prefix, key="tiny", version="22.1.8", stage=stage, compilations=None)
    return TritonRequest(
        source=source, digest="tiny", bindings="pybind11", fixups=(), libraries=libraries, profile=profile
    )


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "_FEWEST_OBJECTS", 2)
    monkeypatch.setattr(triton, "_FEWEST_ARCHIVES", 1)


def build(request: TritonRequest, toolchain: Toolchain, work: Path) -> Path:
    (work / "objects").mkdir(parents=True, exist_ok=True)
    compile_triton(
        request,
        toolchain,
        tree=work / "tree",
        folder=work / "objects",
        cache=work,
        jobs=2,
        progress=Progress(quiet=True),
    )
    return work / "objects"


@pytest.fixture(scope="module")
def objects(request_: TritonRequest, toolchain: Toolchain, here: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triton, "_FEWEST_OBJECTS", 2)
        patch.setattr(triton, "_FEWEST_ARCHIVES", 1)
        return build(request_, toolchain, here / "work")


@pytest.fixture(scope="module")
def host(request_: TritonRequest, toolchain: Toolchain, here: Path) -> Path:
    (here / "host stage").mkdir()
    compile_host(request_.profile, toolchain, here / "host stage")
    return here / "host stage"


def test_just_what_triton_links_is_compiled_and_linked(
    objects: Path, host: Path, request_: TritonRequest, toolchain: Toolchain, here: Path
) -> None:
    found = json.loads((objects / INPUTS).read_text())
    assert [Path(name).name for name in found["objects"]] == ["value.cc.o", "main.cc.o"]
    assert found["archives"] == ["llvm/lib/libLLVMTiny.a"]
    output = here / LINKED
    quiet = Progress(quiet=True)
    link_triton(objects, host, request_.libraries, request_.profile, toolchain, output=output, progress=quiet)
    exports = {export.name for export in read_wasm(output).exports}
    assert "PyInit_libtriton" in exports
    assert not any("tiny" in name or "value" in name for name in exports)
    assert not (here / "linked-from").exists()


def test_the_objects_are_the_same_wherever_they_are_made(
    objects: Path, request_: TritonRequest, toolchain: Toolchain, here: Path
) -> None:
    again = build(request_, toolchain, here / "another" / "deeper work")
    for name in json.loads((objects / INPUTS).read_text())["objects"]:
        assert (again / name).read_bytes() == (objects / name).read_bytes(), name
        assert str(here).encode() not in (again / name).read_bytes(), name


def test_interrupted_it_goes_on_where_it_stopped(request_: TritonRequest, toolchain: Toolchain, here: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (here / "work" / "tree").rglob("*.o")}
    assert len(before) == 2
    build(request_, toolchain, here / "work")
    assert {path: path.stat().st_mtime_ns for path in (here / "work" / "tree").rglob("*.o")} == before


def test_a_library_that_nobody_gave_is_refused(request_: TritonRequest, toolchain: Toolchain, tmp_path: Path) -> None:
    source = tmp_path / "source"
    write(source / "main.cc", MAIN)
    write(source / "lib/value.cc", "int value() { return 1; }\n")
    write(tmp_path / "libforeign.a", "!<arch>\n")
    write(source / "CMakeLists.txt", f"{CMAKE}target_link_libraries(triton PRIVATE {tmp_path}/libforeign.a)\n")
    with pytest.raises(Finding, match=r"links .*libforeign\.a, which is neither its own nor"):
        build(replace(request_, source=source), toolchain, tmp_path / "work")


def test_a_build_with_too_little_in_it_is_refused(
    objects: Path, request_: TritonRequest, toolchain: Toolchain, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triton, "_FEWEST_OBJECTS", 100)
    with pytest.raises(Finding, match="has 2 objects and 1 archives for its library: too few"):
        build(request_, toolchain, here / "work")


def test_what_does_not_compile_is_one_sentence(request_: TritonRequest, toolchain: Toolchain, tmp_path: Path) -> None:
    source = tmp_path / "source"
    write(source / "CMakeLists.txt", CMAKE)
    write(source / "main.cc", MAIN)
    write(source / "lib/value.cc", "int value() { return nothing; }\n")
    with pytest.raises(Finding, match=r"Cannot build value\.cc\.o: .*undeclared identifier 'nothing'"):
        build(replace(request_, source=source), toolchain, tmp_path / "work")


def test_a_tree_that_cmake_cannot_read_is_one_sentence(
    request_: TritonRequest, toolchain: Toolchain, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    with pytest.raises(Finding, match=r"Cannot configure Triton: .*CMake Error at .*The source directory"):
        build(replace(request_, source=tmp_path / "source"), toolchain, tmp_path / "work")


def test_bindings_that_the_overlay_does_not_know_are_refused(
    request_: TritonRequest, toolchain: Toolchain, tmp_path: Path
) -> None:
    with pytest.raises(WrongUsage, match="bound to Python by nanobind"):
        build(replace(request_, bindings="nanobind"), toolchain, tmp_path)


def test_too_little_memory_is_said_before_the_link(
    request_: TritonRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Machine(cores=2, memory=16_000_000_000, swap=1_000_000_000, disk=10**12)
    monkeypatch.setattr(triton, "look", lambda _: small)
    with pytest.raises(
        BrokenEnvironment, match=r"takes up to 22\.1 GB .* 16\.0 GB are free, and 1\.0 GB of swap"
    ) as how:
        needs(request_.profile, tmp_path, Progress(quiet=True))
    assert "Add 6 GB of swap" in how.value.remedy
    monkeypatch.setattr(triton, "look", lambda _: replace(small, swap=7_000_000_000))
    needs(request_.profile, tmp_path, Progress(quiet=True))


def test_a_linker_that_is_killed_is_said_to_want_memory(
    objects: Path, host: Path, request_: TritonRequest, toolchain: Toolchain, tmp_path: Path
) -> None:
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.01):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    linker = b"wasm-ld" in (process / "cmdline").read_bytes().split(b"\0")[0]
                    if linker and tmp_path.name in str((process / "cwd").readlink()):
                        os.kill(int(process.name), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(BrokenEnvironment, match=r"Cannot link .* killed, most likely for lack of memory") as how:
            link_triton(
                objects,
                host,
                request_.libraries,
                request_.profile,
                toolchain,
                output=tmp_path / LINKED,
                progress=Progress(quiet=True),
            )
    finally:
        stop.set()
        killer.join()
    assert "memory or swap" in how.value.remedy
    assert not (tmp_path / LINKED).exists()
