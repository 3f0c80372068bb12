"""A release from where it is published: a folder here, an address, or a tag of a repository at GitHub.

What is fetched is what the release's own list names, and the signatures that belong to these names. Nothing of it is
believed here: that is for ``verify``.
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from urllib.parse import quote

from release.download import Absent, download
from release.errors import Finding, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.progress import Progress
from release.retry import Patience, Retry
from release.trust.model import PROVENANCE, bundles_of

_MAXIMUM_LIST = 1 << 20
_MAXIMUM_TOTAL = 1 << 30
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_REPOSITORY = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
_PATIENCE = Patience(attempts=4, total=120.0)
_REMEDY = "Check the address, and that the release is complete there."


def fetch_release(
    place: str,
    into: Path,
    *,
    repository: str | None = None,
    maximum: int = _MAXIMUM_TOTAL,
    progress: Progress,
    retry: Retry | None = None,
) -> Path:
    """Return the folder of a release: ``place`` itself where it is one, else ``into``, which must be empty.

    ``place`` may be the address of a folder, or a tag; of ``repository`` (``OWNER/NAME``), then. ``maximum`` is what
    all files together may have, in bytes. Raises WrongUsage for a place that is none of these, Finding for a list that
    is none or a file that is not there, BrokenEnvironment when the network fails.
    """
    if Path(place).is_dir():
        return Path(place)
    base = place if "://" in place else _address(place, repository)
    base = base if base.endswith("/") else base + "/"
    fetched = _Fetching(base, into, maximum, retry or Retry(progress, patience=_PATIENCE))
    fetched.get(CHECKSUMS, at_most=_MAXIMUM_LIST)
    names = _names(into / CHECKSUMS)
    wanted = [*names, *bundles_of([*names, CHECKSUMS]).values(), PROVENANCE]
    with progress.steps("fetch", len(wanted)) as steps:
        for name in wanted:
            steps.begin(name)
            fetched.get(name)
    return into


class _Fetching:
    def __init__(self, base: str, into: Path, maximum: int, retry: Retry) -> None:
        self._base, self._into, self._retry = base, into, retry
        self._left = maximum

    def get(self, name: str, *, at_most: int | None = None) -> None:
        url, path = self._base + quote(name, safe=""), self._into / name
        try:
            file = self._retry.step(name, partial(download, url, path, maximum=min(at_most or self._left, self._left)))
        except Absent as absent:
            raise Finding(f"{absent}, so not all of a release is there.", remedy=_REMEDY) from absent
        self._left -= file.size


def _address(tag: str, repository: str | None) -> str:
    repository = repository or os.environ.get("GITHUB_REPOSITORY", "")
    if not _REPOSITORY.fullmatch(repository) or ".." in tag or not re.fullmatch(r"[\w.+/-]+", tag):
        raise WrongUsage(
            f"{tag!r} is no folder, and no tag of {repository or 'a repository'} either.",
            remedy="Give a folder, an https:// address, or a tag with --repository OWNER/NAME.",
        )
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    return f"{server}/{repository}/releases/download/{quote(tag, safe='')}/"


def _names(path: Path) -> list[str]:
    names = []
    for line in path.read_text(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        if not re.fullmatch(r"[0-9a-f]{64}", digest) or not _NAME.fullmatch(name):
            raise Finding(f"{CHECKSUMS} has a line that is no digest of a file: {line[:100]!r}.", remedy=_REMEDY)
        names.append(name)
    return names
