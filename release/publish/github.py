"""GitHub as a host of releases.

>>> host = GitHubHost.from_environment("owner/name")
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from release.artifacts import Artifact
from release.download import Absent, download
from release.publish.api import Api, NotThere, translated
from release.publish.host import Access, HostedAsset, HostedRelease
from release.retry import Transient


class GitHubHost:
    """The releases of one repository. The verbs are those of ``host.Host``."""

    def __init__(self, api: Api) -> None:
        self.name = api.name
        self._api = api

    @classmethod
    def from_environment(cls, repository: str) -> GitHubHost:
        """Take the token and the address as GitHub Actions gives them. Raises BrokenEnvironment without a token."""
        return cls(Api.from_environment(repository))

    def access(self) -> Access:
        """Say what the token may do, and how many requests are left."""
        _, repository = self._api.ask("GET", "")
        # Of a job's token GitHub says that it may do nothing, whatever it may.
        permissions = None if self._api.of_a_job else repository.get("permissions")
        left, limit, resets_in = self._api.limits() or (None, None, None)
        return Access(
            may_write=permissions.get("push") if permissions else None,
            remaining=left,
            limit=limit,
            resets_in=resets_in,
        )

    @translated()
    def tag_commit(self, tag: str) -> str | None:
        """Follow a tag to its commit, also through annotated tags."""
        found = self._api.find(f"/git/ref/tags/{quote(tag)}")
        while found and found["object"]["type"] == "tag":
            found = self._api.find(f"/git/tags/{found['object']['sha']}")
        return str(found["object"]["sha"]) if found else None

    def have_tag(self, tag: str, commit: str) -> str:
        """Return the commit of a tag, which is created at ``commit`` where there is none."""
        if found := self.tag_commit(tag):
            return found
        self._api.ask("POST", "/git/refs", content={"ref": f"refs/tags/{tag}", "sha": commit})
        return commit

    def releases(self, tag: str) -> list[HostedRelease]:
        """List all releases: by its tag a draft is not to be found."""
        found = (_release(each) for each in self._api.pages("/releases"))
        return sorted((release for release in found if release.tag == tag), key=lambda release: release.id)

    def release(self, number: int) -> HostedRelease | None:
        """Read a release by its id."""
        found = self._api.find(f"/releases/{number}")
        return _release(found) if found else None

    def published(self, tag: str) -> HostedRelease | None:
        """Read a release by its tag."""
        found = self._api.find(f"/releases/tags/{quote(tag)}")
        return _release(found) if found else None

    def assets(self, release: HostedRelease) -> list[HostedAsset]:
        """List the assets."""
        return [_asset(each) for each in self._api.pages(f"/releases/{release.id}/assets")]

    def digest(self, asset: HostedAsset) -> str:
        """Download an asset; not with PyGithub, whose downloads are in memory before they are streamed."""
        headers = {"Accept": "application/octet-stream", **self._api.authorization}
        url = f"{self._api.url}/releases/assets/{asset.id}"
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = download(url, Path(folder) / "asset", maximum=max(asset.size, 1), headers=headers)
            except Absent as absent:
                raise Transient(f"{asset.name} is not to be had yet ({absent.status})") from None
        if found.size != asset.size:
            raise Transient(f"the download of {asset.name} ended after {found.size:,} of {asset.size:,} bytes")
        return found.sha256

    def create_draft(self, tag: str, *, title: str, body: str, prerelease: bool) -> HostedRelease:
        """Create a draft."""
        wanted = {"tag_name": tag, "name": title, "body": body, "draft": True, "prerelease": prerelease}
        return _release(self._api.ask("POST", "/releases", content=wanted)[1])

    def edit_body(self, release: HostedRelease, body: str) -> None:
        """Replace the text."""
        _release(self._api.ask("PATCH", f"/releases/{release.id}", content={"body": body})[1])

    def upload(self, release: HostedRelease, path: Path, artifact: Artifact) -> HostedAsset:
        """Stream a file; of the address that GitHub gives, only the path is used."""
        try:
            return _asset(self._api.upload(release.upload_url, path, artifact.name))
        except NotThere:
            raise Transient("the draft, or what was being uploaded, has gone") from None

    def delete_asset(self, asset: HostedAsset) -> None:
        """Delete an asset."""
        self._delete(f"/releases/assets/{asset.id}")

    def delete_draft(self, release: HostedRelease) -> None:
        """Delete a draft."""
        self._delete(f"/releases/{release.id}")

    def publish(self, release: HostedRelease, body: str) -> None:
        """Publish a draft."""
        _release(self._api.ask("PATCH", f"/releases/{release.id}", content={"draft": False, "body": body})[1])

    def _delete(self, path: str) -> None:
        with suppress(NotThere):  # somebody was faster, or our own request was carried out and its answer lost
            self._api.ask("DELETE", path)


@translated()
def _release(found: Any) -> HostedRelease:
    return HostedRelease(
        id=found["id"],
        tag=found["tag_name"],
        draft=found["draft"],
        prerelease=found["prerelease"],
        immutable=found.get("immutable", False),
        body=(found["body"] or "").replace("\r\n", "\n"),
        url=found["html_url"],
        upload_url=found["upload_url"].partition("{")[0],
    )


@translated()
def _asset(found: Any) -> HostedAsset:
    digest = found.get("digest") or ""
    return HostedAsset(
        id=found["id"],
        name=found["name"],
        size=found["size"],
        complete=found["state"] == "uploaded",
        sha256=digest.removeprefix("sha256:") if digest.startswith("sha256:") else None,
        url=found["browser_download_url"],
    )
