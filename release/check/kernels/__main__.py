"""Compile every kernel natively: ``python -m release.check.kernels OUT --python PYTHON_WITH_TRITON``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from release.check.kernels import MODULES
from release.check.kernels.programs import kernels_program, supplied_program
from release.check.kernels.supplied import supplied_from
from release.errors import Problem
from release.package.layer import PYTHON


def main() -> int:
    """Write the program, run it in the other Python, and return its exit code or that of a Problem."""
    parser = argparse.ArgumentParser(prog="python -m release.check.kernels", description=__doc__)
    parser.add_argument("out", type=Path, help="the folder for the texts")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="a Python with Triton")
    parser.add_argument("--module", action="append", choices=MODULES, help="of the kernels; may be repeated")
    parser.add_argument("--supplied", metavar="PLACE", help="compile this kernel instead: a path or an https URL")
    parser.add_argument("--sha256", default="", help="the digest it has to have")
    parser.add_argument("--companion", action="append", default=[], type=Path, help="a module it imports")
    arguments = parser.parse_args()
    try:
        if arguments.supplied:
            kernel = supplied_from(arguments.supplied, sha256=arguments.sha256, companions=arguments.companion)
            text = supplied_program(kernel)
        else:
            text = kernels_program(*(arguments.module or MODULES))
    except Problem as problem:
        print(f"{problem} {problem.remedy}", file=sys.stderr)
        return problem.exit_code
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(text, encoding="utf-8")
        command = [arguments.python, program, arguments.out.resolve()]
        return subprocess.run(command, env={"PYTHONPATH": str(PYTHON)}, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
