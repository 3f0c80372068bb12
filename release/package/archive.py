"""Zip archives whose bytes depend on their contents alone: no clock, no umask, no folder order, no time zone.

What is left is the deflate implementation: zlib 1.2.13 and 1.3.2 compress alike, zlib-ng (Fedora's Python, and
python.org's on Windows, from 3.14 on) does not. The bytes then differ but ``RECORD``, which names every file by its
digest, does not. ``identity`` tells the two apart.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import stat
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from release.errors import WrongUsage

LEVEL = 9
EARLIEST, LATEST = 315532800, 4354819199
"""What a zip archive can say: 1980-01-01 00:00:00 to 2107-12-31 23:59:59 UTC, in seconds since 1970."""

_CHUNK = 1 << 20
_CREATED_ON_UNIX = 3

type Source = Path | bytes


def write_archive(path: Path, files: Mapping[str, Source], *, dist_info: str) -> None:
    """Write ``files`` by their names inside the archive, and the ``RECORD`` of them into the folder ``dist_info``.

    Entries are sorted, ``dist_info`` last with ``RECORD`` at its end, all with mode 0644 and one time: that of
    ``SOURCE_DATE_EPOCH``, else 1980-01-01. Files are read in pieces. Raises WrongUsage for an epoch that is no number.
    """
    moment = time.gmtime(source_date_epoch())[:6]
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    with ZipFile(path, "w") as archive:
        for name in sorted(files, key=lambda name: (name.startswith(f"{dist_info}/"), name)):
            size, digest = _add(archive, name, files[name], moment)
            rows.writerow((name, f"sha256={digest}", size))
        rows.writerow((f"{dist_info}/RECORD", "", ""))
        _add(archive, f"{dist_info}/RECORD", record.getvalue().encode(), moment)


def source_date_epoch() -> int:
    """Return the time of all entries in seconds since 1970: ``SOURCE_DATE_EPOCH`` as far as zip can say it."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        return min(max(int(text or EARLIEST), EARLIEST), LATEST)
    except ValueError as error:
        raise WrongUsage(
            f"SOURCE_DATE_EPOCH is {text!r}, not a number of seconds since 1970.",
            remedy="Set it to what `git log -1 --format=%ct` prints, or unset it.",
        ) from error


def identity() -> dict[str, object]:
    """What besides the contents makes an archive's bytes what they are, for the inputs of a stage."""
    sample = b"".join(b"%%%d = arith.addi %%%d, %%c%d : i32\n" % (n, n * n % 97, n % 7) for n in range(4096))
    return {
        "source_date_epoch": source_date_epoch(),
        "level": LEVEL,
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "deflate": hashlib.sha256(zlib.compress(sample, LEVEL)).hexdigest(),
    }


def _add(archive: ZipFile, name: str, source: Source, moment: tuple[int, ...]) -> tuple[int, str]:
    """Write one entry; return its size in bytes and its SHA-256 as ``RECORD`` has it."""
    year, month, day, hour, minute, second = moment
    entry = ZipInfo(name, (year, month, day, hour, minute, second))
    entry.compress_type = ZIP_DEFLATED
    entry._compresslevel = LEVEL  # type: ignore[attr-defined]  # compress_level from 3.13 on; 3.12 has just this
    entry.create_system = _CREATED_ON_UNIX
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    entry.file_size = len(source) if isinstance(source, bytes) else source.stat().st_size
    digest = hashlib.sha256()
    size = 0
    with archive.open(entry, "w") as target:
        for chunk in _chunks(source):
            target.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return size, base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()


def _chunks(source: Source) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
