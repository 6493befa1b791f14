"""Results of ``calibrant check`` and ``calibrant monitor status`` as JUnit XML, which CI servers show."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from calibrant.cli.check import Gate

__all__ = ["junit_xml"]

# XML 1.0 cannot contain these characters, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(gates: "Sequence[Gate]", suite_name: str = "calibrant check") -> str:
    """Return JUnit XML with one test case per gate."""
    failures = str(sum(not gate.passed for gate in gates))
    counts = {"tests": str(len(gates)), "failures": failures, "errors": "0", "skipped": "0"}
    suites = ElementTree.Element("testsuites", {"name": "calibrant", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": suite_name, **counts})
    for gate in gates:
        names = {"classname": f"calibrant.{_text(gate.subject)}", "name": _text(gate.rule), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", names)
        if gate.warning:
            ElementTree.SubElement(case, "system-out").text = _text(f"Warning: {gate.subject}: {gate.found}")
        if not gate.passed:
            message = {"message": _text(gate.found), "type": "calibration"}
            failure = ElementTree.SubElement(case, "failure", message)
            failure.text = _text(f"{gate.subject}: {gate.rule}; {gate.found}")
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True)


def _text(value: str) -> str:
    return _NOT_XML.sub("\ufffd", value)
