"""`evaluate`: every measure of predicted numbers, or of predictive distributions, with its interval; and a verdict."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant import _columns
from calibrant._json import label as json_label
from calibrant._progress import progress as counted
from calibrant._tables import html_table, text_table
from calibrant._typing import Column, Floats, Ints
from calibrant.bins import Quantile
from calibrant.errors import InputError, Note, join_notes
from calibrant.inference.hypothesis_tests import TestResult
from calibrant.inference.multiplicity import holm
from calibrant.inference.resampling import RandomState, check_count, check_share, generator
from calibrant.regression import means
from calibrant.regression.binned import BiasByBin, bias_by_bin, too_alike
from calibrant.regression.distributions import (
    Coverage,
    anderson_darling,
    chi_square,
    coverage,
    kolmogorov_smirnov,
    transforms,
)
from calibrant.regression.estimates import Estimate, from_influence
from calibrant.regression.forecasts import Quantiles, Samples
from calibrant.regression.frozen import is_frozen
from calibrant.regression.groups import Bins, bins_of, fine_bins, group
from calibrant.regression.means import LinearFit, MSEDecomposition
from calibrant.regression.reading import as_forecast
from calibrant.regression.repaired import is_mean
from calibrant.regression.table import ONE_COLUMN, MeanTable

__all__ = ["NumberEvaluation", "evaluate"]

_MOST_PARTS = 1_000
_ROWS_A_BIN = 50


@dataclass(frozen=True)
class TestBasedError:
    """TCE of predicted numbers, and what a model without bias would read on rows of the same spread."""

    __test__ = False  # not a test case of pytest

    value: float
    expected: float
    low: float
    high: float
    pvalue: float
    n_resamples: int


@dataclass(frozen=True, eq=False, repr=False)
class NumberEvaluation:
    """What `evaluate` found; print it.

    Attributes
    ----------
    lines : dict of name to Estimate
        mean error, ratio (where no outcome is negative), MSE, MAE, relative MSE; of distributions also CRPS, NLL (where
        there are densities) and width of 90 % intervals.
    bins : BiasByBin
    line : LinearFit or None
        Outcomes on predictions; None where all predictions are equal.
    decomposition : MSEDecomposition
    tce : TestBasedError or None
        None with ``n_resamples=0``.
    uniformity : tuple of TestResult
        Of the PIT values: Anderson-Darling, Kolmogorov-Smirnov, chi-squared. Empty for plain numbers.
    coverage : Coverage or None
    parts : dict
        An evaluation for every value of `by`.
    adjusted, adjusted_uniformity : float or None
        Of a part: the p-values that decide on bias and on distributions, adjusted for the number of parts by Holm.
    """

    table: MeanTable
    lines: Mapping[str, Estimate]
    bins: BiasByBin
    line: LinearFit | None
    decomposition: MSEDecomposition
    alpha: float
    tce: TestBasedError | None = None
    uniformity: tuple[TestResult, ...] = ()
    coverage: Coverage | None = None
    parts: Mapping[Any, "NumberEvaluation"] = field(default_factory=dict)
    adjusted: float | None = None
    adjusted_uniformity: float | None = None
    of_means: bool = True
    by: str | None = None
    clusters: int | None = None
    notes: tuple[Note, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        try:
            return self.lines[name]
        except KeyError:
            raise KeyError(f"There is no {name!r}; there are {', '.join(self.lines)}.") from None

    @property
    def pvalue(self) -> float:
        """What the verdict on bias follows from: twice the smaller of the p-values of mean error and of all bins.

        In clusters, that of the mean error alone: the bins take rows as independent. NaN where neither exists, and
        where predictions are medians, which need not be the mean.
        """
        if not self.of_means:
            return math.nan
        mean = self.lines["mean error"].pvalue
        found = [mean, None if self.clusters else self.bins.test.pvalue]
        known = [p for p in found if p is not None and not math.isnan(p)]
        return min(1.0, len(known) * min(known)) if known else math.nan

    @property
    def is_biased(self) -> bool:
        """Whether a bias is shown: `pvalue`, in a part the adjusted one, is at most alpha."""
        return (self.pvalue if self.adjusted is None else self.adjusted) <= self.alpha

    @property
    def is_miscalibrated(self) -> bool:
        """Whether the PIT values are shown not to be uniform, by Anderson and Darling's test; not in clusters."""
        if not self.uniformity or self.clusters:
            return False
        own = self.uniformity[0].pvalue
        return (own if self.adjusted_uniformity is None else self.adjusted_uniformity) <= self.alpha

    @property
    def verdict(self) -> str:
        """In one sentence."""
        return "; ".join([*self._on_bias(), *self._on_distributions()])

    def _on_bias(self) -> Iterator[str]:
        error = self.lines["mean error"]
        if not self.of_means:
            return
        if math.isnan(self.pvalue):
            yield "too few rows to tell"
        elif not self.is_biased:
            yield "no bias is shown"
        else:
            side = "too high" if error.value > 0 else "too low"
            count = int(np.count_nonzero(self.bins.significant))
            bins = "" if self.clusters else f", beyond chance in {count} of {len(self.bins)} bins"
            yield f"biased: {abs(error.value):.4g} {side} on average{bins}"

    def _on_distributions(self) -> Iterator[str]:
        if self.uniformity and self.clusters:
            yield "distributions not judged (rows are in clusters)"
        elif self.uniformity:
            yield f"distributions {'miscalibrated' if self.is_miscalibrated else 'not shown to be miscalibrated'}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return {
            "schema_version": 1,
            "verdict": self.verdict,
            "n_in": self.table.n_in,
            "n_dropped": self.table.n_dropped,
            "size": self.table.size,
            "pvalue": _or_null(self.pvalue),
            "adjusted": _or_null(self.adjusted),
            "adjusted_uniformity": _or_null(self.adjusted_uniformity),
            "lines": {name: line.to_dict() for name, line in self.lines.items()},
            "bins": self.bins.to_dict(),
            "line": None if self.line is None else self.line.to_dict(),
            "decomposition": self.decomposition.to_dict(),
            "tce": None if self.tce is None else dict(self.tce.__dict__),
            "uniformity": [test.to_dict() for test in self.uniformity],
            "coverage": None if self.coverage is None else self.coverage.to_dict(),
            "parts": [{"part": json_label(name), **part.to_dict()} for name, part in self.parts.items()],
            "notes": [note.to_dict() for note in self.notes],
        }

    def _cells(self) -> list[list[str]]:
        level = next(iter(self.lines.values())).level
        rows = [["", "value", f"{100 * level:g} % interval", "a right model", "p"]]
        for name, e in self.lines.items():
            rows.append(_row(name, e))
        if self.line is not None:
            rows.append(_row("slope of outcome on prediction", self.line.slope))
        if self.tce is not None:
            t = self.tce
            rows.append(["TCE", f"{t.value:.1f} %", "", f"{t.low:.1f} to {t.high:.1f} %", f"{t.pvalue:.2g}"])
        for test in self.uniformity:
            chance = test.pvalue if test.resampling_pvalue is None else test.resampling_pvalue
            rows.append([f"PIT, {test.name}", f"{test.statistic:.4g}", "", "", f"{chance:.2g}"])
        if self.coverage is not None:
            for nominal, observed, low, high, p, _ in zip(*self.coverage.per_level.values(), strict=True):
                name = f"coverage of {100 * nominal:g} % intervals"
                span = f"{100 * low:.1f} to {100 * high:.1f} %"
                rows.append([name, f"{100 * observed:.1f} %", span, f"{100 * nominal:g} %", f"{p:.2g}"])
        return rows

    def _part_cells(self) -> list[list[str]]:
        rows = [[self.by or "part", "rows", "mean error", "interval", "p (Holm)", "verdict"]]
        for name, part in self.parts.items():
            e = part.lines["mean error"]
            chance = "-" if part.adjusted is None or math.isnan(part.adjusted) else f"{part.adjusted:.2g}"
            span = f"{e.low:.4g} to {e.high:.4g}" if not math.isnan(e.low) else "unknown"
            rows.append([str(name), f"{part.table.size:,.6g}", f"{e.value:.4g}", span, chance, part.verdict])
        return rows

    def _text(self, table: Callable[..., Any]) -> Iterator[Any]:
        yield f"Verdict: {self.verdict} ({self.table.size:,.6g} rows)"
        yield table(self._cells(), left=(0,))
        if self.parts:
            yield f"By {self.by or 'part'}:"
            yield table(self._part_cells(), left=(0, 5))
        for note in self.notes:
            yield f"Note: {note.text}"

    def __repr__(self) -> str:
        return "\n".join(self._text(lambda *a, **k: "\n".join(text_table(*a, **k))))

    def _repr_html_(self) -> str:
        import html

        parts = self._text(html_table)
        return "".join(text if text.startswith("<table") else f"<p>{html.escape(text)}</p>" for text in parts)


def _or_null(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _row(name: str, e: Estimate) -> list[str]:
    span = f"{e.low:.4g} to {e.high:.4g}" if not math.isnan(e.low) else "unknown"
    return [
        name,
        f"{e.value:.4g}",
        span,
        "" if e.null is None else f"{e.null:g}",
        "" if e.pvalue is None or math.isnan(e.pvalue) else f"{e.pvalue:.2g}",
    ]


@dataclass(frozen=True)
class _Rows:
    """Rows as they were read, none left out: what belongs to each stays together."""

    table: MeanTable
    forecast: Any | None
    cluster: Ints | None

    def part(self, rows: Any) -> "_Rows":
        table = self.table.part(rows)
        cluster = None if self.cluster is None else np.unique(self.cluster[rows], return_inverse=True)[1]
        return _Rows(table, None if self.forecast is None else self.forecast.part(rows), cluster)


@dataclass(frozen=True)
class _Settings:
    bins: Bins | None
    alpha: float
    level: float
    n_resamples: int
    random_state: RandomState
    progress: bool | None


def evaluate(
    y_true: Column | MeanTable,
    y_pred: Any = None,
    *,
    by: Column | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    cluster: Column | None = None,
    n_bins: int | None = None,
    bins: Bins | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    n_resamples: int = 199,
    random_state: RandomState = 0,
    progress: bool | None = None,
) -> NumberEvaluation:
    """Can the predicted numbers, or distributions, be believed? Measures with intervals, tests, and a verdict.

    Parameters
    ----------
    y_true : column of n outcomes
        Or one `MeanTable` of rows instead of both.
    y_pred : column of n predictions, or forecasts
        `Gaussian`, `Quantiles`, `Samples` or a frozen distribution of scipy.stats; their means (of quantiles: medians)
        are measured as predictions, and the distributions as such.
    by : column, optional
        The group of every row: a country, a day. Each is evaluated for itself as well.
    sample_weight, frequency : column, optional
        Importance weights, or numbers of equal rows; see `MeanTable.from_arrays`. For plain numbers only.
    cluster : column, optional
        Rows of one cluster (a patient, a shop) are not independent: intervals and tests of averages count clusters.
        Tests by bins, coverage and uniformity still take rows as independent, and a note says so.
    n_bins, bins
        See `bias_by_bin`; by default ten bins, or fewer so that each holds fifty rows.
    alpha, confidence_level : float
        Level of the tests behind the verdict, and of intervals.
    n_resamples : int, default=199
        Draws for what TCE would read without bias: errors, centred in each bin, with random signs. 0 for none. (Random
        signs take errors as symmetric: with skewed ones, in 200 rows, its p-value is below 5 % in 11 % of cases.)
    random_state : int, Generator or None
    progress : bool, optional
        Whether to draw a bar; by default on a terminal and in notebooks.

    Returns
    -------
    NumberEvaluation

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, 2000)
    >>> print(evaluate(x + rng.normal(size=2000), 1.1 * x - 0.2, n_resamples=0).verdict)
    biased: 0.3015 too high on average, beyond chance in 5 of 10 bins
    """
    settings = _Settings(
        None if bins is None and n_bins is None else bins_of(bins, n_bins),
        check_share("alpha", alpha),
        check_share("confidence_level", confidence_level),
        n_resamples if n_resamples == 0 else check_count("n_resamples", n_resamples),
        random_state,
        progress,
    )
    rows, code, names = _read(y_true, y_pred, by, sample_weight, frequency, cluster)
    whole = _evaluated(rows, settings)
    if by is None:
        return whole
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(names) + 1))
    found = {}
    for i in counted(range(len(names)), len(names), "parts", show=progress):
        own = rows.part(np.sort(order[bounds[i] : bounds[i + 1]]))
        found[names[i]] = _evaluated(own, replace(settings, n_resamples=0))
    name = getattr(by, "name", None)
    return replace(whole, parts=_adjusted(found), by=None if name is None else str(name))


def _adjusted(parts: dict[Any, NumberEvaluation]) -> dict[Any, NumberEvaluation]:
    bias = _holm({name: part.pvalue for name, part in parts.items()})
    forms = _holm({name: part.uniformity[0].pvalue for name, part in parts.items() if part.uniformity})
    return {
        name: replace(part, adjusted=bias[name], adjusted_uniformity=forms.get(name)) for name, part in parts.items()
    }


def _holm(pvalues: dict[Any, float]) -> dict[Any, float]:
    """Adjusted p-values of those that have one."""
    known = [name for name, p in pvalues.items() if not math.isnan(p)]
    again = dict(zip(known, holm([pvalues[name] for name in known]), strict=True)) if known else {}
    return {name: float(again.get(name, math.nan)) for name in pvalues}


def _read(
    y_true: Column | MeanTable,
    y_pred: Any,
    by: Column | None,
    sample_weight: Column | None,
    frequency: Column | None,
    cluster: Column | None,
) -> tuple[_Rows, Ints, list[Any]]:
    weights = {"sample_weight": sample_weight, "frequency": frequency}
    if isinstance(y_true, MeanTable):
        given = {"y_pred": y_pred, "by": by, **weights, "cluster": cluster}
        beside = [name for name, value in given.items() if value is not None]
        if beside:
            raise InputError(f"A MeanTable was given, and {', '.join(beside)} with it.", argument=beside[0])
        means.need_rows(y_true, "evaluate")
        return _Rows(y_true, None, None), np.zeros(0, dtype=np.int64), []
    if y_pred is None or isinstance(y_pred, Mapping):
        found = "is missing" if y_pred is None else "is a mapping; this takes one model"
        raise InputError(f"y_pred {found}.", hint="Pass one column, one forecast, or a MeanTable.", argument="y_pred")
    outcomes = _columns.read(y_true, "y_true", hint=ONE_COLUMN)
    _columns.check_alignment({"y_true": y_true, "by": by, **weights, "cluster": cluster})
    forecast = None
    if is_frozen(y_pred) or hasattr(y_pred, "cells"):
        if sample_weight is not None or frequency is not None:
            raise InputError("Weights are for predicted numbers; forecasts take none.", argument="sample_weight")
        forecast = as_forecast(y_pred, len(outcomes))
    predicted = y_pred if forecast is None else forecast.point()
    _columns.refuse_missing([outcomes, _columns.read(predicted, "y_pred", hint=ONE_COLUMN)])
    _columns.check_alignment({"y_true": y_true, "y_pred": y_pred})
    table = MeanTable.from_arrays(outcomes.values, predicted, sample_weight=sample_weight, frequency=frequency)
    codes = [_codes(column, name, outcomes) for column, name in ((by, "by"), (cluster, "cluster"))]
    names = codes[0][0]
    if len(names) > _MOST_PARTS:
        raise InputError(
            f"by has {len(names):,} different values; at most {_MOST_PARTS:,} parts are evaluated.",
            hint="Round times to days or weeks, and numbers to groups.",
            argument="by",
        )
    kept: Any = slice(None)
    if table.n_dropped:  # rows of weight or frequency 0
        kept = _columns.weights(_columns.read(frequency if sample_weight is None else sample_weight, "w")).values > 0
    code, clusters = (None if each is None else each[kept] for _, each in codes)
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1]
    return _Rows(table, forecast, clusters), np.zeros(0, dtype=np.int64) if code is None else code, names


def _codes(column: Column | None, name: str, outcomes: _columns.Column) -> tuple[list[Any], Ints | None]:
    if column is None:
        return [], None
    read = _columns.read(column, name)
    _columns.check_lengths([outcomes, read])
    _columns.refuse_missing([read], hint="Give such rows a value of their own.")
    return _columns.encode(read)


def _evaluated(rows: _Rows, settings: _Settings) -> NumberEvaluation:
    table = rows.table
    bins = settings.bins or Quantile(int(np.clip(table.effective_size // _ROWS_A_BIN, 1, 10)))
    found = bias_by_bin.of_table(table, bins=bins, alpha=settings.alpha, confidence_level=settings.level)
    apart = bool(np.ptp(table.prediction) > 0)
    notes: tuple[Note, ...] = table.notes
    clusters = None if rows.cluster is None else int(rows.cluster.max()) + 1
    if clusters is not None:
        text = f"There are {clusters:,} clusters; tests by bins, coverage and uniformity take rows as independent."
        notes = join_notes(notes, [Note("clusters", 1, text)])
    of_means = rows.forecast is None or is_mean(rows.forecast)
    if not of_means:
        text = "Predictions are medians, which need not be the mean outcome: their bias is not judged."
        notes = join_notes(notes, [Note("medians", 1, text)])
    lines = {e.name: e for e in _estimates(rows, settings.level, of_means)}
    whole = NumberEvaluation(
        table=table,
        lines=lines,
        bins=found,
        line=means.fitted_line(table, level=settings.level, cluster=rows.cluster) if apart and of_means else None,
        decomposition=means.mse_decomposition.of_table(table),
        alpha=settings.alpha,
        tce=_test_based(rows, settings) if settings.n_resamples and of_means else None,
        of_means=of_means,
        clusters=clusters,
        notes=notes,
    )
    return whole if rows.forecast is None else _with_distributions(whole, rows, settings)


def _with_distributions(whole: NumberEvaluation, rows: _Rows, settings: _Settings) -> NumberEvaluation:
    forecast, y = rows.forecast, rows.table.mean
    assert forecast is not None
    u = transforms(y, forecast, random_state=settings.random_state)
    edges = forecast.levels if isinstance(forecast, Quantiles) else None
    tests = (anderson_darling(u), kolmogorov_smirnov(u), chi_square(u, edges=edges))
    levels = None if isinstance(forecast, (Quantiles, Samples)) else (0.5, 0.9)
    try:
        covered: Coverage | None = coverage(y, forecast, levels=levels, confidence_level=settings.level)
    except InputError:  # quantiles of which no two are a pair
        covered = None
    notes = join_notes(whole.notes, *(test.notes for test in tests))
    return replace(whole, uniformity=tests, coverage=covered, notes=notes)


def _estimates(rows: _Rows, level: float, of_means: bool) -> Iterator[Estimate]:
    """The averages, each with what every row adds to it."""
    table = rows.table
    p, y = table.prediction, table.mean
    alike = _too_alike(table)
    testable = of_means and not alike
    options: dict[str, Any] = {"cluster": rows.cluster, "level": level}

    def mean_of(name: str, values: Floats, null: float | None = None) -> Estimate:
        value = table.average(values)
        return from_influence(name, value, values - value, table, null=null, **options)

    error = mean_of("mean error", p - y, 0.0 if testable else None)
    yield replace(error, standard_error=math.nan, low=math.nan, high=math.nan) if alike else error
    outcome = table.mean_outcome
    if (y >= 0).all() and outcome > 0:
        share = table.mean_prediction / outcome
        null = 1.0 if testable else None
        yield from_influence("ratio", share, (p - share * y) / outcome, table, null=null, **options)
    squares = (p - y) ** 2
    yield mean_of("MSE", squares)
    yield mean_of("MAE", np.abs(p - y))
    spread = means.variance(table)
    if spread > 0:
        relative = table.average(squares) / spread
        influence = (squares - relative * (y - outcome) ** 2) / spread
        yield from_influence("relative MSE", relative, influence, table, **options)
    if rows.forecast is not None:
        yield mean_of("CRPS", rows.forecast.crps(y))
        try:
            density = rows.forecast.log_density(y)
        except InputError:
            density = None
        if density is not None and np.isfinite(density).all():
            yield mean_of("NLL", -density)
        try:
            low, high = rows.forecast.quantile([0.05, 0.95]).T
        except InputError:
            return
        yield mean_of("width of 90 % intervals", high - low)


def _too_alike(table: MeanTable) -> bool:
    """Whether outcomes tell too little of how they vary, and differ from their predictions."""
    groups = group(table, Quantile(1))
    y, p = table.mean, table.prediction
    still = groups.spread(lambda run: y[run], groups.mean(lambda run: y[run]))
    right = float(np.abs(p - y).max()) <= table.rounding
    return not right and bool(too_alike(groups, still.error)[0])


def _test_based(rows: _Rows, settings: _Settings) -> TestBasedError:
    """TCE among those of models without bias: errors, centred in each bin, with a random sign a row or cluster."""
    # Weight 2 means two rows, each with a sign of its own; and their order must not matter.
    table, cluster = rows.table, rows.cluster
    repeats = np.ones(len(table), dtype=np.int64) if table.importance else table.n
    order = np.lexsort((table.mean, table.prediction))
    order = np.repeat(order, repeats[order])
    table = table.part(order)
    if not table.importance:
        table = replace(table, n=np.ones(order.size, dtype=np.int64), single=True)
    cluster = None if cluster is None else cluster[order]
    bins = fine_bins(table)
    found = bias_by_bin.of_table(table, bins=bins, alpha=settings.alpha)
    groups = group(table, bins)
    n = groups.effective_n
    bias = found.per_bin["bias"][groups.labels]
    factor = np.sqrt(n / np.maximum(n - 1, 1))[groups.labels]
    error = factor * (table.mean - table.prediction + bias)
    rng = generator(settings.random_state)
    drawn = np.empty(settings.n_resamples)
    size = len(table) if cluster is None else int(cluster.max()) + 1
    for i in counted(range(drawn.size), drawn.size, "TCE without bias", show=settings.progress):
        sign = 2.0 * rng.integers(0, 2, size) - 1
        sign = sign if cluster is None else sign[cluster]
        again = replace(table, mean=table.prediction + sign * error)
        drawn[i] = bias_by_bin.of_table(again, bins=bins, alpha=settings.alpha).tce
    low, high = np.quantile(drawn, [(1 - settings.level) / 2, (1 + settings.level) / 2])
    pvalue = (1 + np.count_nonzero(drawn >= found.tce - 1e-9)) / (1 + drawn.size)
    return TestBasedError(found.tce, float(drawn.mean()), float(low), float(high), float(pvalue), drawn.size)
