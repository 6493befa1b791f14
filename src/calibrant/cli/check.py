"""``calibrant check``: a gate for CI."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import click

from calibrant._support.errors import Argument, InputError
from calibrant.cli.command_files import check_outputs, write_json, write_text
from calibrant.cli.evaluate import audit_files, evaluate_files, split_names
from calibrant.cli.exit_codes import CHECK_FAILED, SUCCESS
from calibrant.cli.inputs import Source
from calibrant.cli.options import evaluation_options, focus_option, input_options, json_options, threshold_options
from calibrant.kinds.columns import GateThreshold, columns_by_kind

if TYPE_CHECKING:
    from calibrant.results.audit import Audit
    from calibrant.results.evaluation import Evaluation

_STYLES = {"PASS": "bold green", "WARN": "bold yellow", "FAIL": "bold red"}
_SHOWN_NOTES = ("missing", "zero_weight", "zero_frequency", "clipped")
# XML 1.0 cannot contain these characters, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Gate:
    """One condition on a score, in all rows or in one group, and whether it holds."""

    score: str
    group: str | None
    rule: str
    passed: bool
    found: str
    warning: bool = False

    @property
    def subject(self) -> str:
        """The score, with its group."""
        return self.score if self.group is None else f"{self.score}, {self.group}"

    @property
    def status(self) -> str:
        """PASS, WARN or FAIL."""
        return "WARN" if self.warning else "PASS" if self.passed else "FAIL"


@click.command
@input_options(groups=True)
@click.option("--require", type=click.Choice(["calibrated"]), help="Fail unless shown to lie within the margin.")
@threshold_options
@click.option(
    "--audit",
    "audit_columns",
    multiple=True,
    metavar="COLUMNS",
    help="Fail if a segment by these columns is shown to be miscalibrated (see audit); comma-separated.",
)
@evaluation_options
@focus_option
@click.option("--junit", metavar="FILE", help="Write the outcome as JUnit XML.")
@json_options
def check(
    require: str | None,
    audit_columns: tuple[str, ...],
    junit: str | None,
    json_file: str | None,
    force: bool,
    **given: Any,
) -> int:
    """Exit with 1 if the forecasts in FILES are miscalibrated.

    Without a threshold the verdict decides: miscalibrated fails; calibrated and negligible pass; inconclusive passes
    with a warning, and so do groups that are shown to differ. With --require calibrated only calibrated and negligible
    pass, which are both shown to lie within the margin. Given thresholds of scores (--max-ece, --max-tce-excess,
    --equivalence) decide alone. With --by each group must pass as well; p-values of groups are adjusted for their
    number. With --audit each segment that an audit by these columns shows to be miscalibrated fails. Forecasts are
    named as in evaluate.

    \b
      calibrant check scores.parquet --label outcome --score probability
      calibrant check scores.csv -y outcome -p probability --max-ece 0.02 --junit calibration.xml
      calibrant check prices.csv --label price --point predicted --margin 0.02
    """
    check_outputs(junit, json_file, inputs=given["paths"], force=force)
    source = Source.take(given)
    limits = _take_limits(given, source, require)
    audits = _audit(source, audit_columns, given)
    results, inputs = evaluate_files(source, given)
    gates = [gate for name, result in results.items() for gate in _gates(name, result, source, limits, require)]
    gates += [gate for name, result in audits.items() for gate in _segment_gates(name, result)]
    if junit is not None:
        write_text(junit, junit_xml(gates))
    if json_file is not None:
        content = {
            "schema_version": 3,
            "result": "check",
            "passed": all(gate.passed for gate in gates),
            "limits": limits,
            "gates": [vars(gate) for gate in gates],
            "inputs": inputs,
            "models": {name: result.to_dict() for name, result in results.items()},
        }
        segments = {name: result.to_dict() for name, result in audits.items()}
        write_json(json_file, content | ({"audits": segments} if audits else {}))
    if "-" not in (json_file, junit):
        _print(gates, results, inputs)
    return SUCCESS if all(gate.passed for gate in gates) else CHECK_FAILED


def _take_limits(given: dict[str, Any], source: Source, require: str | None) -> dict[str, float | None]:
    """Remove the thresholds from the options, and return all of them, None where one is not given.

    The threshold of an equivalence test becomes the margin of the evaluation.
    """
    names = dict.fromkeys(threshold.name for form in columns_by_kind().values() for threshold in form.thresholds)
    limits: dict[str, float | None] = {name: given.pop(name) for name in names}
    for threshold, limit in _given_thresholds(source, limits):
        argument = Argument(threshold.name)
        if not 0 <= limit <= threshold.largest:
            raise InputError(argument + f" must lie between 0 and {threshold.largest:g}; got {limit:g}.", value=limit)
        if require is not None:
            raise InputError(
                Argument("require") + " must not be given with " + argument + ".", hint="Given thresholds decide alone."
            )
        for name in ("margin", threshold.setting) if threshold.setting else ():
            if given[name] is not None:
                raise InputError(
                    argument + " must not be given with " + Argument(name) + ".",
                    hint="Both are the margin of the same test.",
                )
        if threshold.setting:
            given[threshold.setting] = limit
    return limits


def _given_thresholds(source: Source, limits: Mapping[str, float | None]) -> Iterator[tuple[GateThreshold, float]]:
    for threshold in source.form.thresholds:
        limit = limits[threshold.name]
        if limit is not None:
            yield threshold, limit


def _audit(source: Source, audit_columns: tuple[str, ...], given: Mapping[str, Any]) -> "dict[str, Audit]":
    """Audit the forecasts, without their multicalibration errors; nothing without columns."""
    if not audit_columns:
        return {}
    if source.form.audited is None or source.spark is not None:
        nouns = [form.noun for form in columns_by_kind().values() if form.audited is not None]
        raise InputError(
            Argument("audit_columns")
            + f" must be given with {', '.join(nouns[:-1])} or {nouns[-1]} in files; got "
            + Argument("spark" if source.spark is not None else source.option)
            + "."
        )
    options = {**given, "depth": 2, "min_rows": None, "n_resamples": 0}
    return audit_files(source, split_names(audit_columns), options)[0]


def _gates(
    name: str, whole: "Evaluation", source: Source, limits: Mapping[str, float | None], require: str | None
) -> Iterator[Gate]:
    """Yield the gates of one forecast, for all rows and for each group: thresholds, or else the verdict."""
    thresholds = list(_given_thresholds(source, limits))
    parts = [(None, whole), *((f"{whole.by} = {key}", e) for key, e in whole.groups.items())]
    for group, result in parts:
        if not thresholds:
            yield _verdict_gate(name, group, result, _sentence(result, source), require)
        for threshold, limit in thresholds:
            yield Gate(name, group, *threshold.judge(result, limit))


def _sentence(result: "Evaluation", source: Source) -> str:
    """Return the verdict with its reason."""
    if source.form.headline_has_reason:
        return f"it is {result.headline().removeprefix('Verdict: ')}"
    direction = f" ({result.direction})" if result.direction else ""
    return f"it is {result.verdict}{direction}: {result.sentences()[0]}"


def _verdict_gate(name: str, group: str | None, result: "Evaluation", found: str, require: str | None) -> Gate:
    """Return the gate of a verdict; an inconclusive one passes with a warning unless `require` is strict."""
    if require is not None:
        passed = result.verdict in ("calibrated", "negligible")
        return Gate(name, group, "must be shown to be calibrated within the margin", passed, found)
    from calibrant.results.sentences import differences_text, groups_differ

    passed, differ = result.verdict != "miscalibrated", groups_differ(result)
    if differ and "groups differ" not in found:
        found = f"{found.rstrip('.')}; {differences_text(result)}"
    return Gate(
        name, group, "must not be miscalibrated", passed, found, warning=result.verdict == "inconclusive" or differ
    )


def _segment_gates(name: str, audit: "Audit") -> list[Gate]:
    """Return a gate for each segment that is shown to be miscalibrated, or one that none is."""
    rule = "must not be miscalibrated"
    if not audit.segments:
        return [Gate(name, "segments", rule, True, f"{audit.n_tests} rules were tested, none is significant")]
    return [Gate(name, segment.rule, rule, False, f"it {segment.sentence()}") for segment in audit.segments]


def _print(gates: Sequence[Gate], results: "Mapping[str, Evaluation]", inputs: list[dict[str, Any]]) -> None:
    from calibrant.cli.console import console, line, print_checksums

    out = console()
    for gate in gates:
        out.print(line(gate.status, _STYLES[gate.status]) + line(f"  {gate.subject}: {gate.rule}; {gate.found}"))
    failed, warned = (sum(gate.status == status for gate in gates) for status in ("FAIL", "WARN"))
    if failed:
        out.print(line(f"{failed} of {len(gates)} gates failed", "bold red"))
    else:
        out.print(line("all gates passed" + (f", {warned} with a warning" if warned else ""), "bold green"))
    notes = [note.text for result in results.values() for note in result.notes if note.code in _SHOWN_NOTES]
    for note in dict.fromkeys(notes):
        out.print(line(f"  note: {note}", "dim"))
    print_checksums(inputs, out=out)


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
