#!/usr/bin/env python3
"""Provide the LLVM libraries of a plan: as they are kept, as they were released, or built. PLAN is the plan.

RELEASED_BY names a repository whose releases may have them, TRUST_CONFIG another Sigstore than the public one. Outputs:
compiled, true when a compiler ran; also when the step fails.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.places import cache_folder
from release.plan import Plan
from release.plan.steps import Machine, host_libraries, provide_llvm
from release.progress import Progress


def main() -> None:
    """Provide them, and say what was reused."""
    machine = Machine(cache=cache_folder(), progress=Progress())
    plan = Plan.of_environment()
    host = host_libraries(plan, machine)
    config = actions.setting("TRUST_CONFIG", "")
    try:
        reuse = provide_llvm(
            plan,
            host,
            machine,
            released_by=actions.setting("RELEASED_BY", ""),
            trust_config=Path(config) if config else None,
        )
    finally:
        actions.output("compiled", "true" if host.objects.compilations().done else "false")
    actions.summary(f"### LLVM\n\n{reuse}")


actions.step(main)
