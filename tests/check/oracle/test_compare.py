"""Comparing folders of texts: what is a difference, what it is suspected to come from, and what may excuse it."""

import json
from pathlib import Path

import jsonschema
import pytest

from release.check.oracle.compare import compare
from release.check.oracle.known import known_differences
from release.check.oracle.markdown import to_markdown
from release.check.oracle.model import Assembled, OracleReport, TextReport
from release.check.oracle.texts import Key, Kind, gather, read_texts
from release.errors import WrongUsage
from release.manifest.models import schema_of, to_json
from tests.check.oracle.texts import AMDGCN, PTX, ttir, write

NAME = "scale/cuda-80-32/ttir"
KEY = Key("scale", "cuda-80-32", "ttir")


def compared(
    tmp_path: Path, ours: dict[str, str], native: dict[str, str], *, kind: Kind = "native", excuse: Key | None = None
) -> OracleReport:
    known = {excuse: "Explained."} if excuse else {}
    left, right = write(tmp_path / "ours", ours), write(tmp_path / "native", native)
    return compare(left, right, kind=kind, what="a native build", known=known)


def only(report: OracleReport) -> TextReport:
    assert len(report.texts) == 1
    return report.texts[0]


def test_equal_texts_pass_and_nothing_had_to_be_ignored(tmp_path: Path) -> None:
    texts = {NAME: ttir(), "scale/cuda-80-32/ptx": PTX, "scale/hip-gfx942-64/amdgcn": AMDGCN}
    report = compared(tmp_path, texts, texts)
    assert report.passed
    assert [text.ignored for text in report.texts] == ["nothing"] * 3
    assert "3 of 3 texts are identical: 3 to the byte" in to_markdown(report)


def test_the_places_of_the_program_and_of_triton_do_not_matter_and_that_is_said(tmp_path: Path) -> None:
    native = {NAME: ttir(folder="/tmp/a-b/c.d/", site="/venv/lib/python3.13/site-packages/")}  # noqa: S108
    report = compared(tmp_path, {NAME: ttir()}, native)
    assert report.passed
    assert only(report).ignored == "paths"
    assert "0 to the byte as they are, 1 once paths" in to_markdown(report)


def test_another_file_below_those_places_is_a_difference(tmp_path: Path) -> None:
    report = compared(tmp_path, {NAME: ttir()}, {NAME: ttir().replace("ours/scale.py", "ours/other.py")})
    assert not report.passed
    assert only(report).cause == "path: the name of a file, or its length"


def test_line_numbers_are_compared_but_not_with_a_wheel_and_that_is_said(tmp_path: Path) -> None:
    ours, theirs = {NAME: ttir()}, {NAME: ttir(line=12)}
    assert not compared(tmp_path, ours, theirs).passed
    report = compared(tmp_path, ours, theirs, kind="wheel")
    assert report.passed
    assert only(report).ignored == "locations"
    assert "weaker oracle" in to_markdown(report)


@pytest.mark.parametrize("text", [ttir(), PTX])
def test_a_wheel_hides_no_other_difference(tmp_path: Path, text: str) -> None:
    stage = "ptx" if text is PTX else "ttir"
    spoilt = text.replace("add.s32", "sub.s32").replace("constant 8", "constant 9")
    report = compared(tmp_path, {f"a/cuda-80-32/{stage}": text}, {f"a/cuda-80-32/{stage}": spoilt}, kind="wheel")
    assert only(report).status == "differs"
    assert only(report).difference is not None


@pytest.mark.parametrize(
    ("ours", "native", "cause"),
    [
        ("a\nx : i32\n", "a\nx : i64\n", "pointer width: 32 against 64"),
        ("st.param.b32 [p], %r1", "st.param.b64 [p], %r1", "pointer width: 32 against 64"),
        ("limit 18446744071562067968", "limit 2147483648", "pointer width: a number cut"),
        ("mask 0x80000000", "mask 0xFFFFFFFF80000000", "pointer width: a number cut"),
        ("x = 0x7FF0000000000000", "x = 0xFFF0000000000000", "none of the known"),
        ("a\nb\nc", "b\na\nc", "order"),
        ("x = 1.0", "x = 1.000000e+00", "number formatting"),
        ("x = 0x3FF0000000000000", "x = 1.000000e+00", "number formatting"),
        ("mov 0f3F800000", "mov 0f3F800001", "number formatting"),
        ("%4 = a\n%5 = b %4", "%9 = a\n%5 = b %9", "numbering"),
        ("a\r\nb", "a\nb", "line ends"),
        ("a", "a\n", "line ends"),
        ("x = 1", "x = 2", "none of the known"),
        ("x = 1.5", "x = 2.5", "none of the known"),
        ("a\nb", "a\nb\nc", "none of the known"),
        ("add i32", "sub i64", "none of the known"),
    ],
)
def test_causes_are_suspected(tmp_path: Path, ours: str, native: str, cause: str) -> None:
    for name, text in (("ours", ours), ("native", native)):
        (tmp_path / name / "k" / "cuda-80-32").mkdir(parents=True)
        (tmp_path / name / "k" / "cuda-80-32" / "llir").write_bytes(text.encode())
    found = only(compare(tmp_path / "ours", tmp_path / "native", kind="native", what=""))
    assert found.status == "differs"
    assert found.cause
    assert found.cause.startswith(cause)


def test_the_first_differing_line_is_shown_with_what_is_around_it(tmp_path: Path) -> None:
    report = compared(tmp_path, {NAME: ttir()}, {NAME: ttir().replace("8 : i64", "8 : i32")})
    difference = only(report).difference
    assert difference
    assert difference.line == 5
    assert difference.ours[2] == "    %size = arith.constant 8 : i64 loc(#loc1)"
    assert difference.native[2] == "    %size = arith.constant 8 : i32 loc(#loc1)"
    assert len(difference.ours) == len(difference.native) == 5
    assert "+     %size = arith.constant 8 : i32" in to_markdown(report)


def test_of_a_long_line_the_part_that_differs_is_shown(tmp_path: Path) -> None:
    long = "0, " * 500
    report = compared(tmp_path, {NAME: f"{long}1{long}"}, {NAME: f"{long}2{long}"})
    difference = only(report).difference
    assert difference
    assert "1" in difference.ours[0]
    assert "2" in difference.native[0]
    assert max(map(len, (*difference.ours, *difference.native))) <= 210


def test_only_the_first_differences_are_shown_in_full(tmp_path: Path) -> None:
    names = [f"k{number:02}/cuda-80-32/ptx" for number in range(30)]
    text = to_markdown(compared(tmp_path, dict.fromkeys(names, "a"), dict.fromkeys(names, "b")))
    assert text.count("| differs |") == 30
    assert text.count("````diff") == 10
    assert "20 more are in oracle.json." in text


def test_what_only_one_of_them_made_is_a_difference(tmp_path: Path) -> None:
    both = {NAME: ttir()}
    report = compared(tmp_path, {**both, "a/cuda-80-32/ptx": PTX}, {**both, "b/cuda-80-32/ptx": PTX})
    assert not report.passed
    found = {text.kernel: (text.status, text.cause) for text in report.texts}
    assert found["a"] == ("extra", "not made by the oracle")
    assert found["b"] == ("missing", "not made by the module")


def test_a_folder_without_texts_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="holds no KERNEL/TARGET/STAGE"):
        compared(tmp_path, {NAME: ttir()}, {"scale/readme": "no text"})


def test_a_known_difference_passes_with_its_reason(tmp_path: Path) -> None:
    report = compared(tmp_path, {NAME: ttir()}, {NAME: ttir(line=12)}, excuse=KEY)
    assert report.passed
    assert only(report).status == "differs"
    assert only(report).reason == "Explained."
    assert "accepted: Explained." in to_markdown(report)


@pytest.mark.parametrize("excuse", [KEY, Key("gone", "cuda-80-32", "ptx")], ids=["no longer differs", "is not there"])
def test_a_stale_excuse_fails(tmp_path: Path, excuse: Key) -> None:
    report = compared(tmp_path, {NAME: ttir()}, {NAME: ttir()}, excuse=excuse)
    assert not report.passed
    assert report.stale == (str(excuse),)
    assert f"- {excuse}" in to_markdown(report)


def test_an_excuse_for_one_text_excuses_no_other(tmp_path: Path) -> None:
    ours, native = {NAME: "a", "b/cuda-80-32/ptx": "a"}, {NAME: "b", "b/cuda-80-32/ptx": "b"}
    assert not compared(tmp_path, ours, native, excuse=KEY).passed


def test_faults_of_the_oracle_and_of_an_assembler_fail(tmp_path: Path) -> None:
    folder = write(tmp_path / "texts", {NAME: ttir()})
    wrong = Assembled(kernel="a", target="cuda-80-32", stage="ptx", assembler="ptxas", passed=False, message="x | y")
    for faults, assembled in ((["matmul: no"], []), ([], [wrong])):
        report = compare(folder, folder, kind="native", what="", faults=faults, assembled=assembled)
        assert not report.passed
        text = to_markdown(report)
        assert "**Failed:**" in text
        assert "- matmul: no" in text or "| a | cuda-80-32 | ptxas | x \\| y |" in text


def test_the_report_survives_its_file_and_has_a_schema(tmp_path: Path) -> None:
    report = compared(tmp_path, {NAME: ttir()}, {NAME: ttir(line=12)})
    written = to_json(report)
    assert OracleReport.model_validate_json(written) == report
    jsonschema.validate(json.loads(written), schema_of("oracle"))
    validator = jsonschema.Draft202012Validator(OracleReport.model_json_schema(mode="serialization"))
    validator.validate(json.loads(written))
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**json.loads(written), "extra": 1})


def test_what_cases_wrote_is_gathered_for_one_loader(tmp_path: Path) -> None:
    write(tmp_path / "keep/wheel/scale/files", {NAME: "wheel"})
    write(tmp_path / "keep/wheel/v9/files", {"gfx950-v9-beyond-hotloop.llir": "supplied"})
    write(tmp_path / "keep/zip/scale/files", {NAME: "zip"})
    gather(tmp_path / "keep", "wheel", tmp_path / "ours")
    supplied = Key("gfx950-v9-beyond-hotloop", "hip-gfx950-64", "llir")
    assert read_texts(tmp_path / "ours") == {KEY: "wheel", supplied: "supplied"}
    with pytest.raises(WrongUsage, match="no files of cases loaded as lock"):
        gather(tmp_path / "keep", "lock", tmp_path / "ours")


def test_known_differences_are_read_by_pin_set(tmp_path: Path) -> None:
    path = tmp_path / "preview.toml"
    path.write_text('[[difference]]\nkernel = "a"\ntarget = "cuda-80-32"\nstage = "ptx"\nreason = "Explained."\n')
    assert known_differences("preview", tmp_path) == {Key("a", "cuda-80-32", "ptx"): "Explained."}
    assert known_differences("another", tmp_path) == {}
    path.write_text('[[difference]]\nkernel = "a"\ntarget = "cuda-80-32"\nstage = "ptx"\n')
    with pytest.raises(WrongUsage, match="reason: missing"):
        known_differences("preview", tmp_path)


def test_the_file_of_the_preview_pins_can_be_read() -> None:
    assert isinstance(known_differences("preview"), dict)
