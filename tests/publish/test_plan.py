"""A folder is looked at before anything is sent."""

from pathlib import Path

import pytest

from release.errors import Finding, Problem, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.publish.marker import Marker
from release.publish.plan import is_prerelease, read_build
from tests.publish.conftest import make_release


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_release(tmp_path / "dist")


def test_signatures_do_not_make_another_build(folder: Path) -> None:
    before = read_build(folder).digest
    (folder / "manifest.json.sigstore.json").write_text("{}")
    assert read_build(folder).digest == before


@pytest.mark.parametrize(
    ("name", "content", "kind", "said"),
    [
        ("manifest.json", b"other", Finding, "manifest.json differs"),
        ("extra.zip", b"x", Finding, "extra.zip is not listed"),
        ("with space.zip", b"x", WrongUsage, "would rename"),
        (".hidden", b"x", WrongUsage, "would rename"),
        ("dot.", b"x", WrongUsage, "would rename"),
        ("empty.zip", b"", WrongUsage, "at least 1"),
        ("MANIFEST.json", b"x", WrongUsage, "upper and lower case"),
        (CHECKSUMS, b"no checksum\n", WrongUsage, "no checksum"),
    ],
)
def test_what_cannot_be_published_is_refused(
    folder: Path, name: str, content: bytes, kind: type[Problem], said: str
) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(kind, match=said):
        read_build(folder)


def test_links_and_folders_are_refused(folder: Path) -> None:
    (folder / "link.zip").symlink_to(folder / "manifest.json")
    with pytest.raises(WrongUsage, match="not a plain file"):
        read_build(folder)


def test_a_missing_file_and_no_release_at_all(folder: Path, tmp_path: Path) -> None:
    (folder / "manifest.json").unlink()
    with pytest.raises(Finding, match=r"manifest\.json is missing"):
        read_build(folder)
    with pytest.raises(WrongUsage, match=CHECKSUMS):
        read_build(tmp_path)


def test_a_marker_that_notes_quote_is_not_ours() -> None:
    ours, quoted = Marker.new("1" * 64), Marker.new("2" * 64)
    assert Marker.find(ours.attach(quoted.attach("Notes."))) == ours
    assert Marker.find("Notes without one.") is None


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("v1.2.3", False),
        ("v3.6.0+git50b2f739", False),
        ("v3.6.0+git-1", False),
        ("v1.0rc1", True),
        ("v1.0.dev3", True),
        ("llvm-1a2b", True),
        ("v1.0b2+git123", True),
    ],
)
def test_which_tags_are_before_a_release(tag: str, expected: bool) -> None:
    assert is_prerelease(tag) is expected
