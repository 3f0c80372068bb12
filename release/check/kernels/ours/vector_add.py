"""Two vectors added: masked loads and stores of 16 bytes a thread."""

import triton
import triton.language as tl

from release.check.kernels.declaration import AMPERE, CDNA3, Kernel


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, x + y, mask=inside)


KERNELS = (
    Kernel(
        name="vector-add",
        function=vector_add,
        signature={"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "out_ptr": "*fp32:16", "n": "i32:16"},
        constexprs={"BLOCK": 1024},
        expect={f"{AMPERE}/ptx": r"ld\.global\.v4", f"{CDNA3}/amdgcn": r"global_load_dwordx4"},
    ),
    Kernel(
        name="vector-add-buffer",  # through AMD's buffer instructions, as for tensors below 2 GB
        function=vector_add,
        signature={"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "out_ptr": "*fp32:16", "n": "i32:16"},
        constexprs={"BLOCK": 1024},
        attrs={name: {"tt.pointer_range": 32} for name in ("x_ptr", "y_ptr", "out_ptr")},
        targets=(CDNA3,),
        expect={"amdgcn": r"buffer_load_dwordx4"},
    ),
)
