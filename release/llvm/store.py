"""Where finished LLVMs are kept by their key, and come back whole or not at all."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from release.artifacts import replacing_folder, sha256_of, write_atomically
from release.errors import Finding
from release.llvm.pack import pack, unpack
from release.progress import Progress

ARCHIVE = "llvm.tar.zst"
DIGEST = f"{ARCHIVE}.sha256"


class Store(Protocol):
    """Keeps folders by key. A store on another machine is one of these; nothing else of this room knows about it."""

    def get(self, key: str, into: Path) -> bool:
        """Lay the folder kept under ``key`` at ``into`` and say whether there was a good one."""

    def put(self, key: str, folder: Path) -> None:
        """Keep ``folder`` under ``key``."""


@dataclass(frozen=True, kw_only=True)
class DirectoryStore:
    """A folder with a folder for each key, which holds the packed files and their digest.

    A CI job restores ``entry(key)`` before it calls us and saves it afterwards, under the key itself: an entry is never
    changed once it is there.
    """

    folder: Path
    progress: Progress

    def entry(self, key: str) -> Path:
        """Return the folder of ``key``, whether it is there or not."""
        return self.folder / key

    def get(self, key: str, into: Path) -> bool:
        """Unpack the entry of ``key`` to ``into``. One that is not what it should be is reported and removed."""
        entry = self.entry(key)
        if not entry.exists():
            return False
        try:
            _check(entry)
            unpack(entry / ARCHIVE, into, key=key)
        except Finding as reason:
            self.progress.note(f"  The kept LLVM {key[:12]} is not used: {reason}; it is removed and built again.")
            _remove(entry)
            return False
        return True

    def put(self, key: str, folder: Path) -> None:
        """Pack ``folder`` and read back what was written. Raises Finding when that differs."""
        with replacing_folder(self.entry(key)) as temporary:
            pack(folder, temporary / ARCHIVE, key=key)
            write_atomically(temporary / DIGEST, f"{sha256_of(temporary / ARCHIVE)}  {ARCHIVE}\n")
            _check(temporary)


def _check(entry: Path) -> None:
    try:
        recorded = (entry / DIGEST).read_text(encoding="ascii").split()
        found = sha256_of(entry / ARCHIVE)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise Finding(f"its archive or digest cannot be read ({reason})", remedy="Remove it.") from error
    if recorded[:1] != [found]:
        raise Finding(
            f"its archive of {(entry / ARCHIVE).stat().st_size:,} bytes is not the one that was written",
            remedy="Remove it.",
        )


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()
