"""Caches that hold what was fetched once, and tools that are scripts around the real ones."""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from release.toolchain import emsdk, providers
from release.toolchain.model import Toolchain
from tests.toolchain.stand_ins import CLOSED, write_tool


@pytest.fixture
def half_cache(toolchain: Toolchain, tmp_path: Path) -> Path:
    """A cache with Pyodide and the headers in it and no tools; its path has a space."""
    cache = tmp_path / "a cache"
    for folder in (toolchain.pyodide.parent, toolchain.python_include):
        shutil.copytree(folder, cache / "toolchain" / folder.parent.name / folder.name)
    return cache


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Allow just one provider."""
    return lambda provider: monkeypatch.setenv(providers.VARIABLE, provider)


@pytest.fixture
def tools(toolchain: Toolchain, tmp_path: Path) -> Path:
    """A folder with em++, wasm-opt and em-config that call the real ones."""
    folder = tmp_path / "some tools"
    for name in ("em++", "wasm-opt", "em-config"):
        write_tool(folder / name, f'exec {shlex.join(toolchain.command([name]))} "$@"')
    return folder


@pytest.fixture
def on_path(tools: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, first in PATH."""
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    return tools


@pytest.fixture(autouse=True)
def _no_emsdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the tests from the real emsdk: it is 300 MB, where it can be reached at all."""
    monkeypatch.delenv("EMSDK", raising=False)
    monkeypatch.setattr(emsdk, "REPOSITORY", CLOSED)
