"""The package of the recipe beside that of the direct path, file by file: a difference has a reason or is a finding."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from release.artifacts import sha256_of
from release.errors import Finding
from release.package.model import Package
from release.package.recipe.build import BuiltRecipe


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Something that is not the same in both: where it is, what each has, and why, or None where nobody knows."""

    where: str
    direct: str
    recipe: str
    why: str | None


def compare(direct: Package, built: BuiltRecipe) -> tuple[Difference, ...]:
    """Compare the wheels (names, contents, and what the archives say of each) and the lock files.

    Raises Finding for a wheel or a lock file that cannot be read.
    """
    one, other = _Side.read(direct.wheel, direct.lock), _Side.read(built.wheel, built.lock)
    pairs = {**_whole(one, other), **_contents(one, other), **_locks(one, other)}
    return tuple(
        Difference(where=where, direct=_shown(x), recipe=_shown(y), why=_why(where, x, y, one, other))
        for where, (x, y) in pairs.items()
        if x != y
    )


def require_same(differences: Sequence[Difference]) -> None:
    """Raise Finding with the first difference that has no reason."""
    if unexplained := [difference for difference in differences if difference.why is None]:
        first = unexplained[0]
        more = f" ({len(unexplained) - 1} more)" if len(unexplained) > 1 else ""
        raise Finding(
            f"The recipe's package is not that of the direct path, and nobody knows why: {first.where} is"
            f" {first.recipe} by the recipe and {first.direct} directly{more}.",
            remedy="Find out which is right. What is of pyodide-build's making goes with its reason into"
            " release/package/recipe/compare.py.",
        )


def describe(differences: Sequence[Difference]) -> str:
    """Return the differences as lines: what each has, and why."""
    if not differences:
        return "The two packages are the same."
    lines = []
    for each in differences:
        lines.append(f"{each.where}: {each.direct} directly, {each.recipe} by the recipe.")
        lines.append(f"    {each.why or 'UNEXPLAINED'}")
    return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One package: the digests of its files by name, the few that are looked into, and what stands around them."""

    wheel: Path
    order: tuple[str, ...]
    files: Mapping[str, str]
    sizes: Mapping[str, int]
    metadata: Mapping[str, bytes]
    modes: frozenset[str]
    times: frozenset[str]
    compression: frozenset[int]
    lock: dict[str, Any]

    @classmethod
    def read(cls, wheel: Path, lock: Path) -> _Side:
        try:
            with ZipFile(wheel) as archive:
                entries = archive.infolist()
                digests = {}
                for entry in entries:
                    with archive.open(entry) as file:
                        digests[entry.filename] = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
                looked_into = [entry.filename for entry in entries if re.search(_LOOKED_INTO, entry.filename)]
                return cls(
                    wheel=wheel,
                    order=tuple(entry.filename for entry in entries),
                    files=digests,
                    sizes={entry.filename: entry.file_size for entry in entries},
                    metadata={name: archive.read(name) for name in looked_into},
                    modes=frozenset(f"{entry.external_attr >> 16:o}" for entry in entries),
                    times=frozenset("{}-{:02}-{:02} {:02}:{:02}:{:02}".format(*each.date_time) for each in entries),
                    compression=frozenset(entry.compress_type for entry in entries),
                    lock=json.loads(lock.read_text()),
                )
        except (OSError, BadZipFile, ValueError) as error:
            raise Finding(
                f"{wheel.name} and its lock file cannot be compared: {error}.", remedy="Make the package anew."
            ) from error


type _Pair = tuple[Any, Any]

_LOOKED_INTO = r"\.dist-info/(WHEEL|RECORD)$"


def _whole(one: _Side, other: _Side) -> dict[str, _Pair]:
    return {
        "name of the wheel": (one.wheel.name, other.wheel.name),
        "order in the archive": _from_the_first_difference(one.order, other.order),
        "times in the archive": (one.times, other.times),
        "modes in the archive": (one.modes, other.modes),
        "compression in the archive": (one.compression, other.compression),
    }


def _from_the_first_difference(x: tuple[str, ...], y: tuple[str, ...]) -> _Pair:
    pairs = enumerate(zip(x, y, strict=False))
    same = next((number for number, (left, right) in pairs if left != right), min(len(x), len(y)))
    return x[same:], y[same:]


def _contents(one: _Side, other: _Side) -> dict[str, _Pair]:
    names = sorted({*one.files, *other.files})
    return {name: tuple(_content(side, name) for side in (one, other)) for name in names}  # type: ignore[misc]


def _content(side: _Side, name: str) -> str | None:
    return f"{side.sizes[name]:,} bytes with SHA-256 {side.files[name]}" if name in side.files else None


def _locks(one: _Side, other: _Side) -> dict[str, _Pair]:
    left, right = dict(_flat(one.lock)), dict(_flat(other.lock))
    return {f"lock file, {key}": (left.get(key), right.get(key)) for key in sorted({*left, *right})}


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _flat(part, f"{key}.{name}" if key else name)
    else:
        yield key, value


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, tuple | frozenset):
        listed = list(value) if isinstance(value, tuple) else sorted(map(str, value))
        return (", ".join(listed[:3]) or "nothing") + (" …" if len(listed) > 3 else "")
    return value if isinstance(value, str) and value else json.dumps(value)


@dataclass(frozen=True, kw_only=True)
class _Known:
    """A difference that pyodide-build makes: where, whether it is just that, and why."""

    where: str
    holds: Callable[[Any, Any, _Side, _Side], bool]
    why: str


def _why(where: str, x: Any, y: Any, one: _Side, other: _Side) -> str | None:
    return next(
        (known.why for known in _KNOWN if re.fullmatch(known.where, where) and known.holds(x, y, one, other)), None
    )


def _only_an_empty_line(_x: Any, _y: Any, one: _Side, other: _Side) -> bool:
    left, right = (_metadata(side, "WHEEL") for side in (one, other))
    return left is not None and right == left + b"\n"


def _true_of_the_same_files(_x: Any, _y: Any, one: _Side, other: _Side) -> bool:
    return set(one.files) == set(other.files) and all(_rows(side) == _wanted_rows(side) for side in (one, other))


def _rows(side: _Side) -> list[list[str]]:
    record = _metadata(side, "RECORD") or b""
    return sorted(csv.reader(io.StringIO(record.decode(errors="replace"))))


def _wanted_rows(side: _Side) -> list[list[str]]:
    def row(name: str) -> list[str]:
        if name.endswith(".dist-info/RECORD"):
            return [name, "", ""]
        digest = base64.urlsafe_b64encode(bytes.fromhex(side.files[name])).rstrip(b"=").decode()
        return [name, f"sha256={digest}", str(side.sizes[name])]

    return sorted(row(name) for name in side.order)


def _metadata(side: _Side, file: str) -> bytes | None:
    return next((content for name, content in side.metadata.items() if name.endswith(f".dist-info/{file}")), None)


def _same_names(x: tuple[str, ...], y: tuple[str, ...], _one: _Side, _other: _Side) -> bool:
    return sorted(x) == sorted(y)


def _digests_of_the_wheels(x: Any, y: Any, one: _Side, other: _Side) -> bool:
    return (x, y) == (sha256_of(one.wheel), sha256_of(other.wheel))


_KNOWN = (
    _Known(
        where=r"[^/]+\.dist-info/WHEEL",
        holds=_only_an_empty_line,
        why="pyodide-build sets the platform with `wheel tags`, which ends the file with an empty line.",
    ),
    _Known(
        where=r"[^/]+\.dist-info/RECORD",
        holds=_true_of_the_same_files,
        why="It lists the same files in the order of `wheel pack`, and the WHEEL that is in that wheel.",
    ),
    _Known(
        where="order in the archive",
        holds=_same_names,
        why="pyodide-build packs with `wheel pack`, which leaves the files right in dist-info for the end.",
    ),
    _Known(
        where="times in the archive",
        holds=lambda x, y, one, other: len(x) == 1,
        why="`pyodide build-recipes --install` packs once more with the time of now, so no two of its wheels are the"
        " same bytes; the direct path has SOURCE_DATE_EPOCH or 1980.",
    ),
    _Known(
        where="modes in the archive",
        holds=lambda x, y, one, other: y == frozenset({"600"}),
        why="`pyodide build-recipes --install` leaves the modes to zipfile, which writes 0600 and no type.",
    ),
    _Known(
        where=r"lock file, info\.platform",
        holds=lambda x, y, one, other: y == f"pyemscripten_{other.lock['info'].get('abi_version')}_wasm32",
        why="pyodide-build writes the platform of the wheels; the direct path has what Pyodide's own lock file says.",
    ),
    _Known(
        where=r"lock file, packages\.[^.]+\.sha256",
        holds=_digests_of_the_wheels,
        why="Each is that of its wheel, and the archives are not the same bytes.",
    ),
)
