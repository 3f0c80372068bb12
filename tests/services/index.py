"""Package indexes on loopback: pypiserver, and devpi, which keeps what it has once taken."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from release.publish.index import Index

USER, PASSWORD = "publisher", "a-password-that-must-not-be-seen"
_BIN = Path(sys.executable).parent


@contextmanager
def start_pypiserver(folder: Path) -> Iterator[Index]:
    """Run pypiserver, which takes uploads of USER only."""
    packages, passwords = folder / "packages", folder / "passwords"
    packages.mkdir()
    # The format of htpasswd with SHA-1, for which no program is needed.
    digest = base64.b64encode(hashlib.sha1(PASSWORD.encode()).digest()).decode()  # noqa: S324 - the format wants it
    passwords.write_text(f"{USER}:{{SHA}}{digest}\n")
    port = _free_port()
    options = [
        "--interface",
        "127.0.0.1",
        "--port",
        str(port),
        "--passwords",
        str(passwords),
        "--authenticate",
        "update",
    ]
    with _running([_BIN / "pypi-server", "run", *options, "--hash-algo", "sha256", str(packages)], port):
        yield Index(upload=f"http://127.0.0.1:{port}/", simple=f"http://127.0.0.1:{port}/simple/")


@contextmanager
def start_devpi(folder: Path) -> Iterator[Index]:
    """Run devpi-server with an index of USER's that keeps what it has."""
    server, port = folder / "server", _free_port()
    subprocess.run([_BIN / "devpi-init", "--serverdir", server, "--no-root-pypi"], check=True, capture_output=True)
    url = f"http://127.0.0.1:{port}"
    command = [_BIN / "devpi-server", "--serverdir", server, "--host", "127.0.0.1", "--port", str(port)]
    with _running([*command, "--offline-mode"], port):
        account = {"email": "publisher@example.com", "password": PASSWORD}
        requests.put(f"{url}/{USER}", json=account, timeout=30).raise_for_status()
        login = requests.post(f"{url}/+login", json={"user": USER, "password": PASSWORD}, timeout=30)
        token = login.json()["result"]["password"]
        auth = base64.b64encode(f"{USER}:{token}".encode()).decode()
        index = {"type": "stage", "bases": [], "volatile": False}
        headers = {"X-Devpi-Auth": auth}
        requests.put(f"{url}/{USER}/main", json=index, headers=headers, timeout=30).raise_for_status()
        yield Index(upload=f"{url}/{USER}/main/", simple=f"{url}/{USER}/main/+simple/")


@contextmanager
def _running(command: list[object], port: int) -> Iterator[None]:
    with subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
    ) as process:
        try:
            deadline = time.monotonic() + 90
            while True:
                assert process.poll() is None, f"{command[0]} ended by itself"
                assert time.monotonic() < deadline, f"{command[0]} did not start"
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield
        finally:
            process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
