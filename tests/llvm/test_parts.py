"""A packed LLVM comes out of its parts as it went in, or not at all."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from release.artifacts import sha256_of
from release.errors import Finding
from release.llvm.parts import INDEX, PART_SIZE, join, split
from release.publish.plan import MAXIMUM_SIZE

KEY = "a1" * 32


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    archive, folder = tmp_path / "llvm.tar.zst", tmp_path / "parts"
    folder.mkdir()
    archive.write_bytes(bytes(range(256)) * 41)
    index = split(archive, folder, key=KEY, part_size=4000)
    assert [part.size for part in index.parts] == [4000, 4000, 2496]
    return folder


def test_what_was_split_is_joined(parts: Path, tmp_path: Path) -> None:
    join(parts, tmp_path / "joined", key=KEY)
    assert sha256_of(tmp_path / "joined") == sha256_of(tmp_path / "llvm.tar.zst")


def test_the_same_archive_gives_the_same_parts(parts: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    split(tmp_path / "llvm.tar.zst", again, key=KEY, part_size=4000)
    assert {p.name: sha256_of(p) for p in parts.iterdir()} == {p.name: sha256_of(p) for p in again.iterdir()}


def test_an_empty_archive_has_no_parts(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(Finding, match="empty archive"):
        split(tmp_path / "empty", tmp_path, key=KEY)
    assert not (tmp_path / INDEX).exists()


def test_a_release_holds_such_parts() -> None:
    assert PART_SIZE <= MAXIMUM_SIZE < 2 << 30


def swap(folder: Path) -> None:
    first, second = folder / "llvm.tar.zst.000", folder / "llvm.tar.zst.001"
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)


def reorder(folder: Path) -> None:
    index = json.loads((folder / INDEX).read_text())
    index["parts"].reverse()
    (folder / INDEX).write_text(json.dumps(index))


def repeat(folder: Path) -> None:
    index = json.loads((folder / INDEX).read_text())
    index["parts"].append(index["parts"][0])
    (folder / INDEX).write_text(json.dumps(index))


def outside(folder: Path) -> None:
    index = json.loads((folder / INDEX).read_text())
    index["parts"][0]["name"] = "../llvm.tar.zst"
    (folder / INDEX).write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: (f / "llvm.tar.zst.001").unlink(), r"llvm\.tar\.zst\.001 is not there"),
        (lambda f: (f / "llvm.tar.zst.002").write_bytes(b"short"), "5 bytes that are not the 2,496"),
        (lambda f: (f / "llvm.tar.zst.000").open("ab").write(b"more"), "4,004 bytes that are not the 4,000"),
        (swap, r"llvm\.tar\.zst\.000 has 4,000 bytes that are not"),
        (reorder, "not the archive that was split"),
        (repeat, "not the archive that was split"),
        (outside, "cannot be read"),
        (lambda f: (f / INDEX).write_text("{}"), "cannot be read"),
        (lambda f: (f / INDEX).unlink(), "cannot be read"),
    ],
)
def test_what_is_not_right_gives_no_archive(
    parts: Path, tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    damage(parts)
    with pytest.raises(Finding, match=said):
        join(parts, tmp_path / "joined", key=KEY)
    assert not (tmp_path / "joined").exists()


def test_parts_of_another_key_are_refused(parts: Path, tmp_path: Path) -> None:
    with pytest.raises(Finding, match="another key"):
        join(parts, tmp_path / "joined", key="b2" * 32)
