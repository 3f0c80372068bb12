"""A tree looked at as its consumers find it; every rule is broken once by a host, and named."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment, Finding
from release.progress import Progress
from release.publish.cdn.consume import ConsumerReport, describe, examine
from tests.publish.cdn.host import Fault, static_host

QUIET = Progress(quiet=True)


def broken(report: ConsumerReport) -> dict[str, tuple[str, ...]]:
    return {file.path.rsplit("/", 1)[-1]: file.broken for file in report.files if file.broken}


def test_a_good_host(tree: Path, negotiated_tree: Path) -> None:
    with static_host(tree) as host:
        plain = examine(host.url, progress=QUIET)
    with static_host(negotiated_tree, negotiated=True) as host:
        negotiated = examine(host.url.rstrip("/"), version="1.0.0", progress=QUIET)
    for report in (plain, negotiated):
        assert report.passed, describe(report)
        assert not any(file.notes for file in report.files)
    module = next(file for file in negotiated.files if file.path.endswith("_exprc.wasm"))
    assert (module.encoding, module.transferred < module.size / 2) == ("br", True)
    assert {"_exprc.wasm", "_exprc.wasm.br", "_exprc.wasm.gz"} <= {file.path.rsplit("/", 1)[-1] for file in plain.files}


@pytest.mark.parametrize(
    ("fault", "name", "words"),
    [
        ("no-cors", "_exprc.wasm", "without Access-Control-Allow-Origin"),
        ("gone", "_exprc.wasm", "the status is 404"),
        ("page", "_exprc.wasm", "Content-Type is text/html, not application/wasm"),
        ("type", "_exprc.wasm", "Content-Type is missing, not application/wasm"),
        ("type", "triton-wasm.mjs", "Content-Type is missing, not text/javascript"),
        ("truncated", "_exprc.wasm", "breaks off after"),
        ("byte", "_exprc.wasm", "and the index says"),
        ("byte", "triton-wasm.mjs", "and latest.json says"),
        ("page", "python.zip", "Content-Type is text/html"),
        ("encoding", "pyodide-lock-2026_5.json", "Content-Encoding is br, and its body is not"),
        ("no-cors", "pyodide-lock-2026_5.json", "without Access-Control-Allow-Origin"),
    ],
)
def test_what_is_broken_is_named(tree: Path, fault: Fault, name: str, words: str) -> None:
    with static_host(tree) as host:
        host.faults = {name: fault}
        report = examine(host.url, progress=QUIET)
    assert not report.passed
    found = broken(report)
    assert all(path.endswith(name) for path in found)
    assert any(words in each for each in next(iter(found.values()))), found
    assert words in describe(report)


def test_an_old_index_beside_a_new_file(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree, tmp_path / "tree")
    index = tmp_path / "tree/versions/1.0.0.json"
    said = json.loads(index.read_text())
    said["builds"][0]["wheel"]["sha256"] = "0" * 64
    index.write_text(json.dumps(said))
    with static_host(tmp_path / "tree") as host:
        assert [name for name in broken(examine(host.url, progress=QUIET)) if name.endswith(".whl")]


@pytest.mark.parametrize(("fault", "words"), [("page", "text/html"), ("gone", "the status is 404")])
def test_no_tree_there(tree: Path, fault: Fault, words: str) -> None:
    with static_host(tree) as host:
        host.faults = {"latest.json": fault}
        with pytest.raises(Finding, match=words):
            examine(host.url, progress=QUIET)


def test_a_host_that_says_nothing_of_caching_is_noted(tree: Path) -> None:
    with static_host(tree) as host:
        host.faults = {"_exprc.wasm": "mutable"}
        report = examine(host.url, progress=QUIET)
    assert report.passed
    assert next(file.notes for file in report.files if file.path.endswith("_exprc.wasm"))


def test_the_command(tree: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "release.cli", "--quiet", "consume"]
    with static_host(tree) as host:
        out = tmp_path / "consumer.json"
        well = subprocess.run([*command, host.url, "--out", out], capture_output=True, text=True, timeout=60)
        assert (well.returncode, "all well" in well.stdout) == (0, True), well.stderr
        assert ConsumerReport.model_validate_json(out.read_bytes()).passed
        other = [*command, host.url, "--version", "9.9"]
        missing = subprocess.run(other, capture_output=True, text=True, timeout=60)
        assert (missing.returncode, "Choose one of: 1.0.0" in missing.stderr) == (1, True)
        host.faults = {"_exprc.wasm": "no-cors"}
        fault = subprocess.run([*command, host.url], capture_output=True, text=True, timeout=60)
        assert (fault.returncode, "1 of them broken" in fault.stdout) == (1, True), fault.stdout


def test_nobody_answers(tree: Path) -> None:
    with static_host(tree) as host:
        host.down = True
        with pytest.raises(BrokenEnvironment, match="Nobody answers for"):
            examine(host.url, progress=QUIET)
