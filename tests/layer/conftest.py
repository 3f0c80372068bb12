"""The layer on the path, as it is in site-packages; and a stand-in for Triton, which is 250 MB and not needed here."""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from release.check.kernels import MODULES
from release.package.layer import PYTHON

sys.path.insert(0, str(PYTHON))


class StandIn(ModuleType):
    """A module that has whatever it is asked for; ``jit`` gives the function back."""

    __path__: list[str] = []  # noqa: RUF012 - what makes it a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return (lambda function: function) if name == "jit" else f"{self.__name__}.{name}"


@pytest.fixture
def kernels() -> Iterator[dict[str, tuple[Any, ...]]]:
    """What each module of kernels declares; their functions are plain ones."""
    language = StandIn("triton.language")
    gluon = StandIn("triton.experimental.gluon")
    names = {name: StandIn(name) for name in ("triton", "triton.experimental", "triton.language.extra")}
    names |= {"triton.language": language, "triton.experimental.gluon": gluon}
    names["triton.experimental.gluon.language"] = StandIn("triton.experimental.gluon.language")
    for name, module in names.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(names[parent], child, module)
    before = {name: sys.modules.pop(name, None) for name in (*names, *_ours())}
    sys.modules.update(names)
    try:
        yield {name: importlib.import_module(f"release.check.kernels.ours.{name}").KERNELS for name in MODULES}
    finally:
        for name in before:
            sys.modules.pop(name, None)
        sys.modules.update({name: module for name, module in before.items() if module})


def _ours() -> list[str]:
    return [f"release.check.kernels.ours.{name}" for name in MODULES]
