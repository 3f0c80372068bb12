#!/usr/bin/env python3
"""Install what a plan is carried out with, and prove it. PLAN is the plan."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.places import cache_folder
from release.plan import Plan
from release.progress import Progress
from release.toolchain import prepare


def main() -> None:
    """Prepare the tools and say which they are."""
    plan = Plan.of_environment()
    with actions.group("Toolchain"):
        tools = prepare(plan.pins, cache=cache_folder(), allow_mismatch=False, progress=Progress())
        print(f"Emscripten {tools.emscripten.version} and Binaryen {tools.binaryen.version} from {tools.provider}")
        print(f"Node {tools.node_version}, Pyodide {plan.pins.pyodide.version}")


actions.step(main)
