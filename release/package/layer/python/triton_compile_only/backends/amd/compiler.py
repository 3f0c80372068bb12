"""Triton's AMD compiler, which ends with AMDGCN."""

from __future__ import annotations

from typing import Any

from triton.backends.amd import compiler as stock

from triton_compile_only.compile import LAST_STAGE


class CompileOnlyHIPBackend(stock.HIPBackend):  # type: ignore[misc]
    """What ``triton.compile`` uses in the package."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        self.binary_ext = LAST_STAGE["hip"]

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        """Name the stages that give text."""
        super().add_stages(stages, options, language)
        stages.pop("hsaco")
