"""The API of one repository at GitHub, through PyGithub's requester.

Each call is one request, or one for each page of a list. PyGithub's objects are not used, for they ask again by
themselves where an attribute is missing; its requester signs, streams what is sent, and paces. The token is read from
``GITHUB_TOKEN`` and is in no argument, message or exception.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from github import Auth, Github
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass
from requests import RequestException

from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.publish.host import NameTaken
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
def translated() -> Iterator[None]:
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


class Api:
    """One repository's API. What goes wrong is ``retry.Transient`` where the same again may go well, else a Problem."""

    def __init__(
        self, repository: str, *, token: str, api: str = _API, seconds_between_writes: float = _SECONDS_BETWEEN_WRITES
    ) -> None:
        if not _REPOSITORY.fullmatch(repository):
            raise WrongUsage(f"{repository!r} is not OWNER/NAME.", remedy="Give the repository as GitHub spells it.")
        self.name = f"{repository} at {api.split('://')[-1]}"
        self.url = f"{api}/repos/{repository}"
        self._path = f"/repos/{repository}"
        if urlsplit(api).scheme != "https" and urlsplit(api).hostname not in _THIS_MACHINE:
            raise WrongUsage(f"{api} is not https, and would get the token.", remedy="Check GITHUB_API_URL.")
        self.authorization = {"Authorization": f"Bearer {token}"}
        self.of_a_job = token.startswith(_OF_A_JOB)
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
    def from_environment(cls, repository: str) -> Self:
        """Take the token and the address as GitHub Actions gives them. Raises BrokenEnvironment without a token."""
        token = os.environ.get(TOKEN, "")
        if not token:
            raise BrokenEnvironment(
                f"There is no token: {TOKEN} is not set.", remedy="Give the step `GITHUB_TOKEN` with `contents: write`."
            )
        return cls(repository, token=token, api=os.environ.get("GITHUB_API_URL", _API))

    def ask(
        self,
        verb: str,
        path: str,
        *,
        parameters: dict[str, Any] | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> tuple[Mapping[str, str], Any]:
        """Make one request below the repository; return the headers and the content of the answer."""
        with translated():
            status, headers, text = self._requester.requestJson(verb, self._path + path, parameters, input=content)
            return headers, _read(status, headers, text)

    def find(self, path: str) -> Any:
        """Read something, or return None where there is none."""
        try:
            return self.ask("GET", path)[1]
        except NotThere:
            return None

    def pages(self, path: str, **parameters: str) -> Iterator[Any]:
        """Read a list, page by page."""
        page, more = 1, True
        while more:
            wanted = {**parameters, "per_page": str(_PAGE), "page": str(page)}
            headers, found = self.ask("GET", path, parameters=wanted)
            if not isinstance(found, list):
                raise Transient("GitHub's answer is no list")
            yield from found
            page, more = page + 1, 'rel="next"' in headers.get("link", "")

    def upload(self, url: str, path: Path, name: str) -> Any:
        """Stream a file; of the address, only the path is used."""
        kind = {"Content-Type": "application/octet-stream"}
        with translated():
            return _read(*self._requester.requestBlob("POST", url, {"name": name}, kind, str(path), self._uploads))

    def limits(self) -> tuple[int, int, float] | None:
        """Say how many requests are left, of how many, and the seconds until they are that many again, where known."""
        left, limit = self._requester.rate_limiting
        return (left, limit, max(self._requester.rate_limiting_resettime - time.time(), 0.0)) if limit > 0 else None


def _connection_for_uploads(api: str) -> HTTPRequestsConnectionClass | HTTPSRequestsConnectionClass:
    # GitHub takes assets at uploads.github.com, and the connection that PyGithub itself makes to there waits for ever.
    parts = urlsplit(api)
    kind = HTTPSRequestsConnectionClass if parts.scheme == "https" else HTTPRequestsConnectionClass
    return kind(re.sub(r"^api\.", "uploads.", parts.hostname or ""), parts.port, timeout=_TIMEOUT_SECONDS)


class NotThere(Finding):
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
    message = _message(content)
    wait = _asked_to_wait(headers, message)
    if status < 400:
        return _moved()
    if status == 404:
        return NotThere()
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


def _message(content: Any) -> str:
    """Return what GitHub says, with the first thing that it minds in particular."""
    if not isinstance(content, dict):
        return ""
    errors = content.get("errors")
    first = errors[0].get("message", "") if isinstance(errors, list) and errors and isinstance(errors[0], dict) else ""
    return f"{content.get('message', '')}{': ' if first else ''}{first}"[:300]


def _moved() -> Finding:
    return Finding("GitHub says that the repository has moved.", remedy="Give its new name, and check GITHUB_API_URL.")


def _asked_to_wait(headers: Mapping[str, str], message: str) -> float:
    """Return for how many seconds GitHub asks us to stay away, or 0 when it does not."""
    if (asked := headers.get("retry-after", "")).isdecimal():
        return max(float(asked), 1.0)
    if headers.get("x-ratelimit-remaining") == "0" and (reset := headers.get("x-ratelimit-reset", "")).isdecimal():
        return max(float(reset) - time.time(), 1.0)
    return _LIMITED_SECONDS if "rate limit" in message.lower() else 0.0
