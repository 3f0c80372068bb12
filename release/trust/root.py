"""Whom Sigstore's signatures are believed by: the public trust root, fetched or as it came with us, or another one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from sigstore.errors import Error as SigstoreError
from sigstore.models import ClientTrustConfig, TrustedRoot

from release.errors import BrokenEnvironment, WrongUsage

# Where sigstore-python keeps what it starts from.
_BUNDLED = ("_store", "https%3A%2F%2Ftuf-repo-cdn.sigstore.dev", "trusted_root.json")


@dataclass(frozen=True, kw_only=True)
class TrustRoot:
    """The keys of certificate authorities and logs; ``origin`` says where they are from, and how old they are."""

    keys: TrustedRoot
    origin: str


def public_root() -> TrustRoot:
    """Fetch the public trust root, by TUF. Raises BrokenEnvironment when it cannot be had."""
    try:
        keys = ClientTrustConfig.production().trusted_root
    except (SigstoreError, OSError) as error:
        raise BrokenEnvironment(
            f"The public trust root of Sigstore cannot be fetched ({type(error).__name__}).",
            remedy="Verify with --offline, which takes the one that came with this toolkit.",
        ) from error
    return TrustRoot(keys=keys, origin="the public one of Sigstore, fetched just now")


def staging_root() -> TrustRoot:
    """Fetch the trust root of Sigstore's staging instance, which is for trying out. Raises as ``public_root`` does."""
    try:
        keys = ClientTrustConfig.staging().trusted_root
    except (SigstoreError, OSError) as error:
        raise BrokenEnvironment(
            f"The trust root of Sigstore's staging instance cannot be fetched ({type(error).__name__}).",
            remedy="Look whether this machine reaches sigstage.dev; run again.",
        ) from error
    return TrustRoot(keys=keys, origin="the staging one of Sigstore, whose signatures prove nothing")


def bundled_root() -> TrustRoot:
    """Return the public trust root that came with sigstore-python, for which nothing is fetched."""
    origin = f"the public one that came with sigstore {metadata.version('sigstore')}"
    with resources.as_file(resources.files("sigstore").joinpath(*_BUNDLED)) as path:
        return _read(path, origin)


def root_from(path: Path) -> TrustRoot:
    """Read a trust root, or the one in a client trust config. Raises WrongUsage for a file that is neither."""
    return _read(path, str(path))


def _read(path: Path, origin: str) -> TrustRoot:
    try:
        said: dict[str, Any] = json.loads(path.read_text())
        inside = "trustedRoot" in said
        keys = (
            ClientTrustConfig.from_json(path.read_text()).trusted_root if inside else TrustedRoot.from_file(str(path))
        )
        newest = max(datetime.fromisoformat(start) for start in _starts(said))
    except (OSError, ValueError, TypeError, AttributeError, SigstoreError) as error:
        raise WrongUsage(
            f"{path} is no trust root of Sigstore ({type(error).__name__}).",
            remedy="Give a trusted_root.json or a client trust config.",
        ) from error
    days = (datetime.now(tz=UTC) - newest).days
    return TrustRoot(keys=keys, origin=f"{origin}; its newest key is valid since {newest:%Y-%m-%d}, {days} days")


def _starts(said: object) -> Iterator[str]:
    """Find the beginnings of all periods of validity: the file has no date of its own."""
    if isinstance(said, dict):
        if isinstance(start := said.get("validFor", {}).get("start"), str):
            yield start
        for value in said.values():
            yield from _starts(value)
    elif isinstance(said, list):
        for value in said:
            yield from _starts(value)
