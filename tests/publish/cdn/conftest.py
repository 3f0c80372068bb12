"""The sample laid out for browsers, and a browser to load it with."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Playwright, sync_playwright

from release.check.origins import serving
from release.manifest.checksums import NAME, checksums
from release.package.model import Package
from release.pipeline import Pipeline
from release.progress import Progress
from release.publish.cdn.hosts import host_of
from release.publish.cdn.tree import lay_out
from release.stage import RECORD
from release.toolchain.chromium import find_chromium
from release.toolchain.model import Toolchain

FLAGS = ["--disable-gpu", "--proxy-server=direct://", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
RUN = """
import { loadTriton } from %(loader)s;
import { loadPyodide } from %(pyodide)s;
const told = [];
let pyodide;
export async function visit(options = {}) {
  try {
    pyodide ??= await loadPyodide();
    const started = performance.now();
    const loaded = await loadTriton({ pyodide, onProgress: (said) => told.push(said), ...options });
    await loaded.stored;
    const text = pyodide.runPython("import exprc; exprc.compile('2 * x')");
    const { name, version, abi, timings } = loaded;
    return { name, version, abi, timings, text, told, seconds: (performance.now() - started) / 1000 };
  } catch (error) {
    return { code: error.code, message: error.message, stack: error.stack };
  }
}
"""
WORKER = """
import { visit } from "./run.mjs";
onmessage = async ({ data }) => postMessage(await visit(data));
"""
PAGE = '<!doctype html><link rel="icon" href="data:,"><title>A page of somebody else</title>'
VISIT = """
async ([place, options]) => {
  if (place === "main") return (await import("/page/run.mjs")).visit(options);
  globalThis.worker ??= new Worker("/page/worker.mjs", { type: "module" });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage(options);
  });
}
"""


@pytest.fixture(scope="session")
def sample_release(
    pipeline: Pipeline, toolchain: Toolchain, sample_package: Package, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The release folder of the sample, without the reports of checks, which no CDN tree is made from."""
    folder = tmp_path_factory.mktemp("release") / "exprc"
    module = pipeline.module(toolchain)
    prepared = pipeline.prepare(toolchain, module, sample_package)
    shutil.copytree(prepared.folder, folder, ignore=shutil.ignore_patterns(RECORD, "cases"))
    (folder / NAME).write_text(checksums(folder))
    return folder


@pytest.fixture(scope="session")
def tree(sample_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of it, for nobody to change."""
    out = tmp_path_factory.mktemp("cdn") / "tree"
    lay_out([sample_release], out, host=host_of("any"), progress=Progress(quiet=True))
    return out


@pytest.fixture(scope="session")
def negotiated_tree(sample_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for a host that sends twins."""
    out = tmp_path_factory.mktemp("cdn") / "negotiated"
    lay_out([sample_release], out, host=host_of("server"), progress=Progress(quiet=True))
    return out


@pytest.fixture(scope="session")
def driver() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@dataclass(frozen=True, kw_only=True)
class Visitor:
    """Somebody with a browser, who visits a page of somebody else that loads from a tree."""

    context: BrowserContext
    origin: str

    def page(self, place: str = "main") -> "Visit":
        return Visit(page=self._opened(), place=place)

    def _opened(self) -> Page:
        page = self.context.new_page()
        page.goto(f"{self.origin}/page/index.html")
        return page


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One page, in which the package can be loaded more than once."""

    page: Page
    place: str

    def load(self, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate(VISIT, [self.place, options])
        return found


@pytest.fixture(scope="session")
def visiting(
    driver: Playwright, cache: Path, pyodide: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Any]:
    """Give a visitor of the tree at an address; with a ``profile`` that keeps what earlier visits left."""
    browser = find_chromium(cache, Progress(quiet=True))

    @contextmanager
    def visit(url: str, profile: Path | None = None) -> Iterator[Visitor]:
        page = tmp_path_factory.mktemp("page")
        with serving({"page": page, "pyodide": pyodide}) as origin:
            where = {"loader": f"{url}triton-wasm.mjs", "pyodide": f"{origin}/pyodide/pyodide.mjs"}
            (page / "run.mjs").write_text(RUN % {name: json.dumps(value) for name, value in where.items()})
            (page / "worker.mjs").write_text(WORKER)
            (page / "index.html").write_text(PAGE)
            context = driver.chromium.launch_persistent_context(
                profile or tmp_path_factory.mktemp("profile"), executable_path=browser.path, args=FLAGS
            )
            try:
                yield Visitor(context=context, origin=origin)
            finally:
                context.close()

    return visit
