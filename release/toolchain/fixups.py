"""Changes to sources that could not be had from outside, made on a copy and refused when they no longer fit.

A fix-up is a list of exact texts, each to be found in its file once. Of the copy only the changed files are new; the
others are links to the originals, or copies where the file system allows no link. Nothing may write into either.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from release.artifacts import replacing_folder, write_atomically
from release.errors import Finding
from release.pins.model import FixupPin
from release.toolchain.sources import Source


def check_fixups(fixups: Sequence[FixupPin], root: Path) -> dict[str, bytes]:
    """Return the changed files by name, with their content; nothing is written.

    Raises Finding for the first fix-up that no longer fits.
    """
    changed: dict[str, bytes] = {}
    for fixup in fixups:
        path = root / fixup.file
        if fixup.file not in changed and not path.is_file():
            raise _no_longer_fits(fixup, "there is no such file")
        content = changed[fixup.file] if fixup.file in changed else path.read_bytes()
        for edit in fixup.edits:
            if (count := content.count(edit.old.encode())) != 1:
                raise _no_longer_fits(fixup, f"{edit.old.strip()!r} occurs {count} times and not once")
            content = content.replace(edit.old.encode(), edit.new.encode())
        changed[fixup.file] = content
    return changed


def apply_fixups(fixups: Sequence[FixupPin], source: Source, into: Path) -> Path:
    """Return a tree of ``source`` with ``fixups`` made: ``source`` itself when there are none, else the copy ``into``.

    A copy that is there already and was made so is taken as it is. Raises Finding for a fix-up that no longer fits.
    """
    if not fixups:
        return source.path
    changed = check_fixups(fixups, source.path)
    record = into.with_name(f"{into.name}.json")
    made = json.dumps([source.digest, *(fixup.model_dump(mode="json") for fixup in fixups)]) + "\n"
    if not _is_made(into, changed, record, made):
        record.unlink(missing_ok=True)
        with replacing_folder(into) as copy:
            shutil.copytree(
                source.path,
                copy,
                symlinks=True,
                copy_function=_link,
                ignore=shutil.ignore_patterns(".git", "__pycache__"),
                dirs_exist_ok=True,
            )
            for name, content in changed.items():
                write_atomically(copy / name, content)
        write_atomically(record, made)
    return into


def _is_made(into: Path, changed: dict[str, bytes], record: Path, made: str) -> bool:
    try:
        return record.read_text() == made and all((into / name).read_bytes() == changed[name] for name in changed)
    except OSError:
        return False


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links, or somebody else's file
        shutil.copy2(source, target)


def _no_longer_fits(fixup: FixupPin, what: str) -> Finding:
    return Finding(
        f"Fix-up {fixup.name} no longer fits {fixup.file}: {what}.",
        remedy="See whether upstream made it needless: then remove it from the pin set, else write its edits anew.",
    )
