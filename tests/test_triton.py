"""Triton as the product, on trees that say they are Triton and LLVM and hold nothing else."""

import subprocess
from pathlib import Path

import pytest

from release.llvm.tablegen import PROGRAMS
from release.module.wasm import read_wasm
from release.pins.load import load_llvm_profile, load_pins, load_profile
from release.pins.model import PinSet
from release.pins.upstream import LLVMTree, read_triton
from release.places import CHECKOUT
from release.products.triton import TritonProduct
from release.progress import Progress
from release.sources import Sources, provide_sources
from release.stage import Stages
from release.toolchain import prepare
from release.toolchain.sources import Source
from tests.command import copy_of_checkout, edit, triton_wasm
from tests.llvm.tiny import VERSION, tiny_llvm
from tests.package.test_tree import lay_licenses, miniature
from tests.pins import trees
from tests.toolchain.stand_ins import write_tool

CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(triton CXX)
find_package(Python3 REQUIRED COMPONENTS Development.Module Interpreter)
find_package(pybind11 CONFIG REQUIRED)
set(CMAKE_SHARED_LIBRARY_SUFFIX ".so")
add_library(triton SHARED main.cc)
target_include_directories(triton PRIVATE ${LLVM_INCLUDE_DIRS})
target_link_libraries(triton PRIVATE Python3::Module pybind11::headers)
foreach(library LLVMCore LLVMSupport)
  target_link_libraries(triton PRIVATE ${LLVM_LIBRARY_DIR}/lib${library}.a)
endforeach()
"""
MAIN = """\
#include <pybind11/pybind11.h>
const char *LLVMCore();
PYBIND11_MODULE(libtriton, m) { m.def("core", [] { return LLVMCore(); }); }
"""
KERNEL = "from triton.experimental import gluon\n\n\n@gluon.jit\ndef gemm(a_ptr, b_ptr):\n    pass\n"


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, str]:
    return trees.preview(tmp_path)


def run(roots: dict[str, str], *arguments: object, checkout: Path = CHECKOUT) -> subprocess.CompletedProcess[str]:
    assignments = tuple(f"{name}={value}" for name, value in roots.items())
    return triton_wasm(*arguments, checkout=checkout, prefix=("env", *assignments))


def test_the_manifest_names_the_trees_and_what_was_changed(
    roots: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in roots.items():
        monkeypatch.setenv(name, value)
    pins, progress = load_pins("preview"), Progress(quiet=True)
    sources = provide_sources(pins, cache=tmp_path, progress=progress)
    product = TritonProduct(pins, load_profile("release", pins), sources, cache=tmp_path, progress=progress)
    origins = product.origins()
    assert [(source.name, source.version) for source in origins.sources] == [("triton", "3.6.0"), ("llvm", "22.1.8")]
    assert all(source.digest.startswith("sha256:") for source in origins.sources)
    assert [fixup.name for fixup in origins.fixups] == [fixup.name for fixup in pins.fixups]
    assert all(fixup.file and fixup.reason for fixup in origins.fixups)


def test_a_tree_of_an_unknown_layout_is_refused(roots: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused = run({**roots, "TRITON_ROOT": str(tmp_path / "empty")}, "module", "--work", tmp_path / "work")
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 2, refused.stderr


def test_too_little_memory_is_said_before_anything_is_built(roots: dict[str, str], tmp_path: Path) -> None:
    checkout = copy_of_checkout(tmp_path / "checkout")
    edit(checkout / "pins/profiles/release.toml", "memory = 22_100_000_000", "memory = 900_000_000_000")
    refused = run(roots, "module", "--work", tmp_path / "work", checkout=checkout)
    assert refused.returncode == 3
    assert "takes up to 900.0 GB of memory with the profile release" in refused.stderr
    assert "of swap or more" in refused.stderr
    assert not list((tmp_path / "work").glob("*/stage.json"))


def test_a_supplied_kernel_is_judged_before_the_sources_are_looked_for(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    nowhere = {"TRITON_ROOT": "/nowhere", "LLVM_ROOT": "/nowhere"}
    for text, code, said in (
        ("def gemm(:", 2, "it is not Python"),
        (KERNEL, 2, "gemm does not take c_ptr"),
        (KERNEL.replace("gluon.jit", "gluon.aggregate"), 2, "has no function at all under @gluon.jit"),
    ):
        kernel.write_text(text)
        refused = run(nowhere, "check", "--supplied", kernel, "--work", tmp_path / "work")
        assert refused.returncode == code
        assert said in refused.stderr, refused.stderr
    refused = run(nowhere, "check", "--supplied", kernel, "--sha256", 64 * "0", "--work", tmp_path / "work")
    assert refused.returncode == 1
    assert "expected 0000" in refused.stderr


@pytest.mark.parametrize("option", [("--supplied", "kernel.py"), ("--oracle",)])
def test_the_sample_has_neither_kernels_nor_an_oracle(option: tuple[str, ...], tmp_path: Path) -> None:
    refused = triton_wasm("check", "--sample", *option, "--work", tmp_path / "work")
    assert refused.returncode == 2
    assert f"Leave out {option[0]}, or leave out --sample." in refused.stderr


@pytest.mark.slow
def test_from_two_trees_to_what_the_package_holds(
    pins: PinSet, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM, objects, link and Python tree are stages of one run, and a second run makes none of them."""
    for program in PROGRAMS[:2]:
        write_tool(tmp_path / "tools" / program, f"echo LLVM version {VERSION}")
    monkeypatch.setenv("TRITON_WASM_LLVM_TOOLS", str(tmp_path / "tools"))
    profile = load_llvm_profile().model_copy(update={"projects": (), "extras": ("llvm-headers", "cmake-exports")})
    monkeypatch.setattr("release.libraries.load_llvm_profile", lambda _: profile)
    for name in ("_FEWEST_OBJECTS", "_FEWEST_ARCHIVES"):
        monkeypatch.setattr(f"release.module.triton.{name}", 1)
    progress = Progress(quiet=True)
    sources = tiny_sources(tmp_path)
    small = load_profile("release", pins)
    small = small.model_copy(update={"link": small.link.model_copy(update={"memory": 1})})
    product = TritonProduct(pins, small, sources, cache=tmp_path / "cache", progress=progress)
    toolchain = prepare(pins, cache=cache, allow_mismatch=False, progress=progress, bind=[tmp_path])

    stages = Stages(tmp_path / "work", progress)
    linked = product.link(stages, toolchain)
    assert "PyInit_libtriton" in {export.name for export in read_wasm(linked.path).exports}
    packed = product.pack(stages, linked.path)
    assert (packed.contents.python / "triton/backends/amd/lib/ocml.bc").is_file()
    assert (packed.contents.python / "triton_compile_only/compile.py").is_file()
    assert packed.contents.version == f"3.6.0+git{pins.triton.commit[:8]}"
    assert [stage.name for stage in stages.done] == ["llvm", "objects", "host", "link", "tree"]
    assert not [path for path in tmp_path.rglob("*-build-*") if path.is_dir()]

    again = Stages(tmp_path / "work", progress)
    assert product.link(again, toolchain).path == linked.path
    product.pack(again, linked.path)
    assert [stage.name for stage in again.done if stage.reused] == ["llvm", "objects", "host", "link", "tree"]


def tiny_sources(folder: Path) -> Sources:
    """An LLVM of four libraries, and a Triton that links one of them and has a Python tree."""
    llvm = lay_licenses(tiny_llvm(folder / "llvm"))
    triton = miniature(folder / "triton")
    trees.lay(triton, {"CMakeLists.txt": CMAKE, "main.cc": MAIN})
    return Sources(
        triton=Source(name="triton", path=triton, commit=None, digest="sha256:triton", given=True),
        llvm={"llvm": Source(name="llvm", path=llvm, commit=None, digest="sha256:llvm", given=True)},
        triton_tree=read_triton(triton),
        llvm_trees={"llvm": LLVMTree(path=llvm, version=VERSION, commit=None)},
        fixups=(),
        accepted=(),
    )
