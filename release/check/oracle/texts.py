"""Texts by kernel, target and stage: made by an oracle, gathered from a check, read, and made comparable."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from release.artifacts import replacing_folder
from release.check.kernels import MODULES
from release.check.kernels.contract import CONTRACT, OUTPUT
from release.check.kernels.programs import kernels_program
from release.check.model import Loader
from release.errors import WrongUsage
from release.process import Completed
from release.progress import Progress

STAGES = ("ttir", "ttgir", "llir", "ptx", "amdgcn")

TEXTS = "texts"
"""The folder in which a check gathers what its cases wrote."""

type Kind = Literal["native", "wheel"]

# A path is known by its end. Whatever is before that is the place where a program or Triton happened to be.
_PATHS = (
    (re.compile(r"(?<![\w/])/[^\s\"':]*?/(?=release/check/kernels/|supplied_kernel\.py)"), "/case/"),
    (re.compile(r"(?<![\w/])/[^\s\"':]*?/(?=triton/(?:language|experimental|runtime)\b)"), "/site-packages/"),
)
_LOCATIONS = {
    "ttir": re.compile(r"^#loc.*\n| loc\((?:[^()]|\([^()]*\))*\)", re.MULTILINE),
    "llir": re.compile(r"^!\d+ = (?:distinct )?!DI.*\n|, !dbg !\d+", re.MULTILINE),
    "ptx": re.compile(
        r"^\s*\.(?:loc|file)\s.*\n|^\$L__tmp\d+:\n|^\s*\.section\s+\.debug_\w+\s*\{[^}]*\}\n?", re.MULTILINE
    ),
    "amdgcn": re.compile(
        r"^\s*\.(?:loc|file|cfi_\w+)\s.*\n|^\.Ltmp\d+:.*\n|^\s*\.section\s+\.debug_(?:.*\n)(?:(?!\s*\.section|\s*\.text).*\n)*",
        re.MULTILINE,
    ),
}
_LOCATIONS["ttgir"] = _LOCATIONS["ttir"]


class Key(NamedTuple):
    """Which text: ``matmul``, ``cuda-80-32``, ``ptx``."""

    kernel: str
    target: str
    stage: str

    def __str__(self) -> str:
        return "/".join(self)


class Oracle(Protocol):
    """A Triton of this machine."""

    @property
    def kind(self) -> Kind:
        """Say of which kind it is."""

    @property
    def what(self) -> str:
        """Say which it is."""

    def run(self, name: str, program: str, out: Path, progress: Progress) -> Completed:
        """Run the text of a program, to be in a file called ``name``; its argument is ``out``."""


def compile_texts(
    oracle: Oracle, out: Path, *, programs: Mapping[str, str] | None = None, progress: Progress
) -> tuple[str, ...]:
    """Let ``oracle`` compile all kernels, and replace the folder ``out`` by their texts; say what did not compile.

    ``programs`` gives other programs by their file names. A kernel that fails leaves no text, and the others go on.
    """
    programs = programs or {f"{module}.py": kernels_program(module) for module in MODULES}
    faults = []
    with replacing_folder(out) as temporary, progress.steps("oracle", len(programs)) as steps:
        for name, program in programs.items():
            steps.begin(f"compile {name.removesuffix('.py')}")
            completed = oracle.run(name, program, temporary, progress)
            if completed.returncode != 0:
                last = (completed.tail.splitlines() or [completed.explain()])[-1]
                faults.append(f"{name.removesuffix('.py')}: {last[:300]}")
    return tuple(faults)


def gather(keep: Path, loader: Loader, into: Path) -> None:
    """Bring what the cases of a check wrote together in one folder; ``keep`` is that of the check.

    Raises WrongUsage when there is nothing.
    """
    if not (folders := sorted((keep / loader).glob("*/files"))):
        raise WrongUsage(f"{keep} holds no files of cases loaded as {loader}.", remedy="Run `triton-wasm check` first.")
    with replacing_folder(into) as temporary:
        for folder in folders:
            shutil.copytree(folder, temporary, dirs_exist_ok=True)


def read_texts(folder: Path) -> dict[Key, str]:
    """Read ``KERNEL/TARGET/STAGE``, and what a supplied kernel gave; in the order of kernels, targets, then stages.

    Raises WrongUsage when there are none.
    """
    paths = {Key(*path.parts[-3:]): path for path in folder.glob("*/*/*") if path.name in STAGES}
    supplied = CONTRACT.target.replace(":", "-")
    paths |= {Key(OUTPUT, supplied, path.suffix[1:]): path for path in folder.glob(f"{OUTPUT}.*")}
    if not paths:
        raise WrongUsage(
            f"{folder} holds no KERNEL/TARGET/STAGE.", remedy="Give the folder that texts were written to."
        )
    # Not read_text, which takes one kind of line end for another.
    return {key: paths[key].read_bytes().decode(errors="backslashreplace") for key in sorted(paths, key=_order)}


def without_places(text: str) -> str:
    """Return ``text`` with the places of programs and of Triton's Python replaced by fixed ones."""
    for pattern, place in _PATHS:
        text = pattern.sub(place, text)
    return text


def without_locations(text: str, stage: str) -> str:
    """Return ``text`` without what says which line of which source something came from."""
    return _LOCATIONS[stage].sub("", without_places(text))


def _order(key: Key) -> tuple[str, str, int]:
    return key.kernel, key.target, STAGES.index(key.stage)
