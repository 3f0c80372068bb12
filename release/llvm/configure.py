"""The build tree of LLVM: configured from a profile, kept for as long as what it was configured with is the same."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from release.artifacts import write_atomically
from release.errors import BrokenEnvironment, Finding
from release.llvm.components import closure
from release.llvm.key import LLVMRequest
from release.llvm.machine import low_priority
from release.llvm.tablegen import TableGenerators
from release.process import run
from release.progress import Progress
from release.toolchain.model import Toolchain

PREFIX = Path("/llvm")
"""Where the libraries believe they are installed, on whatever machine; DESTDIR says where they really go."""

_RECORD = "configured.json"
_SOURCE = "source"
_LAUNCHER = "relative.sh"
# Gives the compiler its source file by a relative name: bitcode holds that name, the optimiser orders by it, and CMake
# writes the whole path. $1 is the tree; a build inside it, such as that of table generators, is left alone.
_RELATIVE = """\
tree=$1
shift
if [ "$(pwd -P)" = "$tree" ]; then
    for argument; do
        shift
        case $argument in "$tree"/source/*) argument=${argument#"$tree"/} ;; esac
        set -- "$@" "$argument"
    done
fi
exec "$@"
"""


def configure(
    request: LLVMRequest,
    toolchain: Toolchain,
    tree: Path,
    *,
    generators: TableGenerators,
    link_jobs: int,
    progress: Progress,
) -> None:
    """Configure ``tree`` for just the libraries that Triton needs, unless it is already.

    Raises BrokenEnvironment without CMake or ninja, Finding when CMake refuses.
    """
    arguments = [*_arguments(request, tree), *generators.arguments(), f"-DLLVM_PARALLEL_LINK_JOBS={link_jobs}"]
    state = {"tree": str(tree), "arguments": hashlib.sha256("\0".join(arguments).encode()).hexdigest()}
    known = _known(tree)
    if known == state and (tree / "build.ninja").is_file():
        return
    _require(toolchain, "cmake", "ninja")
    if known.get("tree", state["tree"]) != state["tree"]:
        shutil.rmtree(tree)  # it was moved, and CMake refuses that
    tree.mkdir(parents=True, exist_ok=True)
    _link_source(tree, request.source)
    with progress.steps("llvm", 2) as steps:
        steps.begin("configure")
        _cmake(arguments, toolchain, tree)
        # What a library needs is known when everything is configured: so once more, with the list.
        components = [*closure(tree, request.roots()), *request.profile.extras]
        steps.begin(f"configure {len(components)} components")
        _cmake([*arguments, f"-DLLVM_DISTRIBUTION_COMPONENTS={';'.join(components)}"], toolchain, tree)
    write_atomically(tree / _RECORD, json.dumps(state))


def _arguments(request: LLVMRequest, tree: Path) -> list[str]:
    profile = request.profile
    # No path of this machine may reach the libraries: __FILE__ in a header comes with the whole path, and is mapped.
    flags = " ".join([*profile.compile.flags, f"-ffile-prefix-map={tree}/="])
    optimise = " ".join(profile.compile.optimise)
    launcher = f"sh;{tree / _LAUNCHER};{tree}"
    variables: dict[str, bool | str] = {
        "CMAKE_INSTALL_PREFIX": str(PREFIX),
        "CMAKE_C_FLAGS": flags,
        "CMAKE_CXX_FLAGS": flags,
        "CMAKE_C_FLAGS_RELEASE": optimise,
        "CMAKE_CXX_FLAGS_RELEASE": optimise,
        "LLVM_ENABLE_PROJECTS": ";".join(profile.projects),
        "LLVM_TARGETS_TO_BUILD": ";".join(profile.targets),
        "CMAKE_C_COMPILER_LAUNCHER": launcher,
        "CMAKE_CXX_COMPILER_LAUNCHER": launcher,
        **profile.cmake,
    }
    return ["-G", "Ninja", *(f"-D{name}={_written(value)}" for name, value in variables.items())]


def _written(value: bool | str) -> str:
    return value if isinstance(value, str) else "ON" if value else "OFF"


def _link_source(tree: Path, source: Path) -> None:
    """Show the sources inside the tree, where they have the same relative name on every machine."""
    link = tree / _SOURCE
    if link.is_symlink():
        link.unlink()
    link.symlink_to(source, target_is_directory=True)
    write_atomically(tree / _LAUNCHER, _RELATIVE)


def _known(tree: Path) -> dict[str, str]:
    try:
        return dict(json.loads((tree / _RECORD).read_text()))
    except (OSError, ValueError, TypeError):
        return {}  # not configured to the end yet


def _require(toolchain: Toolchain, *programs: str) -> None:
    for program in programs:
        if toolchain.run(["sh", "-c", 'command -v "$0"', program]).returncode != 0:
            raise BrokenEnvironment(
                f"There is no {program} where the tools of {toolchain.provider} run.",
                remedy=f"Install {program}, or set TRITON_WASM_PROVIDER=debian, which brings it.",
            )


def _cmake(arguments: Sequence[str], toolchain: Toolchain, tree: Path) -> None:
    source = tree / _SOURCE / "llvm"
    command = toolchain.command(["emcmake", "cmake", "-S", source, "-B", tree, *arguments])
    completed = run([*low_priority(), *command], cwd=tree)
    write_atomically(tree / "configure.log", completed.output)
    if completed.returncode == 0:
        return
    lines = [line.strip() for line in completed.output.splitlines()]
    start = next((number for number, line in enumerate(lines) if line.startswith("CMake Error")), None)
    # CMake says where on one line and what on the next.
    reason = " ".join(lines[start : start + 3]) if start is not None else (completed.tail.splitlines() or [""])[-1]
    raise Finding(
        f"Cannot configure LLVM: {completed.explain()}: {reason[:300]}", remedy=f"Read {tree / 'configure.log'}."
    )
