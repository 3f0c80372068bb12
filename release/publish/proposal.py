"""Pull requests that change a few files, and issues that say what went wrong: one of each for a thing, never two.

>>> propose(Api.from_environment("owner/name"), change, retry=Retry(Progress()))

A proposal is known by its branch, a report by its marker. Both may be run again, whatever became of the run before:
what is there is brought up to date. A pull request that somebody has closed or merged is settled, and not opened again.
GitHub starts no workflows for what a job's own token does: whoever reviews closes and opens it once, or pushes to it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from release.errors import BrokenEnvironment, Finding
from release.publish.api import Api
from release.retry import Retry, Transient

MAXIMUM_BODY = 65_536
"""Characters of the text of a pull request or an issue that GitHub takes."""

_CUT = "\n\n*Cut here: it is longer than GitHub takes. All of it is in the summary of the run.*\n"

type Outcome = Literal["opened", "updated", "unchanged", "closed"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is proposed: the new texts of files by their paths, and the branch that carries them to the default one."""

    branch: str
    files: Mapping[str, str]
    title: str
    body: str


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """The pull request or issue, and what had to be done for it."""

    number: int
    url: str
    outcome: Outcome


def propose(api: Api, change: Change, *, retry: Retry) -> Proposed:
    """Have one pull request with ``change``.

    Raises BrokenEnvironment when the token may not write or open pull requests, Finding for what GitHub refuses.
    """
    return retry.step("pull request", lambda: _Proposing(api, change).run())


class _Proposing:
    """Looks at what there is, each time from the beginning, and does what is missing."""

    def __init__(self, api: Api, change: Change) -> None:
        self._api, self._change = api, change
        self._body = _fit(change.body)

    def run(self) -> Proposed:
        _, repository = self._api.ask("GET", "")
        owner, base = repository["owner"]["login"], repository["default_branch"]
        requests = list(self._api.pages("/pulls", state="all", head=f"{owner}:{self._change.branch}"))
        is_open = next((one for one in requests if one["state"] == "open"), None)
        if requests and not is_open:
            return Proposed(number=requests[0]["number"], url=requests[0]["html_url"], outcome="closed")
        moved = self._bring_branch_up_to_date(base)
        if is_open is None:
            return self._open(base)
        edited = self._edit(is_open)
        outcome: Outcome = "updated" if moved or edited else "unchanged"
        return Proposed(number=is_open["number"], url=is_open["html_url"], outcome=outcome)

    def _bring_branch_up_to_date(self, base: str) -> bool:
        """Have the branch carry the files, one commit upon the default branch or upon what it was; say if it moved."""
        place = f"/git/ref/heads/{quote(self._change.branch)}"
        there = self._api.find(place)
        if there and self._carries(there["object"]["sha"]):
            return False
        parent = (there or self._api.ask("GET", f"/git/ref/heads/{quote(base)}")[1])["object"]["sha"]
        commit = self._commit(parent)
        if there:
            self._api.ask("PATCH", f"/git/refs/heads/{quote(self._change.branch)}", content={"sha": commit})
        else:
            ref = f"refs/heads/{self._change.branch}"
            self._api.ask("POST", "/git/refs", content={"ref": ref, "sha": commit})
        return True

    def _carries(self, commit: str) -> bool:
        for path, text in self._change.files.items():
            found = self._api.find(f"/contents/{quote(path)}?ref={commit}")
            if not found or base64.b64decode(found["content"]) != text.encode():
                return False
        return True

    def _commit(self, parent: str) -> str:
        _, before = self._api.ask("GET", f"/git/commits/{parent}")
        entries = [
            {"path": path, "mode": "100644", "type": "blob", "content": text}
            for path, text in sorted(self._change.files.items())
        ]
        content = {"base_tree": before["tree"]["sha"], "tree": entries}
        _, tree = self._api.ask("POST", "/git/trees", content=content)
        content = {"message": self._change.title, "tree": tree["sha"], "parents": [parent]}
        _, commit = self._api.ask("POST", "/git/commits", content=content)
        return str(commit["sha"])

    def _open(self, base: str) -> Proposed:
        content = {"title": self._change.title, "body": self._body, "head": self._change.branch, "base": base}
        try:
            _, opened = self._api.ask("POST", "/pulls", content=content)
        except Finding as problem:
            if "already exists" not in str(problem):
                raise
            raise Transient("somebody else has opened it just now") from None
        except BrokenEnvironment as problem:
            if "pull request" not in str(problem):
                raise
            raise BrokenEnvironment(
                "This repository does not let workflows open pull requests.",
                remedy="Allow it: Settings, Actions, General, Workflow permissions; the branch is there already.",
            ) from None
        return Proposed(number=opened["number"], url=opened["html_url"], outcome="opened")

    def _edit(self, request: Any) -> bool:
        wanted = {"title": self._change.title, "body": self._body}
        if {key: (request[key] or "").replace("\r\n", "\n") for key in wanted} == wanted:
            return False
        self._api.ask("PATCH", f"/pulls/{request['number']}", content=wanted)
        return True


def report(api: Api, *, slug: str, title: str, body: str, retry: Retry) -> Proposed:
    """Have one open issue about ``slug``, with ``body`` as what is known now. Raises as ``propose`` does."""
    marker = f"<!-- triton-wasm: {slug} -->"
    text = f"{marker}\n{_fit(body, room=len(marker) + 1)}"
    return retry.step("issue", lambda: _report(api, marker, title, text))


def _report(api: Api, marker: str, title: str, text: str) -> Proposed:
    for issue in api.pages("/issues", state="open"):
        body = (issue["body"] or "").replace("\r\n", "\n")
        if not body.startswith(marker) or "pull_request" in issue:
            continue
        outcome: Outcome = "unchanged"
        if (issue["title"], body) != (title, text):
            api.ask("PATCH", f"/issues/{issue['number']}", content={"title": title, "body": text})
            outcome = "updated"
        return Proposed(number=issue["number"], url=issue["html_url"], outcome=outcome)
    _, opened = api.ask("POST", "/issues", content={"title": title, "body": text})
    return Proposed(number=opened["number"], url=opened["html_url"], outcome="opened")


def _fit(text: str, *, room: int = 0) -> str:
    longest = MAXIMUM_BODY - room
    if len(text) <= longest:
        return text
    return text[: longest - len(_CUT)].rpartition("\n")[0] + _CUT
