"""The linters find nothing in the workflows as they are, see what is made wrong, and never fail in silence."""

import shutil
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from release.places import CHECKOUT
from tests.workflows import lint
from tests.workflows.lint import LintError
from tests.workflows.policy import Finding

type Linter = Callable[[Path], list[Finding]]

LINTERS: dict[str, Linter] = {
    "zizmor": lint.zizmor,
    "jactionlint": lint.jactionlint,
    "actionlint": lint.actionlint,
    "check-jsonschema": lint.check_jsonschema,
    "shellcheck": lint.shellcheck,
}
ACTION = ".github/actions/toolchain/action.yml"
DEPENDABOT = ".github/dependabot.yml"
RUN = ".ci/run"
WATCH, PLAN, RELEASE, CHECK = (f".github/workflows/{name}.yml" for name in ("watch", "plan", "release", "check"))
CI, MODULE, LLVM = (f".github/workflows/{name}.yml" for name in ("ci", "module", "llvm"))
CHECKOUT_STEP = "uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1\n"
IGNORED_STEP = "uses: actions/checkout@v7 # zizmor: ignore[unpinned-uses]\n"
CACHE_STEP = """\
      - name: Restore
        uses: actions/cache@55cc8345863c7cc4c66a329aec7e433d2d1c52a9 # v6.1.0
        with:
          key: anything
          path: anything

"""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change of a file of the checkout, in which the text ``old`` is exactly once."""

    file: str
    old: str
    new: str

    def copy_to(self, folder: Path) -> Path:
        """Copy what is linted, with this change."""
        checkout = copy_to(folder)
        text = (checkout / self.file).read_text()
        assert text.count(self.old) == 1, f"{self.file} has this {text.count(self.old)} times: {self.old}"
        (checkout / self.file).write_text(text.replace(self.old, self.new))
        return checkout


def copy_to(folder: Path, *more: str) -> Path:
    """Copy what is linted, and make it the top of a project, which an unpacked archive is not."""
    checkout = folder / "checkout"
    for name in (".github", ".ci", "scripts", *more):
        shutil.copytree(CHECKOUT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    (checkout / ".git").mkdir()
    return checkout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the checkout as it is, with the folders that a workflow waits for a change of."""
    return copy_to(tmp_path_factory.mktemp("as-it-is"), "pins", "release")


@pytest.mark.parametrize("linter", LINTERS.values(), ids=LINTERS)
def test_nothing_is_found_in_the_checkout(linter: Linter, checkout: Path) -> None:
    assert linter(checkout) == []


# What is made wrong: the linter that must see it, its rule, a part of what it says, the file, and the change.
WRONG = [
    # Whoever may dispatch or open a pull request must not run code of theirs.
    ("zizmor", "template-injection", "", PLAN, "run: scripts/plan.py", "run: scripts/plan.py ${{ inputs.triton }}"),
    ("zizmor", "template-injection", "", ACTION, "toolchain.py\"'", "toolchain.py\" ${{ inputs.plan }}'"),
    ("actionlint", "expression", "untrusted", CI, "run: scripts/test", "run: scripts/test ${{ github.head_ref }}"),
    ("jactionlint", "template-injection", "", CI, "run: scripts/test", "run: scripts/test ${{ github.head_ref }}"),
    ("zizmor", "dangerous-triggers", "pull_request_target", CI, "  pull_request:", "  pull_request_target:"),
    ("jactionlint", "dangerous-triggers", "workflow_run", CI, "pull_request:", "workflow_run: {workflows: [Release]}"),
    # Nor may a tag that somebody moves, in any of the files that use actions.
    ("zizmor", "unpinned-uses", "", WATCH, CHECKOUT_STEP, "uses: actions/checkout@v7\n"),
    ("zizmor", "unpinned-uses", "", WATCH, CHECKOUT_STEP, IGNORED_STEP),
    ("jactionlint", "unpinned-uses", "", WATCH, CHECKOUT_STEP, IGNORED_STEP),
    ("zizmor", "unpinned-uses", "", ACTION, "  steps:\n", "  steps:\n    - uses: actions/checkout@main\n"),
    ("jactionlint", "unpinned-uses", "", WATCH, CHECKOUT_STEP, "uses: actions/checkout@v7\n"),
    ("jactionlint", "missing-version-comment", "", WATCH, " # v7.0.1", ""),
    # A token has no more rights than it needs, stays where it is, and no other secret is about.
    ("zizmor", "excessive-permissions", "", WATCH, "permissions: {}", "permissions: write-all"),
    ("zizmor", "excessive-permissions", "", WATCH, "permissions: {}\n", ""),
    ("zizmor", "undocumented-permissions", "", WATCH, " # commits the pin set to a branch of its own", ""),
    ("zizmor", "artipacked", "", WATCH, "        with:\n          persist-credentials: false\n", ""),
    ("zizmor", "secrets-inherit", "", CI, "      pins: sample", "      pins: sample\n    secrets: inherit"),
    ("zizmor", "overprovisioned-secrets", "", WATCH, "${{ github.token }}", "${{ toJSON(secrets) }}"),
    ("zizmor", "bot-conditions", "", WATCH, "  name: Watch\n", "  name: Watch\n    if: github.actor == 'x[bot]'\n"),
    ("jactionlint", "secrets-outside-env", "", WATCH, "${{ github.token }}", "${{ secrets.TOKEN }}"),
    ("actionlint", "workflow-call", "requires", RELEASE, "contents: write # cr", "contents: read # cr"),
    ("actionlint", "permissions", "content", WATCH, "contents: write", "content: write"),
    # What is released comes out of no cache.
    ("zizmor", "cache-poisoning", "", RELEASE, "      - name: Assemble", f"{CACHE_STEP}      - name: Assemble"),
    ("jactionlint", "cache-poisoning", "", RELEASE, "      - name: Assemble", f"{CACHE_STEP}      - name: Assemble"),
    # Two runs of one kind do not meet, and no job runs for ever.
    ("zizmor", "concurrency-limits", "", WATCH, "concurrency:\n  group: watch\n  cancel-in-progress: false\n", ""),
    ("jactionlint", "concurrency-deadlock", "", CI, "ci-${{ github.ref }}", "plan-${{ github.run_id }}"),
    ("jactionlint", "missing-timeout", "", WATCH, "    timeout-minutes: 30\n", ""),
    # Expressions, and the names in them.
    ("actionlint", "expression", "unexpected end", CHECK, "!cancelled()", "!cancelled("),
    ("jactionlint", "expression-syntax", "", CHECK, "!cancelled()", "!cancelled("),
    ("actionlint", "expression", '"lvm"', LLVM, "steps.llvm.outputs", "steps.lvm.outputs"),
    ("jactionlint", "undefined-property", '"lvm"', LLVM, "steps.llvm.outputs", "steps.lvm.outputs"),
    ("jactionlint", "undefined-property", '"plam"', PLAN, "jobs.plan.outputs.plan ", "jobs.plan.outputs.plam "),
    ("actionlint", "expression", '"here"', CHECK, "WHERE: ${{ matrix.where", "WHERE: ${{ matrix.here"),
    ("jactionlint", "context-availability", "", LLVM, "fromJSON(inputs.plan).llvm.key }}", "env.KEY }}"),
    ("zizmor", "unsound-condition", "", CHECK, "${{ !cancelled() }}", "${{ !cancelled() }} && true"),
    ("actionlint", "if-cond", "always", CHECK, "${{ !cancelled() }}", "${{ !cancelled() }} && true"),
    # Who needs whom, and what is handed over.
    ("actionlint", "expression", '"plan" is not defined', CI, "[plan, module]", "[module]"),
    ("actionlint", "job-needs", "does not exist", CI, "[plan, module]", "[plan, module, more]"),
    ("jactionlint", "cyclic-job-needs", "", CI, "needs: plan\n", "needs: [plan, check]\n"),
    ("actionlint", "workflow-call", '"pin" is not defined', CI, "pins: sample", "pin: sample"),
    ("jactionlint", "missing-action-input", '"plan"', MODULE, "  plan: ${{ inputs.plan }}", "  plans: anything"),
    ("jactionlint", "unknown-action-input", '"retention"', MODULE, "compression-level: 0", "retention: 0"),
    # When, and where.
    ("actionlint", "events", "CRON", WATCH, "17 5 * * *", "17 25 * * *"),
    ("jactionlint", "cron-too-frequent", "", WATCH, "17 5 * * *", "* * * * *"),
    ("actionlint", "runner-label", "unknown", WATCH, "ubuntu-24.04", "ubuntu-24.4"),
    ("jactionlint", "mutable-runner-label", "", WATCH, "ubuntu-24.04", "ubuntu-latest"),
    # Keys and types.
    ("actionlint", "syntax-check", "timeout-minuts", WATCH, "timeout-minutes", "timeout-minuts"),
    ("jactionlint", "duplicate-key", "", WATCH, "  workflow_dispatch:\n", "  workflow_dispatch:\n" * 2),
    ("actionlint", "syntax-check", "YAML", WATCH, "name: Watch\n", "name: Watch: it\n"),
    ("check-jsonschema", "vendor.github-workflows", "minuts", WATCH, "timeout-minutes", "timeout-minuts"),
    ("check-jsonschema", "vendor.github-workflows", "'soon' is not", WATCH, "minutes: 30", "minutes: soon"),
    ("check-jsonschema", "vendor.github-workflows", "parse", WATCH, "name: Watch\n", "name: Watch: it\n"),
    ("check-jsonschema", "vendor.github-actions", "'description' is", ACTION, "\ndescription:", "\nsummary:"),
    ("check-jsonschema", "vendor.github-actions", "composit", ACTION, "composite", "composit"),
    ("check-jsonschema", "vendor.dependabot", "'uvv' is not", DEPENDABOT, "system: uv", "system: uvv"),
    ("jactionlint", "dependabot-syntax", "", DEPENDABOT, "version: 2", "version: 3"),
    ("jactionlint", "dependabot-cooldown", "", DEPENDABOT, "7\n    groups:\n      npm:", "1\n    groups:\n      npm:"),
    # Shell, wherever it is.
    ("actionlint", "shellcheck", "SC2086", WATCH, "run: scripts/watch.py", "run: scripts/watch.py $ANY"),
    ("jactionlint", "shellcheck", "SC2086", ACTION, "toolchain.py\"'", "toolchain.py\" $PLAN'"),
    ("shellcheck", "SC2086", "", ACTION, "toolchain.py\"'", "toolchain.py\" $PLAN'"),
    ("shellcheck", "SC2046", "", RUN, 'cd "$(dirname "$0")/.."', 'cd $(dirname "$0")/..'),
    ("shellcheck", "SC2164", "", RUN, "set -euo pipefail\n", ""),
]


@pytest.mark.parametrize(
    ("tool", "rule", "says", "file", "old", "new"),
    WRONG,
    ids=[f"{tool}-{rule}" for tool, rule, *_ in WRONG],
)
def test_what_is_made_wrong_is_found(
    tool: str, rule: str, says: str, file: str, old: str, new: str, tmp_path: Path
) -> None:
    changed = Change(file=file, old=old, new=new).copy_to(tmp_path)
    findings = lint.check_jsonschema(changed, [rule]) if tool == "check-jsonschema" else LINTERS[tool](changed)
    seen = [finding for finding in findings if (finding.tool, finding.rule) == (tool, rule) and says in finding.message]
    assert seen, f"{tool} found {findings}"
    assert any(finding.file.startswith(file) for finding in seen)


def test_all_are_asked(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stand_in(tool: str) -> Linter:
        return lambda checkout: [Finding(tool=tool, rule="", file="", message=str(checkout))]

    for tool in LINTERS:
        monkeypatch.setattr(lint, tool.replace("-", "_"), stand_in(tool))
    monkeypatch.setattr(lint, "judge", stand_in("policy"))
    assert [finding.tool for finding in lint.lint(checkout)] == [*LINTERS, "policy"]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a folder of our own for what is installed, with all linters in it."""
    real = Path(sysconfig.get_path("scripts"))
    folder = tmp_path / "installed"
    folder.mkdir()
    for name in LINTERS:
        (folder / name).symlink_to(real / name)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(folder))
    return folder


@pytest.mark.parametrize("tool", LINTERS)
def test_a_missing_linter_is_an_error(tool: str, installed: Path, checkout: Path) -> None:
    (installed / tool).unlink()
    with pytest.raises(LintError, match=f"{tool} is not installed"):
        LINTERS[tool](checkout)


@pytest.mark.parametrize("tool", ["actionlint", "jactionlint"])
def test_a_missing_shellcheck_is_missed(tool: str, installed: Path, checkout: Path) -> None:
    (installed / "shellcheck").unlink()
    with pytest.raises(LintError, match="shellcheck is not installed"):
        LINTERS[tool](checkout)


@pytest.mark.parametrize("tool", ["actionlint", "jactionlint"])
def test_nothing_of_the_path_is_used(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = Change(file=WATCH, old="run: scripts/watch.py", new="run: scripts/watch.py $ANY").copy_to(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "shellcheck" in {finding.rule for finding in LINTERS[tool](changed)}


@pytest.mark.parametrize("tool", LINTERS)
@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo '[]'; echo it broke >&2; exit 70", "ended with 70: it broke"),
        ("echo '[]'; kill -9 $$", "ended with -9"),
        ("exit 0", ""),
        ("echo all is well", ""),
        ("echo '[1]'", ""),
    ],
    ids=["crashed", "killed", "silent", "no-report", "contradicts-itself"],
)
def test_a_broken_linter_is_an_error(tool: str, script: str, says: str, installed: Path, checkout: Path) -> None:
    (installed / tool).unlink()
    (installed / tool).write_text(f"#!/bin/sh\n{script}\n")
    (installed / tool).chmod(0o755)
    with pytest.raises(LintError, match=f"{tool} .*{says}"):
        LINTERS[tool](checkout)


def test_a_file_that_is_passed_over_is_an_error(tmp_path: Path) -> None:
    changed = Change(file=WATCH, old="timeout-minutes: 30", new="timeout-minutes: soon").copy_to(tmp_path)
    with pytest.raises(LintError, match=r"failed to load .*watch\.yml"):
        lint.zizmor(changed)


def test_a_folder_without_workflows_is_an_error(tmp_path: Path) -> None:
    for linter in LINTERS.values():
        with pytest.raises((LintError, FileNotFoundError)):
            linter(tmp_path)


def test_a_folder_that_is_no_project_is_an_error(tmp_path: Path) -> None:
    checkout = copy_to(tmp_path)
    (checkout / ".git").rmdir()
    for linter in (lint.actionlint, lint.jactionlint):
        with pytest.raises(LintError, match=r"has no \.git"):
            linter(checkout)
