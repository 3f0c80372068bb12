"""pyodide-build with a Python of the target's minor version, where Emscripten is.

pyodide-build is Python and nothing else, and is locked and installed with this project, whatever Python that has. So
its files are laid into an environment of the Python that it has to be run by.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.artifacts import replacing_folder, sha256_of, sweep, write_atomically
from release.errors import BrokenEnvironment, WrongUsage
from release.pins.model import PinSet
from release.progress import Progress
from release.stage import exclusive
from release.toolchain import apt
from release.toolchain.folders import home
from release.toolchain.model import Toolchain

VARIABLE = "TRITON_WASM_RECIPE_PYTHON"
BUILDER = "pyodide-build"

# make is a program that pyodide-build runs.
_DEBIAN = ("python{0}", "python{0}-minimal", "libpython{0}-minimal", "libpython{0}-stdlib", "make")
_MODULES = "bz2, ctypes, lzma, sqlite3, ssl, venv, zlib"
_ASK = f"import sys, {_MODULES}; print('%d.%d' % sys.version_info[:2], sys.version.split()[0])"
_LAUNCHER = """\
#!/bin/sh
exec "{python}" -m pyodide_cli "$@"
"""


@dataclass(frozen=True, kw_only=True)
class RecipeTools:
    """pyodide-build: ``environment`` is the folder of its Python environment, ``version`` its own version.

    ``programs`` is a folder for the end of PATH, or None. ``identity`` is a digest of all that is in it.
    """

    pins: PinSet
    toolchain: Toolchain
    environment: Path
    programs: Path | None
    version: str
    python: str
    identity: str

    def command(self, *arguments: str | os.PathLike[str], home: Path, **variables: str) -> tuple[str, ...]:
        """Return the command of this machine that runs ``pyodide`` with ``arguments``; it may write into ``home``."""
        last = f":{self.programs}" if self.programs else ""
        script = 'PATH="$1:$PATH$2"; export PATH; shift 2; exec pyodide "$@"'
        env = {"HOME": str(home), "VIRTUALENV_OVERRIDE_APP_DATA": str(home), "NO_COLOR": "1", **variables}
        shell = ["sh", "-c", script, "sh", f"{self.environment}/bin", last, *arguments]
        return self.toolchain.command(shell, env=env)


def prepare_tools(pins: PinSet, toolchain: Toolchain, *, cache: Path, progress: Progress) -> RecipeTools:
    """Return pyodide-build for the Python of ``pins``, laid into ``cache`` when it is not there.

    The Python is the one that ``TRITON_WASM_RECIPE_PYTHON`` names, else ``python3.X`` where the tools run, else
    Debian's, beside the root of the toolchain. Raises BrokenEnvironment when there is none of that minor version, when
    it does not run, or when pyodide-build is not installed with this project; WrongUsage for a cache with a space in
    its path.
    """
    parts = list(_distributions(BUILDER, pins.pyodide.python_minor))
    folder = home(cache) / "recipe"
    if re.search(r"\s", str(folder)):  # it writes its Python's path into shell scripts as it is
        raise WrongUsage(
            f"{folder} has a space in its path, which {BUILDER} does not allow.",
            remedy="Name another folder in TRITON_WASM_CACHE.",
        )
    with exclusive(folder, wait=True, progress=progress):
        python, programs = _find_python(pins.pyodide.python_minor, toolchain, folder, progress)
        version = _checked(python, pins.pyodide.python_minor, toolchain)
        names = sorted(f"{part.name} {part.version}" for part in parts)
        identity = hashlib.sha256("\n".join([*names, str(python), version]).encode()).hexdigest()
        environment = folder / f"environment-{identity[:12]}"
        if not environment.is_dir():
            with progress.steps("recipe", 1) as steps:
                steps.begin(f"lay {BUILDER} {parts[0].version} beside Python {version}")
                _lay_environment(environment, python, parts, pins.pyodide.python_minor, toolchain)
    return RecipeTools(
        pins=pins,
        toolchain=toolchain,
        environment=environment,
        programs=programs,
        version=parts[0].version,
        python=version,
        identity=identity,
    )


def _distributions(name: str, minor: str) -> Iterator[metadata.Distribution]:
    """Give a distribution that is installed with this project and all that it needs under Python ``minor``."""
    environment = {"python_version": minor, "python_full_version": f"{minor}.0", "extra": ""}
    seen: set[str] = set()
    pending = [name]
    while pending:
        wanted = canonicalize_name(pending.pop(0))
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found = metadata.distribution(wanted)
        except metadata.PackageNotFoundError as error:
            needed = "" if wanted == name else f", which {name} needs,"
            raise BrokenEnvironment(
                f"{wanted}{needed} is not installed in this Python environment.",
                remedy="Run `uv sync` in the checkout.",
            ) from error
        yield found
        requirements = [Requirement(text) for text in found.requires or []]
        pending += [each.name for each in requirements if each.marker is None or each.marker.evaluate(environment)]


def _find_python(minor: str, toolchain: Toolchain, folder: Path, progress: Progress) -> tuple[Path, Path | None]:
    """Return a Python, and the folder of further programs that came with it."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute(), None
    looked = toolchain.run(["sh", "-c", f"command -v python{minor} && command -v make"])
    if looked.returncode == 0:
        return Path(looked.output.splitlines()[0]), None
    if toolchain.provider != "debian":
        raise BrokenEnvironment(
            f"There is no python{minor} on PATH, or no make, and {BUILDER} needs the minor version that it builds for.",
            remedy=f"Install Python {minor} and make, or name that Python in {VARIABLE}.",
        )
    programs = _debian(minor, folder, progress) / "usr" / "bin"
    return programs / f"python{minor}", programs


def _debian(minor: str, folder: Path, progress: Progress) -> Path:
    packages = [package.format(minor) for package in _DEBIAN]
    key = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    unpacked = folder / f"python-{minor}-{key}"
    if not unpacked.is_dir():
        with exclusive(folder.parent, wait=True, progress=progress), progress.steps("recipe", 2) as steps:
            sweep(folder)
            steps.begin("read Debian's package lists")
            archive = apt.debian(folder.parent / "apt")
            if archive.candidate(packages[0]) is None:
                raise BrokenEnvironment(
                    f"Debian {apt.SUITE} has no Python {minor}, and {BUILDER} needs the minor version that it builds"
                    " for.",
                    remedy=f"Name a Python {minor} in {VARIABLE}.",
                )
            steps.begin(f"download and unpack Python {minor}")
            with replacing_folder(unpacked) as temporary:
                # Without what they need: the root of the toolchain has a Python of its own and the same libraries.
                files = archive.download(packages, dependencies=False)
                apt.unpack(files, temporary)
                names = (f"{file.stem.replace('%3a', ':')} {sha256_of(file)}\n" for file in files)
                write_atomically(temporary / "packages.txt", "".join(names))
            archive.forget_downloads()
    return unpacked


def _checked(python: Path, minor: str, toolchain: Toolchain) -> str:
    """Run it and return its version."""
    remedy = f"Name a Python {minor} that runs where the tools do in {VARIABLE}."
    asked = toolchain.run([python, "-c", _ASK], timeout=60)
    words = asked.output.split()
    if asked.returncode != 0 or len(words) != 2:
        said = (asked.tail.splitlines() or [asked.explain()])[-1].rstrip(".")
        raise BrokenEnvironment(f"{python} does not run: {said}.", remedy=remedy)
    if words[0] != minor:
        raise BrokenEnvironment(
            f"{python} is Python {words[1]}, and {BUILDER} needs the minor version that it builds for, {minor}.",
            remedy=remedy,
        )
    return words[1]


def _lay_environment(
    folder: Path, python: Path, parts: list[metadata.Distribution], minor: str, toolchain: Toolchain
) -> None:
    with replacing_folder(folder) as temporary:
        made = toolchain.run([python, "-m", "venv", "--without-pip", temporary], timeout=120)
        if made.returncode != 0:
            raise BrokenEnvironment(
                f"{python} cannot make an environment: {made.explain()}.",
                remedy=f"Install its module venv, or name another Python {minor} in {VARIABLE}.",
            )
        packages = temporary / "lib" / f"python{minor}" / "site-packages"
        for part in parts:
            for file in part.files or []:
                source = Path(str(file.locate()))
                if ".." not in file.parts and "__pycache__" not in file.parts and source.is_file():
                    (packages / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, packages / file)
        # pyodide-build calls itself by this name. A path in the first line would have to be short and without spaces.
        launcher = temporary / "bin" / "pyodide"
        write_atomically(launcher, _LAUNCHER.format(python=folder / "bin" / "python"))
        launcher.chmod(0o755)
