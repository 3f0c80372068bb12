"""Printing and asserting on the device: calls out of the kernel, with format strings and the place in the source."""

import triton
import triton.language as tl

from release.check.kernels.declaration import AMPERE, CDNA3, HOPPER, Kernel


@triton.jit
def print_assert(x_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 32 == 0, "whole warps")
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.device_assert(x >= 0, "no negative numbers")
    tl.device_print("x", x, n)
    tl.device_print("hex", x, hex=True)


KERNELS = (
    Kernel(
        name="print-assert",
        function=print_assert,
        signature={"x_ptr": "*i32:16", "n": "i32"},
        constexprs={"BLOCK": 128},
        options={"debug": True},
        # The last parameter of __assertfail is a size_t of the device: 64 bits, whatever the compiler's host has.
        expect={
            f"{AMPERE}/ptx": r"vprintf(.|\n)*__assertfail|__assertfail(.|\n)*vprintf",
            f"{HOPPER}/llir": r"void @__assertfail\(ptr, ptr, i32, ptr, i64\)",
            f"{CDNA3}/llir": r"__ockl_printf|hostcall",
        },
    ),
)
