"""Compiling declared kernels with whichever Triton is here, and judging the text; runs natively and in Pyodide."""

from __future__ import annotations

import importlib
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from release.check.kernels.contract import CONTRACT, OUTPUT
from release.check.kernels.declaration import Kernel
from release.check.kernels.forbidden import SURE_HOOKS, nothing_beyond_text

_GPU_BINARY = re.compile(r"\x7fELF|\x50\xed\x55\xba")


def compile_modules(modules: Sequence[str], out: Path) -> None:
    """Compile all kernels of some modules for all their targets, with a line for each; go on past one that fails.

    Raises AssertionError at the end when any failed.
    """
    results = {
        f"{kernel.name} for {target}": _fault_of(kernel, target, out)
        for kernel in kernels_of(modules)
        for target in kernel.targets
    }
    failed = [f"{name}: {fault}" for name, fault in results.items() if fault]
    assert not failed, f"{len(failed)} of {len(results)} failed; the first is {failed[0]}"


def kernels_of(modules: Sequence[str]) -> Iterator[Kernel]:
    """Import modules of ours by their names, and give the kernels they declare."""
    for name in modules:
        yield from importlib.import_module(f"release.check.kernels.ours.{name}").KERNELS


def compile_kernel(kernel: Kernel, target: str, out: Path) -> dict[str, str]:
    """Compile for one target, write each stage to ``out/KERNEL/TARGET/STAGE``, and return the texts.

    Colons of the target become dashes. Raises AssertionError for text that is not as declared, Reached for a step
    over the boundary, and what ``compile_text`` raises.
    """
    texts = _compile(kernel.function, **kernel.arguments(target))
    for stage, text in texts.items():
        _write(out / kernel.name / target.replace(":", "-") / stage, text)
    _judge(texts, kernel.expect, target)
    return texts


def compile_supplied(module: str, function: str, out: Path) -> dict[str, str]:
    """Compile a supplied kernel, importable as ``module``, to the contract; write and return the texts."""
    _stand_in_for("torch")
    kernel = getattr(importlib.import_module(module), function)
    texts = _compile(
        kernel,
        signature=CONTRACT.signature,
        constexprs=CONTRACT.constexprs,
        target=CONTRACT.target,
        options=CONTRACT.options,
    )
    for stage, text in texts.items():
        _write(out / f"{OUTPUT}.{stage}", text)
    _judge(texts, {"amdgcn": r"v_mfma_", "llir": r'"amdgpu-agpr-alloc"="256"'}, CONTRACT.target)
    return texts


def _fault_of(kernel: Kernel, target: str, out: Path) -> str:
    """Compile, say how it went, and return what went wrong, or nothing."""
    started = time.monotonic()
    try:
        texts = compile_kernel(kernel, target, out)
    except Exception as error:
        traceback.print_exc()
        fault = f"{type(error).__name__}: {error}"
    else:
        fault = ""
    said = fault.replace("\n", " ")[:200] or ", ".join(f"{stage} {len(text)}" for stage, text in texts.items())
    print(f"{kernel.name:18} {target:14} {time.monotonic() - started:6.2f} s  {said}", flush=True)
    return fault


def _compile(function: Any, **arguments: Any) -> dict[str, str]:
    from triton_compile_only import compile_text

    with nothing_beyond_text() as hooks:
        assert set(hooks) >= SURE_HOOKS, f"this Triton has no {', '.join(sorted(SURE_HOOKS - set(hooks)))} to forbid"
        return compile_text(function, **arguments)


def _judge(texts: Mapping[str, str], expect: Mapping[str, str], target: str) -> None:
    stages = list(texts)
    assert stages in (["ttir", "ttgir", "llir", stages[-1]], ["ttgir", "llir", stages[-1]]), stages
    assert stages[-1] == ("ptx" if target.startswith("cuda") else "amdgcn"), stages
    arch = target.split(":")[1]
    head = {"ptx": rf"\.target sm_{arch}a?\b", "amdgcn": rf'\.amdgcn_target "amdgcn-amd-amdhsa--{arch}'}
    expected = {stages[-1]: head[stages[-1]]}
    for stage, text in texts.items():
        assert text.strip() and not _GPU_BINARY.search(text), f"{stage} is not text"
    for key, pattern in (*expected.items(), *expect.items()):
        *only, stage = key.split("/")
        if (not only or only == [target]) and stage in texts:
            assert re.search(pattern, texts[stage]), f"{target}: no {pattern!r} in the {stage}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class _Nothing(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self


def _stand_in_for(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError:
        sys.modules[name] = _Nothing(name)
