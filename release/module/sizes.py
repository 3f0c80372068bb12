"""What a file weighs on its way to a browser: as it is, and under the compressions that hosts offer."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import brotli
import zstandard

_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Bytes: raw, and after gzip -9, brotli -q 11 with its largest standard window (24 bits), zstd -19."""

    raw: int
    gzip: int
    brotli: int
    zstd: int


def measure(path: Path) -> Sizes:
    """Compress ``path`` in every way at once and count; a megabyte takes brotli about two seconds."""
    ways = (
        zlib.compressobj(9, zlib.DEFLATED, 31),
        _Brotli(),
        zstandard.ZstdCompressor(level=19).compressobj(size=path.stat().st_size),
    )
    with ThreadPoolExecutor(len(ways)) as pool:  # none of them holds Python up while it works
        gzip, br, zstd = pool.map(partial(_compressed, path), ways)
    return Sizes(raw=path.stat().st_size, gzip=gzip, brotli=br, zstd=zstd)


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _Brotli:
    def __init__(self) -> None:
        compressor = brotli.Compressor(quality=11, lgwin=24)
        self.compress, self.flush = compressor.process, compressor.finish


def _compressed(path: Path, compressor: _Compressor) -> int:
    count = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            count += len(compressor.compress(chunk))
    return count + len(compressor.flush())
