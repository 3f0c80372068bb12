"""Every JSON file that a release carries, as models; ``schemas/`` holds the JSON Schema of each.

A reader who has only the files needs no more than this: sizes are bytes, times seconds, digests SHA-256 in hex.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from release.check.model import Where
from release.check.oracle.model import OracleReport
from release.pins.model import PinSet, Profile, Variant

SCHEMAS = Path(__file__).parent / "schemas"

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
BareName = Annotated[str, StringConstraints(pattern=r"^[^/\\\s][^/\\]*$")]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)


class Asset(_Record):
    """A released file."""

    name: BareName
    size: Count
    sha256: Sha256


class AuditRule(_Record):
    """One audit rule and what it found."""

    rule: str
    passed: bool
    detail: str


class VariantSizes(_Record):
    """One rung of the ladder; the sizes are null when there is no such module, and ``failure`` says why."""

    variant: Variant
    chosen: bool
    failure: str | None
    raw: Count | None
    gzip: Count | None
    brotli: Count | None
    zstd: Count | None
    seconds: Seconds
    peak_memory: Count
    audit: tuple[AuditRule, ...]


class SizesReport(_Record):
    """``sizes.json``: what the module weighs in every variant, and every asset."""

    schema_version: Literal[1] = 1
    module: str
    why: str
    variants: tuple[VariantSizes, ...]
    assets: tuple[Asset, ...]


class CaseReport(_Record):
    """One case with one loader."""

    name: str
    loader: Literal["wheel", "zip", "lock"]
    passed: bool
    message: str
    load_seconds: Seconds
    run_seconds: Seconds
    peak_memory: Count


class RunReport(_Record):
    """Every case in one runtime, such as ``Node 24.19.0``; ``package`` is the digest of the wheel that was loaded."""

    package: Sha256
    where: Where
    runtime: str
    pyodide: str
    passed: bool
    seconds: Seconds
    cases: tuple[CaseReport, ...]


class CasesReport(_Record):
    """``tests.json``: every case in every runtime."""

    schema_version: Literal[2] = 2
    passed: bool
    runs: tuple[RunReport, ...]

    @property
    def cases(self) -> tuple[CaseReport, ...]:
        """All cases of all runs."""
        return tuple(case for run in self.runs for case in run.cases)

    @property
    def runtimes(self) -> str:
        """Name the runtimes for people."""
        return " and ".join(run.runtime for run in self.runs)


class ToolchainRecord(_Record):
    """The tools as they said themselves; ``mismatches`` lists the pins that were not met and accepted all the same."""

    provider: Literal["path", "emsdk", "debian"]
    emscripten: str
    emscripten_digest: str
    binaryen: str
    binaryen_digest: str
    node: str
    python_include_digest: str
    mismatches: tuple[str, ...]


class StageRecord(_Record):
    """What a stage cost when its files were made, and the digest of all that went into it."""

    name: str
    key: Sha256
    seconds: Seconds
    peak_memory: Count


class Fixup(_Record):
    """A change to upstream's sources that could not be had by configuration."""

    name: str
    file: str
    reason: str


class SourceRecord(_Record):
    """A tree that was built: its commit where known, and the digest of its files before any fix-up."""

    name: str
    version: str
    commit: str | None
    digest: str
    changed: Count


class Manifest(_Record):
    """``manifest.json``: what was built, from what, with what, and what is in the release.

    ``accepted`` lists the disagreements between pin set and sources that were let pass.
    """

    schema_version: Literal[1] = 1
    name: str
    version: str
    toolkit_version: str
    pins: PinSet
    profile: Profile
    toolchain: ToolchainRecord
    sources: tuple[SourceRecord, ...] = ()
    fixups: tuple[Fixup, ...] = ()
    accepted: tuple[str, ...] = ()
    variant: Variant
    why: str
    ladder: tuple[VariantSizes, ...]
    assets: tuple[Asset, ...]
    stages: tuple[StageRecord, ...]


REPORTS: dict[str, type[BaseModel]] = {
    "manifest": Manifest,
    "sizes": SizesReport,
    "tests": CasesReport,
    "oracle": OracleReport,
}
"""The JSON files of a release, by their name without ``.json``."""


def to_json(record: BaseModel) -> str:
    """Return ``record`` as the text of its file."""
    return record.model_dump_json(indent=2) + "\n"


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a report."""
    schema = REPORTS[name].model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def write_schemas(folder: Path = SCHEMAS) -> None:
    """Write the JSON Schema of every report below ``folder``; run after changing a model."""
    folder.mkdir(exist_ok=True)
    for name in REPORTS:
        (folder / f"{name}.schema.json").write_text(json.dumps(schema_of(name), indent=2) + "\n")


if __name__ == "__main__":
    write_schemas()
