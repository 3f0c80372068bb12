"""The sample's recipe, written and built once by the real pyodide-build: 15 seconds."""

import shutil
from pathlib import Path

import pytest

from release.module.sample import SAMPLE, load_sample
from release.package.model import Contents
from release.package.recipe import (
    BuiltRecipe,
    Library,
    Linking,
    Parts,
    RecipeTools,
    build_recipes,
    prepare_tools,
    write_recipes,
)
from release.package.recipe.parts import build_sample_parts, sample_parts
from release.pins.load import load_profile
from release.pins.model import PinSet, Profile
from release.pipeline import Pipeline
from release.products.sample import SampleProduct
from release.progress import Progress
from release.stage import Stages
from release.toolchain.model import Toolchain

QUIET = Progress(quiet=True)


@pytest.fixture(scope="session")
def profile(pins: PinSet) -> Profile:
    return load_profile("release", pins)


@pytest.fixture
def crafted(tmp_path: Path, profile: Profile) -> Parts:
    """Parts whose objects and archives hold nothing that could be linked."""
    library, objects = tmp_path / "library", tmp_path / "objects"
    for path in (library / "lib" / "libA.a", objects / "part" / "one.o", objects / "two.o"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return Parts(
        library=Library(name="liba", version="2.0", summary="Things: to link", license="MIT", folder=library),
        linking=Linking(
            names=("part/one.o", "two.o", "a/lib/libA.a"),
            objects={"part": objects / "part", "two.o": objects / "two.o"},
            libraries={"a": "."},
            init="PyInit__exprc",
            output="_exprc.wasm",
            profile=profile,
            variant="Oz",
        ),
    )


@pytest.fixture(scope="session")
def tools(pins: PinSet, toolchain: Toolchain, cache: Path) -> RecipeTools:
    return prepare_tools(pins, toolchain, cache=cache, progress=QUIET)


@pytest.fixture(scope="session")
def sample_contents(pipeline: Pipeline, profile: Profile, sample_module: Path) -> Contents:
    return SampleProduct(profile).pack(Stages(pipeline.work, QUIET), sample_module).contents


@pytest.fixture(scope="session")
def recipes(
    pipeline: Pipeline, pins: PinSet, profile: Profile, toolchain: Toolchain, sample_contents: Contents
) -> Path:
    """The recipes of the sample, in a folder that was moved after they were written."""
    folder = pipeline.work / "written"
    variant = pipeline.module(toolchain).variant
    sample, made = load_sample(), pipeline.work / "parts"
    with QUIET.steps("parts", 1) as steps:
        build_sample_parts(sample, SAMPLE, profile, toolchain, folder=made, steps=steps)
    parts = sample_parts(sample, made, profile, variant)
    write_recipes(parts, sample_contents, pins, folder, pyodide=toolchain.pyodide)
    shutil.rmtree(made)
    return folder.rename(pipeline.work / "recipes")


@pytest.fixture(scope="session")
def built(pipeline: Pipeline, recipes: Path, sample_contents: Contents, tools: RecipeTools) -> BuiltRecipe:
    return build_recipes(recipes, sample_contents.name, tools, folder=pipeline.work / "built", progress=QUIET)
