"""The Python headers of the target: Debian's for that Python, with the ``pyconfig.h`` of Pyodide's own build.

CPython's headers are the same for every machine but for ``pyconfig.h``, and what belongs into that one stands in the
``_sysconfigdata`` of the Python inside npm's Pyodide: ``sysconfig`` kept there what configure had found out.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from release.artifacts import replacing_folder, sha256_of, sha256_of_tree, write_atomically
from release.errors import BrokenEnvironment, Finding
from release.pins.model import PinSet
from release.toolchain import apt

VARIABLE = "TRITON_WASM_PYTHON_HEADERS"

_ZIP = "python_stdlib.zip"
_DATA = "_sysconfigdata__emscripten_wasm32-emscripten.py"
_DEFINE = re.compile(r"#\s*define\s+([A-Za-z_]\w*)(?:\s+(.*?))?\s*$")
_UNDEF = re.compile(r"/\* #\s*undef\s+(\w+) \*/")
# sysconfig forgets names that begin with an underscore. These few any machine's configure chooses alike.
_SAME_EVERYWHERE = re.compile(
    r"(_(ALL|DARWIN_C|GNU|LARGEFILE|NETBSD|OPENBSD)_SOURCE|_POSIX_C_SOURCE|_POSIX_PTHREAD_SEMANTICS|_PYTHONFRAMEWORK"
    r"|_Py_STACK_GROWS_DOWN|_XOPEN_SOURCE|_XOPEN_SOURCE_EXTENDED|__BSD_VISIBLE|__EXTENSIONS__|__STDC_WANT_\w+)$"
)


def install_headers(pins: PinSet, cache: Path, *, pyodide: Path) -> Path:
    """Return a folder with ``Python.h`` and a wasm32 ``pyconfig.h`` for the pin's Python, made when it is not there.

    The headers come from the folder that ``TRITON_WASM_PYTHON_HEADERS`` names, else from Debian's ``libpython3.X-dev``.
    Raises BrokenEnvironment when there are none, Finding when Pyodide does not say what it was built with.
    """
    named = os.environ.get(VARIABLE)
    source = Path(named).expanduser().resolve() if named else None
    folder = cache / "python" / f"{pins.pyodide.python}-{_key(pyodide, source)}"
    if not folder.is_dir():
        with replacing_folder(folder) as temporary, _headers(pins, cache, source) as (headers, template):
            shutil.copytree(headers, temporary, dirs_exist_ok=True)
            known = read_sysconfig(pyodide / _ZIP)
            write_atomically(temporary / "pyconfig.h", pyconfig(known, template.read_text()))
            _amend_pyport(temporary / "pyport.h")
    return folder


def read_sysconfig(stdlib: Path) -> Mapping[str, int | str]:
    """Return what configure and make knew when the Python inside ``stdlib`` was built, without running any of it."""
    try:
        with zipfile.ZipFile(stdlib) as archive:
            module = ast.parse(archive.read(_DATA))
    except (OSError, KeyError, zipfile.BadZipFile, SyntaxError) as error:
        raise Finding(f"{stdlib} holds no {_DATA} ({error}).", remedy="Pin another Pyodide.") from error
    found: dict[str, int | str] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
            for key, value in zip(statement.value.keys, statement.value.values, strict=True):
                match key, value:
                    # What is not a constant is a path of the machine that built it.
                    case ast.Constant(value=str(name)), ast.Constant(value=int() | str() as constant):
                        found[name] = constant
    return found


def pyconfig(known: Mapping[str, int | str], template: str) -> str:
    """Write a ``pyconfig.h``: the names of ``template``, any machine's, with the values that are ``known``."""
    names: dict[str, str | None] = {}
    for line in template.splitlines():
        if define := _DEFINE.match(line):
            names.setdefault(define[1], define[2] or "")
        elif undefine := _UNDEF.match(line):
            names.setdefault(undefine[1], None)
    lines = ["#ifndef Py_PYCONFIG_H", "#define Py_PYCONFIG_H"]
    for name, elsewhere in sorted(names.items()):
        value = known.get(name, elsewhere if _SAME_EVERYWHERE.match(name) else None)
        # sysconfig keeps 0 for what is undefined; only the HAVE_DECL_ ones are ever defined as 0.
        if value is None or (value in (0, "0") and not name.startswith("HAVE_DECL_")):
            lines.append(f"/* #undef {name} */")
        else:
            lines.append(f"#define {name} {value}".rstrip())
    return "\n".join([*lines, "#endif", ""])


def _key(pyodide: Path, source: Path | None) -> str:
    """Digest of what the headers are made from, as far as it is known before they are fetched."""
    parts = [sha256_of(pyodide / _ZIP), sha256_of(Path(__file__)), sha256_of_tree(source) if source else "debian"]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


@contextmanager
def _headers(pins: PinSet, cache: Path, source: Path | None) -> Iterator[tuple[Path, Path]]:
    """Give the folder that holds ``Python.h``, and a real ``pyconfig.h`` of whatever machine."""
    minor = pins.pyodide.python_minor
    if source is not None:
        yield _pick(source, minor)
        return
    with tempfile.TemporaryDirectory(prefix=".headers.", suffix=".part", dir=cache) as unpacked:
        archive = apt.debian(cache / "apt")
        apt.unpack(archive.download([f"libpython{minor}-dev"], dependencies=False), Path(unpacked))
        archive.forget_downloads()
        yield _pick(Path(unpacked), minor)


def _pick(source: Path, minor: str) -> tuple[Path, Path]:
    header = next((path for path in sorted(source.rglob("Python.h")) if _is_for(path.parent, minor)), None)
    # Debian's own pyconfig.h only includes the one of the architecture.
    template = next((path for path in sorted(source.rglob("pyconfig.h")) if "SIZEOF_VOID_P" in path.read_text()), None)
    if header is None or template is None:
        raise BrokenEnvironment(
            f"{source} holds no headers of Python {minor} with a pyconfig.h.",
            remedy=f"Name in {VARIABLE} the include folder of a Python {minor}, of whatever machine.",
        )
    return header.parent, template


def _is_for(folder: Path, minor: str) -> bool:
    patchlevel = folder / "patchlevel.h"
    if not patchlevel.is_file():
        return False
    found = dict(re.findall(r"#define PY_(MAJOR|MINOR)_VERSION\s+(\d+)", patchlevel.read_text()))
    return f"{found.get('MAJOR')}.{found.get('MINOR')}" == minor


def _amend_pyport(pyport: Path) -> None:
    """Do what Pyodide's own patch of CPython does: LONG_BIT is computed, whatever limits.h says."""
    text = pyport.read_text()
    if "#undef LONG_BIT" in text:
        return
    amended = text.replace("#ifndef LONG_BIT", "#undef LONG_BIT\n#ifndef LONG_BIT", 1)
    if amended == text:
        raise Finding(
            f"{pyport.name} of this Python has no `#ifndef LONG_BIT` to amend.",
            remedy="See how Pyodide patches that file now, and do the same in release/toolchain/python_headers.py.",
        )
    write_atomically(pyport, amended)
