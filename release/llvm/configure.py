"""The build tree of LLVM: configured from a profile, kept for as long as what it was configured with is the same."""

from __future__ import annotations

from pathlib import Path

from release.llvm.components import closure
from release.llvm.key import LLVMRequest
from release.llvm.tablegen import TableGenerators
from release.progress import Progress
from release.toolchain.cmake import SOURCE, Configured, arguments_of, cmake, compilers, link_into, require_cmake
from release.toolchain.model import Toolchain

PREFIX = Path("/llvm")
"""Where the libraries believe they are installed, on whatever machine; DESTDIR says where they really go."""


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
    arguments = [
        *arguments_of(_variables(request, tree)),
        *generators.arguments(),
        f"-DLLVM_PARALLEL_LINK_JOBS={link_jobs}",
    ]
    configured = Configured(tree, arguments)
    if configured.already():
        return
    require_cmake(toolchain)
    link_into(tree, {SOURCE: request.source})
    source = tree / SOURCE / "llvm"
    with progress.steps("llvm", 2) as steps:
        steps.begin("configure")
        cmake("LLVM", source, tree, arguments, toolchain)
        # What a library needs is known when everything is configured: so once more, with the list.
        components = [*closure(tree, request.roots()), *request.profile.extras]
        steps.begin(f"configure {len(components)} components")
        chosen = f"-DLLVM_DISTRIBUTION_COMPONENTS={';'.join(components)}"
        cmake("LLVM", source, tree, [*arguments, chosen], toolchain)
    configured.remember()


def _variables(request: LLVMRequest, tree: Path) -> dict[str, bool | str]:
    profile = request.profile
    return {
        "CMAKE_INSTALL_PREFIX": str(PREFIX),
        "LLVM_ENABLE_PROJECTS": ";".join(profile.projects),
        "LLVM_TARGETS_TO_BUILD": ";".join(profile.targets),
        **compilers(tree, profile.compile.flags, profile.compile.optimise),
        **profile.cmake,
    }
