"""What upstream has by now is asked of npm and of a repository, and no answer is no list without a version."""

import base64
import hashlib
import io
import json
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.pins.model import PinSet
from release.pins.news import newest
from release.progress import Progress
from release.toolchain.git import remote_tags, resolve_remote
from release.toolchain.pyodide import find_pyodide, install_pyodide, pyodide_versions
from tests.toolchain.stand_ins import CLOSED

QUIET = Progress(quiet=True)
VERSIONS = ["0.28.0", "0.29.0", "0.29.1", "314.0.0", "315.0.0-alpha.2"]
LOCK = {"info": {"python": "3.15.1", "abi_version": "2027_1", "platform": "emscripten_7_0_1"}, "packages": {}}


class Registry(ThreadingHTTPServer):
    """An npm registry on loopback; ``answers`` has a status and a body for each path, and anything else is a 404."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def lay(self, *versions: str, lock: object = LOCK) -> None:
        """Have Pyodide in these versions, each with a package that holds just what is read."""
        described: dict[str, Any] = {}
        for version in versions:
            path, content = f"/pyodide/-/pyodide-{version}.tgz", packed(version, lock)
            self.answers[path] = (200, content)
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
            dist = {"tarball": self.url + path, "integrity": integrity, "shasum": hashlib.sha1(content).hexdigest()}  # noqa: S324 - npm's
            described[version] = {"name": "pyodide", "version": version, "dist": dist}
        self.say({"name": "pyodide", "dist-tags": {"latest": versions[0]} if versions else {}, "versions": described})

    def say(self, content: object, status: int = 200) -> None:
        """Answer with this when asked about Pyodide."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.answers["/pyodide"] = (status, body)


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, body = self.server.answers.get(self.path, (404, b'{"error": "Not found"}'))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def packed(version: str, lock: object) -> bytes:
    """Return an npm package of a Pyodide."""
    texts = {"package.json": {"name": "pyodide", "version": version}, "pyodide-lock.json": lock}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in texts.items():
            data = json.dumps(content).encode()
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@contextmanager
def registry_on_loopback(patch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """Run a registry that npm asks until the block ends."""
    with Registry() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        patch.setenv("npm_config_registry", server.url)
        yield server
        server.shutdown()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    with registry_on_loopback(monkeypatch) as server:
        yield server


def test_npm_names_every_version_and_the_newest_is_chosen_from_them(registry: Registry) -> None:
    registry.lay(*VERSIONS)
    assert sorted(pyodide_versions()) == sorted(VERSIONS)
    assert registry.asked == ["/pyodide"]
    # A pinned release is followed by releases, a release before a release by whatever is newer.
    for than, what in (("0.29.0", "314.0.0"), ("314.0.0", None), ("315.0.0-alpha.1", "315.0.0-alpha.2")):
        found = newest("Pyodide", pyodide_versions(), than)
        assert (found.what if found else None) == what


def test_a_single_version_is_a_list_too(registry: Registry) -> None:
    registry.lay("0.29.0")
    assert pyodide_versions() == ["0.29.0"]


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        ({"name": "pyodide", "dist-tags": {}, "versions": {}}, 200, "."),
        ({"error": "Not found"}, 404, "404"),
        ({"error": "Forbidden"}, 403, "403 Forbidden"),
        (b"<html>Please log in to the network.</html>", 200, "."),
        (b"", 200, "."),
        ([], 200, "."),
        (b"upstream is away", 503, "503"),
    ],
)
def test_an_answer_that_names_no_version_is_no_list_of_none(
    registry: Registry, content: object, status: int, said: str
) -> None:
    registry.say(content, status)
    with pytest.raises(BrokenEnvironment, match=f"npm cannot say which versions of Pyodide there are: .*{said}") as no:
        pyodide_versions()
    assert "\n" not in str(no.value) and "registry" in no.value.remedy


def test_no_registry_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", CLOSED)
    with pytest.raises(BrokenEnvironment, match=r"which versions of Pyodide there are: .*ECONNREFUSED"):
        pyodide_versions()


def test_another_pyodide_says_what_it_is_built_with(registry: Registry, pins: PinSet, tmp_path: Path) -> None:
    registry.lay("0.29.0", "316.0.0-alpha.1")
    found = find_pyodide("316.0.0-alpha.1", pins, tmp_path, QUIET)
    assert (found.pin.version, found.pin.python, found.pin.abi) == ("316.0.0-alpha.1", "3.15.1", "2027_1")
    assert found.emscripten == "7.0.1"
    # What was found is what is installed from then on, without asking again.
    asked = len(registry.asked)
    folder = install_pyodide(pins.model_copy(update={"pyodide": found.pin}), tmp_path, QUIET)
    assert json.loads((folder / "package.json").read_text())["version"] == "316.0.0-alpha.1"
    assert len(registry.asked) == asked


@pytest.mark.parametrize("version", ["0.30.0", "latest-and-greatest", "1 || 2"])
def test_a_version_that_npm_has_not_is_wrong_usage(
    registry: Registry, pins: PinSet, tmp_path: Path, version: str
) -> None:
    registry.lay("0.29.0")
    with pytest.raises(WrongUsage, match=r"^npm has no pyodide@") as refusal:
        find_pyodide(version, pins, tmp_path, QUIET)
    assert version in str(refusal.value) and refusal.value.remedy
    assert not (tmp_path / "toolchain").exists()


@pytest.mark.parametrize(
    "lock",
    [
        {},
        {"info": {"python": "3.12.1", "platform": "emscripten_3_1_58"}},
        {"info": {"python": "3.12", "abi_version": "2024_0", "platform": "emscripten_3_1_58"}},
        {"info": {"python": 3, "abi_version": "2024_0", "platform": "emscripten_3_1_58"}},
    ],
)
def test_a_pyodide_that_does_not_say_what_it_is_cannot_be_pinned(
    registry: Registry, pins: PinSet, tmp_path: Path, lock: Mapping[str, object]
) -> None:
    registry.lay("0.29.0", lock=lock)
    with pytest.raises(WrongUsage, match=r"^Pyodide 0\.29\.0 does not say what it is built with") as refusal:
        find_pyodide("0.29.0", pins, tmp_path, QUIET)
    assert "Write the pin set by hand" in refusal.value.remedy


@pytest.mark.parametrize("lock", [[], {"info": None}, {"info": {**LOCK["info"], "platform": None}}])
def test_a_lock_file_of_another_shape_is_told_in_a_sentence(
    registry: Registry, pins: PinSet, tmp_path: Path, lock: object
) -> None:
    registry.lay("0.29.0", lock=lock)
    with pytest.raises(WrongUsage, match="does not say what it is built with"):
        find_pyodide("0.29.0", pins, tmp_path, QUIET)


def test_a_package_that_is_not_what_its_registry_says_is_not_taken(
    registry: Registry, pins: PinSet, tmp_path: Path
) -> None:
    registry.lay("0.29.0")
    registry.answers["/pyodide/-/pyodide-0.29.0.tgz"] = (200, packed("0.29.0", {"info": {}}))
    with pytest.raises((BrokenEnvironment, Finding), match=r"pyodide@0\.29\.0") as refusal:
        find_pyodide("0.29.0", pins, tmp_path, QUIET)
    assert "integrity" in str(refusal.value)
    assert not list((tmp_path / "toolchain" / "pyodide").glob("0.29.0-*"))


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    done = subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A repository with two commits, a branch, and tags of every kind."""
    work, bare = tmp_path / "work", tmp_path / "a bare.git"
    work.mkdir()
    git(work, "init", "--quiet", "--initial-branch=main")
    for number, tag in enumerate(("v3.6.0", "v3.10.0", "v4.0.0rc1", "nightly/2026")):
        git(work, "commit", "--quiet", "--allow-empty", "--message", str(number))
        git(work, "tag", tag)
    git(work, "tag", "--annotate", "--message", "A release.", "v3.9.1", "v3.6.0")
    git(work, "branch", "release/3.6.x", "v3.6.0")
    git(work, "clone", "--quiet", "--bare", str(work), str(bare))
    return bare


def test_a_repository_names_its_tags_and_no_branches(bare: Path) -> None:
    tags = remote_tags(str(bare))
    # An annotated tag is named once, and not by what it leads to as well.
    assert sorted(tags) == ["nightly/2026", "v3.10.0", "v3.6.0", "v3.9.1", "v4.0.0rc1"]
    for than, what in (("3.6.0", "v3.10.0"), ("3.10.0", None), ("4.0.0a1", "v4.0.0rc1")):
        found = newest("Triton", tags, than)
        assert (found.what if found else None) == what


def test_a_repository_without_a_tag_names_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "empty.git")
    assert remote_tags(str(tmp_path / "empty.git")) == []
    assert newest("Triton", [], "3.6.0") is None


@pytest.mark.parametrize("where", ["{tmp}/nowhere.git", f"{CLOSED}/owner/name"])
def test_a_repository_that_is_not_there_is_no_repository_without_tags(tmp_path: Path, where: str) -> None:
    repository = where.format(tmp=tmp_path)
    for ask, what in ((remote_tags, "its tags"), (lambda url: resolve_remote(url, "main"), "main")):
        with pytest.raises(BrokenEnvironment, match=f"^{repository} cannot be asked for {what}: .+[^.]\\.$") as no:
            ask(repository)
        assert "network" in no.value.remedy


def test_a_name_is_followed_to_its_commit_and_an_unknown_one_to_none(bare: Path) -> None:
    head, first = git(bare, "rev-parse", "main"), git(bare, "rev-parse", "v3.6.0")
    assert resolve_remote(str(bare), "main") == head
    assert resolve_remote(str(bare), "release/3.6.x") == first
    assert resolve_remote(str(bare), "v3.9.1") == first != git(bare, "rev-parse", "v3.9.1")
    assert resolve_remote(str(bare), "a" * 40) == "a" * 40
    for unknown in ("v3", "refs/heads/main", head[:12], "", "*"):
        assert resolve_remote(str(bare), unknown) is None, unknown


def test_a_branch_and_a_tag_of_one_name_are_the_tag(bare: Path) -> None:
    git(bare, "branch", "v3.6.0", "main")
    assert resolve_remote(str(bare), "v3.6.0") == git(bare, "rev-parse", "refs/tags/v3.6.0")
