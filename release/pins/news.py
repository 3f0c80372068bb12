"""What upstream has released since a pin set was written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from packaging.version import InvalidVersion, Version


@dataclass(frozen=True, kw_only=True)
class News:
    """A release that is newer than what is pinned: ``what`` is a tag of Triton or a version of Pyodide."""

    topic: Literal["Triton", "Pyodide"]
    what: str


def newest(topic: Literal["Triton", "Pyodide"], names: Iterable[str], than: str) -> News | None:
    """Return the newest release among ``names``, tags such as ``v3.7.0`` or versions, if it is newer than ``than``.

    Releases before a release count only where ``than`` is one itself. What is no version, such as a nightly's tag, is
    passed over. Raises ValueError for a ``than`` that is none.
    """
    pinned = Version(than)
    found = [(version, name) for name in names if (version := _version(name)) is not None]
    newer = [(version, name) for version, name in found if version > pinned]
    if not pinned.is_prerelease:
        newer = [(version, name) for version, name in newer if not version.is_prerelease]
    return News(topic=topic, what=max(newer)[1]) if newer else None


def _version(name: str) -> Version | None:
    try:
        return Version(name.removeprefix("v"))
    except InvalidVersion:
        return None
