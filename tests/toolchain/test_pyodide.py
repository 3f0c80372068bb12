"""npm's Pyodide is what the pin set says, or it is not used."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment, Finding
from release.pins.load import available, load_pins
from release.pins.model import PinSet
from release.progress import Progress
from release.toolchain.node import find_node, node_version
from release.toolchain.pyodide import agreement, check_agreement, install_pyodide
from tests.command import edit
from tests.toolchain.stand_ins import CLOSED

QUIET = Progress(quiet=True)
type Change = Callable[[PinSet], PinSet]


@pytest.mark.parametrize("name", available())
def test_every_pin_set_agrees_with_its_pyodide(name: str, cache: Path) -> None:
    pins = load_pins(name)
    check_agreement(pins, install_pyodide(pins, cache, QUIET))


def test_each_disagreement_is_one_sentence(pins: PinSet, pyodide: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(pyodide, tmp_path / "package"))
    edit(folder / "pyodide-lock.json", f'"{pins.pyodide.python}"', '"3.16.0"')
    edit(folder / "pyodide-lock.json", f'"{pins.pyodide.abi}"', '"2027_1"')
    edit(folder / "pyodide-lock.json", '"emscripten_6_0_5"', '"emscripten_7_0_0"')
    edit(folder / "package.json", f'"version": "{pins.pyodide.version}"', '"version": "316.0.0"')
    assert agreement(pins, folder) == [
        f"pyodide.version is {pins.pyodide.version} and the lock file has 316.0.0.",
        f"pyodide.python is {pins.pyodide.python} and the lock file has 3.16.0.",
        f"pyodide.abi is {pins.pyodide.abi} and the lock file has 2027_1.",
        f"emscripten.version is {pins.emscripten.version} and the lock file has 7.0.0.",
    ]
    with pytest.raises(Finding, match="does not agree with Pyodide"):
        check_agreement(pins, folder)


def test_a_lock_file_that_cannot_be_read_is_a_finding(pins: PinSet, tmp_path: Path) -> None:
    assert agreement(pins, tmp_path) == [f"{tmp_path / 'pyodide-lock.json'} cannot be read (FileNotFoundError)."]


def test_a_package_with_another_digest_is_not_used(pins: PinSet, tmp_path: Path) -> None:
    other = "sha512-" + "A" * 86 + "=="
    wrong = pins.model_copy(update={"pyodide": pins.pyodide.model_copy(update={"integrity": other})})
    with pytest.raises(Finding, match="has integrity sha512-") as caught:
        install_pyodide(wrong, tmp_path, QUIET)
    assert pins.pyodide.integrity in str(caught.value)
    assert [path.name for path in (tmp_path / "toolchain" / "pyodide").iterdir()] == [".lock"]


def test_no_network_is_seen_within_seconds(pins: PinSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", CLOSED)
    started = time.monotonic()
    with pytest.raises(BrokenEnvironment, match=r"npm cannot fetch pyodide@.*ECONNREFUSED") as caught:
        install_pyodide(pins, tmp_path, QUIET)
    assert time.monotonic() - started < 15
    assert "network" in caught.value.remedy


def test_a_half_unpacked_package_is_unpacked_again(pins: PinSet, pyodide: Path, tmp_path: Path) -> None:
    half = tmp_path / "toolchain" / "pyodide" / pyodide.parent.name / "package"
    half.mkdir(parents=True)
    shutil.copy(pyodide / "package.json", half)
    leftover = half.parent.parent / f".{pyodide.parent.name}.x.part"
    leftover.mkdir()
    assert agreement(pins, install_pyodide(pins, tmp_path, QUIET)) == []
    assert not leftover.exists()


def test_node_is_the_locked_one_and_runs() -> None:
    assert node_version(find_node()) == "24.19.0"


def test_a_node_that_does_not_run_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "node"
    broken.write_text("#!/bin/sh\nexit 126\n")
    broken.chmod(0o755)
    with pytest.raises(BrokenEnvironment, match="does not run: node exited with 126") as caught:
        node_version(broken)
    assert "uv sync" in caught.value.remedy
