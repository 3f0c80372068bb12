"""What the user sees while work is going on: one live line in a terminal, plain lines elsewhere.

All of it goes to stderr; stdout is for results.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from release.process import Meter, measuring

_TICK_SECONDS = 0.5
_LINE = 110


class Progress:
    """Prints notes, and a line that moves while something is under way."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = not quiet and sys.stderr.isatty() and "CI" not in os.environ and os.environ.get("TERM") != "dumb"
        self._lock = threading.Lock()
        self._under_way: list[Steps] = []
        self._line = ""

    def note(self, text: str) -> None:
        """Print one line that stays."""
        if self._quiet:
            return
        with self._lock:
            self._erase()
            print(text, file=sys.stderr, flush=True)

    def done(self, name: str, text: str) -> None:
        """Print that a stage has ended."""
        self.note(f"  {name:<12} {text}")

    @contextmanager
    def steps(self, name: str, total: int) -> Iterator[Steps]:
        """Count ``total`` steps; in a terminal show which one runs, for how long, the time left and the peak memory.

        Blocks may be nested; the innermost is shown.
        """
        with measuring() as meter:
            steps = Steps(self, name, total, meter)
            self._under_way.append(steps)
            stop = threading.Event()
            ticker = threading.Thread(target=self._tick, args=(stop,), daemon=True)
            if self._live and len(self._under_way) == 1:
                ticker.start()
            try:
                yield steps
            finally:
                stop.set()
                if ticker.ident:
                    ticker.join()
                self._under_way.remove(steps)
                with self._lock:
                    self._erase()

    def _begun(self, steps: Steps) -> None:
        if not self._live:
            self.note(steps.heading())

    def _tick(self, stop: threading.Event) -> None:
        while not stop.wait(_TICK_SECONDS):
            with self._lock:
                self._erase()
                self._line = self._under_way[-1].describe()[:_LINE]
                print(self._line, end="", file=sys.stderr, flush=True)

    def _erase(self) -> None:
        if self._line:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self._line = ""


class Steps:
    """The steps of one piece of work, as ``Progress.steps`` gives it."""

    def __init__(self, progress: Progress, name: str, total: int, meter: Meter) -> None:
        self._progress, self._name, self._total, self._meter = progress, name, total, meter
        self._number = 0
        self._label = ""
        self._started = time.monotonic()

    def begin(self, label: str) -> None:
        """Say that the next step begins."""
        self._number += 1
        self._label = label
        self._progress._begun(self)

    def heading(self) -> str:
        """Return which step of how many this is, where there is more than one."""
        count = f"{self._number}/{self._total} " if self._total > 1 else ""
        return f"  {self._name:<12} {count}{self._label}"

    def describe(self) -> str:
        """Return the live line: the heading, seconds so far, time left, peak memory."""
        elapsed = time.monotonic() - self._started
        ended = max(self._number - 1, 0)
        left = f", about {elapsed / ended * (self._total - ended):.0f} s left" if ended else ""
        memory = f", peak {self._meter.peak_memory / 1e9:.1f} GB" if self._meter.peak_memory else ""
        return f"{self.heading()} ({elapsed:.0f} s{left}{memory})"
