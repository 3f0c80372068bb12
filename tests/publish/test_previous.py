"""A release is compared with the latest one of its repository, if that can be read; and it is published anyway."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from release.artifacts import write_atomically
from release.errors import BrokenEnvironment
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.manifest.models import CasesReport, Manifest, ToolchainRecord, to_json
from release.pins.load import load_pins, load_profile
from release.progress import Progress
from release.publish import previous
from release.publish.notes import Told
from release.publish.previous import previous_release
from release.retry import Retry
from tests.publish.conftest import TAG, Impatient, Publishing
from tests.toolchain.stand_ins import CLOSED

ORACLE = '{"schema_version": 1, "oracle": "Triton"}'


class Notes(Progress):
    """Keeps what a user would read."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def manifest(version: str) -> str:
    """A manifest that says no more than it has to."""
    pins = load_pins("preview")
    tools = ToolchainRecord(
        provider="path",
        emscripten="6.0.5",
        emscripten_digest="",
        binaryen="131",
        binaryen_digest="",
        node="24",
        python_include_digest="",
        mismatches=(),
    )
    return to_json(
        Manifest(
            name="triton",
            version=version,
            toolkit_version="0.1.0",
            pins=pins,
            profile=load_profile("release", pins),
            toolchain=tools,
            variant="none",
            why="",
            ladder=(),
            assets=(),
            stages=(),
        )
    )


TESTS = to_json(CasesReport(passed=True, runs=()))


@pytest.fixture
def at_github(publishing: Publishing, monkeypatch: pytest.MonkeyPatch) -> Publishing:
    monkeypatch.setenv("GITHUB_SERVER_URL", publishing.github.url)
    return publishing


def publish(publishing: Publishing, folder: Path, files: Mapping[str, str | bytes], *, tag: str = TAG) -> None:
    """Publish a release of these files, and forget what was asked for that."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    write_atomically(folder / CHECKSUMS, checksums(folder))
    if tag != TAG:
        publishing.github.tag(publishing.repository, tag)
    publishing.publish(tag=tag, folder=folder)
    publishing.github.front.seen.requests.clear()


def fetch(publishing: Publishing, into: Path) -> tuple[Path | None, list[str]]:
    """Look for the release to compare with; return its folder, and what was said."""
    notes = Notes()
    into.mkdir()
    retry = Retry(notes, clock=publishing.clock)
    return previous_release(publishing.repository.name, into, progress=notes, retry=retry), notes.lines


def test_before_the_first_release_there_is_nothing_to_compare_with(at_github: Publishing, tmp_path: Path) -> None:
    assert fetch(at_github, tmp_path / "old") == (None, [])
    assert list((tmp_path / "old").iterdir()) == []


def test_the_reports_of_the_latest_release_are_fetched_and_nothing_else(at_github: Publishing, tmp_path: Path) -> None:
    publish(
        at_github, tmp_path / "released", {"manifest.json": manifest("1.0"), "tests.json": TESTS, "x.zip": b"package"}
    )
    found, said = fetch(at_github, tmp_path / "old")
    assert (found, said) == (tmp_path / "old", [])
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == ["manifest.json", "tests.json"]
    told = Told.read(tmp_path / "old")
    assert (told.manifest.version, told.tests.passed, told.oracle) == ("1.0", True, None)
    assert at_github.github.front.seen.writes == []


def test_of_several_it_is_the_newest_that_is_no_prerelease_and_no_draft(at_github: Publishing, tmp_path: Path) -> None:
    for version in ("1.2", "1.3", "2.0rc1"):
        files = {"manifest.json": manifest(version), "tests.json": TESTS}
        publish(at_github, tmp_path / version, files, tag=f"v{version}")
    publish(at_github, tmp_path / "llvm", {"llvm.json": "{}"}, tag="llvm-0123456789abcdef")
    at_github.host.create_draft("v1.4", title="v1.4", body="", prerelease=False)
    found, _ = fetch(at_github, tmp_path / "old")
    assert found is not None and Told.read(found).manifest.version == "1.3"


def test_releases_before_a_release_alone_are_none(at_github: Publishing, tmp_path: Path) -> None:
    files = {"manifest.json": manifest("2.0rc1"), "tests.json": TESTS}
    publish(at_github, tmp_path / "released", files, tag="v2.0rc1")
    assert fetch(at_github, tmp_path / "old") == (None, [])


def test_the_releases_of_another_repository_do_not_count(at_github: Publishing, tmp_path: Path) -> None:
    publish(at_github, tmp_path / "released", {"manifest.json": manifest("1.0"), "tests.json": TESTS})
    other = at_github.github.new_repository(f"{at_github.repository.name.split('/')[1]}-other")
    (tmp_path / "old").mkdir()
    assert previous_release(other.name, tmp_path / "old", progress=Notes()) is None


@pytest.mark.parametrize("missing", ["manifest.json", "tests.json"])
def test_a_release_without_a_report_is_of_somebody_else(at_github: Publishing, tmp_path: Path, missing: str) -> None:
    files = {"manifest.json": manifest("1.0"), "tests.json": TESTS, "oracle.json": ORACLE}
    del files[missing]
    publish(at_github, tmp_path / "released", files)
    assert fetch(at_github, tmp_path / "old")[0] is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", "{}"),
        ("manifest.json", manifest("1.0")[:-100]),
        ("manifest.json", manifest("1.0").replace('"schema_version": 1,', '"schema_version": 9,', 1)),
        ("tests.json", "not json"),
        ("tests.json", "[]"),
        ("oracle.json", ORACLE),
    ],
)
def test_reports_of_another_toolkit_are_a_note_and_no_failure(
    at_github: Publishing, tmp_path: Path, name: str, content: str
) -> None:
    files = {"manifest.json": manifest("1.0"), "tests.json": TESTS, name: content}
    publish(at_github, tmp_path / "released", files)
    found, said = fetch(at_github, tmp_path / "old")
    assert found is None
    (line,) = said
    assert line.startswith("  The latest release is not compared with: ") and "ValidationError" in line


def test_reports_that_are_no_text_are_a_note_too(at_github: Publishing, tmp_path: Path) -> None:
    publish(at_github, tmp_path / "released", {"manifest.json": b"\xff\xfe{\x00}\x00", "tests.json": TESTS})
    assert fetch(at_github, tmp_path / "old")[0] is None


def test_reports_that_are_too_large_are_a_note_too(
    at_github: Publishing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(at_github, tmp_path / "released", {"manifest.json": manifest("1.0"), "tests.json": TESTS})
    monkeypatch.setattr(previous, "_MAXIMUM", 100)
    assert fetch(at_github, tmp_path / "old")[0] is None


@pytest.mark.parametrize("fault", ["500", "502", "503", "429", "refused"])
def test_a_server_that_stumbles_is_asked_again(at_github: Publishing, tmp_path: Path, fault: str) -> None:
    publish(at_github, tmp_path / "released", {"manifest.json": manifest("1.0"), "tests.json": TESTS})
    at_github.github.front.seen.faults = {1: fault, 3: fault}
    at_github.clock.waited.clear()
    found, said = fetch(at_github, tmp_path / "old")
    assert found is not None and Told.read(found).manifest.version == "1.0"
    assert len(said) == len(at_github.clock.waited) == 2
    assert [line.strip().partition(":")[0] for line in said] == ["manifest.json", "tests.json"]


def test_a_report_that_comes_by_halves_is_fetched_again(at_github: Publishing, tmp_path: Path) -> None:
    publish(at_github, tmp_path / "released", {"manifest.json": manifest("1.0"), "tests.json": TESTS})
    at_github.github.front.seen.faults = {1: "reset in the body", 2: "lying length"}
    found, _ = fetch(at_github, tmp_path / "old")
    assert found is not None and (found / "manifest.json").read_text() == manifest("1.0")


def test_no_network_is_no_first_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", CLOSED)
    notes = Notes()
    with pytest.raises(BrokenEnvironment, match=r"^manifest\.json: 127\.0\.0\.1:9: ConnectionError, 8 times\.$") as no:
        previous_release("owner/name", tmp_path, progress=notes, retry=Retry(notes, clock=Impatient()))
    assert no.value.remedy
