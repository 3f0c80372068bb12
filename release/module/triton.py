"""Triton's C++ as objects for the side module: configured from outside, compiled against the installed LLVM.

Triton's own build would link a shared library of this machine's kind. So its CMake is asked what that library is made
from, just those objects are built, and the link is ours.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pybind11

from release.artifacts import sha256_of_tree, write_atomically
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.llvm import LLVMLibraries
from release.llvm.machine import jobs_for
from release.llvm.tablegen import find_mlir_tblgen
from release.machine import look
from release.module.build import fixed_addresses, link, succeed
from release.pins.model import FixupPin, Profile
from release.progress import Progress
from release.stage import key_of
from release.toolchain.cmake import SOURCE, Configured, arguments_of, cmake, compilers, link_into, require_cmake
from release.toolchain.model import Toolchain
from release.toolchain.ninja import ninja

OVERLAY = Path(__file__).parent / "overlay"
HOST = Path(__file__).parent / "host"
"""What the module needs of a host and Emscripten's library has otherwise: see ``math.c``."""

EXTENSION = "triton._C.libtriton"
INIT = "PyInit_libtriton"
LINKED = "libtriton.wasm"
INPUTS = "inputs.json"
TRITON, LLVM, _HOST = "triton", "llvm", "host"
HOST_OBJECT = f"{_HOST}/math.o"

RECIPE = 1
"""Counts the changes of this module and of the link that change the bits: a comment here costs no hour."""

COMPILE_MEMORY = 1_600_000_000
"""Bytes that the largest of Triton's sources takes to compile, at -O3."""

_LIBRARY = f"{TRITON}/libtriton.so"
_OURS = (f"{TRITON}/", f"{LLVM}/")
_FEWEST_OBJECTS, _FEWEST_ARCHIVES = 100, 100


@dataclass(frozen=True, kw_only=True)
class TritonRequest:
    """What is compiled and against what.

    ``source`` is the Triton tree with its ``fixups`` made, ``digest`` that of the tree without them, ``bindings`` what
    binds its C++ to Python; ``profile`` has the flags.
    """

    source: Path
    digest: str
    bindings: str
    fixups: Sequence[FixupPin]
    libraries: LLVMLibraries
    profile: Profile

    def key(self, toolchain: Toolchain) -> str:
        """Return a digest of everything that the objects depend on."""
        return key_of(self.inputs(toolchain))

    def inputs(self, toolchain: Toolchain) -> dict[str, Any]:
        """Return everything that the objects depend on."""
        return {
            "recipe": RECIPE,
            "source": self.digest,
            "fixups": [fixup.model_dump(mode="json", include={"file", "edits"}) for fixup in self.fixups],
            "llvm": self.libraries.key,
            "flags": self.profile.compile.flags,
            "overlay": sha256_of_tree(OVERLAY),
            "pybind11": pybind11.__version__,
            "emscripten": toolchain.emscripten.digest,
            "python_include": toolchain.python_include_digest,
        }


def compile_triton(
    request: TritonRequest,
    toolchain: Toolchain,
    *,
    tree: Path,
    folder: Path,
    cache: Path,
    jobs: int | None,
    progress: Progress,
) -> None:
    """Put the objects into ``folder``, and the list of what the module is linked from, as INPUTS.

    ``tree`` is the build tree; interrupted, the same call goes on there. Raises WrongUsage for a Triton of which we do
    not know how it is bound to Python, Finding when it does not configure or compile, BrokenEnvironment when something
    is missing or the machine is too small.
    """
    if request.bindings != "pybind11":
        raise WrongUsage(
            f"This Triton is bound to Python by {request.bindings}, which the overlay cannot configure yet.",
            remedy="Pin a Triton of before 2026-06-24, the day it left pybind11.",
        )
    libraries = request.libraries
    generator, env = find_mlir_tblgen(libraries.prefix, libraries.version, toolchain, cache=cache, progress=progress)
    variables: dict[str, bool | str] = {
        "CMAKE_BUILD_TYPE": "Release",
        # Triton knows no WebAssembly and refuses to configure; the name decides about nothing but stand-ins of ours.
        "EMSCRIPTEN_SYSTEM_PROCESSOR": "x86_64",
        "MLIR_TABLE_GENERATOR": str(generator),
        # Flags that choose the level belong to the build type: CMake puts its own there otherwise.
        **compilers(
            tree,
            _without_level(request.profile),
            [*_level(request.profile), "-DNDEBUG"],
            elsewhere={LLVM: libraries.prefix.resolve()},
        ),
    }
    arguments = arguments_of(variables)
    configured = Configured(tree, arguments)
    if not configured.already():
        require_cmake(toolchain)
        links = {
            SOURCE: request.source,
            LLVM: libraries.prefix,
            "python": toolchain.python_include,
            "pybind11": Path(pybind11.__file__).parent,
            "overlay": OVERLAY,
        }
        link_into(tree, links)
        with progress.steps("objects", 1) as steps:
            steps.begin("configure Triton")
            cmake("Triton", tree / "overlay", tree, arguments, toolchain, env=env)
        configured.remember()
    objects, archives = _made_from(tree, libraries.prefix.resolve(), toolchain)
    jobs = jobs or jobs_for(look(tree), each=COMPILE_MEMORY)
    ninja(tree, *objects, name="objects", toolchain=toolchain, jobs=jobs, env=env, progress=progress)
    for name in objects:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree / name, folder / name)
    write_atomically(folder / INPUTS, json.dumps({"objects": objects, "archives": archives}, indent=2))


def compile_host(profile: Profile, toolchain: Toolchain, folder: Path) -> None:
    """Compile what the module has in place of the host's functions to HOST_OBJECT in ``folder``.

    Raises Finding when it does not compile.
    """
    source = HOST / "math.c"
    place = folder / HOST_OBJECT
    place.parent.mkdir()
    shutil.copyfile(source, place.with_name(source.name))
    # Neither bitcode nor builtins: the optimiser knows functions of these names by what they are expected to do.
    flags = [flag for flag in profile.compile.flags if flag != "-flto"]
    command = ["emcc", *flags, "-fno-builtin", "-c", source.name, "-o", place.name]
    succeed(toolchain.run(command, cwd=place.parent), f"compile {source.name}", folder)
    place.with_name(source.name).unlink()


def host_inputs(profile: Profile, toolchain: Toolchain) -> dict[str, Any]:
    """Return everything that the object of ``compile_host`` depends on."""
    return {
        "recipe": RECIPE,
        "source": sha256_of_tree(HOST),
        "flags": profile.compile.flags,
        "emscripten": toolchain.emscripten.digest,
    }


def link_names(objects: Path) -> tuple[str, ...]:
    """Return what the module is linked from, in order: objects, HOST_OBJECT, and archives below LLVM."""
    found = json.loads((objects / INPUTS).read_text())
    return (*found["objects"], HOST_OBJECT, *found["archives"])


def link_triton(
    objects: Path,
    host: Path,
    libraries: LLVMLibraries,
    profile: Profile,
    toolchain: Toolchain,
    *,
    output: Path,
    progress: Progress,
) -> None:
    """Link what ``compile_triton`` put into ``objects`` and ``compile_host`` into ``host`` to the module ``output``.

    Raises BrokenEnvironment when memory or disk do not suffice, Finding when the linker refuses.
    """
    names = link_names(objects)
    place = output.with_name("linked-from")
    place.mkdir()
    for name, target in link_places(objects, host, libraries).items():
        (place / name).symlink_to(target)
    needs(profile, output.parent, progress)
    with progress.steps("link", 1) as steps:
        again = "" if fixed_addresses(toolchain) else " (not reproducible: addresses cannot be fixed here)"
        steps.begin(f"{len(names)} objects and archives{again}")
        link(names, place, INIT, profile, toolchain, output)
    shutil.rmtree(place)


def link_places(objects: Path, host: Path, libraries: LLVMLibraries) -> dict[str, Path]:
    """Return where the first parts of ``link_names`` lead."""
    return {TRITON: objects / TRITON, _HOST: host / _HOST, LLVM: libraries.prefix}


def link_inputs(
    objects: str, host: str, libraries: LLVMLibraries, profile: Profile, toolchain: Toolchain
) -> dict[str, Any]:
    """Return everything that the linked module depends on; ``objects`` and ``host`` are the keys of theirs."""
    return {
        "recipe": RECIPE,
        "objects": objects,
        "host": host,
        "llvm": libraries.key,
        "flags": profile.link.flags,
        "emscripten": toolchain.emscripten.digest,
        "binaryen": toolchain.binaryen.digest,
    }


def needs(profile: Profile, folder: Path, progress: Progress) -> None:
    """Say what the link of Triton takes and what there is. Raises BrokenEnvironment when that is too little."""
    machine = look(folder)
    wanted = profile.link.memory
    sentence = (
        f"The link takes up to {wanted / 1e9:.1f} GB of memory with the profile {profile.name};"
        f" {machine.memory / 1e9:.1f} GB are free, and {machine.swap / 1e9:.1f} GB of swap."
    )
    if machine.memory + machine.swap < wanted:
        short = math.ceil((wanted - machine.memory - machine.swap) / 1e9)
        raise BrokenEnvironment(sentence, remedy=f"Add {short} GB of swap or more, or take another profile.")
    progress.note(f"  {sentence}")


def _made_from(tree: Path, prefix: Path, toolchain: Toolchain) -> tuple[list[str], list[str]]:
    """Ask ninja what Triton's library is made from; return its objects and archives by their names in the tree."""
    completed = toolchain.run(["ninja", "-C", tree, "-t", "inputs", _LIBRARY], cwd=tree)
    # LLVM's CMake files name its libraries by their real paths.
    names = [line.replace(f"{prefix}/", f"{LLVM}/").removeprefix(f"{tree}/") for line in completed.output.splitlines()]
    objects = sorted({name for name in names if name.endswith(".o")})
    archives = sorted({name for name in names if name.endswith(".a")})
    if completed.returncode != 0 or len(objects) < _FEWEST_OBJECTS or len(archives) < _FEWEST_ARCHIVES:
        raise Finding(
            f"Triton's build has {len(objects)} objects and {len(archives)} archives for its library: too few.",
            remedy="See what CMake made of it with `ninja -t inputs`; the overlay may not fit this Triton.",
        )
    if outside := [name for name in (*objects, *archives) if name.startswith("/") or not name.startswith(_OURS)]:
        raise Finding(
            f"Triton's build links {outside[0]}, which is neither its own nor of the LLVM that was given.",
            remedy="See which library the overlay has to stand in for.",
        )
    return objects, archives


def _level(profile: Profile) -> list[str]:
    return [flag for flag in profile.compile.flags if re.fullmatch(r"-O\w", flag)]


def _without_level(profile: Profile) -> list[str]:
    return [flag for flag in profile.compile.flags if flag not in _level(profile)]
