"""What publishing needs of a place that hosts releases, whether that is GitHub or a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from release.artifacts import Artifact


@dataclass(frozen=True, kw_only=True)
class HostedAsset:
    """An asset as its host describes it; ``size`` is in bytes.

    ``complete`` is false for an upload that broke off or is still going on. ``sha256`` is 64 hex digits, or None where
    the host does not tell: then ``Host.digest`` finds out.
    """

    id: int
    name: str
    size: int
    complete: bool
    sha256: str | None
    url: str


@dataclass(frozen=True, kw_only=True)
class HostedRelease:
    """A release or a draft of one as its host describes it; a smaller ``id`` is an older one."""

    id: int
    tag: str
    draft: bool
    prerelease: bool
    immutable: bool
    body: str
    url: str
    upload_url: str


@dataclass(frozen=True, kw_only=True)
class Access:
    """What we may do at a host: whether we may write (None: it does not say), and how many requests are left.

    ``resets_in`` is the number of seconds until there are ``limit`` of them again.
    """

    may_write: bool | None
    remaining: int | None = None
    limit: int | None = None
    resets_in: float | None = None


class NameTaken(Exception):  # noqa: N818 - what to do about it is not for the host to say
    """The host has an asset of that name in the release, or a published release of that tag."""


class Host(Protocol):
    """The verbs of publishing; each is one request or a few, and none tries again by itself.

    They raise ``release.retry.Transient`` where the same again may go well, and a ``Problem`` where it will not.
    """

    name: str

    def access(self) -> Access:
        """Say what we may do."""

    def tag_commit(self, tag: str) -> str | None:
        """Return the commit that a tag leads to, or None without such a tag."""

    def releases(self, tag: str) -> list[HostedRelease]:
        """List every release of a tag, drafts among them, the oldest first."""

    def release(self, number: int) -> HostedRelease | None:
        """Read one release or draft by its id."""

    def published(self, tag: str) -> HostedRelease | None:
        """Read the release of a tag as everybody sees it; drafts are not seen."""

    def assets(self, release: HostedRelease) -> list[HostedAsset]:
        """List the assets of a release, also those that are not complete."""

    def digest(self, asset: HostedAsset) -> str:
        """Download an asset and return its SHA-256 as 64 hex digits."""

    def create_draft(self, tag: str, *, title: str, body: str, prerelease: bool) -> HostedRelease:
        """Begin a release that nobody sees."""

    def edit_body(self, release: HostedRelease, body: str) -> None:
        """Replace the text of a draft."""

    def upload(self, release: HostedRelease, path: Path, artifact: Artifact) -> HostedAsset:
        """Send a file as an asset. Raises NameTaken too."""

    def delete_asset(self, asset: HostedAsset) -> None:
        """Remove an asset; no such asset is success."""

    def delete_draft(self, release: HostedRelease) -> None:
        """Remove a draft; no such draft is success."""

    def publish(self, release: HostedRelease, body: str) -> None:
        """Make a draft the release of its tag, and give it its text in the same moment. Raises NameTaken too."""
