"""The driver of a package that has none: never active, and no more than its name."""

from __future__ import annotations

from typing import Any

from triton.backends.driver import DriverBase


class NoDriver(DriverBase):  # type: ignore[misc]
    """Stands where Triton wants a driver for each backend."""

    @classmethod
    def is_active(cls) -> bool:
        """Say that there is no GPU."""
        return False

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Refuse."""
        raise _no_gpu()

    def get_current_target(self) -> Any:
        """Refuse."""
        raise _no_gpu()

    def get_active_torch_device(self) -> Any:
        """Refuse."""
        raise _no_gpu()

    def get_benchmarker(self) -> Any:
        """Refuse."""
        raise _no_gpu()


def _no_gpu() -> RuntimeError:
    return RuntimeError("this Triton compiles only: there is no GPU to ask")
