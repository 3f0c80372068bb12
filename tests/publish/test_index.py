"""A wheel goes to an index once, is what is there afterwards, and nothing is sent that the index would not take."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from release.artifacts import sha256_of
from release.errors import BrokenEnvironment, Finding, Problem, WrongUsage
from release.package.model import Package
from release.progress import Progress
from release.publish.index import MAXIMUM_SIZE, PYPI, Index, Indexed, publish_to_index
from release.retry import Retry
from tests.publish.conftest import Impatient
from tests.services.index import (
    FAULTS,
    JOB_IDENTITY,
    MINTED,
    PASSWORD,
    REQUEST_TOKEN,
    USER,
    Front,
    start_devpi,
    start_front,
    start_pypiserver,
)


@pytest.fixture(scope="module", params=["pypiserver", "devpi"])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    start = {"pypiserver": start_pypiserver, "devpi": start_devpi}[request.param]
    with start(tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(scope="module")
def running_front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    folder = tmp_path_factory.mktemp("front")
    with start_pypiserver(folder) as pypiserver, start_front(pypiserver, folder) as front:
        yield front


@pytest.fixture
def front(running_front: Front) -> Front:
    running_front.trusted = True
    running_front.forget()
    return running_front


@pytest.fixture
def folder(sample_package: Package, tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    folder.mkdir()
    shutil.copy(sample_package.wheel, folder)
    return folder


@pytest.fixture
def pypi(front: Front, monkeypatch: pytest.MonkeyPatch) -> Front:
    """PyPI, for a job without a token that may ask for an identity."""
    for name, value in front.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TWINE_USERNAME")
    monkeypatch.setenv("TWINE_PASSWORD", "")  # as a secret that is not set
    return front


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


def test_an_index_that_tells_the_token_again(front: Front, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    renamed(folder, "2.2.0")
    front.forget({3: "400"})
    with pytest.raises(Finding, match=rf"refuses exprc.*{USER}:\*\*\*") as caught:
        publish(folder, front.index)
    assert PASSWORD not in str(caught.value) + "".join(capfd.readouterr())


def test_a_token_for_nobody_who_listens(monkeypatch: pytest.MonkeyPatch, front: Front, folder: Path) -> None:
    with pytest.raises(WrongUsage, match="is not https"):
        Index(upload="http://example.com/legacy/", simple="https://example.com/simple/")
    elsewhere = Index(upload="http://example.com/legacy/", simple="http://example.com/simple/")
    with pytest.raises(WrongUsage, match="neither https nor on this machine"):
        publish(folder, elsewhere)
    with pytest.raises(WrongUsage, match="a password in it") as caught:
        Index(upload=f"https://someone:{PASSWORD}@example.com/", simple="https://example.com/simple/")
    assert PASSWORD not in str(caught.value) + caught.value.remedy
    # A program of twine's name in the folder that we are called from would see it too.
    (folder / "twine.py").write_text("raise SystemExit('mine')")
    monkeypatch.chdir(folder)
    renamed(folder, "2.1.0")
    assert publish(folder, front.index).outcome == "published"


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


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_goes_wrong_the_wheel_is_there_once(front: Front, folder: Path, fault: str) -> None:
    wheel = renamed(folder, f"5.0.{FAULTS.index(fault)}")
    at = (1, 3, 6, 8) if fault == "half" else (1, 3, 5, 8, 10)  # the answer to what is sent has no halves
    page, file = "GET /simple/exprc/", f"GET /packages/{wheel.name}"
    # Each request goes wrong at least once: what is read before, what is sent, and both that are read back.
    front.forget(dict.fromkeys(at, fault))
    done = publish(folder, front.index)
    assert done.outcome == "published"
    assert front.seen[:5] == [page, page, page, page, "POST /"] and front.seen[-1] == file
    assert front.seen.count("POST /") == (2 if fault in ("503", "429", "reset") else 1)
    assert len(front.seen) > at[-1]
    front.forget()
    assert publish(folder, front.index).outcome == "was there"
    assert front.seen == [page]


def test_an_index_that_stays_down_is_said_so(front: Front, folder: Path) -> None:
    renamed(folder, "6.0.0")
    front.forget(dict.fromkeys(range(1, 20), "503"))
    with pytest.raises(BrokenEnvironment, match="answered 503, 8 times"):
        publish(folder, front.index)
    assert not [request for request in front.seen if request.startswith("POST")]


def test_another_run_that_was_faster(front: Front, folder: Path) -> None:
    wheel = renamed(folder, "7.0.0")
    publish(folder, front.index)
    # It looks twice and the page is an old one; then the index has the file.
    front.forget({1: "404", 2: "404"})
    assert publish(folder, front.index).outcome == "was there"
    wheel.write_bytes(wheel.read_bytes()[:-2] + b"\x01\x00#")
    front.forget({1: "404", 2: "404"})
    with pytest.raises(Finding, match="has another"):
        publish(folder, front.index)
    assert front.seen.count("POST /") == 1


def test_what_is_served_is_looked_at_and_not_only_its_digest(front: Front, folder: Path) -> None:
    renamed(folder, "8.0.0")
    front.forget({5: "other bytes"})
    with pytest.raises(Finding, match="has another exprc"):
        publish(folder, front.index)


def test_an_index_that_gives_nothing_to_read(front: Front, folder: Path) -> None:
    front.forget({1: "403"})
    with pytest.raises(BrokenEnvironment, match="answered 403"):
        publish(folder, front.index)


def test_a_trusted_publisher_needs_no_token(pypi: Front, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wheel = renamed(folder, "9.0.0")
    done = publish(folder, PYPI)
    assert (done.outcome, done.url) == ("published", f"https://pypi.org/packages/{wheel.name}")
    assert "POST /_/oidc/mint-token" in pypi.seen and "POST /legacy/" in pypi.seen
    assert publish(folder, PYPI).outcome == "was there"
    said = "".join(capfd.readouterr())
    assert not [secret for secret in (REQUEST_TOKEN, JOB_IDENTITY, MINTED) if secret in said]


def test_a_job_that_is_no_trusted_publisher(pypi: Front, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed(folder, "9.1.0")
    pypi.trusted = False
    with pytest.raises(BrokenEnvironment, match=r"trusted publisher \(.*no corresponding publisher") as caught:
        publish(folder, PYPI)
    assert not [secret for secret in (REQUEST_TOKEN, JOB_IDENTITY) if secret in str(caught.value)]
    assert "POST /legacy/" not in pypi.seen
    # The identity is for PyPI, and nobody else knows what to do with it.
    with pytest.raises(BrokenEnvironment, match="TWINE_PASSWORD is not set"):
        publish(folder, pypi.index)
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    with pytest.raises(BrokenEnvironment, match="this is no trusted publisher"):
        publish(folder, PYPI)


def test_a_wrong_token_for_pypi(pypi: Front, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed(folder, "9.2.0")
    monkeypatch.setenv("TWINE_PASSWORD", "wrong-and-secret")
    with pytest.raises(BrokenEnvironment, match="refuses the token") as caught:
        publish(folder, PYPI)
    assert "secret" not in str(caught.value) + caught.value.remedy
