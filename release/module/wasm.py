"""Reading a WebAssembly module: what its sections say, without running it.

The bytes are parsed by Emscripten's own reader, as auditwheel-emscripten carries it; here it gets types, strictness at
the ends of sections, and one sentence for whatever a broken file makes it raise.

>>> read_wasm(Path("libtriton.so")).dylink.memory_size  # doctest: +SKIP
26143208
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Literal

from auditwheel_emscripten.emscripten_tools import webassembly as emscripten

from release.errors import WrongUsage

type Kind = Literal["func", "table", "memory", "global", "tag"]
"""What an import or an export is."""

_WEAK = 1
_BINDING = 3
_SHARED = 2
_HEADER = b"\0asm\1\0\0\0"


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section by its kind (``code``, ``data``, ...; ``custom:NAME``) and the bytes of the file its content fills."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Dylink:
    """The ``dylink.0`` section: sizes in bytes and table slots, alignments as powers of two.

    ``weak_imports`` are (module, name) pairs that the dynamic linker may leave unresolved.
    """

    memory_size: int
    memory_align: int
    table_size: int
    table_align: int
    needed: tuple[str, ...]
    runtime_paths: tuple[str, ...]
    weak_imports: frozenset[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The size of a memory (pages of 64 KiB) or a table (slots); ``maximum`` is None where there is none."""

    minimum: int
    maximum: int | None
    shared: bool


@dataclass(frozen=True, kw_only=True)
class Import:
    """An import; memories and tables have ``limits``, functions a ``signature`` such as ``(i32, i64) -> (i32)``."""

    module: str
    name: str
    kind: Kind
    limits: Limits | None = None
    signature: str | None = None

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, kw_only=True)
class Export:
    """An export; functions have a ``signature`` such as ``(i32, i64) -> (i32)``."""

    name: str
    kind: Kind
    signature: str | None = None


@dataclass(frozen=True, kw_only=True)
class WasmModule:
    """What a wasm file is made of.

    ``sections`` are in the order of the file. ``dylink`` is None unless ``dylink.0`` comes first, which is the only
    place where a dynamic linker looks for it. ``memories`` are those the module defines itself, beside imported ones.
    ``target_features`` keep their prefix, as in ``+atomics``. ``body_sizes`` are bytes, local declarations included, in
    the order of the code section; ``data_bytes`` is what the data segments hold together.
    """

    path: Path
    size: int
    sections: tuple[Section, ...]
    dylink: Dylink | None
    imports: tuple[Import, ...]
    exports: tuple[Export, ...]
    memories: tuple[Limits, ...]
    target_features: tuple[str, ...]
    body_sizes: tuple[int, ...]
    data_bytes: int

    def section(self, name: str) -> Section | None:
        """Return the first section called ``name``."""
        return next((section for section in self.sections if section.name == name), None)

    @property
    def largest_body(self) -> tuple[int, int] | None:
        """The largest function as (index, bytes); the index counts imported functions first, as engines do."""
        if not self.body_sizes:
            return None
        size = max(self.body_sizes)
        return self.body_sizes.index(size) + sum(each.kind == "func" for each in self.imports), size


def read_wasm(path: Path) -> WasmModule:
    """Read the wasm file ``path``; 90 MB with 120,000 functions take about a second.

    Raises WrongUsage for a file that does not exist, is not a core wasm module, is cut short or does not hold together.
    A file cut exactly between two sections can only be told by what it lacks: that is for the audit to find.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            header = file.read(len(_HEADER))
    except OSError as error:
        raise WrongUsage(f"Cannot read {path}: {error.strerror}.", remedy="Give the path of a wasm file.") from error
    if header != _HEADER:
        raise WrongUsage(
            f"{path} is not a WebAssembly module: it begins with {header!r}, not with {_HEADER!r}.",
            remedy="Give the side module itself, not an archive or a page that was served in its place.",
        )
    open_module: Callable[[str], Any] = emscripten.Module  # it has no annotations
    with open_module(str(path)) as reader:
        sections = _read_sections(reader, path, size)
        return _Contents(reader, path, sections).read(size)


def _read_sections(reader: Any, path: Path, size: int) -> tuple[Section, ...]:
    sections: list[Section] = []
    with _complaining(path, "list of sections"):
        for each in reader.sections():
            kind = each.type.name.lower()
            section = Section(
                name=f"custom:{each.name}" if kind == "custom" else kind, start=each.offset, end=each.offset + each.size
            )
            if section.end > size:
                raise WrongUsage(
                    f"{path} is cut short: its {section.name} section ends at byte {section.end:,} of {size:,}.",
                    remedy="Link it or fetch it again.",
                )
            if reader.tell() > section.end:
                raise _damaged(path, "list of sections", f"the name of section {len(sections)} runs over its end")
            sections.append(section)
    return tuple(sections)


class _Contents:
    """Reads the contents of one module section by section; each must end where its header says."""

    def __init__(self, reader: Any, path: Path, sections: tuple[Section, ...]) -> None:
        self._reader, self._path, self._sections = reader, path, sections

    def read(self, size: int) -> WasmModule:
        dylink = None
        if self._sections and self._sections[0].name == "custom:dylink.0":
            dylink = self._content("custom:dylink.0", self._dylink)
        types = self._types()
        function_types = self._content("function", self._reader.get_function_types, [])
        imports: list[Import] = self._content("import", lambda: self._imports(types), [])
        signatures = [each.signature for each in imports if each.kind == "func"]
        with _complaining(self._path, "function section"):
            signatures += [_signature(types, index) for index in function_types]
        bodies = self._content("code", self._reader.get_functions, [])
        segments = self._content("data", self._reader.get_segments, [])
        return WasmModule(
            path=self._path,
            size=size,
            sections=self._sections,
            dylink=dylink,
            imports=tuple(imports),
            exports=self._content("export", lambda: self._exports(signatures), ()),
            memories=self._content("memory", self._memories, ()),
            target_features=self._content("custom:target_features", self._target_features, ()),
            body_sizes=tuple(body.size for body in bodies),
            data_bytes=sum(segment.size for segment in segments),
        )

    def _content(self, name: str, parse: Callable[[], Any], default: Any = None) -> Any:
        section = next((each for each in self._sections if each.name == name), None)
        if section is None:
            return default
        with _complaining(self._path, f"{name} section"):
            self._reader.seek(section.start)
            content = parse()
            stopped = self._reader.tell()
        if stopped != section.end:
            raise _damaged(
                self._path, f"{name} section", f"its content ends at byte {stopped:,}, its header says {section.end:,}"
            )
        return content

    def _types(self) -> list[Any] | None:
        # Types of the GC proposal are beyond this reader. Functions then have no signature here, and a type section
        # that is no good at all is for V8 to refuse.
        try:
            types: list[Any] = self._reader.get_types()
        except Exception:
            return None
        return types

    def _dylink(self) -> Dylink:
        with redirect_stdout(StringIO()):  # it prints the subsections it does not know, and ours is for results
            dylink = self._reader.parse_dylink_section()
        return Dylink(
            memory_size=dylink.mem_size,
            memory_align=dylink.mem_align,
            table_size=dylink.table_size,
            table_align=dylink.table_align,
            needed=tuple(dylink.needed),
            runtime_paths=tuple(dylink.runtime_paths),
            weak_imports=frozenset(
                (module, name)
                for module, names in dylink.import_info.items()
                for name, flags in names.items()
                if flags & _BINDING == _WEAK
            ),
        )

    def _imports(self, types: list[Any] | None) -> list[Import]:
        # The reader's own get_imports drops the limits, and with them whether a memory is shared.
        imports = []
        for _ in range(self._reader.read_uleb()):
            module, name = self._reader.read_string(), self._reader.read_string()
            kind = _kind(self._reader.read_byte())
            limits, signature = None, None
            match kind:
                case "func":
                    signature = _signature(types, self._reader.read_uleb())
                case "table":
                    self._reader.read_sleb()
                    limits = self._limits()
                case "memory":
                    limits = self._limits()
                case "global":
                    self._reader.read_sleb()
                    self._reader.read_byte()
                case "tag":
                    self._reader.read_byte()
                    self._reader.read_uleb()
            imports.append(Import(module=module, name=name, kind=kind, limits=limits, signature=signature))
        return imports

    def _exports(self, signatures: list[str | None]) -> tuple[Export, ...]:
        return tuple(
            Export(
                name=each.name,
                kind=_kind(each.kind),
                signature=signatures[each.index] if _kind(each.kind) == "func" else None,
            )
            for each in self._reader.get_exports()
        )

    def _memories(self) -> tuple[Limits, ...]:
        return tuple(self._limits() for _ in range(self._reader.read_uleb()))

    def _limits(self) -> Limits:
        flags, minimum, maximum = self._reader.read_limits()
        return Limits(
            minimum=minimum,
            maximum=maximum if flags & emscripten.LIMITS_HAS_MAX else None,
            shared=bool(flags & _SHARED),
        )

    def _target_features(self) -> tuple[str, ...]:
        return tuple(f"{chr(prefix)}{name}" for name, prefix in self._reader.get_target_features().items())


def _kind(number: int) -> Kind:
    kinds: tuple[Kind, ...] = ("func", "table", "memory", "global", "tag")
    return kinds[number]


def _signature(types: list[Any] | None, index: int) -> str | None:
    if types is None:
        return None
    params, returns = (", ".join(each.name.lower() for each in part) for part in types[index])
    return f"({params}) -> ({returns})"


@contextmanager
def _complaining(path: Path, part: str) -> Iterator[None]:
    """Turn whatever the reader raises for damaged bytes into one sentence."""
    try:
        yield
    except (WrongUsage, MemoryError):
        raise
    except EOFError as error:
        raise _damaged(path, part, "it goes on beyond the end of the file") from error
    except Exception as error:
        raise _damaged(path, part, f"{type(error).__name__} {error}".strip()) from error


def _damaged(path: Path, part: str, reason: str) -> WrongUsage:
    return WrongUsage(f"{path} has a damaged {part}: {reason}.", remedy="Link it or fetch it again.")
