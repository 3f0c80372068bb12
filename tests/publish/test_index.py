"""A wheel goes to an index once, is what is there afterwards, and nothing is sent that the index would not take."""

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from release.artifacts import sha256_of
from release.errors import BrokenEnvironment, Finding, Problem, WrongUsage
from release.package.model import Package
from release.progress import Progress
from release.publish.index import MAXIMUM_SIZE, PYPI, Index, Indexed, publish_to_index
from release.retry import Retry
from tests.publish.conftest import Impatient
from tests.services.index import PASSWORD, USER, start_devpi, start_pypiserver


@pytest.fixture(scope="module", params=["pypiserver", "devpi"])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    start = {"pypiserver": start_pypiserver, "devpi": start_devpi}[request.param]
    with start(tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture
def folder(sample_package: Package, tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    folder.mkdir()
    shutil.copy(sample_package.wheel, folder)
    return folder


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINE_USERNAME", USER)
    monkeypatch.setenv("TWINE_PASSWORD", PASSWORD)
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", raising=False)


def publish(folder: Path, index: Index, dry_run: Path | None = None) -> Indexed:
    progress = Progress(quiet=True)
    retry = Retry(progress, clock=Impatient())
    return publish_to_index(folder, index=index, progress=progress, dry_run=dry_run, retry=retry)


def renamed(folder: Path, version: str) -> Path:
    """The same bytes under another version, which no index of these looks into."""
    wheel = next(folder.glob("*.whl"))
    return wheel.rename(wheel.with_name(wheel.name.replace("1.0.0", version)))


def test_once_and_again_and_with_other_bytes(index: Index, folder: Path) -> None:
    wheel = next(folder.glob("*.whl"))
    first = publish(folder, index)
    assert (first.outcome, first.wheel.sha256) == ("published", sha256_of(wheel))
    assert publish(folder, index).outcome == "was there"
    # Another archive comment is another file, and the same wheel to twine.
    data = wheel.read_bytes()
    wheel.write_bytes(data[:-2] + b"\x01\x00#")
    with pytest.raises(Finding, match=r"has another exprc-1\.0\.0"):
        publish(folder, index)


def test_a_wrong_token(index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed(folder, "2.0.0")
    monkeypatch.setenv("TWINE_PASSWORD", "wrong-and-secret")
    with pytest.raises(BrokenEnvironment, match="refuses the token") as caught:
        publish(folder, index)
    assert "secret" not in str(caught.value) + caught.value.remedy


def test_a_dry_run_sends_nothing(index: Index, folder: Path, tmp_path: Path) -> None:
    wheel = renamed(folder, "3.0.0")
    for _ in range(2):
        done = publish(folder, index, dry_run=tmp_path / "out")
        assert done.outcome == "dry run"
    assert sha256_of(tmp_path / "out" / "exprc" / wheel.name) == sha256_of(wheel)


def test_no_token(folder: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed(folder, "4.0.0")
    monkeypatch.delenv("TWINE_PASSWORD")
    with pytest.raises(BrokenEnvironment, match="TWINE_PASSWORD is not set"):
        publish(folder, index)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("exprc-1.0.0-cp315-cp315-linux_x86_64.whl", "is for linux_x86_64"),
        ("exprc-1.0.0-cp315-cp315-emscripten_4_0_9_wasm32.whl", "pyemscripten_YEAR_PATCH_wasm32"),
        ("exprc-1.0.0-cp315-cp315-pyodide_2026_5_wasm32.whl", "PEP 783"),
        ("exprc.whl", "is no name of a wheel"),
    ],
)
def test_a_wheel_that_no_index_takes(folder: Path, name: str, said: str) -> None:
    wheel = next(folder.glob("*.whl"))
    wheel.rename(folder / name)
    with pytest.raises(Finding, match=said):
        publish(folder, PYPI)


def test_a_wheel_that_is_too_large(folder: Path) -> None:
    with next(folder.glob("*.whl")).open("r+b") as file:
        file.truncate(MAXIMUM_SIZE + 1)
    with pytest.raises(Finding, match="100,000,001 bytes"):
        publish(folder, PYPI)


def test_a_version_between_releases_is_nothing_for_pypi(folder: Path) -> None:
    renamed(folder, "1.0.0+git1234567")
    with pytest.raises(Finding, match="takes no local version"):
        publish(folder, PYPI)


def test_a_wheel_that_twine_refuses(folder: Path) -> None:
    next(folder.glob("*.whl")).write_bytes(b"no archive")
    with pytest.raises(Finding, match="twine check refuses"):
        publish(folder, PYPI)


@pytest.mark.parametrize("count", [0, 2])
def test_a_folder_without_one_wheel(folder: Path, count: int) -> None:
    wheel = next(folder.glob("*.whl"))
    if count:
        shutil.copy(wheel, folder / wheel.name.replace("1.0.0", "2.0.0"))
    else:
        wheel.unlink()
    with pytest.raises(WrongUsage, match=f"has {count} wheels"):
        publish(folder, PYPI)


def test_an_index_that_is_down(folder: Path) -> None:
    index = Index(upload="http://127.0.0.1:1/", simple="http://127.0.0.1:1/simple/")
    with pytest.raises(Problem, match="ConnectionError"):
        publish(folder, index)


def test_an_index_that_stumbles(folder: Path, tmp_path: Path) -> None:
    answers = [503, 502, 200]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(answers.pop(0))
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><html><body></body></html>")

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{serving.server_port}/"
        done = publish(folder, Index(upload=url, simple=url), dry_run=tmp_path / "out")
        serving.shutdown()
    assert done.outcome == "dry run"
    assert answers == []
