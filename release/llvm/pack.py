"""A folder as one ``.tar.zst``: the same bytes for the same files, and nothing out of it but what was put in.

The first member says what the archive is of, so that an archive under a wrong name is known for what it is.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath

import zstandard

from release.artifacts import replacing, replacing_folder
from release.errors import Finding

_LABEL = "triton-wasm.json"
_LEVEL = 9
_EPOCH = 315532800  # 1980, the first year that every archive format knows
_NOT_OURS = (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError, KeyError, TypeError)
_TWICE = (FileExistsError, NotADirectoryError)


def pack(folder: Path, archive: Path, *, key: str) -> None:
    """Write the files below ``folder`` to ``archive``: sorted, without times, owners or modes but for the execute bit.

    A link to a file is packed as the file. The bytes do not depend on the number of cores.
    """
    # With one thread zstd cuts its blocks otherwise than with workers, of whom it does not matter how many there are.
    compressor = zstandard.ZstdCompressor(level=_LEVEL, threads=len(os.sched_getaffinity(0)), write_checksum=True)
    with (
        replacing(archive) as temporary,
        temporary.open("wb") as file,
        compressor.stream_writer(file, closefd=False) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        label = json.dumps({"schema_version": 1, "key": key}).encode()
        tar.addfile(_member(_LABEL, len(label)), io.BytesIO(label))
        for path in sorted(folder.rglob("*"), key=lambda each: each.relative_to(folder).as_posix()):
            name = f"files/{path.relative_to(folder).as_posix()}"
            if path.is_dir() and not path.is_symlink():
                member = _member(name, 0, executable=True)
                member.type = tarfile.DIRTYPE
                tar.addfile(member)
            elif path.is_file():
                with path.open("rb") as content:
                    status = os.fstat(content.fileno())
                    executable = bool(status.st_mode & 0o111)
                    tar.addfile(_member(name, status.st_size, executable=executable), content)


def unpack(archive: Path, folder: Path, *, key: str) -> None:
    """Lay what ``pack`` packed for ``key`` into ``folder``, which appears when all is there.

    Files get the time of now: who builds with them must take them for new. Raises Finding for an archive that is
    damaged, of another key, or holds what ``pack`` would not have written.
    """
    try:
        with (
            archive.open("rb") as file,
            zstandard.ZstdDecompressor().stream_reader(file) as stream,
            tarfile.open(fileobj=stream, mode="r|") as tar,
            replacing_folder(folder) as temporary,
        ):
            _check_label(tar, key)
            while (member := tar.next()) is not None:
                _lay(tar, member, temporary)
    except (*_NOT_OURS, *_TWICE) as error:
        raise _refusal(f"it is damaged ({str(error).rstrip('.') or type(error).__name__})") from error


def _member(name: str, size: int, *, executable: bool = False) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, _EPOCH, 0o755 if executable else 0o644
    return member


def _check_label(tar: tarfile.TarFile, key: str) -> None:
    first = tar.next()
    content = tar.extractfile(first) if first is not None and first.name == _LABEL and first.isreg() else None
    if content is None:
        raise _refusal("it does not say what it is of")
    found = json.loads(content.read())["key"]
    if found != key:
        raise _refusal(f"it is of another key, {str(found)[:12]}…")


def _lay(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    parts = PurePosixPath(member.name).parts
    if parts[:1] != ("files",) or ".." in parts or len(parts) < 2:
        raise _refusal(f"its member {member.name!r} leads out of the folder")
    target = folder.joinpath(*parts[1:])
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    content = tar.extractfile(member) if member.isreg() else None
    if content is None:
        raise _refusal(f"its member {member.name!r} is neither a file nor a folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
    if member.mode & 0o111:
        target.chmod(0o755)


def _refusal(reason: str) -> Finding:
    return Finding(reason, remedy="Remove it: it is made again.")
