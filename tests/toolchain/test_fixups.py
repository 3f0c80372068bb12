"""Fix-ups on small trees, and those of the pin sets on what they say of themselves."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from release.errors import Finding
from release.pins.model import Edit, FixupPin
from release.toolchain.fixups import apply_fixups, check_fixups
from release.toolchain.sources import Source

TEXT = "int width() { return sizeof(long) * 8; }\r\nint other() { return 1; }\r\n"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    root = tmp_path / "the sources"
    (root / "lib").mkdir(parents=True)
    (root / "lib" / "width.cpp").write_bytes(TEXT.encode())
    (root / "lib" / "same.cpp").write_text("int same;\n")
    (root / "tool").write_text("#!/bin/sh\n")
    (root / "tool").chmod(0o755)
    (root / "link").symlink_to("lib/same.cpp")
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("")
    return Source(name="triton", path=root, commit=None, digest="sha256:1", given=True)


def fixup(*edits: tuple[str, str], file: str = "lib/width.cpp", name: str = "width") -> FixupPin:
    made = tuple(Edit(old=old, new=new) for old, new in edits)
    return FixupPin(name=name, reason="long has 32 bits.", file=file, edits=made)


WIDTH = fixup(("sizeof(long) * 8", "64"))


def test_with_no_fixup_the_sources_are_taken_as_they_are(source: Source, tmp_path: Path) -> None:
    assert apply_fixups([], source, tmp_path / "fixed") == source.path
    assert not (tmp_path / "fixed").exists()


def test_a_fixup_is_made_on_a_copy_in_which_all_else_is_a_link(source: Source, tmp_path: Path) -> None:
    copy = apply_fixups([WIDTH], source, tmp_path / "work" / "fixed")
    assert (copy / "lib/width.cpp").read_bytes() == TEXT.replace("sizeof(long) * 8", "64").encode()
    assert (source.path / "lib/width.cpp").read_bytes() == TEXT.encode()
    assert (copy / "lib/same.cpp").samefile(source.path / "lib/same.cpp")
    assert (copy / "link").readlink() == Path("lib/same.cpp")
    assert os.access(copy / "tool", os.X_OK)
    assert not (copy / ".git").exists()


def test_where_no_link_can_be_made_files_are_copied(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("another file system")

    monkeypatch.setattr("os.link", refuse)
    copy = apply_fixups([WIDTH], source, tmp_path / "fixed")
    assert (copy / "lib/same.cpp").read_text() == "int same;\n"
    assert not (copy / "lib/same.cpp").samefile(source.path / "lib/same.cpp")
    assert os.access(copy / "tool", os.X_OK)


def test_fixups_and_edits_of_one_file_are_made_in_their_order(source: Source, tmp_path: Path) -> None:
    second = fixup(("return 64", "return 128"), ("return 1;", "return 2;"), name="other")
    copy = apply_fixups([WIDTH, second], source, tmp_path / "fixed")
    assert (copy / "lib/width.cpp").read_text() == "int width() { return 128; }\nint other() { return 2; }\n"


@pytest.mark.parametrize(
    ("edit", "file", "message"),
    [
        (("sizeof(size_t)", "8"), "lib/width.cpp", r"'sizeof\(size_t\)' occurs 0 times and not once"),
        (("return", "yield"), "lib/width.cpp", "'return' occurs 2 times and not once"),
        (("a", "b"), "lib/gone.cpp", "there is no such file"),
        (("a", "b"), "lib", "there is no such file"),
    ],
)
def test_a_fixup_that_no_longer_fits_is_refused(
    source: Source, tmp_path: Path, edit: tuple[str, str], file: str, message: str
) -> None:
    with pytest.raises(Finding, match=f"Fix-up late no longer fits {file}: {message}") as refusal:
        apply_fixups([WIDTH, fixup(edit, file=file, name="late")], source, tmp_path / "fixed")
    assert "remove it from the pin set" in refusal.value.remedy
    assert [path.name for path in tmp_path.iterdir()] == [source.path.name]


def test_a_fixup_is_not_made_twice(source: Source, tmp_path: Path) -> None:
    copy = apply_fixups([WIDTH], source, tmp_path / "fixed")
    with pytest.raises(Finding, match="occurs 0 times"):
        check_fixups([WIDTH], copy)


@pytest.mark.parametrize("changed", ["sources", "copy"])
def test_the_copy_is_made_once_and_again_when_something_changed(source: Source, tmp_path: Path, changed: str) -> None:
    copy = apply_fixups([WIDTH], source, tmp_path / "fixed")
    first = copy.stat().st_ino, (copy / "lib/width.cpp").stat().st_mtime_ns
    apply_fixups([WIDTH], source, copy)
    assert (copy.stat().st_ino, (copy / "lib/width.cpp").stat().st_mtime_ns) == first
    unchanged = (copy / "lib/same.cpp").stat().st_mtime_ns
    if changed == "sources":
        source = replace(source, digest="sha256:2")
    else:
        (copy / "lib/width.cpp").write_text(TEXT)
    apply_fixups([WIDTH], source, copy)
    assert (copy / "lib/width.cpp").stat().st_mtime_ns != first[1]
    assert (copy / "lib/same.cpp").stat().st_mtime_ns == unchanged  # nothing to compile anew


def test_another_fixup_makes_another_copy(source: Source, tmp_path: Path) -> None:
    apply_fixups([WIDTH], source, tmp_path / "fixed")
    copy = apply_fixups([fixup(("sizeof(long)", "8"))], source, tmp_path / "fixed")
    assert (copy / "lib/width.cpp").read_bytes() == TEXT.replace("sizeof(long)", "8").encode()
