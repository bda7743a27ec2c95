"""A report in the formats of other programs: GitHub annotations, SARIF, JUnit, and the badge of shields.io."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from truekeep import __version__
from truekeep.check.alarm import FalseClaim
from truekeep.check.run import CheckReport
from truekeep.text.unicode import printable

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "gone": "A document names something that the repository no longer has.",
    "moved": "A document names the old place of something that moved.",
    "changed": "A document states a value that changed.",
}
_LEVELS = {"high": "error", "medium": "warning", "low": "note"}


def as_github(report: CheckReport) -> Iterator[str]:
    """Workflow commands, which GitHub shows as annotations beside the lines."""
    for alarm in report.alarms:
        place = f"file={_escape(alarm.path)},line={alarm.line},col={alarm.column},endColumn={alarm.end_column}"
        title = _escape(f"truekeep: {alarm.verdict}")
        level = "notice" if alarm.confidence == "low" else "warning" if alarm.confidence == "medium" else "error"
        yield f"::{level} {place},title={title}::{_escape_message(printable(alarm.message))}"


def _escape_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape(text: str) -> str:
    return _escape_message(printable(text)).replace(":", "%3A").replace(",", "%2C")


def as_sarif(report: CheckReport) -> Iterator[str]:
    """SARIF 2.1.0, for code scanning."""
    rules = [{"id": rule, "shortDescription": {"text": text}} for rule, text in _RULES.items()]
    run = {
        "tool": {"driver": {"name": "truekeep", "semanticVersion": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(alarm) for alarm in report.alarms],
    }
    yield json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _sarif_result(alarm: FalseClaim) -> dict[str, Any]:
    region = {"startLine": alarm.line, "startColumn": alarm.column, "endColumn": alarm.end_column}
    uri = quote(alarm.path, errors="surrogateescape")
    place = {"artifactLocation": {"uri": uri}, "region": region}
    digest = hashlib.sha256("\0".join(alarm.identity).encode("utf-8", "surrogateescape")).hexdigest()
    result: dict[str, Any] = {
        "ruleId": alarm.verdict,
        "level": _LEVELS[alarm.confidence],
        "message": {"text": printable(alarm.message)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"claim/v1": digest[:32]},
    }
    if alarm.replacement:
        edit = {"deletedRegion": region, "insertedContent": {"text": alarm.replacement}}
        change = {"artifactLocation": {"uri": uri}, "replacements": [edit]}
        result["fixes"] = [{"description": {"text": f"Write {alarm.replacement}"}, "artifactChanges": [change]}]
    return result


def as_junit(report: CheckReport) -> Iterator[str]:
    """JUnit XML: a test for each alarm, and one that passes if there is none."""
    failures = len(report.alarms)
    counts = {"tests": str(max(1, failures)), "failures": str(failures)}
    suites = Element("testsuites", {"name": "truekeep check", **counts})
    suite = SubElement(suites, "testsuite", {"name": printable(report.repository), "errors": "0", **counts})
    for alarm in report.alarms:
        path = printable(alarm.path)
        name = printable(f"{alarm.path}:{alarm.line}: {alarm.claim}")
        case = SubElement(suite, "testcase", classname=path, name=name, file=path, line=str(alarm.line))
        SubElement(case, "failure", type=alarm.verdict, message=printable(alarm.message))
    if not failures:
        SubElement(suite, "testcase", classname="truekeep", name=f"{report.claims} claims checked")
    indent(suites)
    yield tostring(suites, encoding="unicode", xml_declaration=True)


def as_badge(report: CheckReport) -> Iterator[str]:
    """The endpoint format of shields.io."""
    failures = len(report.alarms)
    true = report.counts["confirmed"]
    message = f"{failures} of {report.claims} claims false" if failures else f"{true} claims confirmed"
    colour = "red" if failures else "lightgrey" if report.is_unchecked or not report.claims else "brightgreen"
    yield json.dumps({"schemaVersion": 1, "label": "docs", "message": message, "color": colour})


FORMATS: dict[str, Callable[[CheckReport], Iterator[str]]] = {
    "github": as_github,
    "sarif": as_sarif,
    "junit": as_junit,
    "badge": as_badge,
}
