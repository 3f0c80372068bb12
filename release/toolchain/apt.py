"""Debian packages without a system of their own: apt with private state, and files unpacked as they come.

No package is installed: apt resolves against an empty dpkg status, downloads and verifies signatures, ``dpkg-deb -x``
unpacks, and no maintainer script runs. So nobody needs to be root, and nothing of the system is changed or asked.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from release.artifacts import write_atomically
from release.errors import BrokenEnvironment
from release.process import Completed, run

MIRROR_VARIABLE = "TRITON_WASM_DEBIAN_MIRROR"
SUITE = "sid"

_KEYRINGS = tuple(Path("/usr/share/keyrings") / f"debian-archive-keyring.{kind}" for kind in ("pgp", "gpg"))
_TIMEOUT_SECONDS = 900

# The hooks of the system's own configuration would touch the system: only what it says about the way out is taken.
# A stale mirror is no danger here: every package is verified, and every tool is proved after it.
_CONFIGURATION = """\
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "{architecture}";
APT::Architectures "{architecture}";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "15";
Acquire::https::Timeout "15";
"""
_OWN_SOURCES = """\
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "{folder}/trusted";
"""


@dataclass(frozen=True, kw_only=True)
class Apt:
    """An apt of our own: its state, lists and downloads live in ``folder``. One process at a time may use it."""

    folder: Path

    def update(self) -> None:
        """Fetch the package lists. Raises BrokenEnvironment when a source cannot be reached or is not trusted."""
        _succeed(self._get("update"), "fetch the Debian package lists")

    def candidate(self, package: str) -> str | None:
        """Return the version that ``package`` would have, in Debian's own notation."""
        shown = self._run("apt-cache", "show", "--no-all-versions", package)
        found = re.search(r"^Version: (\S+)$", shown.output, re.MULTILINE)
        return found[1] if found else None

    def download(self, packages: Sequence[str], *, dependencies: bool) -> list[Path]:
        """Fetch packages, with or without all they need, and return their files.

        Files that are there already are not fetched again. Raises BrokenEnvironment.
        """
        what = f"download {', '.join(packages)}"
        archives = self.folder / "cache" / "archives"
        if dependencies:
            planned = self._get("install", "--simulate", *packages)
            _succeed(planned, what)
            _succeed(self._get("install", "--yes", "--download-only", *packages), what)
            # Not all that lies there: an attempt that was cut short may have left another version.
            found = re.findall(r"^Inst (\S+) \((\S+) .*\[(\w+)\]\)", planned.output, re.MULTILINE)
            return [archives / f"{name}_{version.replace(':', '%3a')}_{kind}.deb" for name, version, kind in found]
        into = archives / "single"
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        _succeed(self._get("download", *packages, cwd=into), what)
        return sorted(into.glob("*.deb"))

    def forget_downloads(self) -> None:
        """Remove the package files; the lists stay."""
        shutil.rmtree(self.folder / "cache", ignore_errors=True)

    def _get(self, *arguments: str, cwd: Path | None = None) -> Completed:
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        return self._run("apt-get", *arguments, cwd=cwd)

    def _run(self, *command: str, cwd: Path | None = None) -> Completed:
        env = {"APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return run(command, cwd=cwd, env=env, timeout=_TIMEOUT_SECONDS)


def debian(folder: Path) -> Apt:
    """Return an apt for Debian's own archive, suite ``sid``, with fresh lists.

    The mirror is the one that ``TRITON_WASM_DEBIAN_MIRROR`` names, else that of the machine's own sources, else the one
    built into debootstrap. Raises BrokenEnvironment when there is no apt here or no mirror answers.
    """
    system = _system(folder / "system")
    keyring = _keyring(system)
    problem = BrokenEnvironment(
        "No Debian mirror is known on this machine.", remedy=f"Set {MIRROR_VARIABLE} to the address of one."
    )
    for mirror in _mirrors(system):
        try:
            return _updated(folder / SUITE, mirror.rstrip("/"), keyring)
        except BrokenEnvironment as error:
            problem = error
    raise problem


def unpack(packages: Sequence[Path], into: Path) -> None:
    """Unpack the files of packages into one folder. Raises BrokenEnvironment when one cannot be."""
    # base-files has the links from /lib to /usr/lib and its like, which must be there before files go through them.
    first = [package for package in packages if package.name.startswith("base-files_")]
    rest = [package for package in packages if package not in first]
    into.mkdir(parents=True, exist_ok=True)

    def one(package: Path) -> Completed:
        return run(["dpkg-deb", "--extract", package, into], timeout=_TIMEOUT_SECONDS)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for completed in (*map(one, first), *pool.map(one, rest)):
            _succeed(completed, f"unpack {Path(completed.command[2]).name}")


def _system(folder: Path) -> Apt:
    for tool in ("apt-get", "apt-config", "dpkg", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise BrokenEnvironment(
                f"This is no Debian or Ubuntu machine: there is no {tool}.",
                remedy="Put em++ and wasm-opt of the pinned versions on PATH, or name an emsdk in EMSDK.",
            )
    return _write(folder, "", {})


@cache  # the lists of one run are fresh enough for its end
def _updated(folder: Path, mirror: str, keyring: Path) -> Apt:
    apt = _write(folder, _OWN_SOURCES, {"sources.list": f"deb {mirror} {SUITE} main\n"})
    trusted = folder / "trusted"
    trusted.mkdir(exist_ok=True)
    shutil.copyfile(keyring, trusted / "debian.gpg")
    apt.update()
    return apt


def _write(folder: Path, configuration: str, files: dict[str, str]) -> Apt:
    architecture = run(["dpkg", "--print-architecture"]).output.strip()
    way_out = re.findall(r"^Acquire::https?::.*;$", run(["apt-config", "dump"]).output, re.MULTILINE)
    text = (_CONFIGURATION + configuration).format(folder=folder, architecture=architecture)
    for name, content in {**files, "status": "", "apt.conf": "\n".join([*way_out, text])}.items():
        write_atomically(folder / name, content)
    return Apt(folder=folder)


def _mirrors(system: Apt) -> Iterator[str]:
    if chosen := os.environ.get(MIRROR_VARIABLE):
        yield chosen
        return
    machine = dict(re.findall(r'^(\w+)="?(.*?)"?$', Path("/etc/os-release").read_text(), re.MULTILINE))
    found = []
    if machine.get("ID") == "debian":
        planned = system._get("--print-uris", "update").output
        # Not the security archive, whose suites have a hyphen. Somebody else's repository has no such suite as ours.
        own = {machine.get("VERSION_CODENAME"), "stable", "testing", "unstable", "sid"}
        located = re.findall(r"^'(\S+?)/*/dists/([^/']+)/InRelease'", planned, re.MULTILINE)
        found = list(dict.fromkeys(mirror for mirror, suite in located if suite in own))
    yield from found
    if not found:
        debootstrap = _file_of(system, "debootstrap", Path("/usr/sbin/debootstrap"))
        if built_in := re.search(r'^DEF_MIRROR="(\S+)"$', debootstrap.read_text(), re.MULTILINE):
            yield built_in[1]


def _keyring(system: Apt) -> Path:
    if found := next((path for path in _KEYRINGS if path.is_file()), None):
        return found
    return _file_of(system, "debian-archive-keyring", *_KEYRINGS)


def _file_of(system: Apt, package: str, *candidates: Path) -> Path:
    """Return the first of ``candidates`` that is there: on the system, or in its ``package``, unpacked beside it."""
    unpacked = system.folder / package
    for attempt in range(2):
        for path in candidates:
            for root in (Path("/"), unpacked):
                if (found := root / path.relative_to("/")).is_file():
                    return found
        if attempt == 0:
            system.update()
            unpack(system.download([package], dependencies=False), unpacked)
    raise BrokenEnvironment(
        f"The package {package} holds no {candidates[0].name}.",
        remedy=f"Set {MIRROR_VARIABLE} and install debian-archive-keyring, then try again.",
    )


def _succeed(completed: Completed, what: str) -> None:
    if completed.returncode == 0:
        return
    complaints = re.findall(r"^(?:E|W): (.+)$", completed.output, re.MULTILINE)
    reason = complaints[0].rstrip(".") if complaints else completed.explain()
    raise BrokenEnvironment(
        f"Cannot {what}: {reason}.",
        remedy=f"Check the network and its proxy, or name a mirror that can be reached in {MIRROR_VARIABLE}.",
    )
