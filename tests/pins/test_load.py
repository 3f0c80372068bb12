from pathlib import Path

import pytest

from release.errors import WrongUsage
from release.pins.load import PINS, available, load_pins, load_profile

PREVIEW = (PINS / "preview.toml").read_text()


def write(folder: Path, text: str) -> str:
    path = folder / "my pins.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", available())
def test_every_pin_set_of_the_project_loads_with_its_profiles(name: str) -> None:
    pins = load_pins(name)
    assert pins.name == name
    assert [load_profile(profile, pins).name for profile in pins.profiles] == list(pins.profiles)


def test_both_pin_sets_are_there() -> None:
    assert available() == ["preview", "triton-3.7"]


def test_tags_follow_from_the_pins() -> None:
    pins = load_pins("preview")
    assert pins.wheel_platform == "pyemscripten_2026_5_wasm32"
    assert pins.wheel_python == "cp315"


@pytest.mark.parametrize(
    ("old", "new", "line_of", "message", "remedy"),
    [
        ('abi = "2026_5"', 'abbi = "2026_5"', "abbi", "unknown key", "Write 'abi' instead of 'abbi'"),
        ('version = "131"', 'version = "131"\ncolour = "red"', "colour", "unknown key", "Remove 'colour'"),
        ("50b2f739a63aa3a291ffebd7ee3be4308ba6feb7", "50b2f739a63a", "50b2f739a63a", "not of the form", "40-digit"),
        ('python = "3.15.0rc1"\n', "", "[pyodide]", "missing", "Add 'python'"),
        ('version = "6.0.5"', "version = 6.0", "version = 6.0", "valid string", "Correct the value"),
        ("sha512-t2S0", "sha256-t2S0", "sha256-t2S0", "not of the form", "Correct the value"),
        ('release = "22.1.8"\n', "", "[[llvm]]", "either `commit` or `release`", "Correct the value"),
        ("schema_version = 1", "schema_version = 2", "schema_version", "1", "Correct the value"),
    ],
)
def test_a_mistake_is_refused_with_its_line_and_the_remedy(
    tmp_path: Path, old: str, new: str, line_of: str, message: str, remedy: str
) -> None:
    assert old in PREVIEW
    text = PREVIEW.replace(old, new)
    path = write(tmp_path, text)
    line = next(number for number, line in enumerate(text.splitlines(), start=1) if line_of in line)
    with pytest.raises(WrongUsage) as refusal:
        load_pins(path)
    assert f"{path}:{line}:" in str(refusal.value)
    assert message in str(refusal.value)
    assert remedy in refusal.value.remedy


def test_the_second_of_two_llvms_is_found_by_its_own_line(tmp_path: Path) -> None:
    second = '\n[[llvm]]\nname = "amd"\nrepository = "https://github.com/llvm/llvm-project"\ncommit = "abc"\n'
    text = PREVIEW + second
    line = len(text.splitlines())
    with pytest.raises(WrongUsage, match=rf":{line}: llvm\.1\.commit"):
        load_pins(write(tmp_path, text))


def test_two_llvms_of_one_name_are_refused(tmp_path: Path) -> None:
    second = '\n[[llvm]]\nname = "llvm"\nrepository = "https://github.com/llvm/llvm-project"\nrelease = "22.1.8"\n'
    with pytest.raises(WrongUsage, match="same name"):
        load_pins(write(tmp_path, PREVIEW + second))


def test_broken_toml_text_that_is_no_text_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="not valid TOML"):
        load_pins(write(tmp_path, "name = \nother = 1"))
    (tmp_path / "my pins.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(WrongUsage, match="UTF-8"):
        load_pins(str(tmp_path / "my pins.toml"))
    with pytest.raises(WrongUsage) as refusal:
        load_pins("previw")
    assert "preview" in refusal.value.remedy


def test_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="no flag profile 'sead'"):
        load_pins(write(tmp_path, PREVIEW.replace('"seed"', '"sead"')))
    with pytest.raises(WrongUsage, match="has no profile 'tiny'"):
        load_profile("tiny", load_pins("preview"))
