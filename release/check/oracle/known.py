"""Differences that were explained and accepted, by pin set; one that is gone is a stale excuse."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from release.check.oracle.texts import Key
from release.pins.model import Sentence
from release.toml import parse_toml

KNOWN = Path(__file__).parent / "known"


class _Difference(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    kernel: str
    target: str
    stage: str
    reason: Sentence


class _Differences(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    difference: tuple[_Difference, ...] = Field(default=(), strict=False)


def known_differences(pins: str, folder: Path = KNOWN) -> dict[Key, str]:
    """Return the reasons of the accepted differences of a pin set, from ``PINS.toml``; no file, no differences.

    Raises WrongUsage for what the file may not say.
    """
    path = folder / f"{pins}.toml"
    if not path.exists():
        return {}
    entries = parse_toml(path, _Differences, help_page="docs/oracle.md").difference
    return {Key(entry.kernel, entry.target, entry.stage): entry.reason for entry in entries}
