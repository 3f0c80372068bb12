"""The policy has nothing against the workflows as they are, and each of its rules sees what is made wrong."""

from pathlib import Path

import pytest

from release.places import CHECKOUT
from tests.workflows.policy import RULES, judge
from tests.workflows.test_lint import Change, copy_to

ACTION = ".github/actions/toolchain/action.yml"
DEPENDABOT = ".github/dependabot.yml"
CHECK, CI, LLVM_CACHE, LLVM, MODULE, PLAN, PUBLISH, RELEASE, TRY, WATCH = (
    f".github/workflows/{name}.yml"
    for name in ("check", "ci", "llvm-cache", "llvm", "module", "plan", "publish", "release", "try-pin", "watch")
)
PIN = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1\n"
OTHER = "actions/checkout@ffffffffffffffffffffffffffffffffffffffff # v7.0.2\n"
OTHER_JOB = """\
jobs:
  more:
    name: More
    runs-on: ubuntu-24.04
    timeout-minutes: 1
    steps:
      - name: Test
        run: scripts/test
"""
WORD = "path: failure\n          if-no-files-found: ignore\n          overwrite: true\n"
MORE = "      - name: More\n        id: more\n        run: scripts/test\n"
RUN_ACTION = """run: '"$GITHUB_ACTION_PATH/../../../scripts/toolchain.py"'"""


# What is made wrong: the rule that must see it, a part of what it says, the file, and the change.
WRONG = [
    ("top-permissions", "", WATCH, "permissions: {}", "permissions: read-all"),
    ("top-permissions", "", WATCH, "permissions: {}\n", ""),
    ("job-permissions", "job test", CI, "    permissions:\n      contents: read\n    steps:", "    steps:"),
    ("job-permissions", "job publish", PUBLISH, "contents: write #", "actions: write #"),
    ("job-permissions", "job sign", RELEASE, "      attestations: write", "      packages: write"),
    ("job-permissions", "job more", WATCH, "jobs:\n", OTHER_JOB),
    ("job-permissions", "there is no job watch", WATCH, "  watch:\n", "  look:\n"),
    ("id-token", "job publish", PUBLISH, "contents: write #", "id-token: write #"),
    ("id-token", "job check", CHECK, "    permissions:\n      contents: read\n", "    permissions: write-all\n"),
    ("id-token", "job sign", RELEASE, "  workflow_dispatch:\n", "  workflow_call:\n  workflow_dispatch:\n"),
    ("timeout", "job watch", WATCH, "    timeout-minutes: 30\n", ""),
    ("timeout", "job llvm", LLVM, "timeout-minutes: 355", "timeout-minutes: 720"),
    ("timeout", "job plan", CI, "name: Plan a rehearsal\n", "name: Plan a rehearsal\n    timeout-minutes: 5\n"),
    ("concurrency", "no concurrency", WATCH, "  group: watch\n", ""),
    ("concurrency", "is not false", RELEASE, "cancel-in-progress: false", "cancel-in-progress: true"),
    ("concurrency", "is not false", PUBLISH, "  cancel-in-progress: false\n", ""),
    ("concurrency", "is not true", CI, "cancel-in-progress: true", "cancel-in-progress: false"),
    ("concurrency", "of its own", PUBLISH, "    name: Publish\n", "    name: Publish\n    concurrency: publish\n"),
    ("pinned", "all 40 digits", WATCH, PIN, "actions/checkout@v7\n"),
    ("pinned", "all 40 digits", WATCH, PIN, "actions/checkout@3d3c42e # v7.0.1\n"),
    ("pinned", "all 40 digits", WATCH, PIN, "docker://alpine:3\n"),
    ("pinned", "no comment", WATCH, " # v7.0.1", ""),
    ("pinned", "no comment", WATCH, " # v7.0.1", " # v7"),
    ("pinned", "more than one", WATCH, PIN, OTHER),
    ("secrets-inherit", "hands secrets on", CI, "      pins: sample", "      pins: sample\n    secrets: inherit"),
    (
        "secrets-inherit",
        "asks",
        MODULE,
        "  workflow_call:\n",
        "  workflow_call:\n    secrets: {token: {required: true}}\n",
    ),
    ("secrets-inherit", "reads", WATCH, "${{ github.token }}", "${{ secrets.TOKEN }}"),
    ("secrets-inherit", "reads", WATCH, "${{ github.token }}", "${{ toJSON(secrets) }}"),
    ("persist-credentials", "leaves", WATCH, "persist-credentials: false", "persist-credentials: true"),
    ("persist-credentials", "leaves", WATCH, "        with:\n          persist-credentials: false\n", ""),
    ("persist-credentials", "is not", MODULE, "          ref: ${{ job.workflow_sha }}\n", ""),
    ("persist-credentials", "is not", PLAN, "${{ job.workflow_repository }}", "${{ github.repository }}"),
    ("persist-credentials", "is not", CI, "persist-cred", "ref: ${{ github.head_ref }}\n          persist-cred"),
    (
        "environment",
        "job publish",
        PUBLISH,
        "    environment: ${{ fromJSON(inputs.plan).publication.environment }}\n",
        "",
    ),
    ("environment", "job release", LLVM_CACHE, "    environment: llvm\n", ""),
    ("environment", "job watch", WATCH, "    name: Watch\n", "    name: Watch\n    environment: llvm\n"),
    ("one-level", "job more", PLAN, "jobs:\n", "jobs:\n  more:\n    uses: ./.github/workflows/module.yml\n"),
    ("call", "nothing that can be used", CI, "workflows/plan.yml", "workflows/plans.yml"),
    ("call", "nothing that can be used", CI, "workflows/plan.yml", "workflows/watch.yml"),
    ("call", "nothing that can be used", MODULE, "actions/toolchain", "actions/toolchains"),
    ("call", "has no input pin", CI, "pins: sample", "pin: sample"),
    ("call", "not given its input workflow", RELEASE, "      workflow: release.yml\n", ""),
    ("call", "not given its input plan", MODULE, "  plan: ${{ inputs.plan }}", "  pins: ${{ inputs.plan }}"),
    ("call", "no input trust", PUBLISH, "${{ inputs.trust-config }}", "${{ inputs.trust }}"),
    ("call", "no input plans", LLVM, "group: llvm-${{ fromJSON(inputs.plan)", "group: llvm-${{ fromJSON(inputs.plans)"),
    ("call", "no input plans", ACTION, "${{ inputs.plan }}", "${{ inputs.plans }}"),
    ("call", "needs.plan is not among", CI, "needs: [plan, module]", "needs: [module]"),
    ("call", "it needs modul,", CI, "needs: [plan, module]", "needs: [plan, modul]"),
    ("call", "no output plam", WATCH, "jobs:\n", f"{OTHER_JOB}    needs: watch\n    if: needs.watch.outputs.plam\n"),
    ("call", "no job plan has the output plam", PLAN, "jobs.plan.outputs.plan ", "jobs.plan.outputs.plam "),
    ("call", "output is of step pan", PLAN, "plan: ${{ steps.plan", "plan: ${{ steps.pan"),
    ("call", "reads step kept", LLVM, "        id: kept\n", ""),
    ("call", "reads step llvm", LLVM, "fromJSON(inputs.plan).llvm.compiler.prefix", "steps.llvm.outputs.prefix"),
    ("call", "the matrix has no here", CHECK, "WHERE: ${{ matrix.where }}", "WHERE: ${{ matrix.here }}"),
    ("run", "and nothing else", WATCH, "run: scripts/watch.py", "run: scripts/watch.py --all"),
    ("run", "and nothing else", WATCH, "run: scripts/watch.py", "run: python3 scripts/watch.py"),
    ("run", "and nothing else", PLAN, "run: scripts/plan.py", "run: scripts/${{ inputs.pins }}"),
    ("run", "and nothing else", WATCH, "run: scripts/watch.py", "run: |\n          scripts/watch.py\n          date"),
    ("run", "no executable", WATCH, "run: scripts/watch.py", "run: scripts/watches.py"),
    ("run", "no executable", WATCH, "run: scripts/watch.py", "run: scripts/bootstrap.py"),
    ("run", "no executable", ACTION, "/../../../scripts/toolchain.py", "/../../scripts/toolchain.py"),
    ("run", "and nothing else", ACTION, RUN_ACTION, "run: scripts/toolchain.py"),
    ("run", "another folder", WATCH, "run: scripts/watch.py", "run: scripts/watch.py\n        shell: sh"),
    ("run", "defaults", WATCH, "jobs:\n", "defaults: {run: {shell: sh}}\n\njobs:\n"),
    ("literal", "a version, 3.7", RELEASE, "workflow: release.yml", "workflow: release.yml\n      triton: v3.7.1"),
    ("literal", "a commit", CI, "pins: sample", "llvm: 87717bf9f81f"),
    ("literal", "a compiler flag, -Oz", WATCH, "        env:\n", "        env:\n          FLAGS: -g0 -Oz\n"),
    ("literal", "a compiler flag, -sSIDE", WATCH, "        env:\n", "        env:\n          FLAGS: -sSIDE_MODULE=2\n"),
    ("literal", "produced file, .whl", RELEASE, "handovers.release.path }}/*", "handovers.release.path }}/*.whl"),
    ("triggers", "pull_request_target", CI, "  pull_request:\n", "  pull_request_target:\n"),
    ("triggers", "workflow_run", WATCH, "  workflow_dispatch:\n", "  workflow_run: {workflows: [CI]}\n"),
    ("triggers", "started by", RELEASE, "      - v*\n", '      - "*"\n'),
    ("triggers", "started by", LLVM_CACHE, "      - pins/**\n", ""),
    (
        "triggers",
        "started by",
        WATCH,
        '    - cron: "17 5 * * *"\n',
        '    - cron: "17 5 * * *"\n    - cron: "17 6 * * *"\n',
    ),
    ("triggers", "started by", PUBLISH, "signed the release\n        type: string\n        required: true", "it"),
    ("report", "job check does not end", CHECK, "if: ${{ failure() }}", "if: ${{ always() }}"),
    ("report", "job plan does not end", PLAN, "path: failure\n", "path: failures\n"),
    ("report", "job propose does not end", TRY, "name: failure-${{ github.job }}", "name: failure-it"),
    ("report", "job llvm does not end", LLVM, "if-no-files-found: ignore", "if-no-files-found: error"),
    ("report", "job module does not end", MODULE, WORD, f"{WORD}\n{MORE}"),
    ("report", "goes on", WATCH, "run: scripts/watch.py", "run: scripts/watch.py\n        continue-on-error: true"),
    ("described", "plan of its inputs", CHECK, "        description: The plan, as the plan workflow puts it out\n", ""),
    ("described", "url of its outputs", PUBLISH, "        description: Where the release is\n", ""),
    ("described", "dry-run of its inputs", RELEASE, "description: Do all", "deprecationMessage: Do all"),
    ("described", "plan of its inputs", ACTION, "    description: The plan, as the plan workflow puts it out\n", ""),
    ("described", "the action", ACTION, "\ndescription: ", "\nsummary: "),
    ("names", "it has no name", WATCH, "name: Watch upstream\n", ""),
    ("names", "job watch", WATCH, "    name: Watch\n", ""),
    ("names", "a capital", WATCH, "- name: Look, and propose what is new\n        env:", "- env:"),
    ("names", "a capital", ACTION, "- name: Prepare", "- name: prepare"),
    ("dependabot", "keeps uv", DEPENDABOT, "ecosystem: uv", "ecosystem: cargo"),
    ("dependabot", "this very day", DEPENDABOT, "default-days: 7\n    groups:\n      npm", "groups:\n      npm"),
    ("dependabot", "/.github/actions/toolchain", DEPENDABOT, "      - /.github/actions/toolchain\n", ""),
]


def test_nothing_is_wrong_with_the_checkout() -> None:
    assert judge(CHECKOUT) == []


@pytest.mark.parametrize(("rule", "says", "file", "old", "new"), WRONG, ids=[rule for rule, *_ in WRONG])
def test_what_is_made_wrong_is_seen(rule: str, says: str, file: str, old: str, new: str, tmp_path: Path) -> None:
    findings = judge(Change(file=file, old=old, new=new).copy_to(tmp_path))
    seen = [finding for finding in findings if (finding.tool, finding.rule, finding.file) == ("policy", rule, file)]
    assert any(says in finding.message for finding in seen), findings


def test_every_rule_is_broken_once() -> None:
    assert {rule for rule, *_ in WRONG} == RULES.keys()


@pytest.mark.parametrize("name", ["more.yml", "more.yaml"])
def test_a_workflow_that_nobody_has_heard_of_is_seen(name: str, tmp_path: Path) -> None:
    checkout = copy_to(tmp_path)
    (checkout / ".github/workflows" / name).write_text(f"name: More\non: push\n{OTHER_JOB}")
    seen = {finding.rule for finding in judge(checkout) if finding.file.endswith(name)}
    assert {"triggers", "top-permissions", "job-permissions", "concurrency"} <= seen


def test_a_workflow_that_is_gone_is_seen(tmp_path: Path) -> None:
    checkout = copy_to(tmp_path)
    (checkout / WATCH).unlink()
    assert {finding.rule for finding in judge(checkout)} == {"triggers", "job-permissions"}


def test_a_script_that_cannot_be_run_is_seen(tmp_path: Path) -> None:
    checkout = copy_to(tmp_path)
    (checkout / "scripts/watch.py").chmod(0o644)
    (finding,) = judge(checkout)
    assert (finding.rule, finding.file) == ("run", WATCH)


def test_a_second_action_is_kept_up_to_date_too(tmp_path: Path) -> None:
    checkout = copy_to(tmp_path)
    other = checkout / ".github/actions/other/action.yml"
    other.parent.mkdir()
    other.write_text((checkout / ACTION).read_text())
    (finding,) = judge(checkout)
    assert (finding.rule, finding.file) == ("dependabot", DEPENDABOT)
