"""A repository at a GitHub and a Sigstore on loopback, and its workflows, which run under ``act``."""

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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

    def push_again(self, tag: str) -> Outcome:
        """Run again what the push of a tag has started, as the next attempt of that run."""
        return self.run("release.yml", Event(name="push", ref=f"refs/tags/{tag}"), again=True)

    def given(self, env: Mapping[str, str]) -> "Project":
        """Give every step more of an environment."""
        return replace(self, repository=replace(self.repository, env={**self.repository.env, **env}))

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

    def releases(self) -> list[dict[str, Any]]:
        """List what is published."""
        found = self.github.call("GET", f"/repos/{self.hosted.name}/releases")
        return [release for release in found if not release["draft"]]

    def assets(self, release: Mapping[str, Any]) -> dict[str, str]:
        """Return the digests of what a release has, by their names."""
        stored = self.github.front.assets
        return {asset["name"]: stored[asset["id"]].sha256 for asset in release["assets"]}

    def pulls(self) -> list[dict[str, Any]]:
        """List all pull requests."""
        found: list[dict[str, Any]] = self.github.call("GET", f"/repos/{self.hosted.name}/pulls?state=all")
        return found

    def issues(self) -> list[dict[str, Any]]:
        """List the open issues."""
        found = self.github.call("GET", f"/repos/{self.hosted.name}/issues")
        return [issue for issue in found if "pull_request" not in issue]

    def job(self, plan: str, *, takes: list[str], **env: str) -> "Job":
        """Set up a job whose steps are run one by one, with the artifacts of the run before."""
        workspace = self.repository.state / f"job-{next(_numbers)}"
        shutil.copytree(self.repository.checkout, workspace, ignore=shutil.ignore_patterns(".git"))
        for name in takes:
            shutil.copytree(self.repository.state / "artifacts" / name, workspace / "out" / name)
        given = {"PLAN": plan, "GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": self.hosted.name, **env}
        trust = self.repository.variables["TRITON_WASM_TRUST_CONFIG"]
        return Job(workspace=workspace, env={**self.repository.env, "TRUST_CONFIG": trust, **given})

    def file(self, path: str, branch: str) -> str:
        """Return the text of a file on a branch."""
        found = self.github.call("GET", f"/repos/{self.hosted.name}/contents/{path}?ref={branch}")
        return base64.b64decode(found["content"]).decode()


@dataclass(frozen=True, kw_only=True)
class Job:
    """A workspace, and what its steps are given."""

    workspace: Path
    env: Mapping[str, str]

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run a file of ``scripts/`` as a step does, but with what it says on its own streams."""
        env = {**os.environ, **self.env, "GITHUB_ACTIONS": "false"}
        command = [sys.executable, str(self.workspace / "scripts" / name)]
        return subprocess.run(command, cwd=self.workspace, env=env, capture_output=True, text=True, timeout=280)


def commit(checkout: Path) -> None:
    """Commit all that there is."""
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    subprocess.run(["git", "add", "--all"], cwd=checkout, check=True)
    subprocess.run(["git", *who, "commit", "--quiet", "--message", "All of it"], cwd=checkout, check=True)


def keep_one_case(project: Project) -> None:
    """Leave one case of the sample's five: each is loaded five times in a run, by three loaders in three places."""
    cases = project.repository.checkout / "samples/exprc/cases/cases.toml"
    head, first, _ = cases.read_text().split("[[case]]", 2)
    cases.write_text(f"{head}[[case]]{first}")
    commit(project.repository.checkout)


@dataclass(frozen=True, kw_only=True)
class Runner:
    """What a machine that runs jobs has at first: the toolkit's tools, which take no time that is worth a test's."""

    cache: Path

    def forget(self) -> None:
        """Become another machine, which was never here."""
        for path in self.cache.iterdir():
            if not path.is_symlink():
                shutil.rmtree(path)


@pytest.fixture
def runner(cache: Path, tmp_path: Path) -> Runner:
    """A machine with a cache of its own."""
    folder = tmp_path / "cache"
    folder.mkdir()
    for name in ("bootstrap", "uv", "toolchain"):
        (folder / name).symlink_to(cache / name)
    return Runner(cache=folder)


def new_project(github: GitHub, sigstore: Sigstore, folder: Path, cache: Path) -> Project:  # noqa: F811
    """Make a repository of the checkout as it is."""
    hosted = github.new_repository(f"fork-{next(_numbers)}")
    checkout = folder / "checkout"
    shutil.copytree(CHECKOUT, checkout, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=checkout, check=True)
    remote = f"https://github.com/{hosted.name}"
    subprocess.run(["git", "remote", "add", "origin", remote], cwd=checkout, check=True)
    commit(checkout)
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


@pytest.fixture
def lean(project: Project) -> Project:
    """The project with one case, for runs in which it matters only whether the checks pass."""
    keep_one_case(project)
    return project
