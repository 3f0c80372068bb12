"""Atomic operations of several kinds, orders and scopes: a histogram, a lock, and an extreme."""

import triton
import triton.language as tl

from release.check.kernels.declaration import AMPERE, CDNA3, Kernel


@triton.jit
def histogram(x_ptr, bins_ptr, sum_ptr, greatest_ptr, lock_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0)
    tl.atomic_add(bins_ptr + x % BINS, 1, mask=inside)
    tl.atomic_max(greatest_ptr, tl.max(x, axis=0), sem="relaxed")
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire", scope="gpu") == 1:
        pass
    tl.store(sum_ptr, tl.load(sum_ptr) + tl.sum(x, axis=0).to(tl.float32))
    tl.atomic_xchg(lock_ptr, 0, sem="release", scope="gpu")


KERNELS = (
    Kernel(
        name="atomics",
        function=histogram,
        signature={
            "x_ptr": "*i32:16",
            "bins_ptr": "*i32:16",
            "sum_ptr": "*fp32:16",
            "greatest_ptr": "*i32:16",
            "lock_ptr": "*i32:16",
            "n": "i32",
        },
        constexprs={"BINS": 64, "BLOCK": 512},
        expect={f"{AMPERE}/ptx": r"atom\.\S*cas", f"{CDNA3}/amdgcn": r"global_atomic_cmpswap"},
    ),
)
