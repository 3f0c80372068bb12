"""The third provider: a Debian root of our own in the cache, whose Emscripten the pin set may ask for."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from release.artifacts import replacing_folder, sha256_of, write_atomically
from release.pins.model import PinSet
from release.progress import Steps
from release.toolchain import apt, chroot
from release.toolchain.installation import Installation, OtherVersion

NAME = "debian"
PACKAGES = ("?essential", "cmake", "emscripten", "ninja-build")

_KEY = hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:8]
# /usr/bin/emnm is broken in Debian's package, the one beside em++ is not.
_PATH = "/usr/share/emscripten:/usr/sbin:/usr/bin"


def find(pins: PinSet, cache: Path) -> list[Installation]:
    """Return the root that was installed for the pinned Emscripten, if any."""
    folder = _folder(cache, pins.emscripten.version)
    return [_installation(folder)] if folder.is_dir() else []


def install(pins: PinSet, cache: Path, *, allow_mismatch: bool, steps: Steps) -> Installation:
    """Make a root from Debian sid. Raises BrokenEnvironment when that has another Emscripten, or no mirror answers."""
    chroot.namespace()  # to know it before and not after the download
    steps.begin("read Debian's package lists")
    archive = apt.debian(cache / "apt")
    candidate = archive.candidate("emscripten") or ""
    version = candidate.partition("+")[0].partition("-")[0]
    if version != pins.emscripten.version and not allow_mismatch:
        raise OtherVersion(
            f"Emscripten of Debian {apt.SUITE} is {version or 'gone'} and pin set {pins.name} wants"
            f" {pins.emscripten.version}."
        )
    folder = _folder(cache, version)
    if not folder.is_dir():
        steps.begin(f"download Emscripten {version} and what it needs")
        packages = archive.download(PACKAGES, dependencies=True)
        steps.begin(f"unpack {len(packages)} packages")
        with replacing_folder(folder) as temporary:
            _lay(packages, temporary)
        archive.forget_downloads()
    return _installation(folder)


def remove(installation: Installation) -> None:
    """Remove a root that turned out broken."""
    if installation.folder is not None:
        shutil.rmtree(installation.folder)


def _folder(cache: Path, version: str) -> Path:
    return cache / NAME / f"emscripten-{version}-{_KEY}"


def _lay(packages: list[Path], folder: Path) -> None:
    root = folder / "root"
    apt.unpack(packages, root)
    # What maintainer scripts would have done, as far as a compiler needs it.
    write_atomically(root / "etc" / "passwd", "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    write_atomically(root / "etc" / "group", "root:x:0:\nnogroup:x:65534:\n")
    (root / "usr" / "bin" / "awk").symlink_to("mawk")
    names = (f"{re.sub(r'%3a', ':', package.stem)} {sha256_of(package)}\n" for package in packages)
    write_atomically(folder / "packages.txt", "".join(names))
    (folder / "emscripten-cache").mkdir()
    # Emscripten's own Python files, once: without it each call compiles them again, and takes a second longer.
    _installation(folder).run(["python3", "-m", "compileall", "-q", "-j2", "/usr/share/emscripten"])


def _installation(folder: Path) -> Installation:
    root = folder / "root"
    env = {"PATH": _PATH, "LC_ALL": "C.UTF-8", "EM_CACHE": str(folder / "emscripten-cache")}
    return Installation(provider="debian", env=env, root=root, folder=folder)
