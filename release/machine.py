"""What the machine has, and how to leave most of it to others."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The cores, memory and swap (bytes) that we may use, and the free bytes where the work is done."""

    cores: int
    memory: int
    swap: int
    disk: int


def look(folder: Path) -> Machine:
    """Ask the machine; ``folder`` is where the work is done."""
    folder.mkdir(parents=True, exist_ok=True)
    return Machine(
        cores=len(os.sched_getaffinity(0)), memory=_memory(), swap=_swap(), disk=shutil.disk_usage(folder).free
    )


def low_priority() -> tuple[str, ...]:
    """Return the command prefix that lets everything else on the machine go first, as far as it has the programs."""
    prefixes: Sequence[Sequence[str]] = (("nice", "-n", "19"), ("ionice", "-c", "3"))
    return tuple(part for prefix in prefixes if shutil.which(prefix[0]) for part in prefix)


def size_of(folder: Path) -> int:
    """Return the bytes that the files below ``folder`` take on the disk."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{parent}/{name}").st_blocks * 512
    return total


def _memory() -> int:
    available = _meminfo("MemAvailable")
    if available is None:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no limit, or none that we can see
        available = min(available, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return available


def _swap() -> int:
    free = _meminfo("SwapFree") or 0
    with suppress(OSError, ValueError):
        free = min(free, int(Path("/sys/fs/cgroup/memory.swap.max").read_text()))
    return free


def _meminfo(name: str) -> int | None:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None
