"""Writing a pin set with other sources into its file: all the rest of the text stays as it is, comments among it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import tomlkit
from pydantic import ValidationError
from tomlkit.items import AoT, Table

from release.errors import Finding, WrongUsage
from release.pins.model import PinSet, PyodidePin

_STANDS_FOR = ("release", "stands_for", "reason")


def updated(
    path: Path,
    *,
    triton: str | None = None,
    llvm: Mapping[str, str] | None = None,
    stands_for: Mapping[str, str] | None = None,
    pyodide: PyodidePin | None = None,
    emscripten: str | None = None,
) -> str:
    """Return the text of the pin set in ``path`` with other sources.

    ``triton`` is a commit, ``llvm`` has commits by the names of the LLVMs that change: one that was a release, or stood
    for another, is that commit from now on, and stands for the one that ``stands_for`` has by its name. Raises
    WrongUsage for a file that is no TOML, Finding for sources that make no pin set of it.
    """
    try:
        document = tomlkit.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WrongUsage(f"{path} is no TOML file ({type(error).__name__}).", remedy="Name a pin set.") from error
    if triton:
        _table(document, "triton")["commit"] = triton
    for name, commit in (llvm or {}).items():
        _move(_llvm(document, name), commit, (stands_for or {}).get(name))
    if pyodide:
        table = _table(document, "pyodide")
        for key, value in pyodide.model_dump().items():
            table[key] = value
    if emscripten:
        _table(document, "emscripten")["version"] = emscripten
    text = tomlkit.dumps(document)
    try:
        PinSet.model_validate(tomllib.loads(text))
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the whole"
        raise Finding(
            f"With these sources {path.name} is no pin set, at {where}: {error.errors()[0]['msg']}.",
            remedy="Write it by hand; docs/pins.md says what each key means.",
        ) from error
    return text


def _move(table: Table, commit: str, stands_for: str | None) -> None:
    for key in _STANDS_FOR:
        if key in table:
            del table[key]
    table["commit"] = commit
    if stands_for:
        table["stands_for"] = stands_for
        table["reason"] = "It was asked for in place of the one that Triton names."


def _llvm(document: tomlkit.TOMLDocument, name: str) -> Table:
    entries = document.get("llvm")
    for table in entries if isinstance(entries, AoT) else ():
        if isinstance(table, Table) and table.get("name") == name:
            return table
    raise Finding(f"The pin set has no LLVM called {name}.", remedy="Write its entry by hand; docs/pins.md says how.")


def _table(document: tomlkit.TOMLDocument, name: str) -> Table:
    table = document.get(name)
    if not isinstance(table, Table):
        raise Finding(f"The pin set has no table [{name}].", remedy="Write it by hand; docs/pins.md says how.")
    return table
