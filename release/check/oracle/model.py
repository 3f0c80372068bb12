"""``oracle.json``: every text that was compared, and what the assemblers said of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal["identical", "differs", "missing", "extra"]
"""``missing`` is a text that only the oracle made, ``extra`` one that only the module made."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Difference(_Record):
    """The first line that differs, by its number from 1, and what is around it in both texts."""

    line: Annotated[int, Field(ge=1)]
    ours: tuple[str, ...]
    native: tuple[str, ...]


class TextReport(_Record):
    """One text. ``ignored`` is what had to be taken out of both texts; ``reason`` explains an accepted difference."""

    kernel: str
    target: str
    stage: str
    status: Status
    ignored: Literal["nothing", "paths", "locations"]
    cause: str | None = None
    difference: Difference | None = None
    reason: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the text is as it should be, or a difference has its explanation."""
        return self.status == "identical" or self.reason is not None


class Assembled(_Record):
    """Whether the assembler of a target takes a text; ``message`` is what it complained of first."""

    kernel: str
    target: str
    stage: str
    assembler: str
    passed: bool
    message: str


class OracleReport(_Record):
    """The comparison with one oracle; ``weak`` is said of one that is of other sources or another LLVM.

    ``faults`` is what the oracle itself could not compile, ``stale`` names accepted differences that are none any more.
    """

    schema_version: Literal[1] = 1
    passed: bool
    oracle: str
    weak: bool
    texts: tuple[TextReport, ...]
    faults: tuple[str, ...]
    stale: tuple[str, ...]
    assembled: tuple[Assembled, ...]
