"""Reading the list of cases of a package: ``cases.toml`` and the programs beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from release.check.model import Case
from release.errors import WrongUsage
from release.toml import line_of, parse_toml

LIST = "cases.toml"
_HELP = "docs/check.md"


class _Case(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    # The name becomes a folder, the program a file in /case.
    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]*$")]
    program: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\.py$")]
    limit_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Cases(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    case: tuple[_Case, ...] = Field(min_length=1, strict=False)


def load_cases(folder: Path) -> tuple[Case, ...]:
    """Read ``cases.toml`` in ``folder``; the order is that of the file.

    Raises WrongUsage, with the line, for what the format does not allow, a name used twice and a missing program.
    """
    path = folder / LIST
    entries = parse_toml(path, _Cases, help_page=_HELP).case
    names: set[str] = set()
    for index, entry in enumerate(entries):
        if entry.name in names:
            line = line_of(path.read_text(encoding="utf-8"), ("case", index, "name"))
            raise WrongUsage(f"{path}:{line}: there is a case {entry.name!r} above.", remedy="Give it another name.")
        names.add(entry.name)
        if not (folder / entry.program).is_file():
            line = line_of(path.read_text(encoding="utf-8"), ("case", index, "program"))
            raise WrongUsage(
                f"{path}:{line}: there is no file {entry.program!r} in {folder}.",
                remedy="Write that program, or correct its name.",
            )
    return tuple(
        Case(name=entry.name, program=folder / entry.program, limit_seconds=entry.limit_seconds) for entry in entries
    )
