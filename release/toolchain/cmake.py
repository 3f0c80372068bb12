"""A CMake build tree that does not know where it is: what it is made from has the same relative names on every machine.

Whatever is outside is linked into the tree, the compiler gets sources by relative names, and paths that headers bring
along are mapped away.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from release.artifacts import write_atomically
from release.errors import BrokenEnvironment, Finding
from release.machine import low_priority
from release.process import run
from release.toolchain.model import Toolchain

LOG = "configure.log"

_RECORD = "configured.json"
_LAUNCHER = "relative.sh"
# Gives the compiler its source file by a relative name: bitcode holds that name, the optimiser orders by it, and CMake
# writes the whole path. $1 is the tree; a build inside it, such as that of table generators, is left alone.
_RELATIVE = """\
tree=$1
shift
if [ "$(pwd -P)" = "$tree" ]; then
    for argument; do
        shift
        case $argument in "$tree"/source/*) argument=${argument#"$tree"/} ;; esac
        set -- "$@" "$argument"
    done
fi
exec "$@"
"""

SOURCE = "source"
"""Where a tree shows its sources."""


def link_into(tree: Path, links: Mapping[str, Path]) -> None:
    """Show files and folders inside ``tree`` under names of ours, the sources as SOURCE."""
    tree.mkdir(parents=True, exist_ok=True)
    for name, target in links.items():
        link = tree / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    write_atomically(tree / _LAUNCHER, _RELATIVE)


def compilers(
    tree: Path, flags: Sequence[str], optimise: Sequence[str], *, elsewhere: Mapping[str, Path] | None = None
) -> dict[str, str]:
    """Return the cache variables that give C and C++ their flags, and no path of this machine to what is compiled.

    ``elsewhere`` are folders that CMake files find by their real paths, by the names that they have in the tree.
    """
    launcher = f"sh;{tree / _LAUNCHER};{tree}"
    # __FILE__ in a header comes with the whole path.
    places = {"": f"{tree}/", **{name: str(path) for name, path in (elsewhere or {}).items()}}
    always = " ".join([*flags, *(shlex.quote(f"-ffile-prefix-map={path}={name}") for name, path in places.items())])
    return {
        variable: value
        for language in ("C", "CXX")
        for variable, value in {
            f"CMAKE_{language}_FLAGS": always,
            f"CMAKE_{language}_FLAGS_RELEASE": " ".join(optimise),
            f"CMAKE_{language}_COMPILER_LAUNCHER": launcher,
        }.items()
    }


def arguments_of(variables: Mapping[str, bool | str]) -> list[str]:
    """Return CMake's arguments for ninja and cache variables."""
    written = {name: value if isinstance(value, str) else "ON" if value else "OFF" for name, value in variables.items()}
    return ["-G", "Ninja", *(f"-D{name}={value}" for name, value in written.items())]


class Configured:
    """Remembers with which arguments a tree was configured, so that it is not done again."""

    def __init__(self, tree: Path, arguments: Sequence[str]) -> None:
        self._tree = tree
        digest = hashlib.sha256("\0".join(arguments).encode()).hexdigest()
        self._state = {"tree": str(tree), "arguments": digest}

    def already(self) -> bool:
        """Whether the tree is configured just so; one that was moved is removed, for CMake refuses that."""
        known = self._known()
        if known == self._state and (self._tree / "build.ninja").is_file():
            return True
        if known.get("tree", self._state["tree"]) != self._state["tree"]:
            shutil.rmtree(self._tree)
        return False

    def remember(self) -> None:
        """Note that the tree is configured."""
        write_atomically(self._tree / _RECORD, json.dumps(self._state))

    def _known(self) -> dict[str, str]:
        try:
            return dict(json.loads((self._tree / _RECORD).read_text()))
        except (OSError, ValueError, TypeError):
            return {}  # not configured to the end yet


def require_cmake(toolchain: Toolchain) -> None:
    """Raise BrokenEnvironment without CMake or ninja."""
    for program in ("cmake", "ninja"):
        if toolchain.run(["sh", "-c", 'command -v "$0"', program]).returncode != 0:
            raise BrokenEnvironment(
                f"There is no {program} where the tools of {toolchain.provider} run.",
                remedy=f"Install {program}, or set TRITON_WASM_PROVIDER=debian, which brings it.",
            )


def cmake(
    what: str,
    source: Path,
    tree: Path,
    arguments: Sequence[str],
    toolchain: Toolchain,
    *,
    program: Sequence[str] = ("emcmake", "cmake"),
    env: Mapping[str, str] | None = None,
) -> None:
    """Configure ``tree`` from ``source``, which is ``what``.

    Raises Finding with CMake's first error; all it said is in LOG.
    """
    command = toolchain.command([*program, "-S", source, "-B", tree, *arguments], env=env)
    completed = run([*low_priority(), *command], cwd=tree)
    write_atomically(tree / LOG, completed.output)
    if completed.returncode == 0:
        return
    lines = [line.strip() for line in completed.output.splitlines()]
    start = next((number for number, line in enumerate(lines) if line.startswith("CMake Error")), None)
    # CMake says where on one line and what on the next.
    reason = " ".join(lines[start : start + 3]) if start is not None else (completed.tail.splitlines() or [""])[-1]
    raise Finding(f"Cannot configure {what}: {completed.explain()}: {reason[:300]}", remedy=f"Read {tree / LOG}.")
