"""Files of a tree that never change: each in a folder named by its digest, with compressed twins beside it."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType

import brotli
import zstandard

from release.artifacts import replacing, sha256_of
from release.publish.cdn.model import Content, Encoding, StoredFile

FOLDER = "files"
_DIGITS = 16  # of a digest; 64 bits name more files than a site ever has
_WINDOW = 24  # bits: the largest that every browser takes
_CHUNK = 1 << 20
_NOTHING: Mapping[str, StoredFile] = MappingProxyType({})


class Files:
    """The immutable files of the tree at ``root``.

    ``known`` are those that its indices name, by path; ``encodings`` those in which a file gets twins.
    """

    def __init__(
        self, root: Path, known: Mapping[str, StoredFile] = _NOTHING, encodings: Sequence[Encoding] = ()
    ) -> None:
        self._root, self._known, self._encodings = root, known, encodings

    def keep(self, source: Path, name: str) -> StoredFile:
        """Copy ``source`` into the tree as ``name``, unless it is there."""
        digest = sha256_of(source)
        path = f"{FOLDER}/{digest[:_DIGITS]}/{name}"
        if not self._is_whole(path, digest):
            with replacing(self._root / path) as temporary:
                shutil.copyfile(source, temporary)
        return StoredFile(path=path, size=source.stat().st_size, sha256=digest)

    def keep_compressed(self, source: Path, name: str) -> Content:
        """Keep ``source`` and its twins; a megabyte takes brotli two seconds, so what is there is not made again."""
        stored = self.keep(source, name)
        with ThreadPoolExecutor() as pool:  # none of them holds Python up while it works
            made = pool.map(lambda encoding: self._twin(stored, encoding), self._encodings)
            twins = dict(zip(self._encodings, made, strict=True))
        return Content(**stored.model_dump(), encoded=twins)

    def _twin(self, stored: StoredFile, encoding: Encoding) -> StoredFile:
        path = f"{stored.path}.{encoding}"
        if (known := self._known.get(path)) and self._is_whole(path, known.sha256):
            return known
        target = self._root / path
        with replacing(target) as temporary:
            _WAYS[encoding](self._root / stored.path, temporary)
        return StoredFile(path=path, size=target.stat().st_size, sha256=sha256_of(target))

    def _is_whole(self, path: str, digest: str) -> bool:
        target = self._root / path
        return target.is_file() and sha256_of(target) == digest


def _brotli(source: Path, target: Path) -> None:
    compressor = brotli.Compressor(quality=11, lgwin=_WINDOW)
    with source.open("rb") as plain, target.open("wb") as packed:
        while chunk := plain.read(_CHUNK):
            packed.write(compressor.process(chunk))
        packed.write(compressor.finish())


def _zstandard(source: Path, target: Path) -> None:
    # A browser refuses zstd with a window of more than 8 MiB (RFC 9659).
    parameters = zstandard.ZstdCompressionParameters.from_level(19, window_log=23)
    with source.open("rb") as plain, target.open("wb") as packed:
        compressor = zstandard.ZstdCompressor(compression_params=parameters)
        compressor.copy_stream(plain, packed, size=source.stat().st_size)


def _gzip(source: Path, target: Path) -> None:
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)  # 31: gzip's header, with no name and no time
    with source.open("rb") as plain, target.open("wb") as packed:
        while chunk := plain.read(_CHUNK):
            packed.write(compressor.compress(chunk))
        packed.write(compressor.flush())


_WAYS: Mapping[Encoding, Callable[[Path, Path], None]] = {"br": _brotli, "zst": _zstandard, "gz": _gzip}
