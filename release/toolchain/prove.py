"""Believing a tool only after it ran: versions as the tools print them, and a side module made from C++."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import sha256_of, write_atomically
from release.errors import BrokenEnvironment
from release.process import Completed
from release.toolchain.installation import Installation
from release.toolchain.model import Tool

_EMSCRIPTEN = re.compile(r"^emcc \(.*?\) (\S+)", re.MULTILINE)
_BINARYEN = re.compile(r"^wasm-opt version (\S+)", re.MULTILINE)
_REMEDY = "Repair the tools, or take them off PATH and out of EMSDK: the next provider is tried then."

# Exceptions, because they need the C++ runtime's headers, the linker's and Binaryen's support.
_PROOF = """\
#include <stdexcept>
#include <vector>
static_assert(sizeof(void *) == 4);
extern "C" int PyInit_proof(int number) {
    std::vector<int> numbers;
    try {
        if (number) throw std::runtime_error("proof");
    } catch (const std::exception &error) {
        numbers.push_back(error.what()[0]);
    }
    return numbers.size();
}
"""
_HEADERS = """\
#include <Python.h>
static_assert(sizeof(void *) == 4 && SIZEOF_VOID_P == 4 && SIZEOF_LONG == 4 && LONG_BIT == 32);
extern "C" PyObject *proof() { return PyLong_FromLong(PY_VERSION_HEX); }
"""
_COMPILE = ("-O2", "-fPIC", "-fwasm-exceptions")
_LINK = (*_COMPILE, "-sSIDE_MODULE=2", "-sEXPORTED_FUNCTIONS=_PyInit_proof", "-shared", "-Wl,--experimental-pic")


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What tools said and are. ``files`` make their output what it is; the first hundred stand for all of them."""

    emscripten: Tool
    binaryen: Tool
    files: tuple[Path, ...]


def versions(installation: Installation, bind: Sequence[Path]) -> tuple[str, str]:
    """Return the versions that em++ and wasm-opt print. Raises BrokenEnvironment when one does not run."""
    return (
        _version(installation.run(["em++", "--version"], bind=bind), _EMSCRIPTEN),
        _version(installation.run(["wasm-opt", "--version"], bind=bind), _BINARYEN),
    )


def prove_tools(installation: Installation, bind: Sequence[Path], work: Path) -> Proof:
    """Make a side module with the tools, then digest them. Raises BrokenEnvironment when they cannot make one."""
    emscripten, binaryen = versions(installation, bind)
    with tempfile.TemporaryDirectory(prefix=".proof.", suffix=".part", dir=work) as folder:
        source, compiled, linked = (Path(folder) / name for name in ("proof.cpp", "proof.o", "proof.wasm"))
        write_atomically(source, _PROOF)
        commands: tuple[tuple[tuple[str | Path, ...], Path], ...] = (
            (("em++", *_COMPILE, "-c", source, "-o", compiled), compiled),
            (("em++", *_LINK, compiled, "-o", linked), linked),
            (("wasm-opt", "--all-features", "-O1", linked, "-o", linked), linked),
        )
        for command, result in commands:
            completed = installation.run(command, bind=bind, timeout=600)
            if completed.returncode != 0 or not result.is_file():
                raise BrokenEnvironment(
                    f"{command[0]} of {installation.provider} prints its version but makes no side module:"
                    f" {_complaint(completed)}.",
                    remedy=_REMEDY,
                )
        if b"PyInit_proof" not in linked.read_bytes():
            raise BrokenEnvironment(
                f"em++ of {installation.provider} links a side module that lacks what it was told to export.",
                remedy=_REMEDY,
            )
    compiler = tuple(_compiler_files(installation, bind))
    optimiser = tuple(_program_files(installation, "wasm-opt", bind))
    return Proof(
        emscripten=Tool(name="emscripten", version=emscripten, digest=_digest(emscripten, compiler)),
        binaryen=Tool(name="binaryen", version=binaryen, digest=_digest(binaryen, optimiser)),
        files=(*optimiser, *compiler),
    )


def prove_headers(installation: Installation, include: Path, bind: Sequence[Path], work: Path) -> None:
    """Compile against ``Python.h`` for 32 bits. Raises BrokenEnvironment when that fails."""
    with tempfile.TemporaryDirectory(prefix=".proof.", suffix=".part", dir=work) as folder:
        source = Path(folder) / "headers.cpp"
        write_atomically(source, _HEADERS)
        flags = (*_COMPILE, f"-isystem{include}")
        completed = installation.run(["em++", *flags, "-c", source, "-o", source.with_suffix(".o")], bind=bind)
    if completed.returncode != 0:
        raise BrokenEnvironment(
            f"The Python headers in {include} do not compile for wasm32: {_complaint(completed)}.",
            remedy=f"Remove {include} to have it made again.",
        )


def _version(completed: Completed, pattern: re.Pattern[str]) -> str:
    found = pattern.search(completed.output)
    if completed.returncode != 0 or found is None:
        raise BrokenEnvironment(f"A tool does not say its version: {_complaint(completed)}.", remedy=_REMEDY)
    return found[1]


def _complaint(completed: Completed) -> str:
    lines = [line for line in completed.tail.splitlines() if "error" in line.lower()] or completed.tail.splitlines()
    return lines[0].strip().rstrip(".") if lines else completed.explain()


def _compiler_files(installation: Installation, bind: Sequence[Path]) -> Iterator[Path]:
    """Name the files behind em++: clang and wasm-ld first, then Emscripten's own."""
    # em-config answers for every layout: Debian's, emsdk's, or a checkout.
    said = {
        name: installation.run(["em-config", name], bind=bind).output.strip()
        for name in ("LLVM_ROOT", "CLANG_ADD_VERSION", "EMSCRIPTEN_ROOT")
    }
    suffix = f"-{said['CLANG_ADD_VERSION']}" if said["CLANG_ADD_VERSION"].isdigit() else ""
    for tool in ("clang", "wasm-ld"):
        yield from _program_files(installation, f"{said['LLVM_ROOT']}/{tool}{suffix}", bind)
    yield from _program_files(installation, "em++", bind)
    root = installation.on_this_machine(said["EMSCRIPTEN_ROOT"])
    if not (root / "emcc.py").is_file():
        return  # em++ is a script that calls another one somewhere else: all there is to see is the script
    for folder in (root, root / "tools", root / "src"):
        yield from sorted(path for path in folder.iterdir() if path.suffix in (".py", ".mjs", ".js", ".txt"))
    for part in ("src", "system", "third_party"):
        inner = (path for path in (root / part).rglob("*") if path.suffix != ".pyc")
        yield from sorted(path for path in inner if path.is_file() and path.parent != root / "src")


def _program_files(installation: Installation, program: str, bind: Sequence[Path]) -> Iterator[Path]:
    """Name a program's file and those of the libraries of LLVM and Binaryen that hold what it does."""
    located = installation.run(["sh", "-c", 'p=$(command -v "$0") && echo "=> $p" && ldd "$p"', program], bind=bind)
    for name in re.findall(r"=> (/.+?)(?: \(0x[0-9a-f]+\))?$", located.output, re.MULTILINE):
        if Path(name).name.startswith(("lib", "ld-")) and not re.search(r"lib(LLVM|clang|lld|binaryen)", name):
            continue  # the C library and its like are no part of what a compiler decides
        if (path := installation.on_this_machine(name)).is_file():
            yield path


def _digest(version: str, files: Sequence[Path]) -> str:
    total = hashlib.sha256(version.encode())
    for path in files:
        total.update(f"{path.name}\0{sha256_of(path)}\n".encode())
    return total.hexdigest()
