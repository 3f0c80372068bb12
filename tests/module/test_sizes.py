import gzip
import random
from pathlib import Path

import brotli
import zstandard

from release.module.sizes import measure


def test_sizes_are_those_of_the_compressors_in_one_piece(tmp_path: Path) -> None:
    generator = random.Random(1)  # noqa: S311 - the same bytes every time
    words = [generator.randbytes(generator.randrange(2, 12)) for _ in range(500)]
    data = b"".join(generator.choice(words) for _ in range(60_000))
    path = tmp_path / "data"
    path.write_bytes(data)
    sizes = measure(path)
    assert sizes.raw == len(data)
    assert sizes.gzip == len(gzip.compress(data, 9))
    assert abs(sizes.brotli - len(brotli.compress(data, quality=11, lgwin=24))) < 64
    assert abs(sizes.zstd - len(zstandard.ZstdCompressor(level=19).compress(data))) < 64
    assert sizes.brotli < sizes.gzip < sizes.raw


def test_an_empty_file_has_sizes_too(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert measure(tmp_path / "empty").raw == 0
