#!/usr/bin/env python3
"""Build the module and the package of a plan, ready to be checked. PLAN is the plan."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.places import cache_folder
from release.plan import Plan
from release.plan.steps import Machine, prepare_package
from release.progress import Progress


def main() -> None:
    """Build, and sum up the sizes."""
    plan = Plan.of_environment()
    machine = Machine(cache=cache_folder(), progress=Progress())
    manifest = prepare_package(plan, machine, Path(plan.handovers.package.path))
    chosen = next(rung for rung in manifest.ladder if rung.chosen)
    actions.summary(
        f"### {manifest.name} {manifest.version}\n\nVariant `{chosen.variant}`: {chosen.raw:,} bytes,"
        f" {chosen.brotli:,} under brotli; {manifest.why}."
    )


actions.step(main)
