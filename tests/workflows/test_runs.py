"""The real workflows, run on the sample: what each kind of run ends in."""

import json
import tomllib
from pathlib import Path

import pytest

from release.artifacts import sha256_of
from release.pins.load import load_pins
from release.pins.model import PinSet
from tests.pins.trees import NANOBIND, lay, preview, what_the_layer_imports
from tests.services.github.service import TOKEN
from tests.workflows.conftest import Project, commit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TAG = "v0.1.0+sample"
COMMIT = "ab" * 20
PREPARED = {"plan/plan": "success", "module/module": "success"}
WHERE = ("node", "chromium-worker", "chromium-main")
CHECKED = {**PREPARED, **{f"check/check ({where})": "success" for where in WHERE}}
TESTS = {f"tests-{where}" for where in WHERE}
RELEASED = {**CHECKED, "sign": "success", "publish/publish": "success", "publish/verify": "success"}


def artifacts(project: Project) -> set[str]:
    return {path.name for path in (project.repository.state / "artifacts").iterdir()}


def test_a_tag_ends_in_a_published_and_verified_release(project: Project) -> None:
    outcome = project.push_tag(TAG)
    assert outcome.jobs == RELEASED, outcome.tail
    (release,) = project.releases()
    assert release["tag_name"] == TAG
    published = project.assets(release)
    signed = project.repository.state / "artifacts" / "release"
    assert published == {path.name: sha256_of(path) for path in signed.iterdir()}
    assert len([name for name in published if name.endswith(".sigstore.json")]) > 5
    # GitHub's own attestation is of the same files, and was made before they were published.
    assert json.loads((project.repository.state / "attestation.json").read_text()) == published
    assert artifacts(project) == {"package", "release"} | TESTS
    assert outcome.outputs["publish/publish"]["url"] == release["html_url"]
    assert "| pin set | `preview`, profile `release`, sample |" in outcome.summaries["plan/plan"]
    assert "under brotli" in outcome.summaries["module/module"]
    assert "15 of 15 checks passed" in outcome.summaries["check/check (node)"]
    assert f"release.yml@refs/tags/{TAG}" in outcome.summaries["sign"]
    assert "is what it says it is" in outcome.summaries["publish/verify"]
    assert outcome.annotations == []
    assert TOKEN not in outcome.log


def test_by_hand_it_is_a_dry_run(lean: Project) -> None:
    outcome = lean.dispatch("release.yml", pins="sample", dry_run="true")
    assert outcome.jobs == RELEASED, outcome.tail
    assert lean.releases() == []
    assert lean.github.front.seen.writes == []
    assert artifacts(lean) == {"package", "release", "published"} | TESTS
    assert not (lean.repository.state / "attestation.json").exists()
    assert "release.yml@refs/heads/main" in outcome.summaries["publish/verify"]


def test_by_hand_nothing_is_published_that_is_not_tagged(lean: Project) -> None:
    outcome = lean.dispatch("release.yml", pins="sample", dry_run="false")
    assert outcome.jobs == {"plan/plan": "failure"}, outcome.tail
    ((level, title, message),) = outcome.annotations
    assert (level, title) == ("error", "plan")
    assert "A release is published of a tag" in message and "Push a tag" in message
    assert artifacts(lean) == {"failure-plan"}


def test_a_failing_check_ends_with_nothing_published(lean: Project) -> None:
    case = lean.repository.checkout / "samples/exprc/cases/lowers_expressions.py"
    case.write_text("raise SystemExit('this case fails')\n")
    commit(lean.repository.checkout)
    outcome = lean.push_tag(TAG)
    assert outcome.jobs == {**PREPARED, **{f"check/check ({where})": "failure" for where in WHERE}}, outcome.tail
    assert lean.releases() == []
    assert lean.github.front.seen.writes == []
    assert artifacts(lean) == {"package"} | TESTS | {f"failure-check-{where}" for where in WHERE}
    assert {level for level, _, _ in outcome.annotations} == {"error"}
    said = " ".join(message for _, _, message in outcome.annotations)
    assert "3 of 3 checks failed; the first is lowers-expressions (wheel, Node" in said
    assert said.count("1 of 1 checks failed; the first is lowers-expressions (lock, ") == 2
    assert "**check failed.**" in outcome.summaries["check/check (node)"]


def test_a_job_that_is_run_again_goes_on_where_it_was_stopped(lean: Project) -> None:
    """At GitHub just the jobs that failed run again, with what the others have left: here by their steps."""
    uploads: list[str] = []

    def stop(verb: str, path: str) -> None:
        if verb == "POST" and path.endswith("/assets"):
            uploads.append(path)
            if len(uploads) == 4:
                lean.github.front.seen.faults[len(lean.github.front.seen.requests)] = "403"

    lean.github.front.seen.hook = stop
    first = lean.push_tag(TAG)
    assert first.jobs == {**CHECKED, "sign": "success", "publish/publish": "failure"}, first.tail
    assert lean.releases() == []
    job = lean.job(first.outputs["plan/plan"]["plan"], takes=["release"], WORKFLOW="release.yml")
    published = job.step("publish.py")
    assert published.returncode == 0, published.stderr
    (release,) = lean.releases()
    # Three were there already; the fourth was refused and is sent again.
    assert len(uploads) == len(lean.assets(release)) + 1
    assert lean.github.front.seen.violations == []
    assert job.step("verify.py").returncode == 0
    again = job.step("publish.py")
    assert (again.returncode, len(uploads)) == (0, len(lean.assets(release)) + 1)


@pytest.fixture
def trees(tmp_path: Path) -> dict[str, str]:
    """Small trees of Triton and LLVM, and another Triton."""
    old, new = preview(tmp_path / "old"), preview(tmp_path / "new")
    lay(Path(new["TRITON_ROOT"]), what_the_layer_imports())
    return {"TRITON_ROOT": old["TRITON_ROOT"], "LLVM_ROOT": old["LLVM_ROOT"], "NEW_TRITON_ROOT": new["TRITON_ROOT"]}


def test_a_new_pin_ends_in_a_pull_request(lean: Project, trees: dict[str, str]) -> None:
    outcome = lean.given(trees).dispatch("try-pin.yml", pins="sample", triton=COMMIT)
    assert outcome.jobs == {**CHECKED, "propose": "success"}, outcome.tail
    (pull,) = lean.pulls()
    assert pull["title"] == f"Pin set preview: Triton {COMMIT[:12]}"
    assert pull["head"]["ref"] == f"pins/preview-triton-{COMMIT[:12]}"
    for said in ("This is a rehearsal", "This is the first release", "| Triton |", "5 of 5 checks passed"):
        assert said in pull["body"]
    text = lean.file("pins/preview.toml", pull["head"]["ref"])
    pins = PinSet.model_validate(tomllib.loads(text))
    assert pins == load_pins("preview").model_copy(update={"triton": pins.triton})
    assert pins.triton.commit == COMMIT
    assert "What Pin set preview: Triton" in outcome.summaries["plan/plan"]
    job = lean.job(outcome.outputs["plan/plan"]["plan"], takes=["package", *TESTS])
    (job.workspace / "out" / "tests").mkdir()
    for name in TESTS:
        (job.workspace / "out" / name).rename(job.workspace / "out" / "tests" / name)
    assert job.step("assemble.py").returncode == 0
    again = job.step("propose.py")
    assert "Pull request 1: unchanged" in again.stdout, again.stderr
    assert len(lean.pulls()) == 1


def test_a_pin_that_nobody_may_propose_ends_in_an_issue(lean: Project, trees: dict[str, str]) -> None:
    lean.github.front.rules.may_open_pulls = False
    outcome = lean.given(trees).dispatch("try-pin.yml", pins="sample", triton=COMMIT)
    assert outcome.jobs == {**CHECKED, "propose": "failure", "report": "success"}, outcome.tail
    assert lean.pulls() == []
    (issue,) = lean.issues()
    assert issue["title"] == f"Pins sample Triton {COMMIT} fails"
    assert "the job `propose` failed" in issue["body"]
    assert "**propose:** This repository does not let workflows open pull requests." in issue["body"]


def test_a_pin_that_cannot_be_built_is_not_built(lean: Project, trees: dict[str, str]) -> None:
    lay(Path(trees["NEW_TRITON_ROOT"]), {"CMakeLists.txt": NANOBIND})
    outcome = lean.given(trees).dispatch("try-pin.yml", triton=COMMIT)
    # `act` ends a run with the first job that fails in a workflow that was called; the report is then made by its step.
    assert outcome.jobs == {"plan/plan": "failure"}, outcome.tail
    needs = {"plan": {"result": "failure"}, "llvm": {"result": "skipped"}}
    plan = outcome.outputs["plan/plan"]["plan"]
    job = lean.job(plan, takes=["failure-plan"], WORDS="out", NEEDS=json.dumps(needs), TRITON=COMMIT)
    reported = job.step("report.py")
    assert reported.returncode == 0, reported.stderr
    (issue,) = lean.issues()
    assert issue["title"] == f"Triton {COMMIT} fails"
    assert "the job `plan` failed" in issue["body"]
    assert "Needs work before it is built. bindings: nanobind" in issue["body"]
