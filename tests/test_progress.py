import os
import pty
import subprocess
import sys

import pytest

from release.progress import Progress

PROGRAM = """
import time
from release.process import run
from release.progress import Progress
progress = Progress()
with progress.steps("work", 3) as steps:
    for name in ("one", "two", "three"):
        steps.begin(name)
        run(["sleep", "0.7"])
progress.done("work", "ended")
"""


def in_a_terminal(**environment: str) -> str:
    main, side = pty.openpty()
    env = {key: value for key, value in os.environ.items() if key != "CI"} | {"TERM": "xterm"} | environment
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=side, env=env)
    os.close(side)
    output = b""
    try:
        while chunk := os.read(main, 4096):
            output += chunk
    except OSError:
        pass  # the terminal is gone with its last writer
    process.wait()
    os.close(main)
    return output.decode()


def test_a_terminal_has_one_live_line() -> None:
    output = in_a_terminal()
    assert "\r\033[K" in output
    assert "2/3 two" in output and "s left" in output and "peak" in output
    assert output.count("\n") == 1


def test_ci_has_plain_lines() -> None:
    output = in_a_terminal(CI="true")
    assert "\033" not in output
    assert [line.split() for line in output.splitlines()] == [
        ["work", "1/3", "one"],
        ["work", "2/3", "two"],
        ["work", "3/3", "three"],
        ["work", "ended"],
    ]


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(quiet=True)
    with progress.steps("work", 1) as steps:
        steps.begin("one")
    progress.done("work", "ended")
    assert capsys.readouterr() == ("", "")
