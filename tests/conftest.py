"""What the tests share: the real toolchain, and the sample built once with it by the project's own pipeline."""

import signal
from pathlib import Path

import pytest

from release.package.model import Package
from release.pins.load import load_pins, load_profile
from release.pins.model import PinSet
from release.pipeline import Pipeline, Request
from release.places import cache_folder
from release.products.sample import SampleProduct
from release.progress import Progress
from release.toolchain.model import Toolchain

# A shell that starts us in the background has us ignore Ctrl-C, and so would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def cache() -> Path:
    """The cache of the machine: what is in it was fetched by pin and hash, and fetching it again proves nothing."""
    return cache_folder()


@pytest.fixture(scope="session")
def pins() -> PinSet:
    return load_pins("preview")


@pytest.fixture(scope="session")
def pipeline(cache: Path, pins: PinSet, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    profile = load_profile("release", pins)
    request = Request(
        pins=pins,
        profile=profile,
        cache=cache,
        work=tmp_path_factory.mktemp("work"),
    )
    return Pipeline(request, SampleProduct(profile), Progress(quiet=True))


@pytest.fixture(scope="session")
def toolchain(pipeline: Pipeline) -> Toolchain:
    return pipeline.toolchain()


@pytest.fixture(scope="session")
def node(toolchain: Toolchain) -> Path:
    return toolchain.node


@pytest.fixture(scope="session")
def pyodide(toolchain: Toolchain) -> Path:
    return toolchain.pyodide


@pytest.fixture(scope="session")
def sample_module(pipeline: Pipeline, toolchain: Toolchain) -> Path:
    return pipeline.module(toolchain).path


@pytest.fixture(scope="session")
def sample_package(pipeline: Pipeline, toolchain: Toolchain) -> Package:
    return pipeline.package(toolchain, pipeline.module(toolchain))
