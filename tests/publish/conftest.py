"""A GitHub on loopback, and a release small enough to be published hundreds of times."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from release.artifacts import sha256_of, write_atomically
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.progress import Progress
from release.publish.api import Api
from release.publish.github import GitHubHost
from release.publish.publication import Publication, publish_release
from release.retry import Retry
from tests.services.github.service import TOKEN, GitHub, Repository, start_github
from tests.services.installed import Services, install_services

TAG = "v1.2.3"


@dataclass
class Impatient:
    """A clock on which waiting takes no time; ``waited`` has the seconds that were asked for."""

    waited: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


@dataclass(frozen=True, kw_only=True)
class Publishing:
    """A repository with a tag, a release folder, and how the one comes into the other."""

    github: GitHub
    repository: Repository
    folder: Path
    clock: Impatient

    @property
    def host(self) -> GitHubHost:
        return self.host_with(TOKEN)

    def host_with(self, token: str) -> GitHubHost:
        return GitHubHost(Api(self.repository.name, token=token, api=self.github.url, seconds_between_writes=0))

    def publish(self, tag: str = TAG, folder: Path | None = None, notes: str = "What is new.") -> Publication:
        progress = Progress(quiet=True)
        return publish_release(
            folder or self.folder,
            host=self.host,
            tag=tag,
            commit=self.repository.commit,
            notes=notes,
            progress=progress,
            retry=Retry(progress, clock=self.clock),
        )

    def check_published(self, *, drafts: bool = False) -> None:
        """One release, whole and equal to the folder, never anything else to be seen, and no draft is left."""
        seen = self.github.front.seen
        expected = {path.name: sha256_of(path) for path in self.folder.iterdir()}
        assert seen.violations == []
        assert seen.published == [expected]
        releases = self.github.call("GET", f"/repos/{self.repository.name}/releases")
        releases = [release for release in releases if not (drafts and release["draft"])]
        assert [release["draft"] for release in releases] == [False]
        stored = self.github.front.assets
        assert {asset["name"]: stored[asset["id"]].sha256 for asset in releases[0]["assets"]} == expected
        assert len(releases[0]["assets"]) == len(expected)


@pytest.fixture(scope="session")
def services(cache: Path) -> Services:
    return install_services(cache)


@pytest.fixture(scope="session")
def github(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHub]:
    with start_github(services, tmp_path_factory.mktemp("github")) as running:
        yield running


def make_release(folder: Path) -> Path:
    folder.mkdir()
    (folder / "package-1.0.zip").write_bytes(b"package" * 1000)
    (folder / "manifest.json").write_text("{}")
    write_atomically(folder / CHECKSUMS, checksums(folder))
    return folder


_numbers = iter(range(1_000_000))


def new_publishing(github: GitHub, folder: Path) -> Publishing:
    repository = github.new_repository(f"repository-{next(_numbers)}")
    github.tag(repository, TAG)
    return Publishing(github=github, repository=repository, folder=folder, clock=Impatient())


@pytest.fixture
def publishing(github: GitHub, tmp_path: Path) -> Publishing:
    return new_publishing(github, make_release(tmp_path / "dist"))
