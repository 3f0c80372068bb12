"""What another Triton means is read from the two trees, and each kind of change is told from the others."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from release.cli import main
from release.pins.impact import Impact, Severity, impact, read_facts
from release.pins.impact.compare import LLVM_MINUTES, MODULE_MINUTES, describe
from release.pins.load import load_known_bad, load_pins
from release.pins.model import PinSet
from release.toolchain.fixups import check_fixups
from tests.pins import trees

PTX = "    llvm_ptx_version = min(86, ptx_version)\n"
CMAKE = (
    trees.PYBIND11
    + 'option(TRITON_BUILD_PROTON "" ON)\noption(TRITON_BUILD_UT "" ON)\nset(LLVM_SYSPATH "" CACHE PATH "")\n'
)
COMMON: Mapping[str, object] = {
    "CMakeLists.txt": CMAKE,
    "lib/CMakeLists.txt": "add_triton_library(TritonIR\n  A.cpp)\n",
    "third_party/nvidia/backend/compiler.py": PTX,
    "third_party/nvidia/backend/lib/libdevice.10.bc": "BC",
    "third_party/amd/backend/lib/ocml.bc": "BC",
    "cmake/nvidia-toolchain-version.json": {"ptxas": "12.9.86"},
    "python/triton/compiler/__init__.py": "from .compiler import ASTSource\n",
    "python/triton/runtime/jit.py": "class JITFunction:\n    pass\n",
}


@pytest.fixture
def pins() -> PinSet:
    return load_pins("preview").model_copy(update={"fixups": ()})


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    text = (
        "from triton.compiler import ASTSource\nfrom triton.runtime.jit import JITFunction\n"
        "from triton._C.libtriton import ir\nfrom triton.backends.nvidia import compiler\nfrom . import own\n"
    )
    return trees.lay(tmp_path / "layer", {"layer/compile.py": text})


def compared(
    tmp_path: Path, pins: PinSet, layer: Path, changes: Mapping[str, object | None], *, llvm: str = trees.PREVIEW_LLVM
) -> Impact:
    """Compare a tree with one in which files have other contents, or are not (None)."""
    old = trees.triton(tmp_path / "old", COMMON)
    files = {**COMMON, **{name: content for name, content in changes.items() if content is not None}}
    new = trees.triton(tmp_path / "new", files, llvm=llvm)
    for name, content in changes.items():
        if content is None:
            (new / name).unlink()
    return impact(
        read_facts(old), read_facts(new), pins, known_bad=load_known_bad(), check_fixups=check_fixups, layer=layer
    )


def test_nothing_has_changed(tmp_path: Path, pins: PinSet, layer: Path) -> None:
    report = compared(tmp_path, pins, layer, {})
    assert (report.severity, report.minutes) == (Severity.SAME, MODULE_MINUTES)
    assert "nothing that a build depends on has changed" in describe(report)


@pytest.mark.parametrize(
    ("changes", "severity", "topic", "said"),
    [
        ({"python/triton/__init__.py": "__version__ = '3.7.0'\n"}, Severity.CHANGE, "Triton", "3.6.0 → 3.7.0"),
        ({"CMakeLists.txt": CMAKE.replace("pybind11", "nanobind")}, Severity.WORK, "bindings", "nanobind"),
        (
            {"CMakeLists.txt": CMAKE.replace("TRITON_BUILD_UT", "TRITON_TESTS")},
            Severity.WORK,
            "CMake options",
            "TRITON_BUILD_UT no longer there, and the overlay sets it",
        ),
        (
            {"CMakeLists.txt": CMAKE + 'set(JSON_SYSPATH "" CACHE PATH "")\nset(LOCAL x)\n'},
            Severity.CHANGE,
            "CMake options",
            "new JSON_SYSPATH",
        ),
        (
            {"lib/CMakeLists.txt": "add_triton_object(\n  TritonNew A.cpp)\n"},
            Severity.CHANGE,
            "CMake targets",
            "new TritonNew, no TritonIR",
        ),
        (
            {"python/triton/runtime/jit.py": "class Other:\n    pass\n"},
            Severity.WORK,
            "Python",
            "triton.runtime.jit.JITFunction not there",
        ),
        (
            {"third_party/nvidia/backend/compiler.py": None},
            Severity.WORK,
            "Python",
            "triton.backends.nvidia.compiler not there",
        ),
        (
            {"third_party/nvidia/backend/lib/libdevice.10.bc": "BD"},
            Severity.CHANGE,
            "device libraries",
            "libdevice.10.bc has other bytes",
        ),
        ({"third_party/amd/backend/lib/ocml.bc": None}, Severity.WORK, "device libraries", "ocml.bc is gone"),
        ({"third_party/amd/backend/lib/new.bc": "BC"}, Severity.WORK, "device libraries", "new.bc is new"),
        (
            {"cmake/nvidia-toolchain-version.json": {"ptxas": "13.1.80"}},
            Severity.CHANGE,
            "NVIDIA's tools",
            "ptxas 12.9.86 → 13.1.80",
        ),
        (
            {"third_party/nvidia/backend/compiler.py": PTX.replace("86", "90")},
            Severity.CHANGE,
            "PTX",
            "at most 8.6 → 9.0",
        ),
        (
            {"cmake/amd-llvm-info.json": {"llvm_hash": "a" * 40, "bootstrap_llvm": {"build_number": 1}}},
            Severity.WORK,
            "LLVM amd",
            "a second LLVM",
        ),
    ],
)
def test_each_kind_of_change(
    tmp_path: Path,
    pins: PinSet,
    layer: Path,
    changes: Mapping[str, object | None],
    severity: Severity,
    topic: str,
    said: str,
) -> None:
    report = compared(tmp_path, pins, layer, changes)
    assert any(line.topic == topic and said in line.text for line in report.lines), describe(report)
    assert report.severity == severity


def test_another_llvm_is_another_build(tmp_path: Path, pins: PinSet, layer: Path) -> None:
    report = compared(tmp_path, pins, layer, {}, llvm="b" * 40)
    assert (report.severity, report.minutes) == (Severity.CHANGE, MODULE_MINUTES + LLVM_MINUTES)
    assert "0729a74e66ae → bbbbbbbbbbbb" in describe(report)


def test_another_form_of_the_pin_is_no_change(tmp_path: Path, pins: PinSet, layer: Path) -> None:
    info = {"llvm_hash": trees.PREVIEW_LLVM, "build_number": 7, "sha256sum": {}}
    report = compared(tmp_path, pins, layer, {"cmake/llvm-hash.txt": None, "cmake/llvm-info.json": info})
    assert report.severity == Severity.SAME
    assert "named by cmake/llvm-info.json, before by cmake/llvm-hash.txt" in describe(report)


@pytest.mark.parametrize("commit", sorted(load_known_bad()))
def test_an_llvm_that_is_known_to_be_bad_stops_it(tmp_path: Path, pins: PinSet, layer: Path, commit: str) -> None:
    report = compared(tmp_path, pins, layer, {}, llvm=commit)
    assert report.verdict == "cannot be built"
    assert "is known to be bad: Triton reverted it" in describe(report)


def test_a_fixup_that_no_longer_fits_is_work(tmp_path: Path, pins: PinSet, layer: Path) -> None:
    fixup = load_pins("preview").fixups[0]
    report = compared(tmp_path, pins.model_copy(update={"fixups": (fixup,)}), layer, {})
    assert report.severity == Severity.WORK
    assert f"{fixup.name}: " in describe(report)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    for name, value in trees.preview(tmp_path).items():
        monkeypatch.setenv(name, value)
    # A tree of the tests has nothing that the real layer imports.
    assert main(["pins", "impact", str(tmp_path / "triton")]) == 1
    assert "needs work before it is built" in capfd.readouterr().out
    assert main(["pins", "impact", str(tmp_path / "llvm")]) == 2
    assert "laid out as no Triton" in capfd.readouterr().err
