"""pyodide-build itself: that it is found and runs, what it makes, and how it fails."""

import shutil
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from installer.sources import WheelFile

from release.check.cases import load_cases
from release.check.node import check_package
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.module.sample import SAMPLE
from release.package.model import Contents, Package
from release.package.recipe import BuiltRecipe, Parts, RecipeTools, build_recipes, prepare_tools, write_recipes
from release.package.recipe import tools as tools_module
from release.pins.model import PinSet
from release.process import run
from release.toolchain.model import Toolchain
from tests.package.recipe.conftest import QUIET
from tests.toolchain.stand_ins import write_tool


@pytest.mark.slow
class TestTools:
    def test_it_is_run_by_the_targets_minor_version(self, tools: RecipeTools, pins: PinSet, tmp_path: Path) -> None:
        assert tools.python.startswith(f"{pins.pyodide.python_minor}.")
        completed = run(tools.command("--version", home=tmp_path), cwd=tmp_path)
        assert completed.returncode == 0
        assert tools.version in completed.output
        assert tools.version == metadata.version("pyodide-build")

    def test_it_is_laid_once(self, tools: RecipeTools, pins: PinSet, toolchain: Toolchain, cache: Path) -> None:
        launcher = tools.environment / "bin" / "pyodide"
        made = launcher.stat().st_mtime_ns
        assert prepare_tools(pins, toolchain, cache=cache, progress=QUIET) == tools
        assert launcher.stat().st_mtime_ns == made

    def test_the_python_of_the_tools_own_path_is_taken_first(
        self, tools: RecipeTools, pins: PinSet, toolchain: Toolchain, tmp_path: Path
    ) -> None:
        python = tools.environment / "bin" / "python"
        write_tool(tmp_path / "bin" / f"python{pins.pyodide.python_minor}", f'exec {python} "$@"')
        write_tool(tmp_path / "bin" / "make", "exit 0")
        elsewhere = replace(
            toolchain, provider="path", enter=(*toolchain.enter, f"PATH={tmp_path}/bin:/usr/sbin:/usr/bin")
        )
        found = prepare_tools(pins, elsewhere, cache=tmp_path / "cache", progress=QUIET)
        assert found.programs is None
        assert found.python == tools.python
        completed = run(found.command("--version", home=tmp_path), cwd=tmp_path)
        assert (completed.returncode, tools.version in completed.output) == (0, True)

    def test_another_minor_version_is_a_broken_environment(
        self, pins: PinSet, toolchain: Toolchain, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(tools_module.VARIABLE, "/usr/bin/python3.14")
        with pytest.raises(
            BrokenEnvironment, match=r"python3\.14 is Python 3\.14\.\d+, and pyodide-build needs .*, 3\.15"
        ) as problem:
            prepare_tools(pins, toolchain, cache=cache, progress=QUIET)
        assert tools_module.VARIABLE in problem.value.remedy

    def test_a_python_that_does_not_run_is_a_broken_environment(
        self, pins: PinSet, toolchain: Toolchain, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(tools_module.VARIABLE, str(write_tool(tmp_path / "python", "echo no libssl; exit 1")))
        with pytest.raises(BrokenEnvironment, match="python does not run: no libssl"):
            prepare_tools(pins, toolchain, cache=cache, progress=QUIET)

    def test_no_python_where_the_tools_are_not_ours_is_a_broken_environment(
        self, pins: PinSet, toolchain: Toolchain, cache: Path
    ) -> None:
        elsewhere = replace(toolchain, provider="emsdk")
        with pytest.raises(BrokenEnvironment, match=r"There is no python3\.15 on PATH, or no make"):
            prepare_tools(pins, elsewhere, cache=cache, progress=QUIET)

    def test_debian_without_that_python_is_a_broken_environment(
        self, pins: PinSet, toolchain: Toolchain, cache: Path
    ) -> None:
        future = pins.model_copy(update={"pyodide": pins.pyodide.model_copy(update={"python": "3.99.0"})})
        with pytest.raises(BrokenEnvironment, match=r"Debian sid has no Python 3\.99"):
            prepare_tools(future, toolchain, cache=cache, progress=QUIET)

    def test_a_cache_with_a_space_is_wrong_usage(self, pins: PinSet, toolchain: Toolchain, tmp_path: Path) -> None:
        with pytest.raises(WrongUsage, match="has a space in its path"):
            prepare_tools(pins, toolchain, cache=tmp_path / "a cache", progress=QUIET)

    @pytest.mark.parametrize(
        ("gone", "sentence"),
        [
            ("pyodide-build", "pyodide-build is not installed in this Python environment"),
            ("virtualenv", "virtualenv, which pyodide-build needs, is not installed"),
        ],
    )
    def test_without_pyodide_build_it_is_a_broken_environment(
        self,
        gone: str,
        sentence: str,
        pins: PinSet,
        toolchain: Toolchain,
        cache: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        installed = metadata.distribution

        def distribution(name: str) -> metadata.Distribution:
            if name == gone:
                raise metadata.PackageNotFoundError(name)
            return installed(name)

        monkeypatch.setattr(metadata, "distribution", distribution)
        with pytest.raises(BrokenEnvironment, match=sentence) as problem:
            prepare_tools(pins, toolchain, cache=cache, progress=QUIET)
        assert "uv sync" in problem.value.remedy


@pytest.mark.slow
class TestBuilt:
    def test_the_wheel_is_what_its_record_says(self, built: BuiltRecipe) -> None:
        with WheelFile.open(built.wheel) as source:
            source.validate_record()

    def test_it_leaves_the_recipes_as_they_were_and_nothing_half_done(self, built: BuiltRecipe, recipes: Path) -> None:
        assert sorted(path.name for path in recipes.glob("packages/*/*")) == [
            *("meta.yaml", "meta.yaml"),
            *("source", "source"),
        ]
        assert sorted(path.name for path in built.wheel.parents[1].iterdir()) == ["build.log", "dist"]

    def test_a_stock_pyodide_loads_it_and_every_case_of_the_sample_passes(
        self, built: BuiltRecipe, toolchain: Toolchain, tmp_path: Path
    ) -> None:
        package = Package(wheel=built.wheel, zip=built.wheel, lock=built.lock)
        report = check_package(
            package,
            load_cases(SAMPLE / "cases"),
            loaders=("lock",),
            imports=("exprc",),
            toolchain=toolchain,
            keep=tmp_path,
            progress=QUIET,
        )
        assert report.passed, [result.message for result in report.results if not result.passed]


@pytest.mark.slow
class TestFailures:
    def test_objects_that_cannot_be_linked_are_a_finding(
        self, crafted: Parts, contents: Contents, tools: RecipeTools, tmp_path: Path
    ) -> None:
        log = tmp_path / "failed.log"
        write_recipes(crafted, contents, tools.pins, tmp_path / "out", pyodide=tools.toolchain.pyodide)
        with pytest.raises(
            Finding, match=r"Cannot build the recipe of exprc: .*error: unknown file type: part/one\.o"
        ) as problem:
            build_recipes(tmp_path / "out", "exprc", tools, folder=tmp_path / "built", progress=QUIET, log=log)
        assert str(log) in problem.value.remedy
        assert "part/one.o" in log.read_text()
        assert list((tmp_path / "built").iterdir()) == []

    def test_a_library_that_puts_nothing_there_is_a_finding(
        self, recipes: Path, tools: RecipeTools, tmp_path: Path
    ) -> None:
        copy = Path(shutil.copytree(recipes, tmp_path / "recipes"))
        meta = copy / "packages" / "libexprc" / "meta.yaml"
        meta.write_text(meta.read_text().replace("cp -R", "true"))
        with pytest.raises(Finding, match=r"libexprc\.a is missing: the recipe of the host library did not"):
            build_recipes(copy, "exprc", tools, folder=tmp_path / "built", progress=QUIET)

    def test_a_package_without_its_library_is_a_finding(
        self, recipes: Path, tools: RecipeTools, tmp_path: Path
    ) -> None:
        copy = Path(shutil.copytree(recipes, tmp_path / "recipes"))
        shutil.rmtree(copy / "packages" / "libexprc")
        with pytest.raises(Finding, match="No metadata file found for the following package: libexprc"):
            build_recipes(copy, "exprc", tools, folder=tmp_path / "built", progress=QUIET)

    def test_a_space_in_the_work_dir_is_wrong_usage(self, recipes: Path, tools: RecipeTools, tmp_path: Path) -> None:
        with pytest.raises(WrongUsage, match="has a space in its path"):
            build_recipes(recipes, "exprc", tools, folder=tmp_path / "a folder", progress=QUIET)
