"""Two packages beside one another: what pyodide-build does to a wheel has a reason, and nothing else has."""

import json
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pytest
from wheel.wheelfile import WheelFile  # type: ignore[import-untyped]

from release.artifacts import sha256_of
from release.errors import Finding
from release.package.build import build_package
from release.package.model import Contents, Package
from release.package.recipe import BuiltRecipe, compare, describe, require_same
from release.pins.model import PinSet
from tests.package.crafted import MODULE

INFO = "exprc-1.0.0.dist-info"


@pytest.fixture
def direct(contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path) -> Package:
    return build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "direct")


class Repacked:
    """The direct path's wheel, packed again in the way of pyodide-build, with changes."""

    def __init__(self, direct: Package, folder: Path) -> None:
        folder.mkdir()
        self._direct = direct
        self.wheel, self.lock = folder / direct.wheel.name, folder / direct.lock.name
        with ZipFile(direct.wheel) as archive:
            self.files = {name: archive.read(name) for name in archive.namelist()}
        self.mode, self.compression, self.true_record = 0o600, ZIP_DEFLATED, True

    def build(self, **lock: str) -> BuiltRecipe:
        if self.true_record:
            with WheelFile(str(self.wheel), "w") as archive:
                for name, content in reversed(self.files.items()):
                    if not name.endswith("/RECORD"):
                        archive.writestr(name, content)
            with ZipFile(self.wheel) as written:
                self.files = {name: written.read(name) for name in written.namelist()}
        with ZipFile(self.wheel, "w") as target:
            for name, content in self.files.items():
                entry = ZipInfo(name, (2026, 1, 2, 3, 4, 6))
                entry.external_attr, entry.compress_type = self.mode << 16, self.compression
                target.writestr(entry, content)
        document = json.loads(self._direct.lock.read_text())
        document["packages"]["exprc"] |= {"sha256": sha256_of(self.wheel), **lock}
        self.lock.write_text(json.dumps(document))
        return BuiltRecipe(wheel=self.wheel, lock=self.lock)


@pytest.fixture
def repacked(direct: Package, tmp_path: Path) -> Repacked:
    return Repacked(direct, tmp_path / "repacked")


def test_the_same_files_are_the_same(direct: Package) -> None:
    same = compare(direct, BuiltRecipe(wheel=direct.wheel, lock=direct.lock))
    require_same(same)
    assert describe(same) == "The two packages are the same."


def test_packing_again_is_explained(direct: Package, repacked: Repacked) -> None:
    repacked.files[f"{INFO}/WHEEL"] += b"\n"
    differences = compare(direct, repacked.build())
    require_same(differences)
    assert {difference.where for difference in differences} == {
        "order in the archive",
        "times in the archive",
        "modes in the archive",
        f"{INFO}/WHEEL",
        f"{INFO}/RECORD",
        "lock file, packages.exprc.sha256",
    }
    assert "UNEXPLAINED" not in describe(differences)


def _unexplained(direct: Package, built: BuiltRecipe) -> set[str]:
    differences = compare(direct, built)
    found = {difference.where for difference in differences if difference.why is None}
    if found:
        assert "UNEXPLAINED" in describe(differences)
        with pytest.raises(Finding, match="nobody knows why"):
            require_same(differences)
    return found


def test_another_module_is_not_explained(direct: Package, repacked: Repacked) -> None:
    repacked.files[MODULE] += b"\0\0"
    assert _unexplained(direct, repacked.build()) == {MODULE}


def test_a_file_changed_behind_its_record_spoils_both(direct: Package, repacked: Repacked) -> None:
    repacked.build()
    repacked.files["exprc/__init__.py"] = b"answer = 43\n"
    repacked.true_record = False
    assert _unexplained(direct, repacked.build()) == {"exprc/__init__.py", f"{INFO}/RECORD"}


def test_a_file_more_and_a_file_less_are_not_explained(direct: Package, repacked: Repacked) -> None:
    del repacked.files["exprc/data/a table, with comma.txt"]
    repacked.files["exprc/new.py"] = b""
    found = _unexplained(direct, repacked.build())
    names = {"exprc/data/a table, with comma.txt", "exprc/new.py"}
    assert found == {*names, f"{INFO}/RECORD", "order in the archive"}


def test_another_wheel_file_than_with_an_empty_line_is_not_explained(direct: Package, repacked: Repacked) -> None:
    repacked.files[f"{INFO}/WHEEL"] += b"Build: 1\n"
    assert _unexplained(direct, repacked.build()) == {f"{INFO}/WHEEL"}


@pytest.mark.parametrize("mode", [0o755, 0o120777])
def test_a_program_or_a_link_is_not_explained(mode: int, direct: Package, repacked: Repacked) -> None:
    repacked.mode = mode
    assert _unexplained(direct, repacked.build()) == {"modes in the archive"}


def test_another_compression_is_not_explained(direct: Package, repacked: Repacked) -> None:
    repacked.compression = ZIP_STORED
    assert _unexplained(direct, repacked.build()) == {"compression in the archive"}


def test_another_lock_entry_is_not_explained(direct: Package, repacked: Repacked) -> None:
    found = _unexplained(direct, repacked.build(install_dir="dynlib", sha256="0" * 64))
    assert found == {"lock file, packages.exprc.install_dir", "lock file, packages.exprc.sha256"}


def test_another_tag_is_not_explained(direct: Package, repacked: Repacked) -> None:
    built = repacked.build()
    wheel = built.wheel.rename(built.wheel.with_name(built.wheel.name.replace("2026_5", "2026_4")))
    assert "name of the wheel" in _unexplained(direct, BuiltRecipe(wheel=wheel, lock=built.lock))


def test_what_is_no_wheel_is_a_finding(direct: Package, tmp_path: Path) -> None:
    wheel = tmp_path / direct.wheel.name
    wheel.write_bytes(b"no wheel")
    with pytest.raises(Finding, match="cannot be compared: File is not a zip file"):
        compare(direct, BuiltRecipe(wheel=wheel, lock=direct.lock))


@pytest.mark.slow
class TestSample:
    def test_the_recipe_gives_the_package_of_the_direct_path(self, sample_package: Package, built: BuiltRecipe) -> None:
        differences = compare(sample_package, built)
        require_same(differences)
        # Neither the module nor any file of the package but the two that packing writes.
        files = {each.where for each in differences if "/" in each.where}
        assert files == {f"{INFO}/WHEEL", f"{INFO}/RECORD"}
        assert len(differences) == 7

    def test_one_byte_of_the_built_module_is_found(
        self, sample_package: Package, built: BuiltRecipe, tmp_path: Path
    ) -> None:
        wheel = tmp_path / built.wheel.name
        with ZipFile(built.wheel) as archive, ZipFile(wheel, "w") as tampered:
            for entry in archive.infolist():
                content = bytearray(archive.read(entry))
                if entry.filename == MODULE:
                    content[len(content) // 2] ^= 1
                tampered.writestr(entry, bytes(content))
        found = _unexplained(sample_package, BuiltRecipe(wheel=wheel, lock=built.lock))
        assert found == {MODULE, f"{INFO}/RECORD", "lock file, packages.exprc.sha256"}
