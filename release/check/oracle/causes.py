"""What a difference between two texts may come from: a suspicion to start with, never a reason to accept it."""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest

from release.check.oracle.texts import without_places

_WIDTH = re.compile(r"\b([iusbf]|index)(32|64)\b")
_NAME = re.compile(r"%[\w.$-]+|#loc\d*|[!#]\d+|\$?\.?L\w*\d+(?:_\d+)*|\b[svr]\d+\b|\b[sv]\[\d+:\d+\]|^\^bb\d+")
_NUMBER = re.compile(r"(?<![\w%$@.])-?(?:0[xX][0-9A-Fa-f]+|0[fd][0-9A-Fa-f]{8,16}|\d+\.?\d*(?:[eE][+-]?\d+)?)(?![\w.])")
_PLACE = re.compile(r"/case/|/site-packages/|\bassertFile_")


def suspect(ours: str, native: str) -> str:
    """Return the first of the known causes that fits, or that none does."""
    left, right = ours.splitlines(), native.splitlines()
    pair = next((pair for pair in zip_longest(left, right, fillvalue="") if pair[0] != pair[1]), ("", ""))
    return next((cause for cause, fits in _CAUSES.items() if fits(left, right, *pair)), "none of the known causes")


def _ending(ours: Sequence[str], native: Sequence[str], *_: str) -> bool:
    return ours == native


def _order(ours: Sequence[str], native: Sequence[str], *_: str) -> bool:
    return Counter(ours) == Counter(native)


def _numbering(ours: Sequence[str], native: Sequence[str], *_: str) -> bool:
    def bare(lines: Sequence[str]) -> Counter[str]:
        return Counter(_NAME.sub("%", line) for line in lines)

    return bare(ours) == bare(native)


def _pointer_width(_: Sequence[str], __: Sequence[str], ours: str, native: str) -> bool:
    return _WIDTH.sub(r"\1", ours) == _WIDTH.sub(r"\1", native)


def _cut(_: Sequence[str], __: Sequence[str], ours: str, native: str) -> bool:
    """Whether the numbers that differ are the same in their low 32 bits, as something cut or extended to 64 is."""

    def equal(left: str, right: str) -> bool:
        a, b = _integer(left), _integer(right)
        # One of them has to fit: the bits of two numbers of 64 may agree in the low half by chance.
        return a is not None and b is not None and (a - b) % (1 << 32) == 0 and min(abs(a), abs(b)) < 1 << 32

    return _numbers_differ(ours, native, equal)


def _formatting(_: Sequence[str], __: Sequence[str], ours: str, native: str) -> bool:
    def equal(left: str, right: str) -> bool:
        a, b = _integer(left), _integer(right)
        if a is not None and b is not None:
            return a == b
        x, y = _float(left), _float(right)
        return x is not None and y is not None and math.isclose(x, y, rel_tol=1e-6)

    return _numbers_differ(ours, native, equal)


def _path(_: Sequence[str], __: Sequence[str], ours: str, native: str) -> bool:
    return all(_PLACE.search(without_places(line)) for line in (ours, native))


_CAUSES: dict[str, Callable[[Sequence[str], Sequence[str], str, str], bool]] = {
    "line ends: the lines are equal": _ending,
    "order: the same lines": _order,
    "pointer width: 32 against 64 bits at the same place": _pointer_width,
    "number formatting: the same value": _formatting,
    "pointer width: a number cut or extended at 32 bits": _cut,
    "path: the name of a file, or its length": _path,
    "numbering: the same lines but for names of values, registers and labels": _numbering,
}


def _numbers_differ(ours: str, native: str, equal: Callable[[str, str], bool]) -> bool:
    left, right = _NUMBER.findall(ours), _NUMBER.findall(native)
    same_else = _NUMBER.sub("0", ours) == _NUMBER.sub("0", native)
    return same_else and all(a == b or equal(a, b) for a, b in zip(left, right, strict=True))


def _integer(text: str) -> int | None:
    try:
        return int(text, 16 if "x" in text.lower() else 10)
    except ValueError:
        return None


def _float(text: str) -> float | None:
    """Read a number as C writes it, or as LLVM and PTX write the bits of one."""
    kind = {"0x": ">d", "0d": ">d", "0f": ">f"}.get(text[:2].lower())
    try:
        return float(struct.unpack(kind, bytes.fromhex(text[2:]))[0]) if kind else float(text)
    except (ValueError, struct.error):
        return None
