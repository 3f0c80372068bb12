"""What Python 3.15 refuses is refused here by a stand-in for its ``ast.AnnAssign``."""

import ast
from types import ModuleType
from typing import Any

import pytest
from triton_compile_only import repairs

NAME = ast.Name(id="x", ctx=ast.Store())


class Strict:
    """``ast.AnnAssign`` as Python 3.15 has it."""

    def __new__(cls, **fields: Any) -> ast.AnnAssign:  # type: ignore[misc]
        if "simple" not in fields:
            raise TypeError("AnnAssign.__init__ missing 1 required positional argument: 'simple'")
        return REAL(**fields)


REAL = ast.AnnAssign


def code_generator() -> Any:
    module = ModuleType("code_generator")
    module.ast = ast  # type: ignore[attr-defined]
    return module


def test_where_python_asks_for_simple_the_code_generator_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ast, "AnnAssign", Strict)
    with pytest.raises(TypeError):
        ast.AnnAssign(target=NAME, annotation=NAME, value=NAME)  # type: ignore[call-overload]
    module = code_generator()
    repairs.repair(module)
    monkeypatch.undo()  # from here on, as the real one would not be made otherwise
    node = module.ast.AnnAssign(target=NAME, value=NAME, annotation=NAME)
    assert type(node) is ast.AnnAssign
    assert node.simple == 1
    assert isinstance(node, module.ast.AnnAssign)
    assert not isinstance(NAME, module.ast.AnnAssign)
    assert module.ast.Name is ast.Name


def test_it_is_repaired_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ast, "AnnAssign", Strict)
    module = code_generator()
    repairs.repair(module)
    repaired = module.ast
    repairs.repair(module)
    assert module.ast is repaired
    assert ast.AnnAssign is Strict  # Python's own module is left alone


def test_where_nothing_is_wrong_nothing_changes() -> None:
    module = code_generator()
    repairs.repair(module)
    assert module.ast is ast
