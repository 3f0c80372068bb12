"""Contents small enough to be packaged many times: the smallest side module there is, beside two Python files."""

from pathlib import Path

import pytest

from release.package.model import Contents
from release.places import CHECKOUT
from tests.package.crafted import SIDE_MODULE


@pytest.fixture
def contents(tmp_path: Path) -> Contents:
    python = tmp_path / "python"
    (python / "exprc" / "data").mkdir(parents=True)
    (python / "exprc" / "__init__.py").write_text("answer = 42\n")
    (python / "exprc" / "data" / "a table, with comma.txt").write_text("1 2 3\n")
    module = tmp_path / "_exprc.wasm"
    module.write_bytes(SIDE_MODULE)
    return Contents(
        name="exprc",
        version="1.0.0",
        summary="A compiler for arithmetic expressions",
        license="Apache-2.0",
        license_files={"LICENSE": CHECKOUT / "LICENSE"},
        module=module,
        extension="exprc._exprc",
        python=python,
        imports=("exprc",),
        entry_points="[exprc.things]\nanswer = exprc:answer\n",
    )
