"""The cases as programs of one file each, which carry the kernels they compile: for Pyodide, and for any native Python.

A program unpacks beside itself, so that a kernel has the same path below it wherever it runs, then compiles and writes
to the folder that it is given, ``/out`` by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from release.artifacts import write_atomically
from release.check.kernels import MODULES
from release.check.kernels.contract import OUTPUT
from release.check.kernels.supplied import Supplied

LIMIT_SECONDS = 180
"""Wall time of one program: ten times what the slowest takes in Pyodide on a quiet machine."""

_HERE = Path(__file__).parent
_PACKAGE = "release/check/kernels"
_SHARED = ("contract", "declaration", "forbidden", "run")
_BESIDE = {"kernel-error": "kernel_error.py", "unknown-target": "unknown_target.py"}

_PROGRAM = '''\
"""Compile {what} to text."""

import sys
from pathlib import Path

FILES = {files!r}
HERE = Path(__file__).parent
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "/out")

for name, text in FILES.items():
    (HERE / name).parent.mkdir(parents=True, exist_ok=True)
    (HERE / name).write_text(text, encoding="utf-8")
sys.path.insert(0, str(HERE))

from release.check.kernels import run

{call}
'''


def write_cases(folder: Path, supplied: Supplied | None = None) -> Path:
    """Write ``cases.toml`` and its programs: one for each module of kernels, the refusals, and the supplied kernel."""
    programs = {module.replace("_", "-"): kernels_program(module) for module in MODULES}
    programs |= {name: (_HERE / "refusals" / file).read_text(encoding="utf-8") for name, file in _BESIDE.items()}
    if supplied:
        programs[OUTPUT] = supplied_program(supplied)
    entries = []
    for name, text in programs.items():
        file = f"{name.replace('-', '_')}.py"
        write_atomically(folder / file, text)
        entries.append(f'[[case]]\nname = "{name}"\nprogram = "{file}"\nlimit_seconds = {LIMIT_SECONDS}\n')
    write_atomically(folder / "cases.toml", "\n".join(entries))
    return folder


def kernels_program(*modules: str) -> str:
    """Return a program that compiles all kernels of some modules."""
    return _program(", ".join(modules), _files(modules), f"run.compile_modules({list(modules)!r}, OUT)")


def supplied_program(supplied: Supplied) -> str:
    """Return a program that compiles a supplied kernel."""
    files = {**_files(()), "supplied_kernel.py": supplied.source}
    files |= {f"{name}.py": text for name, text in supplied.companions.items()}
    call = f'run.compile_supplied("supplied_kernel", {supplied.function!r}, OUT)'
    return _program(f"a supplied kernel (SHA-256 {supplied.sha256})", files, call)


def _program(what: str, files: Mapping[str, str], call: str) -> str:
    return _PROGRAM.format(what=what, files=dict(files), call=call)


def _files(modules: tuple[str, ...]) -> dict[str, str]:
    # The packages above are the project's own and want its dependencies; here they are but names.
    files = {f"{package}/__init__.py": "" for package in ("release", "release/check", _PACKAGE, f"{_PACKAGE}/ours")}
    for name in (*_SHARED, *(f"ours/{module}" for module in modules)):
        files[f"{_PACKAGE}/{name}.py"] = (_HERE / f"{name}.py").read_text(encoding="utf-8")
    return files
