from pathlib import Path

import pytest

from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.package.abi import TAG, check_abi, extension_suffix, wheel_tag
from release.pins.model import PinSet
from tests.package.crafted import archive

OURS = "cp315-cp315-pyemscripten_2026_5_wasm32"


def wheel(folder: Path, name_tag: str, *inner: str) -> Path:
    text = "Wheel-Version: 1.0\n" + "".join(f"Tag: {tag}\n" for tag in inner)
    return archive(folder / f"exprc-1.0.0-{name_tag}.whl", {"exprc-1.0.0.dist-info/WHEEL": text.encode()})


def test_a_wheel_of_ours_passes(pins: PinSet, tmp_path: Path) -> None:
    check_abi(wheel(tmp_path, OURS, OURS), pins)


@pytest.mark.parametrize(
    "tag",
    [
        "cp314-cp314-pyemscripten_2026_0_wasm32",
        "cp315-cp315-pyemscripten_2026_4_wasm32",
        "cp315-cp315-pyodide_2026_5_wasm32",
        "cp315-cp315-emscripten_6_0_5_wasm32",
        "cp315-abi3-pyemscripten_2026_5_wasm32",
        "cp314.cp315-cp315-pyemscripten_2026_5_wasm32",
        "py3-none-any",
        "cp315-cp315-manylinux_2_28_x86_64",
    ],
)
def test_a_wheel_for_another_abi_is_refused_in_one_sentence(tag: str, pins: PinSet, tmp_path: Path) -> None:
    with pytest.raises(Finding, match="by its name, but pin set preview needs") as refused:
        check_abi(wheel(tmp_path, tag, OURS), pins)
    assert str(refused.value).count(". ") == 0
    assert str(refused.value).endswith(f"{OURS}.")


def test_the_file_inside_must_say_the_same(pins: PinSet, tmp_path: Path) -> None:
    with pytest.raises(Finding, match="is for py3-none-any by its WHEEL file"):
        check_abi(wheel(tmp_path, OURS, "py3-none-any"), pins)
    with pytest.raises(Finding, match="is for nothing by its WHEEL file"):
        check_abi(wheel(tmp_path, OURS), pins)


def test_what_is_no_wheel_is_refused(pins: PinSet, tmp_path: Path) -> None:
    with pytest.raises(Finding, match="is not the name of a wheel"):
        check_abi(archive(tmp_path / "exprc.whl"), pins)
    broken = tmp_path / f"exprc-1.0.0-{OURS}.whl"
    broken.write_text("not a zip")
    with pytest.raises(Finding, match="cannot be read as a zip archive"):
        check_abi(broken, pins)


@pytest.mark.parametrize("tag", ["cp315-cp315-pyemscripten_2026_5_wasm32", "cp314-cp314-pyemscripten_2026_0_wasm32"])
def test_the_pattern_takes_what_pypi_takes(tag: str) -> None:
    assert TAG.match(tag)


@pytest.mark.parametrize(
    "tag",
    [
        "cp315-cp315-pyemscripten_26_5_wasm32",
        "cp315-cp315-pyemscripten_2026_wasm32",
        "cp315-cp315-pyemscripten_2026_5_wasm64",
        "cp315-cp315-pyodide_2026_5_wasm32",
        "cp315-cp315-emscripten_6_0_5_wasm32",
        "cp315-abi3-pyemscripten_2026_5_wasm32",
        "py3-none-any",
        "xcp315-cp315-pyemscripten_2026_5_wasm32",
        "cp315-cp315-pyemscripten_2026_5_wasm32.any",
    ],
)
def test_the_pattern_takes_nothing_else(tag: str) -> None:
    assert not TAG.match(tag)


def test_a_pin_set_with_another_kind_of_abi_is_refused(pins: PinSet) -> None:
    pyodide = pins.pyodide.model_copy(update={"abi": "26_5"})
    with pytest.raises(WrongUsage, match="makes the wheel tag cp315-cp315-pyemscripten_26_5_wasm32"):
        wheel_tag(pins.model_copy(update={"pyodide": pyodide}))


def test_the_suffix_is_pyodides_own(pyodide: Path) -> None:
    assert extension_suffix(pyodide) == ".cpython-315-wasm32-emscripten.so"


def test_a_folder_without_pyodide_is_a_broken_environment(tmp_path: Path) -> None:
    with pytest.raises(BrokenEnvironment, match=r"does not say how Pyodide names extension modules"):
        extension_suffix(tmp_path)
