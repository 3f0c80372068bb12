"""What the machine has and what an LLVM build needs of it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from release.errors import BrokenEnvironment

# Measured with the profile full-lto: the largest compilation took 0.5 GB, the link of a program of LLVM takes far more.
COMPILE_MEMORY = 600_000_000
LINK_MEMORY = 5_000_000_000
# The build tree, the prefix beside it, and the packed prefix; then what LLVM's own table generators add.
DISK = 3_000_000_000
DISK_FOR_GENERATORS = 1_500_000_000

_PER_CORE_MINUTES = 135  # 66 minutes on two busy cores


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The cores and the memory (bytes) that we may use, and the free bytes where the work is done."""

    cores: int
    memory: int
    disk: int


def look(folder: Path) -> Machine:
    """Ask the machine; ``folder`` is where the work is done."""
    folder.mkdir(parents=True, exist_ok=True)
    return Machine(cores=len(os.sched_getaffinity(0)), memory=_memory(), disk=shutil.disk_usage(folder).free)


def jobs_for(machine: Machine) -> int:
    """Return how many compilers run at once: one for each core, as far as the memory goes."""
    return max(1, min(machine.cores, machine.memory // COMPILE_MEMORY))


def link_jobs_for(machine: Machine, jobs: int) -> int:
    """Return how many linkers run at once."""
    return max(1, min(jobs, machine.memory // LINK_MEMORY))


def needs(machine: Machine, jobs: int, *, disk: int) -> str:
    """Say in one sentence what the build takes and what there is.

    Raises BrokenEnvironment when the disk is too small.
    """
    minutes = _PER_CORE_MINUTES / min(jobs, machine.cores)
    sentence = (
        f"LLVM takes about {minutes:.0f} minutes with {jobs} jobs from nothing, {disk / 1e9:.1f} GB of disk"
        f" ({machine.disk / 1e9:.1f} GB are free) and {jobs * COMPILE_MEMORY / 1e9:.1f} GB of memory"
        f" ({machine.memory / 1e9:.1f} GB are free)."
    )
    if machine.disk < disk:
        raise BrokenEnvironment(
            f"LLVM needs {disk / 1e9:.1f} GB of disk and {machine.disk / 1e9:.1f} GB are free.",
            remedy="Make room, or give a --work folder and a TRITON_WASM_CACHE on another disk.",
        )
    return sentence


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
    found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    available = int(found[1]) * 1024 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no limit, or none that we can see
        available = min(available, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return available
