"""The set-up commands: what they need is pinned, what they do is little the second time, what fails is told."""

import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from release import places
from release.places import CHECKOUT
from scripts import bootstrap
from tests.command import copy_of_checkout, edit
from tests.toolchain.stand_ins import CLOSED, write_tool


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return copy_of_checkout(tmp_path / "a checkout")


def test_uv_is_the_one_that_the_project_asks_for() -> None:
    wanted = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["uv"]["required-version"]
    text = (CHECKOUT / "scripts" / "uv-requirements.txt").read_text()
    assert re.findall(r"^uv(\S+) ", text, re.MULTILINE) == [wanted]
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) == 4


@pytest.mark.parametrize(
    "environment", [{"TRITON_WASM_CACHE": "/somewhere/cache"}, {"XDG_CACHE_HOME": "/somewhere/else"}, {}]
)
def test_the_cache_is_where_the_toolkit_has_it(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRITON_WASM_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert bootstrap.cache_folder() == places.cache_folder()


@pytest.mark.slow
def test_demo_sets_up_an_environment_once(checkout: Path, tmp_path: Path) -> None:
    first = demo(checkout, tmp_path / "a cache", "--help")
    assert first.returncode == 0, first.stderr
    assert "usage: triton-wasm release" in first.stdout
    assert (checkout / ".venv" / "bin" / "python").exists()
    started = time.monotonic()
    second = demo(checkout, tmp_path / "a cache", "--help")
    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert time.monotonic() - started < 2
    assert demo(checkout, tmp_path / "a cache", "--no-such-option").returncode == 2


def test_no_network_is_one_sentence(checkout: Path, tmp_path: Path) -> None:
    started = time.monotonic()
    failed = demo(
        checkout, tmp_path / "cache", PIP_INDEX_URL=CLOSED, PIP_EXTRA_INDEX_URL="", PIP_CONFIG_FILE=os.devnull
    )
    assert failed.returncode == 3
    assert re.search(r"^bootstrap: Cannot install uv \S+: .+\.\n  Check the network", failed.stderr, re.MULTILINE)
    assert "Traceback" not in failed.stderr
    assert time.monotonic() - started < 60


def test_a_uv_with_another_hash_is_refused(checkout: Path, tmp_path: Path) -> None:
    requirements = checkout / "scripts" / "uv-requirements.txt"
    requirements.write_text(re.sub(r"sha256:\w{4}", "sha256:0000", requirements.read_text()))
    failed = demo(checkout, tmp_path / "cache")
    assert failed.returncode == 3
    assert re.search(r"^bootstrap: Cannot install uv .*(HASH|hash)", failed.stderr, re.MULTILINE), failed.stderr
    assert not list((tmp_path / "cache" / "bootstrap").glob("uv-*"))


def test_a_requirement_of_another_version_is_told(checkout: Path, tmp_path: Path) -> None:
    edit(checkout / "pyproject.toml", 'required-version = "==', 'required-version = "==9.')
    failed = demo(checkout, tmp_path / "cache")
    assert failed.returncode == 3
    assert "which pyproject.toml asks for" in failed.stderr


def test_a_uv_on_path_is_taken_if_it_is_the_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["uv"]["required-version"][2:]
    uv = write_tool(tmp_path / "bin" / "uv", f"echo uv {version} '(some build)'")
    monkeypatch.setenv("PATH", str(uv.parent), prepend=":")
    assert bootstrap.find_uv(tmp_path) == uv


def demo(checkout: Path, cache: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/demo with no uv on PATH."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    path = ":".join(folder for folder in inherited["PATH"].split(":") if folder and not (Path(folder) / "uv").exists())
    return subprocess.run(
        [sys.executable, checkout / "scripts" / "demo", *arguments],
        env={**inherited, "PATH": path, "TRITON_WASM_CACHE": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=280,
    )
