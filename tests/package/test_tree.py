import json
import re
from collections.abc import Iterator
from email.parser import BytesParser
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.licenses import canonicalize_license_expression
from packaging.version import Version

from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.package import boundary
from release.package.boundary import check_boundary
from release.package.build import build_package
from release.package.layer import ENTRY_POINTS, PYTHON, TOP_LEVEL
from release.package.licenses import LICENSE, license_files, license_of
from release.package.model import Contents, Package
from release.package.tree import (
    BITCODE_OF,
    NAME,
    SUMMARY,
    lay_out_tree,
    plan_tree,
    version_of,
)
from release.pins.model import PinSet
from tests.package.crafted import SIDE_MODULE, elf
from tests.pins import trees

BITCODE = b"BC\xc0\xde" + bytes(60)
VERSION = "3.6.0+git50b2f739"
MODULE = "triton/_C/libtriton.cpython-315-wasm32-emscripten.so"

# By their places below site-packages.
KEPT = (
    "triton/__init__.py",
    "triton/_C/libtriton/linear_layout.pyi",
    "triton/backends/__init__.py",
    "triton/backends/amd/__init__.py",
    "triton/backends/amd/compiler.py",
    "triton/backends/amd/lib/asanrtl.bc",
    "triton/backends/amd/lib/ockl.bc",
    "triton/backends/amd/lib/ocml.bc",
    "triton/backends/driver.py",
    "triton/backends/nvidia/__init__.py",
    "triton/backends/nvidia/compiler.py",
    "triton/backends/nvidia/lib/libdevice.10.bc",
    "triton/experimental/gluon/__init__.py",
    "triton/language/extra/__init__.py",
    "triton/language/extra/cuda/libdevice.py",
    "triton/language/extra/hip/libdevice.py",
    "triton/runtime/driver.py",
    "triton/tools/disasm.py",
    "triton/tools/triton_to_gluon_translater/translator.py",
)
LEFT_OUT = {
    "triton/_filecheck.py": "for Triton's own tests",
    "triton/_internal_testing.py": "for Triton's own tests",
    "triton/backends/amd/driver.c": "C, C++ or CUDA source",
    "triton/backends/amd/driver.py": "a driver of a GPU",
    "triton/backends/amd/include/hip/hip_runtime.h": "a header",
    "triton/backends/nvidia/driver.c": "C, C++ or CUDA source",
    "triton/backends/nvidia/driver.py": "a driver of a GPU",
    "triton/experimental/gsan/README.md": "GSan",
    "triton/experimental/gsan/__init__.py": "GSan",
    "triton/experimental/gsan/src/GSan.h": "C, C++ or CUDA source",
    "triton/tools/build_extern.py": "makes or reads native code",
    "triton/tools/compile.py": "makes or reads native code",
    "triton/tools/link.py": "makes or reads native code",
}
NEVER_LOOKED_AT = (
    "triton/profiler/__init__.py",
    "triton/profiler/hooks/launch.py",
    "triton/tools/extra/cuda/compile.c",
    "triton/tools/extra/cuda/link.h",
)
BUILT_IN_PLACE = (
    "python/triton/FileCheck",
    "python/triton/_C/libtriton.so",
    "python/triton/_C/libproton.so",
    "python/triton/instrumentation/libGPUInstrumentationTestLib.so",
    "python/triton/plugins/libMLIRDialectPlugin.so.23.0git",
    "third_party/nvidia/backend/bin/ptxas-blackwell",
    "third_party/nvidia/backend/include/cuda.h",
    "third_party/nvidia/backend/lib/cupti/libcupti_static.a",
    "third_party/nvidia/backend/lib/gsan.ll",
)


@pytest.fixture
def triton(tmp_path: Path) -> Path:
    return miniature(tmp_path / "triton")


def miniature(folder: Path) -> Path:
    """A Triton source tree that has, of each kind of file that Triton has, one or two."""
    root = trees.triton(folder, {"LICENSE": "MIT", "third_party/f2reduce/LICENCE.txt": "MIT"})
    for place in (*KEPT, *LEFT_OUT, *NEVER_LOOKED_AT):
        path = root / source_of(place)
        if not path.exists():
            put(path, BITCODE if place.endswith(".bc") else b"")
    put(root / "python/test/unit/test_core.py")
    put(root / "third_party/nvidia/language/cuda/__pycache__/libdevice.cpython-313.pyc", elf(62))
    return root


@pytest.fixture
def llvm(tmp_path: Path) -> Path:
    return lay_licenses(trees.llvm(tmp_path / "llvm"))


def lay_licenses(root: Path) -> Path:
    """What an LLVM tree says of its terms."""
    for name in ("LICENSE.TXT", "lib/Support/BLAKE3/LICENSE", "lib/Support/COPYRIGHT.regex"):
        put(root / "llvm" / name, b"terms")
    return root


def put(path: Path, content: bytes = b"") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def source_of(place: str) -> str:
    """Where a Triton source tree has what is at a place below site-packages."""
    third_party = (
        (r"triton/backends/(amd|nvidia)/", r"third_party/\1/backend/"),
        (r"triton/(language|tools)/extra/cuda/", r"third_party/nvidia/\1/cuda/"),
        (r"triton/(language|tools)/extra/hip/", r"third_party/amd/\1/hip/"),
        (r"triton/profiler/", "third_party/proton/proton/"),
    )
    for pattern, folder in third_party:
        if re.match(pattern, place):
            return re.sub(pattern, folder, place)
    return f"python/{place}"


def as_setup_py_maps_it(root: Path) -> Iterator[str]:
    """What Triton's own wheel would have of a source tree: the counterpart of get_package_dirs in its setup.py."""
    places = [(root / "python/triton", "triton"), (root / "third_party/proton/proton", "triton/profiler")]
    for backend in ("nvidia", "amd"):
        places.append((root / f"third_party/{backend}/backend", f"triton/backends/{backend}"))
        for kind in ("language", "tools"):
            folder = root / "third_party" / backend / kind
            places += [(each, f"triton/{kind}/extra/{each.name}") for each in folder.glob("*")]
    for folder, place in places:
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                yield f"{place}/{path.relative_to(folder)}"


def contents_of(python: Path, triton: Path, llvm: Path, tmp_path: Path) -> Contents:
    put(tmp_path / "libtriton.wasm", SIDE_MODULE)
    return Contents(
        name=NAME,
        version=VERSION,
        summary=SUMMARY,
        license=LICENSE,
        license_files=license_files(triton, llvm),
        module=tmp_path / "libtriton.wasm",
        extension="triton._C.libtriton",
        python=python,
        imports=("triton", TOP_LEVEL),
        entry_points=ENTRY_POINTS,
    )


@pytest.fixture
def package(triton: Path, llvm: Path, pins: PinSet, pyodide: Path, tmp_path: Path) -> Package:
    lay_out_tree(triton, tmp_path / "stage")
    contents = contents_of(tmp_path / "stage/python", triton, llvm, tmp_path)
    return build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "out")


def of_the_layer() -> set[str]:
    return {path.relative_to(PYTHON).as_posix() for path in PYTHON.rglob("*.py")}


def test_what_a_compiler_needs_is_laid_out_and_the_layer_beside_it(triton: Path, tmp_path: Path) -> None:
    lay_out_tree(triton, tmp_path / "stage")
    assert [path.name for path in (tmp_path / "stage").iterdir()] == ["python"]
    python = tmp_path / "stage/python"
    found = {path.relative_to(python).as_posix() for path in python.rglob("*") if path.is_file()}
    assert found == {*KEPT, *of_the_layer()}
    assert (python / "triton/backends/amd/lib/ocml.bc").read_bytes() == BITCODE
    assert "triton_compile_only/backends/nvidia/compiler.py" in found


def test_what_was_there_before_is_replaced(triton: Path, tmp_path: Path) -> None:
    put(tmp_path / "stage/python/triton/old.py")
    lay_out_tree(triton, tmp_path / "stage")
    assert not (tmp_path / "stage/python/triton/old.py").exists()


def test_each_file_that_stays_out_has_its_reason(triton: Path) -> None:
    left_out = plan_tree(triton).left_out
    assert set(left_out) == set(LEFT_OUT)
    for name, reason in LEFT_OUT.items():
        assert reason in left_out[name], name


def test_every_difference_from_tritons_own_wheel_is_meant(triton: Path) -> None:
    plan, wheel = plan_tree(triton), set(as_setup_py_maps_it(triton))
    assert set(plan.files) - wheel == of_the_layer()
    assert wheel - set(plan.files) == {*plan.left_out, *NEVER_LOOKED_AT}


def test_a_tree_that_was_built_in_place_gives_the_same(triton: Path) -> None:
    before = plan_tree(triton).files
    for name in BUILT_IN_PLACE:
        put(triton / name, elf(62))
    for link, target in (
        ("backends/nvidia", "nvidia/backend"),
        ("language/extra/cuda", "nvidia/language/cuda"),
        ("tools/extra/cuda", "nvidia/tools/cuda"),
        ("profiler", "proton/proton"),
    ):
        path = triton / "python/triton" / link
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(triton / "third_party" / target)
    assert plan_tree(triton).files == before


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("python/triton", "__init__.py"),
        ("third_party/amd/backend", "compiler.py"),
        ("third_party/nvidia/backend", "compiler.py"),
        ("third_party/amd/language", ""),
    ],
)
def test_a_tree_without_a_part_is_none_we_know(folder: str, file: str, triton: Path) -> None:
    (triton / folder).rename(triton / "moved")
    with pytest.raises(WrongUsage, match=f"no Triton tree we know: it has no {folder}/?{file}") as caught:
        plan_tree(triton)
    assert caught.value.remedy.startswith("Name the root of a Triton checkout; if upstream has changed, teach ")


@pytest.mark.parametrize(
    "name",
    [
        "python/triton/table.json",
        "third_party/nvidia/backend/lib/kernel.cubin",
        "third_party/amd/backend/lib/hip.bc",
        "third_party/amd/backend/lib/libdevice.10.bc",
        "third_party/nvidia/language/cuda/libdevice.10.bc",
    ],
)
def test_a_new_kind_of_file_is_neither_lost_nor_shipped_unseen(name: str, triton: Path) -> None:
    put(triton / name, BITCODE)
    with pytest.raises(WrongUsage, match=f"it has {re.escape(name)}, which is neither Python nor known as useless"):
        plan_tree(triton)


@pytest.mark.parametrize("library", sorted(chain(*BITCODE_OF.values())))
def test_a_device_library_must_be_one(library: str, triton: Path) -> None:
    (path,) = triton.glob(f"third_party/*/backend/lib/{library}")
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64)
    with pytest.raises(WrongUsage, match=f"{library} is a Git LFS pointer") as caught:
        plan_tree(triton)
    assert caught.value.remedy == "Run `git lfs pull` in that tree."
    path.write_bytes(elf(190))
    with pytest.raises(WrongUsage, match=f"{library} is not LLVM bitcode"):
        plan_tree(triton)
    path.unlink()
    with pytest.raises(WrongUsage, match=rf"{library} cannot be read \(No such file"):
        plan_tree(triton)


def test_the_device_libraries_are_those_that_the_boundary_lets_pass() -> None:
    assert set(chain(*BITCODE_OF.values())) == boundary.DEVICE_LIBRARIES


@pytest.mark.parametrize("target", ["compiler.py", "include"])
def test_another_link_is_refused(target: str, triton: Path) -> None:
    (triton / "third_party/amd/backend/link").symlink_to(target)
    with pytest.raises(WrongUsage, match="third_party/amd/backend/link is a link"):
        plan_tree(triton)


@pytest.mark.parametrize(
    "line",
    [
        "import triton.tools.compile",
        "from triton._filecheck import run_parser",
        "from . import _internal_testing",
        "from .backends.nvidia.driver import CudaDriver",
        "if True:\n    from triton.experimental import gsan",
        "class C:\n    import triton.nowhere",
        "try:\n    import triton.tools.link\nfinally:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    pass\nelse:\n    import triton.tools.link",
        "with open(0):\n    import triton.profiler",
    ],
)
def test_an_import_of_what_is_not_there_is_found(line: str, triton: Path) -> None:
    put(triton / "python/triton/new.py", line.encode())
    with pytest.raises(WrongUsage, match=r"triton/new\.py imports triton\.[\w.]+, which the package leaves out"):
        plan_tree(triton)


@pytest.mark.parametrize(
    "line",
    [
        "from triton._C.libtriton import ir",
        "import triton._C.libtriton.gluon_ir as ir",
        "from .tools import disasm",
        "from .experimental import gluon",
        "from triton.tools.triton_to_gluon_translater import translator",
        "from . import language, a_name_of_this_file",
        "import torch, numpy.typing",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .backends.amd.driver import HIPDriver",
        "def launch():\n    from .backends.amd.driver import HIPDriver",
        "try:\n    from .experimental import gsan\nexcept ImportError:\n    gsan = None",
        "x = '\\d' is 3  # of which Python would warn",
    ],
)
def test_an_import_of_what_is_there_or_not_needed_passes(line: str, triton: Path) -> None:
    put(triton / "python/triton/new.py", line.encode())
    assert "triton/new.py" in plan_tree(triton).files


@pytest.mark.parametrize("content", [b"def f(:\n", elf(62), b"\xff = 1\n"])
def test_what_is_called_python_must_be(content: bytes, triton: Path) -> None:
    put(triton / "python/triton/new.py", content)
    with pytest.raises(WrongUsage, match=r"triton/new\.py is not Python"):
        plan_tree(triton)


def test_the_package_is_within_the_boundary(package: Package) -> None:
    assert check_boundary(package.wheel, top_level={"triton", TOP_LEVEL}) == ()
    assert package.wheel.name.startswith(f"triton-{VERSION}-cp315-")
    with ZipFile(package.wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert names == {MODULE, *KEPT, *of_the_layer()}
        assert archive.read(f"triton-{VERSION}.dist-info/entry_points.txt").decode() == ENTRY_POINTS
    assert json.loads(package.lock.read_text())["packages"]["triton"]["version"] == VERSION


def test_a_cubin_in_the_tree_does_not_reach_a_package(
    triton: Path, llvm: Path, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    put(triton / "python/triton/_C/libtriton/linear_layout.pyi", elf(190))
    lay_out_tree(triton, tmp_path / "stage")
    contents = contents_of(tmp_path / "stage/python", triton, llvm, tmp_path)
    with pytest.raises(Finding, match=r"linear_layout\.pyi is a cubin"):
        build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "out")


def test_the_licences_travel(package: Package, triton: Path, llvm: Path) -> None:
    files = license_files(triton, llvm)
    with ZipFile(package.wheel) as archive:
        folder = f"triton-{VERSION}.dist-info"
        metadata = BytesParser().parsebytes(archive.read(f"{folder}/METADATA"))
        assert metadata["License-Expression"] == LICENSE
        assert metadata.get_all("License-File") == list(files)
        for name, path in files.items():
            assert archive.read(f"{folder}/licenses/{name}") == path.read_bytes()
    assert sorted(files) == [
        "LICENSE",
        "LICENSE.f2reduce",
        "LICENSE.llvm",
        "LICENSE.llvm-blake3",
        "LICENSE.llvm-regex",
        "LICENSE.llvm-support",
        "LICENSE.pybind11",
        "LICENSE.rocm-device-libs",
        "LICENSE.triton-wasm-release",
        "NOTICE.libdevice",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("LICENSE.pybind11", "Wenzel Jakob"),
        ("LICENSE.rocm-device-libs", "Advanced Micro Devices, Inc."),
        ("LICENSE.llvm-support", "Yann Collet"),
        ("LICENSE.llvm-support", "Unicode, Inc."),
        ("LICENSE.llvm-support", "Todd C. Miller"),
        ("NOTICE.libdevice", "https://docs.nvidia.com/cuda/eula/"),
        ("NOTICE.libdevice", "triton/backends/nvidia/lib/libdevice.10.bc"),
        ("LICENSE.triton-wasm-release", "Apache License"),
    ],
)
def test_a_licence_is_the_one_it_is_called(name: str, words: str, triton: Path, llvm: Path) -> None:
    assert words in license_files(triton, llvm)[name].read_text()


def test_the_expression_is_one_that_indexes_take() -> None:
    assert canonicalize_license_expression(LICENSE) == LICENSE


@pytest.mark.parametrize(
    ("tree", "file", "of"),
    [
        ("triton", "LICENSE", "Triton"),
        ("triton", "third_party/f2reduce/LICENCE.txt", "Triton"),
        ("llvm", "llvm/LICENSE.TXT", "LLVM"),
        ("llvm", "llvm/lib/Support/COPYRIGHT.regex", "LLVM"),
    ],
)
def test_a_tree_without_its_licence_is_wrong_usage(
    tree: str, file: str, of: str, triton: Path, llvm: Path, tmp_path: Path
) -> None:
    (tmp_path / tree / file).unlink()
    with pytest.raises(WrongUsage, match=f"has no {file}, and the licence of {of} has to go with it"):
        license_files(triton, llvm)


def test_the_licence_of_what_is_not_installed_is_wanted() -> None:
    with pytest.raises(BrokenEnvironment, match="There is no licence of not-installed") as caught:
        license_of("not-installed")
    assert caught.value.remedy == "Install not-installed from a wheel, beside this project."


@pytest.mark.parametrize(
    ("version", "expected"),
    [("3.6.0", VERSION), ("3.8.0+nightly", "3.8.0+nightly.git50b2f739")],
)
def test_the_version_is_tritons_with_the_commit(version: str, expected: str) -> None:
    found = version_of(version, "50b2f739a63aa3a291ffebd7ee3be4308ba6feb7")
    assert found == expected == str(Version(found))
