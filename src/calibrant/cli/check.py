"""``calibrant check``: a gate for CI."""

import math
import re
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import click

from calibrant._support.errors import InputError
from calibrant.cli.evaluate import evaluated
from calibrant.cli.inputs import source_options
from calibrant.cli.measure import cluster_option, measure_options
from calibrant.cli.outputs import check_outputs, force_option, write_json, write_text
from calibrant.evaluation import sentences

__all__ = ["check"]


@dataclass(frozen=True)
class Gate:
    """One thing that must hold of one score, in all rows or in one group."""

    score: str
    group: str | None
    rule: str
    passed: bool
    found: str
    warning: bool = False

    @property
    def where(self) -> str:
        return self.score if self.group is None else f"{self.score}, {self.group}"


@click.command(short_help="A gate for CI: exit 1 on miscalibrated scores.")
@source_options(several=True, groups=True)
@click.option("--require", type=click.Choice(["calibrated"]), help="Strict: fail unless shown within the margin.")
@click.option("--max-tce-excess", type=float, metavar="POINTS", help="TCE less its expected value if calibrated.")
@click.option("--max-ece", type=float, metavar="VALUE", help="Largest ECE that passes.")
@click.option("--equivalence", type=float, metavar="MARGIN", help="ACE must be shown to lie below this.")
@cluster_option
@measure_options
@click.option("--junit", metavar="FILE", help="Write the outcome as JUnit XML.")
@click.option("--json", "json_file", metavar="FILE", help="Write the outcome as JSON; - is standard output.")
@force_option
def check(
    require: str | None,
    max_tce_excess: float | None,
    max_ece: float | None,
    equivalence: float | None,
    junit: str | None,
    json_file: str | None,
    force: bool,
    **given: Any,
) -> int:
    """Fail (exit 1) when the scores in FILES are miscalibrated.

    Without a threshold, the verdict decides: miscalibrated fails; calibrated and negligible pass; inconclusive passes
    with a warning. --require calibrated is strict: only calibrated and negligible pass, which are both shown to lie
    within the margin. Given thresholds (--max-ece, --max-tce-excess, --equivalence) decide alone. With --by, every
    group must pass as well; p-values of groups are adjusted for their number.

    \b
      calibrant check scores.parquet --label happened --score probability
      calibrant check scores.csv -y happened -p probability --max-ece 0.02 --junit calibration.xml
    """
    check_outputs(junit, json_file, force=force)
    limits = {"max_tce_excess": max_tce_excess, "max_ece": max_ece, "equivalence": equivalence}
    _check_limits(limits)
    if require is not None and any(limit is not None for limit in limits.values()):
        raise click.UsageError("Give --require or thresholds: given thresholds decide alone.")
    if equivalence is not None:
        if given["margin"] is not None or given["absolute_margin"] is not None:
            raise click.UsageError("Give --equivalence or a margin: each is the margin of the same test.")
        given["absolute_margin"] = equivalence
    results, about = evaluated(given)
    gates = [gate for score, result in results.items() for gate in _gates(score, result, limits, require)]
    passed = all(gate.passed for gate in gates)
    if junit is not None:
        write_text(junit, junit_xml(gates))
    if json_file is not None:
        write_json(json_file, _as_dict(gates, passed, limits, results, about))
    if "-" not in (json_file, junit):
        _show(gates, passed, about, [note for result in results.values() for note in result.notes])
    return 0 if passed else 1


_LARGEST = {"max_tce_excess": 100.0, "max_ece": 1.0, "equivalence": 1.0}


def _check_limits(limits: dict[str, float | None]) -> None:
    for name, limit in limits.items():
        most = _LARGEST[name]
        if limit is not None and not 0 <= limit <= most:
            raise click.UsageError(f"--{name.replace('_', '-')} must lie between 0 and {most:g}; got {limit:g}.")


def _gates(score: str, result: Any, limits: dict[str, float | None], require: str | None) -> list[Gate]:
    """The gates of one score: for all rows, and for each group."""
    found = _rules(score, None, result, limits, require)
    for group, own in result.groups.items():
        found += _rules(score, f"{result.by} = {group}", own, limits, require)
    return found


def _rules(
    score: str, group: str | None, result: Any, limits: dict[str, float | None], require: str | None
) -> list[Gate]:
    if all(limit is None for limit in limits.values()):
        return [_verdict_gate(score, group, result, require)]
    gates = []
    lines = result.metrics
    tce, ece, margin = limits["max_tce_excess"], limits["max_ece"], limits["equivalence"]
    if tce is not None:
        rule = f"TCE must exceed its expected value if calibrated by at most {tce:g} points"
        excess = lines["TCE"].null.excess if "TCE" in lines else math.nan
        if math.isnan(excess):  # with weights or clusters, for example
            raise InputError("TCE has no expected value for these rows.", hint="Leave out --max-tce-excess.")
        gates.append(Gate(score, group, rule, excess <= tce, f"it does by {excess:.4g}"))
    if ece is not None:
        value = lines["ECE"].value
        gates.append(Gate(score, group, f"ECE must be at most {ece:g}", value <= ece, f"it is {value:.4g}"))
    if margin is not None:
        bound = result.equivalence.bound
        rule = f"ACE must be shown to lie below {margin:g}"
        gates.append(Gate(score, group, rule, result.is_within_margin, f"it may be {bound:.4g}"))
    return gates


def _verdict_gate(score: str, group: str | None, result: Any, require: str | None) -> Gate:
    """The gate of a verdict; an inconclusive one passes with a warning unless `require` is strict."""
    ways = f" ({result.direction})" if result.direction else ""
    found = f"it is {result.verdict}{ways}: {sentences.explanation(result)}"
    if require is not None:
        passed = result.verdict in ("calibrated", "negligible")
        return Gate(score, group, "must be shown to be calibrated within the margin", passed, found)
    passed = result.verdict != "miscalibrated"
    return Gate(score, group, "must not be miscalibrated", passed, found, warning=result.verdict == "inconclusive")


def _show(gates: list[Gate], passed: bool, about: list[dict[str, Any]], notes: list[Any]) -> None:
    from calibrant.cli.console import console, file_lines, line

    out = console()
    for gate in gates:
        mark = line(*_MARKS["warning" if gate.warning else "passed" if gate.passed else "failed"])
        out.print(mark + line(f"  {gate.where}: {gate.rule}; {gate.found}"))
    failed = sum(not gate.passed for gate in gates)
    warned = sum(gate.warning for gate in gates)
    words = "all gates passed" if passed else f"{failed} of {len(gates)} gates failed"
    words += f", {warned} with a warning" if passed and warned else ""
    out.print(line(words, "bold green" if passed else "bold red"))
    for note in dict.fromkeys(note.text for note in notes if note.code in ("missing", "zero_weight", "clipped")):
        out.print(line(f"  note: {note}", "dim"))
    for text in file_lines(about):
        out.print(text)


_MARKS = {"passed": ("PASS", "bold green"), "warning": ("WARN", "bold yellow"), "failed": ("FAIL", "bold red")}


def _as_dict(
    gates: list[Gate], passed: bool, limits: dict[str, float | None], results: dict[str, Any], about: list[Any]
) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "kind": "check",
        "passed": passed,
        "limits": limits,
        "gates": [vars(gate) for gate in gates],
        "inputs": about,
        "models": {score: result.to_dict() for score, result in results.items()},
    }


# What XML 1.0 has no place for, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(gates: list[Gate]) -> str:
    """The gates as JUnit's XML, which CI servers show."""

    def text(value: str) -> str:
        return _NOT_XML.sub("\ufffd", value)

    failures = str(sum(not gate.passed for gate in gates))
    counts = {"tests": str(len(gates)), "failures": failures, "errors": "0", "skipped": "0"}
    suites = ElementTree.Element("testsuites", {"name": "calibrant", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "calibrant check", **counts})
    for gate in gates:
        named = {"classname": f"calibrant.{text(gate.where)}", "name": text(gate.rule), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", named)
        if gate.warning:
            warning = ElementTree.SubElement(case, "system-out")
            warning.text = text(f"Warning: {gate.where}: {gate.found}")
        if not gate.passed:
            failure = ElementTree.SubElement(case, "failure", {"message": text(gate.found), "type": "calibration"})
            failure.text = text(f"{gate.where}: {gate.rule}; found: {gate.found}")
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True)
