"""`triton-wasm sources` on small trees: what it prints, and how it ends."""

import subprocess
from pathlib import Path

import pytest

from release.manifest.models import Fixup
from release.pins.load import load_pins
from release.progress import Progress
from release.sources import provide_sources
from tests.command import triton_wasm
from tests.pins import trees

OTHER = "ac5dc54d509169d387fcfd495d71853d81c46484"


def run(roots: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    assignments = (f"{name}={value}" for name, value in roots.items())
    return triton_wasm("sources", "--pins", "preview", *arguments, prefix=("env", *assignments))


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, str]:
    return {**trees.preview(tmp_path), "TRITON_WASM_CACHE": str(tmp_path / "cache")}


def test_it_says_where_they_are_what_they_are_and_that_they_agree(roots: dict[str, str]) -> None:
    done = run(roots)
    assert done.returncode == 0, done.stderr
    for expected in (
        f"Triton 3.6.0, bound by pybind11, {roots['TRITON_ROOT']}\n  sha256:",
        f"  wants LLVM {trees.PREVIEW_LLVM} (llvm, cmake/llvm-hash.txt)",
        f"LLVM 22.1.8 (llvm), {roots['LLVM_ROOT']}\n  sha256:",
        f"  stands for {trees.PREVIEW_LLVM}: ",
        "fix-up assertfail-width of third_party/nvidia/",
        "Pin set preview, Triton and LLVM agree.",
    ):
        assert expected in done.stdout


def test_a_disagreement_ends_it_before_llvm_is_looked_for_unless_it_is_accepted(roots: dict[str, str]) -> None:
    trees.lay(Path(roots["TRITON_ROOT"]), {"cmake/llvm-hash.txt": f"{OTHER}\n"})
    without = {**roots, "LLVM_ROOT": "/nowhere/llvm"}
    done = run(without)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"wants LLVM {OTHER}" in done.stderr
    assert "--accept-llvm" in done.stderr
    done = run(roots, "--accept-llvm")
    assert done.returncode == 0, done.stderr
    assert f"accepted: Triton's cmake/llvm-hash.txt wants LLVM {OTHER}" in done.stdout
    assert "agree." not in done.stdout


def test_a_fixup_that_no_longer_fits_ends_it(roots: dict[str, str]) -> None:
    trees.lay(Path(roots["TRITON_ROOT"]), {load_pins("preview").fixups[0].file: "upstream wrote something else"})
    done = run(roots)
    assert done.returncode == 1
    assert "Fix-up task-id-arguments no longer fits" in done.stderr


def test_wrong_roots_are_wrong_usage(roots: dict[str, str]) -> None:
    for variable, root, message in (
        ("TRITON_ROOT", roots["LLVM_ROOT"], "no Triton tree we know"),
        ("LLVM_ROOT", roots["TRITON_ROOT"], "is no LLVM tree"),
        ("LLVM_ROOT", "/nowhere/llvm", "is no folder"),
    ):
        done = run({**roots, variable: root})
        assert done.returncode == 2, done.stderr
        assert message in done.stderr.replace("which is", "is")


def test_a_second_llvm_has_a_variable_of_its_own_and_fixups_of_its_own(
    roots: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path("pins") / "preview.toml").read_text().replace('name = "preview"', 'name = "two"')
    repository = 'repository = "https://github.com/llvm/llvm-project"'
    edits = 'edits = [{ old = "LLVM", new = "LLVM 2" }]'
    fixup = f'[[fixups]]\nname = "second"\nreason = "A test."\nsource = "amd"\nfile = "llvm/CMakeLists.txt"\n{edits}\n'
    (tmp_path / "two.toml").write_text(f'{text}\n[[llvm]]\nname = "amd"\n{repository}\ncommit = "{OTHER}"\n{fixup}')
    info = {"llvm_hash": OTHER, "build_number": 1, "sha256sum": {}}
    trees.lay(Path(roots["TRITON_ROOT"]), {"cmake/amd-llvm-info.json": info})
    amd = trees.llvm(tmp_path / f"llvm-project-{OTHER}", 24, 0, 0, "git")
    for variable, root in {**roots, "AMD_LLVM_ROOT": str(amd)}.items():
        monkeypatch.setenv(variable, root)
    pins = load_pins(str(tmp_path / "two.toml"))
    sources = provide_sources(pins, cache=tmp_path / "cache", progress=Progress(quiet=True))
    assert {name: source.path.name for name, source in sources.llvm.items()} == {"llvm": "llvm", "amd": amd.name}
    assert sources.accepted == ()
    assert sources.fixed("llvm", tmp_path / "work") == sources.llvm["llvm"].path
    fixed = sources.fixed("amd", tmp_path / "work")
    assert (fixed / "llvm/CMakeLists.txt").read_text() == "project(LLVM 2)\n"
    assert (sources.fixed("triton", tmp_path / "work") / "cmake/llvm-hash.txt").is_file()
    assert [Fixup.model_validate(each).name for each in sources.fixups][-1] == "second"
