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
)
