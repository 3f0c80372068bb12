"""Running the command as a user does: a process of its own, from a checkout that may be somewhere else."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from release.places import CHECKOUT


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "release.cli", *map(str, arguments)]


def triton_wasm(
    *arguments: object, checkout: Path = CHECKOUT, prefix: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end with the code of ``checkout``; ``prefix`` comes before it."""
    return subprocess.run(
        [*prefix, *command(*arguments)],
        cwd=checkout,
        env={**_environment(), "PYTHONPATH": str(checkout), **environment},
        capture_output=True,
        text=True,
        timeout=280,
    )


@contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start a command and end it with the block, whatever it has come to."""
    pipes = subprocess.PIPE
    process = subprocess.Popen(
        command(*arguments), cwd=CHECKOUT, env=_environment(), stdout=pipes, stderr=pipes, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def copy_of_checkout(folder: Path) -> Path:
    """Copy what a release is made from to ``folder``."""
    ignored = shutil.ignore_patterns(".*", "dist", "tests", "docs", "__pycache__")
    return Path(shutil.copytree(CHECKOUT, folder, ignore=ignored))


def edit(path: Path, old: str, new: str) -> None:
    """Replace text that must be there."""
    text = path.read_text()
    assert old in text, (path, old)
    path.write_text(text.replace(old, new))


def _environment() -> dict[str, str]:
    return {**os.environ, "CI": "true", "PYTHONDONTWRITEBYTECODE": "1"}
