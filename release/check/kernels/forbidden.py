"""Proof that compiling reaches nothing that a browser has not: while it runs, every such thing raises."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# What Python itself reports of every caller, in Python or C. https://docs.python.org/3/library/audit_events.html
_EVENTS = re.compile(
    r"subprocess\.Popen|os\.(system|exec|fork|forkpty|posix_spawn|spawn|startfile|mkdir|rename|remove|symlink|link|truncate)"
    r"|socket\.\w+|_thread\.start_\w+|tempfile\.\w+|shutil\.\w+|urllib\.Request|signal\.pthread_kill"
)
_GPU_FILES = re.compile(
    r"ptxas|nvdisasm|cuobjdump|nvlink|lib(cuda|nvidia|nvrtc|amdhip|hsa|amd_comgr|rocm)\w*\.so|/dev/(nvidia|kfd|dri)"
    r"|\.(cubin|hsaco|fatbin)$"
)

# What Triton has of its own; one that a Triton has not is passed over. And processes, which Pyodide refuses unreported.
_HOOKS = (
    "subprocess:Popen.__init__",
    "triton.runtime.driver:_create_driver",
    "triton.runtime.build:_build",
    "triton.runtime.build:compile_module_from_src",
    "triton.runtime.cache:get_cache_manager",
    "triton.compiler.compiler:get_cache_manager",
    "triton.compiler.compiler:get_dump_manager",
    "triton.compiler.compiler:CompiledKernel.__init__",
    "triton.knobs:NvidiaTool.from_path",
    "triton.backends.nvidia.compiler:get_ptxas",
    "triton.backends.nvidia.compiler:get_ptxas_version",
    "triton.backends.nvidia.compiler:CUDABackend.make_cubin",
    "triton.backends.nvidia.driver:CudaDriver.__init__",
    "triton.backends.nvidia.driver:CudaUtils.__new__",
    "triton.backends.amd.compiler:HIPBackend.make_hsaco",
    "triton.backends.amd.driver:HIPDriver.__init__",
    "triton.backends.amd.driver:HIPUtils.__new__",
    "triton._C.libtriton:amd.assemble_amdgcn",
    "triton._C.libtriton:amd.link_hsaco",
)

SURE_HOOKS = frozenset(
    {
        "triton.runtime.driver._create_driver",
        "NvidiaTool.from_path",
        "CompiledKernel.__init__",
        "CUDABackend.make_cubin",
        "HIPBackend.make_hsaco",
    }
)
"""Hooks that every Triton has: where one is missing, Triton has moved it and the proof has a hole."""

_watching: list[list[str]] = []


class Reached(RuntimeError):  # noqa: N818 - it names what happened
    """Something was used that is out of bounds."""


@contextmanager
def nothing_beyond_text() -> Iterator[tuple[str, ...]]:
    """Make processes, threads, sockets, written files, GPU libraries and binaries raise Reached within the block.

    The block also ends with Reached when something inside swallowed the first one. Gives the names of the hooks that
    were set. Not for use from several threads.
    """
    if not _watching:
        sys.addaudithook(_audit)  # for good: Python has no way to take one back
        _watching.append([])
    reached: list[str] = []
    without_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # importing something would else write a file
    restore = [(*place, _replace(*place, reached)) for name in _HOOKS if (place := _find(name))]
    _watching.append(reached)
    try:
        yield tuple(f"{owner.__name__}.{attribute}" for owner, attribute, _ in restore)
    finally:
        _watching.pop()
        sys.dont_write_bytecode = without_bytecode
        for owner, attribute, original in restore:
            setattr(owner, attribute, original)
    if reached:
        raise Reached(f"out of bounds: {'; '.join(reached)}")


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if len(_watching) > 1 and (what := _out_of_bounds(event, arguments)):
        _watching[-1].append(what)
        raise Reached(f"out of bounds: {what}")


def _out_of_bounds(event: str, arguments: tuple[Any, ...]) -> str:
    """Say what is out of bounds about an event, or nothing."""
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, int):
            return ""
        name = os.fsdecode(path)
        if name != os.devnull and (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return f"writing {name}"
        return f"reading {name}" if _GPU_FILES.search(name) else ""
    if event == "ctypes.dlopen":
        return f"loading {arguments[0]}" if arguments[0] is not None else ""  # None is Python itself
    return f"{event}{arguments[:1]!r}" if _EVENTS.fullmatch(event) else ""


def _find(name: str) -> tuple[Any, str] | None:
    module, _, path = name.partition(":")
    *owners, attribute = path.split(".")
    try:
        owner: Any = importlib.import_module(module)
        for each in owners:
            owner = getattr(owner, each)
    except (ImportError, AttributeError):
        return None
    return (owner, attribute) if attribute in vars(owner) else None


def _replace(owner: Any, attribute: str, reached: list[str]) -> Any:
    original = vars(owner)[attribute]
    setattr(owner, attribute, _raising(f"{owner.__name__}.{attribute}", reached))
    return original


def _raising(name: str, reached: list[str]) -> Callable[..., Any]:
    def hook(*_: Any, **__: Any) -> Any:
        reached.append(name)
        raise Reached(f"out of bounds: {name}")

    return hook
