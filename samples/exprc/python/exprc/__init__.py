"""A compiler for arithmetic expressions: the sample that stands for Triton where minutes matter.

>>> print(compile("2 * x"), end="")
func @expr(%x: f64) -> f64 {
  %0 = const 2
  %1 = mul %0, %x
  return %1
}
"""

from exprc._exprc import CompileError, abort, call, call_and_catch, compile, self_test, word_sizes

__all__ = ["CompileError", "abort", "call", "call_and_catch", "compile", "self_test", "word_sizes"]
