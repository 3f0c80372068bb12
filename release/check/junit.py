"""The report of a check as JUnit XML, in the dialect of Jenkins that GitHub actions, GitLab and IDEs read too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree

from release.check.model import CaseResult, CheckReport

# What XML 1.0 cannot say at all, not even escaped.
_ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: CheckReport) -> str:
    """Return an XML document with a test suite for each loader and a test case for each case.

    Characters that XML does not allow are written as ``\\x1b``. The document is valid against Jenkins' junit-10.xsd.
    """
    root = ElementTree.Element("testsuites", {"name": "check", **_counts(report.results, report.seconds)})
    for loader, results in groupby(report.results, key=lambda result: result.loader):
        root.append(_suite(loader, list(results), report))
    return _document(root)


def merge(documents: Sequence[str]) -> str:
    """Return one document with the suites of several that ``to_junit`` has written."""
    roots = [ElementTree.fromstring(document) for document in documents]  # noqa: S314 - our own
    whole = ElementTree.Element("testsuites", {"name": "check"})
    for count in ("tests", "failures", "errors"):
        whole.set(count, str(sum(int(root.get(count, "0")) for root in roots)))
    whole.set("time", f"{sum(float(root.get('time', '0')) for root in roots):.3f}")
    whole.extend(suite for root in roots for suite in root)
    return _document(whole)


def _suite(loader: str, results: Sequence[CaseResult], report: CheckReport) -> ElementTree.Element:
    seconds = sum(result.load_seconds + result.run_seconds for result in results)
    suite = ElementTree.Element(
        "testsuite", {"name": f"{report.where}, {loader}", "skipped": "0", **_counts(results, seconds)}
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("runtime", report.runtime), ("pyodide", report.pyodide_version)):
        ElementTree.SubElement(properties, "property", name=name, value=_legal(value))
    suite.extend(_case(result) for result in results)
    return suite


def _document(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(result: CaseResult) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", name=_legal(result.name), classname=f"check.{result.loader}", time=f"{result.run_seconds:.3f}"
    )
    if not result.passed:
        message = _legal(result.message)
        ElementTree.SubElement(case, "failure", type="failed", message=message).text = message
    summary = f"loaded in {result.load_seconds:.3f} s, peak memory {result.peak_memory} bytes\n"
    ElementTree.SubElement(case, "system-out").text = summary + _legal(result.output)
    return case


def _counts(results: Sequence[CaseResult], seconds: float) -> dict[str, str]:
    failures = sum(not result.passed for result in results)
    return {"tests": str(len(results)), "failures": str(failures), "errors": "0", "time": f"{seconds:.3f}"}


def _legal(text: str) -> str:
    return _ILLEGAL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
