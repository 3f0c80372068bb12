"""What an LLVM build needs of the machine."""

from __future__ import annotations

from release.errors import BrokenEnvironment
from release.machine import Machine

# Measured with the profile full-lto: the largest compilation took 0.5 GB, the link of a program of LLVM takes far more.
COMPILE_MEMORY = 600_000_000
LINK_MEMORY = 5_000_000_000
# The build tree, the prefix beside it, the packed prefix, and the objects in ccache; then what LLVM's own table
# generators add.
DISK = 3_000_000_000
DISK_FOR_GENERATORS = 1_500_000_000

_PER_CORE_MINUTES = 135  # 66 minutes on two busy cores


def jobs_for(machine: Machine, *, each: int = COMPILE_MEMORY) -> int:
    """Return how many compilers run at once: one for each core, as far as the memory goes at ``each`` bytes."""
    return max(1, min(machine.cores, machine.memory // each))


def link_jobs_for(machine: Machine, jobs: int) -> int:
    """Return how many linkers run at once."""
    return max(1, min(jobs, machine.memory // LINK_MEMORY))


def needs(machine: Machine, jobs: int, *, disk: int) -> str:
    """Say in one sentence what the build takes and what there is.

    Raises BrokenEnvironment when the disk is too small, or the memory with all its swap for even one compiler.
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
    if machine.memory + machine.swap < COMPILE_MEMORY:
        raise BrokenEnvironment(
            f"LLVM needs {COMPILE_MEMORY / 1e9:.1f} GB of memory and {machine.memory / 1e9:.1f} GB are free,"
            f" with {machine.swap / 1e9:.1f} GB of swap.",
            remedy="End other programs, or add swap.",
        )
    return sentence
