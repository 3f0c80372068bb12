"""What a plan says. Jobs take every name, key, version and path from it, and their YAML holds none."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from release.check.model import Where
from release.errors import WrongUsage
from release.pins.model import PinSet, Profile

VARIABLE = "PLAN"
"""The environment variable that carries a plan into a step."""

type Product = Literal["triton", "sample"]
type Stage = Literal["llvm", "module", "check", "publish"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Handover(_Part):
    """What one job leaves for another: an artifact's name, and the folder it is in, below the workspace."""

    name: str
    path: str


class Cached(_Part):
    """What is kept from run to run: the exact key, the beginning of keys that will do as well, and the folder."""

    key: str
    prefix: str
    path: str


class LLVMPlan(_Part):
    """The host libraries: ``key`` is a digest of all that changes their bits; what is kept of them, and of a compiler.

    After ``stop_after`` minutes a build stops by itself, in time for what it has done to be saved.
    """

    key: str
    kept: Cached
    compiler: Cached
    stop_after: int


class Handovers(_Part):
    """Everything that goes from job to job; of ``tests`` there is one for each check, its name with that behind it."""

    llvm: Handover | None
    package: Handover
    tests: Handover
    release: Handover
    published: Handover


class Publication(_Part):
    """Where a release goes: with ``dry_run`` into a folder. ``environment`` is the one of GitHub that guards it.

    ``ref`` is the full name of the branch or tag that is built, and that the signature has to name.
    """

    tag: str
    ref: str
    commit: str
    repository: str
    dry_run: bool
    environment: str


class Proposal(_Part):
    """A change to a pin set: the file as it would be, the branch, and what the trees say it would mean (Markdown).

    ``blocked`` says in a sentence why it cannot be built as it is; empty where nothing is known to be in the way.
    """

    file: str
    text: str
    branch: str
    title: str
    impact: str
    blocked: str


class Plan(_Part):
    """The whole of it. ``stages`` are those that have to run; ``minutes`` is what they take on two cores."""

    schema_version: Literal[1] = 1
    product: Product
    pins: PinSet
    profile: Profile
    stages: tuple[Stage, ...]
    llvm: LLVMPlan | None
    checks: tuple[Where, ...]
    runner: str
    handovers: Handovers
    publication: Publication
    proposal: Proposal | None
    minutes: int

    @classmethod
    def of_environment(cls) -> Plan:
        """Read the plan that this step was given. Raises WrongUsage where there is none, or another toolkit's."""
        text = os.environ.get(VARIABLE, "")
        if not text:
            raise WrongUsage(
                f"There is no plan: {VARIABLE} is not set.",
                remedy=f"Give the step `{VARIABLE}`, the output of the job that runs scripts/plan.py.",
            )
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"])) or "the whole"
            raise WrongUsage(
                f"{VARIABLE} is no plan of this toolkit, at {where}: {error.errors()[0]['msg']}.",
                remedy="Run all jobs of a run with the same commit of the toolkit.",
            ) from error

    def check(self, where: str) -> Where:
        """Return the planned check called ``where``. Raises WrongUsage where there is none."""
        for planned in self.checks:
            if planned == where:
                return planned
        raise WrongUsage(f"No check in {where!r} is planned.", remedy=f"Choose one of: {', '.join(self.checks)}.")

    def describe(self) -> str:
        """Return the plan as Markdown, for the summary of a run."""
        pins = self.pins
        rows = [
            ("pin set", f"`{pins.name}`, profile `{self.profile.name}`, {self.product}"),
            ("Triton", f"`{pins.triton.commit[:12]}`"),
            ("LLVM", ", ".join(f"{pin.name} {pin.what[:20]}" for pin in pins.llvm)),
            ("Pyodide", f"{pins.pyodide.version}, Emscripten {pins.emscripten.version}"),
            ("stages", " → ".join(self.stages)),
            ("LLVM's key", f"`{self.llvm.key}`" if self.llvm else "none needed"),
            ("checks", ", ".join(self.checks)),
            ("release", f"`{self.publication.tag}`, {'into a folder' if self.publication.dry_run else 'published'}"),
            ("time", f"about {self.minutes} minutes on two cores from nothing"),
        ]
        table = [f"| {name} | {text} |" for name, text in rows]
        parts = ["### Plan", "", "| | |", "| --- | --- |", *table]
        if self.proposal:
            parts += ["", f"### What {self.proposal.title} would mean", "", self.proposal.impact]
        return "\n".join(parts)
