"""From a release folder to a release that a consumer verifies, by the commands and nothing else."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from release.cli import main
from release.pipeline import Pipeline
from tests.services.github.service import TOKEN, GitHub, Repository, start_github
from tests.services.installed import Services, install_services
from tests.services.sigstore.service import Sigstore, github_claims, start_sigstore

TAG = "v1.0.0"


@pytest.fixture(scope="module")
def services(cache: Path) -> Services:
    return install_services(cache)


@pytest.fixture(scope="module")
def github(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHub]:
    with start_github(services, tmp_path_factory.mktemp("github")) as running:
        yield running


@pytest.fixture(scope="module")
def sigstore(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sigstore]:
    with start_sigstore(services, tmp_path_factory.mktemp("sigstore")) as running:
        yield running


@pytest.fixture
def dist(pipeline: Pipeline, tmp_path: Path) -> Path:
    pipeline.release(tmp_path / "released")
    return Path(shutil.copytree(tmp_path / "released", tmp_path / "dist"))


@pytest.fixture
def repository(github: GitHub, sigstore: Sigstore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Repository:
    """In a job of GitHub Actions for a tag of a repository."""
    repository = github.new_repository(tmp_path.name.replace("_", "-"))
    github.tag(repository, TAG)
    sigstore.become(github_claims(repository.name, commit=repository.commit))
    job = {
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_API_URL": github.url,
        "GITHUB_SERVER_URL": github.url,
        "GITHUB_REPOSITORY": repository.name,
        "GITHUB_SHA": repository.commit,
        **sigstore.environment,
    }
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    return repository


def test_sign_publish_and_verify(
    dist: Path, repository: Repository, sigstore: Sigstore, github: GitHub, capfd: pytest.CaptureFixture[str]
) -> None:
    root = ["--trust-root", str(sigstore.trust_config)]
    assert main(["sign", str(dist), "--trust-config", str(sigstore.trust_config)]) == 0
    assert main(["publish", "github", str(dist), "--tag", TAG]) == 0
    assert github.front.seen.requests == []  # a dry run is the default
    assert main(["publish", "doctor", str(dist), "--tag", TAG]) == 0
    assert "would fill a draft" in capfd.readouterr().out
    assert main(["publish", "github", str(dist), "--tag", TAG, "--no-dry-run"]) == 0
    assert main(["verify", TAG, *root]) == 0
    assert main(["verify", str(dist), "--tag", TAG, *root]) == 0
    address = f"{github.url}/{repository.name}/releases/download/{TAG}"
    assert main(["verify", address, "--tag", TAG, *root]) == 0
    said = capfd.readouterr()
    assert said.out.count("exprc 1.0.0 is what it says it is.") == 3
    assert repository.commit in said.out
    assert main(["verify", str(dist), "--tag", "v1.0.1", *root]) == 1
    assert main(["verify", str(dist), *root]) == 2
    assert main(["publish", "github", str(dist), "--tag", "v9", "--no-dry-run"]) == 1
    said = capfd.readouterr()
    assert "is signed by" in said.err and "Give --tag" in said.err and "There is no tag v9" in said.err


def test_no_token_is_in_any_output_or_file(
    dist: Path,
    repository: Repository,
    sigstore: Sigstore,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    caplog.set_level("DEBUG")
    main(["sign", str(dist), "--trust-config", str(sigstore.trust_config)])
    main(["publish", "github", str(dist), "--tag", TAG, "--no-dry-run"])
    main(["publish", "github", str(dist), "--tag", "none", "--no-dry-run"])
    main(["publish", "doctor", str(dist), "--tag", TAG])
    said = "".join(capfd.readouterr()) + caplog.text
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (TOKEN, sigstore.environment["ACTIONS_ID_TOKEN_REQUEST_TOKEN"], "eyJhbGciOiJSUzI1NiJ9"):
        assert secret not in said
        assert secret.encode() not in written


def test_without_an_identity_a_signed_release_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", raising=False)
    assert main(["release", "--sample", "--sign", "--out", str(tmp_path / "dist")]) == 3
    said = capfd.readouterr().err
    assert "There is no identity to sign with" in said
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["publish", "github", ".", "--tag", "v1"], "--repository"),
        (["publish", "index", ".", "--index", "http://127.0.0.1:1/"], "two addresses"),
        (["verify", "v1.0.0"], "--repository"),
        (["verify", ".", "--identity", "https://example.com/.*", "--offline"], "exact identity"),
    ],
)
def test_what_is_missing_is_asked_for(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("GITHUB_REPOSITORY", "GITHUB_SHA"):
        monkeypatch.delenv(name, raising=False)
    assert main(arguments) == 2
    assert said in capfd.readouterr().err
