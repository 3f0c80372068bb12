"""Whether the assemblers of the GPUs take the text. They are tools of the check and never come into a package."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from release.artifacts import replacing
from release.check.oracle.model import Assembled
from release.check.oracle.texts import Key, read_texts
from release.errors import WrongUsage
from release.process import Completed, run
from release.progress import Progress
from release.toolchain.installation import Installation

_TIMEOUT_SECONDS = 300
_FIRST_WITH_FEATURES_OF_ITS_OWN = 90  # from sm_90 on Triton compiles for the "a" of an architecture
_COMPLAINT = re.compile(r"error\s*:|\bfatal\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Assemblers:
    """``ptxas`` of NVIDIA and ``llvm-mc``, each as a command; where one is None nothing is checked."""

    ptxas: tuple[str, ...] | None = None
    llvm_mc: tuple[str, ...] | None = None


def find_ptxas(place: Path, cache: Path) -> tuple[str, ...]:
    """Return the ``ptxas`` at ``place``: the program, or a wheel that holds it: Triton's, or that of NVIDIA's nvcc.

    That of a wheel is unpacked into ``cache``. Raises WrongUsage when there is none.
    """
    nothing = WrongUsage(f"{place} is no ptxas and holds none.", remedy="Give the program, or a wheel of Triton.")
    if not place.is_file():
        raise nothing
    if place.suffix != ".whl":
        return (str(place.resolve()),)
    program = cache / "oracle" / place.stem / "ptxas"
    if not program.is_file():
        try:
            with zipfile.ZipFile(place) as wheel, replacing(program) as temporary:
                member = next((name for name in wheel.namelist() if name.endswith("/bin/ptxas")), None)
                if member is None:
                    raise nothing
                temporary.write_bytes(wheel.read(member))
        except (OSError, zipfile.BadZipFile) as error:
            raise nothing from error
        program.chmod(0o755)
    return (str(program),)


def installed_ptxas() -> Path | None:
    """Return the ``ptxas`` that is among our own development packages, or None."""
    with suppress(PackageNotFoundError):
        for file in files("nvidia-cuda-nvcc-cu12") or ():
            if file.name == "ptxas":
                return Path(str(file.locate()))
    return None


def llvm_mc_of(root: Installation) -> tuple[str, ...]:
    """Return ``llvm-mc`` of the native root, which is of the LLVM that made the text."""
    return (*root.enter([]), "llvm-mc")


def assemble(folder: Path, assemblers: Assemblers, *, progress: Progress) -> tuple[Assembled, ...]:
    """Assemble every PTX and AMDGCN text below ``folder`` for its target, and throw away what comes out.

    Raises WrongUsage for a folder without texts, BrokenEnvironment when an assembler cannot be run.
    """
    commands = {"ptx": assemblers.ptxas, "amdgcn": assemblers.llvm_mc}
    texts = {key: text for key, text in read_texts(folder).items() if commands.get(key.stage)}
    results = []
    with progress.steps("assemble", 1) as steps, tempfile.TemporaryDirectory() as temporary:
        steps.begin(f"{len(texts)} texts")
        for key, text in texts.items():
            path = Path(temporary) / f"text.{key.stage}"
            path.write_text(text, encoding="utf-8")
            tool = commands[key.stage] or ()
            # By its bare name, so that what is said of it is the same every time.
            completed = run([*tool, *_arguments(key, path.name)], cwd=path.parent, timeout=_TIMEOUT_SECONDS)
            results.append(_result(key, completed))
    return tuple(results)


def _arguments(key: Key, name: str) -> Sequence[str]:
    arch = key.target.split("-")[1]
    output = "binary"
    if key.stage == "ptx":
        own = "a" if int(arch) >= _FIRST_WITH_FEATURES_OF_ITS_OWN else ""
        return (f"-arch=sm_{arch}{own}", name, "-o", output)
    return ("-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-filetype=obj", name, "-o", output)


def _result(key: Key, completed: Completed) -> Assembled:
    tool = {"ptx": "ptxas", "amdgcn": "llvm-mc"}[key.stage]
    ended = replace(completed, command=(tool,)).explain()
    complaint = next((line.strip() for line in completed.output.splitlines() if _COMPLAINT.search(line)), ended)
    passed = completed.returncode == 0
    return Assembled(**key._asdict(), assembler=tool, passed=passed, message="" if passed else complaint[:300])
