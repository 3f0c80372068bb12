"""What lies between a package and its release, as folders that may travel from one machine to another.

A *prepared* package is the package with what it says of itself and the cases that it has to pass; a *check* is what one
runtime made of these; the release is assembled of one package and its checks, and only when every check has passed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import ValidationError

from release.artifacts import sha256_of, write_atomically
from release.check.cases import load_cases
from release.check.junit import merge, to_junit
from release.check.model import CheckReport, Runtime, Where
from release.check.node import check_package
from release.check.oracle.texts import TEXTS, gather
from release.errors import Finding, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.manifest.models import CasesReport, Manifest, RunReport, SizesReport, to_json
from release.manifest.reports import cases_report
from release.manifest.summary import summary
from release.package.model import Package
from release.progress import Progress
from release.stage import RECORD
from release.trust.model import SBOM

if TYPE_CHECKING:
    from release.toolchain.chromium import Browser

CASES = "cases"
FILES = "files"
MANIFEST, SIZES, TESTS, JUNIT, SUMMARY = "manifest.json", "sizes.json", "tests.json", "tests.xml", "SUMMARY.md"
LOCK = "pyodide-lock.json"

_NOTHING: Mapping[str, str] = MappingProxyType({})


def prepare(package: Package, manifest: Manifest, sizes: SizesReport, cases: Path, folder: Path) -> None:
    """Fill ``folder`` with a package, its reports and the folder of its ``cases``."""
    from release.trust.sbom import sbom

    for path in (package.wheel, package.zip, package.lock):
        shutil.copyfile(path, folder / path.name)
    write_atomically(folder / MANIFEST, to_json(manifest))
    write_atomically(folder / SIZES, to_json(sizes))
    write_atomically(folder / SBOM, sbom(manifest, package.wheel))
    shutil.copytree(cases, folder / CASES)


def read_manifest(prepared: Path) -> Manifest:
    """Read the manifest of a prepared package. Raises WrongUsage for a folder that is none."""
    try:
        return Manifest.model_validate_json((prepared / MANIFEST).read_text())
    except (OSError, ValidationError) as error:
        raise WrongUsage(
            f"{prepared} is no prepared package ({type(error).__name__}).",
            remedy="Give the folder that `triton-wasm prepare --out` has written.",
        ) from error


def check(
    prepared: Path, where: Where, *, runtime: Runtime, browser: Browser | None, folder: Path, progress: Progress
) -> CasesReport:
    """Run the cases of a prepared package and write what came of it into ``folder``, whether they passed or not.

    The digests that the package has to have are those of its manifest. With a ``browser`` the cases run in that, and
    ``where`` says in which part of a page. Raises WrongUsage for a folder that is no prepared package,
    BrokenEnvironment when what it is to be run in is missing.
    """
    manifest, package = read_manifest(prepared), _package(prepared)
    cases, imports = load_cases(prepared / CASES), _imports(package.lock, manifest.name)
    digests = {asset.name: asset.sha256 for asset in manifest.assets}
    run: Callable[..., CheckReport] = check_package
    if browser is not None:
        from release.check.browser import check_in_browser

        run = partial(check_in_browser, place="worker" if where == "chromium-worker" else "main", browser=browser)
    report = run(
        package,
        cases,
        imports=imports,
        toolchain=runtime,
        keep=folder / FILES,
        progress=progress,
        expected_sha256=digests,
    )
    return write_check(report, digests[package.wheel.name], folder)


def write_check(report: CheckReport, package: str, folder: Path) -> CasesReport:
    """Write what a check of the wheel with the digest ``package`` found beside the files that its cases have left."""
    cases = cases_report(report, package)
    write_atomically(folder / TESTS, to_json(cases))
    write_atomically(folder / JUNIT, to_junit(report))
    first = next((result for result in report.results if result.files), None)
    if first:
        gather(folder / FILES, first.loader, folder / TEXTS)
    return cases


def read_check(folder: Path) -> CasesReport:
    """Read what a check has found. Raises WrongUsage for a folder that holds none."""
    try:
        return CasesReport.model_validate_json((folder / TESTS).read_text())
    except (OSError, ValidationError) as error:
        raise WrongUsage(
            f"{folder} holds no check ({type(error).__name__}).",
            remedy="Give a folder that `triton-wasm check --package` has written.",
        ) from error


def require_passed(report: CasesReport, folder: Path) -> None:
    """Raise Finding when a case has failed or there is none; ``folder`` is where more is to be read."""
    if report.passed and report.cases:
        return
    failed = [(run, case) for run in report.runs for case in run.cases if not case.passed]
    first = "there is no case"
    if failed:
        run, case = failed[0]
        first = f"{case.name} ({case.loader}, {run.runtime}): {case.message}"
    raise Finding(f"{len(failed)} of {len(report.cases)} checks failed; the first is {first}", remedy=f"Read {folder}.")


def assemble(prepared: Path, checked: Sequence[Path], folder: Path, *, more: Mapping[str, str] = _NOTHING) -> None:
    """Fill ``folder`` with the release of a prepared package: that, what its checks found, a summary, SHA256SUMS.

    ``more`` are further reports, by their names. Raises Finding where a check has failed, is of another package, or is
    there twice; WrongUsage for a folder that is no prepared package or no check, and when there is no check.
    """
    manifest = read_manifest(prepared)
    tests = _together(checked)
    for path in sorted(prepared.iterdir()):
        if path.is_file() and path.name != RECORD:
            shutil.copyfile(path, folder / path.name)
    assets = {asset.name: asset.sha256 for asset in manifest.assets}
    for name, sha256 in assets.items():
        if not (folder / name).is_file() or sha256_of(folder / name) != sha256:
            raise Finding(f"{name} is not the one that was prepared.", remedy="Prepare the package again.")
    for run in tests.runs:
        if run.package not in assets.values():
            raise Finding(
                f"What {run.runtime} has checked is another package: {run.package[:12]}….",
                remedy="Check the package that is to be released.",
            )
    write_atomically(folder / TESTS, to_json(tests))
    write_atomically(folder / JUNIT, merge([(path / JUNIT).read_text() for path in checked]))
    write_atomically(folder / SUMMARY, summary(manifest, tests))
    for name, text in more.items():
        write_atomically(folder / name, text)
    write_atomically(folder / CHECKSUMS, checksums(folder))


def _together(checked: Sequence[Path]) -> CasesReport:
    if not checked:
        raise WrongUsage("A package is released after it was checked.", remedy="Give the folder of at least one check.")
    runs: list[RunReport] = []
    for folder in checked:
        report = read_check(folder)
        require_passed(report, folder)
        runs += report.runs
    seen = [run.where for run in runs]
    if twice := sorted({where for where in seen if seen.count(where) > 1}):
        raise Finding(f"There are two checks in {twice[0]}.", remedy="Give the folder of each check once.")
    return CasesReport(passed=True, runs=tuple(runs))


def _package(prepared: Path) -> Package:
    wheels, zips = list(prepared.glob("*.whl")), list(prepared.glob("*.zip"))
    if len(wheels) != 1 or len(zips) != 1:
        raise WrongUsage(
            f"{prepared} has {len(wheels)} wheels and {len(zips)} zips, not one of each.",
            remedy="Prepare the package again.",
        )
    return Package(wheel=wheels[0], zip=zips[0], lock=prepared / LOCK)


def _imports(lock: Path, name: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(lock.read_text())["packages"][name]["imports"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise WrongUsage(f"{lock} has no entry of {name}.", remedy="Prepare the package again.") from error
