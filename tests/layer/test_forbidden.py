"""The proof of the boundary is worth what it catches."""

import ctypes
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from release.check.kernels.forbidden import Reached, nothing_beyond_text

REACHES: dict[str, Callable[[Path], object]] = {
    "a process": lambda _: subprocess.run([sys.executable, "-c", ""], check=False),
    "a shell": lambda _: os.system("true"),  # noqa: S605
    "exec": lambda _: os.execv(sys.executable, [sys.executable, "-c", ""]),  # noqa: S606
    "fork": lambda _: os.fork(),
    "spawn": lambda _: os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {}),
    "a library": lambda _: ctypes.CDLL("libcuda.so.1"),
    "a thread": lambda _: threading.Thread(target=print).start(),
    "a socket": lambda _: socket.create_connection(("127.0.0.1", 9)),
    "a temporary file": lambda _: tempfile.mkdtemp(),
    "a file": lambda folder: (folder / "x").write_text(""),
    "a folder": lambda folder: (folder / "x").mkdir(),
    "ptxas": lambda folder: (folder / "ptxas").read_bytes(),
    "a device": lambda _: Path("/dev/nvidia0").open(),  # noqa: SIM115
}


@pytest.mark.parametrize("reach", REACHES.values(), ids=REACHES)
def test_what_is_out_of_bounds_raises(reach: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(Reached), nothing_beyond_text():
        reach(tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_was_swallowed_comes_out_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(Reached, match="writing"), nothing_beyond_text(), suppress(Reached):
        (tmp_path / "x").write_text("")


def test_reading_and_computing_are_not_out_of_bounds(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("text")
    with nothing_beyond_text():
        assert (tmp_path / "x").read_text() == "text"
        assert Path(os.devnull).write_text("") == 0


def test_afterwards_everything_is_as_before(tmp_path: Path) -> None:
    with nothing_beyond_text():
        pass
    (tmp_path / "x").write_text("text")
    assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0
