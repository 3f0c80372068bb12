"""A packed LLVM in parts, for hosts that take no file of 2 GiB; the index beside them says what they make together."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from release.artifacts import replacing, write_atomically
from release.errors import Finding
from release.llvm.store import ARCHIVE

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

INDEX = "llvm.json"
PART_SIZE = 1_900_000_000
"""Bytes of a part. A host that takes less than 2 GiB takes this with room to spare."""

_CHUNK = 1 << 20
_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Size = Annotated[int, Field(gt=0)]


class Part(BaseModel):
    """A piece of the archive, in bytes from where the one before it ends."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, StringConstraints(pattern=rf"^{re.escape(ARCHIVE)}\.\d{{3}}$")]
    size: _Size
    sha256: _Digest


class PartsIndex(BaseModel):
    """``llvm.json``: of which key the archive is, and what its parts are, in their order."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    key: _Digest
    size: _Size
    sha256: _Digest
    parts: tuple[Part, ...] = Field(min_length=1)


def split(archive: Path, folder: Path, *, key: str, part_size: int = PART_SIZE) -> PartsIndex:
    """Write the parts of a packed LLVM and their index into ``folder``; the same bytes for the same archive.

    ``part_size`` is in bytes. Raises Finding for an archive with nothing in it.
    """
    whole = hashlib.sha256()
    parts: list[Part] = []
    left = size = archive.stat().st_size
    with archive.open("rb") as file:
        while left > 0:
            digest, path = hashlib.sha256(), folder / f"{ARCHIVE}.{len(parts):03}"
            with replacing(path) as temporary, temporary.open("wb") as part:
                copied = _copy(file, part, min(left, part_size), digest, whole)
            parts.append(Part(name=path.name, size=copied, sha256=digest.hexdigest()))
            left -= copied
    if not parts:
        raise _refusal("there are none of an empty archive")
    index = PartsIndex(key=key, size=size, sha256=whole.hexdigest(), parts=tuple(parts))
    write_atomically(folder / INDEX, index.model_dump_json(indent=2) + "\n")
    return index


def join(folder: Path, archive: Path, *, key: str) -> None:
    """Make the archive of ``key`` from its parts in ``folder``.

    Raises Finding for an index that is none or of another key, and for a part that is not there, is not the one that
    was written, or is out of its place; there is no archive then.
    """
    index = _read(folder)
    if index.key != key:
        raise _refusal(f"they are of another key, {index.key[:12]}…")
    whole = hashlib.sha256()
    with replacing(archive) as temporary:
        with temporary.open("wb") as file:
            for part in index.parts:
                _append(folder / part.name, part, file, whole)
        if (temporary.stat().st_size, whole.hexdigest()) != (index.size, index.sha256):
            raise _refusal("together they are not the archive that was split")


def _append(path: Path, part: Part, file: BinaryIO, whole: Hash) -> None:
    if not path.is_file():
        raise _refusal(f"{part.name} is not there")
    digest = hashlib.sha256()
    with path.open("rb") as source:
        copied = _copy(source, file, part.size, digest, whole)
    size = path.stat().st_size
    if (copied, size, digest.hexdigest()) != (part.size, part.size, part.sha256):
        raise _refusal(f"{part.name} has {size:,} bytes that are not the {part.size:,} that were written")


def _copy(source: BinaryIO, target: BinaryIO, size: int, *digests: Hash) -> int:
    """Copy at most ``size`` bytes, digest them on the way, and return how many there were."""
    copied = 0
    while chunk := source.read(min(size - copied, _CHUNK)):
        target.write(chunk)
        for digest in digests:
            digest.update(chunk)
        copied += len(chunk)
    return copied


def _read(folder: Path) -> PartsIndex:
    try:
        return PartsIndex.model_validate_json((folder / INDEX).read_text())
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        raise _refusal(f"{INDEX} cannot be read ({type(error).__name__})") from error


def _refusal(reason: str) -> Finding:
    return Finding(f"The parts of a packed LLVM cannot be used: {reason}.", remedy="Build it; that always works.")
