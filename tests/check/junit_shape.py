"""What Jenkins' junit-10.xsd asks of a document, for want of an XSD validator among our dependencies."""

import re
from xml.etree import ElementTree

_CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"failure", "system-out"},
}
_ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "time", "tests", "failures", "errors", "skipped"},
    "property": {"name", "value"},
    "testcase": {"name", "classname", "time"},
    "failure": {"type", "message"},
}


def parse(document: str) -> list[ElementTree.Element]:
    """Return the test suites of a JUnit document after checking its shape and its sums."""
    root = ElementTree.fromstring(document)  # noqa: S314 - our own
    for element in root.iter():
        assert {child.tag for child in element} <= _CHILDREN.get(element.tag, set())
        assert set(element.attrib) == _ATTRIBUTES.get(element.tag, set())
        assert re.fullmatch(r"\d+\.\d{3}", element.get("time", "0.000"))
    suites = list(root)
    for suite in suites:
        assert len(suite.findall("testcase")) == int(suite.attrib["tests"])
        assert len(suite.findall("testcase/failure")) == int(suite.attrib["failures"])
    for count in ("tests", "failures"):
        assert int(root.attrib[count]) == sum(int(suite.attrib[count]) for suite in suites)
    return suites
