"""The workflows, actions and settings of a checkout, as what they say, and the expressions in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

CALLED = "./.github/workflows/"
_LOCAL = "./.github/actions/"
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_REFERENCE = re.compile(r"(?<![\w.-])(needs|steps|inputs|matrix|jobs)\.([\w-]+)(?:\.outputs\.([\w-]+))?")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A YAML file, as text and as what it says. Its ``path`` is that in the checkout."""

    path: str
    text: str
    content: Any

    @property
    def name(self) -> str:
        return Path(self.path).name

    @cached_property
    def on(self) -> Mapping[str, Any]:
        """What starts a workflow, with its settings; the bare word is a truth value to YAML."""
        on = self.content.get("on", self.content.get(True))
        if isinstance(on, Mapping):
            return {str(event): settings or {} for event, settings in on.items()}
        return {str(event): {} for event in ([on] if isinstance(on, str) else on or [])}

    @property
    def is_called(self) -> bool:
        return "workflow_call" in self.on

    @property
    def jobs(self) -> Mapping[str, Any]:
        jobs: Mapping[str, Any] = self.content.get("jobs", {})
        return jobs

    @property
    def steps(self) -> list[Any]:
        """The steps of a composite action, or of all jobs."""
        if "runs" in self.content:
            return list(self.content["runs"].get("steps", []))
        return [step for job in self.jobs.values() for step in job.get("steps", [])]

    def declared(self, kind: str) -> dict[str, Any]:
        """Return the ``inputs`` or ``outputs`` that a workflow, by whatever starts it, or an action has."""
        places = [self.content] if "runs" in self.content else self.on.values()
        return {name: said or {} for place in places if kind in place for name, said in (place[kind] or {}).items()}

    @property
    def calls(self) -> Iterator[tuple[Any, str]]:
        """Give each job or step that uses something, and what it uses."""
        for user in [*self.jobs.values(), *self.steps]:
            if "uses" in user:
                yield user, user["uses"]


@dataclass(frozen=True, kw_only=True)
class Files:
    """The workflows by their file names, the composite actions by their folders, and what dependabot is told."""

    checkout: Path
    workflows: Mapping[str, Source]
    actions: Mapping[str, Source]
    dependabot: Source

    @property
    def all(self) -> list[Source]:
        return [*self.workflows.values(), *self.actions.values()]

    @property
    def all_jobs(self) -> Iterator[tuple[Source, str, Any]]:
        for workflow in self.workflows.values():
            for name, job in workflow.jobs.items():
                yield workflow, name, job

    def used(self, use: str) -> Source | None:
        """Find the workflow or the action of this repository that ``use`` means."""
        if use.startswith(CALLED):
            return self.workflows.get(use.removeprefix(CALLED))
        return self.actions.get(use.removeprefix(_LOCAL))


def read(checkout: Path) -> Files:
    """Read what is in ``.github``."""

    def source(path: Path) -> Source:
        text = path.read_text()
        return Source(path=path.relative_to(checkout).as_posix(), text=text, content=yaml.safe_load(text))

    github = checkout / ".github"
    return Files(
        checkout=checkout,
        workflows={path.name: source(path) for path in sorted((github / "workflows").glob("*.y*ml"))},
        actions={path.parent.name: source(path) for path in sorted((github / "actions").glob("*/action.y*ml"))},
        dependabot=source(github / "dependabot.yml"),
    )


def _strings(content: Any, *, key: str = "") -> Iterator[tuple[str, str]]:
    """Give all strings in something, each with the key that it or its list is under."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield from _strings(value, key=str(name))
    elif isinstance(content, list):
        for value in content:
            yield from _strings(value, key=key)
    elif isinstance(content, str):
        yield key, content


def expressions(content: Any) -> Iterator[str]:
    """Give the expressions in something, without the texts that they quote; a condition is one as a whole."""
    for key, text in _strings(content):
        found = _EXPRESSION.findall(text) or ([text] if key == "if" else [])
        yield from (_QUOTED.sub("''", expression) for expression in found)


def references(content: Any, kind: str) -> Iterator[tuple[str, str | None]]:
    """Give what the expressions in something read of ``needs``, ``steps``, …: a name, and the output if it is one."""
    for text in expressions(content):
        for match in _REFERENCE.finditer(text):
            if match[1] == kind:
                yield match[2], match[3]
