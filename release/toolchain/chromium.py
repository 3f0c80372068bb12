"""The browser that loads the package: the machine's own Chromium or Chrome, else Debian's, in a root of our own."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import replacing_folder, write_atomically
from release.errors import BrokenEnvironment
from release.process import run
from release.progress import Progress
from release.stage import exclusive
from release.toolchain import apt, chroot
from release.toolchain.folders import home

VARIABLE = "TRITON_WASM_CHROMIUM"

_NAMES = ("chromium", "google-chrome", "chromium-browser")
# The first two are for the way into the root: its links and its `env`.
_PACKAGES = ("base-files", "coreutils", "chromium")
_KEY = hashlib.sha256(" ".join(_PACKAGES).encode()).hexdigest()[:8]
# Not Debian's script of the same name in /usr/bin: it asks the desktop for settings that there are none of.
_PROGRAM = "/usr/lib/chromium/chromium"
_LAUNCHER = "chromium"
_REMEDY = f"Install chromium or google-chrome, or name one in {VARIABLE}."


@dataclass(frozen=True, kw_only=True)
class Browser:
    """A browser that was run and said what it is.

    ``path`` is the program to start, ``name`` is ``Chromium`` or ``Google Chrome``, ``version`` has four numbers.
    """

    path: Path
    name: str
    version: str


def find_chromium(cache: Path, progress: Progress) -> Browser:
    """Return the browser that ``TRITON_WASM_CHROMIUM`` names, else one on PATH, else Debian's, laid into ``cache``.

    Laying takes a minute and 0.9 GB; nobody has to be root. Raises BrokenEnvironment when there is none to be had
    and when the one that was named or found does not run.
    """
    if chosen := os.environ.get(VARIABLE):
        return _prove(Path(chosen))
    if found := next(filter(None, map(shutil.which, _NAMES)), None):
        return _prove(Path(found))
    with exclusive(home(cache) / "chromium", wait=True, progress=progress):
        try:
            folder = _newest(cache) or _install(cache, progress)
            return _prove(_launcher(folder))
        except BrokenEnvironment as problem:
            raise BrokenEnvironment(f"There is no Chromium: {problem}", remedy=_REMEDY) from problem


def _prove(path: Path) -> Browser:
    completed = run([path, "--version"], timeout=60)
    found = re.search(r"^(Chromium|Google Chrome)\S* (\d+(?:\.\d+){3})", completed.output, re.MULTILINE)
    if completed.returncode != 0 or not found:
        said = (completed.tail.splitlines() or ["nothing"])[-1]
        raise BrokenEnvironment(f"{path} is no Chromium: {completed.explain()}, it says {said!r}.", remedy=_REMEDY)
    return Browser(path=path, name=found[1], version=found[2])


def _newest(cache: Path) -> Path | None:
    """Return the root that was laid last, if any: which Chromium it is, is in the report of every check."""
    laid = (home(cache) / "chromium").glob(f"[0-9]*-{_KEY}")
    return max(laid, key=lambda folder: folder.stat().st_mtime, default=None)


def _install(cache: Path, progress: Progress) -> Path:
    chroot.namespace()  # to know it before and not after the download
    with progress.steps("chromium", 3) as steps, exclusive(home(cache), wait=True, progress=progress):
        steps.begin("read Debian's package lists")
        archive = apt.debian(home(cache) / "apt")
        version = (archive.candidate("chromium") or "unknown").partition("-")[0]
        folder = home(cache) / "chromium" / f"{version}-{_KEY}"
        steps.begin(f"download Chromium {version} and what it needs")
        packages = archive.download(_PACKAGES, dependencies=True)
        steps.begin(f"unpack {len(packages)} packages")
        with replacing_folder(folder) as temporary:
            apt.unpack(packages, temporary / "root")
        archive.forget_downloads()
    return folder


def _launcher(folder: Path) -> Path:
    """Write the program that starts Chromium in its root, the way this user on this machine gets into it.

    Chromium sees its root and the temporary directory, where whoever starts it makes the profile.
    """
    temporary = tempfile.gettempdir()
    env = {"PATH": "/usr/bin", "LC_ALL": "C.UTF-8", "HOME": temporary, "TMPDIR": temporary}
    command = [*chroot.enter(folder / "root", bind=[Path(temporary)], env=env), _PROGRAM]
    path = folder / _LAUNCHER
    # The folder we are called in need not be there inside.
    script = f'#!/bin/sh\ncd {shlex.quote(temporary)}\nexec {shlex.join(command)} "$@"\n'
    if not path.is_file() or path.read_text() != script:
        write_atomically(path, script)
        path.chmod(0o755)
    return path
