"""A repository at a GitHub and a Sigstore on loopback, and its workflows, which run under ``act``."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from release.places import CHECKOUT
from tests.publish.conftest import github, services  # noqa: F401 - fixtures
from tests.services.github.service import TOKEN, GitHub
from tests.services.github.service import Repository as Hosted
from tests.services.installed import Services
from tests.services.sigstore.service import Sigstore, github_claims, start_sigstore
from tests.workflows.runner import Event, Outcome, Repository

_LEFT_OUT = (".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", "__pycache__", "dist", "out", "results")
_numbers = iter(range(1_000_000))


@pytest.fixture(scope="session")
def sigstore(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sigstore]:  # noqa: F811
    with start_sigstore(services, tmp_path_factory.mktemp("sigstore")) as running:
        yield running


@dataclass(frozen=True, kw_only=True)
class Project:
    """This project at a GitHub, as the owner of a fork has it."""

    github: GitHub
    sigstore: Sigstore
    hosted: Hosted
    repository: Repository

    def push_tag(self, tag: str) -> Outcome:
        """Push a tag, and run what that starts."""
        self.github.tag(self.hosted, tag)
        return self.run("release.yml", Event(name="push", ref=f"refs/tags/{tag}"))

    def dispatch(self, workflow: str, ref: str = "refs/heads/main", **inputs: str) -> Outcome:
        """Run a workflow by hand."""
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        return self.run(workflow, Event(name="workflow_dispatch", ref=ref, inputs=given))

    def run(self, workflow: str, event: Event, *, again: bool = False) -> Outcome:
        """Run a workflow, whose jobs get tokens that say so."""
        claims = github_claims(self.hosted.name, workflow=workflow, ref=event.ref, commit=self.hosted.commit)
        self.sigstore.become({**claims, "event_name": event.name})
        go = self.repository.run_again if again else self.repository.run
        return go(workflow, event)

    def releases(self) -> list[dict[str, object]]:
        """List what is published."""
        found = self.github.call("GET", f"/repos/{self.hosted.name}/releases")
        return [release for release in found if not release["draft"]]


def new_project(github: GitHub, sigstore: Sigstore, folder: Path, cache: Path) -> Project:  # noqa: F811
    """Make a repository of the checkout as it is."""
    hosted = github.new_repository(f"fork-{next(_numbers)}")
    checkout = folder / "checkout"
    shutil.copytree(CHECKOUT, checkout, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    for command in (
        ("init", "--quiet", "--initial-branch=main"),
        ("remote", "add", "origin", f"https://github.com/{hosted.name}"),
        ("add", "--all"),
        ("-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--message", "All of it"),
    ):
        subprocess.run(["git", *command], cwd=checkout, check=True)
    env: Mapping[str, str] = {
        **sigstore.environment,
        "TRITON_WASM_CACHE": str(cache),
        "GITHUB_API_URL": github.url,
        "GITHUB_SERVER_URL": github.url,
    }
    return Project(
        github=github,
        sigstore=sigstore,
        hosted=hosted,
        repository=Repository(
            checkout=checkout,
            state=folder / "state",
            commit=hosted.commit,
            env=env,
            variables={"TRITON_WASM_TRUST_CONFIG": str(sigstore.trust_config)},
            token=TOKEN,
        ),
    )


@pytest.fixture
def project(github: GitHub, sigstore: Sigstore, tmp_path: Path, cache: Path) -> Project:  # noqa: F811
    return new_project(github, sigstore, tmp_path, cache)
