"""Trees with just the files that say what a tree is."""

import ast
import json
from collections.abc import Mapping
from pathlib import Path

from release.package.layer import PYTHON
from release.pins.load import load_pins

PREVIEW_LLVM = "0729a74e66aeeb7a9839d80bfd64fc49b2e69f52"
PYBIND11 = "find_package(pybind11 CONFIG REQUIRED)\n"
NANOBIND = "find_package(nanobind CONFIG REQUIRED)\n"


def lay(root: Path, files: Mapping[str, object]) -> Path:
    """Write files below ``root``; what is not text becomes JSON."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2) + "\n")
    return root


def triton(root: Path, more: Mapping[str, object] | None = None, *, llvm: str = PREVIEW_LLVM) -> Path:
    """A Triton of the kind that the preview pins name, with ``more`` files."""
    return lay(
        root,
        {
            "python/triton/__init__.py": "__version__ = '3.6.0'\n",
            "CMakeLists.txt": PYBIND11,
            "cmake/llvm-hash.txt": f"{llvm}\n",
            **(more or {}),
        },
    )


def what_the_layer_imports() -> dict[str, str]:
    """The Python files of a Triton that has every name which the compile-only layer imports, and nothing else."""
    texts: dict[str, str] = {}
    for path in sorted(PYTHON.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or node.level or not (node.module or "").startswith("triton"):
                continue
            parts = (node.module or "").split(".")[1:]
            inside = parts[:1] == ["backends"] and parts[1:2] in (["amd"], ["nvidia"])
            folder = f"third_party/{parts[1]}/backend" if inside else "python/triton"
            name = "/".join([folder, *(parts[2:] if inside else parts)])
            for alias in node.names:
                texts[f"{name}/__init__.py"] = texts.get(f"{name}/__init__.py", "") + f"{alias.name} = None\n"
    # What says the version is there already.
    texts["python/triton/__init__.py"] = texts.get("python/triton/__init__.py", "") + "__version__ = '3.6.0'\n"
    return texts


def llvm(root: Path, *version: object) -> Path:
    """An LLVM of version ``22, 1, 8`` or ``23, 0, 0, "git"``."""
    names = ("MAJOR", "MINOR", "PATCH", "SUFFIX")
    lines = [f"  set(LLVM_VERSION_{name} {part})\n" for name, part in zip(names, version, strict=False)]
    return lay(root, {"cmake/Modules/LLVMVersion.cmake": "".join(lines), "llvm/CMakeLists.txt": "project(LLVM)\n"})


def preview(folder: Path) -> dict[str, str]:
    """Trees of the preview pins, in which each text of a fix-up stands once; returns the variables that name them."""
    root = triton(folder / "triton")
    texts: dict[str, str] = {}
    for fixup in load_pins("preview").fixups:
        texts[fixup.file] = texts.get(fixup.file, "") + "\n".join(edit.old for edit in fixup.edits)
    lay(root, texts)
    return {"TRITON_ROOT": str(root), "LLVM_ROOT": str(llvm(folder / "llvm", 22, 1, 8))}
