"""Attention, forward: two products and a running softmax in one loop, causal or not."""

import triton
import triton.language as tl

from release.check.kernels.declaration import AMPERE, CDNA3, CDNA4, HOPPER, Kernel


@triton.jit
def attend(
    total,
    sums,
    peaks,
    q,
    k_ptr,
    v_ptr,
    rows,
    low,
    high,
    length,
    DIM: tl.constexpr,
    BLOCK: tl.constexpr,
    MASK: tl.constexpr,
):
    columns = tl.arange(0, BLOCK)
    dims = tl.arange(0, DIM)
    for start in range(low, high, BLOCK):
        start = tl.multiple_of(start, BLOCK)
        at = start + columns
        k = tl.load(k_ptr + at[None, :] * DIM + dims[:, None], mask=at[None, :] < length, other=0.0)
        scores = tl.dot(q, k)
        if MASK:
            scores = tl.where(rows[:, None] >= at[None, :], scores, -1.0e6)
        scores = tl.where(at[None, :] < length, scores, -1.0e6)
        new_peaks = tl.maximum(peaks, tl.max(scores, 1))
        powers = tl.math.exp2(scores - new_peaks[:, None])
        fade = tl.math.exp2(peaks - new_peaks)
        sums = sums * fade + tl.sum(powers, 1)
        v = tl.load(v_ptr + at[:, None] * DIM + dims[None, :], mask=at[:, None] < length, other=0.0)
        total = tl.dot(powers.to(v.dtype), v, total * fade[:, None])
        peaks = new_peaks
    return total, sums, peaks


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    log_ptr,
    scale,
    length,
    head_stride,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    first = tl.program_id(0) * ROWS
    head = tl.program_id(1).to(tl.int64) * head_stride
    rows = first + tl.arange(0, ROWS)
    at = rows[:, None] * DIM + tl.arange(0, DIM)[None, :]
    inside = rows[:, None] < length
    q = tl.load(q_ptr + head + at, mask=inside, other=0.0)
    q = (q * (scale * 1.44269504)).to(q.dtype)  # so that powers of two will do
    total = tl.zeros((ROWS, DIM), dtype=tl.float32)
    sums = tl.full((ROWS,), 1.0e-9, dtype=tl.float32)
    peaks = tl.full((ROWS,), -1.0e6, dtype=tl.float32)
    k, v = k_ptr + head, v_ptr + head
    if CAUSAL:
        total, sums, peaks = attend(total, sums, peaks, q, k, v, rows, 0, first, length, DIM, BLOCK, False)
        total, sums, peaks = attend(total, sums, peaks, q, k, v, rows, first, first + ROWS, length, DIM, BLOCK, True)
    else:
        total, sums, peaks = attend(total, sums, peaks, q, k, v, rows, 0, length, length, DIM, BLOCK, False)
    out = total / sums[:, None]
    tl.store(out_ptr + head + at, out.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(log_ptr + tl.program_id(1) * length + rows, peaks + tl.math.log2(sums), mask=rows < length)


KERNELS = tuple(
    Kernel(
        name=f"attention{'-causal' if causal else ''}",
        function=attention,
        signature={
            **dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "out_ptr"), "*fp16:16"),
            "log_ptr": "*fp32:16",
            "scale": "fp32",
            "length": "i32:16",
            "head_stride": "i32:16",
        },
        constexprs={"DIM": 64, "ROWS": 128, "BLOCK": 64, "CAUSAL": causal},
        options={"num_warps": 4, "num_stages": 2},
        expect={
            f"{AMPERE}/ptx": r"mma\.sync",
            f"{HOPPER}/ptx": r"wgmma\.mma_async",
            f"{CDNA3}/amdgcn": r"v_mfma_f32",
            f"{CDNA4}/amdgcn": r"v_mfma_f32",
        },
    )
    for causal in (False, True)
)
