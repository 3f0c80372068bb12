#!/usr/bin/env python3
"""Make the release folder of a package and its checks. PLAN is the plan."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.plan import Plan
from release.plan.steps import assemble


def main() -> None:
    """Assemble, and let the release's own summary be the job's."""
    plan = Plan.of_environment()
    handovers, out = plan.handovers, Path(plan.handovers.release.path)
    assemble(plan, Path(handovers.package.path), Path(handovers.tests.path), out)
    actions.summary((out / "SUMMARY.md").read_text())


actions.step(main)
