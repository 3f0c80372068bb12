"""Eight-bit floats: a product of two kinds of them, and a conversion with a scale."""

import triton
import triton.language as tl

from release.check.kernels.declaration import AMPERE, CDNA3, CDNA4, HOPPER, Kernel


@triton.jit
def fp8_product(a_ptr, b_ptr, c_ptr, scale, K, SIZE: tl.constexpr, STEP: tl.constexpr):
    rows = tl.arange(0, SIZE)
    inner = tl.arange(0, STEP)
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for start in range(0, K, STEP):
        a = tl.load(a_ptr + rows[:, None] * K + (start + inner)[None, :])
        b = tl.load(b_ptr + rows[None, :] * K + (start + inner)[:, None])
        total = tl.dot(a, b, total)
    c = (total * scale).to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + rows[:, None] * SIZE + rows[None, :], c)


@triton.jit
def fp8_conversions(x_ptr, half_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(half_ptr + at, tl.load(x_ptr + at).to(tl.float16))
    tl.store(y_ptr + at, tl.load(half_ptr + BLOCK + at).to(y_ptr.dtype.element_ty))


def _kernel(name: str, kind: str, targets: tuple[str, ...], expect: dict[str, str]) -> Kernel:
    return Kernel(
        name=name,
        function=fp8_product,
        signature={
            "a_ptr": f"*{kind}:16",
            "b_ptr": f"*{kind}:16",
            "c_ptr": f"*{kind}:16",
            "scale": "fp32",
            "K": "i32:16",
        },
        constexprs={"SIZE": 64, "STEP": 64},
        targets=targets,
        expect=expect,
    )


KERNELS = (
    _kernel("fp8-e5m2", "fp8e5", (AMPERE, HOPPER, CDNA4), {f"{AMPERE}/ptx": r"mma\.sync", f"{HOPPER}/ptx": r"wgmma"}),
    _kernel("fp8-e4m3", "fp8e4nv", (HOPPER, CDNA4), {f"{HOPPER}/ptx": r"e4m3", f"{CDNA4}/amdgcn": r"v_mfma"}),
    _kernel("fp8-e4m3-uz", "fp8e4b8", (CDNA3,), {"amdgcn": r"v_mfma_f32_\w+fp8_fp8"}),
    # One target after the other in one process: Triton has kept the conversions of the first for all that followed.
    Kernel(
        name="fp8-conversions",
        function=fp8_conversions,
        signature={"x_ptr": "*fp8e5:16", "half_ptr": "*fp16:16", "y_ptr": "*fp8e5:16"},
        constexprs={"BLOCK": 256},
        targets=(HOPPER, AMPERE, CDNA4, CDNA3),
        expect={
            f"{HOPPER}/ptx": r"cvt\.rn\.f16x2\.e5m2x2(.|\n)*cvt\.rn\.satfinite\.e5m2x2\.f16x2",
            f"{AMPERE}/ptx": r"\A((?!e5m2x2).|\n)*\Z",
            f"{CDNA4}/amdgcn": r"v_cvt_scalef32_pk_f16_bf8(.|\n)*v_cvt_scalef32_pk_bf8_f16",
            f"{CDNA3}/amdgcn": r"\A((?!v_cvt_scalef32).|\n)*\Z",
        },
    ),
)
