"""The sample: a compiler small enough to build in seconds, through every step that Triton goes through."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from release.places import CHECKOUT
from release.toml import parse_toml

SAMPLE = CHECKOUT / "samples" / "exprc"


class Sample(BaseModel):
    """What ``sample.toml`` says; ``size_floor`` and ``size_budget`` bound the raw module, in bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    version: str
    summary: str
    license: str
    extension: Annotated[str, Field(pattern=r"^\w+(\.\w+)*$")]
    archive: tuple[str, ...] = Field(min_length=1, strict=False)
    objects: tuple[str, ...] = Field(min_length=1, strict=False)
    imports: tuple[str, ...] = Field(min_length=1, strict=False)
    size_floor: int
    size_budget: int

    @property
    def init(self) -> str:
        """The symbol through which Python starts the extension."""
        return "PyInit_" + self.extension.rsplit(".", 1)[-1]


def load_sample(folder: Path = SAMPLE) -> Sample:
    """Read ``sample.toml`` in ``folder``. Raises WrongUsage with the line of a mistake."""
    return parse_toml(folder / "sample.toml", Sample, help_page="samples/exprc/README.md")
