"""Archives made by hand: a good one to begin with, and whatever a test puts in besides."""

import struct
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

MODULE = "exprc/_exprc.cpython-315-wasm32-emscripten.so"
SIDE_MODULE = b"\0asm\x01\0\0\0" + b"\0\x0f\x08dylink.0" + b"\x01\x04\0\0\0\0"
"""WebAssembly that says it is a side module and nothing more."""

GOOD: dict[str, bytes] = {
    "exprc/__init__.py": b"from exprc._exprc import compile\n",
    MODULE: SIDE_MODULE,
    "exprc-1.0.0.dist-info/METADATA": b"Metadata-Version: 2.4\nName: exprc\nVersion: 1.0.0\n",
    "exprc-1.0.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: cp315-cp315-pyemscripten_2026_5_wasm32\n",
    "exprc-1.0.0.dist-info/RECORD": b"",
}


def elf(machine: int, *, big_endian: bool = False) -> bytes:
    """The first bytes of a 64-bit ELF file for a machine."""
    order = ">" if big_endian else "<"
    ident = b"\x7fELF" + bytes([2, 2 if big_endian else 1, 1]) + bytes(9)
    return ident + struct.pack(f"{order}HHI", 2, machine, 1) + bytes(40)


def archive(path: Path, extra: dict[str, bytes] | None = None, *, without: str = "") -> Path:
    """Write the good archive with ``extra`` files and without one."""
    with ZipFile(path, "w", ZIP_DEFLATED) as target:
        for name, content in (GOOD | (extra or {})).items():
            if name != without:
                add(target, name, content)
    return path


def add(target: ZipFile, name: str, content: bytes = b"", *, mode: int = 0o100644) -> None:
    entry = ZipInfo(name)
    entry.external_attr = mode << 16
    entry.compress_type = ZIP_DEFLATED
    target.writestr(entry, content)
