"""The digest of a folder of sources, computed once for as long as no file in it has changed.

A big tree takes minutes to read and a second to list. So the digest is kept with a digest of the list: names, sizes
and times of every file. Not inodes or change times: these are others as soon as somebody links to a file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from release.artifacts import sha256_of, write_atomically

_SKIPPED = frozenset({".git", "__pycache__"})


def digest_of_tree(root: Path, kept: Path) -> str:
    """Return the SHA-256 over names, contents, links and execute bits below ``root``, as 64 hex digits.

    It is remembered in the folder ``kept``. Raises OSError for a file that cannot be read.
    """
    entries = list(_entries(root, ""))
    state = hashlib.sha256()
    for name, entry in entries:
        status = entry.stat(follow_symlinks=False)
        state.update(
            f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_mode}\n".encode(errors="surrogateescape")
        )
    record = kept / f"{hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]}.json"
    try:
        known = json.loads(record.read_text())
        if known["state"] == state.hexdigest():
            return str(known["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not read before
    digest = _read(root, entries)
    write_atomically(record, json.dumps({"root": str(root), "state": state.hexdigest(), "digest": digest}) + "\n")
    return digest


def _entries(folder: Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    with os.scandir(folder) as found:
        for entry in sorted(found, key=lambda each: each.name):
            if entry.name in _SKIPPED or entry.name.endswith(".pyc"):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(Path(entry.path), f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name, entry


def _read(root: Path, entries: list[tuple[str, os.DirEntry[str]]]) -> str:
    total = hashlib.sha256()
    for name, entry in entries:
        path = root / name
        if entry.is_symlink():
            kind, content = "link", str(path.readlink())
        else:
            kind = "program" if entry.stat(follow_symlinks=False).st_mode & 0o111 else "file"
            content = sha256_of(path)
        total.update(f"{name}\0{kind}\0{content}\n".encode(errors="surrogateescape"))
    return total.hexdigest()
