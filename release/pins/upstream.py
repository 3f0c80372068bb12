"""What a Triton tree and an LLVM tree say about themselves, read from their own files in every form these have had.

>>> tree = read_triton(Path("triton"))
>>> tree.version, tree.bindings, [pin.file for pin in tree.llvm]
('3.9.0', 'nanobind', ['cmake/llvm-info.json', 'cmake/amd-llvm-info.json'])
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from release.errors import WrongUsage

MAIN = "llvm"
"""The name of the LLVM that every Triton has; others bear the prefix of their file, such as ``amd``."""

# Until 2023-11-24, until 2026-05-28, and from then. Before 2023-10-31 the pin was a piece of setup.py.
_HASHES = ("llvm-hash.txt", "cmake/llvm-hash.txt")
_INFO = "llvm-info.json"
_VERSIONS = (("python/triton/__init__.py", "__version__"), ("setup.py", "TRITON_VERSION"))
_LLVM_VERSIONS = ("cmake/Modules/LLVMVersion.cmake", "llvm/CMakeLists.txt")


@dataclass(frozen=True, kw_only=True)
class UpstreamLLVM:
    """An LLVM that Triton's own build takes.

    ``file`` is where the tree says so. ``repository`` is an address, or None where the file names none and upstream
    takes llvm/llvm-project. ``build_number`` and ``sha256`` (by platform) are those of upstream's own builds of it.
    """

    name: str
    commit: str
    file: str
    repository: str | None = None
    build_number: int | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TritonTree:
    """A Triton tree: its Python package's version, what binds its C++ to Python, and the LLVMs it is made for."""

    path: Path
    version: str
    bindings: Literal["pybind11", "nanobind"]
    llvm: tuple[UpstreamLLVM, ...]


@dataclass(frozen=True, kw_only=True)
class LLVMTree:
    """An LLVM tree: its version with its suffix, such as ``23.0.0git``, and its commit where known."""

    path: Path
    version: str
    commit: str | None


def read_triton(path: Path) -> TritonTree:
    """Read a Triton tree. Raises WrongUsage for one that is laid out as no Triton we know."""
    return TritonTree(path=path, version=_version(path), bindings=_bindings(path), llvm=_llvm(path))


def read_llvm(path: Path, commit: str | None) -> LLVMTree:
    """Read an LLVM tree; ``commit`` is what its checkout is at. Raises WrongUsage for what is no LLVM tree."""
    for name in _LLVM_VERSIONS:
        text = _text(path / name)
        parts = {
            part: found[1]
            for part in ("MAJOR", "MINOR", "PATCH", "SUFFIX")
            if (found := re.search(rf'^\s*set\(LLVM_VERSION_{part}\s+"?([\w.+-]+)"?\)', text, re.MULTILINE))
        }
        if {"MAJOR", "MINOR", "PATCH"} <= parts.keys():
            numbers = ".".join(parts[part] for part in ("MAJOR", "MINOR", "PATCH"))
            return LLVMTree(path=path, version=numbers + parts.get("SUFFIX", ""), commit=commit)
    raise WrongUsage(
        f"{path} is no LLVM tree: neither {' nor '.join(_LLVM_VERSIONS)} says a version.",
        remedy="Name the folder that holds cmake, llvm, mlir and lld, of a checkout or an unpacked archive.",
    )


def _version(path: Path) -> str:
    for name, variable in _VERSIONS:
        if found := re.search(rf"""^{variable} = ["'](\d[\w.+]*)["']""", _text(path / name), re.MULTILINE):
            return found[1]
    raise _unknown(path, "no version of its Python package")


def _bindings(path: Path) -> Literal["pybind11", "nanobind"]:
    text = _text(path / "CMakeLists.txt")
    if re.search(r"find_package\(nanobind\b", text):
        return "nanobind"
    if re.search(r"find_package\(pybind11\b|\bPYBIND11_INCLUDE_DIR\b", text):
        return "pybind11"
    raise _unknown(path, "neither pybind11 nor nanobind in CMakeLists.txt")


def _llvm(path: Path) -> tuple[UpstreamLLVM, ...]:
    # *llvm-build-info.json is not among them: it is what upstream builds next, and no pin.
    infos = sorted((path / "cmake").glob(f"*{_INFO}"), key=lambda info: (info.name != _INFO, info.name))
    hashes = [path / name for name in _HASHES if (path / name).is_file()]
    found = [_from_hash(file, path) for file in hashes] + [_from_info(file, path) for file in infos]
    main = {pin.commit: pin.file for pin in found if pin.name == MAIN}
    if not main:
        raise _unknown(path, f"no LLVM pin ({', '.join(_HASHES)} or cmake/{_INFO})")
    if len(main) > 1:
        said = " and ".join(f"{commit} in {file}" for commit, file in main.items())
        raise WrongUsage(
            f"{path} names two commits for one LLVM: {said}.", remedy="Take a clean checkout of a commit of upstream."
        )
    # Where both forms agree the newer one says more.
    return tuple({pin.name: pin for pin in found}.values())


def _from_hash(file: Path, root: Path) -> UpstreamLLVM:
    name = file.relative_to(root).as_posix()
    return UpstreamLLVM(name=MAIN, commit=_commit(_text(file).strip(), file), file=name)


def _from_info(file: Path, root: Path) -> UpstreamLLVM:
    try:
        info: dict[str, Any] = json.loads(_text(file))
        # A backend's own LLVM has its archives under bootstrap_llvm: the digests beside the hash are its library's.
        archives = info.get("bootstrap_llvm", info)
        repository = info.get("repository")
        return UpstreamLLVM(
            name=file.name.removesuffix(_INFO).rstrip("-") or MAIN,
            commit=_commit(info["llvm_hash"], file),
            file=file.relative_to(root).as_posix(),
            repository=repository and f"https://github.com/{repository}",
            build_number=int(archives["build_number"]),
            sha256=dict(archives.get("sha256sum", {})),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WrongUsage(
            f"{file} is not of the form we know ({type(error).__name__}: {error}).",
            remedy="See what upstream changed there and teach release/pins/upstream.py.",
        ) from error


def _commit(text: object, file: Path) -> str:
    if isinstance(text, str) and re.fullmatch(r"[0-9a-f]{40}", text):
        return text
    raise WrongUsage(
        f"{file} holds {text!r} where a commit of 40 hex digits belongs.",
        remedy="Take a clean checkout of a commit of upstream.",
    )


def _unknown(path: Path, what: str) -> WrongUsage:
    return WrongUsage(
        f"{path} is laid out as no Triton tree we know: it has {what}.",
        remedy="Name the root of a Triton checkout; if upstream has changed, teach release/pins/upstream.py.",
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # not there: the caller knows what it means that it is not
