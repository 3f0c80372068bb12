"""The stand-ins are asked as the actions are, and answer alike where a workflow could tell the difference."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from release.artifacts import sha256_of
from release.places import CHECKOUT
from tests.workflows.conftest import commit
from tests.workflows.runner import STAND_INS

MAIN, BRANCH, TAG = "refs/heads/main", "refs/heads/pins/x", "refs/tags/v1.0.0"
type Env = Mapping[str, str]
NONE: Mapping[str, object] = MappingProxyType({})
NO_ENV: Env = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Interface:
    """What the ``action.yml`` of an action declares; those that it cannot do without are ``required``."""

    inputs: frozenset[str]
    outputs: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Read from the actions themselves, at the version named.
REAL = {
    "actions/checkout": Interface(  # v7.0.1
        inputs=names(
            "repository ref token ssh-key ssh-known-hosts ssh-strict ssh-user persist-credentials path clean filter "
            "sparse-checkout sparse-checkout-cone-mode fetch-depth fetch-tags show-progress lfs submodules "
            "set-safe-directory github-server-url allow-unsafe-pr-checkout"
        ),
        outputs=names("ref commit"),
    ),
    "actions/cache/restore": Interface(  # v5.0.5
        inputs=names("path key restore-keys enableCrossOsArchive fail-on-cache-miss lookup-only"),
        outputs=names("cache-hit cache-primary-key cache-matched-key"),
        required=names("path key"),
    ),
    "actions/cache/save": Interface(  # v5.0.5
        inputs=names("path key upload-chunk-size enableCrossOsArchive"), required=names("path key")
    ),
    "actions/upload-artifact": Interface(  # v7.0.0
        inputs=names(
            "name path if-no-files-found retention-days compression-level overwrite include-hidden-files archive"
        ),
        outputs=names("artifact-id artifact-url artifact-digest"),
        required=names("path"),
    ),
    "actions/download-artifact": Interface(  # v8.0.1
        inputs=names(
            "name artifact-ids path pattern merge-multiple github-token repository run-id skip-decompress "
            "digest-mismatch"
        ),
        outputs=names("download-path"),
    ),
    "actions/attest": Interface(  # v4.2.2
        inputs=names(
            "subject-path subject-digest subject-name subject-checksums subject-version sbom-path predicate-type "
            "predicate predicate-path push-to-registry create-storage-record show-summary github-token"
        ),
        outputs=names("bundle-path attestation-id attestation-url storage-record-ids"),
    ),
}


def declared(action: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((STAND_INS / action / "action.yml").read_text())
    return found


def mistakes(text: str, interfaces: Mapping[str, Interface]) -> list[str]:
    """Say what a workflow gives to actions, or takes from them, that is not theirs."""
    found = []
    for steps in _steps(yaml.safe_load(text)):
        used: dict[str, str] = {}
        for step in steps:
            action = step.get("uses", "").partition("@")[0]
            if not action or action.startswith("./"):
                continue
            interface, given = interfaces[action], frozenset(step.get("with", {}))
            found += [f"{action} has no input {name}" for name in sorted(given - interface.inputs)]
            found += [f"{action} needs {name}" for name in sorted(interface.required - given)]
            used[step.get("id", "")] = action
        for name, output in re.findall(r"steps\.([\w-]+)\.outputs\.([\w-]+)", json.dumps(steps)):
            if name in used and output not in interfaces[used[name]].outputs:
                found.append(f"{used[name]} has no output {output}")
    return found


def _steps(content: Any) -> Iterator[list[dict[str, Any]]]:
    for part in (*content.get("jobs", {}).values(), content.get("runs", {})):
        if "steps" in part:
            yield part["steps"]


FILES = [*CHECKOUT.glob(".github/workflows/*.yml"), *CHECKOUT.glob(".github/actions/*/action.yml")]
OURS = {
    action: Interface(
        inputs=frozenset(declared(action)["inputs"]), outputs=frozenset(declared(action).get("outputs", {}))
    )
    for action in REAL
}


def test_there_is_a_stand_in_of_each_of_these_actions_and_of_no_other() -> None:
    assert {str(path.parent.relative_to(STAND_INS)) for path in STAND_INS.rglob("action.yml")} == set(REAL)


@pytest.mark.parametrize("action", REAL)
def test_a_stand_in_has_nothing_that_its_action_has_not(action: str) -> None:
    assert OURS[action].inputs <= REAL[action].inputs
    assert OURS[action].outputs <= REAL[action].outputs
    assert REAL[action].required <= OURS[action].inputs


@pytest.mark.parametrize("interfaces", [REAL, OURS], ids=["real", "stand-ins"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CHECKOUT / ".github")))
def test_a_workflow_gives_and_takes_what_there_is(file: Path, interfaces: Mapping[str, Interface]) -> None:
    assert mistakes(file.read_text(), interfaces) == []


def test_what_there_is_not_would_be_found() -> None:
    text = """
    jobs:
      a:
        steps:
          - uses: actions/cache/restore@x
            id: kept
            with: {key: k, path: p, restorekeys: r}
          - uses: actions/upload-artifact@x
            with: {name: n}
          - run: x
            if: ${{ steps.kept.outputs.cache_hit != 'true' && steps.other.outputs.any }}
    """
    assert mistakes(text, REAL) == [
        "actions/cache/restore has no input restorekeys",
        "actions/upload-artifact needs path",
        "actions/cache/restore has no output cache_hit",
    ]


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a step ended: its exit code, its outputs as its action declares them, and what it said."""

    code: int
    outputs: Mapping[str, str]
    log: str


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A job that uses the stand-ins as a runner does."""

    folder: Path
    state: Path

    def file(self, name: str, content: str = "content") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def use(
        self, action: str, more: Mapping[str, object] = NONE, *, at: str = MAIN, env: Env = NO_ENV, **inputs: object
    ) -> Done:
        """Use an action with these inputs, of which its ``action.yml`` says what becomes of them.

        ``at`` is the ref that the job runs for.
        """
        content = declared(f"actions/{action}")
        given = {name.replace("_", "-"): str(value) for name, value in {**inputs, **more}.items()}
        assert given.keys() <= content["inputs"].keys()
        (step,) = content["runs"]["steps"]
        given_env = {name: _value(text, "inputs", given) for name, text in step["env"].items()}
        output = self.folder.parent / "output"
        output.write_text("")
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=self.folder,
            env={
                **os.environ,
                "STAND_IN": str(STAND_INS / "stand_in.py"),
                "STAND_IN_STATE": str(self.state),
                "STAND_IN_CHECKOUT": str(self.folder.parent / "checkout"),
                "HOME": str(self.folder.parent / "home"),
                "GITHUB_WORKSPACE": str(self.folder),
                "GITHUB_REPOSITORY": "owner/name",
                "GITHUB_REF": at,
                "GITHUB_OUTPUT": str(output),
                **given_env,
                **env,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        said = dict(line.split("=", 1) for line in output.read_text().splitlines())
        values = {
            name: _value(put["value"], f"steps.{step['id']}.outputs", said)
            for name, put in content.get("outputs", {}).items()
        }
        return Done(code=done.returncode, outputs=values, log=done.stdout)


def _value(expression: str, context: str, values: Mapping[str, str]) -> str:
    match = re.fullmatch(rf"\$\{{\{{ {re.escape(context)}\.([\w-]+) \}}\}}", expression)
    assert match, expression
    return values.get(match[1], "")


@pytest.fixture
def job(tmp_path: Path) -> Workspace:
    for name in ("workspace", "state/artifacts", "state/cache", "home"):
        (tmp_path / name).mkdir(parents=True)
    return Workspace(folder=tmp_path / "workspace", state=tmp_path / "state")


def listed(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# Artifacts.


def test_an_artifact_has_what_is_below_its_folder(job: Workspace) -> None:
    job.file("out/package/a.whl")
    job.file("out/package/deep/b.json", "b")
    assert job.use("upload-artifact", name="package", path="out/package").code == 0
    done = job.use("download-artifact", name="package", path="there")
    assert (done.code, listed(job.folder / "there")) == (0, ["a.whl", "deep/b.json"])
    assert (job.folder / "there" / "deep" / "b.json").read_text() == "b"


def test_a_single_file_is_an_artifact_by_its_bare_name(job: Workspace) -> None:
    job.file("out/deep/a.whl")
    assert job.use("upload-artifact", name="one", path="out/deep/a.whl").outputs["artifact-id"]
    job.use("download-artifact", name="one", path="there")
    assert listed(job.folder / "there") == ["a.whl"]


def test_permissions_do_not_survive_an_artifact(job: Workspace) -> None:
    job.file("out/tool").chmod(0o755)
    job.use("upload-artifact", name="tool", path="out")
    job.use("download-artifact", name="tool", path="there")
    assert not (job.folder / "there" / "tool").stat().st_mode & 0o111


@pytest.mark.parametrize(("how", "code", "level"), [("error", 1, "error"), ("warn", 0, "warning"), ("", 0, "warning")])
def test_without_a_file_there_is_no_artifact(job: Workspace, how: str, code: int, level: str) -> None:
    (job.folder / "empty").mkdir()
    for path in ("empty", "nowhere"):
        given = {"if_no_files_found": how} if how else {}
        done = job.use("upload-artifact", given, name="none", path=path)
        assert (done.code, done.outputs["artifact-id"]) == (code, "")
        assert done.log.startswith(f"::{level}::No files were found with the provided path: {path}")
    assert listed(job.state / "artifacts") == []


def test_hidden_files_are_left_out_unless_asked_for(job: Workspace) -> None:
    job.file("out/.secret")
    job.file("out/.git/config")
    assert job.use("upload-artifact", name="none", path="out", if_no_files_found="error").code == 1
    job.file("out/a.txt")
    job.use("upload-artifact", name="some", path="out")
    assert listed(job.state / "artifacts" / "some") == ["a.txt"]


def test_a_folder_below_a_hidden_one_is_not_hidden(job: Workspace) -> None:
    path = job.folder.parent / "home" / ".cache" / "llvm" / "1"
    path.mkdir(parents=True)
    (path / "a.tar").write_text("a")
    assert job.use("upload-artifact", name="llvm", path="~/.cache/llvm/1", if_no_files_found="error").code == 0
    (path / "a.tar").unlink()
    assert job.use("download-artifact", name="llvm", path="~/.cache/llvm/1").code == 0
    assert (path / "a.tar").read_text() == "a"


def test_an_artifact_is_replaced_as_a_whole_and_only_when_asked_to(job: Workspace) -> None:
    job.file("first/a")
    job.file("second/b")
    assert job.use("upload-artifact", name="x", path="first").code == 0
    for given in ({}, {"overwrite": "false"}):
        refused = job.use("upload-artifact", given, name="x", path="second")
        assert refused.code == 1 and "already exists on the workflow run: x" in refused.log
        assert listed(job.state / "artifacts" / "x") == ["a"]
    assert job.use("upload-artifact", name="x", path="second", overwrite="true").code == 0
    assert listed(job.state / "artifacts" / "x") == ["b"]
    # Nothing to replace is no failure either.
    assert job.use("upload-artifact", name="y", path="second", overwrite="true").code == 0


@pytest.fixture
def reports(job: Workspace) -> Workspace:
    for name in ("tests-node", "tests-chromium", "package"):
        job.file(f"{name}-files/report.json", name)
        job.use("upload-artifact", name=name, path=f"{name}-files")
    return job


def test_a_pattern_takes_each_artifact_into_a_folder_of_its_own(reports: Workspace) -> None:
    assert reports.use("download-artifact", pattern="tests-*", path="out/tests").code == 0
    found = listed(reports.folder / "out" / "tests")
    assert found == ["tests-chromium/report.json", "tests-node/report.json"]
    assert (reports.folder / "out" / "tests" / "tests-node" / "report.json").read_text() == "tests-node"


def test_a_pattern_that_fits_one_artifact_takes_it_without_a_folder(reports: Workspace) -> None:
    assert reports.use("download-artifact", pattern="tests-n*", path="out/tests").code == 0
    assert listed(reports.folder / "out" / "tests") == ["report.json"]


def test_a_pattern_may_take_them_into_one_folder(reports: Workspace) -> None:
    reports.use("download-artifact", pattern="tests-*", path="out", merge_multiple="true")
    assert listed(reports.folder / "out") == ["report.json"]


def test_a_pattern_that_fits_none_is_no_failure_and_a_name_of_none_is(reports: Workspace) -> None:
    assert reports.use("download-artifact", pattern="failure-*", path="out").code == 0
    assert not (reports.folder / "out").exists()
    done = reports.use("download-artifact", name="tests-", path="out")
    assert done.code == 1 and "not found" in done.log


# Caches.


def saved(job: Workspace, key: str, content: str, *, at: str = MAIN) -> Done:
    job.file("kept/deep/a", content)
    return job.use("cache/save", at=at, key=key, path=job.folder / "kept")


def restored(job: Workspace, key: str, *, at: str = MAIN, **inputs: object) -> tuple[str, str, str | None]:
    """Return what is said of the hit, the key that was found, and the content that came."""
    path = job.folder / "kept" / "deep" / "a"
    path.unlink(missing_ok=True)
    done = job.use("cache/restore", inputs, at=at, key=key, path=job.folder / "kept")
    assert (done.code, done.outputs["cache-primary-key"]) == (0, key), done.log
    content = path.read_text() if path.is_file() else None
    return done.outputs["cache-hit"], done.outputs["cache-matched-key"], content


def test_a_cache_is_hit_by_its_key_found_by_a_prefix_or_missed(job: Workspace) -> None:
    assert restored(job, "llvm-1", restore_keys="llvm-") == ("", "", None)
    assert saved(job, "llvm-1", "one").code == 0
    assert restored(job, "llvm-1") == ("true", "llvm-1", "one")
    assert restored(job, "llvm-2") == ("", "", None)
    assert restored(job, "llvm-2", restore_keys="llvm-") == ("false", "llvm-1", "one")
    assert restored(job, "llvm-2", restore_keys="other-\nllvm-\n") == ("false", "llvm-1", "one")
    assert restored(job, "llvm-2", restore_keys="lvm-") == ("", "", None)


def test_of_several_the_exact_one_is_taken_and_else_the_newest_of_the_first_prefix(job: Workspace) -> None:
    for key in ("llvm-a-1", "llvm-a-2", "llvm-b-1"):
        saved(job, key, key)
    assert restored(job, "llvm-a-1", restore_keys="llvm-")[1:] == ("llvm-a-1", "llvm-a-1")
    assert restored(job, "llvm-a-3", restore_keys="llvm-a-\nllvm-")[1:] == ("llvm-a-2", "llvm-a-2")
    assert restored(job, "llvm-a-3", restore_keys="llvm-")[1:] == ("llvm-b-1", "llvm-b-1")


def test_a_key_is_saved_once_and_again_is_no_failure(job: Workspace) -> None:
    saved(job, "llvm-1", "one")
    again = saved(job, "llvm-1", "another")
    assert again.code == 0 and "Unable to reserve cache with key llvm-1" in again.log
    assert restored(job, "llvm-1") == ("true", "llvm-1", "one")


def test_nothing_to_save_is_no_failure_and_no_entry(job: Workspace) -> None:
    done = job.use("cache/save", key="llvm-1", path=job.folder / "nowhere")
    assert done.code == 0 and "Path Validation Error" in done.log
    assert restored(job, "llvm-1") == ("", "", None)


def test_a_branch_sees_its_own_entries_and_those_of_the_default_branch(job: Workspace) -> None:
    saved(job, "llvm-1", "of main")
    saved(job, "llvm-2", "of the branch", at=BRANCH)
    assert restored(job, "llvm-1", at=BRANCH) == ("true", "llvm-1", "of main")
    assert restored(job, "llvm-1", at=TAG) == ("true", "llvm-1", "of main")
    assert restored(job, "llvm-2", at=BRANCH) == ("true", "llvm-2", "of the branch")
    for other in (MAIN, TAG, "refs/heads/pins"):
        assert restored(job, "llvm-2", at=other) == ("", "", None), other
    # What is its own comes first, even by a prefix where the default branch has the key itself.
    assert restored(job, "llvm-1", at=BRANCH, restore_keys="llvm-")[1:] == ("llvm-2", "of the branch")
    # The same key in two places is two entries.
    assert "Cache saved" in saved(job, "llvm-1", "of the tag", at=TAG).log
    assert restored(job, "llvm-1", at=TAG)[2] == "of the tag"
    assert restored(job, "llvm-1")[2] == "of main"


def test_what_is_below_home_comes_back_there(job: Workspace) -> None:
    kept = job.folder.parent / "home" / ".cache" / "ccache"
    kept.mkdir(parents=True)
    (kept / "a").write_text("a")
    assert job.use("cache/save", key="k", path="~/.cache/ccache").code == 0
    (kept / "a").unlink()
    assert job.use("cache/restore", key="k", path="~/.cache/ccache").outputs["cache-hit"] == "true"
    assert (kept / "a").read_text() == "a"


# Checkouts and attestations.


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "plan.py").write_text("committed")
    (folder / "scripts" / "plan.py").chmod(0o755)
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=folder, check=True)
    commit(folder)
    (folder / "scripts" / "plan.py").write_text("not committed")
    (folder / "new").write_text("not committed")
    return folder


def test_a_checkout_is_what_was_committed_with_its_permissions_and_no_credentials(
    job: Workspace, checkout: Path
) -> None:
    assert job.use("checkout", persist_credentials="false", fetch_depth=1).code == 0
    assert listed(job.folder) == ["scripts/plan.py"]
    script = job.folder / "scripts" / "plan.py"
    assert script.read_text() == "committed" and script.stat().st_mode & 0o100
    assert job.use("checkout", path="toolkit", repository="owner/name", ref=MAIN).code == 0
    assert (job.folder / "toolkit" / "scripts" / "plan.py").is_file()


def test_a_checkout_of_something_else_is_refused(job: Workspace, checkout: Path) -> None:
    for given in ({"repository": "somebody/else"}, {"ref": BRANCH}):
        done = job.use("checkout", given)
        ((name, value),) = given.items()
        assert done.code == 1 and f"::error::There is no {name} {value} here" in done.log
    assert listed(job.folder) == []


IDENTITY = {"ACTIONS_ID_TOKEN_REQUEST_URL": "http://127.0.0.1:9/token"}


def test_an_attestation_is_of_the_files_that_are_there(job: Workspace) -> None:
    job.file("out/release/a.whl", "a")
    job.file("out/release/deep/b", "b")
    done = job.use("attest", subject_path="out/release/*", env=IDENTITY)
    assert (done.code, done.outputs["attestation-id"]) == (0, "1")
    found = json.loads((job.state / "attestation.json").read_text())
    assert found == {"a.whl": sha256_of(job.folder / "out" / "release" / "a.whl")}


@pytest.mark.parametrize("subject", ["out/release/*", "nowhere/*", "out"])
def test_an_attestation_of_nothing_is_refused(job: Workspace, subject: str) -> None:
    job.file("out/release/deep/b")
    done = job.use("attest", subject_path=subject, env=IDENTITY)
    assert done.code == 1 and "::error::Could not find subject" in done.log
    assert not (job.state / "attestation.json").exists()


def test_an_attestation_needs_the_identity_of_a_job(job: Workspace) -> None:
    job.file("out/a.whl")
    done = job.use("attest", subject_path="out/*", env={"ACTIONS_ID_TOKEN_REQUEST_URL": ""})
    assert done.code == 1 and "id-token: write" in done.log
    assert not (job.state / "attestation.json").exists()
