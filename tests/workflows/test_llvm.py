"""The libraries of LLVM through a cache, a release, a failing build and a machine that has none of them."""

import json
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.llvm.tiny import table_generators, tiny_llvm
from tests.pins.trees import PYBIND11, lay, preview
from tests.workflows.conftest import Project, Runner
from tests.workflows.runner import Event, Outcome

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BUILT = {"plan/plan": "success", "llvm/llvm": "success", "release": "success"}
MAIN, TAG = "refs/heads/main", "refs/tags/v1.0.0"


@pytest.fixture
def trees(tmp_path: Path, runner: Runner) -> dict[str, str]:
    """Trees that agree with the preview pins, of an LLVM that is built in seconds."""
    roots = preview(tmp_path)
    lay(Path(roots["TRITON_ROOT"]), {"CMakeLists.txt": f"{PYBIND11}target_link_libraries(triton LLVMPasses)\n"})
    tiny_llvm(Path(roots["LLVM_ROOT"]))
    generators = table_generators(tmp_path / "generators", "22.1.8")
    return {**roots, "TRITON_WASM_LLVM_TOOLS": str(generators), "TRITON_WASM_CACHE": str(runner.cache)}


def push(project: Project, ref: str = MAIN) -> Outcome:
    return project.run("llvm-cache.yml", Event(name="push", ref=ref))


def kept(project: Project, ref: str = MAIN) -> list[str]:
    """List the keys of what the caches of a ref hold, without the numbers of runs."""
    folders = (project.repository.state / "cache").glob("*")
    return sorted(unquote(path.stem) for folder in folders if unquote(folder.name) == ref for path in folder.iterdir())


def test_cold_it_is_built_kept_and_released_and_from_then_on_reused(
    project: Project, trees: dict[str, str], runner: Runner
) -> None:
    project = project.given(trees)
    cold = push(project)
    assert cold.jobs == BUILT, cold.tail
    key = json.loads(cold.outputs["plan/plan"]["plan"])["llvm"]["key"]
    assert "3 objects compiled, 0 reused from the compiler's cache" in cold.summaries["llvm/llvm"]
    libraries, objects = kept(project)
    assert libraries == f"llvm-{key}" and objects.startswith("llvm-objects-full-lto-")
    (release,) = project.releases()
    assert release["tag_name"] == f"llvm-{key[:16]}"
    assert f"llvm-{key[:16]}: published" in cold.summaries["release"]

    # A tag reads what the default branch has kept.
    runner.forget()
    warm = push(project, TAG)
    assert warm.jobs == BUILT, warm.tail
    assert "reused from the cache." in warm.summaries["llvm/llvm"]
    assert "The libraries are released already" in warm.summaries["release"]
    assert kept(project, TAG) == []

    # Evicted: what was released is verified and taken.
    runner.forget()
    shutil.rmtree(project.repository.state / "cache")
    evicted = push(project)
    assert evicted.jobs == BUILT, evicted.tail
    assert f"reused from a release of {project.hosted.name}." in evicted.summaries["llvm/llvm"]
    assert kept(project) == [libraries]


def test_what_was_compiled_before_a_failure_is_kept(project: Project, trees: dict[str, str], runner: Runner) -> None:
    project = project.given(trees)
    source = Path(trees["LLVM_ROOT"]) / "llvm/lib/LLVMPasses.cpp"
    good = source.read_text()
    source.write_text(f"{good}oh\n")
    failed = push(project)
    assert failed.jobs == {"plan/plan": "success", "llvm/llvm": "failure"}, failed.tail
    ((_, title, message),) = failed.annotations
    assert title == "llvm" and "Cannot build LLVMPasses.cpp.o" in message
    (objects,) = kept(project)
    assert objects.startswith("llvm-objects-")
    runner.forget()
    source.write_text(good)
    mended = push(project)
    assert mended.jobs == BUILT, mended.tail
    assert "1 objects compiled, 2 reused from the compiler's cache" in mended.summaries["llvm/llvm"]
