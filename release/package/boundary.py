"""What a package may not hold: anything native, anything for a GPU, anything that is not its own.

The package is compile-only: Python, one side module, and the device libraries that the compiler links as bitcode.
Everything is judged by what it *is* (its first bytes, and what hides further in), then by what it is called.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

DEVICE_LIBRARIES = frozenset({"libdevice.10.bc", "ocml.bc", "ockl.bc", "asanrtl.bc"})
"""The LLVM bitcode that Triton's backends link into kernels: data of the compiler, and the only bitcode allowed."""

MAXIMUM_ENTRIES, MAXIMUM_INFLATED = 20_000, 500_000_000
"""What a package may have: files, and bytes when it is unpacked; Triton's has 124 and 87,000,000."""

_HEAD = 4096
_CHUNK = 1 << 20
_END_RECORD = 22

_SIDE_MODULE = re.compile(rb"\0asm\x01\0\0\0\0.{1,5}?\x08dylink\.0", re.DOTALL)
_BITCODE = re.compile(rb"BC\xc0\xde|\xde\xc0\x17\x0b")
_EM_CUDA, _EM_AMDGPU = 190, 224

_ELF = "a native object (ELF)"
_KINDS = tuple(
    (re.compile(pattern, re.DOTALL), kind)
    for pattern, kind in (
        (rb"!<(arch|thin)>\n", "a static library"),
        (rb"\x7fELF", _ELF),
        (rb"\xfe\xed\xfa[\xce\xcf]|[\xce\xcf]\xfa\xed\xfe|\xca\xfe\xba[\xbe\xbf]", "a native object (Mach-O)"),
        (rb"MZ.*PE\0\0", "a native object (PE)"),
        (rb"\x50\xed\x55\xba|\xb1\x43\x62\x46|\x46\x62\x43\xb1", "a CUDA fat binary"),
        (rb"__CLANG_OFFLOAD_BUNDLE__|CCOB|\x10\xff\x10\xad", "a bundle of GPU code (clang offload)"),
        (rb"\x03\x02\x23\x07|MTLB|DXBC", "GPU code (SPIR-V, Metal or DXIL)"),
        (rb"PK\x03\x04|PK\x05\x06|\x1f\x8b|BZh\d1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c", "an archive"),
        (rb".{257}ustar", "an archive"),
        (rb"version https://git-lfs\.github\.com/", "a Git LFS pointer instead of the file"),
    )
)

# Searched for in the whole of every file. Long enough that LLVM's own code, which writes and compares ELF headers in
# many places, does not match: tried on the 461 MB libtriton.so of Triton 3.7.1, which holds just one, its own.
_HIDDEN = re.compile(
    rb"\x7fELF[\x01\x02](?P<order>[\x01\x02])\x01.{11}(?P<machine>..)"
    rb"|(?P<fatbin>\x50\xed\x55\xba\x01\0\x10\0)"
    rb"|(?P<key>-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----)",
    re.DOTALL,
)
_LONGEST_HIDDEN = 64

_NAMES = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (
            r"(lib(cu(da|pti|blas|dnn|fft|sparse|solver|rand)|nv(rtc|vm|ml|perf|jitlink|ptx|idia)|amdhip|amd_comgr|amdocl"
            r"|hip|hsa|roc(m|r|prof|tracer|blas|tx))|nvcuda|nvrtc|amdhip).*(?<!\.py)(?<!\.pyi)",
            "a GPU runtime",
        ),
        (
            r"(ptxas|nvdisasm|cuobjdump|fatbinary|nvlink|nvprune|nvcc|cicc|cudafe\+\+|hipcc|hipconfig|amdclang(\+\+)?"
            r"|filecheck|lld|ld|ld\.lld|ld64\.lld|lld-link|wasm-ld|llc|opt|clang(\+\+)?|llvm-(mc|objcopy|objdump|tblgen)"
            r"|mlir-(opt|translate|tblgen)|triton-(opt|reduce|llvm-opt|lsp|tensor-layout))(-\w+)?(\.exe)?",
            "a tool of a compiler or a GPU",
        ),
        (r".*\.(a|la|lib)", "a static library"),
        (r".*\.(o|obj|dll|dylib|pyd|exe)", "a native object"),
        (r".*\.(cubin|fatbin|hsaco|hsasl|co|spv|metallib)", "GPU code"),
        (r".*\.(c|cc|cpp|cxx|cu|cuh|hip|h|hh|hpp|hxx|inl)", "C, C++, CUDA or HIP source"),
        (r".*\.pth", "a .pth file, which Python runs at every start"),
        (r".*(\.py[co]|~|\.orig|\.rej|\.bak|\.swp)", "a left-over"),
        (r"\..*", "a hidden file"),
        (r"(id_(rsa|dsa|ecdsa|ed25519)|.*\.(pem|p12|pfx|key))", "a key or certificate by its name"),
    )
)


def check_boundary(archive: Path, *, top_level: Collection[str] = ()) -> tuple[str, ...]:
    """Say what in a wheel or Pyodide package zip may not be released: one clause for each, empty when all is well.

    ``top_level`` names what the package may lay at the root of site-packages beside its ``dist-info``; by default it
    is the import package that the side module is in.
    """
    try:
        with ZipFile(archive) as opened:
            entries = opened.infolist()
            if bomb := _bomb(entries):
                return (f"{archive.name} {bomb}",)
            findings = [*_container(archive, opened), *_places(entries, top_level), *_modules(entries)]
            for entry in entries:
                findings += [] if entry.is_dir() else _entry(opened, entry)
            return tuple(findings)
    except (OSError, BadZipFile, NotImplementedError) as error:
        return (f"{archive.name} is not a zip archive that can be read ({error})",)


def _bomb(entries: list[ZipInfo]) -> str:
    """Say that an archive is more than it looks, before any of it is read: an entry gives no more than it declares."""
    if len(entries) > MAXIMUM_ENTRIES:
        return f"has {len(entries):,} entries, more than {MAXIMUM_ENTRIES:,}"
    size = sum(entry.file_size for entry in entries)
    return f"inflates to {size:,} bytes, more than {MAXIMUM_INFLATED:,}" if size > MAXIMUM_INFLATED else ""


def _container(path: Path, archive: ZipFile) -> Iterator[str]:
    """Look for bytes that no entry accounts for, which zip readers pass over in silence."""
    if min((entry.header_offset for entry in archive.infolist()), default=0):
        yield f"{path.name} begins with something other than its first entry"
    with path.open("rb") as file:
        file.seek(-_END_RECORD, os.SEEK_END)
        if file.read(4) != b"PK\x05\x06":
            yield f"{path.name} ends with something after its directory"


def _places(entries: list[ZipInfo], top_level: Collection[str]) -> Iterator[str]:
    """Judge the names of the entries, alone and together."""
    names = [entry.filename for entry in entries]
    allowed = set(top_level) or {_root(name) for name in names if _is_shared_object(name)}
    dist_infos = sorted({name.split("/")[0] for name in names if name.split("/")[0].endswith(".dist-info")})
    if len(dist_infos) != 1:
        yield f"the archive has {len(dist_infos)} dist-info folders ({', '.join(dist_infos) or 'none'}), not one"
    seen: dict[str, str] = {}
    for entry in entries:
        name = entry.filename
        if fault := _fault_of(entry):
            yield f"{name!r} {fault}"
        elif name.split("/")[0] not in dist_infos and _root(name) not in allowed:
            yield f"{name} is outside the package's own {', '.join(sorted(allowed)) or 'names'} and its dist-info"
        key = unicodedata.normalize("NFC", name).casefold().rstrip("/")
        if key in seen:
            yield f"{name} is there twice, the other one as {seen[key]}"
        seen[key] = name
    for key, name in seen.items():
        for parent in PurePosixPath(key).parents:
            if (other := seen.get(str(parent))) and not other.endswith("/"):
                yield f"{name} is below {other}, which is a file"


def _fault_of(entry: ZipInfo) -> str:
    """Say what is wrong with the name or the attributes of an entry, or nothing."""
    name = entry.filename
    parts = name.removesuffix("/").split("/")
    mode = entry.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if (
        entry.orig_filename != name
        or "\\" in name
        or not name.isprintable()
        or unicodedata.normalize("NFC", name) != name
    ):
        return "has characters in its name that not every system reads alike"
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "is an absolute path"
    if any(part in ("", ".", "..") for part in parts):
        return "has an empty, . or .. part in its path"
    if any(part != part.rstrip(". ") for part in parts):
        return "has a path part that ends with a dot or a space"
    if stat.S_ISLNK(mode):
        return "is a symbolic link"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is neither a file nor a folder"
    if not entry.is_dir() and mode & 0o7111:
        return "is executable or set-uid"
    if entry.flag_bits & 1:
        return "is encrypted"
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return "is compressed in a way that Pyodide cannot read"
    return ""


def _entry(archive: ZipFile, entry: ZipInfo) -> Iterator[str]:
    """Judge one file, by its contents and by its name."""
    name = entry.filename
    try:
        head, hidden = _scan(archive, entry)
    except (BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        yield f"{name} cannot be read ({error})"
        return
    by_contents, by_name = _kind_of(name, head, hidden), _kind_by_name(name)
    if by_contents and by_name and by_contents != by_name:
        yield f"{name} is {by_contents}, and by its name {by_name}"
    elif kind := by_contents or by_name:
        yield f"{name} is {kind}"
    elif hidden:
        yield f"{name} holds {hidden}"


def _scan(archive: ZipFile, entry: ZipInfo) -> tuple[bytes, str]:
    """Read a file once; return how it begins, and what was found hidden in it."""
    head = tail = b""
    hidden = ""
    with archive.open(entry) as file:
        while chunk := file.read(_CHUNK):
            head = head or chunk[:_HEAD]
            if not hidden and (match := _HIDDEN.search(tail + chunk)):
                hidden = _name_of(match)
            tail = chunk[-_LONGEST_HIDDEN:]
    return head, hidden


def _name_of(match: re.Match[bytes]) -> str:
    if match["key"]:
        return "a private key"
    if match["fatbin"]:
        return "a CUDA fat binary"
    machine = int.from_bytes(match["machine"], "little" if match["order"] == b"\x01" else "big")
    return {_EM_CUDA: "a cubin", _EM_AMDGPU: "an HSACO"}.get(machine, _ELF)


def _kind_of(name: str, head: bytes, hidden: str) -> str:
    base = PurePosixPath(name).name
    if _BITCODE.match(head):
        return "" if base in DEVICE_LIBRARIES else "LLVM bitcode other than the device libraries"
    if base in DEVICE_LIBRARIES:
        return "named as a device library and is not LLVM bitcode"
    kind = next((kind for pattern, kind in _KINDS if pattern.match(head)), "")
    if kind == _ELF and hidden:
        kind = hidden  # the header's machine says more: a cubin, an HSACO
    if not _is_shared_object(name):
        return "WebAssembly beside the side module" if head.startswith(b"\0asm") else kind
    return "" if _SIDE_MODULE.match(head) else f"{kind or 'something else'} under the name of a side module"


def _kind_by_name(name: str) -> str:
    path = PurePosixPath(name.lower())
    if any(re.match(r"\.[^.]|__pycache__$", part) for part in path.parts[:-1]):
        return "in a hidden or cache folder"
    if "include" in path.parts[:-1]:
        return "a header, of which a compile-only package needs none"
    for pattern, kind in _NAMES:
        if pattern.fullmatch(path.name):
            return kind
    return ""


def _modules(entries: list[ZipInfo]) -> Iterator[str]:
    names = [entry.filename for entry in entries if _is_shared_object(entry.filename)]
    if len(names) != 1:
        yield f"the archive has {len(names)} side modules ({', '.join(names) or 'none'}), not one"


def _is_shared_object(name: str) -> bool:
    return re.search(r"\.so(\.\d+)*$", name.lower()) is not None


def _root(name: str) -> str:
    """What a file is imported as: ``exprc`` for ``exprc/x.py`` as for ``exprc.cpython-315-wasm32-emscripten.so``."""
    first, *below = name.split("/")
    return first if below else first.partition(".")[0]
