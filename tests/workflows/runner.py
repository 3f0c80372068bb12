"""Runs the workflows of a repository as they are, on this machine and offline: ``act``, with stand-ins for GitHub.

What ``act`` has no counterpart of in a file, such as permissions, filters and required inputs, is for ``policy``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sysconfig
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from release.process import run
from release.toolchain.node import find_node

HERE = Path(__file__).parent
STAND_INS = HERE / "stand_ins"
ACT = Path(sysconfig.get_path("scripts")) / "act"
RUNNER = "ubuntu-24.04"
_TIMEOUT_SECONDS = 840  # three minutes are usual; a busy machine takes its time
_PINNED = re.compile(r"(?P<repository>[^/@]+/[^/@]+)(?P<folder>/[^@]+)?@(?P<commit>[0-9a-f]{40})")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run went. Jobs are known as ``check/check (node)``: the caller's id, their own, and what the matrix says.

    ``jobs`` has the result of each that ran; what was skipped is not among them. ``annotations`` are ``(level, title,
    message)``.
    """

    jobs: Mapping[str, str]
    outputs: Mapping[str, Mapping[str, str]]
    summaries: Mapping[str, str]
    annotations: list[tuple[str, str, str]]
    log: str
    tail: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Event:
    """What starts a workflow: ``push`` or ``workflow_dispatch``, of a full ref, with the inputs of the latter."""

    name: str
    ref: str
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A checkout to run workflows of, the folder of what GitHub would keep of it, and what every step is given.

    ``commit`` is what its commit is called at the GitHub on loopback, which calls them as it likes.
    """

    checkout: Path
    state: Path
    commit: str
    env: Mapping[str, str]
    variables: Mapping[str, str]
    token: str

    def run(self, workflow: str, event: Event) -> Outcome:
        """Run a workflow; artifacts of an earlier run are gone, and its caches are there."""
        shutil.rmtree(self.state / "artifacts", ignore_errors=True)
        return self.run_again(workflow, event)

    def run_again(self, workflow: str, event: Event) -> Outcome:
        """Run a workflow once more, as the next attempt of a run, which has the artifacts of the one before."""
        for name in ("artifacts", "cache"):
            (self.state / name).mkdir(parents=True, exist_ok=True)
        payload = self.state / "event.json"
        pushed = {"ref": event.ref, "after": self.commit, "deleted": False}
        payload.write_text(json.dumps({**pushed, "inputs": dict(event.inputs)}))
        path = os.pathsep.join([os.environ["PATH"], str(find_node().parent)])
        env = {
            **self.env,
            "PATH": path,
            "STAND_IN": str(STAND_INS / "stand_in.py"),
            "STAND_IN_STATE": str(self.state),
            "STAND_IN_CHECKOUT": str(self.checkout),
        }
        command = [
            *(str(ACT), event.name, "--json", "--no-cache-server", "--concurrent-jobs", "2"),
            *("--workflows", f".github/workflows/{workflow}", "--eventpath", str(payload)),
            *("--platform", f"{RUNNER}=-self-hosted", "--action-cache-path", str(self.state / "act")),
            *(part for use in sorted(self._actions()) for part in ("--local-repository", use)),
            *(part for name, value in env.items() for part in ("--env", f"{name}={value}")),
            *(part for name, value in self.variables.items() for part in ("--var", f"{name}={value}")),
            *("--secret", f"GITHUB_TOKEN={self.token}"),
        ]
        done = run(command, cwd=self.checkout, timeout=_TIMEOUT_SECONDS)
        called = yaml.safe_load((self.checkout / ".github" / "workflows" / workflow).read_text())["jobs"]
        return _read(done.output, {job.get("name", name): name for name, job in called.items()})

    def _actions(self) -> Iterator[str]:
        """Give the stand-in of every action that a workflow or an action of the checkout uses."""
        files = [*self.checkout.glob(".github/workflows/*.yml"), *self.checkout.glob(".github/actions/*/action.yml")]
        for file in files:
            for use in _uses(yaml.safe_load(file.read_text())):
                if use.startswith("./"):
                    continue
                match = _PINNED.fullmatch(use)
                assert match, f"{file.name} uses {use}, which is not pinned to a commit"
                folder = STAND_INS / match["repository"]
                assert folder.is_dir(), f"{file.name} uses {use}, for which there is no stand-in"
                yield f"{match['repository']}@{match['commit']}={folder}"


def _uses(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        for key, value in content.items():
            if key == "uses" and isinstance(value, str):
                yield value
            else:
                yield from _uses(value)
    elif isinstance(content, list):
        for value in content:
            yield from _uses(value)


def _read(text: str, ids: Mapping[str, str]) -> Outcome:
    jobs: dict[str, str] = {}
    outputs: dict[str, dict[str, str]] = defaultdict(dict)
    summaries: dict[str, str] = defaultdict(str)
    annotations: list[tuple[str, str, str]] = []
    log: list[str] = []
    for line in text.splitlines():
        if not line.startswith("{"):
            log.append(line)
            continue
        said = json.loads(line)
        name = _name(said, ids)
        log.append(f"[{name}] {said['msg'].rstrip()}")
        if result := said.get("jobResult"):
            jobs[name] = result
        match said.get("command"):
            case "set-output":
                outputs[name][said["name"]] = said["arg"]
            case "summary":
                summaries[name] += said["content"]
            case "error" | "warning" | "notice" as level:
                annotations.append((level, said["kvPairs"].get("title", ""), said["arg"]))
    whole = "\n".join(log)
    return Outcome(
        jobs=jobs, outputs=outputs, summaries=summaries, annotations=annotations, log=whole, tail=whole[-6000:]
    )


def _name(said: Mapping[str, Any], ids: Mapping[str, str]) -> str:
    """Name a job by the ids in the files, whatever it is called on the screen."""
    parts = said.get("job", "").split("/")
    own = said.get("jobID", "")
    if matrix := said.get("matrix"):
        own += f" ({', '.join(str(value) for value in matrix.values())})"
    caller = parts[0].strip()
    return f"{ids.get(caller, caller)}/{own}" if caller in ids or len(parts) > 2 else own
