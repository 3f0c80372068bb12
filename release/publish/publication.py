"""Publishing a release folder: draft, upload, compare, publish once, read back.

    host = GitHubHost.from_environment("owner/name")
    publish_release(Path("dist"), host=host, tag="v3.5.0", commit="0123…", notes="…", progress=Progress())

Every step first reads what there is, so any of them may be repeated, in this run or in another one after a crash. A
draft is written to only if its marker names this build; a published release is never written to. Until the one request
that publishes, nobody sees anything; it is sent when all assets are there, equal, and nothing else is, and it brings
the text. GitHub has no request that depends on what a release is at that moment: what another publisher writes into a
draft to take it over may come just after that one. So it is a marker, which nobody sees, and the text stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from release.artifacts import Artifact
from release.errors import Finding, WrongUsage
from release.progress import Progress
from release.publish.host import Host, HostedAsset, HostedRelease, NameTaken
from release.publish.marker import Marker
from release.publish.plan import Build, Plan, check_names, compare, is_equal, is_prerelease, read_build
from release.retry import Retry, Transient

_MAXIMUM_NOTES = 120_000  # characters; GitHub takes 125,000, and the marker is ours

type Outcome = Literal["published", "was there", "published by another run"]


@dataclass(frozen=True, kw_only=True)
class PublishedAsset:
    """An asset as it was read back: bytes, SHA-256 as 64 hex digits, and where everybody finds it."""

    name: str
    size: int
    sha256: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A published release as it was read back; only the outcome ``published`` means that this run changed anything."""

    tag: str
    commit: str
    url: str
    prerelease: bool
    immutable: bool
    assets: tuple[PublishedAsset, ...]
    outcome: Outcome


def publish_release(
    folder: Path,
    *,
    host: Host,
    tag: str,
    commit: str,
    notes: str,
    progress: Progress,
    retry: Retry | None = None,
) -> Publication:
    """Publish the files of ``folder`` as the release of ``tag``, or find that just this is already published.

    ``commit`` is the one that was built (all hex digits); the tag must exist and lead to it. ``notes`` is Markdown.

    Raises WrongUsage and Finding for a folder, tag or commit that cannot be published, and Finding for a release of the
    tag with other assets, for something in our draft that is not ours, and for another publisher who is faster;
    BrokenEnvironment when the host cannot be used, or not now. Run again after any of these, it goes on.
    """
    check_names(tag, commit)
    if len(notes) > _MAXIMUM_NOTES:
        raise WrongUsage(f"The release notes have {len(notes):,} characters.", remedy=f"At most {_MAXIMUM_NOTES:,}.")
    build = read_build(folder)
    return _Publisher(build, host, tag, commit, notes, progress, retry or Retry(progress)).run()


class _OvertakenError(Exception):
    """While we were at work a release of the tag was published."""

    def __init__(self, release: HostedRelease) -> None:
        super().__init__(release.url)
        self.release = release


class _Publisher:
    def __init__(
        self, build: Build, host: Host, tag: str, commit: str, notes: str, progress: Progress, retry: Retry
    ) -> None:
        self._build, self._host, self._tag, self._commit, self._notes = build, host, tag, commit, notes
        self._progress, self._retry = progress, retry
        self._marker = Marker.new(build.digest)
        self._digests: dict[int, str] = {}

    def run(self) -> Publication:
        self._retry.step("reading the tag", self._check_tag)
        if found := self._retry.step("looking for the release", self._find_published):
            return self._retry.step("comparing the release", lambda: self._read_back(found, "was there"))
        try:
            draft = self._retry.step("finding or creating the draft", self._claim)
            self._fill(draft)
            outcome: Outcome = "published"
            release = self._retry.step("publishing", lambda: self._publish(draft))
        except _OvertakenError as overtaken:
            outcome, release = "published by another run", overtaken.release
            self._progress.note(f"  {self._tag} has meanwhile been published by another run: {release.url}")
        return self._retry.step("reading back", lambda: self._read_back(release, outcome))

    def _check_tag(self) -> None:
        found = self._host.tag_commit(self._tag)
        if found is None:
            raise Finding(
                f"There is no tag {self._tag} at {self._host.name}.",
                remedy=f"Push the tag at {self._commit[:12]} first; it is never created by publishing.",
            )
        if found != self._commit:
            raise Finding(
                f"The tag {self._tag} leads to {found[:12]}, and what was built is {self._commit[:12]}.",
                remedy="Build the commit that the tag leads to, or use another tag.",
            )

    def _find_published(self) -> HostedRelease | None:
        return next((release for release in self._host.releases(self._tag) if not release.draft), None)

    def _claim(self) -> HostedRelease:
        """Return the draft of this build, marked as ours; several are left by publishers who began at the same time."""
        created = None
        releases = self._host.releases(self._tag)
        if not any(self._of_this_build(release) for release in releases):
            created = self._host.create_draft(
                self._tag,
                title=self._tag,
                body=self._marker.attach(self._notes),
                prerelease=is_prerelease(self._tag),
            )
            # A list may be older than what was just created.
            releases = [created, *(other for other in self._host.releases(self._tag) if other.id != created.id)]
        for release in releases:
            if not release.draft:
                raise _OvertakenError(release)
        draft = min(filter(self._of_this_build, releases), key=lambda release: release.id)
        if created and draft.id != created.id:
            self._host.delete_draft(created)
        if Marker.find(draft.body) != self._marker:
            draft = self._still_draft(draft)
            self._host.edit_body(draft, self._marker.attach(draft.body))
        return draft

    def _of_this_build(self, release: HostedRelease) -> bool:
        marker = Marker.find(release.body)
        return release.draft and marker is not None and marker.build == self._build.digest

    def _fill(self, draft: HostedRelease) -> None:
        with self._progress.steps("publish", len(self._build.assets)) as steps:
            for artifact in self._build.assets:
                steps.begin(f"{artifact.name}, {artifact.size / 1e6:.1f} MB")
                self._retry.step(artifact.name, partial(self._settle, draft, artifact))

    def _settle(self, draft: HostedRelease, artifact: Artifact) -> None:
        """Have one asset in the draft, whole."""
        plan = self._compare(self._still_ours(draft))
        self._refuse_foreign(plan)
        if artifact not in plan.upload:
            return
        for asset in plan.replace:
            if asset.name == artifact.name:
                self._host.delete_asset(asset)
        try:
            uploaded = self._host.upload(draft, self._build.folder / artifact.name, artifact)
        except NameTaken:
            raise Transient("an asset of that name has appeared") from None
        if not is_equal(artifact, uploaded, lambda _: artifact.sha256):
            raise Transient("what arrived is not what was sent")

    def _still_draft(self, draft: HostedRelease) -> HostedRelease:
        release = self._host.release(draft.id)
        if release is None:
            raise Finding(
                f"The draft of {self._tag} has been deleted while it was being filled.", remedy="Run this again."
            )
        if not release.draft:
            raise _OvertakenError(release)
        return release

    def _still_ours(self, draft: HostedRelease) -> HostedRelease:
        release = self._still_draft(draft)
        if release.tag != self._tag or Marker.find(release.body) != self._marker:
            raise Finding(
                f"Another publisher has taken over the draft of {self._tag}: {release.url}",
                remedy="Let it finish; run this again to see that the release is what you have.",
            )
        return release

    def _compare(self, release: HostedRelease) -> Plan:
        return compare(self._build, self._host.assets(release), self._digest)

    def _digest(self, asset: HostedAsset) -> str:
        if asset.id not in self._digests:
            self._digests[asset.id] = self._host.digest(asset)
        return self._digests[asset.id]

    def _refuse_foreign(self, plan: Plan) -> None:
        if plan.foreign:
            raise Finding(
                f"The draft of {self._tag} has {plan.foreign[0].name}, which is not of this build.",
                remedy="Look at the draft; delete the asset or the draft by hand, and run this again.",
            )

    def _publish(self, draft: HostedRelease) -> HostedRelease:
        release = self._host.release(draft.id)
        if release and not release.draft and Marker.find(release.body) == self._marker:
            return release  # the answer to our own request was lost
        release = self._still_ours(draft)
        plan = self._compare(release)
        self._refuse_foreign(plan)
        if not plan.done:
            raise Finding(
                f"The draft of {self._tag} is not what was uploaded: {plan.explain()}.", remedy="Run this again."
            )
        self._check_tag()
        if found := self._find_published():
            raise _OvertakenError(found)
        try:
            self._host.publish(release, self._marker.attach(self._notes))
        except NameTaken:
            raise Transient("another release of the tag has appeared") from None
        return release

    def _read_back(self, expected: HostedRelease, outcome: Outcome) -> Publication:
        release = self._host.published(self._tag)
        if release is None or release.draft:
            raise Transient("the release is not to be seen yet")
        if release.id != expected.id:
            raise Finding(
                f"The release that {self._tag} leads to is another one than was expected: {release.url}",
                remedy="Run `triton-wasm publish doctor`.",
            )
        assets = self._host.assets(release)
        plan = compare(self._build, assets, self._digest)
        if not plan.done:
            raise Finding(
                f"{release.url} is published and is not this build: {plan.explain()}.",
                remedy="It was not touched. Publish this build under a new tag.",
            )
        self._check_tag()
        return Publication(
            tag=self._tag,
            commit=self._commit,
            url=release.url,
            prerelease=release.prerelease,
            immutable=release.immutable,
            assets=tuple(
                PublishedAsset(
                    name=asset.name, size=asset.size, sha256=asset.sha256 or self._digest(asset), url=asset.url
                )
                for asset in sorted(assets, key=lambda asset: asset.name)
            ),
            outcome=outcome,
        )
