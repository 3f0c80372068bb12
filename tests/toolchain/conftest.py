"""Caches that hold what was fetched once, and tools that are scripts around the real ones."""

import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from release.toolchain import emsdk, providers
from release.toolchain.model import Toolchain
from scripts import bare_machine
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


@pytest.fixture(scope="session", autouse=True)
def git_on_path(cache: Path) -> Iterator[None]:
    """Git for the repositories that tests make: a machine that was given an archive may have none of its own."""
    with pytest.MonkeyPatch.context() as patch:
        if not shutil.which("git"):
            folder = cache / "tests" / "git"
            if not (folder / "usr" / "bin" / "git").is_file():
                apt = bare_machine.Apt(cache / "tests" / "apt")
                bare_machine.unpack(apt.download("git", dependencies=True), folder)
                shutil.rmtree(apt.folder)
            libraries = ":".join(str(path) for path in (folder / "usr" / "lib").glob("*-linux-gnu"))
            program = cache / "tests" / "bin" / "git"
            program.parent.mkdir(exist_ok=True)
            program.write_text(
                f'#!/bin/sh\nexport GIT_EXEC_PATH="{folder}/usr/lib/git-core" LD_LIBRARY_PATH="{libraries}"\n'
                f'exec "{folder}/usr/bin/git" "$@"\n'
            )
            program.chmod(0o755)
            patch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        yield
