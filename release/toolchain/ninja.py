"""Running ninja: how far it is, and when it fails, what failed first and why."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from release.errors import Finding, Problem, Unfinished
from release.machine import low_priority
from release.process import Completed, run
from release.progress import Progress, Steps
from release.toolchain.exhausted import exhausted
from release.toolchain.model import Toolchain

_STATUS = re.compile(r"^\[(\d+)/(\d+)\] (.+)$")
_MOST_STEPS = 100
_LONGEST_ERROR = 300


def ninja(
    tree: Path,
    *targets: str,
    name: str,
    toolchain: Toolchain,
    jobs: int,
    env: Mapping[str, str] | None = None,
    progress: Progress,
    timeout: float | None = None,
) -> Completed:
    """Make ``targets`` in the build tree ``tree``, at low priority, with its progress shown as that of ``name``.

    Compilers that a killed run has left running are waited for. Raises Finding when something does not compile,
    BrokenEnvironment when the memory or the disk is at its end, Unfinished when ``timeout`` seconds have passed.
    """
    status = {**(env or {}), "NINJA_STATUS": "[%f/%t] "}
    command = toolchain.command(["ninja", "-C", tree, f"-j{jobs}", *targets], env=status)
    with ExitStack() as shown:
        watch = _Watch(name, progress, shown)
        completed = run([*_alone(tree), *low_priority(), *command], cwd=tree, on_line=watch, timeout=timeout)
    if completed.timed_out:
        raise Unfinished(
            f"{targets[0]} is not finished: {watch.done} of {watch.total} steps were done when the time was up.",
            remedy="Run the same again: it goes on from there.",
        )
    if completed.returncode != 0:
        raise _failure(completed, targets[0], tree, jobs)
    return completed


def _alone(tree: Path) -> tuple[str, ...]:
    """Lock the tree for as long as ninja or any of its children runs: each inherits the descriptor of the lock."""
    return ("flock", "--no-fork", str(tree / ".ninja_lock")) if shutil.which("flock") else ()


class _Watch:
    """Turns ninja's [n/m] into steps: each is one of m, or a hundredth of them, for CI prints every one."""

    def __init__(self, name: str, progress: Progress, shown: ExitStack) -> None:
        self._name, self._progress, self._shown = name, progress, shown
        self._steps: Steps | None = None
        self.total = self.done = self._begun = 0

    def __call__(self, line: str) -> None:
        if not (found := _STATUS.match(line)):
            return
        number, total = int(found[1]), int(found[2])
        if self._steps is None or number < self.done or total > self.total:
            # The first line, or a new count: ninja runs CMake before the rest when a list of files has changed.
            self._shown.close()
            self.total, self._begun = total, 0
            self._steps = self._shown.enter_context(self._progress.steps(self._name, min(total, _MOST_STEPS)))
        self.done = number
        if number * min(self.total, _MOST_STEPS) // self.total > self._begun:
            self._begun += 1
            self._steps.begin(f"{number} of {total}: {Path(found[3].split()[-1]).name}")


def _failure(completed: Completed, target: str, tree: Path, jobs: int) -> Problem:
    first = completed.output.find("FAILED: ")
    said = completed.output[first if first >= 0 else 0 :]
    found = re.match(r"FAILED: (?:\[code=\d+\] )?(\S+)", said)
    what = Path(found[1]).name if found else target
    fewer = f"Run again with --jobs {max(1, jobs // 2)} or on a machine with more memory: it goes on where it stopped."
    if problem := exhausted(replace(completed, output=said), f"build {what}", tree, remedy=fewer):
        return problem
    lines = said.splitlines()
    errors = [line for line in lines if re.search(r"\berror:", line) and "em++: error" not in line] or lines[2:3]
    reason = errors[0].strip()[:_LONGEST_ERROR] if errors else completed.explain()
    return Finding(f"Cannot build {what}: {reason}", remedy="Mend the source, or pin another LLVM; then run it again.")
