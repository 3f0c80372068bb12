from collections.abc import Mapping
from pathlib import Path

import pytest

from release.errors import Finding, WrongUsage
from release.pins.agreement import agreement, check_agreement
from release.pins.load import PINS, load_pins
from release.pins.model import LLVMPin, PinSet
from release.pins.upstream import LLVMTree, TritonTree, read_llvm, read_triton
from tests.pins import trees

OTHER = "ac5dc54d509169d387fcfd495d71853d81c46484"


@pytest.fixture
def triton(tmp_path: Path) -> TritonTree:
    return read_triton(trees.triton(tmp_path / "triton"))


@pytest.fixture
def llvm(tmp_path: Path) -> Mapping[str, LLVMTree]:
    return {"llvm": read_llvm(trees.llvm(tmp_path / "llvm", 22, 1, 8), None)}


def pins_with(*llvm: Mapping[str, str]) -> PinSet:
    """The preview pins with other LLVMs, all of one repository unless they say another."""
    known = {"name": "llvm", "repository": "https://github.com/llvm/llvm-project"}
    return load_pins("preview").model_copy(update={"llvm": tuple(LLVMPin(**{**known, **pin}) for pin in llvm)})


def at(commit: str | None) -> Mapping[str, LLVMTree]:
    return {"llvm": LLVMTree(path=Path("llvm-project"), version="23.0.0git", commit=commit)}


def test_preview_agrees_with_no_flag(triton: TritonTree, llvm: Mapping[str, LLVMTree]) -> None:
    assert agreement(load_pins("preview"), triton, llvm) == ()
    assert check_agreement(load_pins("preview"), triton, llvm) == ()


def test_preview_disagrees_with_any_other_triton(tmp_path: Path, llvm: Mapping[str, LLVMTree]) -> None:
    other = read_triton(trees.triton(tmp_path / "other", llvm=OTHER))
    (finding,) = agreement(load_pins("preview"), other, llvm)
    assert finding == (
        f"Triton's cmake/llvm-hash.txt wants LLVM {OTHER} and the pin set's release 22.1.8 stands for "
        f"{trees.PREVIEW_LLVM}."
    )


def test_preview_disagrees_with_another_release_of_llvm(tmp_path: Path, triton: TritonTree) -> None:
    other = {"llvm": read_llvm(trees.llvm(tmp_path / "llvm-git", 23, 0, 0, "git"), trees.PREVIEW_LLVM)}
    (finding,) = agreement(load_pins("preview"), triton, other)
    assert "builds LLVM release 22.1.8" in finding
    assert "is version 23.0.0git" in finding


def test_a_pin_of_the_commit_that_triton_wants_agrees(triton: TritonTree) -> None:
    pins = pins_with({"commit": trees.PREVIEW_LLVM})
    assert agreement(pins, triton, at(trees.PREVIEW_LLVM)) == ()
    assert agreement(pins, triton, {}) == ()


@pytest.mark.parametrize(
    ("pin", "commit", "message"),
    [
        ({"commit": OTHER}, OTHER, f"wants LLVM {trees.PREVIEW_LLVM} and the pin set builds {OTHER}"),
        ({"release": "22.1.8"}, None, "and the pin set builds release 22.1.8"),
        ({"commit": trees.PREVIEW_LLVM}, OTHER, f"is at {OTHER}"),
        ({"commit": trees.PREVIEW_LLVM}, None, "has no commit to compare"),
    ],
)
def test_a_disagreement_is_refused_or_accepted_and_recorded(
    triton: TritonTree, pin: Mapping[str, str], commit: str | None, message: str
) -> None:
    pins = pins_with(pin)
    with pytest.raises(Finding, match=message) as refusal:
        check_agreement(pins, triton, at(commit))
    assert "--accept-llvm" in refusal.value.remedy
    accepted = check_agreement(pins, triton, at(commit), accept=True)
    assert message in " ".join(accepted)


def test_another_repository_than_the_one_that_triton_names_is_a_disagreement(tmp_path: Path) -> None:
    info = {"llvm_hash": OTHER, "build_number": 1, "sha256sum": {}, "repository": "triton-lang/llvm-project"}
    tree = read_triton(trees.triton(tmp_path, {"cmake/llvm-info.json": info}, llvm=OTHER))
    (finding,) = agreement(pins_with({"commit": OTHER}), tree, at(OTHER))
    assert "from https://github.com/triton-lang/llvm-project" in finding
    named = {"commit": OTHER, "repository": "https://github.com/triton-lang/llvm-project"}
    assert agreement(pins_with(named), tree, at(OTHER)) == ()


def test_every_llvm_of_triton_is_in_the_pin_set_and_the_other_way_round(tmp_path: Path, triton: TritonTree) -> None:
    info = {"llvm_hash": OTHER, "build_number": 1, "sha256sum": {}}
    two = read_triton(trees.triton(tmp_path, {"cmake/amd-llvm-info.json": info}))
    main, amd = {"commit": trees.PREVIEW_LLVM}, {"name": "amd", "commit": OTHER}
    assert agreement(pins_with(main, amd), two, {}) == ()
    assert agreement(pins_with(main), two, {}) == (
        f"Triton takes an LLVM 'amd' ({OTHER}, cmake/amd-llvm-info.json) and the pin set has none.",
    )
    assert agreement(pins_with(main, amd), triton, {}) == ("The pin set has an LLVM 'amd' and Triton takes none.",)


@pytest.mark.parametrize(
    ("old", "new", "line_of", "message"),
    [
        ("reason = \"Triton's", "because = \"Triton's", "because", "unknown key"),
        ("stands_for = ", "# stands_for = ", "[[llvm]]", "`stands_for` and `reason` belong together"),
        ('stands_for = "0729', 'stands_for = "729', "stands_for", "not of the form"),
        ("third_party/amd/lib/Analysis/", "../", "# the fourth", "not a path inside the sources"),
        ('name = "most-programs"', 'name = "buffer-op-limit"', "# The pair", "the same name"),
        ('name = "most-programs"', 'name = "most-programs"\nsource = "gcc"', "# The pair", "'gcc', which is no"),
        ('{ old = "kDefaultMaxPrograms = 1L', '{ old = "", was = "1L', "kDefaultMaxPrograms", "unknown key"),
        ('edits = [{ old = "kDefault', 'edits = []\nmore = [{ old = "kDefault', "more = [", "unknown key"),
    ],
)
def test_a_mistake_in_the_pin_set_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, line_of: str, message: str
) -> None:
    text = (PINS / "preview.toml").read_text()
    text = text.replace('[[fixups]]\nname = "most-programs"', '[[fixups]] # the fourth\nname = "most-programs"')
    assert text.count(old) == 1
    path = tmp_path / "my.toml"
    path.write_text(text := text.replace(old, new))
    line = next(number for number, line in enumerate(text.splitlines(), start=1) if line_of in line)
    with pytest.raises(WrongUsage) as refusal:
        load_pins(str(path))
    assert message in str(refusal.value)
    assert f":{line}: " in str(refusal.value)
