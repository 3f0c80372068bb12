"""A matrix product with a fused activation, pipelined by the compiler."""

import triton
import triton.language as tl

from release.check.kernels.declaration import AMPERE, CDNA3, CDNA4, HOPPER, Kernel


@triton.jit
def leaky(x, slope: tl.constexpr = 0.01):  # the annotated default is what Python 3.15 broke
    return tl.where(x >= 0, x, slope * x)


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    # Programs of a group share columns of B in the cache.
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    row, column = tl.swizzle2d(program // tiles_n, program % tiles_n, tiles_m, tiles_n, GROUP)

    rows = (row * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    columns = (column * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    inner = tl.arange(0, BLOCK_K)
    a_at = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_at = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        left = K - step * BLOCK_K
        a = tl.load(a_at, mask=inner[None, :] < left, other=0.0)
        b = tl.load(b_at, mask=inner[:, None] < left, other=0.0)
        total = tl.dot(a, b, total)
        a_at += BLOCK_K * stride_ak
        b_at += BLOCK_K * stride_bk
    c = leaky(total).to(c_ptr.dtype.element_ty)

    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    c_at = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_at, c, mask=(rows[:, None] < M) & (columns[None, :] < N))


KERNELS = (
    Kernel(
        name="matmul",
        function=matmul,
        signature={
            **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16:16"),
            **dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), "i32:16"),
        },
        constexprs={
            **dict.fromkeys(("stride_ak", "stride_bn", "stride_cn"), 1),
            "BLOCK_M": 128,
            "BLOCK_N": 128,
            "BLOCK_K": 32,
            "GROUP": 8,
        },
        options={"num_warps": 4},
        options_for={
            AMPERE: {"num_stages": 4},
            HOPPER: {"num_stages": 4},
            CDNA3: {"num_stages": 2},
            CDNA4: {"num_stages": 2},
        },
        expect={
            f"{AMPERE}/ptx": r"cp\.async(.|\n)*mma\.sync",
            f"{HOPPER}/ptx": r"wgmma\.mma_async",
            f"{CDNA3}/amdgcn": r"v_mfma_f32",
            f"{CDNA4}/amdgcn": r"v_mfma_f32",
        },
    ),
)
