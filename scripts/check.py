#!/usr/bin/env python3
"""Run the cases of a package in one runtime. PLAN is the plan, WHERE the runtime."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.assembly import require_passed
from release.places import cache_folder
from release.plan import Plan
from release.plan.steps import Machine, check_package
from release.progress import Progress


def main() -> None:
    """Check, sum up, and fail when a case has failed: the reports are there in any case."""
    plan = Plan.of_environment()
    where = plan.check(actions.setting("WHERE"))
    machine = Machine(cache=cache_folder(), progress=Progress())
    out = Path(plan.handovers.tests.path)
    report = check_package(plan, machine, Path(plan.handovers.package.path), where, out)
    passed = sum(case.passed for case in report.cases)
    actions.summary(f"{report.runtimes}: {passed} of {len(report.cases)} checks passed.")
    require_passed(report, out)


actions.step(main)
