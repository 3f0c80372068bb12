"""Twenty thousand terms, each compiled once: memory grows and the table of values holds."""

import exprc

ir = exprc.compile(" + ".join(f"x{n} * {n}" for n in range(20_000)))
assert ir.count("\n") == 59_999 + 3 - 1, ir.count("\n")
