"""Release notes say what has changed, and nothing in a manifest can make them say something else."""

from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from release.errors import WrongUsage
from release.manifest.models import CasesReport, Manifest, to_json
from release.pipeline import Pipeline
from release.publish.notes import release_notes


@pytest.fixture(scope="module")
def released(pipeline: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes") / "dist"
    pipeline.release(folder)
    return folder


def notes(folder: Path, previous: Path | None = None) -> str:
    return release_notes(folder, repository="owner/name", tag="v1.0.0", workflow="release.yml", previous=previous)


def before(released: Path, folder: Path, *, manifest: Any = None, tests: Any = None) -> Path:
    """Write a release like ``released``, but for what the two functions change in copies of its reports."""
    folder.mkdir()
    told = Manifest.model_validate_json((released / "manifest.json").read_text())
    cases = CasesReport.model_validate_json((released / "tests.json").read_text())
    (folder / "manifest.json").write_text(to_json(manifest(told) if manifest else told))
    (folder / "tests.json").write_text(to_json(tests(cases) if tests else cases))
    return folder


def test_the_first_release(released: Path) -> None:
    text = notes(released)
    assert "This is the first release" in text
    assert "triton-wasm verify v1.0.0 --repository owner/name --workflow release.yml" in text
    assert "15 of 15 checks passed" in text
    assert notes(released) == text


def test_no_more_than_a_screen_before_the_details(released: Path, tmp_path: Path) -> None:
    for text in (notes(released), notes(released, before(released, tmp_path / "old"))):
        head, details = text.split("<details>")
        assert len(head.splitlines()) <= 40
        assert details.rstrip().endswith("</details>")
        tokens = MarkdownIt("commonmark").enable("table").parse(details.partition("</summary>")[2])
        assert sum(token.type == "table_open" for token in tokens) == 2


def test_what_has_changed(released: Path, tmp_path: Path) -> None:
    def other(manifest: Manifest) -> Manifest:
        triton = manifest.pins.triton.model_copy(update={"commit": "a" * 40})
        pins = manifest.pins.model_copy(update={"triton": triton})
        ladder = tuple(rung.model_copy(update={"brotli": (rung.brotli or 0) * 2}) for rung in manifest.ladder)
        return manifest.model_copy(update={"pins": pins, "version": "0.9", "ladder": ladder})

    def fewer(report: CasesReport) -> CasesReport:
        (run,) = report.runs
        kept = tuple(case for case in run.cases if case.name != "long-source")
        return report.model_copy(update={"runs": (run.model_copy(update={"cases": kept}),)})

    text = notes(released, before(released, tmp_path / "old", manifest=other, tests=fewer))
    assert "Since exprc 0.9:" in text
    assert "- Triton: `aaaaaaaaaaaa` →" in text
    assert "- cases: added long\\-source" in text
    assert "-50.0 %" in text
    assert "- raw:" in text and "unchanged" in text


def test_nothing_has_changed(released: Path, tmp_path: Path) -> None:
    text = notes(released, before(released, tmp_path / "old"))
    assert "→" not in text
    assert "added" not in text.split("<details>")[0]


def test_a_manifest_cannot_write_markup(released: Path, tmp_path: Path) -> None:
    def evil(manifest: Manifest) -> Manifest:
        bad = "</details><script>alert(1)</script>\n# [x](javascript:1) ![](http://evil) @everyone"
        return manifest.model_copy(update={"version": bad, "accepted": (bad,)})

    text = notes(before(released, tmp_path / "evil", manifest=evil))
    html = MarkdownIt("commonmark").render(text)
    assert "<script>" not in html
    assert 'href="javascript' not in html and "<img" not in html
    assert text.count("</details>") == 1


def test_a_folder_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="does not say what it is"):
        notes(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(WrongUsage, match="does not say what it is"):
        notes(tmp_path)
