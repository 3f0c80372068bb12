"""Judges the workflows of a checkout without running them: the linters of this field, each as it is, and ``policy``.

A linter that is not there, or that ends in another way than with findings or without, is an error and never "no
findings". None of them goes online. Every fact about how a linter is called is here; what it found is a ``Finding``.
"""

from __future__ import annotations

import json
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.workflows.policy import Finding, judge

SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.github-actions": ".github/actions/*/action.yml",
    "vendor.dependabot": ".github/dependabot.yml",
}
_WORKFLOWS = SCHEMAS["vendor.github-workflows"]
_ACTIONS = SCHEMAS["vendor.github-actions"]
_ZIZMOR_FOUND = range(11, 15)
_TIMEOUT_SECONDS = 60

# What jactionlint's strictest profile asks for, and we have a reason not to do.
_JACTIONLINT_LEFT_OUT = {
    "self-repository",  # `act`, which runs these files in the tests, knows `./` only
    "require-shell",  # every `run` is one executable file, whose first line says what runs it
}


class LintError(Exception):
    """A linter is missing, or did not do its work."""


def lint(checkout: Path) -> list[Finding]:
    """Return what any of the linters, or the policy, has to say about a checkout."""
    linters = (zizmor, jactionlint, actionlint, check_jsonschema, shellcheck)
    return [*(finding for linter in linters for finding in linter(checkout)), *judge(checkout)]


def zizmor(checkout: Path) -> list[Finding]:
    """Look for what can be attacked: in the workflows, the composite actions and the configuration of dependabot."""
    files = [name for pattern in SCHEMAS.values() for name in _files(checkout, pattern)]
    options = ("--offline", "--no-progress", "--strict-collection", "--persona=pedantic", "--no-ignores")
    command = ["zizmor", *options, "--format", "json", "--config", ".github/zizmor.yml", *files]
    done = _run(checkout, command, accept={0, *_ZIZMOR_FOUND})
    passed_over = [name for name in files if f"completed {name}" not in done.stderr]
    if passed_over:
        raise LintError(f"zizmor has not looked at {', '.join(passed_over)}: {done.stderr}")
    return [
        Finding(tool="zizmor", rule=found["ident"], file=_zizmor_file(found), message=_zizmor_message(found))
        for found in _json(done)
    ]


def jactionlint(checkout: Path) -> list[Finding]:
    """Check the syntax, the types of the expressions and the security of all that it finds in the checkout."""
    _require_project(checkout)
    options = ("--format=json", "--profile=pedantic", "--strict-exit", "--no-ignores", "--no-online", "--pyflakes=")
    done = _run(checkout, ["jactionlint", *options, f"--shellcheck={_tool('shellcheck')}"])
    return [
        Finding(tool="jactionlint", rule=found["id"], file=found["filepath"], message=found["message"])
        for found in _json(done)
        if found["id"] not in _JACTIONLINT_LEFT_OUT
    ]


def actionlint(checkout: Path) -> list[Finding]:
    """Check the syntax, the types of the expressions and the scripts of the workflows."""
    _require_project(checkout)
    options = ("-format", "{{json .}}", "-pyflakes", "", "-shellcheck", str(_tool("shellcheck")))
    done = _run(checkout, ["actionlint", *options])
    return [
        Finding(tool="actionlint", rule=found["kind"], file=_actionlint_file(checkout, found), message=found["message"])
        for found in _json(done)
    ]


def check_jsonschema(checkout: Path, schemas: Sequence[str] = tuple(SCHEMAS)) -> list[Finding]:
    """Validate each kind of file by its published schema; the rule of a finding is the name of the schema.

    ``schemas`` is for whoever needs just one of them, for each takes two seconds.
    """
    findings = []
    for schema in schemas:
        files = _files(checkout, SCHEMAS[schema])
        options = ("--builtin-schema", schema, "--output-format", "json")
        report = _json(_run(checkout, ["check-jsonschema", *options, *files]))
        findings += [
            Finding(tool="check-jsonschema", rule=schema, file=found["filename"], message=_schema_message(found))
            for found in [*report["errors"], *report.get("parse_errors", [])]
        ]
    return findings


def shellcheck(checkout: Path) -> list[Finding]:
    """Check the shell scripts that no linter of workflows sees: what CI runs, and the steps of composite actions."""
    scripts: dict[str, tuple[str, tuple[str, ...]]] = {".ci/run": ((checkout / ".ci" / "run").read_text(), ())}
    for name in _files(checkout, _ACTIONS):
        steps = yaml.safe_load((checkout / name).read_text())["runs"].get("steps", [])
        for number, step in enumerate(steps, start=1):
            if "run" in step:
                scripts[f"{name}, step {number}"] = (step["run"], ("--shell", step.get("shell", "bash")))
    findings = []
    for name, (text, options) in scripts.items():
        done = _run(checkout, ["shellcheck", "--norc", "--format", "json", *options, "-"], stdin=text)
        findings += [
            Finding(tool="shellcheck", rule=f"SC{found['code']}", file=name, message=found["message"])
            for found in _json(done)
        ]
    return findings


def _tool(name: str) -> Path:
    """Return the linter that is installed with us, whatever is on the path."""
    tool = Path(sysconfig.get_path("scripts")) / name
    if not tool.is_file():
        raise LintError(f"{name} is not installed: {tool} does not exist. Run ./scripts/test, which installs it.")
    return tool


def _run(
    checkout: Path, command: Sequence[str], *, accept: set[int] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a linter at the top of the checkout; the exit codes that it may end with are 0 and 1, or ``accept``."""
    name, *arguments = command
    done = subprocess.run(
        [_tool(name), *arguments], cwd=checkout, input=stdin, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS
    )
    if done.returncode not in (accept or {0, 1}):
        raise LintError(f"{name} ended with {done.returncode}: {done.stderr or done.stdout}")
    return done


def _json(done: subprocess.CompletedProcess[str]) -> Any:
    """Read a report, which has something to say just when the exit code says so."""
    name = Path(done.args[0]).name
    try:
        report = json.loads(done.stdout)
    except ValueError as error:
        raise LintError(f"{name} wrote no report: {done.stderr or done.stdout}") from error
    found = report["status"] != "ok" if isinstance(report, dict) else bool(report)
    if found != bool(done.returncode):
        raise LintError(f"{name} ended with {done.returncode}, which its report does not fit: {done.stdout}")
    return report


def _files(checkout: Path, pattern: str) -> list[str]:
    found = sorted(path.relative_to(checkout).as_posix() for path in checkout.glob(pattern))
    if not found:
        raise LintError(f"There is nothing to check: {checkout} has no {pattern}.")
    return found


def _require_project(checkout: Path) -> None:
    """Refuse a folder in which these linters would not follow a workflow to the ones that it calls."""
    _files(checkout, _WORKFLOWS)
    if not (checkout / ".git").exists():
        raise LintError(f"{checkout} has no .git, by which actionlint and jactionlint know the top of a project.")


def _actionlint_file(checkout: Path, found: dict[str, Any]) -> str:
    """Return the path in the checkout, which for a file that a workflow refers to is said in full."""
    path: Path = checkout / found["filepath"]
    return path.relative_to(checkout).as_posix()


def _zizmor_file(found: dict[str, Any]) -> str:
    return str(_zizmor_place(found)["symbolic"]["key"]["Local"]["verbatim_path"])


def _zizmor_message(found: dict[str, Any]) -> str:
    place = _zizmor_place(found)
    line = place["concrete"]["location"]["start_point"]["row"] + 1
    return f"line {line}: {found['desc']}: {place['symbolic']['annotation']}"


def _zizmor_place(found: dict[str, Any]) -> dict[str, Any]:
    places: list[dict[str, Any]] = found["locations"]
    return next(place for place in places if place["symbolic"]["kind"] == "Primary")


def _schema_message(found: dict[str, Any]) -> str:
    """Take the message of the part that fits best, where a file could have been one of several things."""
    best = found.get("best_deep_match", found)
    return f"{best['path']}: {best['message']}" if "path" in best else str(best["message"])
