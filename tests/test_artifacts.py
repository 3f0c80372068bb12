import hashlib
from pathlib import Path

import pytest

from release.artifacts import Artifact, replacing, replacing_folder, sha256_of_tree, write_atomically


def test_an_artifact_is_known_by_size_and_digest(tmp_path: Path) -> None:
    path = tmp_path / "a file.txt"
    path.write_bytes(b"content")
    assert Artifact.of(path) == Artifact(name="a file.txt", size=7, sha256=hashlib.sha256(b"content").hexdigest())


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_fails_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with replacing_folder(folder) as temporary:
        (temporary / "old").touch()
    with pytest.raises(KeyboardInterrupt), replacing_folder(folder) as temporary:
        (temporary / "half").touch()
        raise KeyboardInterrupt
    assert [path.name for path in folder.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [folder]


def test_the_digest_of_a_tree_sees_names_and_contents_and_no_bytecode(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    first = sha256_of_tree(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "one.pyc").write_text("bytecode")
    assert sha256_of_tree(tmp_path) == first
    (tmp_path / "one").rename(tmp_path / "two")
    second = sha256_of_tree(tmp_path)
    (tmp_path / "two").write_text("2")
    assert len({first, second, sha256_of_tree(tmp_path)}) == 3
