#!/usr/bin/env python3
"""Say in an issue what failed when a pin was tried. NEEDS are the jobs, WORDS the folder of what their steps have left.

PINS, TRITON, LLVM and PYODIDE say what was tried; PLAN is the plan, if it came to one.
GITHUB_TOKEN needs `issues: write`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

import json

from release import actions
from release.places import cache_folder
from release.plan import Plan
from release.plan.propose import report_failure
from release.plan.steps import Machine
from release.progress import Progress


def main() -> None:
    """Report, and say where."""
    asked = ((name, actions.setting(name, "")) for name in ("PINS", "TRITON", "LLVM", "PYODIDE"))
    reported = report_failure(
        actions.setting("GITHUB_REPOSITORY"),
        Machine(cache=cache_folder(), progress=Progress()),
        subject=" ".join(f"{name.capitalize()} {value}" for name, value in asked if value) or "The pins as they are",
        words=Path(actions.setting("WORDS")),
        needs={name: job["result"] for name, job in json.loads(actions.setting("NEEDS")).items()},
        plan=Plan.of_environment() if actions.setting("PLAN", "") else None,
    )
    actions.summary(f"Issue {reported.number}: {reported.outcome}, {reported.url}")


actions.step(main)
