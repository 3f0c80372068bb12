"""The same contents make the same bytes: in another process, folder, time zone, locale, umask, and at another time."""

import os
import pickle
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from release.artifacts import Artifact, files_below
from release.errors import WrongUsage
from release.package.archive import EARLIEST, LATEST, identity, source_date_epoch
from release.package.build import build_package
from release.package.model import Contents, Package
from release.pins.model import PinSet
from release.places import CHECKOUT

_PROGRAM = """
import os, pickle, sys, time
umask, shift, job = int(sys.argv[1], 8), float(sys.argv[2]), sys.argv[3]
os.umask(umask)
now, local = time.time, time.localtime
time.time = lambda: now() + shift
time.localtime = lambda seconds=None: local(now() + shift if seconds is None else seconds)
from release.package.build import build_package
contents, pins, pyodide, folder = pickle.load(open(job, "rb"))
build_package(contents, pins, pyodide=pyodide, folder=folder)
"""


class Workshop:
    """Builds the package anew from a copy of its contents that was made at another place, time and order."""

    def __init__(self, contents: Contents, pins: PinSet, pyodide: Path, root: Path) -> None:
        self._contents, self._pins, self._pyodide, self._root = contents, pins, pyodide, root

    def build(
        self, name: str, *, umask: str = "022", seconds_later: float = 0, mtime: int = 0, **env: str
    ) -> list[Artifact]:
        home = self._root / name
        home.mkdir()
        contents = replace(
            self._contents,
            python=self._copy(home / "tree", mtime),
            module=shutil.copyfile(self._contents.module, home / "module.wasm"),
        )
        job, out = home / "job", home / "out"
        job.write_bytes(pickle.dumps((contents, self._pins, self._pyodide, out)))
        clean = {key: value for key, value in os.environ.items() if key not in ("SOURCE_DATE_EPOCH", "TZ", "LC_ALL")}
        subprocess.run(
            [sys.executable, "-c", _PROGRAM, umask, str(seconds_later), job],
            cwd=home,
            env={**clean, "PYTHONPATH": str(CHECKOUT), **env},
            check=True,
        )
        return [Artifact.of(path) for path in files_below(out)]

    def _copy(self, target: Path, mtime: int) -> Path:
        # Written in reverse, so that the file system has the entries in another order.
        for path in reversed(files_below(self._contents.python)):
            copy = target / path.relative_to(self._contents.python)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            copy.chmod(0o755 if mtime else 0o600)
            os.utime(copy, (mtime, mtime))
        return target


@pytest.fixture
def workshop(contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path) -> Workshop:
    (contents.python / "exprc" / "grüße.txt").write_text("hello\n")
    for number in range(20):
        (contents.python / "exprc" / f"part_{number * 7 % 20}.py").write_text(f"value = {number}\n" * 50)
    return Workshop(contents, pins, pyodide, tmp_path)


def test_nothing_around_the_build_changes_a_byte(workshop: Workshop) -> None:
    first = workshop.build("first")
    others = {
        "umask": workshop.build("with spaces, and ümlaut", umask="077"),
        "no umask": workshop.build("open", umask="000"),
        "time zone": workshop.build("zone", TZ="Pacific/Kiritimati", mtime=1_700_000_000),
        "locale": workshop.build("locale", LC_ALL="C", LANG="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        "hash seed": workshop.build("seed", PYTHONHASHSEED="4711"),
        "clock": workshop.build("clock", seconds_later=40 * 365 * 86400, mtime=4_000_000_000),
    }
    for what, found in others.items():
        assert found == first, what


def test_the_epoch_changes_the_bytes_and_alike_everywhere(workshop: Workshop) -> None:
    plain = workshop.build("plain")
    here = workshop.build("here", SOURCE_DATE_EPOCH="1700000000", TZ="UTC")
    there = workshop.build("there", SOURCE_DATE_EPOCH="1700000000", TZ="America/St_Johns", umask="077")
    assert here == there != plain
    assert workshop.build("at the start", SOURCE_DATE_EPOCH=str(EARLIEST)) == plain
    assert workshop.build("before it", SOURCE_DATE_EPOCH="0") == plain


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("", (1980, 1, 1, 0, 0, 0)),
        ("0", (1980, 1, 1, 0, 0, 0)),
        ("-5", (1980, 1, 1, 0, 0, 0)),
        ("1700000000", (2023, 11, 14, 22, 13, 20)),
        (str(LATEST), (2107, 12, 31, 23, 59, 58)),  # zip counts two seconds at a time
        (str(LATEST + 1), (2107, 12, 31, 23, 59, 58)),
        ("99999999999999", (2107, 12, 31, 23, 59, 58)),
    ],
)
def test_the_epoch_is_kept_within_what_zip_can_say(
    text: str,
    moment: tuple[int, ...],
    contents: Contents,
    pins: PinSet,
    pyodide: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    package = build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "out")
    with ZipFile(package.wheel) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {moment}


def test_an_epoch_that_is_no_number_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(WrongUsage, match="SOURCE_DATE_EPOCH is 'yesterday'"):
        source_date_epoch()


def test_the_identity_knows_another_deflate(monkeypatch: pytest.MonkeyPatch) -> None:
    here = identity()
    assert here == identity()
    compress = zlib.compress
    monkeypatch.setattr(zlib, "compress", lambda data, level: compress(data, level - 3))
    assert identity() != here


def test_the_sample_is_built_alike_twice(
    sample_module: Path, contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    real = replace(contents, module=sample_module)

    def build(name: str) -> Package:
        return build_package(real, pins, pyodide=pyodide, folder=tmp_path / name)

    assert Artifact.of(build("one").wheel) == Artifact.of(build("two").wheel)
