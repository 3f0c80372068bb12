"""A Debian root with LLVM, a compiler and a Python for this machine: what the native Triton is built and run in."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release.artifacts import replacing_folder, sha256_of, sweep, write_atomically
from release.errors import BrokenEnvironment
from release.progress import Progress
from release.stage import exclusive
from release.toolchain import apt, chroot
from release.toolchain.folders import home
from release.toolchain.installation import Installation

PACKAGES = "packages.txt"

_WHEEL_INSTEAD = "Compare with a published wheel instead: --oracle-python PYTHON, a Python that has it."


def native_root(llvm: str, python: str, *, cache: Path, progress: Progress) -> Installation:
    """Return the root with LLVM ``llvm``, a release such as 22.1.0, and Python ``python``, such as 3.15.

    It is made in ``cache`` when it is not there: 320 MB are downloaded, 2.1 GB unpacked. Raises BrokenEnvironment when
    Debian has another LLVM or not that Python, no mirror answers, or this machine lets us have no mounts.
    """
    chroot.namespace()  # to know it before and not after the download
    major = llvm.partition(".")[0]
    packages = _packages(major, python)
    key = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    folder = home(cache) / "native" / f"llvm-{llvm}-python-{python}-{key}"
    if not folder.is_dir():
        with exclusive(home(cache), wait=True, progress=progress):
            if not folder.is_dir():  # nobody made it while we waited
                _make(folder, packages, llvm, python, home(cache) / "apt", progress)
    env = {"PATH": f"/usr/lib/llvm-{major}/bin:/usr/sbin:/usr/bin", "LC_ALL": "C.UTF-8", "HOME": tempfile.gettempdir()}
    return Installation(provider="debian", env=env, root=folder / "root", folder=folder)


def _make(folder: Path, packages: Sequence[str], llvm: str, python: str, state: Path, progress: Progress) -> None:
    sweep(folder.parent)
    with progress.steps("oracle", 3) as steps:
        steps.begin("read Debian's package lists")
        archive = apt.debian(state)
        found = re.sub(r"^\d+:|[-+~].*$", "", archive.candidate(f"libmlir-{llvm.partition('.')[0]}-dev") or "none")
        if found != llvm:
            raise BrokenEnvironment(
                f"Debian {apt.SUITE} has LLVM {found} and the native build needs {llvm}.", remedy=_WHEEL_INSTEAD
            )
        if archive.candidate(f"python{python}-dev") is None:
            raise BrokenEnvironment(f"Debian {apt.SUITE} has no Python {python}.", remedy=_WHEEL_INSTEAD)
        steps.begin(f"download LLVM {llvm}, Python {python} and what they need")
        files = archive.download(packages, dependencies=True)
        steps.begin(f"unpack {len(files)} packages")
        with replacing_folder(folder) as temporary:
            apt.unpack(files, temporary / "root")
            names = (f"{file.stem.replace('%3a', ':')} {sha256_of(file)}\n" for file in files)
            write_atomically(temporary / PACKAGES, "".join(names))
        archive.forget_downloads()


def _packages(major: str, python: str) -> tuple[str, ...]:
    # clang of the same LLVM: its library is needed anyway.
    llvm = (f"clang-{major}", f"llvm-{major}-dev", f"libmlir-{major}-dev", f"mlir-{major}-tools", f"liblld-{major}-dev")
    return ("?essential", "cmake", "ninja-build", *llvm, f"python{python}-dev", "zlib1g-dev")
