import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment
from release.progress import Progress
from release.stage import exclusive, find_stage, key_of, run_stage

QUIET = Progress(quiet=True)


def writes(text: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        (folder / "file name.txt").write_text(text)

    return build


def test_equal_inputs_do_nothing_and_other_inputs_build(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    first = run_stage("s", folder, inputs={"a": 1}, build=writes("one"), progress=QUIET)
    again = run_stage("s", folder, inputs={"a": 1}, build=writes("two"), progress=QUIET)
    assert (first.reused, again.reused) == (False, True)
    assert again.outputs == first.outputs
    assert (folder / "file name.txt").read_text() == "one"
    run_stage("s", folder, inputs={"a": 2}, build=writes("two"), progress=QUIET)
    assert (folder / "file name.txt").read_text() == "two"
    run_stage("s", folder, inputs={"a": 2}, build=writes("three"), progress=QUIET, force=True)
    assert (folder / "file name.txt").read_text() == "three"


def change(folder: Path) -> None:
    (folder / "file name.txt").write_text("changed")


def remove(folder: Path) -> None:
    (folder / "file name.txt").unlink()


def add(folder: Path) -> None:
    (folder / "another").touch()


def spoil_the_record(folder: Path) -> None:
    (folder / "stage.json").write_text('{"key": ')


@pytest.mark.parametrize("damage", [change, remove, add, spoil_the_record])
def test_a_damaged_stage_is_built_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    folder = tmp_path / "stage"
    run_stage("s", folder, inputs={}, build=writes("good"), progress=QUIET)
    damage(folder)
    assert not run_stage("s", folder, inputs={}, build=writes("good"), progress=QUIET).reused
    assert sorted(path.name for path in folder.iterdir()) == ["file name.txt", "stage.json"]


def test_a_stage_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    run_stage("s", folder, inputs={"a": 1}, build=writes("good"), progress=QUIET)

    def interrupted(temporary: Path) -> None:
        (temporary / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stage("s", folder, inputs={"a": 2}, build=interrupted, progress=QUIET)
    assert find_stage("s", folder, key_of({"a": 1}))
    assert list(tmp_path.iterdir()) == [folder]


def test_the_record_says_what_went_in_and_what_came_out(tmp_path: Path) -> None:
    run_stage("s", tmp_path / "stage", inputs={"a": [1, "x"]}, build=writes("text"), progress=QUIET)
    record = json.loads((tmp_path / "stage" / "stage.json").read_text())
    assert record["inputs"] == {"a": [1, "x"]}
    assert record["outputs"][0]["name"] == "file name.txt"
    assert record["outputs"][0]["size"] == 4


def test_a_second_run_is_told_who_is_there_or_waits(tmp_path: Path) -> None:
    program = f"""
import sys, time
from pathlib import Path
from release.progress import Progress
from release.stage import exclusive
with exclusive(Path({str(tmp_path)!r}), wait=True, progress=Progress(quiet=True)):
    print("held", flush=True)
    time.sleep(1.0)
"""
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with (
        pytest.raises(BrokenEnvironment, match=f"Process {holder.pid} is already working"),
        exclusive(tmp_path, wait=False, progress=QUIET),
    ):
        pass
    started = time.monotonic()
    with exclusive(tmp_path, wait=True, progress=QUIET):
        assert time.monotonic() - started > 0.2
    holder.wait()
