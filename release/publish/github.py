"""GitHub as a host of releases, through PyGithub's requester.

>>> host = GitHubHost.from_environment("owner/name")

Each verb is one request, or one for each page of a list. PyGithub's objects are not used, for they ask again by
themselves where an attribute is missing; its requester signs, streams what is sent, and paces. The token is read from
``GITHUB_TOKEN`` and is in no argument, message or exception.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from github import Auth, Github
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass
from requests import RequestException

from release.artifacts import Artifact
from release.download import Absent, download
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.publish.host import Access, HostedAsset, HostedRelease, NameTaken
from release.retry import Transient

TOKEN = "GITHUB_TOKEN"  # noqa: S105 - the name of a variable
_API = "https://api.github.com"
_SECONDS_BETWEEN_WRITES = 1.0  # what GitHub asks of integrations
_TIMEOUT_SECONDS = 120
_PAGE = 100
_LIMITED_SECONDS = 60.0  # what GitHub asks for where it does not say how long
_REPOSITORY = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
_THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})
_OF_A_JOB = "ghs_"  # what tokens of Actions and of apps begin with


@contextmanager
def _translated() -> Iterator[None]:
    """Make of PyGithub's and requests' exceptions ours, which hold no request and so no token."""
    try:
        yield
    except RequestException as error:
        problem: Exception = Transient(f"GitHub: {type(error).__name__}")
    except (ValueError, LookupError, TypeError) as error:  # such as the page of a proxy
        problem = Transient(f"GitHub's answer is none ({type(error).__name__})")
    except RuntimeError:  # PyGithub's word for a redirect to another host
        problem = _moved()
    else:
        return
    raise problem


class GitHubHost:
    """The releases of one repository. The verbs are those of ``host.Host``."""

    def __init__(
        self, repository: str, *, token: str, api: str = _API, seconds_between_writes: float = _SECONDS_BETWEEN_WRITES
    ) -> None:
        if not _REPOSITORY.fullmatch(repository):
            raise WrongUsage(f"{repository!r} is not OWNER/NAME.", remedy="Give the repository as GitHub spells it.")
        self.name = f"{repository} at {api.split('://')[-1]}"
        self._api, self._path = api, f"/repos/{repository}"
        if urlsplit(api).scheme != "https" and urlsplit(api).hostname not in _THIS_MACHINE:
            raise WrongUsage(f"{api} is not https, and would get the token.", remedy="Check GITHUB_API_URL.")
        self._authorization = {"Authorization": f"Bearer {token}"}
        self._of_a_job = token.startswith(_OF_A_JOB)
        self._uploads = _connection_for_uploads(api)
        self._requester = Github(
            base_url=api,
            auth=Auth.Token(token),
            retry=None,  # ours knows what may be repeated, and says so
            timeout=_TIMEOUT_SECONDS,
            seconds_between_requests=None,
            seconds_between_writes=seconds_between_writes,
        ).requester

    @classmethod
    def from_environment(cls, repository: str) -> GitHubHost:
        """Take the token and the address as GitHub Actions gives them. Raises BrokenEnvironment without a token."""
        token = os.environ.get(TOKEN, "")
        if not token:
            raise BrokenEnvironment(
                f"There is no token: {TOKEN} is not set.", remedy="Give the step `GITHUB_TOKEN` with `contents: write`."
            )
        return cls(repository, token=token, api=os.environ.get("GITHUB_API_URL", _API))

    def access(self) -> Access:
        """Say what the token may do, and how many requests are left."""
        _, repository = self._ask("GET", "")
        # Of a job's token GitHub says that it may do nothing, whatever it may.
        permissions = None if self._of_a_job else repository.get("permissions")
        left, limit = self._requester.rate_limiting
        return Access(
            may_write=permissions.get("push") if permissions else None,
            remaining=left if limit > 0 else None,
            limit=limit if limit > 0 else None,
            resets_in=max(self._requester.rate_limiting_resettime - time.time(), 0.0) if limit > 0 else None,
        )

    @_translated()
    def tag_commit(self, tag: str) -> str | None:
        """Follow a tag to its commit, also through annotated tags."""
        found = self._find(f"/git/ref/tags/{quote(tag)}")
        while found and found["object"]["type"] == "tag":
            found = self._find(f"/git/tags/{found['object']['sha']}")
        return str(found["object"]["sha"]) if found else None

    def releases(self, tag: str) -> list[HostedRelease]:
        """List all releases: by its tag a draft is not to be found."""
        found = (_release(each) for each in self._pages("/releases"))
        return sorted((release for release in found if release.tag == tag), key=lambda release: release.id)

    def release(self, number: int) -> HostedRelease | None:
        """Read a release by its id."""
        found = self._find(f"/releases/{number}")
        return _release(found) if found else None

    def published(self, tag: str) -> HostedRelease | None:
        """Read a release by its tag."""
        found = self._find(f"/releases/tags/{quote(tag)}")
        return _release(found) if found else None

    def assets(self, release: HostedRelease) -> list[HostedAsset]:
        """List the assets."""
        return [_asset(each) for each in self._pages(f"/releases/{release.id}/assets")]

    def digest(self, asset: HostedAsset) -> str:
        """Download an asset; not with PyGithub, whose downloads are in memory before they are streamed."""
        headers = {"Accept": "application/octet-stream", **self._authorization}
        url = f"{self._api}{self._path}/releases/assets/{asset.id}"
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
        return _release(self._ask("POST", "/releases", content=wanted)[1])

    def edit_body(self, release: HostedRelease, body: str) -> None:
        """Replace the text."""
        _release(self._ask("PATCH", f"/releases/{release.id}", content={"body": body})[1])

    def upload(self, release: HostedRelease, path: Path, artifact: Artifact) -> HostedAsset:
        """Stream a file; of the address that GitHub gives, only the path is used."""
        name, kind = {"name": artifact.name}, {"Content-Type": "application/octet-stream"}
        try:
            with _translated():
                answer = self._requester.requestBlob("POST", release.upload_url, name, kind, str(path), self._uploads)
                return _asset(_read(*answer))
        except _NotThere:
            raise Transient("the draft, or what was being uploaded, has gone") from None

    def delete_asset(self, asset: HostedAsset) -> None:
        """Delete an asset."""
        self._delete(f"/releases/assets/{asset.id}")

    def delete_draft(self, release: HostedRelease) -> None:
        """Delete a draft."""
        self._delete(f"/releases/{release.id}")

    def publish(self, release: HostedRelease, body: str) -> None:
        """Publish a draft."""
        _release(self._ask("PATCH", f"/releases/{release.id}", content={"draft": False, "body": body})[1])

    def _ask(
        self,
        verb: str,
        path: str,
        *,
        parameters: dict[str, Any] | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> tuple[Mapping[str, str], Any]:
        with _translated():
            status, headers, text = self._requester.requestJson(verb, self._path + path, parameters, input=content)
            return headers, _read(status, headers, text)

    def _find(self, path: str) -> Any:
        try:
            return self._ask("GET", path)[1]
        except _NotThere:
            return None

    def _pages(self, path: str) -> Iterator[Any]:
        page, more = 1, True
        while more:
            headers, found = self._ask("GET", path, parameters={"per_page": str(_PAGE), "page": str(page)})
            if not isinstance(found, list):
                raise Transient("GitHub's answer is no list")
            yield from found
            page, more = page + 1, 'rel="next"' in headers.get("link", "")

    def _delete(self, path: str) -> None:
        with suppress(_NotThere):  # somebody was faster, or our own request was carried out and its answer lost
            self._ask("DELETE", path)


def _connection_for_uploads(api: str) -> HTTPRequestsConnectionClass | HTTPSRequestsConnectionClass:
    # GitHub takes assets at uploads.github.com, and the connection that PyGithub itself makes to there waits for ever.
    parts = urlsplit(api)
    kind = HTTPSRequestsConnectionClass if parts.scheme == "https" else HTTPRequestsConnectionClass
    return kind(re.sub(r"^api\.", "uploads.", parts.hostname or ""), parts.port, timeout=_TIMEOUT_SECONDS)


class _NotThere(Finding):
    """GitHub answered 404: there is none, or the token may not see it."""

    def __init__(self) -> None:
        super().__init__(
            "GitHub says that there is no such thing.",
            remedy="Check the name of the repository, and that the token may read it.",
        )


def _read(status: int, headers: Mapping[str, str], text: str) -> Any:
    """Return what is in an answer, or raise what it means."""
    if status < 300:
        return json.loads(text) if text else None
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    raise _problem_of(status, headers, content)


def _problem_of(status: int, headers: Mapping[str, str], content: Any) -> Exception:
    message = str(content.get("message", "") if isinstance(content, dict) else "")[:200]
    wait = _asked_to_wait(headers, message)
    if status < 400:
        return _moved()
    if status == 404:
        return _NotThere()
    if status == 422 and "already_exists" in str(content):
        return NameTaken()
    if status == 429 or (status == 403 and wait):
        return Transient(f"GitHub limits our rate ({status})", wait=wait or _LIMITED_SECONDS)
    if status >= 500 or status in (408, 409, 425):
        return Transient(f"GitHub answered {status}", wait=wait)
    if status in (401, 403):
        return BrokenEnvironment(
            f"GitHub refuses the token ({status}): {message}", remedy="Give the job `permissions: contents: write`."
        )
    return Finding(f"GitHub refuses the request ({status}): {message}", remedy="Run `triton-wasm publish doctor`.")


def _moved() -> Finding:
    return Finding("GitHub says that the repository has moved.", remedy="Give its new name, and check GITHUB_API_URL.")


def _asked_to_wait(headers: Mapping[str, str], message: str) -> float:
    """Return for how many seconds GitHub asks us to stay away, or 0 when it does not."""
    if (asked := headers.get("retry-after", "")).isdecimal():
        return max(float(asked), 1.0)
    if headers.get("x-ratelimit-remaining") == "0" and (reset := headers.get("x-ratelimit-reset", "")).isdecimal():
        return max(float(reset) - time.time(), 1.0)
    return _LIMITED_SECONDS if "rate limit" in message.lower() else 0.0


@_translated()
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


@_translated()
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
