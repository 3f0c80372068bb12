"""The comparison for humans: what was compared with what, then only what is not as it should be."""

from __future__ import annotations

from collections import Counter

from release.check.oracle.model import OracleReport, TextReport

_MOST_SHOWN = 10


def to_markdown(report: OracleReport) -> str:
    """Return the report as Markdown."""
    counts = Counter(text.status for text in report.texts)
    ignored = Counter(text.ignored for text in report.texts if text.status == "identical")
    lines = [
        "# Comparison with the native oracle",
        "",
        f"The oracle is {report.oracle}.",
        f"**{'Passed' if report.passed else 'Failed'}:** {counts['identical']} of {len(report.texts)} texts are"
        f" identical: {ignored['nothing']} to the byte as they are, {ignored['paths']} once paths are made alike"
        f" and {ignored['locations']} without line numbers.",
    ]
    if report.weak:
        lines += [
            "",
            "**This is the weaker oracle:** the wheel is of other sources and another LLVM than the module, and line"
            " numbers are not compared. A difference may be theirs; only equality says something.",
        ]
    if report.assembled:
        for tool in sorted({one.assembler for one in report.assembled}):
            results = [one for one in report.assembled if one.assembler == tool]
            lines += ["", f"`{tool}` takes {sum(one.passed for one in results)} of {len(results)} texts."]
    lines += _list("The oracle itself failed", report.faults)
    lines += _list("Accepted differences that are none any more, to be removed", report.stale)
    if differing := [text for text in report.texts if text.status != "identical"]:
        lines += [
            "",
            "| kernel | target | stage | | line | suspected cause |",
            "| --- | --- | --- | --- | ---: | --- |",
        ]
        lines += [_row(text) for text in differing]
    shown = [text for text in differing if text.difference]
    lines += [line for text in shown[:_MOST_SHOWN] for line in _context(text)]
    if len(shown) > _MOST_SHOWN:
        lines += ["", f"{len(shown) - _MOST_SHOWN} more are in oracle.json."]
    if rejected := [one for one in report.assembled if not one.passed]:
        lines += ["", "| kernel | target | assembler | complaint |", "| --- | --- | --- | --- |"]
        lines += [f"| {one.kernel} | {one.target} | {one.assembler} | {_cell(one.message)} |" for one in rejected]
    return "\n".join(lines) + "\n"


def _list(title: str, entries: tuple[str, ...]) -> list[str]:
    return ["", f"{title}:", "", *(f"- {entry}" for entry in entries)] if entries else []


def _row(text: TextReport) -> str:
    line = str(text.difference.line) if text.difference else ""
    status = "accepted" if text.accepted else text.status
    cause = f"{text.cause}; accepted: {text.reason}" if text.reason else text.cause or ""
    return f"| {text.kernel} | {text.target} | {text.stage} | {status} | {line} | {_cell(cause)} |"


def _context(text: TextReport) -> list[str]:
    assert text.difference is not None  # noqa: S101 - for the type checker: only called with one
    sides = (("-", text.difference.ours), ("+", text.difference.native))
    shown = [f"{mark} {line}" for mark, side in sides for line in side]
    name = f"{text.kernel}/{text.target}/{text.stage}, line {text.difference.line}: `-` the module, `+` the oracle"
    return ["", name, "", "````diff", *shown, "````"]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
