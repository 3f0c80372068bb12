"""Tools that say or do something else than the real ones, and an address where nobody answers."""

from pathlib import Path

CLOSED = "http://127.0.0.1:9"


def write_tool(path: Path, *lines: str) -> Path:
    """Write a shell script under the name of a tool."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def says(path: Path, version: str) -> None:
    """Let a tool that was written before print another version and be the same otherwise."""
    first = {
        "em++": f"emcc (Emscripten gcc/clang-like replacement + linker emulating GNU ld) {version} ()",
        "wasm-opt": f"wasm-opt version {version}",
    }[path.name]
    rest = path.read_text().splitlines()[1:]
    write_tool(path, f'if [ "$1" = --version ]; then echo {first!r}; exit; fi', *rest)
