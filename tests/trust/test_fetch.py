"""A release is fetched from an address or a tag, by its own list, and from nowhere else."""

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from release.errors import Finding, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.progress import Progress
from release.trust.fetch import fetch_release
from release.trust.root import root_from
from release.trust.verify import verify_release
from tests.trust.conftest import Signing

QUIET = Progress(quiet=True)


@pytest.fixture
def published(signing: Signing, dist: Path, tmp_path: Path) -> Iterator[str]:
    """A signed release where GitHub has it: SERVER/OWNER/NAME/releases/download/TAG/FILE."""
    signing.sign(dist)
    shutil.copytree(dist, tmp_path / "web" / "owner" / "name" / "releases" / "download" / "v1.0.0")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "web"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_by_address_and_by_tag(
    published: str, dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signing: Signing
) -> None:
    identity = signing.sign(dist).identity
    root = root_from(signing.sigstore.trust_config)
    address = f"{published}/owner/name/releases/download/v1.0.0"
    monkeypatch.setenv("GITHUB_SERVER_URL", published)
    for count, place in enumerate((address, "v1.0.0")):
        folder = fetch_release(place, tmp_path / str(count), repository="owner/name", progress=QUIET)
        assert names(folder) == names(dist)
        assert verify_release(folder, identity=identity, root=root).name == "exprc"
    assert fetch_release(str(dist), tmp_path / "unused", progress=QUIET) == dist


def test_a_file_that_is_missing_is_named(published: str, tmp_path: Path) -> None:
    where = tmp_path / "web" / "owner" / "name" / "releases" / "download" / "v1.0.0"
    (where / "provenance.sigstore.json").unlink()
    with pytest.raises(Finding, match=r"provenance\.sigstore\.json answered 404"):
        fetch_release(f"{published}/owner/name/releases/download/v1.0.0/", tmp_path / "into", progress=QUIET)


@pytest.mark.parametrize("line", ["../outside", "/etc/passwd", "a/b", ".hidden", "", "a b"])
def test_a_list_leads_nowhere_else(published: str, tmp_path: Path, line: str) -> None:
    where = tmp_path / "web" / "owner" / "name" / "releases" / "download" / "v1.0.0"
    (where / CHECKSUMS).write_text(f"{'0' * 64}  {line}\n")
    with pytest.raises(Finding, match="no digest of a file"):
        fetch_release(f"{published}/owner/name/releases/download/v1.0.0/", tmp_path / "into", progress=QUIET)
    assert names(tmp_path / "into") == {CHECKSUMS}


@pytest.mark.parametrize(("place", "repository"), [("v1", None), ("v1", "no-owner"), ("../v1", "a/b"), ("v 1", "a/b")])
def test_a_place_that_is_none_is_refused(
    place: str, repository: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    with pytest.raises(WrongUsage, match="no folder"):
        fetch_release(place, tmp_path / "into", repository=repository, progress=QUIET)
