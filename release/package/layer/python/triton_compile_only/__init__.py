"""Triton and Gluon kernels compiled to text: TTIR, TTGIR, LLIR, and PTX or AMDGCN; no GPU, driver or ``ptxas``.

import triton
import triton.language as tl
from triton_compile_only import compile_text

@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask) * 2, mask)

texts = compile_text(scale, {"x_ptr": "*fp32:16", "n": "i32"}, {"BLOCK": 1024}, target="hip:gfx942:64")
print(texts["amdgcn"])
"""

from __future__ import annotations

from .compile import WrongCall, compile_text
from .targets import PTX_VERSION, Target, UnknownTarget, parse_target, targets

__all__ = ["PTX_VERSION", "Target", "UnknownTarget", "WrongCall", "compile_text", "parse_target", "targets"]
