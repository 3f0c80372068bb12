"""Downloads come from where they may come from, whole, bounded, or not at all."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from release.download import Absent, download
from release.errors import Finding, WrongUsage
from release.retry import Transient

CONTENT = b"0123456789" * 1000


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT, in the way that the path says."""

    seen: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization"))
        verb, _, rest = self.path[1:].partition("/")
        if verb == "to":
            self._answer(302, {"Location": rest})
        elif verb == "round":
            self._answer(302, {"Location": f"/round/{rest}x"})
        elif verb == "status":
            self._answer(int(rest), {"Retry-After": "7"})
        elif verb == "short":
            self._answer(200, {"Content-Length": str(len(CONTENT))}, CONTENT[:-1])
            self.close_connection = True
        elif verb == "endless":
            self._answer(200, {}, CONTENT * 100)
        else:
            self._answer(200, {"Content-Length": str(len(CONTENT))}, CONTENT)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def test_a_file_arrives_whole(server: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert download(f"{server}/file", path, maximum=len(CONTENT)).size == len(CONTENT)
    assert path.read_bytes() == CONTENT
    assert download(f"{server}/to//file", path, maximum=len(CONTENT)).name == "file"


@pytest.mark.parametrize(
    ("path", "kind", "said"),
    [
        ("/endless/", Finding, "more than"),
        ("/short/", Transient, "Error|ended after"),
        ("/status/404", Absent, "404"),
        ("/status/403", Absent, "403"),
        ("/status/500", Transient, "500"),
        ("/status/429", Transient, "429"),
        ("/round/", Finding, "one place to the next"),
        ("/to/http://192.0.2.1/file", Finding, "leads to http://192.0.2.1"),
        ("/to/ftp://127.0.0.1/file", Finding, "leads to ftp"),
        ("/to/file:///etc/passwd", Finding, "leads to file"),
    ],
)
def test_what_is_not_right_leaves_nothing(
    server: str, tmp_path: Path, path: str, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        download(server + path, tmp_path / "file", maximum=len(CONTENT) + 1)
    assert not list(tmp_path.iterdir())


def test_a_server_says_how_long_to_stay_away(server: str, tmp_path: Path) -> None:
    with pytest.raises(Transient) as caught:
        download(f"{server}/status/503", tmp_path / "file", maximum=1)
    assert caught.value.wait == 7


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1/x", "http://localhost.evil.example/x", "ftp://127.0.0.1/x", "file:///x"]
)
def test_other_places_are_not_asked(url: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="neither https"):
        download(url, tmp_path / "file", maximum=1)


def test_headers_go_to_the_first_host_only(server: str, tmp_path: Path) -> None:
    other = server.replace("127.0.0.1", "localhost")
    for path, expected in (("/to//file", ["secret", "secret"]), (f"/to/{other}/file", ["secret", None])):
        Handler.seen.clear()
        download(server + path, tmp_path / "file", maximum=len(CONTENT), headers={"Authorization": "secret"})
        assert Handler.seen == expected


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(Transient, match=r"127\.0\.0\.1:1"):
        download("http://127.0.0.1:1/x", tmp_path / "file", maximum=1)
