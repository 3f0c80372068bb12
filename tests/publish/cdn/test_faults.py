"""What can be wrong with a host or a tree, and what somebody who loads from it is told."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from release.artifacts import sha256_of
from tests.publish.cdn.host import Fault, StaticHost, static_host

INDEX = "versions/1.0.0.json"
MODULE = ("_exprc.wasm.gz", "_exprc.wasm")  # the twin, and what is tried after it
FAULTS: list[tuple[Fault, tuple[str, ...], str, str]] = [
    ("no-cors", ("latest.json",), "cors", "without Access-Control-Allow-Origin"),
    ("gone", ("latest.json",), "status", "status 404"),
    ("page", ("latest.json",), "content", "a page of HTML"),
    ("gone", (INDEX,), "status", "status 404"),
    ("page", (INDEX,), "content", "a page of HTML"),
    ("no-cors", MODULE, "cors", "without Access-Control-Allow-Origin"),
    ("gone", MODULE, "status", "status 404"),
    ("page", MODULE, "content", "a page of HTML"),
    ("truncated", MODULE, "truncated", "broke off after"),
    ("byte", MODULE, "integrity", "and the index says"),
]


def changed(tree: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Copy a tree and change the build in its index."""
    copy = folder / "changed"
    shutil.copytree(tree, copy)
    index = json.loads((copy / INDEX).read_text())
    change(index["builds"][0])
    (copy / INDEX).write_text(json.dumps(index))
    return copy


def test_each_fault_is_told_and_once_it_is_gone_the_same_page_loads(
    visiting: Callable[..., Any], tree: Path, tmp_path: Path
) -> None:
    with static_host(tree) as host, visiting(host.url) as visitor:
        page = visitor.page()
        for fault, paths, code, words in FAULTS:
            host.faults = dict.fromkeys(paths, fault)
            found = page.load()
            assert (found.get("code"), words in found.get("message", "")) == (code, True), (fault, paths, found)
        host.faults = {}
        host.down = True
        assert page.load()["code"] == "unreachable"
        host.down = False
        found = page.load(version="2.0.0")
        assert (found["code"], "there are 1.0.0" in found["message"]) == ("version", True)
        assert "mul" in page.load()["text"]


def test_a_twin_that_is_wrong_costs_no_more_than_time(visiting: Callable[..., Any], tree: Path) -> None:
    with static_host(tree) as host, visiting(host.url) as visitor:
        host.faults = {"_exprc.wasm.gz": "byte", "python.zip.gz": "truncated"}
        assert "mul" in visitor.page().load()["text"]


def test_a_zip_that_is_wrong_twice(visiting: Callable[..., Any], tree: Path) -> None:
    with static_host(tree) as host, visiting(host.url) as visitor:
        host.faults = {"python.zip.gz": "byte", "python.zip": "byte"}
        assert visitor.page().load()["code"] == "integrity"


def test_a_module_without_its_type_is_compiled_all_the_same(
    visiting: Callable[..., Any], negotiated_tree: Path
) -> None:
    with static_host(negotiated_tree, negotiated=True) as host, visiting(host.url) as visitor:
        host.faults = {"_exprc.wasm": "type"}
        assert "mul" in visitor.page().load()["text"]


def test_an_index_of_before_beside_a_file_of_now(visiting: Callable[..., Any], tree: Path, tmp_path: Path) -> None:
    old = changed(tree, tmp_path, lambda build: build["module"].update(sha256="0" * 64))
    with static_host(old) as host, visiting(host.url) as visitor:
        assert visitor.page().load()["code"] == "integrity"


def test_no_build_for_this_pyodide(visiting: Callable[..., Any], tree: Path, tmp_path: Path) -> None:
    other = changed(tree, tmp_path, lambda build: build.update(abi="2027_0", pyodide="400.0.0"))
    with static_host(other) as host, visiting(host.url) as visitor:
        found = visitor.page().load()
    assert found["code"] == "abi"
    assert "needs Pyodide 400.0.0 (ABI 2027_0), and this Pyodide has ABI 2026_5" in found["message"]


def test_more_than_a_browser_instantiates_at_once_on_the_main_thread(
    visiting: Callable[..., Any], tree: Path, tmp_path: Path
) -> None:
    def grow(build: dict[str, Any]) -> None:
        module = build["module"]
        small = (tree / module["path"]).read_bytes()
        size = 9_000_000  # of a custom section, which takes three or four bytes to say
        leb = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14 & 0x7F | 0x80, size >> 21])
        path = tmp_path / "changed" / module["path"]
        path.write_bytes(small + b"\0" + leb + b"\3pad" + bytes(size - 4))
        module.update(size=path.stat().st_size, sha256=sha256_of(path), encoded={})

    large = changed(tree, tmp_path, grow)
    with static_host(large) as host, visiting(host.url) as visitor:
        page = visitor.page()
        assert "mul" in page.load()["text"]
        refused = page.page.evaluate(
            """async (url) => {
              const module = await WebAssembly.compileStreaming(fetch(url));
              try { new WebAssembly.Instance(module, {}); } catch (error) { return `${error}`; }
            }""",
            host.url + json.loads((large / INDEX).read_text())["builds"][0]["module"]["path"],
        )
    assert "disallowed on the main thread" in refused


def test_too_little_memory(visiting: Callable[..., Any], tree: Path) -> None:
    with static_host(tree) as host, visiting(host.url) as visitor:
        page = visitor.page()
        assert page.load(version="2.0.0")["code"] == "version"  # Pyodide has started, and is given what it asks for
        page.page.evaluate(
            """() => {
              window.real = WebAssembly.instantiate;
              WebAssembly.instantiate = async (source, imports) => {
                if (source instanceof WebAssembly.Module) throw new RangeError("Out of memory: cannot allocate");
                return real(source, imports);
              };
            }"""
        )
        found = page.load()
        assert (found["code"], "Close other pages" in found["message"]) == ("memory", True), found
        page.page.evaluate("() => { WebAssembly.instantiate = real; }")
        assert "mul" in page.load()["text"]


NODE = """
import { pathToFileURL } from "node:url";
const [loader, pyodide, base] = process.argv.slice(1);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const { loadTriton, TritonLoadError } = await import(pathToFileURL(loader));
const py = await loadPyodide();
for (const signal of [undefined, AbortSignal.abort()]) {
  try {
    await loadTriton({ pyodide: py, base, signal });
  } catch (error) {
    console.log(`${error instanceof TritonLoadError} ${error.code ?? error.name} ${error.message}`);
  }
}
"""


@pytest.mark.parametrize(
    ("faults", "code"),
    [
        ({"latest.json": "gone"}, "status"),
        ({"_exprc.wasm.br": "byte", "_exprc.wasm": "byte"}, "integrity"),
        ({"_exprc.wasm.br": "truncated", "_exprc.wasm": "truncated"}, "truncated"),
    ],
)
def test_in_node(node: Path, pyodide: Path, tree: Path, faults: Mapping[str, Fault], code: str) -> None:
    with static_host(tree) as host:
        host.faults = dict(faults)
        first, second = in_node(node, pyodide, tree, host).splitlines()
    assert first.startswith(f"true {code} ")
    assert second.startswith("false 20 ") or "AbortError" in second  # 20 is the code of an AbortError


def test_nobody_there(node: Path, pyodide: Path, tree: Path) -> None:
    with static_host(tree) as host:
        host.down = True
        assert in_node(node, pyodide, tree, host).startswith("true unreachable Nobody answers for")


def in_node(node: Path, pyodide: Path, tree: Path, host: StaticHost) -> str:
    command = [str(node), "--input-type=module", "-e", NODE, str(tree / "triton-wasm.mjs"), str(pyodide), host.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
