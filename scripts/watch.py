#!/usr/bin/env python3
"""Propose what upstream has released since the default pin set was written, each once.

GITHUB_TOKEN needs `contents: write` and `pull-requests: write`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

bootstrap.enter(__file__)

from release import actions
from release.pins.load import DEFAULT
from release.places import cache_folder
from release.plan.propose import propose_news
from release.plan.steps import Machine
from release.progress import Progress


def main() -> None:
    """Look, propose, and say what there was."""
    machine = Machine(cache=cache_folder(), progress=Progress())
    found = list(propose_news(DEFAULT, actions.setting("GITHUB_REPOSITORY"), machine))
    for news, proposed in found:
        actions.summary(f"- {news.topic} {news.what}: pull request {proposed.number}, {proposed.outcome}")
    if not found:
        actions.summary("Nothing is newer than what is pinned.")


actions.step(main)
