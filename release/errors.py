"""The ways a command ends badly: one sentence, one next step, one exit code."""

from __future__ import annotations


class Problem(Exception):  # noqa: N818 - a finding is not an error of the program
    """Something the user can act on.

    ``str(problem)`` is one sentence saying what was expected and what was found; ``remedy`` is the next step.
    """

    exit_code = 1

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


class Finding(Problem):
    """The work ran and its result is bad: a failed check, a refused package, an audit rule broken."""

    exit_code = 1


class WrongUsage(Problem):
    """What the user wrote is wrong: an argument, a pin set, a file that is not what it should be."""

    exit_code = 2


class BrokenEnvironment(Problem):
    """The machine cannot do it: a missing tool, no network, a full disk."""

    exit_code = 3


class Unfinished(Problem):
    """The time that was given is up. What was done is kept, and the same command goes on from there."""

    exit_code = 4


INTERRUPTED = 130
"""Exit code after Ctrl-C or SIGTERM, as shells have it (128 + SIGINT)."""
