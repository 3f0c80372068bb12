"""What a compiler may lay out or order by its host: many values in shared memory, descriptors, specialised warps."""

import triton
import triton.language as tl

from release.check.kernels.declaration import AMPERE, BLACKWELL, CDNA3, CDNA4, GFX1250, HOPPER, Kernel


@triton.jit
def add_wide(
    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
    b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19,
):  # fmt: skip
    return (
        a0 + b0, a1 + b1, a2 + b2, a3 + b3, a4 + b4, a5 + b5, a6 + b6, a7 + b7, a8 + b8, a9 + b9,
        a10 + b10, a11 + b11, a12 + b12, a13 + b13, a14 + b14, a15 + b15, a16 + b16, a17 + b17, a18 + b18, a19 + b19,
    )  # fmt: skip


@triton.jit
def wide_reduction(x_ptr, out_ptr, BLOCK: tl.constexpr):
    # Twenty values of one width: a sort that is not stable puts them into another order (std::sort, beyond 16).
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    sums = tl.reduce(
        (
            x, x * 3, x * 5, x * 7, x * 9, x * 11, x * 13, x * 15, x * 17, x * 19,
            x * 21, x * 23, x * 25, x * 27, x * 29, x * 31, x * 33, x * 35, x * 37, x * 39,
        ),
        0,
        add_wide,
    )  # fmt: skip
    for place in tl.static_range(20):
        tl.store(out_ptr + place, sums[place])


@triton.jit
def wide_descriptors(a_ptr, b_ptr, M, N, SIZE: tl.constexpr, STRIDE: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, N], strides=[STRIDE, 1], block_shape=[SIZE, SIZE])
    b = tl.make_tensor_descriptor(b_ptr, shape=[M, N], strides=[STRIDE, 1], block_shape=[SIZE, SIZE])
    row = tl.program_id(0) * SIZE
    for column in range(0, N, SIZE):
        b.store([row, column], a.load([row, column]) + 1)


@triton.jit
def specialised_matmul(a_ptr, b_ptr, c_ptr, M, N, K, SIZE: tl.constexpr, DEPTH: tl.constexpr, PROGRAMS: tl.constexpr):
    a_at = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[SIZE, DEPTH])
    b_at = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[SIZE, DEPTH])
    c_at = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[SIZE, SIZE])
    columns = tl.cdiv(N, SIZE)
    tiles = tl.cdiv(M, SIZE) * columns
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True, warp_specialize=True):
        row, column = (tile // columns) * SIZE, (tile % columns) * SIZE
        total = tl.zeros((SIZE, SIZE), tl.float32)
        for step in range(tl.cdiv(K, DEPTH)):
            a = a_at.load([row, step * DEPTH])
            b = b_at.load([column, step * DEPTH])
            total = tl.dot(a, b.T, total)
        c_at.store([row, column], total.to(tl.float16))


@triton.jit
def shared_memory(x_ptr, y_ptr, out_ptr, SIZE: tl.constexpr):
    rows = tl.arange(0, SIZE)
    at = rows[:, None] * SIZE + rows[None, :]
    product = tl.dot(tl.load(x_ptr + at), tl.load(y_ptr + at))
    tl.store(out_ptr + at, tl.trans(product) + tl.sum(product, axis=1)[None, :])


KERNELS = (
    Kernel(
        name="wide-reduction",
        function=wide_reduction,
        signature={"x_ptr": "*i32:16", "out_ptr": "*i32:16"},
        constexprs={"BLOCK": 1024},
        # Four warps of twenty values: which value has which place is for the comparison with the native text.
        expect={"llir": r"@global_smem, i32 304\b|%\d+, i32 304\b"},
    ),
    Kernel(
        name="wide-descriptors",
        function=wide_descriptors,
        signature={"a_ptr": "*i32:16", "b_ptr": "*i32:16", "M": "i32", "N": "i32"},
        constexprs={"SIZE": 32, "STRIDE": 1 << 34},
        targets=(AMPERE, HOPPER, BLACKWELL, CDNA3, GFX1250),
        expect={"ttir": r"\b17179869184\b", f"{HOPPER}/ptx": r"\b68719476736\b|\b4294967296\b"},
    ),
    Kernel(
        name="specialised-matmul",
        function=specialised_matmul,
        signature={
            **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16:16"),
            **dict.fromkeys(("M", "N", "K"), "i32:16"),
        },
        constexprs={"SIZE": 128, "DEPTH": 64, "PROGRAMS": 132},
        options={"num_warps": 4, "num_stages": 3},
        targets=(HOPPER, BLACKWELL),
        expect={
            f"{BLACKWELL}/ttgir": r"ttg\.warp_specialize",
            f"{BLACKWELL}/ptx": r"tcgen05\.mma",
            f"{HOPPER}/ptx": r"wgmma\.mma_async",
        },
    ),
    Kernel(
        name="shared-memory",
        function=shared_memory,
        signature={**dict.fromkeys(("x_ptr", "y_ptr"), "*fp16:16"), "out_ptr": "*fp32:16"},
        constexprs={"SIZE": 128},
        options={"num_warps": 8},
        targets=(AMPERE, HOPPER, CDNA4),
        expect={"llir": r"@global_smem"},
    ),
)
