"""Which of LLVM's libraries Triton's link needs: those its CMake files name, and all that these need.

Building just them is a third less work than building everything, and a smaller cache.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from release.errors import Finding, WrongUsage

_NAME = re.compile(r"\b(?:MLIR|LLVM|lld)[A-Z]\w*\b")
_LISTS = ("CMakeLists.txt", "lib", "third_party", "python")
_EXPORTS = (
    "lib/cmake/llvm/LLVMExports.cmake",
    "lib/cmake/mlir/MLIRTargets.cmake",
    "lib/cmake/lld/LLDTargets.cmake",
)


def roots(triton: Path, llvm: Path, targets: Sequence[str]) -> tuple[str, ...]:
    """Return the names in Triton's CMake files that may be libraries of LLVM, sorted.

    Some are Triton's own: whoever follows them meets no such library and passes by. Libraries of targets that are not
    among ``targets`` are left out: Triton names those of its usual hosts. Raises WrongUsage when there are none.
    """
    others = {path.name for path in (llvm / "llvm" / "lib" / "Target").glob("*/")} - set(targets)
    foreign = tuple(f"LLVM{target}" for target in others)
    files = [file for name in _LISTS for file in _cmake_lists(triton / name)]
    names = {name for file in files for name in _NAME.findall(_without_comments(file)) if "_" not in name}
    if found := sorted(name for name in names if not name.startswith(foreign)):
        return tuple(found)
    raise WrongUsage(
        f"No CMake file in {triton} names a library of LLVM.", remedy="Name the root of a Triton tree in TRITON_ROOT."
    )


def closure(build: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Return the libraries among ``names`` and all that these link, sorted.

    It reads what CMake exports from the build tree ``build``, which is there as soon as that is configured. Raises
    Finding when LLVM has none of them.
    """
    needs = _needs(build)
    found: set[str] = set()
    pending = [name for name in names if name in needs]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += [other for other in needs[name] if other in needs]
    if found:
        return tuple(sorted(found))
    raise Finding(
        f"LLVM has none of the {len(names)} libraries that Triton's CMake files name, {names[0]} for one.",
        remedy="See whether the two trees belong together: `triton-wasm sources` says so.",
    )


def _needs(build: Path) -> dict[str, list[str]]:
    needs: dict[str, list[str]] = {}
    for file in _EXPORTS:
        if not (build / file).is_file():
            continue  # the profile leaves that project out
        text = (build / file).read_text()
        for name in re.findall(r"^add_library\((\S+) \w+ IMPORTED", text, re.MULTILINE):
            needs.setdefault(name, [])
        for name, properties in re.findall(r"^set_target_properties\((\S+) PROPERTIES\n(.*?)\n\)", text, re.M | re.S):
            if name in needs and (links := re.search(r'INTERFACE_LINK_LIBRARIES "([^"]*)"', properties)):
                needs[name] = [re.sub(r"^\\\$<LINK_ONLY:(.*)>$", r"\1", link) for link in links[1].split(";")]
    return needs


def _cmake_lists(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("CMakeLists.txt"))


def _without_comments(file: Path) -> str:
    return re.sub(r"#.*", "", file.read_text(encoding="utf-8", errors="replace"))
