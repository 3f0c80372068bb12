"""Deciding what a run does: from what was asked for and where it runs to the plan that all of its jobs follow."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from release.check.model import Where
from release.errors import WrongUsage
from release.libraries import HostLibraries
from release.pins.impact.compare import LLVM_MINUTES, MODULE_MINUTES
from release.pins.load import DEFAULT, load_pins, load_profile
from release.pins.model import PinSet, Profile
from release.plan.derive import derive
from release.plan.model import (
    Cached,
    Handover,
    Handovers,
    LLVMPlan,
    Plan,
    Product,
    Proposal,
    Publication,
    Stage,
)
from release.progress import Progress

SAMPLE = "sample"
"""What is asked for in place of a pin set to send the sample, which takes minutes, through all of a release."""

_STAGES: tuple[Stage, ...] = ("module", "check", "publish")
_RUNNER = "ubuntu-24.04"
_CHECKS: tuple[Where, ...] = ("node", "chromium-worker", "chromium-main")
_STOP_AFTER_MINUTES = 320  # a job has six hours; what is left is for setting up before, and for saving afterwards
_TAGS, _BRANCHES = "refs/tags/", "refs/heads/"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What somebody asked for, and where that runs. An empty text means: whatever is usual.

    ``pins`` is the name of a pin set, or ``sample``. ``triton`` is another Triton for it: a branch, a tag or a commit;
    ``llvm`` the commit of another LLVM, ``pyodide`` the version of another Pyodide. ``ref`` is the full name of a
    branch or a tag, ``commit`` 40 hex digits, ``repository`` OWNER/NAME, ``runner`` a label of runners.
    """

    pins: str = ""
    profile: str = ""
    triton: str = ""
    llvm: str = ""
    pyodide: str = ""
    dry_run: bool | None = None
    ref: str
    commit: str
    repository: str
    runner: str = ""

    @classmethod
    def of_environment(cls) -> Self:
        """Read it from the variables of a step; GitHub sets those that say where it runs."""
        asked = {name: os.environ.get(name.upper(), "") for name in ("pins", "profile", "triton", "llvm", "pyodide")}
        return cls(
            **asked,
            dry_run=_flag(os.environ.get("DRY_RUN", "")),
            ref=os.environ.get("GITHUB_REF", f"{_BRANCHES}main"),
            commit=os.environ.get("GITHUB_SHA", "0" * 40),
            repository=os.environ.get("GITHUB_REPOSITORY", "owner/name"),
            runner=os.environ.get("RUNNER", ""),
        )


def make_plan(asked: Asked, *, cache: Path, progress: Progress) -> Plan:
    """Decide what a run does.

    Sources and tools are provided, for the key of LLVM is a digest of both. Raises WrongUsage for what cannot be asked
    for, and what providing the sources and the tools raises. A proposal that is blocked has no stages to run.
    """
    name = asked.pins or _of_tag(asked.ref) or DEFAULT
    product: Product = "sample" if name == SAMPLE else "triton"
    base = DEFAULT if product == "sample" else name
    pins, minutes = load_pins(base), LLVM_MINUTES + MODULE_MINUTES
    proposal: Proposal | None = None
    if asked.triton or asked.llvm or asked.pyodide:
        derived = derive(
            base, triton=asked.triton, llvm=asked.llvm, pyodide=asked.pyodide, cache=cache, progress=progress
        )
        pins, proposal, minutes = derived.pins, derived.proposal, derived.minutes
    profile = load_profile(asked.profile or pins.profiles[0], pins)
    blocked = proposal is not None and proposal.blocked
    llvm = None
    if product == "triton" and not blocked:  # its sources take minutes to fetch
        llvm = _llvm(pins, profile, cache=cache, progress=progress)
    return Plan(
        product=product,
        pins=pins,
        profile=profile,
        stages=() if blocked else ("llvm", *_STAGES) if llvm else _STAGES,
        llvm=llvm,
        checks=_CHECKS,
        runner=asked.runner or _RUNNER,
        handovers=_handovers(llvm),
        publication=_publication(asked),
        proposal=proposal,
        minutes=minutes if product == "triton" else 1,
    )


def _of_tag(ref: str) -> str:
    """Return the pin set that a tag names behind its plus: ``v1.2.0+triton-3.7``."""
    return ref.removeprefix(_TAGS).partition("+")[2] if ref.startswith(_TAGS) else ""


def _llvm(pins: PinSet, profile: Profile, *, cache: Path, progress: Progress) -> LLVMPlan:
    from release.sources import provide_sources
    from release.toolchain import prepare

    sources = provide_sources(pins, cache=cache, progress=progress)
    host = HostLibraries(pins, profile.llvm, sources, cache=cache, progress=progress)
    key, path = host.key(prepare(pins, cache=cache, allow_mismatch=False, progress=progress, bind=host.visible))
    run = f"{os.environ.get('GITHUB_RUN_ID', '0')}-{os.environ.get('GITHUB_RUN_ATTEMPT', '1')}"
    prefix = f"llvm-objects-{profile.llvm}-{pins.emscripten.version}-"
    return LLVMPlan(
        key=key,
        kept=Cached(key=f"llvm-{key}", prefix=f"llvm-{key}", path=_home(path)),
        compiler=Cached(key=f"{prefix}{key[:12]}-{run}", prefix=prefix, path=_home(cache / "ccache")),
        stop_after=_STOP_AFTER_MINUTES,
    )


def _home(path: Path) -> str:
    """Name a folder as it is on every machine with the same layout, whoever's home it is in."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _handovers(llvm: LLVMPlan | None) -> Handovers:
    return Handovers(
        # Where the store has its entry, which is then taken as if it had been built there.
        llvm=Handover(name="llvm", path=llvm.kept.path) if llvm else None,
        package=Handover(name="package", path="out/package"),
        tests=Handover(name="tests-", path="out/tests"),
        release=Handover(name="release", path="out/release"),
        published=Handover(name="published", path="out/published"),
    )


def _publication(asked: Asked) -> Publication:
    tagged = asked.ref.startswith(_TAGS)
    dry_run = not tagged if asked.dry_run is None else asked.dry_run
    if not dry_run and not tagged:
        raise WrongUsage(
            f"A release is published of a tag, and {asked.ref} is none.",
            remedy="Push a tag that begins with v, or run the workflow on one; or leave dry-run as it is.",
        )
    branch = re.sub(r"[^A-Za-z0-9._-]", "-", asked.ref.removeprefix(_BRANCHES))
    return Publication(
        tag=asked.ref.removeprefix(_TAGS) if tagged else f"v0.0.0-{branch}",
        ref=asked.ref,
        commit=asked.commit,
        repository=asked.repository,
        dry_run=dry_run,
        environment="dry-run" if dry_run else "release",
    )


def _flag(text: str) -> bool | None:
    if text not in ("", "true", "false"):
        raise WrongUsage(f"DRY_RUN is {text!r}.", remedy="Set it to true or false, or leave it out.")
    return None if text == "" else text == "true"
