"""The doctor says what is there and what would be done, and changes nothing."""

from pathlib import Path

import pytest

from release.artifacts import write_atomically
from release.errors import BrokenEnvironment, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.progress import Progress
from release.publish.doctor import examine
from release.publish.folder import FolderHost
from release.publish.publication import publish_release
from tests.publish.conftest import TAG, Publishing, make_release
from tests.services.github.service import TOKEN


def said(publishing: Publishing, tag: str = TAG, commit: str | None = None, token: str = TOKEN) -> str:
    before = list(publishing.github.front.seen.writes)
    text = examine(
        publishing.folder,
        host=publishing.host_with(token),
        tag=tag,
        commit=commit or publishing.repository.commit,
        progress=Progress(quiet=True),
    )
    assert publishing.github.front.seen.writes == before
    return text


def test_before_and_after(publishing: Publishing) -> None:
    text = said(publishing)
    assert f"{TAG} leads to {publishing.repository.commit[:12]}, which was built" in text
    assert "verdict  publishing would fill a draft" in text
    publishing.publish()
    assert "verdict  all is published already" in said(publishing)


def test_what_stands_in_the_way(publishing: Publishing) -> None:
    assert "publishing would stop: v9 is not there" in said(publishing, "v9")
    assert "leads to" in said(publishing, commit="1" * 40).splitlines()[-1]
    publishing.publish()
    (publishing.folder / "manifest.json").write_text("[]")
    assert "manifest.json differs" in said(publishing).splitlines()[-1]
    write_atomically(publishing.folder / CHECKSUMS, checksums(publishing.folder))
    assert "is published and is not this build: 2 different" in said(publishing).splitlines()[-1]


def test_a_token_that_may_not_write(publishing: Publishing) -> None:
    publishing.github.front.rules.may_push = False
    assert "publishing would stop" in said(publishing).splitlines()[-1]
    # GitHub says the same of every token of a job, and it may be wrong.
    of_a_job = f"ghs_{TOKEN}"
    assert "publishing would fill a draft" in said(publishing, token=of_a_job).splitlines()[-1]


def test_a_draft_that_was_left(publishing: Publishing) -> None:
    seen = publishing.github.front.seen
    seen.faults = dict.fromkeys(range(14, 100), "500")
    with pytest.raises(BrokenEnvironment):
        publishing.publish()
    seen.faults = {}
    assert "files are there; " in said(publishing)
    publishing.host.create_draft(TAG, title="By hand", body="By hand.", prerelease=False)
    assert "not of this build, so it is left alone" in said(publishing)


def test_a_dry_run_publishes_into_a_folder(tmp_path: Path) -> None:
    folder, commit = make_release(tmp_path / "dist"), "1" * 40
    host = FolderHost(tmp_path / "out", tags={TAG: commit})
    publication = publish_release(
        folder, host=host, tag=TAG, commit=commit, notes="Notes.", progress=Progress(quiet=True)
    )
    assert publication.outcome == "published"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"release.json", *(p.name for p in folder.iterdir())}
    again = publish_release(folder, host=host, tag=TAG, commit=commit, notes="Notes.", progress=Progress(quiet=True))
    assert again.outcome == "was there"
    assert "all is published already" in examine(
        folder, host=host, tag=TAG, commit=commit, progress=Progress(quiet=True)
    )


def test_a_folder_that_is_no_dry_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(WrongUsage, match="not the folder of a dry run"):
        FolderHost(tmp_path, tags={})
