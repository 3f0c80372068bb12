"""The recipes as they are written: what pyodide-build's own model says of them, and what they hold."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pyodide_build.recipe.spec import MetaConfig  # type: ignore[import-untyped]

from release.artifacts import files_below
from release.errors import WrongUsage
from release.module.build import FIXED_ADDRESSES, fixed_addresses, link
from release.module.ladder import climb
from release.module.triton import INPUTS
from release.package.build import build_package
from release.package.model import Contents
from release.package.recipe import Parts, write_recipes
from release.package.recipe.commands import commands
from release.package.recipe.parts import triton_parts
from release.pins.model import PinSet, Profile, Variant
from release.process import Completed
from tests.package.crafted import MODULE


@pytest.fixture
def recipes(crafted: Parts, contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path) -> Path:
    write_recipes(crafted, contents, pins, tmp_path / "out", pyodide=pyodide)
    return tmp_path / "out" / "packages"


class TestMeta:
    def test_the_library_is_static_and_is_laid_where_libraries_are(self, recipes: Path) -> None:
        meta = MetaConfig.from_yaml(recipes / "liba" / "meta.yaml")
        assert meta.build.package_type == "static_library"
        assert (meta.package.name, meta.package.version) == ("liba", "2.0")
        assert (meta.about.summary, meta.about.license) == ("Things: to link", "MIT")
        assert meta.source.path is not None
        assert (meta.source.path / "prefix" / "lib" / "libA.a").is_file()
        assert 'cp -R prefix/. "${WASM_LIBRARY_DIR}"' in (meta.build.script or "")

    def test_the_package_needs_the_library_to_be_built_and_nothing_to_run(self, recipes: Path) -> None:
        meta = MetaConfig.from_yaml(recipes / "exprc" / "meta.yaml")
        assert meta.build.package_type == "package"
        assert meta.requirements.host == ["liba"]
        assert meta.requirements.run == []
        assert "run: []" in (recipes / "exprc" / "meta.yaml").read_text()
        assert (meta.package.name, meta.package.version, meta.package.top_level) == ("exprc", "1.0.0", ["exprc"])
        assert meta.test.imports == ["exprc"]
        assert not meta.build.unvendor_tests

    def test_the_model_would_refuse_a_library_with_flags_of_a_package(self, recipes: Path) -> None:
        path = recipes / "liba" / "meta.yaml"
        path.write_text(path.read_text().replace("  script: |", "  cflags: -O3\n  script: |"))
        with pytest.raises(ValueError, match="'build/cflags' key is not allowed"):
            MetaConfig.from_yaml(path)


def test_what_is_packed_is_what_the_direct_path_packs(
    recipes: Path, contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    laid = recipes / "exprc" / "source" / "files"
    with ZipFile(build_package(contents, pins, pyodide=pyodide, folder=tmp_path / "direct").wheel) as wheel:
        direct = {name: wheel.read(name) for name in wheel.namelist()}
    here = {path.relative_to(laid).as_posix(): path.read_bytes() for path in files_below(laid)}
    assert here == {name: text for name, text in direct.items() if name not in (MODULE, "exprc-1.0.0.dist-info/RECORD")}
    recipe = json.loads((recipes / "exprc" / "source" / "recipe.json").read_text())
    assert recipe["module"] == MODULE


def test_written_to_be_built_at_once_it_links_to_what_there_is(
    crafted: Parts, contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    write_recipes(crafted, contents, pins, tmp_path / "out", pyodide=pyodide, copy=False)
    packages = tmp_path / "out" / "packages"
    assert (packages / "liba" / "source" / "prefix").readlink() == crafted.library.folder
    assert (packages / "exprc" / "source" / "link" / "part").readlink() == crafted.linking.objects["part"]


@pytest.mark.parametrize("gone", ["library/lib/libA.a", "objects/part/one.o"])
def test_what_is_linked_and_not_there_is_wrong_usage(
    gone: str, crafted: Parts, contents: Contents, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    (tmp_path / gone).unlink()
    with pytest.raises(WrongUsage, match=f"There is no .*{gone}, which the module is linked from"):
        write_recipes(crafted, contents, pins, tmp_path / "out", pyodide=pyodide)
    assert not (tmp_path / "out").exists()


class _Recorder:
    """A toolchain that writes down what it is to run, and makes the output."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []

    def run(self, command: Sequence[Any], *, cwd: Path | None = None, timeout: float | None = None) -> Completed:
        self.ran.append([str(part) for part in command])
        if "-o" in command:
            (cwd or Path("/")).joinpath(str(command[-1])).write_bytes(b"\0asm\1\0\0\0")
        return Completed(command=(), returncode=0, output="", seconds=0, peak_memory=0)


@pytest.mark.parametrize("variant", ["none", "Oz", "O3"])
def test_the_commands_are_those_of_the_direct_path(
    variant: Variant, crafted: Parts, profile: Profile, tmp_path: Path
) -> None:
    linking = replace(crafted.linking, variant=variant)
    recorder: Any = _Recorder()
    place, output, optimised = tmp_path / "objects", tmp_path / linking.output, tmp_path / "optimised"
    link(linking.names, place, linking.init, profile, recorder, output)
    audit: Any = lambda path: None  # noqa: E731
    climb(output, variant, profile.optimise, recorder, output=optimised, audit=audit)
    direct = [command for command in recorder.ran if command[-1] != "true"]
    wanted = [[*FIXED_ADDRESSES, *part] if part[0] == "em++" else part for part in commands(linking)]
    module = {str(output): f"../{linking.output}", str(optimised): f"../{linking.output}"}
    relative = [[module.get(part, part) for part in command] for command in direct]
    assert relative == wanted
    assert fixed_addresses(recorder) == FIXED_ADDRESSES


def test_triton_is_linked_with_the_installed_llvm(
    crafted: Parts, contents: Contents, pins: PinSet, pyodide: Path, profile: Profile, tmp_path: Path
) -> None:
    class Libraries:
        prefix, version = crafted.library.folder, "22.1"

    objects = tmp_path / "triton objects"
    (objects / "triton" / "lib").mkdir(parents=True)
    (objects / "triton" / "lib" / "main.cc.o").touch()
    host = tmp_path / "host stage"
    (host / "host").mkdir(parents=True)
    (host / "host" / "math.o").touch()
    (objects / INPUTS).write_text(json.dumps({"objects": ["triton/lib/main.cc.o"], "archives": ["llvm/lib/libA.a"]}))
    libraries: Any = Libraries
    parts = triton_parts(objects, host, libraries, profile, "none")
    triton = replace(contents, name="triton", version="3.6.0+git50b2f739", extension="triton._C.libtriton")
    write_recipes(parts, triton, pins, tmp_path / "out", pyodide=pyodide)
    packages = tmp_path / "out" / "packages"
    meta = MetaConfig.from_yaml(packages / "triton" / "meta.yaml")
    assert (meta.requirements.host, meta.requirements.run) == (["libllvm"], [])
    assert meta.package.version == "3.6.0+git50b2f739"
    recipe = json.loads((packages / "triton" / "source" / "recipe.json").read_text())
    assert recipe["libraries"] == {"llvm": "."}
    assert recipe["module"] == f"triton/_C/libtriton{MODULE.removeprefix('exprc/_exprc')}"
    (command,) = recipe["commands"]
    assert command[-5:] == ["triton/lib/main.cc.o", "host/math.o", "llvm/lib/libA.a", "-o", "../libtriton.wasm"]
