"""A plan is read back as it was made, or not at all: what is in doubt is named, with what to do."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from release.errors import WrongUsage
from release.pins.load import available, load_pins
from release.plan import Asked, Plan, make_plan
from release.plan.model import Cached, Handover, LLVMPlan, Proposal
from release.progress import Progress

type Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    asked = Asked(pins="sample", ref="refs/tags/v1.2.0", commit="c" * 40, repository="owner/name")
    return make_plan(asked, cache=tmp_path_factory.mktemp("cache"), progress=Progress(quiet=True))


@pytest.fixture(scope="module")
def whole(sample: Plan) -> Plan:
    """A plan in which nothing is left out."""
    kept = Cached(key="llvm-1", prefix="llvm-", path="~/llvm")
    llvm = LLVMPlan(key="1" * 64, kept=kept, compiler=kept, stop_after=320)
    proposal = Proposal(
        file="pins/x.toml", text='a = "ä"\n', branch="pins/x", title="Pin set x", impact="| x |\n| --- |", blocked=""
    )
    handovers = sample.handovers.model_copy(update={"llvm": Handover(name="llvm", path="~/llvm")})
    update = {"product": "triton", "llvm": llvm, "handovers": handovers, "proposal": proposal, "minutes": 121}
    return sample.model_copy(update={**update, "stages": ("llvm", *sample.stages)})


@pytest.mark.parametrize("which", ["sample", "whole"])
def test_a_plan_comes_back_as_it_was_made(
    which: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan: Plan = request.getfixturevalue(which)
    monkeypatch.setenv("PLAN", plan.model_dump_json())
    assert Plan.of_environment() == plan
    # As GitHub's fromJSON and toJSON may write it.
    monkeypatch.setenv("PLAN", json.dumps(json.loads(plan.model_dump_json()), indent=2, sort_keys=True))
    assert Plan.of_environment() == plan


def test_what_yaml_reads_of_a_plan_is_there(whole: Plan) -> None:
    """By the names that the workflows have, with ``fromJSON``."""
    read = json.loads(whole.model_dump_json())
    assert {"llvm", "package", "tests", "release", "published"} == read["handovers"].keys()
    for handover in read["handovers"].values():
        assert handover["name"] and handover["path"]
    assert read["publication"]["dry_run"] is False
    assert all(isinstance(where, str) for where in read["checks"])
    assert read["llvm"]["kept"].keys() == {"key", "prefix", "path"}


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_plan_the_step_says_where_one_comes_from(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAN", raising=False)
    if value is not None:
        monkeypatch.setenv("PLAN", value)
    with pytest.raises(WrongUsage, match=r"^There is no plan: PLAN is not set\.$") as no:
        Plan.of_environment()
    assert "scripts/plan.py" in no.value.remedy


CHANGES: list[tuple[str, Change]] = [
    ("schema_version", lambda plan: plan.update(schema_version=2)),
    ("other", lambda plan: plan.update(other=1)),
    ("handovers.package.size", lambda plan: plan["handovers"]["package"].update(size=1)),
    ("pins.triton.commit", lambda plan: plan["pins"]["triton"].update(commit="main")),
    ("pins.llvm.0", lambda plan: plan["pins"]["llvm"][0].update(release=None, stands_for=None, reason=None)),
    ("publication", lambda plan: plan.pop("publication")),
    ("publication.dry_run", lambda plan: plan["publication"].update(dry_run="perhaps")),
    ("stages.0", lambda plan: plan.update(stages=["sign"])),
    ("checks.1", lambda plan: plan.update(checks=["node", "firefox"])),
    ("product", lambda plan: plan.update(product="jax")),
    ("profile.optimise.choose", lambda plan: plan["profile"]["optimise"].update(choose="O9")),
    ("minutes", lambda plan: plan.update(minutes="soon")),
]


@pytest.mark.parametrize(("where", "change"), CHANGES, ids=[where for where, _ in CHANGES])
def test_a_plan_of_another_toolkit_is_refused_and_the_place_named(
    sample: Plan, where: str, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.loads(sample.model_dump_json())
    change(content)
    monkeypatch.setenv("PLAN", json.dumps(content))
    with pytest.raises(WrongUsage) as no:
        Plan.of_environment()
    assert str(no.value).startswith(f"PLAN is no plan of this toolkit, at {where}")
    assert str(no.value).endswith(".") and "\n" not in str(no.value)
    assert "the same commit of the toolkit" in no.value.remedy


@pytest.mark.parametrize("text", ["{", "[]", "null", '"plan"', "not json", " ", "{}"])
def test_what_is_no_json_of_a_plan_is_refused_in_a_sentence(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAN", text)
    with pytest.raises(WrongUsage, match=r"^PLAN is no plan of this toolkit, at (the whole|product): .+\.$") as no:
        Plan.of_environment()
    assert "Traceback" not in str(no.value) and no.value.remedy


def test_a_plan_that_was_cut_short_is_refused(whole: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    text = whole.model_dump_json()
    for length in (1, len(text) // 2, len(text) - 1):
        monkeypatch.setenv("PLAN", text[:length])
        with pytest.raises(WrongUsage, match="no plan of this toolkit, at the whole"):
            Plan.of_environment()


def test_nobody_changes_a_plan(sample: Plan) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        sample.minutes = 2
    with pytest.raises(ValidationError, match="frozen"):
        sample.publication.dry_run = True


def test_a_plan_is_described_by_what_people_ask_of_it(sample: Plan, whole: Plan) -> None:
    text = sample.describe()
    for row in (
        "| pin set | `preview`, profile `release`, sample |",
        f"| Triton | `{sample.pins.triton.commit[:12]}` |",
        f"| Pyodide | {sample.pins.pyodide.version}, Emscripten {sample.pins.emscripten.version} |",
        "| stages | module → check → publish |",
        "| LLVM's key | none needed |",
        "| checks | node, chromium-worker, chromium-main |",
        "| release | `v1.2.0`, published |",
        "| time | about 1 minutes on two cores from nothing |",
    ):
        assert row in text.splitlines()
    assert "would mean" not in text
    text = whole.describe()
    assert f"| LLVM's key | `{'1' * 64}` |" in text and "| stages | llvm → module → check → publish |" in text
    assert "### What Pin set x would mean\n\n| x |\n| --- |" in text
    dry = whole.publication.model_copy(update={"dry_run": True})
    assert "| release | `v1.2.0`, into a folder |" in whole.model_copy(update={"publication": dry}).describe()


@pytest.mark.parametrize("name", available())
def test_every_pin_set_of_the_project_is_in_a_plan_as_in_its_file(sample: Plan, name: str) -> None:
    plan = sample.model_copy(update={"pins": load_pins(name)})
    assert Plan.model_validate_json(plan.model_dump_json()).pins == load_pins(name)
