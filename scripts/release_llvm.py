#!/usr/bin/env python3
"""Sign and publish the LLVM libraries of a plan as the release of their key. PLAN is the plan.

GITHUB_TOKEN needs `contents: write`. TRUST_CONFIG names another Sigstore than the public one.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.places import cache_folder
from release.plan import Plan
from release.plan.steps import Machine, release_llvm
from release.progress import Progress


def main() -> None:
    """Release them, and say where."""
    machine = Machine(cache=cache_folder(), progress=Progress())
    config = actions.setting("TRUST_CONFIG", "")
    done = release_llvm(Plan.of_environment(), machine, trust_config=Path(config) if config else None)
    actions.summary(f"### LLVM\n\n{done}")


actions.step(main)
