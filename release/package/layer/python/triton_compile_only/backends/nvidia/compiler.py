"""Triton's NVIDIA compiler, which ends with PTX and never asks ``ptxas``."""

from __future__ import annotations

from typing import Any

from triton.backends.nvidia import compiler as stock

from triton_compile_only.compile import LAST_STAGE
from triton_compile_only.targets import Target


class CompileOnlyCUDABackend(stock.CUDABackend):  # type: ignore[misc]
    """What ``triton.compile`` uses in the package."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        self.binary_ext = LAST_STAGE["cuda"]

    def parse_options(self, opts: dict[str, Any]) -> Any:
        """Return the options, with a PTX version."""
        version = opts.get("ptx_version") or Target("cuda", self.target.arch, self.target.warp_size).ptx_version
        return super().parse_options({**opts, "ptx_version": version})

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        """Name the stages that give text."""
        super().add_stages(stages, options, language)
        stages.pop("cubin")

    def hash(self) -> str:
        """Return what the results depend on beside the options."""
        return str(self.target)
