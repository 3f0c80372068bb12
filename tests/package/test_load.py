"""All three forms in a stock Pyodide: the npm package in Node, nothing mocked."""

import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from release.artifacts import sha256_of
from release.errors import Finding
from release.package.build import build_package
from release.package.lock import check_lock
from release.package.model import Contents, Package
from release.pins.model import PinSet
from release.places import CHECKOUT
from release.process import run

SCRIPT = Path(__file__).with_name("load.mjs")
CODE = """
import json, exprc
from importlib.metadata import distribution, entry_points
from importlib.resources import files
json.dumps({
    "text": exprc.compile("2 * x"),
    "file": exprc._exprc.__file__.rsplit("/", 1)[-1],
    "version": distribution("exprc").version,
    "license": (distribution("exprc").locate_file("exprc-1.0.0.dist-info/licenses/LICENSE")).read_text()[:60].split(),
    "points": [point.value for point in entry_points(group="exprc.things")],
    "data": files("exprc").joinpath("a table, with comma.txt").read_text(),
})
"""


@dataclass(frozen=True, kw_only=True)
class Loader:
    node: Path
    pyodide: Path

    def __call__(self, form: str, folder: Path, code: str = CODE) -> Any:
        done = run([self.node, SCRIPT, self.pyodide, form, folder, code], timeout=120)
        assert done.returncode == 0, done.tail
        return json.loads(done.output.splitlines()[-1])


@pytest.fixture(scope="module")
def load(node: Path, pyodide: Path) -> Loader:
    return Loader(node=node, pyodide=pyodide)


@pytest.fixture(scope="module")
def package(sample_module: Path, pins: PinSet, pyodide: Path, tmp_path_factory: pytest.TempPathFactory) -> Package:
    folder = tmp_path_factory.mktemp("package with a space")
    python = shutil.copytree(CHECKOUT / "samples" / "exprc" / "python", folder / "python")
    (python / "exprc" / "a table, with comma.txt").write_text("1 2 3\n")
    contents = Contents(
        name="exprc",
        version="1.0.0",
        summary="A compiler for arithmetic expressions",
        license="Apache-2.0",
        license_files={"LICENSE": CHECKOUT / "LICENSE"},
        module=sample_module,
        extension="exprc._exprc",
        python=python,
        imports=("exprc",),
        entry_points="[exprc.things]\ncompile = exprc:compile\n",
    )
    return build_package(contents, pins, pyodide=pyodide, folder=folder / "out")


@pytest.mark.parametrize("form", ["wheel", "zip", "lock"])
def test_every_form_loads_and_works(form: str, load: Loader, package: Package) -> None:
    loaded = load(form, package.wheel.parent)
    assert loaded["errors"] == []
    assert "thrown" not in loaded
    assert json.loads(loaded["result"]) == {
        "text": "func @expr(%x: f64) -> f64 {\n  %0 = const 2\n  %1 = mul %0, %x\n  return %1\n}\n",
        "file": "_exprc.cpython-315-wasm32-emscripten.so",
        "version": "1.0.0",
        "license": ["Apache", "License"],
        "points": ["exprc:compile"],
        "data": "1 2 3\n",
    }


def test_a_version_with_a_plus_loads_too(
    load: Loader, sample_module: Path, pins: PinSet, pyodide: Path, tmp_path: Path
) -> None:
    contents = Contents(
        name="exprc",
        version="1.0.0+git0123abc",
        summary="A compiler for arithmetic expressions",
        license="Apache-2.0",
        license_files={"LICENSE": CHECKOUT / "LICENSE"},
        module=sample_module,
        extension="exprc._exprc",
        python=CHECKOUT / "samples" / "exprc" / "python",
        imports=("exprc",),
    )
    build_package(contents, pins, pyodide=pyodide, folder=tmp_path)
    for form in ("wheel", "lock"):
        loaded = load(form, tmp_path, "import exprc; exprc.compile('1')[:5]")
        assert loaded == {"errors": [], "result": "func "}, form


def test_node_loads_a_wrong_digest_without_a_word_and_we_do_not(load: Loader, package: Package, tmp_path: Path) -> None:
    folder = shutil.copytree(package.wheel.parent, tmp_path / "out")
    lock, wheel = folder / package.lock.name, folder / package.wheel.name
    lock.write_text(lock.read_text().replace(sha256_of(wheel), "0" * 64))
    # Should this ever fail, Pyodide has begun to check in Node: good news, and a sentence less in docs/package.md.
    assert load("lock", folder, "import exprc; 1") == {"errors": [], "result": 1}
    with pytest.raises(Finding, match="with SHA-256 0000"):
        check_lock(lock, wheel)


def test_what_goes_wrong_is_told_by_the_callback_alone(load: Loader, package: Package, tmp_path: Path) -> None:
    (tmp_path / package.wheel.name).write_bytes(b"not a wheel")
    loaded = load("wheel", tmp_path, "import exprc")
    assert loaded["errors"][0] == "The following error occurred while loading exprc:"
    assert loaded["thrown"] == "ModuleNotFoundError: No module named 'exprc'"  # of the import, not of loadPackage


SNIPPETS = re.findall(r"^```js\n(.*?)^```", (CHECKOUT / "docs" / "package.md").read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=["wheel", "zip", "lock", "browser"])
def test_the_documentation_works(snippet: str, node: Path, pyodide: Path, package: Package, tmp_path: Path) -> None:
    (tmp_path / "dist").symlink_to(package.wheel.parent)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "pyodide").symlink_to(pyodide)
    with serving(package.wheel.parent) as url:
        # The browser's snippet runs in Node too, over HTTP, once it finds Pyodide and the package here.
        snippet = re.sub(r'"https://cdn[^"]*"', '"pyodide"', snippet).replace("https://example.org/exprc/", url)
        (tmp_path / "snippet.mjs").write_text(snippet)
        done = run([node, tmp_path / "snippet.mjs"], cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.tail[-1000:]
    assert "func @expr(%x: f64) -> f64 {" in done.output


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on a loopback port."""
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
