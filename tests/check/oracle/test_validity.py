"""Text goes through the assemblers of its target."""

import zipfile
from pathlib import Path

import pytest

from release.check.oracle.model import Assembled
from release.check.oracle.validity import Assemblers, assemble, find_ptxas, installed_ptxas, llvm_mc_of
from release.errors import BrokenEnvironment, WrongUsage
from release.progress import Progress
from release.toolchain.installation import Installation
from tests.check.oracle.texts import AMDGCN, PTX, write
from tests.toolchain.stand_ins import write_tool

QUIET = Progress(quiet=True)


def one(folder: Path, name: str, text: str, assemblers: Assemblers) -> Assembled:
    (result,) = assemble(write(folder, {name: text}), assemblers, progress=QUIET)
    return result


class TestPtxas:
    @pytest.fixture
    def ptxas(self, cache: Path) -> Assemblers:
        place = installed_ptxas()
        assert place, "nvidia-cuda-nvcc-cu12 is among the development packages"
        return Assemblers(ptxas=find_ptxas(place, cache))

    def test_takes_good_text_for_both_targets(self, tmp_path: Path, ptxas: Assemblers) -> None:
        assert one(tmp_path / "a", "scale/cuda-80-32/ptx", PTX, ptxas).passed
        hopper = PTX.replace("sm_80", "sm_90a")
        assert one(tmp_path / "b", "scale/cuda-90-32/ptx", hopper, ptxas).passed

    @pytest.mark.parametrize(
        ("old", "new", "complaint"),
        [
            ("\t.reg .b32 \t%r<3>;\n", "", "Arguments mismatch"),
            ("add.s32", "ad.s32", "Not a name of any known instruction: 'ad'"),
            ("%r2, %r1, 1", "%rd2, %r1, 1", "Arguments mismatch"),
            ("sm_80", "sm_90a", "SM version specified by .target is higher"),
        ],
    )
    def test_refuses_broken_text(self, tmp_path: Path, ptxas: Assemblers, old: str, new: str, complaint: str) -> None:
        assert old in PTX
        result = one(tmp_path, "scale/cuda-80-32/ptx", PTX.replace(old, new), ptxas)
        assert not result.passed
        assert complaint in result.message


@pytest.mark.slow
class TestLlvmMc:
    @pytest.fixture
    def llvm_mc(self, root: Installation) -> Assemblers:
        return Assemblers(llvm_mc=llvm_mc_of(root))

    def test_takes_good_text(self, tmp_path: Path, llvm_mc: Assemblers) -> None:
        assert one(tmp_path, "scale/hip-gfx942-64/amdgcn", AMDGCN, llvm_mc).passed

    @pytest.mark.parametrize(
        ("old", "new", "complaint"),
        [
            ("s_waitcnt", "s_waitcount", "invalid instruction"),
            ("v0, s[0:1]", "v0, s[0:3]", "invalid operand for instruction"),
            ("--gfx942", "--gfx950", "does not match the specified target"),
        ],
    )
    def test_refuses_broken_text(self, tmp_path: Path, llvm_mc: Assemblers, old: str, new: str, complaint: str) -> None:
        assert old in AMDGCN
        result = one(tmp_path, "scale/hip-gfx942-64/amdgcn", AMDGCN.replace(old, new), llvm_mc)
        assert not result.passed
        assert complaint in result.message


def test_what_has_no_assembler_is_not_assembled(tmp_path: Path) -> None:
    good = write_tool(tmp_path / "ptxas", "exit 0")
    texts = {"a/cuda-80-32/ptx": PTX, "a/cuda-80-32/llir": "", "a/hip-gfx942-64/amdgcn": AMDGCN}
    results = assemble(write(tmp_path / "texts", texts), Assemblers(ptxas=(str(good),)), progress=QUIET)
    assert [(result.stage, result.assembler, result.passed) for result in results] == [("ptx", "ptxas", True)]


def test_an_assembler_that_dies_or_is_not_there_is_no_success(tmp_path: Path) -> None:
    dies = write_tool(tmp_path / "ptxas", "kill -SEGV $$")
    result = one(tmp_path / "texts", "a/cuda-80-32/ptx", PTX, Assemblers(ptxas=(str(dies),)))
    assert not result.passed
    assert result.message == "ptxas died of SIGSEGV"
    with pytest.raises(BrokenEnvironment):
        one(tmp_path / "texts", "a/cuda-80-32/ptx", PTX, Assemblers(ptxas=(str(tmp_path / "none"),)))


def test_ptxas_is_found_as_a_program_and_in_a_wheel(tmp_path: Path) -> None:
    program = write_tool(tmp_path / "ptxas", "exit 0")
    assert find_ptxas(program, tmp_path) == (str(program),)
    wheel = tmp_path / "triton-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(program, "triton/backends/nvidia/bin/ptxas")
    (unpacked,) = find_ptxas(wheel, tmp_path / "cache")
    assert one(tmp_path / "texts", "a/cuda-80-32/ptx", PTX, Assemblers(ptxas=(unpacked,))).passed


def test_where_there_is_no_ptxas_one_sentence_says_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other-1-py3-none-any.whl", "w") as archive:
        archive.writestr("other.py", "")
    (tmp_path / "broken-1-py3-none-any.whl").write_text("no archive")
    for name in ("none", "other-1-py3-none-any.whl", "broken-1-py3-none-any.whl", "."):
        with pytest.raises(WrongUsage, match="is no ptxas and holds none"):
            find_ptxas(tmp_path / name, tmp_path)
    assert not list(tmp_path.glob("**/ptxas"))
