#!/usr/bin/env python3
"""Open a pull request with the pins of a plan, or bring it up to date. PLAN is the plan.

GITHUB_TOKEN needs `contents: write` and `pull-requests: write`. Outputs: url.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.places import cache_folder
from release.plan import Plan
from release.plan.propose import propose_pins
from release.plan.steps import Machine
from release.progress import Progress


def main() -> None:
    """Propose, and say where."""
    plan = Plan.of_environment()
    machine = Machine(cache=cache_folder(), progress=Progress())
    proposed = propose_pins(plan, machine, Path(plan.handovers.release.path))
    actions.summary(f"Pull request {proposed.number}: {proposed.outcome}, {proposed.url}")
    actions.output("url", proposed.url)


actions.step(main)
