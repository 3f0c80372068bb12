"""A package, its checks and its release, each in a folder of its own, as between the machines of a workflow."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from release.assembly import assemble, check, read_check, require_passed
from release.errors import Finding, WrongUsage
from release.manifest.checksums import verify
from release.manifest.models import CasesReport
from release.pipeline import Pipeline
from release.progress import Progress
from release.toolchain.model import Toolchain
from tests.check.junit_shape import parse


@dataclass(frozen=True, kw_only=True)
class Parts:
    prepared: Path
    checked: Path


def check_in_node(prepared: Path, toolchain: Toolchain, folder: Path) -> CasesReport:
    progress = Progress(quiet=True)
    return check(prepared, "node", browser=None, runtime=toolchain, folder=folder, progress=progress)


@pytest.fixture(scope="module")
def made(pipeline: Pipeline, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Parts:
    module = pipeline.module(toolchain)
    folder = tmp_path_factory.mktemp("another machine")
    shutil.copytree(
        pipeline.prepare(toolchain, module, pipeline.package(toolchain, module)).folder, folder / "prepared"
    )
    checked = folder / "checked"
    report = check(
        folder / "prepared", "node", browser=None, runtime=toolchain, folder=checked, progress=Progress(quiet=True)
    )
    require_passed(report, checked)
    return Parts(prepared=folder / "prepared", checked=checked)


@pytest.fixture
def parts(made: Parts, tmp_path: Path) -> Parts:
    for name in ("prepared", "checked"):
        shutil.copytree(getattr(made, name), tmp_path / name)
    (tmp_path / "dist").mkdir()
    return Parts(prepared=tmp_path / "prepared", checked=tmp_path / "checked")


def test_it_is_what_the_pipeline_releases(parts: Parts, pipeline: Pipeline, tmp_path: Path) -> None:
    assemble(parts.prepared, [parts.checked], tmp_path / "dist")
    pipeline.release(tmp_path / "whole")
    assert {path.name for path in (tmp_path / "dist").iterdir()} == {p.name for p in (tmp_path / "whole").iterdir()}
    assert verify(tmp_path / "dist") == 9
    for name in ("manifest.json", "exprc-1.0.0.zip", "sbom.cdx.json"):
        assert (tmp_path / "dist" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_two_machines_found_comes_together(parts: Parts, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(parts.checked, other)
    change(other, lambda run: run.update(where="chromium-worker", runtime="Chromium 1, worker"))
    assemble(parts.prepared, [parts.checked, other], tmp_path / "dist")
    report = read_check(tmp_path / "dist")
    assert [run.where for run in report.runs] == ["node", "chromium-worker"]
    assert len(parse((tmp_path / "dist" / "tests.xml").read_text())) == 2 * 3
    assert "Chromium 1, worker" in (tmp_path / "dist" / "SUMMARY.md").read_text()


def change(checked: Path, edit: Callable[[dict[str, object]], object]) -> None:
    report = json.loads((checked / "tests.json").read_text())
    edit(report["runs"][0])
    report["passed"] = report["runs"][0]["passed"]
    (checked / "tests.json").write_text(json.dumps(report))


def fail_one(run: dict[str, object]) -> None:
    run["passed"] = False
    cases = run["cases"]
    assert isinstance(cases, list)
    cases[0].update(passed=False, message="it went wrong")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (fail_one, r"1 of 15 checks failed; the first is .* \(wheel, Node .*\): it went wrong"),
        (lambda run: run.update(package="0" * 64), "has checked is another package: 000000000000"),
        (lambda run: run.update(cases=[]), "0 of 0 checks failed; the first is there is no case"),
    ],
)
def test_what_did_not_pass_is_not_released(
    parts: Parts, tmp_path: Path, edit: Callable[[dict[str, object]], object], said: str
) -> None:
    change(parts.checked, edit)
    with pytest.raises(Finding, match=said):
        assemble(parts.prepared, [parts.checked], tmp_path / "dist")
    assert not (tmp_path / "dist" / "SHA256SUMS").exists()


def test_a_package_that_is_not_the_prepared_one_is_not_released(parts: Parts, tmp_path: Path) -> None:
    (parts.prepared / "exprc-1.0.0.zip").write_bytes(b"other")
    with pytest.raises(Finding, match=r"exprc-1\.0\.0\.zip is not the one that was prepared"):
        assemble(parts.prepared, [parts.checked], tmp_path / "dist")


def test_a_package_that_is_not_the_prepared_one_does_not_pass(
    parts: Parts, toolchain: Toolchain, tmp_path: Path
) -> None:
    with next(parts.prepared.glob("*.whl")).open("ab") as wheel:
        wheel.write(b"more")
    report = check(
        parts.prepared, "node", browser=None, runtime=toolchain, folder=tmp_path / "c", progress=Progress(quiet=True)
    )
    assert not report.passed
    assert "SHA-256" in report.cases[0].message


def test_nothing_is_released_without_a_check_or_with_one_twice(parts: Parts, tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="after it was checked"):
        assemble(parts.prepared, [], tmp_path / "dist")
    with pytest.raises(Finding, match="two checks in node"):
        assemble(parts.prepared, [parts.checked, parts.checked], tmp_path / "dist")
    with pytest.raises(WrongUsage, match="holds no check"):
        assemble(parts.prepared, [tmp_path], tmp_path / "dist")
    with pytest.raises(WrongUsage, match="is no prepared package"):
        assemble(tmp_path, [parts.checked], tmp_path / "dist")
