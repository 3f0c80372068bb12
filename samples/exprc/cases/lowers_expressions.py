"""The compiler gives the IR it is known for, and leaves it behind for whoever wants to look."""

from pathlib import Path

import exprc

EXPECTED = {
    "x": "func @expr(%x: f64) -> f64 {\n  return %x\n}\n",
    "1 + 2 * 3": "func @expr() -> f64 {\n  %0 = const 1\n  %1 = const 2\n  %2 = const 3\n  %3 = const 6\n"
    "  %4 = const 7\n  return %4\n}\n",
    "(a + b) * (a + b)": "func @expr(%a: f64, %b: f64) -> f64 {\n  %0 = add %a, %b\n  %1 = mul %0, %0\n"
    "  return %1\n}\n",
    "-x ^ 2": "func @expr(%x: f64) -> f64 {\n  %0 = const 2\n  %1 = pow %x, %0\n  %2 = neg %1\n  return %2\n}\n",
    "sqrt(x) / 0.1": "func @expr(%x: f64) -> f64 {\n  %0 = sqrt %x\n  %1 = const 0.1\n  %2 = div %0, %1\n"
    "  return %2\n}\n",
}

for source, ir in EXPECTED.items():
    assert exprc.compile(source) == ir, exprc.compile(source)

assert exprc.word_sizes() == (4, 4, 4), "not a 32-bit host"
Path("/out/expr.ir").write_text("".join(EXPECTED.values()))
