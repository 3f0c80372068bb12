"""GitHub Actions, as a step of a job sees it: outputs, summaries, groups, masks, annotations, and how a step ends.

On any other machine the same is printed without the markup, so that each step also runs on a laptop.

>>> output("key", "a1b2")
key=a1b2
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from actions_toolkit import core

from release.artifacts import write_atomically
from release.errors import INTERRUPTED, BrokenEnvironment, Problem, WrongUsage

FAILURES = "failure"
"""The folder in which steps that fail leave word for other jobs."""

_SUMMARY = "GITHUB_STEP_SUMMARY"
_LONGEST_SUMMARY = 1_000_000  # bytes; GitHub refuses 1 MiB


def within() -> bool:
    """Whether this is a step of a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def setting(name: str, default: str | None = None) -> str:
    """Return the environment variable ``name``, or ``default`` where it is empty. Raises WrongUsage without either."""
    if value := os.environ.get(name, ""):
        return value
    if default is None:
        raise WrongUsage(f"{name} is not set.", remedy=f"Give the step `env: {name}`, or set it in the shell.")
    return default


def output(name: str, value: str) -> None:
    """Set an output of the step."""
    if within():
        core.set_output(name, value)
    else:
        print(f"{name}={value}")


def summary(markdown: str) -> None:
    """Add to the summary of the job; a text that is longer than GitHub takes is cut and says so."""
    text = markdown.encode()
    if len(text) > _LONGEST_SUMMARY:
        text = text[:_LONGEST_SUMMARY].rpartition(b"\n")[0] + b"\n\nCut here: it is longer than a summary may be.\n"
    if path := os.environ.get(_SUMMARY):
        with Path(path).open("ab") as file:
            file.write(text + b"\n")
    else:
        print(text.decode())


def mask(value: str) -> None:
    """Keep a value out of the log from now on. Elsewhere there is no log to keep it out of, and nothing is printed."""
    if within() and value:
        core.set_secret(value)
        sys.stdout.flush()  # stderr is the same log, and nothing may be there before this


@contextmanager
def group(title: str) -> Iterator[None]:
    """Fold what is printed meanwhile under a title."""
    # Progress goes to stderr, and the two streams are one log: the title must not come late.
    if within():
        core.start_group(title)
    else:
        print(title)
    sys.stdout.flush()
    try:
        yield
    finally:
        if within():
            core.end_group()
            sys.stdout.flush()


def notice(message: str, *, title: str) -> None:
    """Annotate the run."""
    _annotate("notice", message, title)


def warning(message: str, *, title: str) -> None:
    """Annotate the run with something that somebody ought to look at."""
    _annotate("warning", message, title)


def error(message: str, *, title: str) -> None:
    """Annotate the run with what made it fail."""
    _annotate("error", message, title)


def step(main: Callable[[], None]) -> NoReturn:
    """Run a step to its end: its exit code is that of the problem it ended with, which is annotated and summed up."""
    name = Path(sys.argv[0]).stem
    try:
        main()
    except Problem as problem:
        _fail(name, problem)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OSError as problem:
        where = f": {problem.filename}" if problem.filename else ""
        _fail(
            name,
            BrokenEnvironment(
                f"{(problem.strerror or str(problem)).rstrip('.')}{where}.", remedy="Look at the disk of the machine."
            ),
        )
    except Exception as problem:
        traceback.print_exc()
        _fail(
            name,
            BrokenEnvironment(
                f"The toolkit itself failed: {type(problem).__name__}: {problem}", remedy="Report it, with the log."
            ),
        )
    sys.exit(0)


def _fail(name: str, problem: Problem) -> NoReturn:
    sys.stdout.flush()
    if within():
        error(f"{problem}\n{problem.remedy}", title=name)
        with suppress(OSError):  # it has been said, and a full disk may be what it is about
            _leave_word(name, problem)
            summary(f"**{name} failed.** {problem}\n\nNext: {problem.remedy}")
    else:
        print(f"{name}: {problem}\n  {problem.remedy}", file=sys.stderr)
    sys.exit(problem.exit_code)


def _leave_word(name: str, problem: Problem) -> None:
    word = {"step": name, "message": str(problem), "remedy": problem.remedy, "exit_code": problem.exit_code}
    write_atomically(Path(FAILURES) / f"{name}.json", json.dumps(word, indent=2) + "\n")


def _annotate(kind: str, message: str, title: str) -> None:
    if within():
        core.issue_command(kind, {"title": title}, message)
        sys.stdout.flush()
    else:
        print(f"{title}: {message}", file=sys.stderr)
