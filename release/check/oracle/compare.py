"""Comparing the module's texts with those of an oracle, text by text and byte by byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile, zip_longest
from pathlib import Path

from release.check.oracle.causes import suspect
from release.check.oracle.model import Assembled, Difference, OracleReport, Status, TextReport
from release.check.oracle.texts import Key, Kind, read_texts, without_locations, without_places

_CONTEXT = 2
_LONGEST_LINE = 200


def compare(
    ours: Path,
    native: Path,
    *,
    kind: Kind,
    what: str,
    known: Mapping[Key, str] | None = None,
    faults: Sequence[str] = (),
    assembled: Sequence[Assembled] = (),
) -> OracleReport:
    """Compare two folders of ``KERNEL/TARGET/STAGE``; ``kind`` and ``what`` are those of the oracle.

    Texts are compared as they are. Where that fails the paths of programs and Triton are made alike, and for a
    published wheel line numbers are taken out too; the report says where that was needed. ``known`` gives the reasons
    of accepted differences: one for a text that does not differ, or is not there, fails the comparison. Raises
    WrongUsage for a folder without texts.
    """
    left, right = read_texts(ours), read_texts(native)
    known = known or {}
    texts = tuple(_one(key, left.get(key), right.get(key), kind, known.get(key)) for key in {**left, **right})
    differing = {Key(text.kernel, text.target, text.stage) for text in texts if text.status != "identical"}
    stale = tuple(str(key) for key in known if key not in differing)
    passed = not stale and not faults and all(text.accepted for text in texts) and all(one.passed for one in assembled)
    return OracleReport(
        passed=passed,
        oracle=what,
        weak=kind == "wheel",
        texts=texts,
        faults=tuple(faults),
        stale=stale,
        assembled=tuple(assembled),
    )


def _one(key: Key, ours: str | None, native: str | None, kind: Kind, reason: str | None) -> TextReport:
    if ours is None or native is None:
        status: Status = "missing" if ours is None else "extra"
        by = "the module" if ours is None else "the oracle"
        return TextReport(**key._asdict(), status=status, ignored="nothing", cause=f"not made by {by}", reason=reason)
    if ours == native:
        return TextReport(**key._asdict(), status="identical", ignored="nothing")
    cause = suspect(ours, native)
    ours, native = without_places(ours), without_places(native)
    if ours == native:
        return TextReport(**key._asdict(), status="identical", ignored="paths", cause="path: where the files were")
    if kind == "wheel":
        ours, native = (without_locations(text, key.stage) for text in (ours, native))
        if ours == native:
            return TextReport(**key._asdict(), status="identical", ignored="locations")
        cause = suspect(ours, native)
    return TextReport(
        **key._asdict(),
        status="differs",
        ignored="locations" if kind == "wheel" else "paths",
        cause=cause,
        difference=_first_difference(ours, native),
        reason=reason,
    )


def _first_difference(ours: str, native: str) -> Difference:
    left, right = ours.split("\n"), native.split("\n")
    at = next(number for number, (a, b) in enumerate(zip_longest(left, right)) if a != b)
    pairs = zip(*(text[at] if at < len(text) else "" for text in (left, right)), strict=False)
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))

    def around(lines: list[str]) -> tuple[str, ...]:
        shown = enumerate(lines[max(0, at - _CONTEXT) : at + _CONTEXT + 1], start=max(0, at - _CONTEXT))
        return tuple(_cut(line, shared if number == at else 0) for number, line in shown)

    return Difference(line=at + 1, ours=around(left), native=around(right))


def _cut(line: str, at: int) -> str:
    """Return what is around a column of a line that may have thousands."""
    start = max(0, at - _LONGEST_LINE // 2) if len(line) > _LONGEST_LINE else 0
    return f"{'…' if start else ''}{line[start : start + _LONGEST_LINE]}"
