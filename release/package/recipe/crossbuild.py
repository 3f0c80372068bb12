"""The cross-build environment that pyodide-build works in, laid by hand from what the toolchain has.

Pyodide publishes one beside each release on GitHub. What is needed of it here is little, and all of it is in npm's
package and the target's headers; so nothing more has to be fetched, and it is of the very Pyodide that is pinned.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from release.artifacts import replacing_folder, write_atomically
from release.pins.model import PinSet
from release.toolchain.model import Toolchain
from release.toolchain.python_headers import read_sysconfig

_STDLIB = "python_stdlib.zip"
_SYSCONFIG = "_sysconfigdata__emscripten_wasm32-emscripten"
_CONSTRAINTS = "constraints.txt"
# pyodide-build asks make for the environment that this file exports.
_MAKEFILE = """\
{exports}
.output_vars:
\tenv
"""


def lay_cross_build_environment(pins: PinSet, toolchain: Toolchain, folder: Path) -> None:
    """Make ``folder``, for ``PYODIDE_XBUILDENV_PATH``; what was there is replaced."""
    minor = pins.pyodide.python_minor
    install = f"cpython/installs/python-{pins.pyodide.python}"
    with replacing_folder(folder) as temporary:
        version = temporary / pins.pyodide.version
        root = version / "xbuildenv" / "pyodide-root"
        shutil.copytree(toolchain.python_include, root / install / "include" / f"python{minor}")
        with zipfile.ZipFile(toolchain.pyodide / _STDLIB) as archive:
            write_atomically(root / install / "sysconfigdata" / f"{_SYSCONFIG}.py", archive.read(f"{_SYSCONFIG}.py"))
        variables = _variables(pins, str(read_sysconfig(toolchain.pyodide / _STDLIB)["MULTIARCH"]), install)
        exports = "\n".join(f"export {name} ?= {value}" for name, value in variables.items())
        write_atomically(root / "Makefile.envs", _MAKEFILE.format(exports=exports))
        write_atomically(root / _CONSTRAINTS, "")
        # No package of this Pyodide is built against.
        write_atomically(version / "xbuildenv" / "requirements.txt", "")
        write_atomically(version / ".installed", "")
        write_atomically(version / ".build-python-version", minor)
        (temporary / "xbuildenv").symlink_to(pins.pyodide.version)


def _variables(pins: PinSet, triplet: str, install: str) -> dict[str, str]:
    major, minor, *rest = pins.pyodide.python.split(".")
    home = f"$(PYODIDE_ROOT)/{install}"
    return {
        "PYODIDE_VERSION": pins.pyodide.version,
        "PYODIDE_ABI_VERSION": pins.pyodide.abi,
        "PYODIDE_EMSCRIPTEN_VERSION": pins.emscripten.version,
        "PYVERSION": pins.pyodide.python,
        "PYMAJOR": major,
        "PYMINOR": minor,
        "PYMICRO": rest[0],
        "PLATFORM_TRIPLET": triplet,
        "SYSCONFIG_NAME": _SYSCONFIG,
        "CPYTHONINSTALL": home,
        "TARGETINSTALLDIR": home,
        "PYTHONINCLUDE": f"{home}/include/python{major}.{minor}",
        "SYSCONFIGDATA_DIR": f"{home}/sysconfigdata",
        "CFLAGS_BASE": "-g0",
        "LDFLAGS_BASE": "-g0",
        "PIP_CONSTRAINT": f"$(PYODIDE_ROOT)/{_CONSTRAINTS}",
    }
