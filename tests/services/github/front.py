"""What GitHub's releases have and ``emulate`` has not, in front of it: bytes, digests, and the rules around them.

Everything else is passed on. Each request is counted, and any of them can be made to go wrong.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import shutil
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

TOKENS, REQUESTS_OF_A_TOKEN = 50, 4000

_CHUNK = 1 << 20
_DROPPED = {
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "host",
    "accept-encoding",
    "expect",
    "date",
}

FAULTS = (
    "refused",  # before anything is read
    "reset in the body",  # half of what is sent, or half of the answer
    "answer lost",  # carried out, and then no answer
    "500",
    "502",
    "403 primary",
    "403 secondary",
    "422",
    "hangs",  # longer than the client waits, and then never carried out
    "slow",  # longer than the client waits, and carried out then
    "lying length",  # the answer is shorter than it says
    "proxy",  # 200, and the page of somebody else
)
_REFUSALS: dict[str, tuple[int, dict[str, str], str]] = {
    "500": (500, {}, "Server Error"),
    "502": (502, {}, "Bad Gateway"),
    "503": (503, {"Retry-After": "7"}, "Service Unavailable"),
    "422": (422, {}, "Validation Failed"),
    "429": (429, {}, "Too Many Requests"),
    "307": (307, {"Location": "/repositories/1"}, "Moved Permanently"),
    "403": (403, {}, "Resource not accessible by integration"),
    "403 primary": (403, {"X-RateLimit-Remaining": "0"}, "API rate limit exceeded for installation."),
    "403 secondary": (403, {"Retry-After": "2"}, "You have exceeded a secondary rate limit."),
    "403 secondary, no word of how long": (403, {}, "You have exceeded a secondary rate limit."),
}
RESET_SECONDS = 30
_COMMENT = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)


@dataclass(kw_only=True)
class Stored:
    """An asset as the front knows it: where its bytes are, and whether all of them came."""

    path: Path
    size: int
    sha256: str
    complete: bool


@dataclass(kw_only=True)
class Rules:
    """What is so at one GitHub and not at another."""

    digests: bool = True
    immutable: bool = False
    may_push: bool = True
    may_open_pulls: bool = True


@dataclass(kw_only=True)
class Seen:
    """What was asked of the front, what is to go wrong, and what must not have happened.

    A slow answer takes ``patience`` seconds. ``published`` has the names and digests of each release, as they were when
    it was published; what changes in one afterwards, but for comments in its text, is a violation, and a name that a
    release or a draft has twice.
    """

    requests: list[tuple[str, str]] = field(default_factory=list)
    faults: dict[int, str] = field(default_factory=dict)
    patience: float = 0.0
    published: list[dict[str, str]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    hook: Callable[[str, str], None] | None = None

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [request for request in self.requests if request[0] != "GET"]


class Front(ThreadingHTTPServer):
    """Listens on a port of its own; ``upstream`` is where emulate does."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, blobs: Path, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.token = token
        self.upstream = 0
        self.tags: dict[int, str] = {}
        self._asked = 0
        self.blobs = blobs
        self.assets: dict[int, Stored] = {}
        self.public: dict[int, dict[str, str]] = {}
        self.seen = Seen()
        self.rules = Rules()
        self.lock = threading.RLock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def upstream_token(self) -> str:
        """Return a token for emulate, which like GitHub takes 5000 requests of one and then no more for an hour."""
        with self.lock:
            self._asked += 1
            return f"{self.token}_{self._asked // REQUESTS_OF_A_TOKEN}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that go away are what is tested."""


class _Reset(Exception):  # noqa: N818 - it is what has to happen
    pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Else the kernel holds the body back until the head is acknowledged, 40 ms with every answer.
    disable_nagle_algorithm = True
    server: Front

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def do_any(self) -> None:
        self.route = urlsplit(self.path)
        self.fault = ""
        if not self.route.path.startswith("/_blob/"):
            seen = self.server.seen
            with self.server.lock:
                seen.requests.append((self.command, self.route.path))
                number = len(seen.requests)
            if seen.hook:
                seen.hook(self.command, self.route.path)
            self.fault = seen.faults.pop(number, "")
        try:
            if self._goes_wrong():
                return
            self._dispatch()
        except _Reset:
            self._reset()

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_any  # noqa: N815 - http.server's names

    # What goes wrong before a request is carried out.

    def _goes_wrong(self) -> bool:
        if self.fault == "refused":
            raise _Reset
        if self.fault in ("hangs", "slow"):
            time.sleep(self.server.seen.patience)
            if self.fault == "hangs":
                raise _Reset
        if self.fault == "proxy":
            self._drain()
            self._send(200, b"<html>Please log in to the network.</html>", {"Content-Type": "text/html"})
            return True
        if self.fault not in _REFUSALS:
            return False
        status, headers, message = _REFUSALS[self.fault]
        if self.fault == "403 primary":
            headers = {**headers, "X-RateLimit-Reset": str(int(time.time()) + RESET_SECONDS)}
        self._drain()
        self._json(status, {"message": message, "documentation_url": "https://docs.github.com/rest"}, headers)
        return True

    def _reset(self) -> None:
        # Without a word of farewell, as a machine that has gone.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    # Which request it is.

    def _dispatch(self) -> None:
        path, accept = self.route.path, self.headers.get("Accept", "")
        if self.command != "GET" and self.headers.get("Authorization", "").split(" ")[-1] != self.server.token:
            self._drain()
            self._json(401, {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"})
            return
        if match := re.fullmatch(r"/_blob/(\d+)", path):
            self._blob(int(match[1]))
        elif self.command == "GET" and (match := re.fullmatch(r"/(.+?/.+?)/releases/download/([^/]+)/([^/]+)", path)):
            self._public_download(match[1], f"tags/{match[2]}", unquote(match[3]))
        elif self.command == "GET" and (match := re.fullmatch(r"/(.+?/.+?)/releases/latest/download/([^/]+)", path)):
            self._public_download(match[1], "latest", unquote(match[2]))
        elif (
            self.command == "GET"
            and "octet-stream" in accept
            and (match := re.fullmatch(r"/repos/.+?/.+?/releases/assets/(\d+)", path))
        ):
            self._redirect(int(match[1]))
        elif self.command == "POST" and (match := re.fullmatch(r"(/repos/.+?/.+?)/releases/(\d+)/assets", path)):
            self._upload(match[1], int(match[2]))
        elif self.command == "DELETE" and (match := re.fullmatch(r"(/repos/.+?/.+?)/releases/assets/(\d+)", path)):
            self._delete_asset(match[1], int(match[2]))
        elif self.command == "DELETE" and (match := re.fullmatch(r"(/repos/.+?/.+?)/releases/(\d+)", path)):
            self._delete_release(int(match[2]))
        elif self.command == "POST" and re.fullmatch(r"/repos/.+?/.+?/pulls", path):
            self._open_pull(path)
        elif self.command == "POST" and re.fullmatch(r"/repos/.+?/.+?/releases", path):
            self._create_release()
        elif self.command == "PATCH" and (match := re.fullmatch(r"(/repos/.+?/.+?)/releases/(\d+)", path)):
            self._edit_release(match[1], int(match[2]))
        else:
            self._pass_on()

    def _pass_on(self) -> None:
        status, headers, answer = self._upstream(self.command, self.path, self._body())
        self._answer(status, answer, headers)

    # Assets.

    def _upload(self, repository: str, release: int) -> None:
        name = parse_qs(self.route.query).get("name", [""])[0]
        # As at GitHub the asset is there from the beginning, not yet whole: nobody else has its name from then on.
        with self.server.lock:
            if self._refuse_immutable(repository, release):
                return
            _, _, there = self._upstream("GET", f"{repository}/releases/{release}/assets?per_page=100")
            if any(asset["name"] == name for asset in there or []):
                self._drain()
                self._invalid("ReleaseAsset", "name")
                return
            place = f"{repository}/releases/{release}/assets?name={quote(name)}"
            status, headers, asset = self._upstream("POST", place, b"-")
            if status != 201:
                self._drain()
                self._json(status, asset, headers)
                return
            with tempfile.NamedTemporaryFile(dir=self.server.blobs, delete=False) as file:
                stored = Stored(path=Path(file.name), size=0, sha256="", complete=False)
            self.server.assets[asset["id"]] = stored
            self._inspect(repository)
        if not self._receive(stored):
            raise _Reset
        with self.server.lock:
            if asset["id"] not in self.server.assets:
                self._not_found()
                return
            stored.complete = True
            self._inspect(repository)
        self._answer(status, asset, headers)

    def _receive(self, stored: Stored) -> bool:
        """Return whether all came."""
        length = int(self.headers.get("Content-Length") or 0)
        wanted = length // 2 if self.fault == "reset in the body" else length
        digest = hashlib.sha256()
        with stored.path.open("wb") as file, suppress(ConnectionError):
            while stored.size < wanted and (chunk := self.rfile.read(min(wanted - stored.size, _CHUNK))):
                digest.update(chunk)
                file.write(chunk)
                stored.size += len(chunk)
        stored.sha256 = digest.hexdigest()
        return stored.size == length

    def _redirect(self, asset: int) -> None:
        stored = self.server.assets.get(asset)
        if stored is None or not stored.complete:
            self._not_found()
            return
        if self.fault == "answer lost":
            raise _Reset
        self.send_response(302)
        suffix = f"?fault={quote(self.fault)}" if self.fault else ""
        self.send_header("Location", f"{self.server.url}/_blob/{asset}{suffix}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _blob(self, asset: int) -> None:
        stored = self.server.assets[asset]
        fault = parse_qs(self.route.query).get("fault", [""])[0]
        half = fault in ("reset in the body", "lying length")
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(stored.size))
        self.end_headers()
        with stored.path.open("rb") as file:
            if half:
                self.wfile.write(file.read(stored.size // 2))
                self.wfile.flush()
                self.close_connection = True
                if fault == "reset in the body":
                    raise _Reset
            else:
                shutil.copyfileobj(file, self.wfile, _CHUNK)

    def _public_download(self, repository: str, which: str, name: str) -> None:
        status, _, release = self._upstream("GET", f"/repos/{repository}/releases/{which}")
        found = [asset for asset in release["assets"] if asset["name"] == name] if status == 200 else []
        if not found:
            self._not_found()
            return
        self._redirect(found[0]["id"])

    def _delete_asset(self, repository: str, asset: int) -> None:
        with self.server.lock:
            releases = self._releases(repository)
            for release in releases:
                has_it = any(other["id"] == asset for other in release["assets"])
                if has_it and self._refuse_immutable(repository, release["id"]):
                    return
            self.server.assets.pop(asset, None)
            status, headers, answer = self._upstream("DELETE", self.path)
            self._inspect(repository)
        self._answer(status, answer, headers)

    # Pull requests, of which emulate opens as many for a branch as one likes.

    def _open_pull(self, path: str) -> None:
        body = self._body()
        head = json.loads(body)["head"]
        url = "https://docs.github.com/rest/pulls/pulls#create-a-pull-request"
        if not self.server.rules.may_open_pulls:
            message = "GitHub Actions is not permitted to create or approve pull requests."
            self._json(403, {"message": message, "documentation_url": url})
            return
        with self.server.lock:
            _, _, there = self._upstream("GET", f"{path}?state=open&per_page=100")
            if any(pull["head"]["ref"] == head for pull in there):
                error = {
                    "resource": "PullRequest",
                    "code": "custom",
                    "message": "A pull request already exists for it.",
                }
                self._json(422, {"message": "Validation Failed", "errors": [error], "documentation_url": url})
                return
            status, headers, answer = self._upstream("POST", self.path, body)
        self._answer(status, answer, headers)

    # Releases.

    def _releases(self, repository: str) -> list[Any]:
        found: list[Any] = []
        while True:
            page = len(found) // 100 + 1
            _, _, more = self._upstream("GET", f"{repository}/releases?per_page=100&page={page}")
            found += more if isinstance(more, list) else []
            if not isinstance(more, list) or len(more) < 100:
                return found

    def _delete_release(self, number: int) -> None:
        with self.server.lock:
            if number in self.server.public:
                self.server.seen.violations.append("a published release was deleted")
            self._pass_on()

    def _create_release(self) -> None:
        # GitHub has as many drafts of a tag as one likes, and emulate one: there each gets a tag of its own.
        wanted = json.loads(self._body())
        with self.server.lock:
            alias = {"tag_name": f"untagged-{len(self.server.tags)}"} if wanted.get("draft") else {}
            content = json.dumps({**wanted, **alias}).encode()
            status, headers, answer = self._upstream("POST", self.path, content)
            if status == 201 and alias:
                self.server.tags[answer["id"]] = wanted["tag_name"]
        self._answer(status, answer, headers)

    def _edit_release(self, repository: str, number: int) -> None:
        body = self._body()
        wanted = json.loads(body or b"{}")
        with self.server.lock:
            releases = self._releases(repository)
            ours = next((release for release in releases if release["id"] == number), None)
            if ours and not ours["draft"] and "body" in wanted:
                texts = {_COMMENT.sub("", text.replace("\r\n", "\n")) for text in (wanted["body"], ours["body"])}
                if len(texts) == 2:
                    self.server.seen.violations.append("the text of a published release was changed")
            publishing = bool(ours and ours["draft"] and wanted.get("draft") is False)
            if publishing:
                assert ours is not None
                tag = self.server.tags.get(number, ours["tag_name"])
                if any(not other["draft"] and other["tag_name"] == tag for other in releases):
                    self._invalid("Release", "tag_name")
                    return
                self._note_published(ours)
                body = json.dumps({**wanted, "tag_name": tag}).encode()
            status, headers, answer = self._upstream("PATCH", self.path, body)
            self._inspect(repository)
        self._answer(status, answer, headers)

    def _note_published(self, release: Mapping[str, Any]) -> None:
        stored = {asset["name"]: self.server.assets[asset["id"]] for asset in release["assets"]}
        self.server.seen.violations += [f"{name} was published half" for name, a in stored.items() if not a.complete]
        self.server.public[release["id"]] = {name: asset.sha256 for name, asset in stored.items()}
        self.server.seen.published.append(self.server.public[release["id"]])

    def _inspect(self, repository: str) -> None:
        """After each change, note what must not be."""
        releases = self._releases(repository)
        for release in releases:
            assets = [(asset["name"], self.server.assets[asset["id"]]) for asset in release["assets"]]
            names = [name for name, _ in assets]
            found = {name: stored.sha256 for name, stored in assets if stored.complete}
            if len(names) != len(set(names)):
                self.server.seen.violations.append(f"a name is there twice: {sorted(names)}")
            if not release["draft"] and (found != self.server.public.get(release["id"]) or len(found) != len(names)):
                self.server.seen.violations.append(f"a published release was changed, and has {sorted(found)} now")

    def _refuse_immutable(self, repository: str, number: int) -> bool:
        status, _, release = self._upstream("GET", f"{repository}/releases/{number}")
        if status != 200 or release["draft"]:
            return False
        if self.server.rules.immutable:
            self._drain()
            self._json(422, {"message": "Cannot change assets of an immutable release"})
            return True
        return False

    # Answers.

    def _answer(self, status: int, answer: Any, headers: Mapping[str, str]) -> None:
        self._decorate(answer)
        if self.fault == "answer lost":
            raise _Reset
        self._json(status, answer, headers)

    def _decorate(self, answer: Any, tag: str | None = None) -> None:
        """Put in what emulate does not know, wherever a release or an asset is."""
        if tag is None and (match := re.match(r"(/repos/.+?/.+?/releases/\d+)/assets", self.route.path)):
            release = self._upstream("GET", match[1])[2]
            tag = self.server.tags.get(release.get("id"), release.get("tag_name", ""))
        if isinstance(answer, list):
            for each in answer:
                self._decorate(each, tag)
        elif isinstance(answer, dict):
            if "tag_name" in answer and "assets" in answer:
                if answer["draft"]:
                    answer["tag_name"] = self.server.tags.get(answer["id"], answer["tag_name"])
                tag = answer["tag_name"]
                answer["immutable"] = self.server.rules.immutable and not answer["draft"]
            if "permissions" in answer and not self.server.rules.may_push:
                answer["permissions"] = dict.fromkeys(answer["permissions"], False)
            stored = self.server.assets.get(answer.get("id", 0)) if "browser_download_url" in answer else None
            if stored:
                digest = f"sha256:{stored.sha256}" if self.server.rules.digests and stored.complete else None
                state = "uploaded" if stored.complete else "starter"
                repository = re.sub(r".*/repos/(.+?/.+?)/.*", r"\1", answer["url"])
                url = f"{self.server.url}/{repository}/releases/download/{quote(tag or '')}/{quote(answer['name'])}"
                answer.update(size=stored.size, digest=digest, state=state, browser_download_url=url)
            for each in answer.values():
                self._decorate(each, tag)

    def _not_found(self) -> None:
        self._json(404, {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"})

    def _invalid(self, resource: str, field_: str) -> None:
        errors = [{"resource": resource, "code": "already_exists", "field": field_}]
        url = "https://docs.github.com/rest"
        self._json(422, {"message": "Validation Failed", "errors": errors, "documentation_url": url})

    def _json(self, status: int, answer: Any, headers: Mapping[str, str] | None = None) -> None:
        content = b"" if answer is None else json.dumps(answer).encode()
        self._send(status, content, {"Content-Type": "application/json; charset=utf-8", **(headers or {})})

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in _DROPPED:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.fault in ("lying length", "reset in the body") and content:
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self.close_connection = True
            if self.fault == "reset in the body":
                raise _Reset
            return
        self.wfile.write(content)

    # What is read, and where it goes.

    def _body(self) -> bytes:
        length = int(self.headers.get("Content-Length") or 0)
        if self.fault == "reset in the body" and length:
            self.rfile.read(length // 2)
            raise _Reset
        return self.rfile.read(length)

    def _drain(self) -> None:
        left = int(self.headers.get("Content-Length") or 0)
        while left > 0 and (chunk := self.rfile.read(min(left, _CHUNK))):
            left -= len(chunk)

    def _upstream(self, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=30)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _DROPPED}
        headers["Accept"] = "application/json"
        headers["Authorization"] = f"Bearer {self.server.upstream_token()}"
        if method in ("POST", "PATCH", "PUT"):
            headers["Content-Length"] = str(len(body))
        connection.request(method, path, body=body or None, headers=headers)
        response = connection.getresponse()
        content = response.read()
        kept = {name: value for name, value in response.getheaders() if name.lower() not in _DROPPED}
        connection.close()
        return response.status, kept, json.loads(content) if content else None
