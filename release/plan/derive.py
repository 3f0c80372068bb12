"""A pin set with other sources in it, and what that would mean: read from the trees before anything is built."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from release.errors import WrongUsage
from release.package.layer import PYTHON
from release.pins.impact import Impact, Severity, impact, read_facts
from release.pins.impact.compare import describe
from release.pins.load import PINS, load_known_bad, load_pins
from release.pins.model import LLVMPin, PinSet
from release.pins.upstream import MAIN, TritonTree
from release.pins.write import updated
from release.plan.model import Proposal
from release.progress import Progress
from release.sources import other_triton, pinned_triton
from release.toolchain.fixups import check_fixups
from release.toolchain.pyodide import find_pyodide

_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, kw_only=True)
class Derived:
    """The pin set as it would be, how it is proposed, and what building it takes on two cores, in minutes."""

    pins: PinSet
    proposal: Proposal
    minutes: int


def derive(name: str, *, triton: str, llvm: str, pyodide: str, cache: Path, progress: Progress) -> Derived:
    """Put other sources into the pin set ``name``: a Triton (branch, tag or commit), an LLVM (commit), a Pyodide.

    Without ``llvm`` it is the LLVM that Triton asks for, and what the pin set has where that stands for it; with it the
    pin set says which one it stands for. Raises WrongUsage for what is none of these, BrokenEnvironment when they
    cannot be reached.
    """
    pins = load_pins(name)
    old = pinned_triton(pins, cache=cache, progress=progress)
    new = other_triton(pins, triton, cache=cache, progress=progress) if triton else old
    if new.commit is None and triton:
        raise WrongUsage(f"{triton} does not say which commit it is.", remedy="Name a branch, a tag or a commit.")
    facts, now = read_facts(new.path), read_facts(old.path)
    found = find_pyodide(pyodide, pins, cache, progress) if pyodide else None
    llvms, stands_for = _llvms(pins, facts.tree, llvm)
    text = updated(
        PINS / f"{name}.toml",
        triton=new.commit if triton else None,
        llvm=llvms,
        stands_for=stands_for,
        pyodide=found.pin if found else None,
        emscripten=found.emscripten if found else None,
    )
    after = PinSet.model_validate(tomllib.loads(text))
    report = impact(now, facts, pins, known_bad=load_known_bad(), check_fixups=check_fixups, layer=PYTHON, llvm=llvm)
    what = _what(pins, after, triton)
    return Derived(
        pins=after,
        proposal=Proposal(
            file=f"pins/{name}.toml",
            text=text,
            branch=f"pins/{name}-{re.sub(r'[^a-z0-9.]+', '-', what.lower())}",
            title=f"Pin set {name}: {what}",
            impact=describe(report),
            blocked=_blocked(report),
        ),
        minutes=report.minutes,
    )


def _blocked(report: Impact) -> str:
    """Say what has to be done before there can be a build: hours of building would end with just that."""
    if report.severity < Severity.WORK:
        return ""
    first = next(line for line in report.lines if line.severity >= Severity.WORK)
    return f"{report.verdict.capitalize()}. {first.topic}: {first.text}."


def _llvms(pins: PinSet, tree: TritonTree, asked: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the LLVM commits that change, by their names, and those of them that Triton asks for another of."""
    if asked and not _COMMIT.fullmatch(asked):
        raise WrongUsage(f"{asked!r} is no commit of LLVM.", remedy="Give all of its 40 digits.")
    wanted = {upstream.name: upstream.commit for upstream in tree.llvm}
    changes = {pin.name: wanted[pin.name] for pin in pins.llvm if pin.name in wanted and not _is(pin, wanted[pin.name])}
    if not asked:
        return changes, {}
    stands_for = {MAIN: wanted[MAIN]} if asked != wanted[MAIN] else {}
    main = next(pin for pin in pins.llvm if pin.name == MAIN)
    if (main.commit, main.stands_for) == (asked, stands_for.get(MAIN)):
        return {name: commit for name, commit in changes.items() if name != MAIN}, {}
    return {**changes, MAIN: asked}, stands_for


def _is(pin: LLVMPin, commit: str) -> bool:
    return commit in (pin.commit, pin.stands_for)


def _what(before: PinSet, after: PinSet, triton: str) -> str:
    parts = []
    if after.triton != before.triton:
        # The name that was asked for says more than the commit, which says it exactly.
        name = "" if _COMMIT.fullmatch(triton) else f"{triton} "
        parts.append(f"Triton {name}{after.triton.commit[:12]}")
    parts += [f"LLVM {new.what[:12]}" for new, old in zip(after.llvm, before.llvm, strict=True) if new != old]
    if after.pyodide != before.pyodide:
        parts.append(f"Pyodide {after.pyodide.version}")
    return ", ".join(parts) or "as it is"
