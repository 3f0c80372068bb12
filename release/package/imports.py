"""Whether a Python tree is whole: nothing that is in it imports, when it is imported, a module that is not."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from release.errors import WrongUsage

SIDE_MODULE = "triton._C"
"""What is below it comes with the side module."""


def check_imports(files: Mapping[str, Path], left_out: Iterable[str]) -> None:
    """Follow the imports among ``files``, given by their places below site-packages, to the modules they name.

    Just the packages that the files make are looked at, and just what runs at import: not functions, not what is for
    type checkers only, not what a ``try`` may do without. Raises WrongUsage for an import that leads nowhere.
    """
    modules = {parent for name in files for parent in _modules(name)}
    roots = {module.partition(".")[0] for module in modules}
    missing = {next(_modules(name)) for name in left_out if name.endswith(".py")} - modules
    for name, path in files.items():
        if not name.endswith(".py"):
            continue
        for module, sure in _imported(name, path):
            known = module in modules or f"{module}.".startswith(f"{SIDE_MODULE}.")
            if module.partition(".")[0] in roots and (module in missing or (sure and not known)):
                raise WrongUsage(
                    f"{name} imports {module}, which the package leaves out or Triton does not have.",
                    remedy="Take a clean checkout; if upstream has moved it, teach release/package/tree.py.",
                )


def _modules(name: str) -> Iterator[str]:
    """Give the module that a file is, and the packages it is in, which need no ``__init__.py``."""
    path = PurePosixPath(name).with_suffix("")
    module = path.parent if path.name == "__init__" else path
    yield from (".".join(each.parts) for each in (module, *module.parents) if each.parts)


def _imported(name: str, path: Path) -> Iterator[tuple[str, bool]]:
    """Give what a file imports, and whether each is sure to be a module: ``from a import b`` may mean another thing."""
    package = PurePosixPath(name).parent.parts
    for node in _statements(_parse(name, path).body):
        if isinstance(node, ast.Import):
            yield from ((alias.name, True) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module])))
            yield module, True
            yield from ((f"{module}.{alias.name}", False) for alias in node.names)


def _parse(name: str, path: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about Triton's strings and comparisons
        try:
            return ast.parse(path.read_bytes())
        except (SyntaxError, ValueError) as error:
            raise WrongUsage(
                f"{name} is not Python ({error}).", remedy="Take a clean checkout of a commit of upstream."
            ) from error


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Give the statements that run when a module is imported."""
    for node in body:
        yield node
        if isinstance(node, ast.ClassDef | ast.With | ast.For | ast.While):
            yield from _statements(node.body)
        elif isinstance(node, ast.If):
            yield from _statements([] if "TYPE_CHECKING" in ast.unparse(node.test) else node.body)
            yield from _statements(node.orelse)
        elif isinstance(node, ast.Try):
            yield from _statements((*([] if node.handlers else node.body), *node.orelse, *node.finalbody))
