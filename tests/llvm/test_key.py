"""The key: equal for what gives equal bits, and another for each thing that changes them."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from release.errors import Finding, WrongUsage
from release.llvm import LLVMRequest, key, llvm_key
from release.llvm.components import closure, roots
from release.pins.load import load_llvm_profile
from release.pins.model import Edit, FixupPin, LLVMProfile
from release.toolchain.model import Toolchain
from tests.llvm.conftest import Case
from tests.llvm.tiny import write

FIXUP = FixupPin(name="x", reason="Because.", source="llvm", file="a.h", edits=(Edit(old="a", new="b"),))


def profiled(request: LLVMRequest, change: Callable[[LLVMProfile], LLVMProfile]) -> LLVMRequest:
    return replace(request, profile=change(request.profile))


def with_cmake(profile: LLVMProfile) -> LLVMProfile:
    return profile.model_copy(update={"cmake": {**profile.cmake, "LLVM_ENABLE_ASSERTIONS": True}})


def with_flag(profile: LLVMProfile) -> LLVMProfile:
    compile_ = profile.compile.model_copy(update={"flags": (*profile.compile.flags, "-g")})
    return profile.model_copy(update={"compile": compile_})


CHANGES: dict[str, Callable[[LLVMRequest], LLVMRequest]] = {
    "source": lambda request: replace(request, digest="git:other"),
    "fix-up": lambda request: replace(request, fixups=(FIXUP,)),
    "flag": lambda request: profiled(request, with_flag),
    "cache variable": lambda request: profiled(request, with_cmake),
    "target": lambda request: profiled(request, lambda p: p.model_copy(update={"targets": ("NVPTX",)})),
    "project": lambda request: profiled(request, lambda p: p.model_copy(update={"projects": ("mlir",)})),
    "extra": lambda request: profiled(request, lambda p: p.model_copy(update={"extras": ()})),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changes_the_bits_changes_the_key(case: Case, what: str) -> None:
    assert llvm_key(CHANGES[what](case.request), case.toolchain) != llvm_key(case.request, case.toolchain)


def test_the_compiler_the_recipe_and_a_library_more_change_the_key(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    before = llvm_key(case.request, case.toolchain)
    other = replace(case.toolchain, emscripten=replace(case.toolchain.emscripten, digest="0"))
    assert llvm_key(case.request, other) != before
    write(case.request.triton / "python/CMakeLists.txt", "target_link_libraries(x MLIRPass)\n")
    assert llvm_key(case.request, case.toolchain) != before
    (case.request.triton / "python/CMakeLists.txt").unlink()
    assert llvm_key(case.request, case.toolchain) == before
    monkeypatch.setattr(key, "RECIPE", key.RECIPE + 1)
    assert llvm_key(case.request, case.toolchain) != before


def test_nothing_else_changes_the_key(case: Case, tmp_path: Path) -> None:
    before = llvm_key(case.request, case.toolchain)
    moved = shutil.copytree(case.request.source.parent, tmp_path / "moved")
    request = replace(case.request, source=moved / "llvm", triton=moved / "triton")
    write(request.triton / "lib/More/CMakeLists.txt", "# MLIRMentioned\nadd_library(TritonMore LLVMPasses)\n")
    request = profiled(request, lambda p: p.model_copy(update={"name": "renamed", "targets": p.targets[::-1]}))
    request = replace(request, fixups=())
    other: Toolchain = replace(
        case.toolchain,
        python_include_digest="0",
        node_version="0",
        binaryen=replace(case.toolchain.binaryen, digest="0"),
        provider="path",
    )
    assert llvm_key(request, other) == before


def test_table_generators_count_where_their_version_does_not_tell(
    case: Case, generators: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = shutil.copytree(generators, tmp_path / "others")
    write(other / "llvm-tblgen", "#!/bin/sh\n# another\n")
    released = replace(case.request, version="22.1.0")
    before = llvm_key(case.request, case.toolchain), llvm_key(released, case.toolchain)
    monkeypatch.setenv("TRITON_WASM_LLVM_TOOLS", str(other))
    assert llvm_key(case.request, case.toolchain) != before[0]
    assert llvm_key(released, case.toolchain) == before[1]
    monkeypatch.setenv("TRITON_WASM_LLVM_TOOLS", str(tmp_path))
    with pytest.raises(WrongUsage, match="holds no llvm-tblgen"):
        llvm_key(case.request, case.toolchain)


def test_roots_are_what_triton_names_and_the_targets_allow(case: Case) -> None:
    request = case.request
    assert request.roots() == ("LLVMOwn", "LLVMPasses")
    assert "LLVMX86CodeGen" in roots(request.triton, request.source, ("X86",))
    with pytest.raises(WrongUsage, match="names a library of LLVM"):
        roots(request.source, request.source, ())


def test_the_closure_follows_what_the_exports_say(tmp_path: Path) -> None:
    exports = """
add_library(LLVMA STATIC IMPORTED)
set_target_properties(LLVMA PROPERTIES
  INTERFACE_LINK_LIBRARIES "LLVMB;\\$<LINK_ONLY:LLVMC>;m"
)
add_library(LLVMB STATIC IMPORTED)
add_library(LLVMC INTERFACE IMPORTED)
add_library(LLVMD STATIC IMPORTED)
set_target_properties(LLVMD PROPERTIES
  INTERFACE_LINK_LIBRARIES "LLVMA"
)
"""
    write(tmp_path / "lib/cmake/llvm/LLVMExports.cmake", exports)
    assert closure(tmp_path, ("LLVMA", "LLVMNobody")) == ("LLVMA", "LLVMB", "LLVMC")
    with pytest.raises(Finding, match="LLVM has none of the 1 libraries"):
        closure(tmp_path, ("LLVMNobody",))


def test_the_profile_has_the_flags_of_the_mission() -> None:
    profile = load_llvm_profile()
    assert {"-flto", "-fwasm-exceptions", "-ffunction-sections", "-fdata-sections"} == set(profile.compile.flags)
    assert profile.compile.optimise == ("-O3", "-DNDEBUG")
    assert profile.targets == ("WebAssembly", "NVPTX", "AMDGPU")
    with pytest.raises(WrongUsage, match="no flag profile 'thin'"):
        load_llvm_profile("thin")
