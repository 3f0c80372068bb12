"""A release goes from draft to published once, whole, for the tag and commit that it is of, and is left alone then."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from release.artifacts import Artifact, write_atomically
from release.errors import BrokenEnvironment, Finding, Problem, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.publish.api import Api
from release.publish.github import GitHubHost
from release.publish.host import HostedRelease
from release.publish.marker import Marker
from release.publish.publication import Publication
from release.retry import Transient
from tests.publish.conftest import TAG, Publishing, make_release
from tests.services.github.front import RESET_SECONDS
from tests.services.github.service import TOKEN

_WRONG = "ghp_a_wrong_one_that_must_not_be_seen"


def change(folder: Path, name: str = "manifest.json") -> None:
    (folder / name).write_text('{"other": 1}')
    write_atomically(folder / CHECKSUMS, checksums(folder))


def test_a_release_is_published_whole(publishing: Publishing) -> None:
    publication = publishing.publish()
    assert publication.outcome == "published"
    assert (publication.tag, publication.commit) == (TAG, publishing.repository.commit)
    assert {asset.name for asset in publication.assets} == {path.name for path in publishing.folder.iterdir()}
    assert publication.url.endswith(f"/releases/tag/{TAG}")
    publishing.check_published()


def test_again_nothing_is_written(publishing: Publishing) -> None:
    publishing.publish()
    writes = len(publishing.github.front.seen.writes)
    assert publishing.publish().outcome == "was there"
    assert len(publishing.github.front.seen.writes) == writes


def test_a_host_that_tells_no_digests_is_read_back(publishing: Publishing) -> None:
    publishing.github.front.rules.digests = False
    publishing.publish()
    downloads = [path for method, path in publishing.github.front.seen.requests if "/releases/assets/" in path]
    assert len(downloads) >= len(list(publishing.folder.iterdir()))
    publishing.check_published()


def test_immutable_releases(publishing: Publishing) -> None:
    publishing.github.front.rules.immutable = True
    assert publishing.publish().immutable
    assert publishing.publish().outcome == "was there"
    publishing.check_published()


def test_a_published_release_with_other_assets_is_not_touched(publishing: Publishing) -> None:
    publishing.publish()
    writes = len(publishing.github.front.seen.writes)
    change(publishing.folder)
    with pytest.raises(
        Finding, match=r"is published and is not this build: 2 different \(SHA256SUMS, manifest\.json\)"
    ):
        publishing.publish()
    assert len(publishing.github.front.seen.writes) == writes


def test_a_draft_of_another_build_is_left_alone(publishing: Publishing) -> None:
    publishing.host.create_draft(TAG, title="Mine", body="By hand.", prerelease=False)
    theirs = Marker.new("0" * 64).attach("Another build.")
    publishing.host.create_draft(TAG, title="Theirs", body=theirs, prerelease=False)
    publishing.publish()
    bodies = [release.body for release in publishing.host.releases(TAG)]
    assert bodies[:2] == ["By hand.", theirs]


def test_what_an_earlier_run_has_left_is_taken_up(publishing: Publishing) -> None:
    seen = publishing.github.front.seen
    seen.faults = dict.fromkeys(range(12, 100), "500")
    with pytest.raises(BrokenEnvironment):
        publishing.publish()
    seen.faults = {}
    uploaded = {asset.name for release in publishing.host.releases(TAG) for asset in publishing.host.assets(release)}
    assert uploaded
    before = len(seen.requests)
    publishing.publish()
    again = [path for method, path in seen.requests[before:] if method == "POST"]
    assert len(again) == len(list(publishing.folder.iterdir())) - len(uploaded)
    publishing.check_published()


def test_a_draft_is_found_behind_a_hundred_others(publishing: Publishing) -> None:
    seen = publishing.github.front.seen
    seen.faults = dict.fromkeys(range(14, 100), "500")
    with pytest.raises(BrokenEnvironment):
        publishing.publish()
    seen.faults = {}
    for number in range(100):
        content = {"tag_name": f"other-{number}", "draft": True}
        publishing.github.call("POST", f"/repos/{publishing.repository.name}/releases", content)
    (draft,) = publishing.host.releases(TAG)
    publishing.publish()
    (release,) = publishing.host.releases(TAG)
    assert (release.id, release.draft) == (draft.id, False)


def test_the_text_is_that_of_the_run_that_publishes(publishing: Publishing) -> None:
    leave_unpublished(publishing, notes="An older text.")
    publishing.publish(notes="What is new.")
    (release,) = publishing.host.releases(TAG)
    assert release.body.startswith("What is new.\n\n<!--")
    publishing.check_published()


def test_a_draft_that_is_published_while_it_is_taken_over(publishing: Publishing) -> None:
    leave_unpublished(publishing)
    front = publishing.github.front

    def be_faster(method: str, _path: str) -> None:
        if method == "PATCH":
            front.seen.hook = None
            (draft,) = publishing.host.releases(TAG)
            publishing.host.publish(draft, draft.body)

    front.seen.hook = be_faster
    assert publishing.publish(notes="Another text.").outcome == "published by another run"
    (release,) = publishing.host.releases(TAG)
    assert release.body.startswith("What is new.")
    publishing.check_published()


def leave_unpublished(publishing: Publishing, notes: str = "What is new.") -> None:
    """Have a run that fails at the one request that publishes."""
    front = publishing.github.front

    def stop(method: str, _path: str) -> None:
        if method == "PATCH":
            front.seen.faults = dict.fromkeys(range(1, 100), "500")

    front.seen.hook = stop
    with pytest.raises(BrokenEnvironment):
        publishing.publish(notes=notes)
    front.seen.hook, front.seen.faults = None, {}


def test_a_strange_asset_in_the_draft_is_not_published(publishing: Publishing) -> None:
    front = publishing.github.front

    def intrude(method: str, path: str) -> None:
        if method == "POST" and path.endswith("/assets"):
            front.seen.hook = None
            host = publishing.host
            (release,) = host.releases(TAG)
            stranger = publishing.folder.parent / "stranger.bin"
            stranger.write_bytes(b"stranger")
            host.upload(release, stranger, Artifact.of(stranger))

    front.seen.hook = intrude
    with pytest.raises(Finding, match=r"has stranger\.bin, which is not of this build"):
        publishing.publish()
    assert front.seen.published == []


@pytest.mark.parametrize("annotated", [False, True])
def test_the_tag_has_to_lead_to_what_was_built(publishing: Publishing, annotated: bool) -> None:
    publishing.github.tag(publishing.repository, "v2", annotated=annotated)
    assert publishing.publish("v2").outcome == "published"
    with pytest.raises(Finding, match="There is no tag v3"):
        publishing.publish("v3")
    other = Publishing(
        github=publishing.github,
        repository=type(publishing.repository)(name=publishing.repository.name, commit="1" * 40),
        folder=publishing.folder,
        clock=publishing.clock,
    )
    with pytest.raises(Finding, match=r"leads to .*, and what was built is 111111111111"):
        other.publish(TAG)
    assert [
        release["tag_name"]
        for release in publishing.github.call("GET", f"/repos/{publishing.repository.name}/releases")
    ] == ["v2"]


@pytest.mark.parametrize("tag", ["v1.0.0-rc.1", "v2.0.0rc1", "v1.0a1", "nightly-2026"])
def test_a_tag_before_a_release_makes_a_prerelease(publishing: Publishing, tag: str) -> None:
    publishing.github.tag(publishing.repository, tag)
    assert publishing.publish(tag).prerelease
    assert not publishing.publish().prerelease


@pytest.mark.parametrize("tag", ["", "a b", "../v1", "v1.lock", "-v1", "v1/", "v1\n"])
def test_a_tag_that_is_none_is_refused(publishing: Publishing, tag: str) -> None:
    with pytest.raises(WrongUsage, match="is not the name of a tag"):
        publishing.publish(tag)
    assert publishing.github.front.seen.requests == []


def at_once(*publishers: Callable[[], Publication]) -> list[Publication | Problem]:
    outcomes: list[Publication | Problem] = []
    barrier = threading.Barrier(len(publishers))

    def run(publish: Callable[[], Publication]) -> None:
        barrier.wait()
        try:
            outcomes.append(publish())
        except Problem as problem:
            outcomes.append(problem)

    threads = [threading.Thread(target=run, args=(publish,)) for publish in publishers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == len(publishers)
    return outcomes


@pytest.mark.parametrize("attempt", range(5))
def test_two_publishers_at_once(publishing: Publishing, attempt: int) -> None:
    outcomes = at_once(publishing.publish, publishing.publish)
    won = [outcome for outcome in outcomes if isinstance(outcome, Publication) and outcome.outcome == "published"]
    others = [outcome for outcome in outcomes if outcome not in won]
    assert len(won) == 1
    for other in others:
        said = other.outcome if isinstance(other, Publication) else str(other)
        assert any(part in said for part in ("another", "Another", "was there", "has been deleted")), said
    publishing.check_published()


@pytest.mark.parametrize("attempt", range(5))
def test_two_builds_at_once(publishing: Publishing, tmp_path: Path, attempt: int) -> None:
    other = make_release(tmp_path / "other")
    change(other)
    outcomes = at_once(publishing.publish, lambda: publishing.publish(folder=other))
    (won,) = (outcome for outcome in outcomes if isinstance(outcome, Publication))
    (lost,) = (outcome for outcome in outcomes if isinstance(outcome, Problem))
    assert "is published and is not this build" in str(lost)
    front = publishing.github.front
    assert front.seen.violations == []
    assert front.seen.published == [{asset.name: asset.sha256 for asset in won.assets}]


def test_a_token_that_may_not_write(publishing: Publishing) -> None:
    host = GitHubHost(Api(publishing.repository.name, token=_WRONG, api=publishing.github.url))
    with pytest.raises(BrokenEnvironment, match="refuses the token") as caught:
        host.create_draft(TAG, title="x", body="x", prerelease=False)
    assert _WRONG not in str(caught.value) + repr(caught.value.__context__)


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        ("403 secondary", 2),
        ("403 secondary, no word of how long", 60),
        ("403 primary", RESET_SECONDS),
        ("429", 60),
        ("503", 7),
        ("500", 1),
    ],
)
def test_it_waits_as_long_as_github_asks(publishing: Publishing, fault: str, seconds: int) -> None:
    publishing.github.front.seen.faults = {4: fault}
    publishing.publish()
    (waited,) = publishing.clock.waited
    assert seconds / 2 <= waited <= seconds


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("403", BrokenEnvironment, "refuses the token"),
        ("307", Finding, "moved"),
        ("422", Finding, "refuses the request"),
    ],
)
def test_what_does_not_get_better_is_not_tried_again(
    publishing: Publishing, fault: str, kind: type[Problem], said: str
) -> None:
    publishing.github.front.seen.faults = dict.fromkeys(range(1, 100), fault)
    with pytest.raises(kind, match=said):
        publishing.publish()
    assert publishing.clock.waited == []


@pytest.mark.parametrize(
    ("api", "place"),
    [
        ("https://api.github.com", "https://uploads.github.com:443/repos"),
        ("https://api.octo.ghe.com", "https://uploads.octo.ghe.com:443/repos"),
        ("https://github.example/api/v3", "https://github.example:443/api/uploads/repos"),
    ],
)
def test_assets_are_sent_to_github_only_and_with_a_limit_of_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, api: str, place: str
) -> None:
    sent: list[tuple[str, Any]] = []

    def send(_self: requests.Session, _method: str, url: str, **options: Any) -> None:
        sent.append((url, options["timeout"]))
        raise requests.ConnectionError

    monkeypatch.setattr(requests.Session, "request", send)
    (tmp_path / "a.zip").write_text("a")
    path = urlsplit(place).path
    for base in (place.removesuffix(path), "https://elsewhere.example"):
        draft = HostedRelease(
            id=1, tag=TAG, draft=True, prerelease=False, immutable=False, body="", url="", upload_url=base + path
        )
        with pytest.raises(Transient):
            GitHubHost(Api("a/b", token=TOKEN, api=api)).upload(
                draft, tmp_path / "a.zip", Artifact.of(tmp_path / "a.zip")
            )
    assert sent == [(f"{place}?name=a.zip", 120)] * 2


def test_the_token_goes_over_https_only() -> None:
    with pytest.raises(WrongUsage, match="is not https"):
        GitHubHost(Api("a/b", token=TOKEN, api="http://github.example/api/v3"))


def test_no_token_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    with pytest.raises(BrokenEnvironment, match="GITHUB_TOKEN is not set"):
        GitHubHost.from_environment("a/b")
    with pytest.raises(WrongUsage, match="not OWNER/NAME"):
        GitHubHost(Api("nobody", token=_WRONG))


def test_the_token_is_in_no_exception(publishing: Publishing, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    for fault in ("refused", "500", "403 secondary", "422", "lying length"):
        publishing.github.front.seen.faults = dict.fromkeys(range(1, 200), fault)
        with pytest.raises(Problem) as caught:
            publishing.publish()
        error: BaseException | None = caught.value
        while error is not None:
            assert TOKEN not in repr(error) + str(vars(error))
            error = error.__cause__ or error.__context__
        publishing.github.front.seen.requests.clear()
    assert TOKEN not in caplog.text
