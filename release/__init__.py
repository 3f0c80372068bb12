"""Build, check and publish Triton as a compile-only WebAssembly package.

The rooms, in the order a release walks through them: ``pins``, ``toolchain``, ``module``, ``package``, ``check``,
``manifest``. ``pipeline`` is the walk itself; ``stage`` is what every step has in common.
"""

from importlib.metadata import version

__version__ = version("triton-wasm-release")
