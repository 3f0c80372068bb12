"""The loader in a browser and in Node, from hosts of both kinds; what a second visit costs."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.publish.cdn.host import StaticHost, static_host

PLACES = ("main", "worker")


def fetched(host: StaticHost) -> list[str]:
    """The immutable files that were asked for since last time."""
    paths = [path for path in host.requests if path.startswith("files/")]
    host.requests.clear()
    return [path.rsplit("/", 1)[1] for path in paths]


@pytest.mark.parametrize("place", PLACES)
def test_a_second_visit_to_a_plain_host_downloads_nothing(
    visiting: Callable[..., Any], tree: Path, tmp_path: Path, place: str
) -> None:
    with static_host(tree) as host, visiting(host.url, tmp_path / "profile") as visitor:
        first = visitor.page(place).load()
        assert "mul" in first["text"], first
        assert (first["name"], first["version"], first["abi"]) == ("exprc", "1.0.0", "2026_5")
        assert sorted(fetched(host)) == ["_exprc.wasm.gz", "exprc-python.zip.gz"]
        second = visitor.page(place).load()
        assert second["text"] == first["text"], second
        assert fetched(host) == []
        host.down = True
        offline = visitor.page(place).load() if place == "main" else second
        assert offline["text"] == first["text"], offline


@pytest.mark.parametrize("place", PLACES)
def test_a_second_visit_to_a_host_that_negotiates_downloads_nothing(
    visiting: Callable[..., Any], negotiated_tree: Path, tmp_path: Path, place: str
) -> None:
    profile = tmp_path / "profile"
    with static_host(negotiated_tree, negotiated=True) as host:
        with visiting(host.url, profile) as visitor:
            first = visitor.page(place).load()
            assert "mul" in first["text"], first
            assert sorted(fetched(host)) == ["_exprc.wasm", "exprc-python.zip"]
        with visiting(host.url, profile) as visitor:  # another day
            assert visitor.page(place).load()["text"] == first["text"]
            assert fetched(host) == []


def test_progress_is_in_bytes_and_ends_with_all(visiting: Callable[..., Any], tree: Path) -> None:
    with static_host(tree) as host, visiting(host.url) as visitor:
        told = visitor.page().load()["told"]
    stages = list(dict.fromkeys(said["stage"] for said in told))
    assert stages == ["index", "download", "install", "import", "ready"]
    counted = [said["loaded"] for said in told if said["stage"] == "download"]
    assert counted == sorted(counted)
    index = json.loads((tree / "versions/1.0.0.json").read_text())["builds"][0]
    assert counted[-1] == index["module"]["size"] + index["tree"]["size"]


NODE = """
import { pathToFileURL } from "node:url";
const [loader, pyodide, options] = process.argv.slice(1);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const { loadTriton } = await import(pathToFileURL(loader));
const told = [];
try {
  const py = await loadPyodide();
  const [one, two] = await Promise.all([0, 1].map(() => loadTriton({ pyodide: py, ...JSON.parse(options) })));
  const text = py.runPython("import exprc; exprc.compile('2 * x')");
  console.log(JSON.stringify({ once: one === two, text, timings: one.timings }));
} catch (error) {
  console.log(JSON.stringify({ code: error.code, message: error.message }));
}
"""


@pytest.mark.parametrize("negotiated", [False, True])
def test_in_node(node: Path, pyodide: Path, tree: Path, negotiated_tree: Path, negotiated: bool) -> None:
    root = negotiated_tree if negotiated else tree
    with static_host(root, negotiated=negotiated) as host:
        options = json.dumps({"base": host.url})
        command = [str(node), "--input-type=module", "-e", NODE, str(root / "triton-wasm.mjs"), str(pyodide), options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        found = json.loads(done.stdout)
    assert "mul" in found["text"], found
    assert found["once"]
    assert [path for path in fetched(host) if "wasm" in path] == ["_exprc.wasm" if negotiated else "_exprc.wasm.br"]
