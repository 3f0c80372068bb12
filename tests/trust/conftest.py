"""A signed release of the sample, by a Sigstore with each version of Rekor."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from release.pipeline import Pipeline
from release.progress import Progress
from release.retry import Retry
from release.trust.model import SignedRelease
from release.trust.sign import sign_release
from tests.services.installed import Services, install_services
from tests.services.sigstore.service import Sigstore, github_claims, start_sigstore


class Impatient:
    """A clock on which waiting takes no time; ``waited`` has the seconds that were asked for."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


@dataclass(frozen=True, kw_only=True)
class Signing:
    """A Sigstore, and how to sign with it as the job that its claims say."""

    sigstore: Sigstore
    clock: Impatient

    def sign(self, folder: Path, progress: Progress | None = None) -> SignedRelease:
        progress = progress or Progress(quiet=True)
        retry = Retry(progress, clock=self.clock)
        return sign_release(folder, progress=progress, trust_config=self.sigstore.trust_config, retry=retry)


@pytest.fixture(scope="session")
def services(cache: Path) -> Services:
    return install_services(cache)


@pytest.fixture(scope="session", params=[1, 2], ids=["rekor-1", "rekor-2"])
def running(
    request: pytest.FixtureRequest, services: Services, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sigstore]:
    with start_sigstore(services, tmp_path_factory.mktemp("sigstore"), rekor=request.param) as sigstore:
        yield sigstore


@pytest.fixture
def signing(running: Sigstore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Signing]:
    """In a job of GitHub Actions that may ask for an identity."""
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    running.become(github_claims())
    yield Signing(sigstore=running, clock=Impatient())
    running.fail({})
    running.age()


@pytest.fixture(scope="session")
def released(pipeline: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the sample, for reading."""
    folder = tmp_path_factory.mktemp("released") / "dist"
    pipeline.release(folder)
    return folder


@pytest.fixture
def dist(released: Path, tmp_path: Path) -> Path:
    """A copy of the release, to do with as one likes."""
    return Path(shutil.copytree(released, tmp_path / "dist"))
