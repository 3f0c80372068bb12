"""A target, an option or an argument that does not exist: a clear error, and what there is instead."""

import triton
import triton.language as tl
from triton_compile_only import UnknownTarget, WrongCall, compile_text


@triton.jit
def copy(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at))


POINTERS = {"x_ptr": "*fp32", "y_ptr": "*fp32"}


def message(kind, *arguments, **keywords):
    try:
        compile_text(copy, *arguments, **keywords)
    except kind as error:
        return str(error)
    raise AssertionError("it compiled")


for target in ("cuda:81:32", "cuda", "hip:gfx999:64", "metal:m1:32", "", "cuda:80:32 "):
    text = message(UnknownTarget, POINTERS, {"BLOCK": 32}, target)
    assert repr(target) in text, text
    assert "cuda:80:32" in text and "hip:gfx942:64" in text, text
assert "Did you mean 'cuda:80:32'?" in message(UnknownTarget, POINTERS, {"BLOCK": 32}, "cuda:80:64")
assert "num_warps" in message(WrongCall, POINTERS, {"BLOCK": 32}, options={"num_wraps": 4})
assert "BLOCK" in message(WrongCall, POINTERS)
assert "'z_ptr'" in message(WrongCall, {**POINTERS, "z_ptr": "*fp32"}, {"BLOCK": 32})
assert "'*fp17'" in message(WrongCall, {**POINTERS, "x_ptr": "*fp17"}, {"BLOCK": 32})
