"""Downloads: over https or from this machine only, no larger than expected, whole or not at all.

What was downloaded is not believed for that: its digest or its signature is compared by whoever asked for it.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urljoin, urlsplit

import requests
from requests.exceptions import RequestException

from release.artifacts import Artifact, replacing
from release.certificates import bundle
from release.errors import Finding, WrongUsage
from release.retry import Transient

_REDIRECTS = 5
_CONNECT_SECONDS, _READ_SECONDS = 5, 60
_CHUNK = 1 << 20
_AGAIN = frozenset({408, 425, 429})
_NONE: Mapping[str, str] = MappingProxyType({})


class Absent(Exception):  # noqa: N818 - what is missing may be no error of anybody
    """The server has no such file, or does not give it to us; ``status`` is its answer."""

    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"{url} answered {status}")
        self.status = status


def download(url: str, path: Path, *, maximum: int, headers: Mapping[str, str] = _NONE) -> Artifact:
    """Download ``url`` to ``path`` and describe it; ``maximum`` is in bytes.

    ``headers`` are sent to the host of ``url`` and to no other that it leads to.

    Raises Absent, ``retry.Transient`` for what may go well the next time, WrongUsage for an address that is neither
    https nor this machine's, Finding for a file that is larger or a redirect that leads away from both.
    """
    _check(url, WrongUsage, f"{url} is neither https nor on this machine.")
    try:
        with replacing(path) as temporary, requests.Session() as session:
            session.verify = str(found) if (found := _authorities()) else True
            _receive(session, url, temporary, maximum, headers)
            return Artifact.of(temporary, name=path.name)
    except RequestException as error:
        reason = f"{urlsplit(url).netloc}: {type(error).__name__}"
    # Outside of the handler: the error holds the request, and that a token if there is one.
    raise Transient(reason)


def _receive(session: requests.Session, url: str, path: Path, maximum: int, headers: Mapping[str, str]) -> None:
    # Redirects are followed here: each is judged before it is asked for anything. Nothing is compressed on the way,
    # so that the size which the server names is that of the file.
    place = url
    for _ in range(_REDIRECTS + 1):
        response = session.get(
            place,
            headers={"Accept-Encoding": "identity", **(headers if _host(place) == _host(url) else {})},
            stream=True,
            allow_redirects=False,
            timeout=(_CONNECT_SECONDS, _READ_SECONDS),
        )
        with response:
            if response.is_redirect:
                place = urljoin(place, response.headers["Location"])
                _check(place, Finding, f"{url} leads to {urlsplit(place).scheme}://{urlsplit(place).netloc}.")
                continue
            if response.status_code >= 500 or response.status_code in _AGAIN:
                raise Transient(f"{url} answered {response.status_code}", wait=_wait(response))
            if response.status_code != 200:
                raise Absent(url, response.status_code)
            _write(response, url, path, maximum)
            return
    raise Finding(f"{url} leads from one place to the next, {_REDIRECTS} times.", remedy="Check the address.")


def _write(response: requests.Response, url: str, path: Path, maximum: int) -> None:
    size = 0
    with path.open("wb") as file:
        for chunk in response.iter_content(_CHUNK):
            size += len(chunk)
            if size > maximum:
                raise Finding(f"{url} has more than the {maximum:,} bytes expected.", remedy="Check the address.")
            file.write(chunk)
    said = response.headers.get("Content-Length", "")
    if said.isdecimal() and int(said) != size:
        raise Transient(f"{url} ended after {size:,} of {int(said):,} bytes")


def _host(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _check(url: str, kind: type[WrongUsage | Finding], sentence: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname and _is_this_machine(parts.hostname):
        return
    raise kind(sentence, remedy="Downloads are taken over https, or by http from 127.0.0.1, and from nowhere else.")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _wait(response: requests.Response) -> float:
    asked = response.headers.get("Retry-After", "")
    return float(asked) if asked.isdecimal() else 0.0


def _authorities() -> Path | None:
    return None if os.environ.get("REQUESTS_CA_BUNDLE") else bundle()
