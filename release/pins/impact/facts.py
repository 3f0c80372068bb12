"""What a Triton tree says that a build or the compile-only layer depends on."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import sha256_of
from release.pins.upstream import TritonTree, read_triton

_LIBRARIES = re.compile(r"^\s*add_triton_(?:object|library|plugin)\(\s*([A-Za-z]\w*)", re.MULTILINE)
_OPTIONS = re.compile(r"^\s*(?:option\(\s*([A-Z]\w*)|set\(\s*([A-Z]\w*)[^)]*\bCACHE\b)", re.MULTILINE)
_PTX = re.compile(r"llvm_ptx_version = min\((\d+), ptx_version\)")
_BACKENDS = ("nvidia", "amd")


@dataclass(frozen=True, kw_only=True)
class TreeFacts:
    """A Triton tree, without its history.

    ``options`` are the options and cache variables of its CMakeLists.txt, ``libraries`` its CMake targets, ``bitcode``
    the SHA-256 of each device library by its path, ``tools`` NVIDIA's tools with their versions, ``ptx`` the newest PTX
    that it lets LLVM write (86 is 8.6), or None where it does not say.
    """

    tree: TritonTree
    options: frozenset[str]
    libraries: frozenset[str]
    bitcode: Mapping[str, str]
    tools: Mapping[str, str]
    ptx: int | None


def read_facts(root: Path) -> TreeFacts:
    """Read a tree. Raises WrongUsage for one that is laid out as no Triton we know."""
    tree = read_triton(root)
    cmake = [_text(path) for path in sorted(root.rglob("CMakeLists.txt"))]
    compiler = _PTX.search(_text(root / "third_party" / "nvidia" / "backend" / "compiler.py"))
    return TreeFacts(
        tree=tree,
        options=frozenset(a or b for a, b in _OPTIONS.findall(_text(root / "CMakeLists.txt"))),
        libraries=frozenset(name for text in cmake for name in _LIBRARIES.findall(text)),
        bitcode={
            path.relative_to(root).as_posix(): sha256_of(path)
            for backend in _BACKENDS
            for path in sorted((root / "third_party" / backend / "backend" / "lib").glob("*.bc"))
        },
        tools=_tools(root),
        ptx=int(compiler[1]) if compiler else None,
    )


def missing_names(root: Path, layer: Path) -> tuple[str, ...]:
    """Name what the Python files below ``layer`` import from Triton and ``root`` has not."""
    wanted = sorted({name for path in sorted(layer.rglob("*.py")) for name in _imports(path)})
    return tuple(f"{module}.{name}" for module, name in wanted if not _has(root, module, name))


def _imports(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(_text(path))):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "triton":
            for alias in node.names:
                yield node.module or "", alias.name


def _has(root: Path, module: str, name: str) -> bool:
    parts = module.split(".")[1:]
    if parts[:1] == ["_C"]:
        return True  # a name of the C++ side; whether it is there shows when it is built
    if parts[:1] == ["backends"] and len(parts) > 1 and parts[1] in _BACKENDS:
        place = root.joinpath("third_party", parts[1], "backend", *parts[2:])
    else:
        place = root.joinpath("python", "triton", *parts)
    if (place / f"{name}.py").is_file() or (place / name / "__init__.py").is_file():
        return True
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return name in _defined(path)
    return False


def _defined(path: Path) -> set[str]:
    """Return the names that a module defines or imports at its top level, also within ``if`` and ``try``."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(_text(path))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def _tools(root: Path) -> dict[str, str]:
    text = _text(root / "cmake" / "nvidia-toolchain-version.json")
    try:
        return {str(name): str(version) for name, version in json.loads(text or "{}").items()}
    except (ValueError, AttributeError):
        return {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
