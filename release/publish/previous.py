"""What the latest release of a repository says of itself, for whoever wants to compare with it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from release.assembly import MANIFEST, TESTS
from release.download import Absent, download
from release.errors import Finding, WrongUsage
from release.progress import Progress
from release.publish.notes import Told
from release.retry import Retry

_ORACLE = "oracle.json"
_MAXIMUM = 64 << 20


def previous_release(repository: str, into: Path, *, progress: Progress, retry: Retry | None = None) -> Path | None:
    """Fetch the reports of the latest release of ``repository`` (OWNER/NAME) into the folder ``into`` and return it.

    None where there is no release yet, or its reports are of another toolkit: a comparison is worth no failure. Raises
    BrokenEnvironment when the network fails. Drafts and prereleases are none, as GitHub has it.
    """
    retry = retry or Retry(progress)
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    try:
        for name in (MANIFEST, TESTS, _ORACLE):
            url = f"{server}/{repository}/releases/latest/download/{name}"
            try:
                retry.step(name, partial(download, url, into / name, maximum=_MAXIMUM))
            except Absent:
                if name != _ORACLE:
                    return None
        Told.read(into)
    except (WrongUsage, Finding) as problem:
        progress.note(f"  The latest release is not compared with: {problem}")
        return None
    return into
