"""Trying again: what may go well the next time, how long to wait before, and when to stop."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from release.errors import BrokenEnvironment
from release.progress import Progress


class Transient(Exception):  # noqa: N818 - the next attempt decides whether it was an error
    """Something that may go well the next time; ``wait`` is how many seconds the other side asks us to stay away."""

    def __init__(self, reason: str, *, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class Clock(Protocol):
    """Where waiting happens, so that tests need not."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """Waits for real."""

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often one step is tried, and how many seconds are waited: first, at most by our own choice, in all.

    What the other side asks for is not cut short, for asking too early makes a rate limit longer; where it is more than
    what is left of ``total`` we stop at once. The longest that GitHub asks for is an hour.
    """

    attempts: int = 8
    first: float = 1.0
    longest: float = 60.0
    total: float = 4500.0


class Retry:
    """Runs steps that may be repeated: each reads what there is before it changes anything."""

    def __init__(self, progress: Progress, *, patience: Patience | None = None, clock: Clock | None = None) -> None:
        self._progress = progress
        self._patience = patience or Patience()
        self._clock = clock or SystemClock()
        self._left = self._patience.total

    def step[T](self, what: str, action: Callable[[], T]) -> T:
        """Call ``action`` until it raises no Transient, and return its result.

        Raises BrokenEnvironment when the attempts or the time to wait are used up.
        """
        for attempt in range(1, self._patience.attempts + 1):
            try:
                return action()
            except Transient as transient:
                reason, asked = str(transient), transient.wait
            # Outside of the handler: an exception that was caught may hold the request, and so the token.
            if attempt == self._patience.attempts:
                break
            wait = max(asked, self._backoff(attempt))
            if wait > self._left:
                raise BrokenEnvironment(
                    f"{what}: {reason}; waiting another {wait:.0f} s would be too long.",
                    remedy="Run the same command again later: what is already done is kept.",
                )
            self._left -= wait
            self._progress.note(f"  {what}: {reason}; trying again in {wait:.0f} s")
            self._clock.sleep(wait)
        raise BrokenEnvironment(
            f"{what}: {reason}, {self._patience.attempts} times.",
            remedy="Run the same command again later: what is already done is kept.",
        )

    def _backoff(self, attempt: int) -> float:
        wait = min(self._patience.first * 2.0 ** (attempt - 1), self._patience.longest)
        return wait * random.uniform(0.5, 1.0)  # noqa: S311 - two publishers must not come back at the same moment
