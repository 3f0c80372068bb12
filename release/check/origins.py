"""The two origins that a browser is given on the loopback interface: the page with Pyodide, and the package.

They differ, as those of a web page and of the CDN it loads the package from do.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

HOST = "127.0.0.1"

CDN_HEADERS: Mapping[str, str] = MappingProxyType(
    {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=31536000, immutable"}
)
"""What a CDN says of each file that it will never change."""

_APPENDED = frozenset({"journal.jsonl", "output.txt"})
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Attempts:
    """What the page is to do, by the name of the attempt, and where what it sends is put."""

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[str, Path]] = {}

    def add(self, name: str, job: Mapping[str, Any], folder: Path) -> None:
        """Give ``job`` to the page that asks for attempt ``name``; what it sends goes into ``folder``.

        That is ``journal.jsonl`` and ``output.txt``, which grow with each request, and files below ``files``.
        """
        self._jobs[name] = (json.dumps(job), folder)

    def job(self, name: str) -> str | None:
        """Return the job as JSON, or None where there is none."""
        return self._jobs[name][0] if name in self._jobs else None

    def keep(self, name: str, what: str, content: bytes) -> bool:
        """Keep what the page sent of attempt ``name``. Return False for what no page of ours sends."""
        if name not in self._jobs:
            return False
        folder, parts = self._jobs[name][1], [unquote(part) for part in what.split("/")]
        if what in _APPENDED:
            with (folder / what).open("ab") as file:
                file.write(content)
            return True
        if parts[0] != "files" or len(parts) < 2 or any(part in ("", ".", "..") or "/" in part for part in parts):
            return False
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return True


@contextmanager
def serving(
    roots: Mapping[str, Path], *, headers: Mapping[str, str] = _NOTHING, attempts: Attempts | None = None
) -> Iterator[str]:
    """Serve folders as long as the block runs, and give the address of the origin, without a slash at its end.

    ``roots`` names the folder that has the files below each first part of a path; the folder of ``""`` has all others.
    ``headers`` go with every answer. With ``attempts`` there are jobs below ``/attempts``.
    """
    server = ThreadingHTTPServer((HOST, 0), partial(_Handler, roots, headers, attempts or Attempts()))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # WebAssembly is compiled while it comes only under its own type, and a module script is refused under any other.
    # What is not here is asked of the machine's own table.
    extensions_map = {  # noqa: RUF012 - so it is in the class above
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript",
        ".json": "application/json",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".whl": "application/zip",
        ".zip": "application/zip",
    }

    def __init__(self, roots: Mapping[str, Path], always: Mapping[str, str], attempts: Attempts, *rest: Any) -> None:
        self._roots, self._always, self._attempts = roots, always, attempts
        super().__init__(*rest)  # which answers the requests

    def do_GET(self) -> None:
        """Answer with a job or a file."""
        attempt, what = self._attempt()
        if what != "job.json":
            super().do_GET()
        elif job := self._attempts.job(attempt):
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(job.encode())))
            self.end_headers()
            self.wfile.write(job.encode())
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Keep what the page sends."""
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._attempts.keep(*self._attempt(), content):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()

    def translate_path(self, path: str) -> str:
        """Return the file of a path: below the root of its first part, or else below that of all others."""
        first, _, rest = urlsplit(path).path.removeprefix("/").partition("/")
        root = self._roots.get(first) or self._roots.get("")
        self.directory = str(root or "/nowhere")
        return super().translate_path(f"/{rest}" if first in self._roots else path)

    def list_directory(self, path: str | os.PathLike[str]) -> None:
        """List nothing: a CDN does not."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        """Add what goes with every answer."""
        for name, value in self._always.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing: what went wrong is in the results."""

    def _attempt(self) -> tuple[str, str]:
        """Split ``/attempts/NAME/WHAT`` into name and what; both are empty for another path."""
        parts = urlsplit(self.path).path.split("/", 3)
        return (parts[2], parts[3]) if len(parts) == 4 and parts[1] == "attempts" else ("", "")
