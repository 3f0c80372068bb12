import io
import stat
import struct
import warnings
from pathlib import Path
from zipfile import ZIP_BZIP2, ZipFile, ZipInfo

import pytest

from release.package import boundary
from release.package.boundary import DEVICE_LIBRARIES, check_boundary
from tests.package.crafted import GOOD, MODULE, SIDE_MODULE, add, archive, elf

BITCODE = b"BC\xc0\xde" + bytes(60)
PE = b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + bytes(20)


def zipped(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as target:
        target.writestr(name, content)
    return buffer.getvalue()


def test_a_clean_package_passes(tmp_path: Path) -> None:
    assert check_boundary(archive(tmp_path / "good.whl")) == ()


@pytest.mark.parametrize("name", sorted(DEVICE_LIBRARIES))
def test_the_device_libraries_are_data_of_the_compiler(name: str, tmp_path: Path) -> None:
    assert check_boundary(archive(tmp_path / "good.whl", {f"exprc/lib/{name}": BITCODE})) == ()


@pytest.mark.parametrize(
    "name",
    [
        "exprc/tools/ptxas.py",
        "exprc/backends/nvidia/driver.py",
        "exprc/language/libcuda.py",
        "exprc/lld.py",
        "exprc/a table, with comma.txt",
        "exprc/grüße.txt",
        "exprc/MZ",
        "exprc-1.0.0.dist-info/licenses/LLVM-LICENSE",
    ],
)
def test_what_only_looks_like_it_passes(name: str, tmp_path: Path) -> None:
    assert check_boundary(archive(tmp_path / "good.whl", {name: b"MZ is how this text begins\n"})) == ()


@pytest.mark.parametrize(
    ("name", "content", "finding"),
    [
        ("exprc/x.bin", elf(62), "a native object (ELF)"),
        ("exprc/x.bin", elf(62, big_endian=True), "a native object (ELF)"),
        ("exprc/x.py", elf(190), "a cubin"),
        ("exprc/x.py", elf(224), "an HSACO"),
        ("exprc/x.bin", b"\x7fELF", "a native object (ELF)"),
        ("exprc/x.bin", b"\xcf\xfa\xed\xfe" + bytes(28), "a native object (Mach-O)"),
        ("exprc/x.bin", b"\xfe\xed\xfa\xce" + bytes(28), "a native object (Mach-O)"),
        ("exprc/x.bin", b"\xca\xfe\xba\xbe" + bytes(28), "a native object (Mach-O)"),
        ("exprc/x.bin", PE, "a native object (PE)"),
        ("exprc/x.bin", b"!<arch>\n", "a static library"),
        ("exprc/x.bin", b"!<thin>\n", "a static library"),
        ("exprc/x.bin", b"\x50\xed\x55\xba\x01\0\x10\0", "a CUDA fat binary"),
        ("exprc/x.bin", b"__CLANG_OFFLOAD_BUNDLE__" + bytes(8), "a bundle of GPU code (clang offload)"),
        ("exprc/x.bin", b"CCOB" + bytes(8), "a bundle of GPU code (clang offload)"),
        ("exprc/x.bin", b"\x03\x02\x23\x07", "GPU code (SPIR-V, Metal or DXIL)"),
        ("exprc/x.bin", BITCODE, "LLVM bitcode other than the device libraries"),
        ("exprc/mine.bc", b"\xde\xc0\x17\x0b" + BITCODE, "LLVM bitcode other than the device libraries"),
        ("exprc/libdevice.10.bc", b"<!DOCTYPE html>", "named as a device library and is not LLVM bitcode"),
        ("exprc/x.bin", SIDE_MODULE, "WebAssembly beside the side module"),
        ("exprc/x.bin", zipped("libcuda.so", elf(62)), "an archive"),
        ("exprc/x.bin", b"\x1f\x8b\x08" + bytes(20), "an archive"),
        ("exprc/x.bin", b"\xfd7zXZ\0" + bytes(20), "an archive"),
        ("exprc/x.bin", b"\x28\xb5\x2f\xfd" + bytes(20), "an archive"),
        ("exprc/x.bin", bytes(257) + b"ustar\0" + bytes(200), "an archive"),
        ("exprc/ocml.txt", b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer instead of the file"),
    ],
)
def test_files_are_refused_by_what_they_are(name: str, content: bytes, finding: str, tmp_path: Path) -> None:
    assert check_boundary(archive(tmp_path / "bad.whl", {name: content})) == (f"{name} is {finding}",)


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (elf(190), "a cubin"),
        (elf(224), "an HSACO"),
        (elf(62), "a native object (ELF)"),
        (b"\x50\xed\x55\xba\x01\0\x10\0", "a CUDA fat binary"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\n", "a private key"),
    ],
)
@pytest.mark.parametrize("before", [1, 5000, (1 << 20) - 3])
def test_what_hides_further_in_is_found(content: bytes, finding: str, before: int, tmp_path: Path) -> None:
    module = SIDE_MODULE + bytes(before - len(SIDE_MODULE)) + content if before > 1 else SIDE_MODULE + content
    assert check_boundary(archive(tmp_path / "bad.whl", {MODULE: module})) == (f"{MODULE} holds {finding}",)


def test_code_that_writes_elf_headers_is_not_one(tmp_path: Path) -> None:
    # As in LLVM's data segment: the magic alone, then other constants.
    module = (
        SIDE_MODULE + b"\x7fELF\0\xca\xfe\xba\xbf\0Invalid Int wi" + b"\x7fELF\0\0\0\0\xc6\x6f\xbb\x03\x3e\x70\xbb\x03"
    )
    assert check_boundary(archive(tmp_path / "good.whl", {MODULE: module})) == ()


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("exprc/libLLVM.a", "a static library"),
        ("exprc/x.o", "a native object"),
        ("exprc/X.DLL", "a native object"),
        ("exprc/k.cubin", "GPU code"),
        ("exprc/k.hsaco", "GPU code"),
        ("exprc/k.fatbin", "GPU code"),
        ("exprc/libcuda.dylib", "a GPU runtime"),
        ("exprc/libcudart_static.a", "a GPU runtime"),
        ("exprc/libamdhip64.5", "a GPU runtime"),
        ("exprc/libhsa-runtime64.1", "a GPU runtime"),
        ("exprc/libnvrtc.12", "a GPU runtime"),
        ("exprc/libcupti.12", "a GPU runtime"),
        ("exprc/nvcuda64.dll", "a GPU runtime"),
        ("exprc/bin/ptxas", "a tool of a compiler or a GPU"),
        ("exprc/bin/ptxas-blackwell", "a tool of a compiler or a GPU"),
        ("exprc/bin/ptxas.exe", "a tool of a compiler or a GPU"),
        ("exprc/bin/nvdisasm", "a tool of a compiler or a GPU"),
        ("exprc/bin/cuobjdump", "a tool of a compiler or a GPU"),
        ("exprc/FileCheck", "a tool of a compiler or a GPU"),
        ("exprc/ld.lld", "a tool of a compiler or a GPU"),
        ("exprc/lld", "a tool of a compiler or a GPU"),
        ("exprc/clang-22", "a tool of a compiler or a GPU"),
        ("exprc/driver.c", "C, C++, CUDA or HIP source"),
        ("exprc/kernel.CU", "C, C++, CUDA or HIP source"),
        ("exprc/cuda.h", "C, C++, CUDA or HIP source"),
        ("exprc/include/nvfunctional", "a header, of which a compile-only package needs none"),
        ("exprc/x.pyc", "a left-over"),
        ("exprc/__pycache__/x.py", "in a hidden or cache folder"),
        ("exprc/.git/config", "in a hidden or cache folder"),
        ("exprc/.env", "a hidden file"),
        ("exprc/x.pth", "a .pth file, which Python runs at every start"),
        ("exprc/id_ed25519", "a key or certificate by its name"),
    ],
)
def test_files_are_refused_by_what_they_are_called(name: str, finding: str, tmp_path: Path) -> None:
    assert check_boundary(archive(tmp_path / "bad.whl", {name: b"text\n"})) == (f"{name} is {finding}",)


def test_contents_and_name_are_both_told(tmp_path: Path) -> None:
    bad = archive(tmp_path / "bad.whl", {"exprc/bin/ptxas": elf(62)})
    assert check_boundary(bad) == (
        "exprc/bin/ptxas is a native object (ELF), and by its name a tool of a compiler or a GPU",
    )


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("/etc/passwd", "is an absolute path"),
        ("C:/x.txt", "is an absolute path"),
        ("../x.txt", "has an empty, . or .. part in its path"),
        ("exprc/../../x.txt", "has an empty, . or .. part in its path"),
        ("exprc//x.txt", "has an empty, . or .. part in its path"),
        ("exprc/./x.txt", "has an empty, . or .. part in its path"),
        ("exprc\\x.txt", "has characters in its name that not every system reads alike"),
        ("exprc/x\n.txt", "has characters in its name that not every system reads alike"),
        ("exprc/u\u0308.txt", "has characters in its name that not every system reads alike"),
        ("exprc/x.txt.", "has a path part that ends with a dot or a space"),
        ("exprc/x /y.txt", "has a path part that ends with a dot or a space"),
    ],
)
def test_paths_that_lead_elsewhere_are_refused(name: str, finding: str, tmp_path: Path) -> None:
    findings = check_boundary(archive(tmp_path / "bad.whl", {name: b"text\n"}))
    assert findings == (f"{name!r} {finding}",)


def test_a_name_cut_short_by_a_null_is_refused(tmp_path: Path) -> None:
    bad = archive(tmp_path / "bad.whl", {"exprc/x.txt_hidden": b"text\n"})
    bad.write_bytes(bad.read_bytes().replace(b"exprc/x.txt_hidden", b"exprc/x.txt\0hidden"))
    assert check_boundary(bad) == ("'exprc/x.txt' has characters in its name that not every system reads alike",)


@pytest.mark.parametrize(
    ("mode", "finding"),
    [
        (stat.S_IFLNK | 0o777, "is a symbolic link"),
        (stat.S_IFIFO | 0o644, "is neither a file nor a folder"),
        (stat.S_IFCHR | 0o644, "is neither a file nor a folder"),
        (stat.S_IFREG | 0o755, "is executable or set-uid"),
        (stat.S_IFREG | 0o4644, "is executable or set-uid"),
    ],
)
def test_only_plain_files_are_allowed(mode: int, finding: str, tmp_path: Path) -> None:
    bad = archive(tmp_path / "bad.whl")
    with ZipFile(bad, "a") as target:
        add(target, "exprc/x", b"__init__.py", mode=mode)
    assert check_boundary(bad) == (f"'exprc/x' {finding}",)


@pytest.mark.parametrize(
    "name", ["other/x.py", "sitecustomize.py", "exprc.data/scripts/x", "exprc-1.0.0.data/headers/x", "bin/x"]
)
def test_what_is_not_the_packages_own_is_refused(name: str, tmp_path: Path) -> None:
    findings = check_boundary(archive(tmp_path / "bad.whl", {name: b"text\n"}), top_level={"exprc"})
    assert findings == (f"{name} is outside the package's own exprc and its dist-info",)


def test_a_second_top_level_name_may_be_allowed(tmp_path: Path) -> None:
    package = archive(tmp_path / "good.whl", {"exprc_extra/__init__.py": b"", "single.py": b""})
    assert len(check_boundary(package)) == 2
    assert check_boundary(package, top_level={"exprc", "exprc_extra", "single"}) == ()


def test_a_module_at_the_root_is_its_own_package(tmp_path: Path) -> None:
    package = tmp_path / "good.whl"
    with ZipFile(package, "w") as target:
        add(target, "_exprc.cpython-315-wasm32-emscripten.so", SIDE_MODULE)
        add(target, "exprc-1.0.0.dist-info/RECORD")
    assert check_boundary(package) == ()


def test_names_are_there_once_whatever_their_case(tmp_path: Path) -> None:
    bad = archive(tmp_path / "bad.whl", {"exprc/__INIT__.py": b""})
    assert check_boundary(bad) == ("exprc/__INIT__.py is there twice, the other one as exprc/__init__.py",)
    with ZipFile(bad := archive(tmp_path / "worse.whl"), "a") as target, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile says so itself, and writes it all the same
        add(target, MODULE, SIDE_MODULE)
    assert f"{MODULE} is there twice, the other one as {MODULE}" in check_boundary(bad)


def test_a_file_is_not_a_folder_too(tmp_path: Path) -> None:
    bad = archive(tmp_path / "bad.whl", {"exprc/x": b"", "exprc/x/y.txt": b""})
    assert check_boundary(bad) == ("exprc/x/y.txt is below exprc/x, which is a file",)


def test_there_is_just_one_side_module(tmp_path: Path) -> None:
    second = "exprc/_other.cpython-315-wasm32-emscripten.so"
    assert check_boundary(archive(tmp_path / "two.whl", {second: SIDE_MODULE})) == (
        f"the archive has 2 side modules ({MODULE}, {second}), not one",
    )
    assert check_boundary(archive(tmp_path / "none.whl", without=MODULE), top_level={"exprc"}) == (
        "the archive has 0 side modules (none), not one",
    )


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (b"", "something else under the name of a side module"),
        (b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0", "something else under the name of a side module"),
        (elf(62), "a native object (ELF) under the name of a side module"),
        (elf(190), "a cubin under the name of a side module"),
    ],
)
def test_the_side_module_is_one(content: bytes, finding: str, tmp_path: Path) -> None:
    assert check_boundary(archive(tmp_path / "bad.whl", {MODULE: content})) == (f"{MODULE} is {finding}",)


def test_there_is_just_one_dist_info(tmp_path: Path) -> None:
    two = archive(tmp_path / "two.whl", {"other-1.dist-info/METADATA": b""})
    assert check_boundary(two) == (
        "the archive has 2 dist-info folders (exprc-1.0.0.dist-info, other-1.dist-info), not one",
    )


def test_folders_in_the_archive_are_fine(tmp_path: Path) -> None:
    with ZipFile(package := archive(tmp_path / "good.whl"), "a") as target:
        target.mkdir("exprc/data")
    assert check_boundary(package) == ()


def test_nothing_but_the_entries(tmp_path: Path) -> None:
    good = archive(tmp_path / "good.whl").read_bytes()
    (tmp_path / "front.whl").write_bytes(b"#!/bin/sh\n" + good)
    assert check_boundary(tmp_path / "front.whl") == ("front.whl begins with something other than its first entry",)
    (tmp_path / "back.whl").write_bytes(good + b"more")
    assert check_boundary(tmp_path / "back.whl") == ("back.whl ends with something after its directory",)
    with ZipFile(tmp_path / "good.whl", "a") as target:
        target.comment = b"hello"
    assert check_boundary(tmp_path / "good.whl") == ("good.whl ends with something after its directory",)


def test_an_entry_pyodide_cannot_read_is_refused(tmp_path: Path) -> None:
    with ZipFile(bad := archive(tmp_path / "bad.whl"), "a") as target:
        target.writestr(ZipInfo("exprc/x.txt"), b"text", compress_type=ZIP_BZIP2)
    assert check_boundary(bad) == ("'exprc/x.txt' is compressed in a way that Pyodide cannot read",)


def test_a_damaged_entry_is_a_finding(tmp_path: Path) -> None:
    bad = tmp_path / "bad.whl"
    with ZipFile(bad, "w") as target:
        for name, content in GOOD.items():
            target.writestr(ZipInfo(name), content)
    bad.write_bytes(bad.read_bytes().replace(b"import compile", b"import kompile"))
    (finding,) = check_boundary(bad)
    assert finding.startswith("exprc/__init__.py cannot be read (Bad CRC-32")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x05\x06"])
def test_what_is_no_archive_is_a_finding(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.whl").write_bytes(content)
    (finding,) = check_boundary(tmp_path / "bad.whl")
    assert finding.startswith("bad.whl is not a zip archive that can be read (")


def test_an_encrypted_entry_is_a_finding(tmp_path: Path) -> None:
    bad = archive(tmp_path / "bad.whl")
    content = bytearray(bad.read_bytes())
    entry = content.index(b"PK\x01\x02")  # the first entry of the central directory is exprc/__init__.py
    content[entry + 8] |= 1
    content[6] |= 1
    bad.write_bytes(content)
    findings = check_boundary(bad)
    assert findings[0] == "'exprc/__init__.py' is encrypted"


def test_a_bomb_is_a_finding_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = archive(tmp_path / "bad.whl", {"exprc/large.txt": bytes(1_000_000)})
    assert check_boundary(bad) == ()
    monkeypatch.setattr(ZipFile, "open", lambda *_: pytest.fail("it was read"))
    monkeypatch.setattr(boundary, "MAXIMUM_INFLATED", 900_000)
    (finding,) = check_boundary(bad)
    assert finding.startswith("bad.whl inflates to 1,000,")
    monkeypatch.setattr(boundary, "MAXIMUM_ENTRIES", 5)
    assert check_boundary(bad) == ("bad.whl has 6 entries, more than 5",)
