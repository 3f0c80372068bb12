"""The real workflows, run on the sample: what each kind of run ends in."""

import pytest

from tests.workflows.conftest import Project

pytestmark = pytest.mark.slow

RELEASED = {
    "plan/plan": "success",
    "module/module": "success",
    "check/check (node)": "success",
    "sign": "success",
    "publish/publish": "success",
    "publish/verify": "success",
}


def test_a_tag_ends_in_a_published_and_verified_release(project: Project) -> None:
    outcome = project.push_tag("v0.1.0+sample")
    assert outcome.jobs == RELEASED, outcome.tail
