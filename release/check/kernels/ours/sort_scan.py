"""Sorting, scanning and their relatives: layouts that change at every step."""

import triton
import triton.language as tl

from release.check.kernels.declaration import Kernel


@triton.jit
def shaded(sum_left, keep_left, sum_right, keep_right):
    return sum_left * keep_right + sum_right, keep_left * keep_right


@triton.jit
def sort_scan(x_ptr, sorted_ptr, sums_ptr, shaded_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    at = rows[:, None] * COLUMNS + columns[None, :]
    x = tl.load(x_ptr + at)
    tl.store(sorted_ptr + at, tl.sort(x, dim=1, descending=True))
    tl.store(sums_ptr + at, tl.cumsum(x, axis=1) + tl.flip(tl.cumprod(x, axis=1, reverse=True), dim=1))
    sums, _ = tl.associative_scan((x, tl.full((ROWS, COLUMNS), 0.5, tl.float32)), 1, shaded)
    tl.store(shaded_ptr + at, sums)


KERNELS = (
    Kernel(
        name="sort-scan",
        function=sort_scan,
        signature=dict.fromkeys(("x_ptr", "sorted_ptr", "sums_ptr", "shaded_ptr"), "*fp32:16"),
        constexprs={"ROWS": 4, "COLUMNS": 128},
        expect={"ttir": r"tt\.scan"},
    ),
)
