"""The exact tools of a pin set, found or installed, and proved by running them.

>>> tools = prepare(load_pins("preview"), cache=cache_folder(), allow_mismatch=False, progress=Progress())
>>> tools.run(["em++", "--version"]).output.split()[-3:]
"""

from release.toolchain.model import Tool, Toolchain
from release.toolchain.providers import prepare

__all__ = ["Tool", "Toolchain", "prepare"]
