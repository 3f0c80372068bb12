"""A host of static files on loopback, well-behaved or not, that notes what it was asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from release.publish.cdn.hosts import headers_of

type Fault = Literal["no-cors", "page", "gone", "type", "truncated", "byte", "mutable", "encoding"]
"""No CORS; a page of HTML with status 200; status 404; no type; half of it; one byte another; no word of caching; an
encoding that it has not."""


@dataclass(kw_only=True)
class StaticHost:
    """Serves ``root`` with the headers that a tree should come with, but for ``faults``, by the end of a path.

    With ``negotiated`` the brotli twin answers for a file, to those who take it. ``down`` closes every connection.
    """

    root: Path
    url: str
    negotiated: bool = False
    down: bool = False
    faults: dict[str, Fault] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def fault(self, path: str) -> Fault | None:
        """Return what is wrong with a path."""
        return next((fault for end, fault in self.faults.items() if path.endswith(end)), None)


@contextmanager
def static_host(root: Path, *, negotiated: bool = False) -> Iterator[StaticHost]:
    """Serve ``root`` as long as the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    host = StaticHost(root=root, url=f"http://127.0.0.1:{server.server_port}/", negotiated=negotiated)
    _Handler.hosts[server.server_port] = host
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hosts: dict[int, StaticHost] = {}  # noqa: RUF012 - by port

    def do_GET(self) -> None:
        host = self.hosts[self.connection.getsockname()[1]]
        path = urlsplit(self.path).path.removeprefix("/") or "index.html"
        fault = host.fault(path)
        if host.down:
            self.close_connection = True
            return
        host.requests.append(path)
        headers = headers_of(path)
        if fault and fault != "mutable":
            headers["Cache-Control"] = "no-store"  # or a browser keeps the fault when it is gone
        twin = host.root / f"{path}.br"
        if fault == "gone" or not (host.root / path).is_file():
            self.answer(404, {"Content-Type": "text/html", "Access-Control-Allow-Origin": "*"}, b"<h1>Gone</h1>")
            return
        if fault == "page":
            self.answer(200, {**headers, "Content-Type": "text/html"}, b"<!doctype html><h1>Welcome</h1>")
            return
        if host.negotiated and twin.is_file() and "br" in self.headers.get("Accept-Encoding", ""):
            headers |= {"Content-Encoding": "br", "Vary": "Accept-Encoding"}
            body = twin.read_bytes()
        else:
            body = (host.root / path).read_bytes()
        if fault == "byte":
            body = (host.root / path).read_bytes()
            body = body[:-1] + bytes([body[-1] ^ 1])
            headers.pop("Content-Encoding", None)
        if fault == "encoding":
            headers["Content-Encoding"] = "br"
            body = (host.root / path).read_bytes()
        for gone, names in {
            "no-cors": ["Access-Control-Allow-Origin"],
            "type": ["Content-Type"],
            "mutable": ["Cache-Control"],
        }.items():
            if fault == gone:
                for name in names:
                    del headers[name]
        self.answer(200, headers, body, cut=fault == "truncated")

    def answer(self, status: int, headers: dict[str, str], body: bytes, *, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = cut

    def log_message(self, *_: object) -> None:
        pass
