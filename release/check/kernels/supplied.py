"""A kernel that is supplied at run time, by path or by URL and digest: read, held to the contract, never kept.

Nothing of it is run here: it is read as text, and judged by its syntax tree.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from release.check.kernels.contract import CONTRACT
from release.download import Absent, download
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.retry import Transient

STAND_INS = frozenset({"torch"})
"""What a supplied kernel may import though it is not there: the part that launches it uses it, the kernel cannot."""

_SIZE_LIMIT = 1 << 20
_TO_DO = "Supply a Gluon kernel with the interface that docs/compile-only.md describes."


@dataclass(frozen=True, kw_only=True)
class Supplied:
    """A kernel that keeps the contract: the name of its function, its text, and the modules it brings by their name."""

    function: str
    source: str
    sha256: str
    companions: Mapping[str, str] = field(default_factory=dict)


def supplied_from(place: str, *, sha256: str = "", function: str = "", companions: Sequence[Path] = ()) -> Supplied:
    """Read the kernel at a path or an ``https`` URL; a URL needs the digest that the file has to have.

    ``function`` names it, where the file has several that fit. ``companions`` are modules beside it that it imports.

    Raises WrongUsage for a file that is not there, does not parse or breaks the contract, Finding for another digest,
    BrokenEnvironment when the network fails.
    """
    remote = "://" in place
    if remote and not sha256:
        raise WrongUsage(f"{place} was given without a SHA-256.", remedy="Give the digest that the file has to have.")
    content = _fetch(place) if remote else _read(Path(place))
    found = hashlib.sha256(content).hexdigest()
    if sha256 and found != sha256.lower():
        raise Finding(
            f"{place} has SHA-256 {found}, expected {sha256.lower()}.",
            remedy="Look at what has changed there; when that is well, give the new digest.",
        )
    beside = {path.stem: _text(_read(path), str(path)) for path in companions}
    source = _text(content, place)
    return Supplied(
        function=kept_contract(source, where=place, function=function, modules=beside),
        source=source,
        sha256=found,
        companions=beside,
    )


def kept_contract(source: str, *, where: str, function: str = "", modules: Collection[str] = ()) -> str:
    """Return the name of the function in ``source`` that keeps the contract. Raises WrongUsage saying how none does."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise WrongUsage(f"{where}:{line}: it is not Python ({error.args[0]}).", remedy=_TO_DO) from error
    _require_imports(tree, where, modules)
    candidates = [node for node in tree.body if isinstance(node, ast.FunctionDef) and _is_gluon(node)]
    if function:
        candidates = [node for node in candidates if node.name == function]
    if not candidates:
        raise WrongUsage(f"{where} has no function {function or 'at all'} under @gluon.jit.", remedy=_TO_DO)
    faults = {node.name: _fault_of(node) for node in candidates}
    kept = [name for name, fault in faults.items() if not fault]
    if len(kept) == 1:
        return kept[0]
    if kept:
        raise WrongUsage(f"{where} has several kernels that fit: {', '.join(kept)}.", remedy="Say which is meant.")
    # The largest is the one that was meant; the others are its helpers.
    nearest = max(candidates, key=lambda node: len(node.args.args))
    raise WrongUsage(f"{where}:{nearest.lineno}: {nearest.name} {faults[nearest.name]}.", remedy=_TO_DO)


def _fault_of(node: ast.FunctionDef) -> str:
    """Say how a function breaks the contract, or nothing."""
    parameters = [*node.args.posonlyargs, *node.args.args]
    names = tuple(parameter.arg for parameter in parameters)
    if missing := [name for name in CONTRACT.parameters if name not in names]:
        return f"does not take {', '.join(missing)}"
    if more := [name for name in names if name not in CONTRACT.parameters]:
        return f"takes {', '.join(more)}, to which the contract gives no value"
    if names != CONTRACT.parameters:
        return f"takes its parameters in another order than {', '.join(CONTRACT.parameters)}"
    if node.args.vararg or node.args.kwarg or node.args.kwonlyargs:
        return "takes more than the parameters of the contract"
    constant = {parameter.arg for parameter in parameters if _is_constexpr(parameter.annotation)}
    if variable := sorted(CONTRACT.constant - constant):
        return f"takes {', '.join(variable)} as a variable, not as constexpr"
    return ""


def _is_gluon(node: ast.FunctionDef) -> bool:
    decorators = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return any(ast.unparse(each).split(".")[-2:] == ["gluon", "jit"] for each in decorators)


def _is_constexpr(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).strip("'\"").split(".")[-1] == "constexpr"


def _require_imports(tree: ast.Module, where: str, modules: Collection[str]) -> None:
    for node in tree.body:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "" if not node.level else f"{'.' * node.level}{node.module or ''}"]
        else:
            continue
        for name in names:
            root = name.split(".")[0]
            if root not in sys.stdlib_module_names | STAND_INS | {"triton", *modules}:
                raise WrongUsage(
                    f"{where}:{node.lineno}: it imports {name}, which is neither Python's, Triton's nor supplied.",
                    remedy=f"Supply {root or name}.py as well.",
                )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise WrongUsage(f"{path} cannot be read ({error.strerror}).", remedy="Give the path of a file.") from error


def _fetch(url: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.py"
        try:
            download(url, path, maximum=_SIZE_LIMIT)
        except Absent as absent:
            raise WrongUsage(f"{absent}.", remedy="Check the URL.") from absent
        except Transient as transient:
            raise BrokenEnvironment(
                f"{url} cannot be fetched ({transient}).", remedy="Check the network, or give a path."
            ) from transient
        return path.read_bytes()


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WrongUsage(f"{where} is not UTF-8 text.", remedy=_TO_DO) from error
