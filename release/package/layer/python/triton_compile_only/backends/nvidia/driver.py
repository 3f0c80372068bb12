"""No driver."""

from triton_compile_only.backends.driver import NoDriver as NoDriver
