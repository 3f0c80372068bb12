"""Whatever goes wrong at whichever request: the next run makes it whole, and nothing wrong was ever to be seen."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from release.artifacts import write_atomically
from release.errors import Problem
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from tests.publish.conftest import TAG, make_release, new_publishing
from tests.services.github.front import FAULTS
from tests.services.github.service import TOKEN, GitHub

_PATIENCE_SECONDS = 0.2  # more than a thousandth of the time that a client waits
_PROGRAM = f"""
import sys
from pathlib import Path
from release.progress import Progress
from release.publish.api import Api
from release.publish.github import GitHubHost
from release.publish.publication import publish_release
repository, api, folder, commit = sys.argv[1:]
host = GitHubHost(Api(repository, token={TOKEN!r}, api=api, seconds_between_writes=0))
publish_release(Path(folder), host=host, tag={TAG!r}, commit=commit, notes="", progress=Progress(quiet=True))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(tmp_path_factory.mktemp("faults") / "dist")


def requests_of(github: GitHub, folder: Path, *, digests: bool) -> int:
    """How many requests a publication takes when nothing goes wrong."""
    publishing = new_publishing(github, folder)
    github.front.rules.digests = digests
    publishing.publish()
    return len(github.front.seen.requests)


@pytest.fixture(scope="module")
def count(github: GitHub, folder: Path) -> int:
    return requests_of(github, folder, digests=True)


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for an answer a thousandth of the time only; a request without a limit is an error."""
    request = requests.Session.request

    def hurried(self: requests.Session, method: str, url: str, **options: Any) -> requests.Response:
        return request(self, method, url, **{**options, "timeout": options["timeout"] / 1000})

    monkeypatch.setattr(requests.Session, "request", hurried)


# Where the host tells no digests there are downloads, and what can go wrong with these.
@pytest.mark.parametrize(
    ("fault", "digests"),
    [
        *((fault, True) for fault in FAULTS),
        *((fault, False) for fault in ("reset in the body", "lying length", "refused")),
    ],
)
def test_a_fault_at_any_request(
    github: GitHub, folder: Path, monkeypatch: pytest.MonkeyPatch, digests: bool, fault: str
) -> None:
    if fault in ("hangs", "slow"):
        hurry(monkeypatch)
    count = requests_of(github, folder, digests=digests)
    for number in range(1, count + 1):
        publishing = new_publishing(github, folder)
        github.front.rules.digests = digests
        github.front.seen.faults = {number: fault}
        github.front.seen.patience = _PATIENCE_SECONDS
        try:
            publishing.publish()
        except Problem as problem:
            assert problem.remedy, (fault, number)
            assert len(github.front.seen.published) <= 1
            publishing.publish()
        assert github.front.seen.faults == {}, "the fault was never met"
        publishing.check_published(drafts=fault == "slow")  # a draft that comes late is seen by nobody
    print(f"{fault}: {count} faults, losses: 0")


def test_several_faults_in_a_row(github: GitHub, folder: Path, count: int) -> None:
    for start in range(1, count + 1, 3):
        publishing = new_publishing(github, folder)
        github.front.seen.faults = {start: "502", start + 1: "refused", start + 2: "403 secondary", start + 4: "500"}
        publishing.publish()
        assert max(publishing.clock.waited) >= 2  # as long as GitHub has asked for
        publishing.check_published()


def test_killed_at_any_request_and_run_again(github: GitHub, folder: Path, count: int) -> None:
    front = github.front
    for number in range(1, count + 1):
        publishing = new_publishing(github, folder)
        arguments = [publishing.repository.name, github.url, str(folder), publishing.repository.commit]
        process = subprocess.Popen([sys.executable, "-c", _PROGRAM, *arguments], env=dict(os.environ))

        def kill(_method: str, _path: str, number: int = number, victim: int = process.pid) -> None:
            if len(front.seen.requests) == number:
                os.kill(victim, signal.SIGKILL)

        front.seen.hook = kill
        assert process.wait(timeout=60) == -signal.SIGKILL
        front.seen.hook = None
        publishing.publish()
        publishing.check_published()


def test_killed_in_the_middle_of_an_upload(github: GitHub, tmp_path: Path) -> None:
    folder = make_release(tmp_path / "dist")
    (folder / "package-1.0.zip").write_bytes(bytes(32_000_000))  # more than the kernel takes in at once
    write_atomically(folder / CHECKSUMS, checksums(folder))
    publishing, front = new_publishing(github, folder), github.front
    arguments = [publishing.repository.name, github.url, str(folder), publishing.repository.commit]
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM, *arguments], env=dict(os.environ))
    uploads: list[str] = []

    def kill(method: str, path: str) -> None:
        if method == "POST" and path.endswith("/assets"):
            uploads.append(path)
            if len(uploads) == len(list(folder.iterdir())):  # the package is the last
                os.kill(process.pid, signal.SIGKILL)

    front.seen.hook = kill
    assert process.wait(timeout=60) == -signal.SIGKILL
    front.seen.hook = None
    (draft,) = publishing.host.releases(TAG)
    wait_until(lambda: len(publishing.host.assets(draft)) == len(uploads))
    assert [asset.name for asset in publishing.host.assets(draft) if not asset.complete] == ["package-1.0.zip"]
    publishing.publish()
    publishing.check_published()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
