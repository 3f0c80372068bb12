"""Package indexes on loopback: pypiserver, and devpi, which keeps what it has once taken.

``start_front`` puts something before pypiserver: requests are counted and made to fail; and to whom takes it as a proxy
it is PyPI with its trusted publishers.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from release.publish.index import Index

USER, PASSWORD = "publisher", "a-password-that-must-not-be-seen"
FAULTS = ("503", "429", "reset", "lost", "half")
"""Refused by status, closed before it arrives, closed before it is answered, closed in the middle of the answer."""

REQUEST_TOKEN, MINTED = "request-token-that-must-not-be-seen", "pypi-that-must-not-be-seen"
_CLAIMS = base64.urlsafe_b64encode(b'{"aud": "pypi", "exp": 4102444800}').decode().rstrip("=")
JOB_IDENTITY = f"eyJhbGciOiJub25lIn0.{_CLAIMS}.signature-that-must-not-be-seen"
_PYPI_HOSTS = ("pypi.org", "upload.pypi.org")
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
        "--disable-fallback",  # or it sends us to PyPI for what it has not
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


class Front(ThreadingHTTPServer):
    """Passes requests on to pypiserver, but for those that ``faults`` names by their number, from 1."""

    def __init__(self, upstream: str, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.url = f"http://127.0.0.1:{self.server_port}/"
        self.index = Index(upload=self.url, simple=f"{self.url}simple/")
        self.authority = folder / "authority.pem"
        self.tls = _certify(self.authority)
        self.trusted = True
        self.forget()

    def forget(self, faults: Mapping[int, str] | None = None) -> None:
        """Count from 1 again, with other faults."""
        self.seen: list[str] = []
        self.faults = dict(faults or {})

    @property
    def environment(self) -> dict[str, str]:
        """What makes it PyPI for a job of GitHub Actions that may ask for an identity."""
        return {
            "HTTPS_PROXY": self.url,
            "NO_PROXY": "127.0.0.1",
            "REQUESTS_CA_BUNDLE": str(self.authority),
            "GITHUB_ACTIONS": "true",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}token?api-version=2",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Front

    def do_CONNECT(self) -> None:
        assert urlsplit(f"//{self.path}").hostname in _PYPI_HOSTS
        self.send_response(200)
        self.end_headers()
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
        self.close_connection = False

    def do_GET(self) -> None:
        self._do()

    def do_POST(self) -> None:
        self._do()

    def _do(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.seen.append(f"{self.command} {self.path.partition('?')[0]}")
        fault = self.server.faults.get(len(self.server.seen), "")
        self.close_connection = bool(fault)
        if fault == "reset":
            return
        status, kind, body = (int(fault), "text/plain", b"") if fault.isdecimal() else self._answer(content)
        if fault == "lost":
            return
        if fault == "other bytes":
            body = bytes(reversed(body))
        self.send_response(status, self._who() if fault == "400" else None)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault == "half" else body)

    def _answer(self, content: bytes) -> tuple[int, str, bytes]:
        path, auth = self.path.partition("?")[0], self.headers.get("Authorization", "")
        if path == "/token":
            value = JOB_IDENTITY if auth.endswith(f" {REQUEST_TOKEN}") and "audience=pypi" in self.path else ""
            return _json({"value": value})
        if path == "/_/oidc/audience":
            return _json({"audience": "pypi"})
        if path == "/_/oidc/mint-token":
            if self.server.trusted and json.loads(content) == {"token": JOB_IDENTITY}:
                return _json({"success": True, "token": MINTED})
            reason = {"code": "invalid-publisher", "description": "valid token, but no corresponding publisher"}
            return _json({"message": "Token request failed", "errors": [reason]}, status=422)
        if path == "/legacy/" and auth == _basic("__token__", MINTED):
            auth = _basic(USER, PASSWORD)
        response = requests.request(
            self.command,
            self.server.upstream + path.removeprefix("/legacy"),
            data=content,
            headers={"Content-Type": self.headers.get("Content-Type", ""), "Authorization": auth},
            allow_redirects=False,
            timeout=30,
        )
        return response.status_code, response.headers.get("Content-Type", "text/plain"), response.content

    def _who(self) -> str:
        """Return the name and password that were sent, which a careless index may tell again."""
        return base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def start_front(upstream: Index, folder: Path) -> Iterator[Front]:
    """Put a front before an index of ``start_pypiserver``."""
    with Front(upstream.upload.rstrip("/"), folder) as front:
        threading.Thread(target=front.serve_forever, daemon=True).start()
        yield front
        front.shutdown()


def _json(content: object, *, status: int = 200) -> tuple[int, str, bytes]:
    return status, "application/json", json.dumps(content).encode()


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _certify(authority: Path) -> ssl.SSLContext:
    """Write a certificate of PyPI's names that vouches for itself, and return how to serve with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the tests' PyPI")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in _PYPI_HOSTS]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    authority.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = authority.with_name("key.pem")
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, secret)
    return context


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
