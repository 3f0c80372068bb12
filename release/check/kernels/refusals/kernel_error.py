"""A mistake in a kernel arrives as Triton's own diagnostic: the line, a mark under the place, and what is wrong."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton_compile_only import compile_text


@triton.jit
def shapes(x_ptr):
    x = tl.arange(0, 32)
    y = tl.arange(0, 64)
    tl.store(x_ptr + x, x + y)


@triton.jit
def constant(x_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 2 == 0, "an even block")
    tl.store(x_ptr, BLOCK)


@gluon.jit
def layouts(x_ptr):
    x = gl.arange(0, 64, gl.BlockedLayout([1], [64], [4], [0]))
    y = gl.arange(0, 64, gl.BlockedLayout([2], [64], [4], [0]))
    gl.store(x_ptr + x, x + y)


def diagnostic(function, target="cuda:80:32", **constexprs):
    try:
        compile_text(function, {"x_ptr": "*i32"}, constexprs, target)
    except triton.CompilationError as error:
        return str(error)
    raise AssertionError(f"{function.__name__} compiled")


for target in ("cuda:80:32", "hip:gfx942:64"):
    text = diagnostic(shapes, target)
    assert "tl.store(x_ptr + x, x + y)" in text, text
    assert "incompatible dimensions at index 0: 32 and 64" in text, text
    assert "an even block" in diagnostic(constant, target, BLOCK=33)
text = diagnostic(layouts, "hip:gfx950:64")
assert "x + y" in text, text
assert "layout" in text.lower(), text
