"""A GitHub on loopback: ``emulate``, with the front that gives its releases bytes."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.services.github.front import TOKENS, Front, Rules, Seen
from tests.services.installed import Services

OWNER = "octocat"
TOKEN = "ghp_a_token_that_must_not_be_seen"  # noqa: S105 - of a service that ends with the tests
_SEED = """
tokens: {{{tokens}}}
github:
  users: [{{login: {owner}, name: The Octocat, email: octocat@example.com}}]
  repos: [{{owner: {owner}, name: seed, auto_init: true}}]
"""


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository of its own for a test, with a commit on its default branch."""

    name: str
    commit: str


@dataclass(frozen=True, kw_only=True)
class GitHub:
    """A running GitHub: the address of its API, and the front, where requests are seen and made to fail."""

    url: str
    front: Front

    def new_repository(self, name: str) -> Repository:
        """Create a repository, forget what was seen, and follow GitHub's usual rules again."""
        self.call("POST", "/user/repos", {"name": name, "auto_init": True})
        full = f"{OWNER}/{name}"
        branch = self.call("GET", f"/repos/{full}")["default_branch"]
        commit = self.call("GET", f"/repos/{full}/git/ref/heads/{branch}")["object"]["sha"]
        self.front.rules = Rules()
        self.front.seen = Seen()
        return Repository(name=full, commit=commit)

    def tag(self, repository: Repository, tag: str, commit: str | None = None, *, annotated: bool = False) -> None:
        """Create a tag."""
        sha = commit or repository.commit
        if annotated:
            content = {"tag": tag, "message": "A tag.", "object": sha, "type": "commit"}
            sha = self.call("POST", f"/repos/{repository.name}/git/tags", content)["sha"]
        self.call("POST", f"/repos/{repository.name}/git/refs", {"ref": f"refs/tags/{tag}", "sha": sha})

    def call(self, method: str, path: str, content: object = None) -> Any:
        """Ask something of the API, and do not count it."""
        upstream = f"http://127.0.0.1:{self.front.upstream}"
        headers = {"Authorization": f"Bearer {self.front.upstream_token()}"}
        response = requests.request(method, upstream + path, json=content, headers=headers, timeout=30)
        response.raise_for_status()
        return response.json() if response.content else None


@contextmanager
def start_github(services: Services, folder: Path) -> Iterator[GitHub]:
    """Run a GitHub until the block ends."""
    seed = folder / "seed.yaml"
    tokens = (f"{TOKEN}_{number}: {{login: {OWNER}, scopes: [repo, user, workflow]}}" for number in range(TOKENS))
    seed.write_text(_SEED.format(tokens=", ".join(tokens), owner=OWNER))
    front = Front(folder, TOKEN)
    front.upstream = _free_port()
    program = services.modules / "emulate" / "dist" / "index.js"
    options = ["--service", "github", "--port", str(front.upstream), "--seed", str(seed), "--base-url", front.url]
    command = [str(services.node), str(program), "start", *options]
    with subprocess.Popen(command, env=services.env, stdout=subprocess.DEVNULL, cwd=folder) as process:
        try:
            _wait(front.upstream)
            threading.Thread(target=front.serve_forever, daemon=True).start()
            yield GitHub(url=front.url, front=front)
            front.shutdown()
        finally:
            front.server_close()
            process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "emulate did not start"
            time.sleep(0.05)
