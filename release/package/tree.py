"""Triton's Python tree as the package has it: what compiling to text needs, at its place, and the layer beside it.

>>> lay_out_tree(Path("triton"), Path("out"))  # makes out/python, to be laid at the root of site-packages
>>> version_of("3.6.0", "50b2f739" + "0" * 32)
'3.6.0+git50b2f739'
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from release.artifacts import files_below, replacing_folder
from release.errors import WrongUsage
from release.package.imports import check_imports
from release.package.layer import PYTHON

NAME = "triton"
SUMMARY = "Triton for WebAssembly, compile-only: Triton and Gluon kernels to TTIR, TTGIR, LLIR, PTX and AMDGCN"

PYTHON_TREE = "python"
"""The folder that ``lay_out_tree`` makes."""

BITCODE_OF = {"amd": ("asanrtl.bc", "ockl.bc", "ocml.bc"), "nvidia": ("libdevice.10.bc",)}
"""The LLVM bitcode that each backend links into kernels, in its folder ``lib``."""

_BITCODE = b"BC\xc0\xde"
_LFS = b"version https://git-lfs.github.com/"

# Where they are below site-packages. Everything else has to be Python or a device library: a kind of file that is new
# in a Triton is decided upon here, and neither lost nor shipped unseen.
_LEFT_OUT = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"triton/backends/\w+/include/.*", "a header: nothing is compiled for a GPU's runtime"),
        (r".*\.(c|cc|cpp|cu|cuh|h|hip|hpp)", "C, C++ or CUDA source: there is no compiler for it"),
        (r"triton/backends/\w+/driver\.py", "a driver of a GPU; the layer has its own, which drive nothing"),
        (r"triton/(_filecheck|_internal_testing|_test_runner|_compile_warmup\w*)\.py", "for Triton's own tests"),
        (r"triton/tools/(build_extern|compile|link)\.py", "a program that makes or reads native code"),
        (r"triton/(experimental/gsan/.*|tools/gsan\.py)", "GSan, a checker that runs on a GPU"),
        (r".*\.md", "for Triton's developers"),
        # What building or installing Triton in its own tree leaves there.
        (r"triton/(FileCheck|(_C|instrumentation|plugins)/[^/]+\.(so|dylib|pyd)[\w.]*)", "a native binary"),
        (r"triton/backends/nvidia/(bin|lib/cupti[\w-]*)/.*", "a native binary"),
        (r"triton/backends/nvidia/lib/gsan\.ll", "GSan, a checker that runs on a GPU"),
    )
)

# `pip install --editable` links folders of third_party to where Python looks for them: they are read from third_party.
_LINKS = re.compile(r"triton/(backends/\w+|(language|tools)/extra/\w+|profiler)")


@dataclass(frozen=True, kw_only=True)
class TreePlan:
    """The files of the tree by their places below site-packages, and of Triton's those that stay out, with reasons."""

    files: Mapping[str, Path]
    left_out: Mapping[str, str]


def lay_out_tree(triton: Path, folder: Path) -> None:
    """Make ``folder/python`` from a Triton source tree and the layer; what was there is replaced.

    It has no ``triton/_C/libtriton``: that is the side module, which the package stage adds. Raises WrongUsage for a
    tree that is laid out as none we know.
    """
    plan = plan_tree(triton)
    with replacing_folder(folder / PYTHON_TREE) as python:
        for place, source in plan.files.items():
            target = python / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def plan_tree(triton: Path) -> TreePlan:
    """Decide about each file of a Triton source tree, as Triton's ``setup.py`` maps it into site-packages.

    Raises WrongUsage for a tree without a part that is needed, with a file of an unknown kind or a link, with a device
    library that is none, or where something kept imports something left out.
    """
    files: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    for source, place in _mapping(triton):
        for path in _below(source, place):
            name = f"{place}/{path.relative_to(source).as_posix()}"
            if reason := next((reason for pattern, reason in _LEFT_OUT if pattern.fullmatch(name)), ""):
                left_out[name] = reason
            elif name.endswith((".py", ".pyi", "/py.typed")) or _is_device_library(name):
                files[name] = path
            else:
                raise _unknown(triton, f"{path.relative_to(triton)}, which is neither Python nor known as useless here")
    for backend, libraries in BITCODE_OF.items():
        for library in libraries:
            _require_bitcode(triton / "third_party" / backend / "backend" / "lib" / library)
    files |= {path.relative_to(PYTHON).as_posix(): path for path in files_below(PYTHON)}
    check_imports(files, left_out)
    return TreePlan(files=dict(sorted(files.items())), left_out=dict(sorted(left_out.items())))


def version_of(version: str, commit: str) -> str:
    """Return the package's version: Triton's own with the commit as a local label, as Triton's ``setup.py`` has it."""
    return f"{version}{'.' if '+' in version else '+'}git{commit[:8]}"


def _mapping(triton: Path) -> Iterator[tuple[Path, str]]:
    """Give the folders of the tree with their places below site-packages.

    ``third_party/*/tools`` is not among them: templates in C. Nor is Proton, which profiles what runs on a GPU.
    """
    yield _require(triton, "python/triton", "__init__.py"), "triton"
    for backend in BITCODE_OF:
        part = f"third_party/{backend}"
        yield _require(triton, f"{part}/backend", "compiler.py"), f"triton/backends/{backend}"
        for language in sorted(_require(triton, f"{part}/language").iterdir()):
            if language.is_dir() and language.name != "__pycache__":
                yield language, f"triton/language/extra/{language.name}"


def _require(triton: Path, folder: str, file: str = "") -> Path:
    path = triton / folder / file
    if not (path.is_file() if file else path.is_dir()):
        raise _unknown(triton, f"no {PurePosixPath(folder, file)}")
    return triton / folder


def _below(source: Path, place: str) -> Iterator[Path]:
    """Give the files below a folder, less what Python and editors leave behind."""
    for parent, folders, files in os.walk(source):
        here = Path(parent)
        folders[:] = sorted(folder for folder in folders if folder != "__pycache__")
        for path in (here / name for name in (*folders, *files)):
            if path.is_symlink() and not _LINKS.fullmatch(f"{place}/{path.relative_to(source).as_posix()}"):
                raise WrongUsage(
                    f"{path} is a link, and a package holds files only.",
                    remedy="Take a clean checkout of a commit of upstream.",
                )
        yield from (
            here / name for name in sorted(files) if not name.endswith((".pyc", "~")) and not (here / name).is_symlink()
        )


def _is_device_library(name: str) -> bool:
    return any(
        name == f"triton/backends/{backend}/lib/{library}"
        for backend, libraries in BITCODE_OF.items()
        for library in libraries
    )


def _require_bitcode(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(len(_LFS))
    except OSError as error:
        raise WrongUsage(
            f"{path} cannot be read ({error.strerror}), and a kernel that calls into it could not be compiled.",
            remedy="Take a complete checkout; a filter or a sparse checkout may have left it out.",
        ) from error
    if head == _LFS:
        raise WrongUsage(f"{path} is a Git LFS pointer instead of the file.", remedy="Run `git lfs pull` in that tree.")
    if not head.startswith(_BITCODE):
        raise WrongUsage(
            f"{path} is not LLVM bitcode.", remedy="Take a clean checkout; a text filter may have changed the file."
        )


def _unknown(triton: Path, what: str) -> WrongUsage:
    return WrongUsage(
        f"{triton} is laid out as no Triton tree we know: it has {what}.",
        remedy="Name the root of a Triton checkout; if upstream has changed, teach release/package/tree.py.",
    )
