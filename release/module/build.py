"""From C++ to a linked side module: compile, archive, link, and look whether the link kept anything."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pybind11

from release.errors import Finding
from release.module.sample import Sample
from release.pins.model import Profile
from release.process import Completed
from release.progress import Steps
from release.toolchain.exhausted import exhausted
from release.toolchain.model import Toolchain

_LONGEST_ERROR = 300

FIXED_ADDRESSES = ("setarch", "--addr-no-randomize")
"""Put before the link where the machine allows it: see ``fixed_addresses``."""

STEPS = 2
"""Steps that ``build_sample`` counts besides one for each source file."""


def build_sample(
    sample: Sample, sources: Path, profile: Profile, toolchain: Toolchain, *, output: Path, objects: Path, steps: Steps
) -> None:
    """Compile ``sample`` below ``sources`` into ``objects`` and link it to ``output``.

    Raises Finding when the compiler or the linker refuses, BrokenEnvironment when the disk is full.
    """
    archive = objects / f"lib{sample.name}.a"
    members = [compile_cxx(name, sources, profile, toolchain, objects, steps) for name in sample.archive]
    own = [compile_cxx(name, sources, profile, toolchain, objects, steps) for name in sample.objects]
    steps.begin(f"archive {archive.name}")
    succeed(toolchain.run(["emar", "crs", archive, *members]), f"archive {archive.name}", objects)
    fixed = fixed_addresses(toolchain)
    steps.begin(f"link {output.name}{'' if fixed else ' (not reproducible: addresses cannot be fixed here)'}")
    link([*(path.name for path in own), archive.name], objects, sample.init, profile, toolchain, output)


def compile_cxx(
    source: str, sources: Path, profile: Profile, toolchain: Toolchain, objects: Path, steps: Steps
) -> Path:
    """Compile one C++17 file, named below ``sources``, against the target's Python and pybind11; return the object."""
    steps.begin(f"compile {Path(source).name}")
    target = objects / f"{Path(source).stem}.o"
    command: list[str | Path] = [
        "em++",
        "-std=c++17",
        *profile.compile.flags,
        # No path of this machine may reach the module: assert() and __FILE__ print what is mapped here.
        f"-ffile-prefix-map={toolchain.python_include}=python",
        f"-ffile-prefix-map={pybind11.get_include()}=pybind11",
        f"-isystem{toolchain.python_include}",
        f"-isystem{pybind11.get_include()}",
        "-c",
        source,
        "-o",
        target,
    ]
    # A relative name, because the optimiser orders by it what the module is made of: the path of a checkout would show.
    succeed(toolchain.run(command, cwd=sources), f"compile {Path(source).name}", objects)
    return target


def link(names: Sequence[str], folder: Path, init: str, profile: Profile, toolchain: Toolchain, output: Path) -> None:
    """Link objects and archives, named below ``folder``, to a side module that exports just ``init`` (``PyInit_…``).

    With no export list everything is collected and em++ still exits with 0, so the list is this function's business
    and not the profile's; the audit looks at what came out.
    """
    # Relative names, because the length of a path moves everything that the linker allocates after it.
    written = os.path.relpath(output, folder)
    command = [*fixed_addresses(toolchain), *link_command(names, init, profile, written)]
    succeed(toolchain.run(command, cwd=folder), f"link {output.name}", output.parent)
    if not output.is_file():
        raise Finding(
            f"em++ ended well but wrote no {output.name}.", remedy="Run again with --debug and read its output."
        )


def link_command(names: Sequence[str], init: str, profile: Profile, output: str) -> list[str]:
    """Return the em++ that ``link`` runs."""
    return ["em++", *profile.link.flags, f"-sEXPORTED_FUNCTIONS=_{init}", *names, "-o", output]


def fixed_addresses(toolchain: Toolchain) -> tuple[str, ...]:
    """Return the prefix that starts a program at the same addresses each time, or nothing where that is not allowed.

    LLVM 21 mends mismatched unwind destinations of WebAssembly in the order of addresses: the same objects came out as
    one of two modules that differ in a `try … delegate`, as the kernel placed the heap. Containers may forbid the
    system call.
    """
    return FIXED_ADDRESSES if toolchain.run([*FIXED_ADDRESSES, "true"]).returncode == 0 else ()


def succeed(completed: Completed, task: str, folder: Path) -> None:
    """Raise what a tool that wrote into ``folder`` has failed with, if it has."""
    if completed.returncode == 0:
        return
    more = "Give the machine more memory or swap, or take a profile that needs less; then run the same command."
    if problem := exhausted(completed, task, folder, remedy=more):
        raise problem
    lines = completed.tail.splitlines() or [""]
    errors = [line for line in completed.output.splitlines() if "error:" in line] or lines[-1:]
    # em++ repeats the whole command when a tool of its own fails; that tool's own words say more.
    first = next((line for line in errors if "em++: error" not in line), errors[0]).strip()[:_LONGEST_ERROR]
    raise Finding(
        f"Cannot {task}: {completed.explain()}{first and f': {first}'}", remedy="Mend the source, or run with --debug."
    )
