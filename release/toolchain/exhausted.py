"""Whether a program failed because the machine had no more memory or disk to give: no fault of its input."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

from release.errors import BrokenEnvironment
from release.process import Completed

_LITTLE_SPACE = 1 << 24
_NO_MEMORY = re.compile(
    # 255 is what ccache ends with when a signal has ended its compiler.
    r"received SIGKILL|^FAILED: \[code=(?:137|255)\]|^Killed$|: Killed$|std::bad_alloc|out of memory"
    r"|Cannot allocate memory",
    re.MULTILINE,
)


def exhausted(completed: Completed, task: str, folder: Path, *, remedy: str) -> BrokenEnvironment | None:
    """Return what to raise when a program that wrote into ``folder`` ran out of disk or memory, or None.

    ``remedy`` says what to do about memory.
    """
    # A linker writes through a memory map: on a full disk it gets no error, it is killed by SIGBUS.
    free = shutil.disk_usage(folder).free
    if "No space left on device" in completed.output or ("SIGBUS" in completed.output and free < _LITTLE_SPACE):
        return BrokenEnvironment(
            f"The disk is full: cannot {task}, {folder} has {free:,} bytes left.",
            remedy="Free some space and run the same command: it goes on where it stopped.",
        )
    if completed.returncode == -signal.SIGKILL or _NO_MEMORY.search(completed.output):
        return BrokenEnvironment(
            f"Cannot {task}: a program was killed, most likely for lack of memory"
            f" (the largest took {completed.peak_memory / 1e9:.1f} GB).",
            remedy=remedy,
        )
    return None
