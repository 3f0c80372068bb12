#!/usr/bin/env python3
"""Publish the release folder of a plan, or in a dry run write it into a folder. PLAN is the plan, WORKFLOW who signed.

GITHUB_TOKEN needs `contents: write`, but not in a dry run. Outputs: url.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.places import cache_folder
from release.plan import Plan
from release.plan.steps import Machine, publish
from release.progress import Progress


def main() -> None:
    """Publish, and say where it is."""
    plan = Plan.of_environment()
    machine = Machine(cache=cache_folder(), progress=Progress())
    published = publish(plan, machine, workflow=actions.setting("WORKFLOW"))
    assets = "\n".join(f"| `{asset.name}` | {asset.size:,} |" for asset in published.assets)
    actions.summary(
        f"### {published.tag}: {published.outcome}\n\n{published.url}\n\n| asset | bytes |\n| --- | ---: |\n{assets}"
    )
    actions.output("url", published.url)


actions.step(main)
