"""The line that a draft of ours carries in its text, which GitHub does not show: of what build it is, and whose turn.

A draft belongs to one build. Of several publishers of that build the last to write its name into the line goes on, and
the others see so before they change anything and stop.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

_LINE = re.compile(r"<!-- triton-wasm release of sha256:([0-9a-f]{64}) by ([0-9a-f]{16}) -->")
_LAST = re.compile(rf"{_LINE.pattern}\s*\Z")


@dataclass(frozen=True, kw_only=True)
class Marker:
    """The SHA-256 of the build's SHA256SUMS, and the publisher, 16 hex digits drawn for each run."""

    build: str
    publisher: str

    @classmethod
    def new(cls, build: str) -> Marker:
        """Draw the name of a publisher."""
        return cls(build=build, publisher=secrets.token_hex(8))

    @classmethod
    def find(cls, body: str) -> Marker | None:
        """Read the marker in the text of a release, or None if it is not ours."""
        found = _LINE.findall(body)  # the last is ours; notes may quote one
        return cls(build=found[-1][0], publisher=found[-1][1]) if found else None

    def attach(self, notes: str) -> str:
        """Return the notes with this marker as their last line, in place of another that is there."""
        notes = _LAST.sub("", notes)
        return f"{notes.rstrip()}\n\n<!-- triton-wasm release of sha256:{self.build} by {self.publisher} -->\n"
