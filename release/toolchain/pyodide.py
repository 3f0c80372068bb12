"""The Pyodide of the pin set: npm's package, taken for what it is only after its digest was compared.

>>> folder = install_pyodide(pins, cache_folder(), Progress())
>>> check_agreement(pins, folder)
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import replacing_folder, sha256_of_tree, write_atomically
from release.certificates import bundle
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.pins.model import PinSet, PyodidePin
from release.process import Completed, run
from release.progress import Progress
from release.stage import exclusive
from release.toolchain.folders import home
from release.toolchain.node import find_node, find_npm

_TREE = "tree.sha256"
_TIMEOUT_SECONDS = 300
# npm itself would try for minutes before it says that there is no network.
_PATIENCE = (
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=500",
    "--fetch-retry-maxtimeout=1000",
    "--fetch-timeout=20000",
    "--no-audit",
    "--no-update-notifier",
)


def install_pyodide(pins: PinSet, cache: Path, progress: Progress) -> Path:
    """Return the folder of the unpacked npm package of the pin set, from the cache or from npm.

    Raises Finding when npm's package is not the pinned one, BrokenEnvironment when npm cannot be reached.
    """
    folder = _folder(pins, cache)
    if _is_whole(folder):
        return folder / "package"
    with exclusive(folder.parent, wait=True, progress=progress):
        if not _is_whole(folder):
            with replacing_folder(folder) as temporary:
                _unpack(_download(pins, temporary), temporary)
                write_atomically(temporary / _TREE, sha256_of_tree(temporary / "package"))
    return folder / "package"


@dataclass(frozen=True, kw_only=True)
class FoundPyodide:
    """A Pyodide that is not pinned yet, as npm and its own lock file describe it."""

    pin: PyodidePin
    emscripten: str


def find_pyodide(version: str, pins: PinSet, cache: Path, progress: Progress) -> FoundPyodide:
    """Look up another version of Pyodide, and read what it is built with from its lock file.

    Raises WrongUsage for a version that npm does not have or whose lock file is not laid out as we know it,
    BrokenEnvironment when npm cannot be reached.
    """
    integrity = _integrity(version)
    # Of the pin only these two matter to what is downloaded; the others are what is to be found out.
    asked = pins.pyodide.model_copy(update={"version": version, "integrity": integrity})
    folder = install_pyodide(pins.model_copy(update={"pyodide": asked}), cache, progress)
    try:
        info = json.loads((folder / "pyodide-lock.json").read_text())["info"]
        pin = PyodidePin(version=version, integrity=integrity, python=info["python"], abi=info["abi_version"])
        return FoundPyodide(pin=pin, emscripten=_emscripten(info["platform"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WrongUsage(
            f"Pyodide {version} does not say what it is built with ({type(error).__name__}).",
            remedy="Write the pin set by hand, or take a version that has `abi_version` in its pyodide-lock.json.",
        ) from error


def pyodide_versions() -> list[str]:
    """Name the versions of Pyodide that npm has. Raises BrokenEnvironment when it cannot be reached."""
    completed = _ask_npm("pyodide", "versions", "--json")
    try:
        found = json.loads(completed.output) if completed.returncode == 0 else None
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise _unreachable("which versions of Pyodide there are", completed)
    return [str(version) for version in found]


def check_agreement(pins: PinSet, folder: Path) -> None:
    """Raise Finding when the pin set says something else than the lock file of its Pyodide."""
    if findings := agreement(pins, folder):
        raise Finding(
            f"Pin set {pins.name} does not agree with Pyodide {pins.pyodide.version}: {' '.join(findings)}",
            remedy="Write into the pin set what the lock file says; it is what the package has to load into.",
        )


def agreement(pins: PinSet, folder: Path) -> list[str]:
    """Compare a pin set with the lock file of an unpacked Pyodide; each difference is one sentence."""
    lock = folder / "pyodide-lock.json"
    try:
        info = json.loads(lock.read_text())["info"]
        package = json.loads((folder / "package.json").read_text())
    except (OSError, ValueError, KeyError) as error:
        return [f"{lock} cannot be read ({type(error).__name__})."]
    stated = (
        ("pyodide.version", pins.pyodide.version, package.get("version")),
        ("pyodide.python", pins.pyodide.python, info.get("python")),
        ("pyodide.abi", pins.pyodide.abi, info.get("abi_version")),
        ("emscripten.version", pins.emscripten.version, _emscripten(info.get("platform") or "")),
    )
    return [f"{key} is {pinned} and the lock file has {found}." for key, pinned, found in stated if pinned != found]


def _folder(pins: PinSet, cache: Path) -> Path:
    digest = base64.b64decode(pins.pyodide.integrity.removeprefix("sha512-")).hex()
    return home(cache) / "pyodide" / f"{pins.pyodide.version}-{digest[:12]}"


def _is_whole(folder: Path) -> bool:
    try:
        return (folder / _TREE).read_text() == sha256_of_tree(folder / "package")
    except OSError:
        return False


def _download(pins: PinSet, into: Path) -> Path:
    wanted = f"pyodide@{pins.pyodide.version}"
    # Away from any package.json, which npm would take for the project it works in.
    with tempfile.TemporaryDirectory() as elsewhere:
        completed = run(
            [
                find_node(),
                find_npm(),
                "pack",
                wanted,
                "--pack-destination",
                into,
                "--cache",
                elsewhere,
                *_PATIENCE,
            ],
            cwd=Path(elsewhere),
            env=_npm_environment(),
            timeout=_TIMEOUT_SECONDS,
        )
    archives = list(into.glob("*.tgz"))
    if completed.returncode != 0 or len(archives) != 1:
        raise BrokenEnvironment(
            f"npm cannot fetch {wanted}: {_reason(completed.output) or completed.explain()}.",
            remedy="Check the network and the registry that npm is set to, then run it again.",
        )
    digest = base64.b64encode(hashlib.sha512(archives[0].read_bytes()).digest()).decode()
    if f"sha512-{digest}" != pins.pyodide.integrity:
        raise Finding(
            f"npm's {wanted} has integrity sha512-{digest} and pin set {pins.name} wants {pins.pyodide.integrity}.",
            remedy="Find out which of the two is right before anything else; nothing of the download was used.",
        )
    return archives[0]


def _npm_environment() -> dict[str, str]:
    env = {"PATH": f"{find_node().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    if (trusted := bundle()) and "NODE_EXTRA_CA_CERTS" not in os.environ:
        env["NODE_EXTRA_CA_CERTS"] = str(trusted)
    return env


def _integrity(version: str) -> str:
    completed = _ask_npm(f"pyodide@{version}", "dist.integrity")
    found = re.search(r"sha512-[A-Za-z0-9+/]{86}==", completed.output)
    if completed.returncode == 0 and found:
        return found[0]
    if completed.returncode == 0 or "E404" in completed.output:
        raise WrongUsage(f"npm has no pyodide@{version}.", remedy="Give a version, such as 0.29.0.")
    raise _unreachable(f"what pyodide@{version} is", completed)


def _ask_npm(*question: str) -> Completed:
    # Away from any package.json, as above.
    with tempfile.TemporaryDirectory() as elsewhere:
        return run(
            [find_node(), find_npm(), "view", *question, "--loglevel=error", "--cache", elsewhere, *_PATIENCE],
            cwd=Path(elsewhere),
            env=_npm_environment(),
            timeout=_TIMEOUT_SECONDS,
        )


def _unreachable(what: str, completed: Completed) -> BrokenEnvironment:
    return BrokenEnvironment(
        f"npm cannot say {what}: {_reason(completed.output) or completed.explain()}.",
        remedy="Check the network and the registry that npm is set to, then run it again.",
    )


def _unpack(archive: Path, into: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    archive.unlink()


def _reason(output: str) -> str:
    errors = [line.removeprefix("npm error ") for line in output.splitlines() if line.startswith("npm error ")]
    # The first lines are `code X`, `syscall Y` and the like; the sentence comes after them.
    return next((line.rstrip(".") for line in errors if line.count(" ") > 1), errors[0] if errors else "")


def _emscripten(platform: str) -> str:
    return platform.removeprefix("emscripten_").replace("_", ".")
