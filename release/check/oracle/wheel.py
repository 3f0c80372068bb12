"""The weaker oracle: a published wheel of Triton, which is of other sources and has another LLVM in it."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import write_atomically
from release.check.oracle.texts import Kind
from release.errors import WrongUsage
from release.package.layer import PYTHON
from release.process import Completed, run
from release.progress import Progress

_ASK = """\
import json, sys
from importlib.metadata import version
print(json.dumps([version("triton"), sys.version.split()[0]]))
"""


@dataclass(frozen=True, kw_only=True)
class PublishedWheel:
    """A Triton that somebody installed for the interpreter ``python``."""

    python: Path
    version: str
    python_version: str

    @property
    def kind(self) -> Kind:
        """Say of which kind it is."""
        return "wheel"

    @property
    def what(self) -> str:
        """Say which oracle this is."""
        return f"the published wheel of Triton {self.version}, run by Python {self.python_version}"

    def run(self, name: str, program: str, out: Path, progress: Progress) -> Completed:
        """Run the text of a program, which is given ``out``, in a folder of its own."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            write_atomically(path, program)
            return run([self.python, path, out.resolve()], env={"PYTHONPATH": str(PYTHON)})


def published_wheel(python: Path) -> PublishedWheel:
    """Return the Triton that is installed for an interpreter. Raises WrongUsage when there is none."""
    # Not resolved: the link in a virtual environment is what makes it one.
    interpreter = Path(os.path.abspath(python.expanduser()))  # noqa: PTH100
    if not interpreter.is_file():
        raise WrongUsage(f"There is no Python at {python}.", remedy="Give --oracle-python the path of an interpreter.")
    asked = run([interpreter, "-c", _ASK], timeout=60)
    if asked.returncode != 0:
        reason = (asked.tail.splitlines() or [asked.explain()])[-1]
        raise WrongUsage(f"{python} has no Triton: {reason}", remedy="Install one for it: pip install triton.")
    version, python_version = json.loads(asked.output.splitlines()[-1])
    return PublishedWheel(python=interpreter, version=version, python_version=python_version)
