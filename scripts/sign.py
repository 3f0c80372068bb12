#!/usr/bin/env python3
"""Sign the release folder of a plan as the job that this is. PLAN is the plan.

TRUST_CONFIG names another Sigstore than the public one.

What a dry run signs it signs at Sigstore's staging instance.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.plan import Plan
from release.progress import Progress
from release.trust.sign import sign_release


def main() -> None:
    """Sign, and name the signer."""
    plan, config = Plan.of_environment(), actions.setting("TRUST_CONFIG", "")
    signed = sign_release(
        Path(plan.handovers.release.path),
        progress=Progress(),
        trust_config=Path(config) if config else None,
        staging=plan.publication.dry_run,
    )
    actions.summary(f"{len(signed.bundles)} files and the provenance are signed by `{signed.identity.subject}`.")


actions.step(main)
