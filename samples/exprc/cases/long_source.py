"""Twenty thousand terms, each compiled once: memory grows and the table of values holds."""

import exprc

ir = exprc.compile(" + ".join(f"x{n} * {n}" for n in range(20_000)))
lines = 20_000 + 20_000 + 19_999 + 3  # constants, products, sums; head, return and brace
assert ir.count("\n") == lines, ir.count("\n")
