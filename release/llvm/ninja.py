"""Running ninja: how far it is, and when it fails, what failed first and why."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from release.errors import BrokenEnvironment, Finding, Problem
from release.llvm.machine import low_priority
from release.process import Completed, run
from release.progress import Progress, Steps
from release.toolchain.model import Toolchain

_STATUS = re.compile(r"^\[(\d+)/(\d+)\] (.+)$")
_MOST_STEPS = 100
_LONGEST_ERROR = 300
_NO_MEMORY = re.compile(
    r"received SIGKILL|^FAILED: \[code=137\]|^Killed$|: Killed$|std::bad_alloc|out of memory|Cannot allocate memory",
    re.MULTILINE,
)


def ninja(
    tree: Path, target: str, *, toolchain: Toolchain, jobs: int, env: Mapping[str, str], progress: Progress
) -> Completed:
    """Make ``target`` in the build tree ``tree``, at low priority, with its progress shown.

    Compilers that a killed run has left running are waited for. Raises Finding when something does not compile,
    BrokenEnvironment when the memory or the disk is at its end.
    """
    command = toolchain.command(["ninja", "-C", tree, f"-j{jobs}", target], env={**env, "NINJA_STATUS": "[%f/%t] "})
    with ExitStack() as shown:
        watch = _Watch(progress, shown)
        completed = run([*_alone(tree), *low_priority(), *command], cwd=tree, on_line=watch)
    if completed.returncode != 0:
        raise _failure(completed, target, tree, jobs)
    return completed


def _alone(tree: Path) -> tuple[str, ...]:
    """Lock the tree for as long as ninja or any of its children runs: each inherits the descriptor of the lock."""
    return ("flock", "--no-fork", str(tree / ".ninja_lock")) if shutil.which("flock") else ()


class _Watch:
    """Turns ninja's [n/m] into steps: each is one of m, or a hundredth of them, for CI prints every one."""

    def __init__(self, progress: Progress, shown: ExitStack) -> None:
        self._progress, self._shown = progress, shown
        self._steps: Steps | None = None
        self._total = self._begun = self._last = 0

    def __call__(self, line: str) -> None:
        if not (found := _STATUS.match(line)):
            return
        number, total = int(found[1]), int(found[2])
        if self._steps is None or number < self._last or total > self._total:
            # The first line, or a new count: ninja runs CMake before the rest when a list of files has changed.
            self._shown.close()
            self._total, self._begun = total, 0
            self._steps = self._shown.enter_context(self._progress.steps("llvm", min(total, _MOST_STEPS)))
        self._last = number
        if number * min(self._total, _MOST_STEPS) // self._total > self._begun:
            self._begun += 1
            self._steps.begin(f"{number} of {total}: {Path(found[3].split()[-1]).name}")


def _failure(completed: Completed, target: str, tree: Path, jobs: int) -> Problem:
    first = completed.output.find("FAILED: ")
    said = completed.output[first if first >= 0 else 0 :]
    if "No space left on device" in said:
        free = shutil.disk_usage(tree).free
        return BrokenEnvironment(
            f"The disk is full: {tree} has {free:,} bytes left.",
            remedy="Free some space and run the same command: it goes on where it stopped.",
        )
    found = re.match(r"FAILED: (?:\[code=\d+\] )?(\S+)", said)
    what = Path(found[1]).name if found else target
    if completed.returncode < 0 or _NO_MEMORY.search(said):
        return BrokenEnvironment(
            f"Cannot build {what}: its compiler was killed, most likely for lack of memory"
            f" ({jobs} ran at once, the largest took {completed.peak_memory / 1e9:.1f} GB).",
            remedy=f"Run again with --jobs {max(1, jobs // 2)} or on a machine with more memory:"
            " it goes on where it stopped.",
        )
    lines = said.splitlines()
    errors = [line for line in lines if re.search(r"\berror:", line) and "em++: error" not in line] or lines[2:3]
    reason = errors[0].strip()[:_LONGEST_ERROR] if errors else completed.explain()
    return Finding(f"Cannot build {what}: {reason}", remedy="Mend the source, or pin another LLVM; then run it again.")
