import importlib.metadata
import json
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from installer import install
from installer.destinations import SchemeDictionaryDestination
from installer.sources import WheelFile
from packaging.metadata import Metadata
from packaging.tags import parse_tag
from packaging.utils import parse_wheel_filename
from pyodide_lock import PyodideLockSpec

from release.artifacts import sha256_of
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.package.build import build_package
from release.package.model import Contents, Package
from release.package.readback import read_back
from release.pins.model import PinSet
from tests.package.crafted import MODULE, SIDE_MODULE, elf

TAG = "cp315-cp315-pyemscripten_2026_5_wasm32"


@pytest.fixture
def package(contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path) -> Package:
    return build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "a folder with spaces")


def test_three_files_and_nothing_else(package: Package) -> None:
    assert sorted(path.name for path in package.wheel.parent.iterdir()) == [
        f"exprc-1.0.0-{TAG}.whl",
        "exprc-1.0.0.zip",
        "pyodide-lock.json",
    ]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o644 for path in package.wheel.parent.iterdir())


def test_the_wheels_name_is_read_by_packaging(package: Package) -> None:
    name, version, build, tags = parse_wheel_filename(package.wheel.name)
    assert (name, str(version), build, tags) == ("exprc", "1.0.0", (), parse_tag(TAG))


def test_entries_are_sorted_with_the_metadata_last(package: Package) -> None:
    with ZipFile(package.wheel) as archive:
        assert archive.namelist() == [
            "exprc/__init__.py",
            MODULE,
            "exprc/data/a table, with comma.txt",
            "exprc-1.0.0.dist-info/METADATA",
            "exprc-1.0.0.dist-info/WHEEL",
            "exprc-1.0.0.dist-info/entry_points.txt",
            "exprc-1.0.0.dist-info/licenses/LICENSE",
            "exprc-1.0.0.dist-info/RECORD",
        ]
        assert archive.read(MODULE) == SIDE_MODULE
        for entry in archive.infolist():
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            assert entry.external_attr >> 16 == stat.S_IFREG | 0o644
            assert (entry.create_system, entry.compress_type, entry.extra) == (3, ZIP_DEFLATED, b"")


def test_the_zip_is_the_wheel_under_another_name(package: Package) -> None:
    assert package.zip.read_bytes() == package.wheel.read_bytes()


def test_the_metadata_says_what_it_must(package: Package) -> None:
    with WheelFile.open(package.wheel) as source:
        metadata = Metadata.from_email(source.read_dist_info("METADATA"))
    assert metadata.metadata_version == "2.4"
    assert (metadata.name, str(metadata.version)) == ("exprc", "1.0.0")
    assert metadata.summary == "A compiler for arithmetic expressions"
    assert metadata.license_expression == "Apache-2.0"
    assert metadata.license_files == ["LICENSE"]
    assert metadata.requires_dist is None
    assert metadata.requires_python is not None
    # The pinned Python is a release candidate: `>=3.15` would refuse it.
    assert metadata.requires_python.contains("3.15.0rc1", prereleases=True)
    assert not metadata.requires_python.contains("3.14.2")
    assert not metadata.requires_python.contains("3.16.0")


def test_twine_finds_nothing(package: Package) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", package.wheel], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout


def test_wheel_unpacks_it(package: Package, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "wheel", "unpack", package.wheel, "--dest", tmp_path / "out"], check=True)
    assert (tmp_path / "out" / "exprc-1.0.0" / MODULE).read_bytes() == SIDE_MODULE


def test_installer_installs_it(package: Package, tmp_path: Path) -> None:
    schemes = {name: str(tmp_path / name) for name in ("purelib", "platlib", "headers", "scripts", "data")}
    destination = SchemeDictionaryDestination(schemes, interpreter=sys.executable, script_kind="posix")
    with WheelFile.open(package.wheel) as source:
        source.validate_record()
        install(source, destination, {"INSTALLER": b"tests"})
    assert (tmp_path / "platlib" / MODULE).read_bytes() == SIDE_MODULE
    (found,) = importlib.metadata.distributions(path=[str(tmp_path / "platlib")])
    assert [(point.group, point.name, point.value) for point in found.entry_points] == [
        ("exprc.things", "answer", "exprc:answer")
    ]


def test_without_entry_points_there_is_no_file_of_them(
    contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    package = build_package(replace(contents, entry_points=""), pins, pyodide=pyodide, folder=tmp_path / "out")
    with ZipFile(package.wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith("entry_points.txt")]


def test_the_lock_has_pyodides_own_info_and_this_package_alone(package: Package, pyodide: Path) -> None:
    lock = PyodideLockSpec.from_json(package.lock)
    lock.check_wheel_filenames()
    assert lock.info == PyodideLockSpec.from_json(pyodide / "pyodide-lock.json").info
    (entry,) = lock.packages.values()
    assert list(lock.packages) == ["exprc"] == [entry.name] == entry.imports
    assert entry.file_name == package.wheel.name
    assert entry.sha256 == sha256_of(package.wheel)
    assert (entry.version, entry.install_dir, entry.package_type) == ("1.0.0", "site", "package")
    assert (entry.depends, entry.unvendored_tests) == ([], False)


def test_names_and_versions_are_written_as_the_standards_have_them(
    contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    named = replace(contents, name="Expr-C.wasm", version="1.0-post1+Local.2")
    package = build_package(named, pins, pyodide=pyodide, folder=tmp_path / "out")
    assert package.wheel.name == f"expr_c_wasm-1.0.post1+local.2-{TAG}.whl"
    assert package.zip.name == "expr_c_wasm-1.0.post1+local.2.zip"
    assert list(json.loads(package.lock.read_text())["packages"]) == ["expr-c-wasm"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"version": "one"}, "'one' is not a Python version"),
        ({"name": "ex prc"}, "bad name"),
        ({"license": "Apache 2"}, "bad license-expression"),
        ({"summary": "two\nlines"}, "bad summary"),
        ({"extension": "exprc/_exprc"}, "is not the dotted import name of a module"),
        ({"extension": "exprc._exprc.so-"}, "is not the dotted import name of a module"),
        ({"module": Path("/nowhere/x.wasm")}, "There is no file /nowhere/x.wasm with the side module"),
        (
            {"license_files": {"LICENSE": Path("/nowhere/LICENSE")}},
            "There is no file /nowhere/LICENSE with the licence",
        ),
        ({"python": Path("/nowhere")}, "There is no folder /nowhere"),
    ],
)
def test_contents_that_cannot_be_packaged_are_wrong_usage(
    changes: dict[str, object], sentence: str, contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    with pytest.raises(WrongUsage, match=sentence):
        build_package(replace(contents, **changes), pins, pyodide=pyodide, folder=tmp_path / "out")  # type: ignore[arg-type]


def test_what_breaks_the_boundary_is_never_under_its_final_name(
    contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    (contents.python / "exprc" / "data" / "model.bin").write_bytes(elf(190))
    (contents.python / "exprc" / "ptxas").write_bytes(b"#!/bin/sh\n")
    with pytest.raises(Finding, match=r"exprc/data/model\.bin is a cubin \(1 more\)"):
        build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_what_is_not_imported_is_not_the_packages_own(
    contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    (contents.python / "tests").mkdir()
    (contents.python / "tests" / "test_it.py").write_text("")
    with pytest.raises(Finding, match=r"tests/test_it\.py is outside the package's own exprc"):
        build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "out")
    build_package(replace(contents, imports=("exprc", "tests.x")), pins, pyodide=pyodide, folder=tmp_path / "out")


@pytest.mark.parametrize("target", ["__init__.py", "data"])
def test_links_are_refused(target: str, contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path) -> None:
    (contents.python / "exprc" / "link").symlink_to(target)
    with pytest.raises(Finding, match="exprc/link is a symbolic link"):
        build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "out")


@pytest.mark.parametrize("name", [MODULE, "exprc-1.0.0.dist-info/METADATA", "exprc-1.0.0.dist-info/RECORD"])
def test_the_tree_may_not_hold_what_is_written(
    name: str, contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    (contents.python / name).parent.mkdir(exist_ok=True)
    (contents.python / name).write_text("mine")
    with pytest.raises(Finding, match=f"already holds {name}, which the package stage writes"):
        build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "out")


def test_names_that_are_not_unicode_are_refused(
    contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    (contents.python / "exprc" / "caf\udce9.txt").write_text("")
    with pytest.raises(Finding, match="not UTF-8"):
        build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "out")


def test_another_pyodide_is_a_broken_environment(
    contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    lock = json.loads((pyodide / "pyodide-lock.json").read_text())
    lock["info"]["abi_version"] = "2026_0"
    other = tmp_path / "pyodide"
    other.mkdir()
    (other / "pyodide-lock.json").write_text(json.dumps(lock))
    with pytest.raises(BrokenEnvironment, match=r"is a Pyodide of ABI 2026_0 .* names ABI 2026_5"):
        build_package(contents, pins, pyodide=other, folder=tmp_path / "out")
    (other / "pyodide-lock.json").write_text("[]")
    with pytest.raises(BrokenEnvironment, match="cannot be read as Pyodide's lock file"):
        build_package(contents, pins, pyodide=other, folder=tmp_path / "out")


class TestReadBack:
    """What was right when it was written is refused after somebody touched it."""

    def test_a_good_package_passes(self, package: Package, contents: Contents, pins: PinSet) -> None:
        read_back(package, contents, pins, module=MODULE)

    def test_another_module(self, package: Package, contents: Contents, pins: PinSet) -> None:
        contents.module.write_bytes(SIDE_MODULE + b"\0")
        with pytest.raises(Finding, match="is not the module"):
            read_back(package, contents, pins, module=MODULE)

    def test_a_changed_file(self, package: Package, contents: Contents, pins: PinSet) -> None:
        self._rewrite(package.wheel, {"exprc/__init__.py": b"answer = 43\n"})
        with pytest.raises(Finding, match="is not what its RECORD says"):
            read_back(package, contents, pins, module=MODULE)

    def test_a_file_more(self, package: Package, contents: Contents, pins: PinSet) -> None:
        self._rewrite(package.wheel, {"exprc/more.py": b""})
        with pytest.raises(Finding, match=r"exprc/more\.py is not mentioned in RECORD"):
            read_back(package, contents, pins, module=MODULE)

    def test_a_file_less(self, package: Package, contents: Contents, pins: PinSet) -> None:
        self._rewrite(package.wheel, {}, without="exprc/__init__.py")
        with pytest.raises(Finding, match=r"lists exprc/__init__\.py, which is not there"):
            read_back(package, contents, pins, module=MODULE)

    def test_another_zip(self, package: Package, contents: Contents, pins: PinSet) -> None:
        package.zip.write_bytes(package.zip.read_bytes() + b"\0")
        with pytest.raises(Finding, match="are not the same bytes"):
            read_back(package, contents, pins, module=MODULE)

    def test_a_lock_entry_with_a_wrong_digest(self, package: Package, contents: Contents, pins: PinSet) -> None:
        digest = sha256_of(package.wheel)
        package.lock.write_text(package.lock.read_text().replace(digest, "0" * 64))
        with pytest.raises(Finding, match=r"names .* with SHA-256 0000"):
            read_back(package, contents, pins, module=MODULE)

    def test_a_lock_with_more_packages(self, package: Package, contents: Contents, pins: PinSet, pyodide: Path) -> None:
        shutil.copyfile(pyodide / "pyodide-lock.json", package.lock)
        with pytest.raises(Finding, match="is not a lock file with one package"):
            read_back(package, contents, pins, module=MODULE)

    @staticmethod
    def _rewrite(wheel: Path, changes: dict[str, bytes], *, without: str = "") -> None:
        with ZipFile(wheel) as archive:
            files = {name: archive.read(name) for name in archive.namelist() if name != without} | changes
        with ZipFile(wheel, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
