"""Source trees: the one that was given, taken as it is, or one fetched by its commit; known by a digest.

>>> source = provide("llvm", origin, variable="LLVM_ROOT", cache=cache_folder(), progress=Progress())
>>> source.path, source.commit
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.progress import Progress, Steps
from release.stage import exclusive
from release.toolchain.git import Checkout, git, inspect, is_checkout, last_words, resolve
from release.toolchain.tree import digest_of_tree

# Set when the fetch is whole, and by nothing else.
_REF = "refs/triton-wasm/source"
_UNKNOWN = ("not our ref", "couldn't find remote ref", "unadvertised object")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a source is fetched from: a repository's address, and a full commit or the name of a tag."""

    repository: str
    commit: str | None = None
    tag: str | None = None

    @property
    def what(self) -> str:
        """The commit or the tag, whichever it is named by."""
        return self.commit or self.tag or "HEAD"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A tree of sources.

    ``commit`` is None for an archive whose folder does not tell it. ``digest`` is ``git:`` and the tree's own object
    name for a checkout as committed, else ``sha256:`` and a digest over every file. ``changed`` names the files of a
    checkout that differ from the commit. ``given`` says that it is not ours.
    """

    name: str
    path: Path
    commit: str | None
    digest: str
    changed: tuple[str, ...] = ()
    given: bool


def provide(
    name: str,
    origin: Origin,
    *,
    variable: str,
    cache: Path,
    progress: Progress,
    allow_dirty: bool = False,
    any_commit: bool = False,
) -> Source:
    """Return the tree that the environment variable ``variable`` names, else fetch it into ``cache``.

    ``allow_dirty`` takes a checkout with local changes, ``any_commit`` one that is at another commit than ``origin``
    says, which the caller then judges. Raises WrongUsage for what is no tree, Finding for one that is not the one
    wanted, BrokenEnvironment without git or when the repository cannot be reached.
    """
    home = cache / "sources"
    if not (given := os.environ.get(variable)):
        return _fetched(name, origin, home, variable=variable, progress=progress)
    source = _given(name, Path(given).expanduser().resolve(), home / "digests", variable, allow_dirty=allow_dirty)
    if not any_commit and origin.commit and source.commit and source.commit != origin.commit:
        raise Finding(
            f"{variable} is at commit {source.commit} and {origin.commit} is wanted.",
            remedy=f"Check that one out in {source.path}, or change the pin set.",
        )
    return source


def _given(name: str, path: Path, digests: Path, variable: str, *, allow_dirty: bool) -> Source:
    if not path.is_dir() or not any(path.iterdir()):
        raise WrongUsage(
            f"{variable} is {path}, which is {'empty' if path.is_dir() else 'no folder'}.",
            remedy=f"Let {variable} name a checkout or an unpacked archive, or unset it: then it is fetched.",
        )
    if not is_checkout(path):
        # GitHub's archives unpack into a folder that ends in the commit.
        commit = re.search(r"-([0-9a-f]{40})$", path.name)
        digest = f"sha256:{digest_of_tree(path, digests)}"
        return Source(name=name, path=path, commit=commit and commit[1], digest=digest, given=True)
    checkout = inspect(path)
    if not checkout.changed:
        return _as_committed(name, path, checkout, given=True)
    if not allow_dirty:
        raise Finding(
            f"{variable} has local changes: {_listed(checkout.changed)}.",
            remedy=f"Commit or stash them in {path}, or pass --allow-dirty: the manifest then says so.",
        )
    digest = f"sha256:{digest_of_tree(path, digests)}"
    return Source(name=name, path=path, commit=checkout.commit, digest=digest, changed=checkout.changed, given=True)


def _listed(changed: tuple[str, ...]) -> str:
    rest = len(changed) - 1
    return f"{changed[0]} and {rest} more" if rest else changed[0]


def _as_committed(name: str, path: Path, checkout: Checkout, *, given: bool) -> Source:
    return Source(name=name, path=path, commit=checkout.commit, digest=f"git:{checkout.tree}", given=given)


def _fetched(name: str, origin: Origin, home: Path, *, variable: str, progress: Progress) -> Source:
    folder = home / f"{name}-{origin.what}"
    with exclusive(folder.with_name(f"{folder.name}.work"), wait=True, progress=progress):
        if (checkout := _as_fetched(origin, folder)) is None:
            partial = folder.with_name(f"{folder.name}.work") / "tree"
            if folder.exists():
                progress.note(f"{folder} is not as it was fetched: mending it")
                shutil.rmtree(partial, ignore_errors=True)
                folder.rename(partial)
            with progress.steps("sources", 2) as steps:
                _fetch(origin, partial, steps, variable=variable)
                _check_out(origin, partial, steps)
            checkout = inspect(partial)
            partial.rename(folder)
    return _as_committed(name, folder, checkout, given=False)


def _as_fetched(origin: Origin, folder: Path) -> Checkout | None:
    if not is_checkout(folder):
        return None
    try:
        checkout = inspect(folder)
    except WrongUsage:
        return None
    wanted = origin.commit or resolve(folder, f"{_REF}^{{commit}}")
    return checkout if checkout.commit == wanted and not checkout.changed else None


def _fetch(origin: Origin, folder: Path, steps: Steps, *, variable: str) -> None:
    steps.begin(f"fetch {origin.what} from {origin.repository}")
    folder.mkdir(exist_ok=True)
    _sweep(folder / ".git")
    git(folder, "init", "--quiet")
    if resolve(folder, f"{_REF}^{{commit}}"):
        return  # a run before this one came so far
    if resolve(folder, _REF) or git(folder, "rev-parse", "--git-dir").returncode != 0:
        shutil.rmtree(folder)  # what is there is ruined
        folder.mkdir()
        git(folder, "init", "--quiet")
    wanted = origin.commit or f"refs/tags/{origin.tag}"
    fetched = git(folder, "fetch", "--quiet", "--depth=1", "--no-tags", origin.repository, f"+{wanted}:{_REF}")
    if fetched.returncode == 0:
        return
    reason = last_words(fetched)
    if any(phrase in fetched.output for phrase in _UNKNOWN):
        raise Finding(
            f"{origin.repository} has no {origin.what}.", remedy="Correct the commit or the repository in the pin set."
        )
    raise BrokenEnvironment(
        f"{origin.what} cannot be fetched from {origin.repository}: {reason}.",
        remedy=f"Check the network and its proxy, or name a checkout or an unpacked archive in {variable}.",
    )


def _check_out(origin: Origin, folder: Path, steps: Steps) -> None:
    commit = resolve(folder, f"{_REF}^{{commit}}")
    if origin.commit and commit != origin.commit:
        raise Finding(
            f"{origin.repository} gave {commit} where {origin.commit} was asked for.",
            remedy="Do not trust that repository; name another one in the pin set.",
        )
    steps.begin(f"check out {origin.what}")
    for arguments in (("checkout", "--quiet", "--force", "--detach", _REF), ("clean", "--quiet", "-ffdx")):
        done = git(folder, *arguments)
        if done.returncode == 0:
            continue
        if done.returncode > 0 and "No space left on device" not in done.output:
            shutil.rmtree(folder, ignore_errors=True)  # what git itself refuses is not whole
        raise BrokenEnvironment(
            f"What was fetched of {origin.what} cannot be checked out: {last_words(done)}.",
            remedy=f"See that there is room for it in {folder.parent} and run it again.",
        )


def _sweep(repository: Path) -> None:
    """Remove what a git that was killed left behind; the caller is the only one who works there."""
    for leftover in (*repository.rglob("*.lock"), *repository.glob("objects/pack/tmp_*")):
        leftover.unlink()
