"""A matrix product for gfx950, written in Gluon to the contract that supplied kernels are held to (contract.py).

Two buffers of shared memory, filled by asynchronous copies of 16 bytes a thread while the matrix cores work on the
other one. B is stored as N rows of K: ``stride_bk`` is 1, ``stride_bn`` is K.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from release.check.kernels.contract import CONTRACT
from release.check.kernels.declaration import CDNA4, Kernel


@gluon.jit
def tile_of(
    M, N, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, GRID_MN: gl.constexpr, XCDS: gl.constexpr, GROUP: gl.constexpr
):
    """Spread neighbouring tiles over one chiplet, and rows of tiles over a group, so that caches are shared."""
    program = gl.program_id(0)
    share: gl.constexpr = GRID_MN // XCDS
    if GRID_MN % XCDS == 0:
        program = program % XCDS * share + program // XCDS
    columns = gl.cdiv(N, BLOCK_N)
    group = program // (GROUP * columns)
    first = group * GROUP
    height = gl.minimum(gl.cdiv(M, BLOCK_M) - first, GROUP)
    return first + program % height, program % (GROUP * columns) // height


@gluon.jit
def fetch(a_smem, b_smem, a_base, b_base, a_at, b_at):
    gl.amd.cdna4.async_copy.buffer_load_to_shared(a_smem, a_base, a_at)
    gl.amd.cdna4.async_copy.buffer_load_to_shared(b_smem, b_base, b_at)
    gl.amd.cdna4.async_copy.commit_group()


@gluon.jit
def gemm(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K: gl.constexpr,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    GRID_MN: gl.constexpr,
    NUM_XCDS: gl.constexpr,
    GROUP_SIZE_M: gl.constexpr,
):
    gl.static_assert(BLOCK_K == 64, "a warp fetches 64 contiguous elements of K")
    gl.static_assert(K % (2 * BLOCK_K) == 0, "the loop takes two steps at a time")
    row, column = tile_of(M, N, BLOCK_M, BLOCK_N, GRID_MN, NUM_XCDS, GROUP_SIZE_M)

    # 8 lanes of 8 elements along K, 8 lanes along M or N.
    a_load: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    b_load: gl.constexpr = gl.BlockedLayout([8, 1], [8, 8], [1, 4], [0, 1])
    a_shared: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    b_shared: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [0, 1])
    mfma: gl.constexpr = gl.amd.AMDMFMALayout(4, [16, 16, 32], True, [2, 2])
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mfma, 8)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, mfma, 8)

    a_smem = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [2, BLOCK_M, BLOCK_K], a_shared)
    b_smem = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [2, BLOCK_K, BLOCK_N], b_shared)

    rows = gl.arange(0, BLOCK_M, gl.SliceLayout(1, a_load))
    columns = gl.arange(0, BLOCK_N, gl.SliceLayout(0, b_load))
    a_inner = gl.arange(0, BLOCK_K, gl.SliceLayout(0, a_load))
    b_inner = gl.arange(0, BLOCK_K, gl.SliceLayout(1, b_load))
    a_at = rows[:, None] * stride_am + a_inner[None, :] * stride_ak
    b_at = b_inner[:, None] * stride_bk + columns[None, :] * stride_bn
    a_base = a_ptr + row * BLOCK_M * stride_am
    b_base = b_ptr + column * BLOCK_N * stride_bn

    total = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, mfma)
    fetch(a_smem.index(0), b_smem.index(0), a_base, b_base, a_at, b_at)
    for step in range(K // BLOCK_K - 1):
        a_base += BLOCK_K * stride_ak
        b_base += BLOCK_K * stride_bk
        fetch(a_smem.index((step + 1) % 2), b_smem.index((step + 1) % 2), a_base, b_base, a_at, b_at)
        gl.amd.cdna4.async_copy.wait_group(1)
        a = a_smem.index(step % 2).load(a_operand)
        b = b_smem.index(step % 2).load(b_operand)
        total = gl.amd.cdna4.mfma(a, b, total)
    gl.amd.cdna4.async_copy.wait_group(0)
    last: gl.constexpr = (K // BLOCK_K - 1) % 2
    a = a_smem.index(last).load(a_operand)
    b = b_smem.index(last).load(b_operand)
    total = gl.amd.cdna4.mfma(a, b, total)

    c_store: gl.constexpr = gl.BlockedLayout([1, 8], [4, 16], [4, 1], [1, 0])
    c = gl.convert_layout(total.to(c_ptr.dtype.element_ty), c_store)
    c_rows = gl.arange(0, BLOCK_M, gl.SliceLayout(1, c_store))
    c_columns = gl.arange(0, BLOCK_N, gl.SliceLayout(0, c_store))
    c_base = c_ptr + row * BLOCK_M * stride_cm + column * BLOCK_N * stride_cn
    c_at = c_rows[:, None] * stride_cm + c_columns[None, :] * stride_cn
    gl.amd.cdna4.buffer_store(c, c_base, c_at)


KERNELS = (
    Kernel(
        name="gluon-gemm",
        function=gemm,
        signature=CONTRACT.signature,
        constexprs=CONTRACT.constexprs,
        targets=(CDNA4,),
        options=CONTRACT.options,
        expect={
            "ttgir": r"#ttg\.amd_mfma|amd_mfma<\{version = 4",
            "llir": r'"amdgpu-agpr-alloc"="256"',
            "amdgcn": r"v_mfma_f32_16x16x32_f16(.|\n)*\.amdhsa_accum_offset 256",
        },
    ),
)
