"""Triton's backends, as the package's entry points name them: its own compilers, and drivers that drive nothing."""
