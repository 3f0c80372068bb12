"""The LLVM stage: from a source tree to an install prefix, or out of a store, and never half of one.

The build tree lives in the work dir under its final name until the prefix is whole. Interrupted at any point, the same
call goes on with the next object; only the prefix is made in one go. Where the tree is gone, as on
the next machine of a CI service, ccache has the objects.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from release.errors import Finding, Problem, WrongUsage
from release.llvm.configure import PREFIX, configure
from release.llvm.key import LLVMRequest, key_inputs
from release.llvm.machine import DISK, DISK_FOR_GENERATORS, jobs_for, link_jobs_for, needs
from release.llvm.store import Store
from release.llvm.tablegen import find_generators, keep_generators
from release.machine import look, size_of
from release.progress import Progress
from release.stage import Stage, key_of, run_stage
from release.toolchain.ccache import Compilations, CompilerCache
from release.toolchain.model import Toolchain
from release.toolchain.ninja import ninja

NAME = "llvm"


@dataclass(frozen=True, kw_only=True)
class LLVMLibraries:
    """The installed libraries: their prefix, the key of what they were made from, LLVM's version, and the record.

    ``compilations`` are those that it took; None where nothing had to be built.
    """

    prefix: Path
    key: str
    version: str
    stage: Stage
    compilations: Compilations | None


def build_llvm(
    request: LLVMRequest,
    toolchain: Toolchain,
    *,
    work: Path,
    cache: Path,
    store: Store,
    objects: CompilerCache,
    progress: Progress,
    jobs: int | None = None,
    force: bool = False,
    stop_after: float | None = None,
) -> LLVMLibraries:
    """Put the libraries into ``work``/llvm: as they are there, from ``store``, or built and then put into ``store``.

    Commands of ``toolchain`` must see ``work``, the folders of ``objects``, and the source. ``jobs`` is the number of
    compilers at once, by default what cores and memory allow. ``force`` builds in any case; what ``objects`` has is not
    compiled even then. ``stop_after`` is in seconds.

    Raises BrokenEnvironment when the machine has not the disk, the memory or the tools, Finding when LLVM does not
    configure or compile, Unfinished when ``stop_after`` is over, WrongUsage for no ``jobs`` or no time.
    """
    started = time.monotonic()
    if jobs is not None and jobs < 1:
        raise WrongUsage(f"{jobs} compilers at once build nothing.", remedy="Give --jobs 1 or more.")
    if stop_after is not None and not 0 < stop_after < math.inf:
        raise WrongUsage("In no time nothing is built.", remedy="Give --stop-after more than 0 minutes.")
    work = work.resolve()
    inputs = key_inputs(request, toolchain)
    key = key_of(inputs)
    tree = work / f"{NAME}-build-{key[:12]}"
    compiled = objects.begin(toolchain, tree)
    built = False

    def build(folder: Path) -> None:
        prefix = folder / "prefix"
        if not force and store.get(key, prefix):
            progress.done(NAME, "taken from the store")
            return
        for other in work.glob(f"{NAME}-build-*"):
            if other != tree:
                shutil.rmtree(other)  # of an LLVM that nobody asks for any more
        nonlocal built
        built = True
        end = None if stop_after is None else started + stop_after
        _make(request, toolchain, tree, prefix, cache=cache, jobs=jobs, end=end, compiled=compiled, progress=progress)
        keep(store, key, prefix, progress)

    stage = run_stage(NAME, work / NAME, inputs=inputs, build=build, progress=progress, force=force)
    if tree.exists() and not stage.reused:
        shutil.rmtree(tree)
    return LLVMLibraries(
        prefix=stage.folder / "prefix",
        key=key,
        version=request.version,
        stage=stage,
        compilations=objects.compilations() if built else None,
    )


def keep(store: Store, key: str, prefix: Path, progress: Progress) -> None:
    """Put the prefix into the store; an hour's work is not thrown away because that has no room."""
    try:
        store.put(key, prefix)
    except (OSError, Problem) as error:
        progress.note(f"  LLVM is built and not kept in the store: {str(error).rstrip('.')}.")


def _make(
    request: LLVMRequest,
    toolchain: Toolchain,
    tree: Path,
    prefix: Path,
    *,
    cache: Path,
    jobs: int | None,
    end: float | None,
    compiled: Mapping[str, str],
    progress: Progress,
) -> None:
    machine = look(tree.parent)
    jobs = jobs or jobs_for(machine)
    generators = find_generators(request.version, toolchain, cache=cache, progress=progress)
    disk = DISK + (0 if generators.folder else DISK_FOR_GENERATORS)
    progress.note(f"  {needs(machine, jobs, disk=max(disk - size_of(tree), 0))}")
    progress.note(f"  Its table generators are {generators.what}.")
    link_jobs = link_jobs_for(machine, jobs)
    configure(request, toolchain, tree, generators=generators, link_jobs=link_jobs, progress=progress)
    env = {**generators.env, **compiled}
    left = None if end is None else max(end - time.monotonic(), 1)
    ninja(tree, "distribution", name=NAME, toolchain=toolchain, jobs=jobs, env=env, progress=progress, timeout=left)
    # Beside the stage's folder and on the same disk, so that taking its place is a rename.
    destination = prefix.with_name("destination")
    env = {**generators.env, "DESTDIR": str(destination)}
    ninja(tree, "install-distribution", name=NAME, toolchain=toolchain, jobs=jobs, env=env, progress=progress)
    installed = destination / PREFIX.relative_to("/")
    if not any(installed.glob("lib/*.a")):
        raise Finding("LLVM was installed and there is no library in it.", remedy=f"Read {tree / 'configure.log'}.")
    if generators.folder is None:
        keep_generators(tree, installed)
    installed.rename(prefix)
    shutil.rmtree(destination)
