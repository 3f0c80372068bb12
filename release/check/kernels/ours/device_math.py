"""Functions of the device libraries, libdevice and ocml, which are linked as bitcode."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from release.check.kernels.declaration import Kernel


@triton.jit
def device_math(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=1.0)
    y = libdevice.pow(libdevice.tanh(x), 3.0) + libdevice.log1p(libdevice.fast_expf(x))
    y += libdevice.sinh(x) * libdevice.erf(x) + libdevice.atan2(x, y)
    y += tl.sin(x) + tl.sqrt_rn(libdevice.abs(x)) + tl.fma(x, x, libdevice.expm1(x))
    tl.store(out_ptr + at, y, mask=inside)


KERNELS = (
    Kernel(
        name="device-math",
        function=device_math,
        signature={"x_ptr": "*fp32:16", "out_ptr": "*fp32:16", "n": "i32"},
        constexprs={"BLOCK": 256},
        expect={"ttir": r"__(nv|ocml)_sinh"},
    ),
)
