"""Every form in which upstream has said what a tree is; the contents are those of the commits named."""

from pathlib import Path

import pytest

from release.errors import WrongUsage
from release.pins.upstream import read_llvm, read_triton
from tests.pins.trees import NANOBIND, PREVIEW_LLVM, PYBIND11, lay, llvm, triton

INFO = "cmake/llvm-info.json"
X64 = "7889df00f0dbbceb8e45774362b0478590029400a3abd58bdabba83d92fb2bbe"
AMD_X64 = "f20d30fdb2ea3c14ef032245214663ddb99c0ed0a9fdb46e1ebd47d3513d4ada"
BUILT = {"llvm_hash": "87717bf9f81f7b29466c5d9a30a3453bdfc93941", "build_number": 1, "sha256sum": {"ubuntu-x64": X64}}


def with_info(root: Path, info: object) -> Path:
    triton(root, {INFO: info})
    (root / "cmake/llvm-hash.txt").unlink()
    return root


def test_601b95cdbb_has_the_hash_at_the_root(tmp_path: Path) -> None:
    files = {
        "python/triton/__init__.py": '"""isort:skip_file"""\n__version__ = \'2.1.0\'\n',
        "CMakeLists.txt": "include_directories(${PYBIND11_INCLUDE_DIR})\n",
        "llvm-hash.txt": "49af6502c6dcb4a7f7520178bd14df396f78240c\n",
    }
    tree = read_triton(lay(tmp_path, files))
    assert (tree.version, tree.bindings) == ("2.1.0", "pybind11")
    assert [(pin.name, pin.commit, pin.file) for pin in tree.llvm] == [
        ("llvm", "49af6502c6dcb4a7f7520178bd14df396f78240c", "llvm-hash.txt")
    ]


def test_50b2f739a6_has_the_hash_in_cmake(tmp_path: Path) -> None:
    tree = read_triton(triton(tmp_path))
    assert (tree.version, tree.bindings) == ("3.6.0", "pybind11")
    (pin,) = tree.llvm
    assert (pin.commit, pin.file, pin.repository, pin.build_number) == (PREVIEW_LLVM, "cmake/llvm-hash.txt", None, None)


def test_7190a1c3c7_has_hash_build_and_digests(tmp_path: Path) -> None:
    (pin,) = read_triton(with_info(tmp_path, BUILT)).llvm
    assert (pin.name, pin.commit, pin.file) == ("llvm", BUILT["llvm_hash"], INFO)
    assert (pin.build_number, pin.sha256, pin.repository) == (1, {"ubuntu-x64": X64}, None)


def test_b5d2959a73_is_bound_by_nanobind_and_its_next_build_is_no_pin(tmp_path: Path) -> None:
    with_info(tmp_path, {**BUILT, "llvm_hash": "941a04e69ee8fe4c7a162b2f1e215aa8df867534"})
    following = {"llvm_hash": "2449c0e3a0a5ff2ec9d70efb9afb95e6e8fe8abd", "repository": "triton-lang/llvm-project"}
    lay(tmp_path, {"cmake/llvm-build-info.json": {**following, "build_number": 1}, "CMakeLists.txt": NANOBIND})
    tree = read_triton(tmp_path)
    assert tree.bindings == "nanobind"
    assert [pin.commit for pin in tree.llvm] == ["941a04e69ee8fe4c7a162b2f1e215aa8df867534"]


def test_c25e46bcab_has_a_second_llvm_for_amdgcn(tmp_path: Path) -> None:
    amd = {
        "llvm_hash": "ce3529423abda3fc4ad0b542daa50af21e539a29",
        "build_number": 3,
        "sha256sum": {},
        "bootstrap_llvm": {"build_number": 1, "sha256sum": {"ubuntu-x64": AMD_X64}},
    }
    following = {"llvm_hash": "d0c52018c28bbf7f4969cae7d115214ff4fd8629", "repository": "ROCm/llvm-project"}
    with_info(tmp_path, BUILT)
    lay(tmp_path, {"cmake/amd-llvm-info.json": amd, "cmake/amd-llvm-build-info.json": {**following, "build_number": 1}})
    main, second = read_triton(tmp_path).llvm
    assert (main.name, main.commit) == ("llvm", BUILT["llvm_hash"])
    assert (second.name, second.commit) == ("amd", "ce3529423abda3fc4ad0b542daa50af21e539a29")
    assert (second.build_number, second.sha256) == (1, {"ubuntu-x64": AMD_X64})


def test_the_repository_is_read_where_a_tree_names_one(tmp_path: Path) -> None:
    (pin,) = read_triton(with_info(tmp_path, {**BUILT, "repository": "triton-lang/llvm-project"})).llvm
    assert pin.repository == "https://github.com/triton-lang/llvm-project"


def test_both_forms_may_stand_side_by_side_when_they_agree(tmp_path: Path) -> None:
    (pin,) = read_triton(triton(tmp_path, {INFO: {**BUILT, "llvm_hash": PREVIEW_LLVM}})).llvm
    assert pin.file == INFO
    lay(tmp_path, {INFO: BUILT})
    with pytest.raises(WrongUsage, match=f"{PREVIEW_LLVM} in cmake/llvm-hash.txt and {BUILT['llvm_hash']} in {INFO}"):
        read_triton(tmp_path)


def test_a_version_is_also_found_in_setup_py(tmp_path: Path) -> None:
    triton(tmp_path, {"python/triton/__init__.py": "", "setup.py": 'TRITON_VERSION = "3.8.0" + suffix()\n'})
    assert read_triton(tmp_path).version == "3.8.0"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("cmake/llvm-hash.txt", None, "it has no LLVM pin"),
        # The one commit of upstream's history whose hash has 32 digits.
        ("cmake/llvm-hash.txt", "6f44bb7717897191be25aa01161831c6\n", "40 hex digits"),
        ("CMakeLists.txt", "find_package(Boost)\n", "neither pybind11 nor nanobind"),
        ("CMakeLists.txt", None, "neither pybind11 nor nanobind"),
        ("python/triton/__init__.py", "", "no version"),
        (INFO, "{ not json", "is not of the form we know"),
        (INFO, {"build_number": 1}, "is not of the form we know.*llvm_hash"),
        (INFO, {**BUILT, "llvm_hash": ["a"]}, "40 hex digits"),
        (INFO, {**BUILT, "sha256sum": [1]}, "is not of the form we know"),
        (INFO, [BUILT], "is not of the form we know"),
    ],
)
def test_an_unknown_layout_is_refused(tmp_path: Path, file: str, content: object, message: str) -> None:
    triton(tmp_path)
    if content is None:
        (tmp_path / file).unlink()
    else:
        lay(tmp_path, {file: content})
    with pytest.raises(WrongUsage, match=message) as refusal:
        read_triton(tmp_path)
    assert refusal.value.remedy


def test_an_empty_folder_is_no_triton(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="no Triton tree we know"):
        read_triton(tmp_path)


@pytest.mark.parametrize(
    ("version", "said"),
    [((22, 1, 8), "22.1.8"), ((23, 0, 0, "git"), "23.0.0git"), ((22, 1, 0, "-rc1"), "22.1.0-rc1")],
)
def test_an_llvm_says_its_version(tmp_path: Path, version: tuple[object, ...], said: str) -> None:
    assert read_llvm(llvm(tmp_path, *version), None).version == said


def test_an_old_llvm_says_its_version_in_another_file(tmp_path: Path) -> None:
    lines = [f"  set(LLVM_VERSION_{name} {part})\n" for name, part in (("MAJOR", 18), ("MINOR", 0), ("PATCH", 0))]
    lay(tmp_path, {"llvm/CMakeLists.txt": "".join([*lines, "  set(LLVM_VERSION_SUFFIX git)\n"])})
    tree = read_llvm(tmp_path, PREVIEW_LLVM)
    assert (tree.version, tree.commit) == ("18.0.0git", PREVIEW_LLVM)


def test_what_is_no_llvm_is_refused(tmp_path: Path) -> None:
    lay(tmp_path, {"CMakeLists.txt": PYBIND11})
    with pytest.raises(WrongUsage, match="is no LLVM tree") as refusal:
        read_llvm(tmp_path, None)
    assert "mlir" in refusal.value.remedy
