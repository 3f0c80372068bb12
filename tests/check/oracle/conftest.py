"""The native Debian root, made once: 45 seconds and 2 GB."""

from pathlib import Path

import pytest

from release.check.oracle.root import native_root
from release.pins.model import PinSet
from release.progress import Progress
from release.toolchain.installation import Installation


@pytest.fixture(scope="session")
def root(cache: Path, pins: PinSet) -> Installation:
    llvm = pins.llvm[0].release
    assert llvm
    return native_root(llvm, pins.pyodide.python_minor, cache=cache, progress=Progress(quiet=True))
