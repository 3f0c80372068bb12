"""Triton as the product, on trees that say they are Triton and LLVM and hold nothing else."""

import subprocess
from pathlib import Path

import pytest

from release.pins.load import load_pins, load_profile
from release.places import CHECKOUT
from release.products.triton import TritonProduct
from release.progress import Progress
from release.sources import provide_sources
from tests.command import copy_of_checkout, edit, triton_wasm
from tests.pins import trees

KERNEL = "from triton.experimental import gluon\n\n\n@gluon.jit\ndef gemm(a_ptr, b_ptr):\n    pass\n"


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, str]:
    triton = trees.triton(tmp_path / "triton")
    for fixup in load_pins("preview").fixups:
        trees.lay(triton, {fixup.file: "\n".join(edit.old for edit in fixup.edits)})
    llvm = trees.llvm(tmp_path / "llvm", 22, 1, 8)
    return {"TRITON_ROOT": str(triton), "LLVM_ROOT": str(llvm)}


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
    edit(checkout / "pins/profiles/release.toml", "memory = 21_500_000_000", "memory = 900_000_000_000")
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
