import difflib
import tomllib
from pathlib import Path

import pytest

from release.errors import Finding, WrongUsage
from release.pins.load import PINS, available, load_pins
from release.pins.model import PinSet, PyodidePin
from release.pins.write import updated

COMMIT = "a1" * 20


def changed(before: str, after: str) -> list[str]:
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[0] in "+-"]


@pytest.mark.parametrize("name", available())
def test_nothing_asked_for_changes_nothing(name: str) -> None:
    assert updated(PINS / f"{name}.toml") == (PINS / f"{name}.toml").read_text()


@pytest.mark.parametrize("name", available())
def test_only_the_commit_of_triton_changes(name: str) -> None:
    path, old = PINS / f"{name}.toml", load_pins(name).triton.commit
    lines = changed(path.read_text(), updated(path, triton=COMMIT))
    assert lines == [f'- commit = "{old}"', f'+ commit = "{COMMIT}"']


def test_an_llvm_that_was_a_release_becomes_a_commit() -> None:
    path = PINS / "preview.toml"
    text = updated(path, llvm={"llvm": COMMIT})
    (llvm,) = PinSet.model_validate(tomllib.loads(text)).llvm
    assert (llvm.commit, llvm.release, llvm.stands_for, llvm.reason) == (COMMIT, None, None, None)
    lines = changed(path.read_text(), text)
    assert [line for line in lines if line.startswith("+")] == [f'+ commit = "{COMMIT}"']
    assert len(lines) == 4
    assert updated(path, llvm={"llvm": COMMIT}).count("[[fixups]]") == path.read_text().count("[[fixups]]")


def test_another_pyodide_brings_its_emscripten() -> None:
    pyodide = PyodidePin(version="0.29.0", integrity=f"sha512-{'A' * 86}==", python="3.13.2", abi="2025_0")
    text = updated(PINS / "preview.toml", pyodide=pyodide, emscripten="4.0.9")
    pins = PinSet.model_validate(tomllib.loads(text))
    assert (pins.pyodide, pins.emscripten.version) == (pyodide, "4.0.9")
    assert len(changed((PINS / "preview.toml").read_text(), text)) == 2 * 5


def test_what_makes_no_pin_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Finding, match=r"is no pin set, at triton\.commit"):
        updated(PINS / "preview.toml", triton="main")
    with pytest.raises(Finding, match="no LLVM called amd"):
        updated(PINS / "preview.toml", llvm={"amd": COMMIT})
    with pytest.raises(WrongUsage, match="is no TOML file"):
        updated(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[")
    with pytest.raises(WrongUsage, match="is no TOML file"):
        updated(tmp_path / "bad.toml")
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(Finding, match=r"no table \[triton\]"):
        updated(tmp_path / "empty.toml", triton=COMMIT)
