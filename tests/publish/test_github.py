"""A release goes from draft to published once, whole, for the tag and commit that it is of, and is left alone then."""

import threading
from pathlib import Path

import pytest

from release.artifacts import Artifact, write_atomically
from release.errors import BrokenEnvironment, Finding, Problem, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.publish.github import GitHubHost
from release.publish.marker import Marker
from release.publish.publication import Publication
from tests.publish.conftest import TAG, Publishing
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


@pytest.mark.parametrize("attempt", range(5))
def test_two_publishers_at_once(publishing: Publishing, attempt: int) -> None:
    outcomes: list[Publication | Problem] = []
    barrier = threading.Barrier(2)

    def run() -> None:
        barrier.wait()
        try:
            outcomes.append(publishing.publish())
        except Problem as problem:
            outcomes.append(problem)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = [outcome for outcome in outcomes if isinstance(outcome, Publication) and outcome.outcome == "published"]
    others = [outcome for outcome in outcomes if outcome not in won]
    assert len(won) == 1
    for other in others:
        said = other.outcome if isinstance(other, Publication) else str(other)
        assert any(part in said for part in ("another", "Another", "was there", "has been deleted")), said
    publishing.check_published()


def test_a_token_that_may_not_write(publishing: Publishing) -> None:
    host = GitHubHost(publishing.repository.name, token=_WRONG, api=publishing.github.url)
    with pytest.raises(BrokenEnvironment, match="refuses the token") as caught:
        host.create_draft(TAG, title="x", body="x", prerelease=False)
    assert _WRONG not in str(caught.value) + repr(caught.value.__context__)


def test_no_token_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    with pytest.raises(BrokenEnvironment, match="GITHUB_TOKEN is not set"):
        GitHubHost.from_environment("a/b")
    with pytest.raises(WrongUsage, match="not OWNER/NAME"):
        GitHubHost("nobody", token=_WRONG)


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
