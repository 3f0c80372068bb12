import json
from pathlib import Path

import jsonschema
import pytest

from release.errors import Finding, WrongUsage
from release.manifest.checksums import checksums, verify
from release.manifest.models import REPORTS, SCHEMAS, Asset, CasesReport, RunReport, schema_of, to_json


@pytest.mark.parametrize("name", REPORTS)
def test_the_schema_in_the_repository_is_the_model_s(name: str) -> None:
    written = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    assert written == schema_of(name), "run `python -m release.manifest.models`"
    jsonschema.Draft202012Validator.check_schema(written)


def test_the_schema_refuses_what_the_model_refuses() -> None:
    run = RunReport(
        package="0" * 64, where="node", runtime="Node 24", pyodide="315", passed=True, seconds=1.0, cases=()
    )
    report = CasesReport(passed=True, runs=(run,))
    validator = jsonschema.Draft202012Validator(schema_of("tests"))
    good = json.loads(to_json(report))
    validator.validate(good)
    (told,) = good["runs"]
    for spoilt in (
        {**good, "extra": 1},
        {**good, "runs": [{**told, "seconds": -1}]},
        {**good, "runs": [{**told, "where": "nowhere"}]},
        {**good, "schema_version": 1},
    ):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(spoilt)
        with pytest.raises(ValueError, match="validation error"):
            CasesReport.model_validate(spoilt)


@pytest.mark.parametrize("name", ["a/b", "", " leading", "back\\slash"])
def test_an_asset_has_a_bare_name(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        Asset(name=name, size=1, sha256="0" * 64)


def test_checksums_are_what_sha256sum_reads(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "a file").write_text("one")
    (tmp_path / "b").write_text("two")
    (tmp_path / "SHA256SUMS").write_text(checksums(tmp_path))
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True)
    assert verify(tmp_path) == 2


def test_checksums_notice_what_differs_what_is_missing_and_what_is_more(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    with pytest.raises(WrongUsage, match="no readable SHA256SUMS"):
        verify(tmp_path)
    (tmp_path / "SHA256SUMS").write_text(checksums(tmp_path))
    (tmp_path / "a").write_text("two")
    with pytest.raises(Finding, match="a differs"):
        verify(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    with pytest.raises(Finding, match="a is missing"):
        verify(tmp_path)
    (tmp_path / "b").rename(tmp_path / "a")
    (tmp_path / "a").write_text("one")
    (tmp_path / "c").touch()
    with pytest.raises(Finding, match="c is not listed"):
        verify(tmp_path)
