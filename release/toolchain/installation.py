"""Tools that are there but not proved yet, and how a command reaches them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from release.errors import BrokenEnvironment
from release.process import Completed, run
from release.toolchain import chroot
from release.toolchain.model import Provider


class OtherVersion(BrokenEnvironment):
    """The tools are there and are not those of the pin set."""

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="Pin the version that is there, or pass --allow-toolchain-mismatch.")


@dataclass(frozen=True, kw_only=True)
class Installation:
    """One set of tools.

    ``env`` is their whole environment. ``root`` is the folder that a command has for its ``/``, or None for this
    machine's own. ``folder`` is the folder of ours that holds them, or None for tools that are not ours.
    """

    provider: Provider
    env: Mapping[str, str]
    root: Path | None = None
    folder: Path | None = None

    def enter(self, bind: Sequence[Path]) -> tuple[str, ...]:
        """Return the prefix that turns a command of these tools into one of this machine; ``bind`` stays visible."""
        temporary = {"TMPDIR": tempfile.gettempdir()}
        if self.root is not None:
            return chroot.enter(self.root, bind=[*bind, Path(temporary["TMPDIR"])], env={**self.env, **temporary})
        return (_env(), "-i", *(f"{name}={value}" for name, value in {**self.env, **temporary}.items()))

    def run(
        self, command: Sequence[str | os.PathLike[str]], *, bind: Sequence[Path] = (), timeout: float = 300
    ) -> Completed:
        """Run a command of these tools; ``timeout`` is in seconds."""
        completed = run([*self.enter(bind), *command], cwd=Path(tempfile.gettempdir()), timeout=timeout)
        return replace(completed, command=tuple(os.fspath(part) for part in command))

    def on_this_machine(self, path: str) -> Path:
        """Return where a file that one of the tools named is, with every link followed."""
        if self.root is None:
            return Path(path).resolve()
        return chroot.resolve(self.root, path)


def _env() -> str:
    if found := shutil.which("env"):
        return found
    raise BrokenEnvironment("There is no `env` on PATH.", remedy="Install the coreutils of the distribution.")
