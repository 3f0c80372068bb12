"""Files under their final names: written whole or not at all, known by size and digest."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A file by its bare or relative name, its size in bytes and its SHA-256 as 64 hex digits."""

    name: str
    size: int
    sha256: str

    @classmethod
    def of(cls, path: Path, *, name: str | None = None) -> Artifact:
        """Read ``path`` once and describe it; ``name`` defaults to the bare file name."""
        return cls(name=name or path.name, size=path.stat().st_size, sha256=sha256_of(path))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_tree(root: Path) -> str:
    """Return one digest over the relative names and contents of every file below ``root``."""
    total = hashlib.sha256()
    for path in files_below(root):
        total.update(f"{path.relative_to(root).as_posix()}\0{sha256_of(path)}\n".encode())
    return total.hexdigest()


def files_below(root: Path) -> list[Path]:
    """List the regular files below ``root`` by name, without what Python and editors leave behind."""
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith((".pyc", "~"))
    )


def write_atomically(path: Path, content: bytes | str) -> None:
    """Put ``content`` under ``path`` so that no reader ever sees half of it."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file name beside ``path``; rename it onto ``path`` when the block ends well, else remove it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside ``folder``; when the block ends well it takes ``folder``'s place, else it goes."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    temporary.chmod(0o755)
    try:
        yield temporary
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what ``replacing`` and ``replacing_folder`` left in ``folder`` when their process was killed.

    The caller holds the lock of ``folder``: somebody else's half-written file looks just the same.
    """
    for leftover in folder.glob(".*.part"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink()
