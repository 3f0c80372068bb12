"""Tensor descriptors made on the device: NVIDIA's TMA from Hopper on, pointers elsewhere."""

import triton
import triton.language as tl

from release.check.kernels.declaration import AMPERE, CDNA3, HOPPER, Kernel


@triton.jit
def add_tiles(a_ptr, b_ptr, M, N, stride, SIZE: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, N], strides=[stride, 1], block_shape=[SIZE, SIZE])
    b = tl.make_tensor_descriptor(b_ptr, shape=[M, N], strides=[stride, 1], block_shape=[SIZE, SIZE])
    row = tl.program_id(0) * SIZE
    for column in range(0, N, SIZE):
        b.store([row, column], a.load([row, column]) + b.load([row, column]))


@triton.jit
def max_tiles(a_ptr, b_ptr, M, N, stride, SIZE: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, N], strides=[stride, 1], block_shape=[SIZE, SIZE])
    b = tl.make_tensor_descriptor(b_ptr, shape=[M, N], strides=[stride, 1], block_shape=[SIZE, SIZE])
    row = tl.program_id(0) * SIZE
    for column in range(0, N, SIZE):
        b.atomic_max([row, column], a.load([row, column]))  # asks what it is compiled for


SIGNATURE = {"a_ptr": "*fp16:16", "b_ptr": "*fp16:16", "M": "i32", "N": "i32", "stride": "i32:16"}

KERNELS = (
    Kernel(
        name="descriptors",
        function=add_tiles,
        signature=SIGNATURE,
        constexprs={"SIZE": 64},
        expect={
            f"{AMPERE}/ptx": r"ld\.global",
            f"{HOPPER}/ptx": r"cp\.async\.bulk\.tensor",
            f"{CDNA3}/amdgcn": r"global_load",
        },
    ),
    Kernel(
        name="descriptors-max",
        function=max_tiles,
        signature=SIGNATURE,
        constexprs={"SIZE": 64},
        targets=(HOPPER,),
        expect={"ptx": r"cp\.reduce\.async\.bulk\.tensor"},
    ),
)
