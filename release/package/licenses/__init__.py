"""The licences of all that is in the package: Triton, what its side module is linked from, and the data beside it.

Emscripten's own libraries are not in it: its linker adds none to a side module, which imports ``malloc``, ``operator
new`` and the rest from Pyodide. What libc++ has in headers is compiled in, under the same licence as LLVM.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from release.errors import BrokenEnvironment, WrongUsage
from release.pins.upstream import read_triton
from release.places import CHECKOUT

LICENSE = " AND ".join(
    (
        "MIT",  # Triton, f2reduce
        "Apache-2.0 WITH LLVM-exception",  # LLVM, MLIR, LLD, libc++'s headers
        "Apache-2.0",  # the layer; BLAKE3 in LLVM, which may be had under CC0-1.0 as well
        "BSD-2-Clause",  # xxHash in LLVM
        "BSD-3-Clause",  # pybind11 or nanobind; the regular expressions in LLVM, as the next
        "Spencer-94",
        "ISC",  # strlcpy in LLVM
        "Unicode-DFS-2015",  # ConvertUTF in LLVM
        "NCSA",  # the device libraries of ROCm
        "LicenseRef-NVIDIA-End-User-License-Agreement",  # libdevice
    )
)
"""The SPDX expression of the whole."""

_HERE = Path(__file__).parent

_TRITON = {"LICENSE": "LICENSE", "LICENSE.f2reduce": "third_party/f2reduce/LICENCE.txt"}
_LLVM = {
    "LICENSE.llvm": "llvm/LICENSE.TXT",
    "LICENSE.llvm-blake3": "llvm/lib/Support/BLAKE3/LICENSE",
    "LICENSE.llvm-regex": "llvm/lib/Support/COPYRIGHT.regex",
}
# What neither tree has as a file of its own.
_OURS = ("LICENSE.llvm-support", "LICENSE.rocm-device-libs", "NOTICE.libdevice")


def license_files(triton: Path, llvm: Path) -> dict[str, Path]:
    """Find the licences of a package made from these two source trees, by the names they have in it.

    Raises WrongUsage when a tree lacks one, BrokenEnvironment when what binds Triton to Python is not installed.
    """
    found = {name: _require(triton, file, "Triton") for name, file in _TRITON.items()}
    bindings = read_triton(triton).bindings
    found[f"LICENSE.{bindings}"] = license_of(bindings)
    found |= {name: _require(llvm, file, "LLVM") for name, file in _LLVM.items()}
    found |= {name: _HERE / f"{name}.txt" for name in _OURS}
    return {**found, "LICENSE.triton-wasm-release": CHECKOUT / "LICENSE"}


def license_of(distribution: str) -> Path:
    """Find the licence of an installed Python distribution. Raises BrokenEnvironment when there is none."""
    try:
        files = metadata.files(distribution) or []
        return next(path for file in files if file.name == "LICENSE" and (path := Path(str(file.locate()))).is_file())
    except (metadata.PackageNotFoundError, StopIteration) as error:
        raise BrokenEnvironment(
            f"There is no licence of {distribution}, which is compiled into the module.",
            remedy=f"Install {distribution} from a wheel, beside this project.",
        ) from error


def _require(tree: Path, file: str, name: str) -> Path:
    path = tree / file
    if not path.is_file():
        raise WrongUsage(
            f"{tree} has no {file}, and the licence of {name} has to go with it.",
            remedy=f"Name the root of a whole {name} tree; if upstream has moved it, teach release/package/licenses.",
        )
    return path
