#!/usr/bin/env python3
"""Decide what a run does; everything after it follows.

PINS, PROFILE, TRITON, LLVM, PYODIDE, DRY_RUN and RUNNER say what is asked for; empty means whatever is usual.
Outputs: plan.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.errors import Finding
from release.places import cache_folder
from release.plan import Asked, make_plan
from release.progress import Progress


def main() -> None:
    """Make the plan, sum it up, and hand it on."""
    plan = make_plan(Asked.of_environment(), cache=cache_folder(), progress=Progress())
    actions.summary(plan.describe())
    actions.output("plan", plan.model_dump_json())
    if plan.proposal and plan.proposal.blocked:
        raise Finding(
            plan.proposal.blocked,
            remedy="Do that in the pin set or in the toolkit, and try again; the summary has the whole list.",
        )


actions.step(main)
