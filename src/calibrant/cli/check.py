"""``calibrant check``: a gate for CI."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant.cli.audit import audit_files, split_names
from calibrant.cli.evaluate import evaluate_files
from calibrant.cli.inputs import Source
from calibrant.cli.junit import junit_xml
from calibrant.cli.options import cluster_option, evaluation_options, force_option, input_options, json_option
from calibrant.cli.outputs import check_outputs, write_json, write_text

if TYPE_CHECKING:
    from calibrant.evaluation.audit.result import Audit
    from calibrant.results.evaluation import Evaluation

__all__ = ["Gate", "check"]

_LARGEST = {"max_tce_excess": 100.0, "max_ece": 1.0, "equivalence": 1.0}
_STYLES = {"PASS": "bold green", "WARN": "bold yellow", "FAIL": "bold red"}
_SHOWN_NOTES = ("missing", "zero_weight", "zero_frequency", "clipped")


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


@dataclass(frozen=True)
class Limits:
    """Thresholds; None where none is given."""

    max_tce_excess: float | None
    max_ece: float | None
    equivalence: float | None

    def __post_init__(self) -> None:
        for name, largest in _LARGEST.items():
            limit = getattr(self, name)
            if limit is not None and not 0 <= limit <= largest:
                raise InputError(Argument(name) + f" must lie between 0 and {largest:g}; got {limit:g}.", value=limit)

    @property
    def given(self) -> list[str]:
        """The names of the thresholds that are given."""
        return [name for name, limit in vars(self).items() if limit is not None]


@click.command
@input_options(groups=True)
@click.option("--require", type=click.Choice(["calibrated"]), help="Fail unless shown to lie within the margin.")
@click.option("--max-tce-excess", type=float, metavar="POINTS", help="Largest TCE above its value if calibrated.")
@click.option("--max-ece", type=float, metavar="VALUE", help="Largest ECE.")
@click.option("--equivalence", type=float, metavar="MARGIN", help="ACE must be shown to lie below this margin.")
@click.option(
    "--audit",
    "audit_columns",
    multiple=True,
    metavar="COLUMNS",
    help="Fail if a segment by these columns is shown to be miscalibrated (see audit); comma-separated.",
)
@cluster_option
@evaluation_options
@click.option("--junit", metavar="FILE", help="Write the outcome as JUnit XML.")
@json_option
@force_option
def check(
    require: str | None,
    max_tce_excess: float | None,
    max_ece: float | None,
    equivalence: float | None,
    audit_columns: tuple[str, ...],
    junit: str | None,
    json_file: str | None,
    force: bool,
    **given: Any,
) -> int:
    """Exit with 1 if the forecasts in FILES are miscalibrated.

    Without a threshold the verdict decides: miscalibrated fails; calibrated and negligible pass; inconclusive passes
    with a warning. With --require calibrated only calibrated and negligible pass, which are both shown to lie within
    the margin. Given thresholds of scores (--max-ece, --max-tce-excess, --equivalence) decide alone. With --by each
    group must pass as well; p-values of groups are adjusted for their number. With --audit each segment that an audit
    by these columns shows to be miscalibrated fails. Forecasts are named as in evaluate.

    \b
      calibrant check scores.parquet --label outcome --score probability
      calibrant check scores.csv -y outcome -p probability --max-ece 0.02 --junit calibration.xml
      calibrant check prices.csv --label price --point predicted --margin 0.02
    """
    check_outputs(junit, json_file, inputs=given["paths"], force=force)
    limits = Limits(max_tce_excess, max_ece, equivalence)
    _check_options(limits, require, given)
    source = Source.take(given)
    _check_thresholds(limits, source)
    if equivalence is not None:
        given["absolute_margin"] = equivalence
    audits = _audit(source, audit_columns, given)
    results, inputs = evaluate_files(source, given)
    gates = [gate for score, result in results.items() for gate in _gates(score, result, limits, require)]
    gates += [gate for score, found in audits.items() for gate in _segment_gates(score, found)]
    if junit is not None:
        write_text(junit, junit_xml(gates))
    if json_file is not None:
        found = {score: audit.to_dict() for score, audit in audits.items()}
        write_json(json_file, _to_dict(gates, limits, results, inputs) | ({"audits": found} if audits else {}))
    if "-" not in (json_file, junit):
        _print(gates, results, inputs)
    return 0 if all(gate.passed for gate in gates) else 1


def _check_options(limits: Limits, require: str | None, given: dict[str, Any]) -> None:
    if require is not None and limits.given:
        threshold = Argument(limits.given[0])
        raise InputError(
            Argument("require") + " must not be given with " + threshold + ".", hint="Given thresholds decide alone."
        )
    for name in ("margin", "absolute_margin"):
        if limits.equivalence is not None and given[name] is not None:
            raise InputError(
                Argument("equivalence") + " must not be given with " + Argument(name) + ".",
                hint="Both are the margin of the same test.",
            )


def _check_thresholds(limits: Limits, source: Source) -> None:
    if limits.given and source.kind != "binary":
        raise InputError(
            Argument(limits.given[0])
            + " must be given with "
            + Argument("p")
            + " only; got "
            + Argument(source.option)
            + ".",
            hint="For other kinds the verdict decides; " + Argument("margin") + " sets its margin.",
        )


def _gates(score: str, result: "Evaluation", limits: Limits, require: str | None) -> list[Gate]:
    """Return the gates of one score, for all rows and for each group."""
    parts = {None: result} | {f"{result.by} = {group}": own for group, own in result.groups.items()}
    if not limits.given:
        return [_verdict_gate(score, group, own, require) for group, own in parts.items()]
    return [gate for group, own in parts.items() for gate in _threshold_gates(score, group, own, limits)]


def _audit(source: Source, audit_columns: tuple[str, ...], given: dict[str, Any]) -> "dict[str, Audit]":
    """Audit the forecasts, without their multicalibration errors; nothing without columns."""
    if not audit_columns:
        return {}
    if source.kind not in ("binary", "multiclass", "point") or source.spark is not None:
        raise InputError(
            Argument("audit_columns")
            + " must be given with scores, class probabilities or point predictions in files; got "
            + Argument("spark" if source.spark is not None else source.option)
            + ".",
        )
    options = {**given, "depth": 2, "min_rows": None, "n_resamples": 0}
    return audit_files(source, split_names(audit_columns), options)[0]


def _segment_gates(score: str, found: "Audit") -> list[Gate]:
    """Return a gate for each segment that is shown to be miscalibrated, or one that none is."""
    rule = "must not be miscalibrated"
    if not found.segments:
        searched = f"{found.n_tests} rules were tested, none is significant"
        return [Gate(score, "segments", "must not be miscalibrated", True, searched)]
    return [Gate(score, segment.rule, rule, False, f"it {segment.sentence()}") for segment in found.segments]


def _verdict_gate(score: str, group: str | None, result: "Evaluation", require: str | None) -> Gate:
    """Return the gate of a verdict; an inconclusive one passes with a warning unless `require` is strict."""
    found = f"it is {result.headline().removeprefix('Verdict: ')}"
    if result.kind in ("binary", "multiclass"):  # other kinds explain the verdict in its line
        direction = f" ({result.direction})" if result.direction else ""
        found = f"it is {result.verdict}{direction}: {result.sentences()[0]}"
    if require is not None:
        passed = result.verdict in ("calibrated", "negligible")
        return Gate(score, group, "must be shown to be calibrated within the margin", passed, found)
    passed = result.verdict != "miscalibrated"
    return Gate(score, group, "must not be miscalibrated", passed, found, warning=result.verdict == "inconclusive")


def _threshold_gates(score: str, group: str | None, result: "Evaluation", limits: Limits) -> list[Gate]:
    """Return the gates of the given thresholds."""
    gates = []
    if limits.max_tce_excess is not None:
        excess = result.metrics["TCE"].null.excess if "TCE" in result.metrics else math.nan
        if math.isnan(excess):  # with weights or clusters, for example
            hint = "Leave out " + Argument("max_tce_excess") + "."
            raise InputError("The expected value of TCE if calibrated does not exist for these rows.", hint=hint)
        rule = f"TCE must exceed its expected value if calibrated by at most {limits.max_tce_excess:g} points"
        passed = bool(excess <= limits.max_tce_excess)
        gates.append(Gate(score, group, rule, passed, f"it does by {excess:.4g}"))
    if limits.max_ece is not None:
        value = result.metrics["ECE"].value
        rule = f"ECE must be at most {limits.max_ece:g}"
        gates.append(Gate(score, group, rule, value <= limits.max_ece, f"it is {value:.4g}"))
    if limits.equivalence is not None:
        rule = f"ACE must be shown to lie below {limits.equivalence:g}"
        found = f"its upper confidence limit is {result.equivalence.bound:.4g}"
        gates.append(Gate(score, group, rule, result.is_within_margin, found))
    return gates


def _print(gates: list[Gate], results: "dict[str, Evaluation]", inputs: list[dict[str, Any]]) -> None:
    from calibrant.cli.console import checksum_lines, console, line

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
    for text in checksum_lines(inputs):
        out.print(text)


def _to_dict(
    gates: list[Gate], limits: Limits, results: "dict[str, Evaluation]", inputs: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "schema_version": 2,
        "result": "check",
        "passed": all(gate.passed for gate in gates),
        "limits": vars(limits),
        "gates": [vars(gate) for gate in gates],
        "inputs": inputs,
        "models": {score: result.to_dict() for score, result in results.items()},
    }
