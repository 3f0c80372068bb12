"""The watch: what is newer upstream becomes one pull request each, however often it looks."""

from pathlib import Path

import pytest

from tests.pins.trees import preview
from tests.plan import lay_upstream
from tests.toolchain.test_versions import registry_on_loopback
from tests.workflows.conftest import Project, Runner
from tests.workflows.runner import Event, Outcome

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SCHEDULED = Event(name="schedule", ref="refs/heads/main")


def watch(project: Project) -> Outcome:
    outcome = project.run("watch.yml", SCHEDULED)
    assert outcome.jobs == {"watch": "success"}, outcome.tail
    return outcome


def test_what_is_newer_is_proposed_once(
    project: Project, tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = lay_upstream(tmp_path / "upstream")
    given = {
        "TRITON_ROOT": preview(tmp_path / "trees")["TRITON_ROOT"],
        "TRITON_WASM_CACHE": str(runner.cache),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{upstream.folder}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }
    with registry_on_loopback(monkeypatch) as registry:
        project = project.given({**given, "npm_config_registry": registry.url})
        registry.lay("315.0.0-alpha.1", "315.0.0-alpha.2")
        first = watch(project)
        (triton,) = project.pulls()
        assert triton["title"].startswith("Pin set preview: Triton v3.7.0 ")
        commit = upstream.triton["new"]
        assert commit in project.file("pins/preview.toml", triton["head"]["ref"])
        assert "| LLVM |" in triton["body"] and "Nothing was built yet" in triton["body"]
        assert "Triton v3.7.0: pull request 1, opened" in first.summaries["watch"]

        registry.lay("315.0.0-alpha.2", "315.0.0")
        second = watch(project)
        assert "Triton v3.7.0: pull request 1, unchanged" in second.summaries["watch"]
        assert "Pyodide 315.0.0: pull request 2, opened" in second.summaries["watch"]

        # Somebody does not want it, which is settled.
        project.github.call("PATCH", f"/repos/{project.hosted.name}/pulls/1", {"state": "closed"})
        third = watch(project)
        assert "pull request 1, closed" in third.summaries["watch"]
        assert "pull request 2, unchanged" in third.summaries["watch"]
        assert {pull["number"]: pull["state"] for pull in project.pulls()} == {1: "closed", 2: "open"}
