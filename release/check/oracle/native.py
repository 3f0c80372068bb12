"""The oracle proper: the same Triton commit, built natively against the same LLVM, run by the same Python."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pybind11

from release.artifacts import sha256_of, sha256_of_tree, write_atomically
from release.check.oracle.root import PACKAGES, native_root
from release.check.oracle.texts import Kind
from release.errors import BrokenEnvironment, Finding
from release.llvm.machine import jobs_for
from release.machine import look, size_of
from release.module.triton import COMPILE_MEMORY
from release.module.triton import OVERLAY as SHARED
from release.package.layer import ENTRY_POINTS
from release.pins.model import FixupPin
from release.places import CHECKOUT
from release.process import Completed, run
from release.progress import Progress
from release.stage import exclusive, key_of, run_stage
from release.toolchain.cmake import SOURCE, Configured, arguments_of, cmake, link_into
from release.toolchain.installation import Installation
from release.toolchain.model import Toolchain
from release.toolchain.ninja import ninja

OVERLAY = Path(__file__).parent / "overlay"

# Text does not depend on how the compiler's own code was optimised, and -O1 takes half the time of -O3.
_FLAGS = "-O1 -DNDEBUG"
_LIBRARY = "triton/libtriton.so"
_BUILD = "oracle-build-"
_DISK = 1_500_000_000
# The paths that Pyodide gives to both: text holds them as strings, as bytes and, by their length, in numbers.
_CASE = Path("/case")
_SITE_PACKAGES = "/lib/python{}/site-packages"


@dataclass(frozen=True, kw_only=True)
class NativeRequest:
    """What is built.

    ``source`` is the Triton tree with its ``fixups`` made, ``digest`` that of the tree without them. ``llvm`` is a
    release of LLVM, ``python_minor`` such as 3.15. ``python`` holds what is to be beside the library, as in
    site-packages: ``triton/`` and our layer.
    """

    source: Path
    digest: str
    fixups: Sequence[FixupPin]
    llvm: str
    python_minor: str
    python: Path

    def inputs(self, root: Installation) -> dict[str, Any]:
        """Return everything that the outcome depends on."""
        assert root.folder is not None  # noqa: S101 - for the type checker: it is a root of ours
        return {
            "source": self.digest,
            "fixups": [fixup.model_dump(mode="json", include={"file", "edits"}) for fixup in self.fixups],
            "packages": sha256_of(root.folder / PACKAGES),
            "overlay": sha256_of_tree(OVERLAY),
            "shared": sha256_of_tree(SHARED),
            "flags": _FLAGS,
            "pybind11": pybind11.__version__,
            "python": sha256_of_tree(self.python),
        }


@dataclass(frozen=True, kw_only=True)
class NativeTriton:
    """A Triton that was built here, in ``folder`` as in site-packages, and the root that it runs in.

    ``key`` is that of its stage.
    """

    folder: Path
    root: Installation
    llvm: str
    python_minor: str
    key: str = ""

    @property
    def kind(self) -> Kind:
        """Say of which kind it is."""
        return "native"

    @property
    def what(self) -> str:
        """Say which oracle this is."""
        return f"a native build of the same sources against LLVM {self.llvm}, run by Python {self.python_minor}"

    def run(self, name: str, program: str, out: Path, progress: Progress) -> Completed:
        """Run the text of a program under the paths that it has in Pyodide; its argument is ``out``."""
        root, home = self.root.root, self.root.folder
        assert root is not None and home is not None  # noqa: S101 - for the type checker: it is a root of ours
        out.mkdir(parents=True, exist_ok=True)
        packages = _SITE_PACKAGES.format(self.python_minor)
        with exclusive(home, wait=True, progress=progress):
            shutil.rmtree(f"{root}{_CASE}", ignore_errors=True)
            write_atomically(Path(f"{root}{_CASE / name}"), program)
            shown = Path(f"{root}/usr{packages}")  # /lib is a link, also inside
            shown.unlink(missing_ok=True)
            shown.symlink_to(self.folder.resolve())
            enter = self.root.enter([out, self.folder])
            return run([*enter, f"PYTHONPATH={packages}", f"python{self.python_minor}", str(_CASE / name), str(out)])


def build_native(
    request: NativeRequest,
    toolchain: Toolchain,
    *,
    work: Path,
    cache: Path,
    jobs: int | None = None,
    progress: Progress,
    force: bool = False,
) -> NativeTriton:
    """Build into ``work``/oracle, unless it is there: 20 minutes on two cores. Interrupted, the same call goes on.

    Raises Finding when Triton does not configure, compile or load, BrokenEnvironment when Debian has another LLVM or
    the machine has too little disk or memory.
    """
    work = work.resolve()
    root = native_root(request.llvm, request.python_minor, cache=cache, progress=progress)
    inputs = request.inputs(root)
    # Of its key, for ninja goes by times: sources of before are older than what was made of others.
    tree = work / f"{_BUILD}{key_of(inputs)[:12]}"

    def build(folder: Path) -> None:
        for other in work.glob(f"{_BUILD}*"):
            if other != tree:
                shutil.rmtree(other)
        _needs_disk(tree)
        shutil.copytree(request.python, folder, symlinks=True, dirs_exist_ok=True)
        configure(request, root, toolchain, tree=tree, progress=progress)
        tools = _tools(request, root, toolchain, tree)
        ninja(
            tree,
            _LIBRARY,
            name="oracle",
            toolchain=tools,
            jobs=jobs or jobs_for(look(tree), each=COMPILE_MEMORY),
            progress=progress,
        )
        (folder / "triton" / "_C").mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree / _LIBRARY, folder / "triton" / "_C")
        if not any(folder.glob("*.dist-info")):  # Triton finds its backends by their entry points
            metadata = folder / "triton_native-0.dist-info"
            write_atomically(metadata / "METADATA", "Metadata-Version: 2.1\nName: triton-native\nVersion: 0\n")
            write_atomically(metadata / "entry_points.txt", ENTRY_POINTS)
        _must_load(NativeTriton(folder=folder, root=root, llvm=request.llvm, python_minor=request.python_minor), work)

    stage = run_stage("oracle", work / "oracle", inputs=inputs, build=build, progress=progress, force=force)
    if tree.exists() and not stage.reused:
        shutil.rmtree(tree)
    return NativeTriton(
        folder=stage.folder, root=root, llvm=request.llvm, python_minor=request.python_minor, key=stage.key
    )


def configure(
    request: NativeRequest, root: Installation, toolchain: Toolchain, *, tree: Path, progress: Progress
) -> None:
    """Configure the build tree ``tree``, unless it is. Raises Finding with CMake's first error."""
    major = request.llvm.partition(".")[0]
    arguments = arguments_of(
        {
            "CMAKE_BUILD_TYPE": "Release",
            "CMAKE_C_COMPILER": f"clang-{major}",
            "CMAKE_CXX_COMPILER": f"clang++-{major}",
            "CMAKE_C_FLAGS_RELEASE": _FLAGS,
            "CMAKE_CXX_FLAGS_RELEASE": _FLAGS,
        }
    )
    configured = Configured(tree, arguments)
    if configured.already():
        return
    links = {
        SOURCE: request.source.resolve(),
        "shared": SHARED,
        "pybind11": Path(pybind11.__file__).parent,
        # These two are the root's.
        "llvm": Path(f"/usr/lib/llvm-{major}"),
        "python": Path(f"/usr/include/python{request.python_minor}"),
    }
    link_into(tree, links)
    with progress.steps("oracle", 1) as steps:
        steps.begin("configure Triton for this machine")
        tools = _tools(request, root, toolchain, tree)
        cmake("the native Triton", OVERLAY, tree, arguments, tools, program=("cmake",))
    configured.remember()


def _tools(request: NativeRequest, root: Installation, toolchain: Toolchain, tree: Path) -> Toolchain:
    """Return a toolchain whose commands run in the root and see what the build needs."""
    shown = [CHECKOUT, Path(pybind11.__file__).parent, request.source.resolve(), tree]
    return replace(toolchain, enter=root.enter(shown))


def _needs_disk(tree: Path) -> None:
    tree.mkdir(parents=True, exist_ok=True)
    free, wanted = look(tree).disk, max(_DISK - size_of(tree), 0)
    if free < wanted:
        raise BrokenEnvironment(
            f"The native build needs {wanted / 1e9:.1f} GB of disk and {free / 1e9:.1f} GB are free.",
            remedy="Make room, or give a --work folder on another disk.",
        )


def _must_load(native: NativeTriton, work: Path) -> None:
    """Import the library, for it may lack a symbol that the linker did not miss."""
    packages = f"PYTHONPATH={native.folder}"
    command = [packages, f"python{native.python_minor}", "-c", "import triton; import triton._C.libtriton"]
    completed = run([*native.root.enter([native.folder, work]), *command], cwd=work)
    if completed.returncode != 0:
        reason = (completed.tail.splitlines() or [completed.explain()])[-1]
        raise Finding(
            f"The native Triton was built and cannot be loaded: {reason}",
            remedy="See which library the overlay of the oracle has to name.",
        )
