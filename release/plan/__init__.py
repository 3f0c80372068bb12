"""One plan for a run of several jobs: decided once, written as JSON, and read by every job after the first.

>>> plan = make_plan(Asked.of_environment(), cache=cache_folder(), progress=Progress())
>>> Plan.model_validate_json(plan.model_dump_json()) == plan
True
"""

from release.plan.make import Asked, make_plan
from release.plan.model import Plan

__all__ = ["Asked", "Plan", "make_plan"]
