"""One pull request for a change, and one issue for a failure, whatever happens on the way."""

from dataclasses import replace
from typing import Any

import pytest

from release.errors import BrokenEnvironment, Problem
from release.progress import Progress
from release.publish.api import Api
from release.publish.proposal import MAXIMUM_BODY, Change, Proposed, propose, report
from release.retry import Retry
from tests.publish.conftest import Impatient
from tests.services.github.service import TOKEN, GitHub, Repository

CHANGE = Change(
    branch="pins/preview-triton-3.9",
    files={"pins/preview.toml": "new = 1\n"},
    title="Pin set preview: Triton 3.9",
    body="What it means.",
)
_numbers = iter(range(1_000_000))


@pytest.fixture
def repository(github: GitHub) -> Repository:
    return github.new_repository(f"proposals-{next(_numbers)}")


def api_of(github: GitHub, repository: Repository) -> Api:
    return Api(repository.name, token=TOKEN, api=github.url, seconds_between_writes=0)


def proposed(github: GitHub, repository: Repository, change: Change = CHANGE) -> Proposed:
    return propose(api_of(github, repository), change, retry=Retry(Progress(quiet=True), clock=Impatient()))


def pulls(github: GitHub, repository: Repository) -> list[Any]:
    found: list[Any] = github.call("GET", f"/repos/{repository.name}/pulls?state=all")
    return found


def text_of(github: GitHub, repository: Repository, branch: str = CHANGE.branch) -> str:
    import base64

    found = github.call("GET", f"/repos/{repository.name}/contents/pins/preview.toml?ref={branch}")
    return base64.b64decode(found["content"]).decode()


def test_it_is_opened_once(github: GitHub, repository: Repository) -> None:
    first = proposed(github, repository)
    (pull,) = pulls(github, repository)
    assert first == Proposed(number=pull["number"], url=pull["html_url"], outcome="opened")
    assert (pull["title"], pull["body"], pull["base"]["ref"]) == (CHANGE.title, CHANGE.body, "main")
    assert text_of(github, repository) == "new = 1\n"
    github.front.seen.requests.clear()
    assert proposed(github, repository) == replace(first, outcome="unchanged")
    assert github.front.seen.writes == []


@pytest.mark.parametrize(
    "change",
    [
        replace(CHANGE, files={"pins/preview.toml": "new = 2\n"}),
        replace(CHANGE, body="More."),
        replace(CHANGE, title="T"),
    ],
)
def test_it_is_brought_up_to_date(github: GitHub, repository: Repository, change: Change) -> None:
    first = proposed(github, repository)
    assert proposed(github, repository, change) == replace(first, outcome="updated")
    (pull,) = pulls(github, repository)
    assert (pull["title"], pull["body"]) == (change.title, change.body)
    assert text_of(github, repository) == change.files["pins/preview.toml"]


def test_what_was_closed_stays_closed(github: GitHub, repository: Repository) -> None:
    first = proposed(github, repository)
    github.call("PATCH", f"/repos/{repository.name}/pulls/{first.number}", {"state": "closed"})
    assert proposed(github, repository) == replace(first, outcome="closed")
    assert len(pulls(github, repository)) == 1


@pytest.mark.parametrize("fault", ["refused", "answer lost", "502", "403 secondary", "reset in the body"])
def test_a_fault_at_any_request(github: GitHub, fault: str) -> None:
    count = 0
    while True:
        repository = github.new_repository(f"proposals-{next(_numbers)}")
        count += 1
        github.front.seen.faults = {count: fault}
        try:
            proposed(github, repository)
        except Problem as problem:
            assert TOKEN not in f"{problem}{problem.remedy}"
        reached = not github.front.seen.faults
        github.front.seen.faults = {}
        proposed(github, repository)
        (pull,) = pulls(github, repository)
        assert pull["state"] == "open"
        assert text_of(github, repository) == "new = 1\n"
        if not reached:
            break
    assert count > 8


def test_a_repository_that_lets_no_workflow_do_it_says_how_to_allow_it(github: GitHub, repository: Repository) -> None:
    github.front.rules.may_open_pulls = False
    with pytest.raises(BrokenEnvironment, match="does not let workflows open") as caught:
        proposed(github, repository)
    assert "Workflow permissions" in caught.value.remedy
    github.front.rules.may_open_pulls = True
    assert proposed(github, repository).outcome == "opened"


def test_a_text_that_is_too_long_is_cut_and_says_so(github: GitHub, repository: Repository) -> None:
    long = replace(CHANGE, body="a line of some length\n" * 10_000)
    assert proposed(github, repository, long).outcome == "opened"
    (pull,) = pulls(github, repository)
    assert MAXIMUM_BODY - 200 < len(pull["body"]) <= MAXIMUM_BODY
    assert "longer than GitHub takes" in pull["body"]
    assert proposed(github, repository, long).outcome == "unchanged"


def reported(github: GitHub, repository: Repository, body: str, slug: str = "triton-3.9") -> Proposed:
    retry = Retry(Progress(quiet=True), clock=Impatient())
    return report(api_of(github, repository), slug=slug, title="Triton 3.9 fails", body=body, retry=retry)


def test_a_failure_is_one_issue(github: GitHub, repository: Repository) -> None:
    first = reported(github, repository, "The link failed.")
    assert first.outcome == "opened"
    assert reported(github, repository, "The link failed.") == replace(first, outcome="unchanged")
    assert reported(github, repository, "The check failed.") == replace(first, outcome="updated")
    issue = github.call("GET", f"/repos/{repository.name}/issues/{first.number}")
    assert "The check failed." in issue["body"] and "link" not in issue["body"]
    assert reported(github, repository, "Too.", slug="triton-4.0").number != first.number
    github.call("PATCH", f"/repos/{repository.name}/issues/{first.number}", {"state": "closed"})
    assert reported(github, repository, "Again.").outcome == "opened"
