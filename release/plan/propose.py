"""What a run has to say to people: a pull request for pins that work, an issue for pins that do not."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from release.errors import WrongUsage
from release.manifest.summary import summary
from release.pins.load import load_pins
from release.pins.news import News, newest
from release.pins.upstream import read_triton
from release.plan.derive import derive
from release.plan.model import Plan, Proposal
from release.plan.steps import Machine
from release.publish.api import Api
from release.publish.notes import Told, comparison
from release.publish.previous import previous_release
from release.publish.proposal import Change, Proposed, propose, report
from release.retry import Retry
from release.sources import pinned_triton, triton_tags
from release.toolchain.pyodide import pyodide_versions

_REHEARSAL = "**This is a rehearsal: it was the sample that was built and checked, and not Triton.**"


def propose_pins(plan: Plan, machine: Machine, release: Path) -> Proposed:
    """Propose the pins of a plan that was carried out: ``release`` is the folder of what a release would be.

    Raises WrongUsage for a plan that has nothing to propose, and what ``proposal.propose`` raises.
    """
    if plan.proposal is None:
        raise WrongUsage("This plan changes no pins.", remedy="Ask for another Triton, LLVM or Pyodide.")
    repository, told = plan.publication.repository, Told.read(release)
    with tempfile.TemporaryDirectory() as temporary:
        previous = previous_release(repository, Path(temporary), progress=machine.progress)
        compared = comparison(release, previous)
    parts = [
        *([_REHEARSAL] if plan.product == "sample" else []),
        "It was built, and every check has passed.",
        "## Compared with the latest release",
        compared,
        "## What the sources say",
        plan.proposal.impact,
        "<details><summary>What a release would say of itself</summary>",
        summary(told.manifest, told.tests),
        "</details>",
    ]
    return _propose(repository, plan.proposal, "\n\n".join(parts), machine)


def propose_news(name: str, repository: str, machine: Machine) -> Iterator[tuple[News, Proposed]]:
    """Propose, for the pin set ``name``, what upstream has released since: each once, and built by nobody yet."""
    for news in _news(name, machine):
        derived = derive(
            name,
            triton=news.what if news.topic == "Triton" else "",
            llvm="",
            pyodide=news.what if news.topic == "Pyodide" else "",
            cache=machine.cache,
            progress=machine.progress,
        )
        parts = [
            f"{news.topic} {news.what} is newer than what pin set `{name}` has. Nothing was built yet: run the workflow"
            " **Try a pin** with it, which says here what came of it.",
            "## What the sources say",
            derived.proposal.impact,
        ]
        yield news, _propose(repository, derived.proposal, "\n\n".join(parts), machine)


def report_failure(
    repository: str, machine: Machine, *, subject: str, words: Path, needs: Mapping[str, str], plan: Plan | None
) -> Proposed:
    """Say in the issue about ``subject`` what failed first, and what is known that may have to do with it.

    ``words`` is the folder of what failed steps have left, ``needs`` has the results of the jobs, in their order.
    """
    failed = [name for name, result in needs.items() if result == "failure"]
    first = failed[0] if failed else "a job"
    said = [json.loads(path.read_text()) for path in sorted(words.rglob("*.json"))]
    lines = [f"With {subject} the job `{first}` failed."]
    for word in said:
        lines += ["", f"**{word['step']}:** {word['message']}", "", f"Next: {word['remedy']}"]
    if not said:
        lines += [
            "",
            "No step left word of it: the machine was lost, or its time was up. The log of the run says more.",
        ]
    if plan and plan.proposal:
        lines += ["", "What the sources say, of which the likely cause is one:", "", plan.proposal.impact]
    retry = Retry(machine.progress)
    slug = f"try-pin {subject}"
    return report(
        Api.from_environment(repository), slug=slug, title=f"{subject} fails", body="\n".join(lines), retry=retry
    )


def _news(name: str, machine: Machine) -> Iterator[News]:
    pins = load_pins(name)
    version = read_triton(pinned_triton(pins, cache=machine.cache, progress=machine.progress).path).version
    tags = triton_tags(pins)
    if found := newest("Triton", tags, version):
        yield found
    if found := newest("Pyodide", pyodide_versions(), pins.pyodide.version):
        yield found


def _propose(repository: str, proposal: Proposal, body: str, machine: Machine) -> Proposed:
    change = Change(branch=proposal.branch, files={proposal.file: proposal.text}, title=proposal.title, body=body)
    return propose(Api.from_environment(repository), change, retry=Retry(machine.progress))
