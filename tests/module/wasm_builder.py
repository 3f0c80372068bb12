"""Side modules written byte by byte, so that each rule can be broken on purpose by one module.

``Side()`` keeps every rule of the audit; ``dataclasses.replace`` breaks one. It is also a real side module: Pyodide
loads it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

HEADER = b"\0asm\1\0\0\0"

I32 = b"\x7f"
I64 = b"\x7e"
NOTHING_TO_I32, TWO_I32_TO_I32, I32_TO_NOTHING, NOTHING = range(4)
TYPES = (
    b"\x60\0\1" + I32,
    b"\x60\2" + I32 + I32 + b"\1" + I32,
    b"\x60\1" + I32 + b"\0",
    b"\x60\0\0",
)


def uleb(number: int) -> bytes:
    encoded = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        encoded.append(low | (0x80 if number else 0))
        if not number:
            return bytes(encoded)


def sized(content: bytes) -> bytes:
    return uleb(len(content)) + content


def name(text: str) -> bytes:
    return sized(text.encode())


def vector(items: Sequence[bytes]) -> bytes:
    return uleb(len(items)) + b"".join(items)


def section(number: int, content: bytes) -> bytes:
    return bytes([number]) + sized(content)


def custom(title: str, content: bytes) -> bytes:
    return section(0, name(title) + content)


def dylink(
    memory: int = 64,
    memory_align: int = 4,
    table: int = 0,
    table_align: int = 0,
    needed: Sequence[str] = (),
    weak: Sequence[tuple[str, str]] = (),
    rpath: Sequence[str] = (),
) -> bytes:
    content = b"\1" + sized(b"".join(map(uleb, (memory, memory_align, table, table_align))))
    if needed:
        content += b"\2" + sized(vector([name(each) for each in needed]))
    if weak:
        content += b"\4" + sized(vector([name(module) + name(symbol) + b"\1" for module, symbol in weak]))
    if rpath:
        content += b"\5" + sized(vector([name(each) for each in rpath]))
    return custom("dylink.0", content)


def func_import(module: str, symbol: str, type_index: int) -> bytes:
    return name(module) + name(symbol) + b"\0" + uleb(type_index)


def global_import(module: str, symbol: str, *, mutable: bool) -> bytes:
    return name(module) + name(symbol) + b"\3" + I32 + bytes([mutable])


def memory_import(limits: bytes = b"\0\1") -> bytes:
    return name("env") + name("memory") + b"\2" + limits


TABLE_IMPORT = name("env") + name("__indirect_function_table") + b"\1\x70\0\0"
TAG_IMPORT = name("env") + name("__cpp_exception") + b"\4\0" + uleb(I32_TO_NOTHING)
MEMORY_BASE = global_import("env", "__memory_base", mutable=False)
TABLE_BASE = global_import("env", "__table_base", mutable=False)


def func_export(symbol: str, index: int) -> bytes:
    return name(symbol) + b"\0" + uleb(index)


def body(code: bytes) -> bytes:
    return sized(b"\0" + code + b"\x0b")


I32_CONST_0 = b"\x41\0"
# try (result i32) call PyErr_Occurred catch_all i32.const 0 end
LEGACY_TRY = b"\x06\x7f\x10\0\x19" + I32_CONST_0 + b"\x0b"
# try_table (result i32) i32.const 0 end
TRY_TABLE = b"\x1f\x7f\0" + I32_CONST_0 + b"\x0b"


@dataclass(frozen=True, kw_only=True)
class Side:
    """A side module by its sections; each item of a tuple is the encoded entry of its vector."""

    before: bytes = b""
    dylink: bytes = dylink()
    imports: tuple[bytes, ...] = (
        memory_import(),
        TABLE_IMPORT,
        global_import("env", "__stack_pointer", mutable=True),
        MEMORY_BASE,
        TABLE_BASE,
        func_import("env", "PyErr_Occurred", NOTHING_TO_I32),
        func_import("env", "PyErr_SetString", 4),
        global_import("GOT.mem", "PyExc_ImportError", mutable=True),
        global_import("GOT.func", "free", mutable=True),
        TAG_IMPORT,
    )
    types: tuple[bytes, ...] = (*TYPES, b"\x60\2" + I32 + I32 + b"\0")
    function_types: tuple[int, ...] = (NOTHING_TO_I32, NOTHING, NOTHING)
    memories: tuple[bytes, ...] = ()
    exports: tuple[bytes, ...] = (
        func_export("PyInit_sample", 2),
        func_export("__wasm_call_ctors", 3),
        func_export("__wasm_apply_data_relocs", 4),
    )
    bodies: tuple[bytes, ...] = (body(LEGACY_TRY), body(b""), body(b""))
    data: bytes = b"hello from a side module\0"
    features: tuple[str, ...] = ("+mutable-globals", "+exception-handling")
    after: bytes = b""

    def sections(self) -> tuple[bytes, ...]:
        """Return the sections in the order of the file; empty ones are left out."""
        return tuple(
            filter(
                None,
                (
                    self.before,
                    self.dylink,
                    section(1, vector(self.types)),
                    section(2, vector(self.imports)),
                    section(3, vector([uleb(each) for each in self.function_types])),
                    section(5, vector(self.memories)) if self.memories else b"",
                    section(7, vector(self.exports)),
                    section(10, vector(self.bodies)),
                    # One active segment at __memory_base, the second of the imported globals.
                    section(11, vector([b"\0\x23\1\x0b" + sized(self.data)])) if self.data else b"",
                    custom("target_features", vector([each[0].encode() + name(each[1:]) for each in self.features]))
                    if self.features
                    else b"",
                    self.after,
                ),
            )
        )

    def encode(self) -> bytes:
        """Return the whole file."""
        return HEADER + b"".join(self.sections())

    def importing(self, *imports: bytes) -> Side:
        """Return this module with more imports; functions must not be among them, they would shift all indices."""
        return dataclasses.replace(self, imports=(*self.imports, *imports))

    def calling(self, *imports: bytes) -> Side:
        """Return this module with more imported functions, and the exports' indices moved up by as many."""
        moved = tuple(each[:-1] + bytes([each[-1] + len(imports)]) for each in self.exports)
        return dataclasses.replace(self, imports=(*self.imports, *imports), exports=moved)
