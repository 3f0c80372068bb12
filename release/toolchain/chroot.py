"""Running a command in a root of our own, in one chain of ``exec``.

``unshare`` gives the command mounts of its own, a shell binds the folders that stay visible, ``chroot`` and ``env``
start it. They all become one another, so the command's process is the one that was started: signals reach it, its exit
code is the one that is seen, and the mounts go when it goes, however it goes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from release.errors import BrokenEnvironment, WrongUsage
from release.process import run

# $1 is the root, $2 and $3 two programs, then come the folders up to "--", then the environment and the command.
_SCRIPT = """\
root=$1 mount=$2 chroot=$3
shift 3
while [ "$1" != -- ]; do
    "$mount" --rbind -- "$1" "$root$1"
    shift
done
shift
exec "$chroot" "$root" /usr/bin/env -i --chdir="$(pwd -P)" "$@"
"""
_DEVICES = (Path("/dev"), Path("/proc"))
_AS_USER = (("--mount", "--user", "--map-root-user"),)
# The last is for a root folder that is no mount point, as after a plain chroot: unshare cannot make that one private.
_AS_ROOT = (("--mount",), *_AS_USER, ("--mount", "--propagation", "unchanged"))
_SUPERUSER_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"  # not everybody's PATH has them
_SYSTEM = frozenset({"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin"})


def enter(root: Path, *, bind: Sequence[Path], env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the prefix of a command that has ``root`` for its ``/``, ``env`` for its environment and sees ``bind``.

    Folders in ``bind`` are made where missing. Raises WrongUsage for one that would hide the root's own files, and
    BrokenEnvironment when this machine lets nobody make mounts.
    """
    visible = [*_DEVICES, *_outermost(bind, last=root)]
    for path in visible:
        path.mkdir(parents=True, exist_ok=True)
        Path(f"{root}{path}").mkdir(parents=True, exist_ok=True)
    programs = (_program("mount"), _program("chroot"))
    assignments = (f"{name}={value}" for name, value in env.items())
    script = ("/bin/sh", "-ec", _SCRIPT, "enter", str(root), *programs, *map(str, visible), "--")
    return (*namespace(), *script, *assignments)


@cache
def namespace() -> tuple[str, ...]:
    """Return the command prefix that gives mounts of one's own; as root if we are, else as root of a user namespace.

    Raises BrokenEnvironment when this machine lets us have none.
    """
    reason = ""
    for flags in _AS_ROOT if os.geteuid() == 0 else _AS_USER:
        prefix = (_program("unshare"), *flags)
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "source" / "seen", Path(folder) / "target"
            source.mkdir(parents=True)
            target.mkdir()
            tried = run([*prefix, _program("mount"), "--bind", source.parent, target], timeout=10)
            if (target / source.name).exists():
                run([_program("umount"), target], timeout=10)
                reason = reason or "mounts are seen outside of it"
            elif tried.returncode == 0:
                return prefix
        reason = reason or (tried.tail.splitlines()[0].rstrip(".") if tried.tail else tried.explain())
    raise BrokenEnvironment(
        f"This machine lets us have no mounts of our own ({reason}).",
        remedy="Run as root, or allow user namespaces (in a container: give it CAP_SYS_ADMIN); or put em++ on PATH.",
    )


def resolve(root: Path, path: str) -> Path:
    """Follow the links of a path inside ``root``, where an absolute link starts again at ``root``."""
    found, pending = root, [part for part in path.split("/") if part]
    for _ in range(1000):  # as many steps as the longest path takes; a loop of links takes more
        if not pending:
            break
        part = pending.pop(0)
        if part == "..":
            found = found.parent if found != root else root
        elif (found / part).is_symlink():
            target = str((found / part).readlink())
            pending[:0] = [piece for piece in target.split("/") if piece not in ("", ".")]
            found = root if target.startswith("/") else found
        else:
            found /= part
    return found


def _outermost(folders: Iterable[Path], *, last: Path) -> list[Path]:
    """Drop what lies inside another folder; put the one that holds ``last`` at the end.

    Were the root's own folder bound first, each further bind would show up below it a second time.
    """
    # A path that goes through a link is visible under both its names.
    named = {path for folder in folders for path in (folder.absolute(), folder.resolve())}
    for path in named:
        if len(path.parts) < 2 or path.parts[1] in _SYSTEM or path == Path("/usr"):
            raise WrongUsage(
                f"{path} cannot be shown to the tools: their own system is there.",
                remedy="Put the checkout, the cache and the work dir below another folder, such as /srv or /opt.",
            )
    outer = [path for path in named if not any(other in path.parents for other in named)]
    return sorted(outer, key=lambda path: (last.is_relative_to(path), path))


def _program(name: str) -> str:
    if found := shutil.which(name, path=_SUPERUSER_PATH):
        return found
    raise BrokenEnvironment(f"There is no `{name}` on this machine.", remedy="Install util-linux, mount and coreutils.")
