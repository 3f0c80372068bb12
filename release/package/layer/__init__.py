"""The Python that ships beside Triton's own tree: what a browser has not, supplied from outside Triton's files."""

from __future__ import annotations

from pathlib import Path

PYTHON = Path(__file__).parent / "python"
"""The folder whose contents belong at the root of site-packages."""

TOP_LEVEL = "triton_compile_only"
"""What the layer is imported as, and the one name it lays at the root of site-packages."""

ENTRY_POINTS = f"""\
[triton.backends]
amd = {TOP_LEVEL}.backends.amd
nvidia = {TOP_LEVEL}.backends.nvidia
"""
"""The package's ``entry_points.txt``: Triton finds its backends there, and takes ours, which need no driver."""
