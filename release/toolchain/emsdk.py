"""The second provider: an emsdk that the machine has, or one of our own in the cache, from its upstream archive."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from pathlib import Path

from release.artifacts import replacing_folder
from release.errors import BrokenEnvironment
from release.pins.model import PinSet
from release.process import run
from release.progress import Steps
from release.toolchain.installation import Installation

NAME = "emsdk"
REPOSITORY = "https://github.com/emscripten-core/emsdk"

_LARGEST = 50_000_000  # bytes of upstream's archive, which has a hundredth of it
_INSTALL_SECONDS = 1200


def find(pins: PinSet, cache: Path) -> list[Installation]:
    """Return the emsdk that ``EMSDK`` names and the one in the cache, as far as they are there."""
    found = []
    if (named := os.environ.get("EMSDK")) and _holds_tools(folder := Path(named).expanduser().resolve()):
        # Its own cache is its owner's: what is built for us goes to ours.
        own = {"EM_CACHE": str(cache / NAME / "cache-of-a-foreign-emsdk")}
        found.append(_installation(folder, env=own, ours=False))
    if _holds_tools(folder := _folder(pins, cache)):
        found.append(_installation(folder, env={}, ours=True))
    return found


def install(pins: PinSet, cache: Path, *, allow_mismatch: bool, steps: Steps) -> Installation:
    """Install emsdk's build of the pinned Emscripten. Raises BrokenEnvironment when its servers cannot be reached."""
    version = pins.emscripten.version
    folder = _folder(pins, cache)
    steps.begin(f"look for emsdk {version}")
    with replacing_folder(folder) as temporary:
        _download(f"{REPOSITORY}/archive/refs/tags/{version}.tar.gz", temporary)
        steps.begin(f"install Emscripten {version} with emsdk")
        for verb in ("install", "activate"):
            completed = run([sys.executable, temporary / "emsdk.py", verb, version], timeout=_INSTALL_SECONDS)
            if completed.returncode != 0 or not _holds_tools(temporary):
                raise BrokenEnvironment(
                    f"emsdk could not {verb} Emscripten {version}: {_last_line(completed.tail, completed.explain())}.",
                    remedy="Check the network and its proxy, or name an emsdk that works in EMSDK.",
                )
    return _installation(folder, env={}, ours=True)


def remove(installation: Installation) -> None:
    """Remove an emsdk of ours that turned out broken; another's stays."""
    if installation.folder is not None:
        shutil.rmtree(installation.folder)


def _folder(pins: PinSet, cache: Path) -> Path:
    return cache / NAME / f"emscripten-{pins.emscripten.version}"


def _holds_tools(folder: Path) -> bool:
    return (folder / "upstream/emscripten/em++").is_file() and (folder / "upstream/bin/wasm-opt").is_file()


def _installation(folder: Path, *, env: dict[str, str], ours: bool) -> Installation:
    path = f"{folder}/upstream/emscripten:{folder}/upstream/bin:{os.environ.get('PATH', os.defpath)}"
    config = {"EMSDK": str(folder), "EM_CONFIG": f"{folder}/.emscripten", "EMSDK_PYTHON": sys.executable}
    env = {"PATH": path, **config, "LC_ALL": "C.UTF-8", **env}
    return Installation(provider="emsdk", env=env, folder=folder if ours else None)


def _download(url: str, into: Path) -> None:
    from release.download import Absent, download  # takes a quarter of a second, and a warm toolchain needs none of it
    from release.retry import Transient

    archive = into / "emsdk.tar.gz"
    try:
        download(url, archive, maximum=_LARGEST)
    except Absent as absent:
        raise BrokenEnvironment(f"{absent}.", remedy="Check that emsdk has a tag of the pinned version.") from absent
    except Transient as transient:
        raise BrokenEnvironment(
            f"{REPOSITORY} cannot be reached ({transient}).",
            remedy="Check the network and its proxy, or name an emsdk in EMSDK.",
        ) from transient
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(into, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise BrokenEnvironment(f"{url} is no archive: {error}.", remedy="Try again.") from error
    archive.unlink()
    # The archive holds one folder, emsdk-<version>.
    for inner in [path for path in into.iterdir() if path.is_dir()]:
        for path in inner.iterdir():
            path.rename(into / path.name)
        inner.rmdir()


def _last_line(text: str, otherwise: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else otherwise
