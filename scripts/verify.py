#!/usr/bin/env python3
"""Verify what was published, as a consumer does. PLAN is the plan, WORKFLOW who has to have signed.

TRUST_CONFIG names another Sigstore than the public one.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.places import cache_folder
from release.plan import Plan
from release.plan.steps import Machine, verify
from release.progress import Progress
from release.trust.verify import describe


def main() -> None:
    """Verify, and tell what is known of the release now."""
    machine = Machine(cache=cache_folder(), progress=Progress())
    config = actions.setting("TRUST_CONFIG", "")
    verified = verify(
        Plan.of_environment(),
        machine,
        workflow=actions.setting("WORKFLOW"),
        trust_config=Path(config) if config else None,
    )
    actions.summary(f"```\n{describe(verified)}\n```")


actions.step(main)
