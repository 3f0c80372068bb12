"""git: asked about a checkout, or told to fetch one commit and nothing else."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from release.errors import BrokenEnvironment, WrongUsage
from release.process import Completed, run

_ASK_SECONDS = 300
_FETCH_SECONDS = 7200
_SHA1 = re.compile(r"^[0-9a-f]{40}$", re.MULTILINE)
# A hook that we may be called from names its own repository in the environment.
_NOT_OURS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")
# Files as the commit has them, whatever the user likes; and a server that falls silent is given up.
_CONFIGURATION = {
    "core.autocrlf": "false",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "advice.detachedHead": "false",
    "gc.auto": "0",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """Where a checkout is: its commit, the git tree of that, and the files that differ from it or are new."""

    commit: str
    tree: str
    changed: tuple[str, ...]


def is_checkout(folder: Path) -> bool:
    """Say whether ``folder`` is the root of a checkout; in a worktree ``.git`` is a file."""
    return (folder / ".git").exists()


def inspect(folder: Path) -> Checkout:
    """Ask git about the checkout in ``folder``. Raises WrongUsage when git cannot tell."""
    commit, tree = resolve(folder, "HEAD^{commit}"), resolve(folder, "HEAD^{tree}")
    status = git(folder, "status", "--porcelain", "--untracked-files=normal")
    if commit is None or tree is None or status.returncode != 0:
        raise WrongUsage(
            f"git cannot say what {folder} is at: {last_words(status) or 'it has no commit'}.",
            remedy="Mend or trust the checkout (`git status` there says how), or name another one.",
        )
    changed = re.findall(r"^[ MTADRCU?]{2} (.+)$", status.output, re.MULTILINE)
    return Checkout(commit=commit, tree=tree, changed=tuple(changed))


def resolve(folder: Path, name: str) -> str | None:
    """Return the object that ``name`` stands for in the repository in ``folder``, or None."""
    asked = git(folder, "rev-parse", "--verify", "--quiet", name)
    found = _SHA1.search(asked.output)
    return found[0] if asked.returncode == 0 and found else None


def resolve_remote(repository: str, name: str) -> str | None:
    """Return the commit that a branch, a tag or a commit of another repository stands for, or None.

    Raises BrokenEnvironment when the repository cannot be reached.
    """
    if _SHA1.fullmatch(name):
        return name
    # A peeled tag comes after the tag itself, and is the commit where the other is the tag's own object.
    places = (f"refs/heads/{name}", f"refs/tags/{name}", f"refs/tags/{name}^{{}}")
    asked = git(Path(os.curdir), "ls-remote", "--quiet", repository, *places)
    if asked.returncode:
        raise BrokenEnvironment(
            f"{repository} cannot be asked for {name}: {last_words(asked)}.", remedy="Check the network and its proxy."
        )
    answers = (line.split("\t") for line in asked.output.splitlines() if "\t" in line)
    found = {place: commit for commit, place in answers}
    return next((found[place] for place in reversed(places) if place in found), None)


def remote_tags(repository: str) -> list[str]:
    """Name the tags of another repository. Raises BrokenEnvironment when it cannot be reached."""
    asked = git(Path(os.curdir), "ls-remote", "--quiet", "--tags", "--refs", repository)
    if asked.returncode:
        raise BrokenEnvironment(
            f"{repository} cannot be asked for its tags: {last_words(asked)}.",
            remedy="Check the network and its proxy.",
        )
    return re.findall(r"\trefs/tags/(\S+)$", asked.output, re.MULTILINE)


def git(folder: Path, *arguments: str) -> Completed:
    """Run git in ``folder``, asking nobody anything; the caller judges how it ended."""
    if shutil.which("git") is None:
        raise BrokenEnvironment(
            "There is no git on PATH.", remedy="Install git, or name unpacked archives: these need none."
        )
    settings = [part for pair in _CONFIGURATION.items() for part in ("-c", "=".join(pair))]
    environment = {
        "LC_ALL": "C.UTF-8",
        "LANGUAGE": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        # A folder that is no repository must not be taken for a part of one that it happens to lie in.
        "GIT_CEILING_DIRECTORIES": str(folder.resolve().parent),
    }
    timeout = _FETCH_SECONDS if arguments[0] == "fetch" else _ASK_SECONDS
    completed = run(
        ["env", *(f"--unset={name}" for name in _NOT_OURS), "git", "-C", folder, *settings, *arguments],
        env=environment,
        timeout=timeout,
    )
    return replace(completed, command=("git", *arguments))


def last_words(completed: Completed) -> str:
    """Return what git gave as the reason of its failure, without a full stop, or nothing."""
    if completed.returncode == 0:
        return ""
    found = re.findall(r"^(?:fatal|error): (.+)$", completed.output, re.MULTILINE)
    return found[0].strip().rstrip(".") if found else completed.explain()
