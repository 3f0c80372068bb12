from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from release.check.junit import to_junit
from release.check.model import CaseResult, CheckReport
from tests.check.junit_shape import parse

GOOD = CaseResult(
    name="one", loader="wheel", passed=True, message="", load_seconds=1.5, run_seconds=0.25, peak_memory=2_000
)


def report(*results: CaseResult) -> CheckReport:
    return CheckReport(results=results, where="node", runtime="Node 24.0.0", pyodide_version="315.0.0", seconds=3)


def test_each_loader_is_a_suite() -> None:
    bad = replace(GOOD, loader="zip", passed=False, message='no "such" <key>', output="trace\n")
    wheel, zipped = parse(to_junit(report(GOOD, replace(GOOD, name="two"), bad)))
    assert [case.get("name") for case in wheel.iter("testcase")] == ["one", "two"]
    assert (wheel.get("name"), wheel.get("time"), zipped.get("failures")) == ("node, wheel", "3.500", "1")
    assert {p.get("name"): p.get("value") for p in wheel.iter("property")} == {
        "runtime": "Node 24.0.0",
        "pyodide": "315.0.0",
    }
    (failure,) = zipped.iter("failure")
    assert failure.get("message") == failure.text == 'no "such" <key>'
    assert zipped.findtext("testcase/system-out") == "loaded in 1.500 s, peak memory 2000 bytes\ntrace\n"


def test_a_report_without_results_is_a_document() -> None:
    assert parse(to_junit(report())) == []


def test_what_xml_cannot_say_is_escaped() -> None:
    (suite,) = parse(to_junit(report(replace(GOOD, output="\x1b[31m \x00 \ud800 \uffff ]]> &amp; é 🙂\t\n"))))
    output = suite.findtext("testcase/system-out") or ""
    assert output.endswith("\\x1b[31m \\x00 \\xd800 \\xffff ]]> &amp; é 🙂\t\n")


@given(st.text(), st.text(st.characters(exclude_categories=[])))
def test_any_text_gives_a_document_that_parses(message: str, output: str) -> None:
    parse(to_junit(report(replace(GOOD, passed=False, message=message, output=output))))
