"""What Triton does that the Python it runs in no longer allows, put right at run time and nowhere on disk."""

from __future__ import annotations

import ast
import warnings
from types import ModuleType
from typing import Any


def repair(code_generator: ModuleType) -> None:
    """Make Triton's code generator work in this Python; without effect where it does, and when called again.

    From Python 3.15 on ``ast.AnnAssign`` has to be given ``simple``, which some Tritons leave out when they bind the
    default values of a function's annotated arguments.
    """
    if code_generator.ast is ast and _annotated_assignments_need_simple():
        code_generator.ast = _ast_with_a_default_for_simple()  # type: ignore[attr-defined]


def _annotated_assignments_need_simple() -> bool:
    name = ast.Name(id="x", ctx=ast.Store())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # what Python 3.13 and 3.14 have to say
        try:
            ast.AnnAssign(target=name, annotation=name, value=name)  # type: ignore[call-overload]
        except TypeError:
            return True
    return False


class _MakesAnnAssign(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> ast.AnnAssign:
        return ast.AnnAssign(*args, **{"simple": 1, **kwargs})

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, ast.AnnAssign)


class _AnnAssign(metaclass=_MakesAnnAssign):
    """Stands for ``ast.AnnAssign`` in calls and in isinstance."""


def _ast_with_a_default_for_simple() -> ModuleType:
    copy = ModuleType(ast.__name__)
    copy.__dict__.update(vars(ast))
    copy.AnnAssign = _AnnAssign  # type: ignore[attr-defined]
    return copy
