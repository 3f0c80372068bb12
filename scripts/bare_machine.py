"""What a bare machine is fetched with: its own programs, and apt with state of its own.

Apart from ``release.toolchain.apt``, because it must run before the project's environment exists, on Python 3.11.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

_STEP_SECONDS = 900

# The hooks of the system's own configuration would touch the system, so it is not read.
_APT_CONFIGURATION = """\
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "15";
Acquire::https::Timeout "15";
"""


class Broken(Exception):  # noqa: N818 - it is the machine that is broken
    """The machine cannot do it: one sentence, and the next step."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


class Apt:
    """An apt with state of its own: the machine's mirrors and keys, nothing of its state, and no root."""

    def __init__(self, folder: Path, *, suite: str | None = None) -> None:
        if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
            raise Broken(
                "This machine has neither what is needed nor apt to fetch it with.",
                "Install the uv and a Python that pyproject.toml asks for, then run this again.",
            )
        self.folder = folder
        for part in ("state/lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        way_out = re.findall(r"^Acquire::https?::.*;$", run(["apt-config", "dump"]).stdout, re.MULTILINE)
        configuration = [*way_out, _APT_CONFIGURATION.format(folder=folder)]
        (folder / "apt.conf").write_text("\n".join(configuration))
        mirrors = self._mirrors() if suite else [""]
        for mirror in mirrors:
            if suite:
                sources = folder / "sources.list"
                sources.write_text(f"deb {mirror} {suite} main\n")
                own = [f'Dir::Etc::sourcelist "{sources}";', 'Dir::Etc::sourceparts "/dev/null";']
                (folder / "apt.conf").write_text("\n".join([*configuration, *own]))
            updated = self._call("apt-get", "update")
            if updated.returncode == 0:
                return
        succeed(updated, "fetch the Debian package lists")

    def download(self, *packages: str, dependencies: bool = False) -> list[Path]:
        """Fetch packages, with all they need when asked to, and return their files."""
        archives = self.folder / "cache" / "archives"
        if dependencies:
            command = ["install", "--yes", "--download-only", *packages]
            completed = self._call("apt-get", *command)
        else:
            completed = self._call("apt-get", "download", *packages, cwd=archives)
        succeed(completed, f"download {', '.join(packages)}")
        return sorted(archives.glob("*.deb"))

    def _mirrors(self) -> list[str]:
        if chosen := os.environ.get("TRITON_WASM_DEBIAN_MIRROR"):
            return [chosen.rstrip("/")]
        codename = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
        own = {codename and codename[1], "stable"}
        # Not the security archive, whose suites have a hyphen. Somebody else's repository has no such suite as ours.
        planned = self._call("apt-get", "--print-uris", "update").stdout
        located = re.findall(r"^'(\S+?)/*/dists/([^/']+)/InRelease'", planned, re.MULTILINE)
        if found := list(dict.fromkeys(mirror for mirror, suite in located if suite in own)):
            return found
        raise Broken("No Debian mirror is known on this machine.", "Set TRITON_WASM_DEBIAN_MIRROR to one.")

    def _call(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return run(list(command), cwd=cwd, env={"APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C.UTF-8"})


def unpack(packages: Sequence[Path], into: Path) -> None:
    """Unpack the files of packages into one folder. Raises Broken."""
    # base-files has the links from /lib to /usr/lib and its like, which must be there before files go through them.
    for package in sorted(packages, key=lambda path: not path.name.startswith("base-files_")):
        succeed(run(["dpkg-deb", "--extract", package, into]), f"unpack {package.name}")


def run(
    command: Iterable[str | Path], *, cwd: Path | None = None, env: dict[str, str] | None = None, timeout: float = 0
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, at most ``timeout`` seconds; one that cannot be run ends with 127, as in a shell."""
    try:
        return subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout or _STEP_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([], 124, "", "error: it took too long\n")
    except OSError as error:
        return subprocess.CompletedProcess([], 127, "", f"error: {error.strerror}\n")


def succeed(completed: subprocess.CompletedProcess[str], what: str) -> None:
    """Raise Broken with the first thing the program complained about, unless it ended well."""
    if completed.returncode == 0:
        return
    lines = [line.strip() for line in completed.stderr.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"(E:|ERROR:|error:|W: Failed)", line)] or lines[-1:]
    reason = re.sub(r"^\w+: ", "", telling[0]).rstrip(".") if telling else f"exit code {completed.returncode}"
    raise Broken(
        f"Cannot {what}: {reason}.",
        "Check the network, its proxy and the mirrors that pip, uv and apt are set to; then run this again.",
    )
