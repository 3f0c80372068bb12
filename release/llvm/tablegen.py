"""LLVM's table generators for the machine that builds: found, or left for LLVM to build first.

They write C++ from tables while LLVM is built, and what they write depends on their version. So only those of the very
same version are taken. Debian packages them; where it does not, LLVM builds its own, which takes some minutes and a
compiler for this machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from release.artifacts import replacing_folder, sha256_of
from release.errors import BrokenEnvironment, WrongUsage
from release.progress import Progress
from release.stage import exclusive
from release.toolchain import apt
from release.toolchain.model import Toolchain

VARIABLE = "TRITON_WASM_LLVM_TOOLS"
MLIR = "mlir-tblgen"
PROGRAMS = ("llvm-tblgen", MLIR, "mlir-pdll", "mlir-linalg-ods-yaml-gen")

_CACHE_VARIABLES = ("LLVM_TABLEGEN", "MLIR_TABLEGEN", "MLIR_PDLL_TABLEGEN", "MLIR_LINALG_ODS_YAML_GEN")
_RELEASE = re.compile(r"^\d+\.\d+\.\d+$")


@dataclass(frozen=True, kw_only=True)
class TableGenerators:
    """Where they are, or None when LLVM builds them; ``env`` is what they need to run."""

    folder: Path | None
    what: str
    env: dict[str, str] = field(default_factory=dict)

    def arguments(self) -> list[str]:
        """Return the CMake arguments that name them."""
        if self.folder is None:
            return []
        named = zip(_CACHE_VARIABLES, PROGRAMS, strict=True)
        present = [f"-D{name}={self.folder / program}" for name, program in named if (self.folder / program).is_file()]
        return [*present, f"-DLLVM_NATIVE_TOOL_DIR={self.folder}"]


def find_generators(version: str, toolchain: Toolchain, *, cache: Path, progress: Progress) -> TableGenerators:
    """Return generators of LLVM ``version``: those that ``TRITON_WASM_LLVM_TOOLS`` names, Debian's, or none.

    Raises WrongUsage when the named ones are of another version, and BrokenEnvironment when LLVM must build them and
    there is no compiler to do so.
    """
    if (named := _given()) is not None:
        return _checked(TableGenerators(folder=named, what=f"those in {named}"), version, toolchain)
    if toolchain.provider == "debian" and _RELEASE.match(version):
        try:
            return _checked(_debian(version, cache / "toolchain", progress), version, toolchain)
        except BrokenEnvironment as problem:
            progress.note(f"  no table generators of Debian: {problem}")
    looked = toolchain.run(["sh", "-c", "command -v c++ || command -v g++ || command -v clang++"])
    if looked.returncode != 0:
        raise BrokenEnvironment(
            f"There are no table generators of LLVM {version}, and no C++ compiler of this machine to build them with.",
            remedy=f"Name a folder with {', '.join(PROGRAMS)} of that version in {VARIABLE}, or install a compiler.",
        )
    return TableGenerators(folder=None, what="its own, which it builds first")


def keep_generators(tree: Path, prefix: Path) -> None:
    """Put the generator of MLIR that LLVM built for itself in ``tree`` into ``prefix``: Triton is built with it too."""
    for program in sorted(tree.glob(f"**/bin/{MLIR}")):
        (prefix / "bin").mkdir(exist_ok=True)
        shutil.copy2(program, prefix / "bin" / MLIR)


def find_mlir_tblgen(
    prefix: Path, version: str, toolchain: Toolchain, *, cache: Path, progress: Progress
) -> tuple[Path, dict[str, str]]:
    """Return MLIR's generator for an installed LLVM ``version``, and the environment that it needs.

    Raises WrongUsage for a named one of another version, BrokenEnvironment when there is none.
    """
    if (kept := prefix / "bin" / MLIR).is_file():
        return kept, {}
    generators = find_generators(version, toolchain, cache=cache, progress=progress)
    if generators.folder is None:
        raise BrokenEnvironment(
            f"There is no {MLIR} of LLVM {version} to build Triton with.",
            remedy=f"Name a folder that holds it in {VARIABLE}, or build LLVM anew: `triton-wasm llvm --force`.",
        )
    return generators.folder / MLIR, generators.env


def given_digest(version: str) -> str | None:
    """Return a digest of the generators that the user names, where their version alone does not tell what they write.

    That of a release does. Many commits go by the name of one development version.
    """
    folder = _given()
    if folder is None or _RELEASE.match(version):
        return None
    digests = (f"{program} {sha256_of(folder / program)}" for program in PROGRAMS if (folder / program).is_file())
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _given() -> Path | None:
    if not (named := os.environ.get(VARIABLE)):
        return None
    folder = Path(named).expanduser().resolve()
    if not (folder / PROGRAMS[0]).is_file():
        raise WrongUsage(f"{VARIABLE} is {folder}, which holds no {PROGRAMS[0]}.", remedy="Name another, or unset it.")
    return folder


def _debian(version: str, home: Path, progress: Progress) -> TableGenerators:
    major = version.partition(".")[0]
    folder = home / "tablegen" / version
    if not folder.is_dir():
        with exclusive(home, wait=True, progress=progress), progress.steps("tablegen", 2) as steps:
            steps.begin("read Debian's package lists")
            archive = apt.debian(home / "apt")
            candidate = archive.candidate(f"mlir-{major}-tools") or "none"
            if re.sub(r"^\d+:|[-+~].*$", "", candidate) != version:
                raise BrokenEnvironment(f"it has LLVM {candidate} and {version} is wanted.", remedy="")
            steps.begin(f"download and unpack the table generators of LLVM {version}")
            packages = archive.download([f"llvm-{major}", f"mlir-{major}-tools", f"libllvm{major}"], dependencies=False)
            _lay(packages, folder, major)
            archive.forget_downloads()
    # Debian's programs find the library of LLVM where the system keeps it; they are beside no system.
    env = {"LD_LIBRARY_PATH": str(folder / "lib")}
    return TableGenerators(folder=folder / "bin", what=f"Debian's of {version}", env=env)


def _lay(packages: list[Path], folder: Path, major: str) -> None:
    """Keep four programs and a library of packages that hold some hundred megabytes."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=".tablegen.", suffix=".part", dir=folder.parent) as unpacked,
        replacing_folder(folder) as temporary,
    ):
        apt.unpack(packages, Path(unpacked))
        for program in PROGRAMS:
            (temporary / "bin").mkdir(exist_ok=True)
            shutil.copy2(Path(unpacked) / "usr" / "lib" / f"llvm-{major}" / "bin" / program, temporary / "bin")
        (temporary / "lib").mkdir()
        for library in Path(unpacked).glob("usr/lib/*/libLLVM.so.*"):
            shutil.copy2(library, temporary / "lib")


def _checked(generators: TableGenerators, version: str, toolchain: Toolchain) -> TableGenerators:
    """Run them: those of another version, or that do not run, are of no use."""
    assert generators.folder is not None  # noqa: S101 - for the type checker: only called with a folder
    for program in PROGRAMS:
        if not (generators.folder / program).is_file():
            continue  # a profile without MLIR needs just one
        asked = toolchain.run([generators.folder / program, "--version"], env=generators.env)
        found = re.search(r"LLVM version (\S+)", asked.output)
        if asked.returncode != 0 or found is None:
            said = (asked.tail.splitlines() or [asked.explain()])[-1].rstrip(".")
            problem = f"{generators.folder / program} does not run: {said}."
        elif found[1] != version:
            problem = f"{generators.folder / program} is of LLVM {found[1]} and {version} is built."
        else:
            continue
        if _given() is not None:
            raise WrongUsage(problem, remedy=f"Name a folder with those of {version} in {VARIABLE}, or unset it.")
        raise BrokenEnvironment(problem, remedy=f"Name a folder with those of {version} in {VARIABLE}.")
    return generators
