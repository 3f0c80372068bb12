"""Reductions: a sum with a custom combination of two values, the place of the greatest, and one across the warps."""

import triton
import triton.language as tl

from release.check.kernels.declaration import Kernel


@triton.jit
def merge(count, mean, square, more, other_mean, other_square):
    total = count + more
    delta = other_mean - mean
    share = more / total
    return total, mean + delta * share, square + other_square + delta * delta * count * share


@triton.jit
def moments(x_ptr, mean_ptr, variance_ptr, place_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    count = (at < n).to(tl.float32) + 1e-20
    total, mean, square = tl.reduce((count, x, tl.zeros_like(x)), 0, merge)
    tl.store(mean_ptr + row, mean)
    tl.store(variance_ptr + row, square / total)
    tl.store(place_ptr + row, tl.argmax(x, axis=0))


KERNELS = (
    Kernel(
        name="reduction",
        function=moments,
        signature={
            "x_ptr": "*bf16:16",
            "mean_ptr": "*fp32:16",
            "variance_ptr": "*fp32:16",
            "place_ptr": "*i32:16",
            "n": "i32",
        },
        constexprs={"BLOCK": 4096},
        options={"num_warps": 8},
        expect={"ttir": r"tt\.reduce", "ttgir": r"tt\.reduce"},
    ),
)
