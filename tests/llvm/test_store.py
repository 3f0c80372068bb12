"""The store: what comes out is what went in, or nothing."""

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from release.artifacts import sha256_of, sha256_of_tree, write_atomically
from release.llvm.build import keep
from release.llvm.pack import pack, unpack
from release.llvm.store import ARCHIVE, DIGEST, DirectoryStore
from tests.llvm.conftest import Case, Notes

KEY, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    for name in ("lib/libOne.a", "lib/two/" + "long" * 40 + ".h", "bin/tool"):
        write_atomically(folder / name, os.urandom(3_000_000))
    (folder / "bin/tool").chmod(0o700)
    (folder / "bin/other").symlink_to("tool")
    (folder / "empty").mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(folder=tmp_path / "store", progress=Notes())


def test_what_comes_out_is_what_went_in(tree: Path, store: DirectoryStore, tmp_path: Path) -> None:
    store.put(KEY, tree)
    into = tmp_path / "restored"
    assert store.get(KEY, into)
    assert sha256_of_tree(into) == sha256_of_tree(tree)
    assert os.access(into / "bin/tool", os.X_OK) and not os.access(into / "lib/libOne.a", os.X_OK)
    assert (into / "empty").is_dir()
    # Built with what is older than its results, nothing would be built again.
    assert (into / "lib/libOne.a").stat().st_mtime > (store.entry(KEY) / ARCHIVE).stat().st_mtime
    assert not store.get(OTHER, tmp_path / "nothing") and not (tmp_path / "nothing").exists()


def test_the_same_files_are_the_same_bytes(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(tree, tmp_path / "first", key=KEY)
    for path in tree.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    (tree / "lib/libOne.a").chmod(0o600)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(5)))
    pack(tree, tmp_path / "second", key=KEY)
    assert sha256_of(tmp_path / "first") == sha256_of(tmp_path / "second")


def crafted(archive: Path, *members: tarfile.TarInfo, label: bytes | None = None) -> None:
    """Write an archive that ``pack`` would not write, with a digest that is right."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        first = tarfile.TarInfo("triton-wasm.json")
        label = json.dumps({"key": KEY}).encode() if label is None else label
        first.size = len(label)
        tar.addfile(first, io.BytesIO(label))
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    archive.write_bytes(zstandard.compress(content.getvalue()))
    (archive.parent / DIGEST).write_text(f"{sha256_of(archive)}  {ARCHIVE}\n")


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    made.size = 1 if kind == tarfile.REGTYPE else 0
    return made


def truncated_with_its_digest(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-1000])
    (archive.parent / DIGEST).write_text(f"{sha256_of(archive)}  {ARCHIVE}\n")


def flip(archive: Path) -> None:
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)


def foreign(archive: Path) -> None:
    pack(archive.parents[2] / "tree", archive, key=OTHER)
    (archive.parent / DIGEST).write_text(f"{sha256_of(archive)}  {ARCHIVE}\n")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-1000]), "not the one that was written"),
    "truncated before its digest": (truncated_with_its_digest, "damaged"),
    "one bit": (flip, "not the one that was written"),
    "empty": (lambda path: path.write_bytes(b""), "not the one that was written"),
    "no digest": (lambda path: (path.parent / DIGEST).unlink(), "cannot be read"),
    "no archive": (lambda path: path.unlink(), "cannot be read"),
    "a digest that is no text": (lambda path: (path.parent / DIGEST).write_bytes(b"\xff"), "cannot be read"),
    "an empty digest": (lambda path: (path.parent / DIGEST).write_bytes(b""), "not the one"),
    "foreign": (foreign, "of another key, bbbb"),
    "no label": (lambda path: crafted(path, label=b""), "damaged"),
    "a label of another form": (lambda path: crafted(path, label=b"[]"), "damaged"),
    "out by name": (lambda path: crafted(path, member("files/../../outside")), "leads out"),
    "absolute": (lambda path: crafted(path, member("/outside")), "leads out"),
    "beside": (lambda path: crafted(path, member("outside")), "leads out"),
    "a link out": (lambda path: crafted(path, member("files/a", tarfile.SYMTYPE, "../..")), "neither a file"),
    "a hard link": (lambda path: crafted(path, member("files/a", tarfile.LNKTYPE, "/etc/passwd")), "neither a file"),
    "a device": (lambda path: crafted(path, member("files/a", tarfile.CHRTYPE)), "neither a file"),
    "twice": (lambda path: crafted(path, member("files/a"), member("files/a")), "damaged"),
    "a file for a folder": (lambda path: crafted(path, member("files/a"), member("files/a/b")), "damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_bad_entry_is_reported_in_one_line_removed_and_not_used(
    tree: Path, store: DirectoryStore, tmp_path: Path, damage: str
) -> None:
    store.put(KEY, tree)
    do, reason = DAMAGES[damage]
    do(store.entry(KEY) / ARCHIVE)
    assert not store.get(KEY, tmp_path / "into" / "restored")
    assert list((tmp_path / "into").glob("*")) == []
    assert not (tmp_path / "outside").exists() and not (tmp_path / "into" / "outside").exists()
    assert not store.entry(KEY).exists()
    assert isinstance(store.progress, Notes)
    assert len(store.progress.lines) == 1 and reason in store.progress.text
    store.put(KEY, tree)
    assert store.get(KEY, tmp_path / "into" / "restored")


def test_a_damaged_entry_is_built_again(built: Case) -> None:
    archive = built.folder / "store" / built.build().key / ARCHIVE
    good = sha256_of(archive)
    flip(archive)
    built.build(work="third")
    assert "is not used" in built.notes.text
    # The rebuilt libraries are the same, and so is what is kept of them.
    assert sha256_of(archive) == good


def test_a_store_without_room_does_not_cost_the_build(tree: Path, store: DirectoryStore) -> None:
    write_atomically(store.folder, "a file where a folder should be")
    notes = Notes()
    keep(store, KEY, tree, notes)
    assert "not kept in the store" in notes.text


def test_unpack_refuses_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(Exception, match="it is damaged"):
        unpack(tmp_path / "text", tmp_path / "into", key=KEY)
