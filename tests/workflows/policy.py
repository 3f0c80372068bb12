"""What this project asks of its workflows and no linter or runner judges: who may do what, and where facts are kept.

``judge`` reads the files and says what is not as the tables of ``allowed`` and the rules here have it. A rule is a
function from the files to pairs of a file and what is wrong with it, and is known by its name in ``RULES``.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release.actions import FAILURES
from tests.workflows.allowed import (
    CANCELLED,
    NEVER,
    PERMISSIONS,
    PUBLISHING,
    READ_BY_A_REPORT,
    SIGNING,
    TRIGGERS,
)
from tests.workflows.files import CALLED, Files, Source, expressions, read, references

LONGEST_MINUTES = 360  # GitHub ends a job then
TOOLKIT = {"repository": "${{ job.workflow_repository }}", "ref": "${{ job.workflow_sha }}"}
ECOSYSTEMS = {"github-actions", "uv", "npm"}

_PINNED = re.compile(r"(?P<action>[\w.-]+/[\w.-]+)(?:/[\w./-]+)?@(?P<commit>[0-9a-f]{40})")
_USES_LINE = re.compile(r"^[ -]*uses: (?P<use>\S+)(?: # (?P<version>v\d+\.\d+\.\d+))?$", re.MULTILINE)
_SCRIPT = re.compile(r"scripts/[\w.]+")
_SCRIPT_OF_ACTION = re.compile(r'"\$GITHUB_ACTION_PATH/((?:\.\./)+scripts/[\w.]+)"')
_LITERAL_ELSEWHERE = re.compile(r"^ *(?:- )?(?:uses|cron|runs-on):")
_LITERALS = {
    "a version": re.compile(r"\d+\.\d+"),
    "a commit or a digest": re.compile(r"\b[0-9a-f]{12,}\b"),
    "a compiler flag": re.compile(r"(?<![\w-])-(?:O[0-9sz]|[fmW][a-z]{2,}|s[A-Z_]{3,}|D[A-Z_]{3,})"),
    "the name of a produced file": re.compile(r"\.(?:whl|zip|wasm|tar|a|so|xz|gz|zst|json)\b"),
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a tool has against a file of the checkout, by the tool's own name for it."""

    tool: str
    rule: str
    file: str
    message: str


type Wrong = Iterator[tuple[str, str]]


def judge(checkout: Path) -> list[Finding]:
    """Return what in a checkout is against the policy."""
    files = read(checkout)
    return [
        Finding(tool="policy", rule=rule, file=path, message=message)
        for rule, check in RULES.items()
        for path, message in check(files)
    ]


def _top_permissions(files: Files) -> Wrong:
    for workflow in files.workflows.values():
        if workflow.content.get("permissions") != {}:
            yield workflow.path, "the workflow does not begin with `permissions: {}`"


def _job_permissions(files: Files) -> Wrong:
    found = {(workflow.name, name): job.get("permissions") for workflow, name, job in files.all_jobs}
    for workflow, name, job in files.all_jobs:
        allowed = PERMISSIONS.get((workflow.name, name))
        if allowed is None or job.get("permissions") != allowed:
            yield workflow.path, f"job {name} has the permissions {job.get('permissions')}, and may have {allowed}"
    for file, name in PERMISSIONS.keys() - found.keys():
        yield f".github/workflows/{file}", f"there is no job {name}, which has permissions in the policy"


def _id_token(files: Files) -> Wrong:
    for workflow, name, job in files.all_jobs:
        permissions = job.get("permissions")
        asks = permissions.get("id-token") if isinstance(permissions, Mapping) else permissions
        if asks not in (None, "none") and ((workflow.name, name) not in SIGNING or workflow.is_called):
            yield workflow.path, f"job {name} may ask for an identity, and is none of those that sign"


def _timeout(files: Files) -> Wrong:
    for workflow, name, job in files.all_jobs:
        minutes = job.get("timeout-minutes")
        if "uses" in job:
            if minutes is not None:
                yield workflow.path, f"job {name} calls a workflow, whose jobs have their own timeout-minutes"
        elif not isinstance(minutes, int) or not 0 < minutes <= LONGEST_MINUTES:
            yield workflow.path, f"job {name} has timeout-minutes {minutes}, not 1 to {LONGEST_MINUTES}"


def _concurrency(files: Files) -> Wrong:
    for workflow in files.workflows.values():
        said = workflow.content.get("concurrency")
        if not isinstance(said, Mapping) or not said.get("group"):
            yield workflow.path, "the workflow has no concurrency group"
        elif said.get("cancel-in-progress") is not (workflow.name in CANCELLED):
            yield workflow.path, f"cancel-in-progress is not {str(workflow.name in CANCELLED).lower()}"
    for workflow, name, job in files.all_jobs:
        if "concurrency" in job:
            yield workflow.path, f"job {name} has a concurrency of its own, beside that of the workflow"


def _pinned(files: Files) -> Wrong:
    pins: dict[str, set[tuple[str, str]]] = defaultdict(set)
    where: dict[str, str] = {}
    for source in files.all:
        lines: dict[str, list[str | None]] = defaultdict(list)
        for match in _USES_LINE.finditer(source.text):
            lines[match["use"]].append(match["version"])
        uses = [use for _, use in source.calls]
        for use in dict.fromkeys(uses):
            if use.startswith("./"):
                continue
            pinned = _PINNED.fullmatch(use)
            if not pinned:
                yield source.path, f"{use} is not pinned to a commit, all 40 digits of it"
            elif len(lines[use]) != uses.count(use) or None in lines[use]:
                yield source.path, f"{use} has no comment that is just its version, # vX.Y.Z"
            else:
                pins[pinned["action"]] |= {(pinned["commit"], str(version)) for version in lines[use]}
                where[pinned["action"]] = source.path
    for action, versions in pins.items():
        if len(versions) > 1:
            yield where[action], f"{action} is used in more than one version: {sorted(versions)}"


def _secrets(files: Files) -> Wrong:
    for workflow, name, job in files.all_jobs:
        if "secrets" in job:
            yield workflow.path, f"job {name} hands secrets on"
    for source in files.all:
        if "secrets" in source.on.get("workflow_call", {}):
            yield source.path, "the workflow asks for secrets"
        if any(re.search(r"(?<![\w.-])secrets\b", text) for text in expressions(source.content)):
            yield source.path, "an expression reads the secrets; there are none but the token of the job"


def _persist_credentials(files: Files) -> Wrong:
    for source in files.all:
        for user, use in source.calls:
            if use.split("@")[0] != "actions/checkout":
                continue
            given = user.get("with") or {}
            if given.get("persist-credentials") is not False:
                yield source.path, "a checkout leaves its credentials for all that runs after it"
            wanted = TOOLKIT if source.is_called else {}
            if {key: given[key] for key in ("repository", "ref") if key in given} != wanted:
                yield source.path, f"what is checked out is not {wanted or 'the commit of the run'}"


def _environment(files: Files) -> Wrong:
    for workflow, name, job in files.all_jobs:
        if bool(job.get("environment")) is not ((workflow.name, name) in PUBLISHING):
            yield workflow.path, f"job {name} has the environment {job.get('environment')}; those that publish have one"


def _one_level(files: Files) -> Wrong:
    for workflow, name, job in files.all_jobs:
        if workflow.is_called and "uses" in job:
            yield workflow.path, f"job {name} of a workflow that is called calls another"


def _call(files: Files) -> Wrong:
    for source in files.all:
        for user, use in source.calls:
            if use.startswith("./"):
                yield from ((source.path, wrong) for wrong in _wrong_in_call(files, user, use))
        for name, _ in references(source.content, "inputs"):
            if name not in source.declared("inputs"):
                yield source.path, f"there is no input {name}"
    for workflow, name, job in files.all_jobs:
        yield from ((workflow.path, f"job {name}: {wrong}") for wrong in _wrong_references(files, workflow, job))
    for workflow in files.workflows.values():
        for name, output in references(workflow.declared("outputs"), "jobs"):
            if output not in _outputs(files, workflow.jobs.get(name, {})):
                yield workflow.path, f"no job {name} has the output {output}, which the workflow puts out"


def _wrong_in_call(files: Files, user: Any, use: str) -> Iterator[str]:
    """Compare what is given with what the workflow or the action asks for."""
    used = files.used(use)
    if used is None or (use.startswith(CALLED) and not used.is_called):
        yield f"{use} is nothing that can be used"
        return
    inputs = used.declared("inputs")
    given = (user.get("with") or {}).keys()
    for name in given - inputs.keys():
        yield f"{use} has no input {name}"
    for name in {name for name, said in inputs.items() if said.get("required")} - given:
        yield f"{use} is not given its input {name}"


def _wrong_references(files: Files, workflow: Source, job: Any) -> Iterator[str]:
    """Look up what the expressions of a job name; a step knows those before it, and the outputs of a job know all."""
    needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
    for name in needs:
        if name not in workflow.jobs:
            yield f"it needs {name}, and there is no such job"
    for name, output in references(job, "needs"):
        if name not in needs:
            yield f"needs.{name} is not among what it needs"
        elif output and output not in _outputs(files, workflow.jobs.get(name, {})):
            yield f"job {name} has no output {output}"
    matrix = (job.get("strategy") or {}).get("matrix") or {}
    for name, _ in references(job, "matrix"):
        if isinstance(matrix, Mapping) and name not in matrix:
            yield f"the matrix has no {name}"
    before: set[str] = set()
    for step in job.get("steps", []):
        for name, _ in references(step, "steps"):
            if name not in before:
                yield f"step {step.get('name')} reads step {name}, and there is none before it"
        before.add(step.get("id", ""))
    for name, _ in references(job.get("outputs", {}), "steps"):
        if name not in before:
            yield f"an output is of step {name}, and there is none"


def _run(files: Files) -> Wrong:
    for workflow in files.workflows.values():
        if "defaults" in workflow.content or any("defaults" in job for job in workflow.jobs.values()):
            yield workflow.path, "defaults change what a step runs"
    for source in files.all:
        is_action = "runs" in source.content
        base = files.checkout / Path(source.path).parent if is_action else files.checkout
        for step in source.steps:
            if "run" not in step:
                continue
            match = (_SCRIPT_OF_ACTION if is_action else _SCRIPT).fullmatch(step["run"])
            if not match:
                yield source.path, f"`{step['run']}` is not one file of scripts/ and nothing else"
            elif not _is_script(files.checkout, base / match[match.lastindex or 0]):
                yield source.path, f"`{step['run']}` is no executable file of scripts/"
            if "working-directory" in step or ("shell" in step) is not is_action:
                yield source.path, f"`{step['run']}` runs in another folder or shell than all others"


def _literal(files: Files) -> Wrong:
    for source in files.all:
        for number, line in enumerate(source.text.splitlines(), start=1):
            if _LITERAL_ELSEWHERE.match(line):
                continue
            for what, pattern in _LITERALS.items():
                if match := pattern.search(line):
                    yield source.path, f"line {number} has {what}, {match[0]}, which is for the pin sets or the toolkit"


def _triggers(files: Files) -> Wrong:
    for name in TRIGGERS.keys() | files.workflows.keys():
        path = f".github/workflows/{name}"
        if name not in files.workflows or name not in TRIGGERS:
            yield path, "the workflow is in just one of the policy and the checkout"
            continue
        on = files.workflows[name].on
        found = {event: _settings(settings) for event, settings in on.items()}
        if found != TRIGGERS[name]:
            yield path, f"it is started by {found}, and not just by {TRIGGERS[name]}"
        for event in NEVER & on.keys():
            yield path, f"{event} runs what anyone sends with the rights of this repository"


def _settings(settings: Any) -> dict[str, Any]:
    """Reduce the settings of an event to what the policy has of them."""
    if isinstance(settings, list):
        return {"cron": sum("cron" in entry for entry in settings)}
    reduced = dict(settings)
    if "inputs" in reduced:
        reduced["inputs"] = {name: (said or {}).get("required", False) for name, said in settings["inputs"].items()}
    if "outputs" in reduced:
        reduced["outputs"] = list(settings["outputs"])
    return reduced


def _report(files: Files) -> Wrong:
    for workflow, name, job in files.all_jobs:
        steps = job.get("steps", [])
        if any(user.get("continue-on-error") for user in [job, *steps]):
            yield workflow.path, f"job {name} goes on after an error, of which nobody hears"
        if not steps or not (workflow.is_called or (workflow.name, name) in READ_BY_A_REPORT):
            continue
        last = steps[-1]
        if not (last.get("uses", "").startswith("actions/upload-artifact@") and _leaves_word(last)):
            yield workflow.path, f"job {name} does not end by leaving word of a failure"


def _leaves_word(step: Any) -> bool:
    given = step.get("with") or {}
    return (
        step.get("if") == "${{ failure() }}"
        and given.get("name", "").startswith("failure-${{ github.job }}")
        and given.get("path") == FAILURES
        and given.get("if-no-files-found") == "ignore"  # a job may be lost in a step that is nobody's script
        and given.get("overwrite") is True
    )


def _described(files: Files) -> Wrong:
    for source in files.all:
        for kind in ("inputs", "outputs"):
            for name, said in source.declared(kind).items():
                if not said.get("description"):
                    yield source.path, f"{name} of its {kind} has no description"
    for action in files.actions.values():
        if not action.content.get("description"):
            yield action.path, "the action has no description"


def _names(files: Files) -> Wrong:
    for source in files.all:
        if not source.content.get("name"):
            yield source.path, "it has no name"
        for job, said in source.jobs.items():
            if not said.get("name"):
                yield source.path, f"job {job} has no name"
        for number, step in enumerate(source.steps, start=1):
            if not str(step.get("name", ""))[:1].isupper():
                yield source.path, f"step {number} has no name that starts with a capital: {step.get('name')}"


def _dependabot(files: Files) -> Wrong:
    updates = files.dependabot.content["updates"]
    for missing in ECOSYSTEMS - {update["package-ecosystem"] for update in updates}:
        yield files.dependabot.path, f"nothing keeps {missing} up to date"
    for update in updates:
        if not (update.get("cooldown") or {}).get("default-days"):
            yield files.dependabot.path, f"{update['package-ecosystem']} takes what was released this very day"
    covered = {
        folder
        for update in updates
        if update["package-ecosystem"] == "github-actions"
        for folder in update.get("directories") or [update.get("directory")]
    }
    for folder in {"/", *(f"/.github/actions/{name}" for name in files.actions)} - covered:
        yield files.dependabot.path, f"the actions that {folder} uses are not kept up to date"


RULES: Mapping[str, Callable[[Files], Wrong]] = {
    "top-permissions": _top_permissions,
    "job-permissions": _job_permissions,
    "id-token": _id_token,
    "timeout": _timeout,
    "concurrency": _concurrency,
    "pinned": _pinned,
    "secrets-inherit": _secrets,
    "persist-credentials": _persist_credentials,
    "environment": _environment,
    "one-level": _one_level,
    "call": _call,
    "run": _run,
    "literal": _literal,
    "triggers": _triggers,
    "report": _report,
    "described": _described,
    "names": _names,
    "dependabot": _dependabot,
}


def _outputs(files: Files, job: Any) -> set[str]:
    """Return the names of the outputs that a job has, or the workflow that it calls."""
    if "uses" in job:
        used = files.used(job["uses"])
        return set(used.declared("outputs")) if used else set()
    return set(job.get("outputs", {}))


def _is_script(checkout: Path, path: Path) -> bool:
    """Return whether a file of ``scripts/`` can be run as it is."""
    there = path.resolve()
    is_ours = there.parent == (checkout / "scripts").resolve() and there.is_file()
    return is_ours and os.access(there, os.X_OK) and there.read_bytes().startswith(b"#!")
