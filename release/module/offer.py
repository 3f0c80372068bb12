"""What the pinned Pyodide offers a side module: exports of its wasm, and functions of its JavaScript."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path

from release.errors import WrongUsage
from release.module.wasm import Import, Kind, read_wasm


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What Pyodide's main module offers a side module: kinds by name, and the signatures of its wasm functions."""

    version: str
    kinds: dict[str, Kind]
    signatures: dict[str, str]


@functools.cache
def read_offer(folder: Path) -> Offer:
    """Read the unpacked npm package in ``folder``. Raises WrongUsage when that is no Pyodide."""
    try:
        version = str(json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"])
        glue = next(path for path in (folder / "pyodide.asm.mjs", folder / "pyodide.asm.js") if path.is_file())
        script = glue.read_text(encoding="utf-8")
    except (OSError, ValueError, LookupError, TypeError, StopIteration) as error:
        raise WrongUsage(
            f"{folder} does not hold Pyodide as npm has it: package.json with a version and pyodide.asm.mjs or .js.",
            remedy="Run `triton-wasm toolchain`, or unpack the npm package `pyodide`.",
        ) from error
    table = re.search(r"\bwasmImports\s*=\s*\{([^{}]*)\}", script)
    if table is None:
        raise WrongUsage(
            f"{glue} has no table `wasmImports`, where Emscripten lists what JavaScript offers to side modules.",
            remedy="Teach release/module/offer.py where this Pyodide has it.",
        )
    main = read_wasm(folder / "pyodide.asm.wasm")
    offered: dict[str, Kind] = {entry.split(":")[0].strip(" \n\"'"): "func" for entry in table[1].split(",")}
    exported: dict[str, Kind] = {each.name: each.kind for each in main.exports}
    return Offer(
        version=version,
        kinds=offered | exported,
        # What is in both is taken from JavaScript: mergeLibSymbols leaves a name alone that is defined.
        signatures={
            each.name: each.signature
            for each in main.exports
            if each.signature is not None and each.name not in offered
        },
    )


def is_provided(wanted: Import, kinds: dict[str, Kind]) -> bool:
    """Say whether the dynamic linker finds an import; ``getWasmImports`` in Pyodide's glue has the module names."""
    match wanted.module:
        case "env" | "wasi_snapshot_preview1":
            return (wanted.kind == "global" and wanted.name in _BASES) or kinds.get(wanted.name) == wanted.kind
        case "GOT.func":
            return wanted.kind == "global" and kinds.get(wanted.name) == "func"
        case "GOT.mem":
            return wanted.kind == "global" and kinds.get(wanted.name) == "global"
        case _:
            return False


_BASES = frozenset({"__memory_base", "__table_base"})
