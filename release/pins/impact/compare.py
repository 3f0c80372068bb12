"""Two trees compared, with a pin set in between: what is reused, what changes, what has to be done first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from release.errors import Finding
from release.pins.impact.facts import TreeFacts, missing_names
from release.pins.model import FixupPin, PinSet
from release.pins.upstream import MAIN, UpstreamLLVM

# What a build takes on two cores, docs/results/README.md.
LLVM_MINUTES, MODULE_MINUTES = 61, 60

# What our overlay sets and the layer expects; a tree that knows one no longer has changed its meaning.
_OVERLAY = ("TRITON_BUILD_PYTHON_MODULE", "TRITON_BUILD_PROTON", "TRITON_BUILD_UT", "TRITON_BUILD_WITH_CCACHE")
_BINDINGS = "pybind11"


class Severity(IntEnum):
    """What a line means: nothing; that a build shows; that something is to be done before; that there can be none."""

    SAME = 0
    CHANGE = 1
    WORK = 2
    STOP = 3


_VERDICTS = {
    Severity.SAME: "nothing that a build depends on has changed",
    Severity.CHANGE: "worth a build",
    Severity.WORK: "needs work before it is built",
    Severity.STOP: "cannot be built",
}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One thing that was compared."""

    topic: str
    severity: Severity
    text: str


@dataclass(frozen=True, kw_only=True)
class Impact:
    """The comparison; ``minutes`` is what a build would take on two cores, with what is reused left out."""

    lines: tuple[Line, ...]
    minutes: int

    @property
    def severity(self) -> Severity:
        """The worst that was found."""
        return max((line.severity for line in self.lines), default=Severity.SAME)

    @property
    def verdict(self) -> str:
        """What the worst means."""
        return _VERDICTS[self.severity]


def impact(
    old: TreeFacts,
    new: TreeFacts,
    pins: PinSet,
    *,
    known_bad: Mapping[str, str],
    check_fixups: Callable[[list[FixupPin], Path], object],
    layer: Path,
    llvm: str = "",
) -> Impact:
    """Compare the tree that ``pins`` are for with another one.

    ``llvm`` is a commit that somebody wants in place of the LLVM that the other tree asks for. ``known_bad`` has a
    reason for each LLVM commit that must not be built; ``check_fixups`` raises Finding for a fix-up that does not fit a
    tree. ``layer`` holds the Python files whose imports from Triton must be there.
    """
    reused = (llvm or _main(new).commit) in _built(pins, llvm)
    lines = [
        *_versions(old, new),
        *_llvm(old, new, pins, known_bad, llvm),
        *_bindings(old, new),
        *_cmake(old, new),
        *_python(new, layer),
        *_data(old, new),
        *(line for fixup in pins.fixups if fixup.source == "triton" for line in _fixup(fixup, new, check_fixups)),
    ]
    return Impact(lines=tuple(lines), minutes=MODULE_MINUTES + (0 if reused else LLVM_MINUTES))


def describe(report: Impact) -> str:
    """Return the comparison as Markdown."""
    marks = {Severity.SAME: "", Severity.CHANGE: "", Severity.WORK: "**work** ", Severity.STOP: "**stop** "}
    rows = [f"| {line.topic} | {marks[line.severity]}{line.text.replace('|', '/')} |" for line in report.lines]
    head = f"**{report.verdict}**, about {report.minutes} minutes on two cores"
    return "\n".join([head, "", "| what | |", "| --- | --- |", *rows])


def _versions(old: TreeFacts, new: TreeFacts) -> Iterator[Line]:
    changed = old.tree.version != new.tree.version
    text = f"{old.tree.version} → {new.tree.version}" if changed else f"{new.tree.version}, as before"
    yield Line(topic="Triton", severity=Severity.CHANGE if changed else Severity.SAME, text=text)


def _llvm(old: TreeFacts, new: TreeFacts, pins: PinSet, known_bad: Mapping[str, str], asked: str) -> Iterator[Line]:
    before, after = {pin.name: pin for pin in old.tree.llvm}, {pin.name: pin for pin in new.tree.llvm}
    for name in sorted(after.keys() | before.keys(), key=[*after, *before].index):
        topic = "LLVM" if name == MAIN else f"LLVM {name}"
        if name not in after:
            yield Line(topic=topic, severity=Severity.CHANGE, text="Triton no longer has it")
            continue
        pin = after[name]
        commit = asked if asked and name == MAIN else pin.commit
        if reason := known_bad.get(commit):
            yield Line(topic=topic, severity=Severity.STOP, text=f"{commit[:12]} is known to be bad: {reason}")
        if name not in before:
            text = f"{pin.commit[:12]}, a second LLVM ({pin.file}), which the module stage cannot build yet"
            yield Line(topic=topic, severity=Severity.WORK, text=text)
        elif name == MAIN and commit in _built(pins, asked):
            yield Line(topic=topic, severity=Severity.SAME, text=f"{commit[:12]}, which the pin set builds: reused")
        else:
            place = f" in place of the {pin.commit[:12]} that Triton asks for" if commit != pin.commit else ""
            text = f"{before[name].commit[:12]} → {commit[:12]}{place}: another build, and the pin set has to name it"
            yield Line(topic=topic, severity=Severity.CHANGE, text=text)
        if name in before and before[name].file != pin.file:
            yield Line(topic=topic, severity=Severity.SAME, text=f"named by {pin.file}, before by {before[name].file}")


def _bindings(old: TreeFacts, new: TreeFacts) -> Iterator[Line]:
    if new.tree.bindings != _BINDINGS:
        text = f"{new.tree.bindings}, for which the module stage has no build yet"
        yield Line(topic="bindings", severity=Severity.WORK, text=text)
    else:
        changed = old.tree.bindings != new.tree.bindings
        severity = Severity.CHANGE if changed else Severity.SAME
        yield Line(topic="bindings", severity=severity, text=new.tree.bindings)


def _cmake(old: TreeFacts, new: TreeFacts) -> Iterator[Line]:
    if lost := [name for name in _OVERLAY if name in old.options and name not in new.options]:
        text = f"{', '.join(lost)} no longer there, and the overlay sets it"
        yield Line(topic="CMake options", severity=Severity.WORK, text=text)
    pairs = (("CMake options", old.options, new.options), ("CMake targets", old.libraries, new.libraries))
    for topic, before, after in pairs:
        added, gone = sorted(after - before), sorted(before - after)
        if added or gone:
            parts = [*(f"new {name}" for name in added), *(f"no {name}" for name in gone)]
            yield Line(topic=topic, severity=Severity.CHANGE, text=", ".join(parts))


def _python(new: TreeFacts, layer: Path) -> Iterator[Line]:
    if missing := missing_names(new.tree.path, layer):
        text = f"{', '.join(missing)} not there, and the compile-only layer imports it"
        yield Line(topic="Python", severity=Severity.WORK, text=text)
    else:
        yield Line(topic="Python", severity=Severity.SAME, text="all that the compile-only layer imports is there")


def _data(old: TreeFacts, new: TreeFacts) -> Iterator[Line]:
    for path in sorted(old.bitcode.keys() | new.bitcode.keys()):
        name = path.rpartition("/")[2]
        if path not in new.bitcode:
            yield Line(topic="device libraries", severity=Severity.WORK, text=f"{name} is gone from {path}")
        elif path not in old.bitcode:
            yield Line(
                topic="device libraries", severity=Severity.WORK, text=f"{name} is new; whose it is has to be said"
            )
        elif old.bitcode[path] != new.bitcode[path]:
            yield Line(topic="device libraries", severity=Severity.CHANGE, text=f"{name} has other bytes")
    for name in sorted(old.tools.keys() | new.tools.keys()):
        if (before := old.tools.get(name)) != (after := new.tools.get(name)):
            text = f"{name} {before or 'not there'} → {after or 'not there'}"
            yield Line(topic="NVIDIA's tools", severity=Severity.CHANGE, text=text)
    if old.ptx != new.ptx:
        yield Line(topic="PTX", severity=Severity.CHANGE, text=f"at most {_ptx(old.ptx)} → {_ptx(new.ptx)}")


def _fixup(fixup: FixupPin, new: TreeFacts, check_fixups: Callable[[list[FixupPin], Path], object]) -> Iterator[Line]:
    try:
        check_fixups([fixup], new.tree.path)
    except Finding as finding:
        text = f"{fixup.name}: {finding}"
        yield Line(topic="fix-up", severity=Severity.WORK, text=text)


def _main(facts: TreeFacts) -> UpstreamLLVM:
    return next(pin for pin in facts.tree.llvm if pin.name == MAIN)


def _built(pins: PinSet, asked: str) -> set[str | None]:
    """Name the commits for which the pin set has a build; who asks for one by itself wants that and no other for it."""
    return {
        commit for pin in pins.llvm if pin.name == MAIN for commit in (pin.commit, None if asked else pin.stands_for)
    }


def _ptx(version: int | None) -> str:
    return f"{version // 10}.{version % 10}" if version else "not said"
