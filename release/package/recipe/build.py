"""Running ``pyodide build-recipes`` over a copy of the recipes."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import replacing_folder, write_atomically
from release.errors import Finding, WrongUsage
from release.package.archive import LEVEL
from release.package.lock import LOCK
from release.package.recipe.crossbuild import lay_cross_build_environment
from release.package.recipe.tools import RecipeTools
from release.package.recipe.write import PACKAGES
from release.process import Completed, run
from release.progress import Progress
from release.toolchain.exhausted import exhausted

LOG = "build.log"

_DIST = "dist"


@dataclass(frozen=True, kw_only=True)
class BuiltRecipe:
    """What pyodide-build made: the wheel, and the lock file with its entry."""

    wheel: Path
    lock: Path


def build_recipes(
    recipes: Path, package: str, tools: RecipeTools, *, folder: Path, progress: Progress, log: Path | None = None
) -> BuiltRecipe:
    """Build ``package`` of ``recipes``/packages and what it needs; wheel and lock file come to lie in ``folder``/dist.

    What pyodide-build said is written to ``log``, by default LOG in ``folder``, also when it fails.
    Raises WrongUsage for a path that pyodide-build cannot take, Finding when it fails, BrokenEnvironment when memory or
    disk do not suffice.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = log or folder / LOG
    with tempfile.TemporaryDirectory(prefix=".recipe.", suffix=".part", dir=folder) as temporary:
        place = Path(temporary).resolve()
        if re.search(r"\s", str(place)):
            raise WrongUsage(
                f"{folder} has a space in its path, which pyodide-build does not allow.",
                remedy="Give another work dir.",
            )
        # It writes its log and the wheel into the folder of the recipe.
        shutil.copytree(recipes / PACKAGES, place / PACKAGES, symlinks=True)
        lay_cross_build_environment(tools.pins, tools.toolchain, place / "xbuildenv")
        with progress.steps("recipe", 1) as steps:
            steps.begin(f"pyodide build-recipes {package}")
            completed = run(_command(package, tools, place), cwd=place)
        write_atomically(log, completed.output)
        _succeed(completed, package, log)
        return _take(place / _DIST, folder, log)


def _command(package: str, tools: RecipeTools, place: Path) -> tuple[str, ...]:
    variables = {"PYODIDE_XBUILDENV_PATH": str(place / "xbuildenv"), "COLUMNS": "200"}
    if tools.toolchain.mismatches:
        variables["SKIP_EMSCRIPTEN_VERSION_CHECK"] = "1"
    return tools.command(
        "build-recipes",
        package,
        "--recipe-dir",
        place / PACKAGES,
        "--build-dir",
        place / "build",
        "--install",
        "--install-dir",
        place / _DIST,
        # One link may take all of the memory.
        "--n-jobs",
        "1",
        "--compression-level",
        str(LEVEL),
        "--skip-emscripten-install",
        home=place,
        **variables,
    )


def _succeed(completed: Completed, package: str, log: Path) -> None:
    if completed.returncode == 0:
        return
    task = f"build the recipe of {package}"
    more = "Give the machine more memory or swap, or take a profile that needs less; then run the same command."
    if problem := exhausted(completed, task, log.parent, remedy=more):
        raise problem
    lines = completed.output.splitlines()
    said = [line.strip() for line in lines if re.search(r"error:|Error: |missing:|is not set:", line)]
    reason = next((line for line in said if "em++: error" not in line), (said or lines or [completed.explain()])[-1])
    raise Finding(f"Cannot {task}: {reason[:300]}", remedy=f"Read {log}.")


def _take(dist: Path, folder: Path, log: Path) -> BuiltRecipe:
    wheels = list(dist.glob("*.whl"))
    if len(wheels) != 1 or not (dist / LOCK).is_file():
        found = ", ".join(sorted(path.name for path in dist.glob("*"))) or "nothing"
        raise Finding(f"pyodide-build ended well and made {found}, not one wheel and a {LOCK}.", remedy=f"Read {log}.")
    with replacing_folder(folder / _DIST) as kept:
        for path in (wheels[0], dist / LOCK):
            shutil.copyfile(path, kept / path.name)
    return BuiltRecipe(wheel=folder / _DIST / wheels[0].name, lock=folder / _DIST / LOCK)
