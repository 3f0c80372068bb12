"""Packed LLVMs as the assets of a release, so that a cache that was evicted costs a download and not a build.

A release of one LLVM has a tag that is made of its key. It is signed and verified like any other.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import replacing_folder, sha256_of, write_atomically
from release.errors import Finding, Problem, WrongUsage
from release.llvm.parts import INDEX, PART_SIZE, join, split
from release.llvm.store import ARCHIVE, DIGEST, DirectoryStore
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.progress import Progress
from release.retry import Retry
from release.trust.fetch import fetch_release
from release.trust.model import Identity
from release.trust.root import TrustRoot
from release.trust.signatures import verify_signatures

SIGNED_BY, SIGNED_FROM = "llvm-cache.yml", "refs/heads/main"
"""The workflow that releases packed LLVMs, and where it does."""

_MAXIMUM = 8 << 30  # bytes of a release that we begin to fetch; a packed LLVM has a fiftieth of that
_KEY_DIGITS = 16


def tag_of(key: str) -> str:
    """Return the tag of the release that has the LLVM of a key."""
    return f"llvm-{key[:_KEY_DIGITS]}"


def lay_out(store: DirectoryStore, key: str, folder: Path, *, part_size: int = PART_SIZE) -> None:
    """Make a release folder of the kept LLVM of ``key``: its parts, their index, and SHA256SUMS.

    Raises WrongUsage when none is kept, and for a ``folder`` that holds anything else; Finding for one that is not
    what was kept.
    """
    entry = store.entry(key)
    if not (entry / ARCHIVE).is_file():
        raise WrongUsage(
            f"No LLVM is kept under {key[:12]}.", remedy="Run `triton-wasm llvm` first, with the same pin set."
        )
    if folder.exists() and not _is_ours(folder):
        raise WrongUsage(f"{folder} holds more than a packed LLVM.", remedy="Give --out an empty or a new folder.")
    with replacing_folder(folder) as temporary:
        index = split(entry / ARCHIVE, temporary, key=key, part_size=part_size)
        if index.sha256 != _recorded(entry):
            raise Finding(
                f"The LLVM that is kept under {key[:12]} is not the one that was written.",
                remedy="Run `triton-wasm llvm --force`, which builds and keeps it again.",
            )
        write_atomically(temporary / CHECKSUMS, checksums(temporary))


@dataclass(frozen=True, kw_only=True)
class ReleasedLLVMs:
    """A store before which stands a folder: what that has not is fetched from a release, verified, and kept in it.

    ``place`` is what the releases' addresses begin with, up to the tag; None means GitHub's, of ``repository``.
    """

    kept: DirectoryStore
    identity: Identity
    root: TrustRoot
    repository: str
    progress: Progress
    place: str | None = None
    retry: Retry | None = None

    def get(self, key: str, into: Path) -> bool:
        """Lay the folder of ``key`` at ``into``. A release that cannot be used is reported, and then there is none."""
        if self.kept.get(key, into):
            return True
        try:
            self._fetch(key, into.parent)
        except (OSError, Problem) as problem:
            self.progress.note(f"  There is no released LLVM {key[:12]} to use: {problem}")
            return False
        return self.kept.get(key, into)

    def put(self, key: str, folder: Path) -> None:
        """Keep ``folder``; publishing it is somebody else's decision."""
        self.kept.put(key, folder)

    def _fetch(self, key: str, beside: Path) -> None:
        """Fetch into a folder beside where it is going to be: there it is swept away after a run that was killed."""
        beside.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".released.", suffix=".part", dir=beside) as temporary:
            fetched = fetch_release(
                f"{self.place}{tag_of(key)}" if self.place else tag_of(key),
                Path(temporary) / "release",
                repository=self.repository,
                maximum=_MAXIMUM,
                progress=self.progress,
                retry=self.retry,
            )
            verify_signatures(fetched, identity=self.identity, root=self.root)
            with replacing_folder(self.kept.entry(key)) as entry:
                join(fetched, entry / ARCHIVE, key=key)
                write_atomically(entry / DIGEST, f"{sha256_of(entry / ARCHIVE)}  {ARCHIVE}\n")


def _is_ours(folder: Path) -> bool:
    return folder.is_dir() and ((folder / INDEX).is_file() or not any(folder.iterdir()))


def _recorded(entry: Path) -> str:
    """Return the digest that was kept with an archive, or nothing for one that cannot be read."""
    try:
        return (entry / DIGEST).read_text(encoding="ascii").partition(" ")[0]
    except (OSError, UnicodeDecodeError):
        return ""
