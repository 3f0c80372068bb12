"""The softmax of each row of a matrix, whole rows at a time, fetched a few ahead."""

import triton
import triton.language as tl

from release.check.kernels.declaration import AMPERE, Kernel


@triton.jit
def softmax(out_ptr, in_ptr, in_stride, out_stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        values = tl.load(in_ptr + row * in_stride + at, mask=inside, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out_ptr + row * out_stride + at, powers / tl.sum(powers, axis=0), mask=inside)


KERNELS = (
    Kernel(
        name="softmax",
        function=softmax,
        signature={
            "out_ptr": "*fp32:16",
            "in_ptr": "*fp32:16",
            "in_stride": "i32:16",
            "out_stride": "i32:16",
            "rows": "i32",
            "columns": "i32",
        },
        constexprs={"BLOCK": 2048, "STAGES": 4},
        options={"num_warps": 8},
        expect={"ttgir": r"tt\.reduce", f"{AMPERE}/ptx": r"ex2\.approx"},
    ),
)
