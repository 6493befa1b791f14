"""Sample sizes: rows that detect a deviation, show calibration within a margin, or estimate performance precisely."""

import html
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from numbers import Real
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError, check_share, is_number
from calibrant._support.formatting import round_up
from calibrant._support.lazy import cached_property
from calibrant._support.logistic import expit
from calibrant._support.plain_data import plain
from calibrant._support.roots import first_integer
from calibrant.inference.binary_components import MIN_EVENTS
from calibrant.inference.design import fine_bin_count
from calibrant.inference.power import MOST_ROWS, information_needed, table_of_scores
from calibrant.inference.tails import noncentral_chi2_cdf
from calibrant.metrics import log_odds
from calibrant.metrics.bins import EqualInformation, information_bins
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.tables.score_table import ScoreTable

_LARGEST = 2.0  # deviation: odds 7.4 times as large
Kind = Literal["shift", "slope"]

# Criteria of an external validation, and the field of `ValidationPrecision` with the width of each.
_CRITERIA = {"O/E": "oe_ratio", "calibration slope": "slope", "AUC": "auc", "net benefit": "net_benefit"}


@dataclass(frozen=True)
class ValidationPrecision:
    """Widths of confidence intervals that an external validation should reach; see `calibrant.sample_size`.

    Parameters
    ----------
    oe_ratio : float or None, default=0.2
        Width of the interval of observed over expected events, on the ratio scale.
    slope : float or None, default=0.2
        Width of the interval of the calibration slope.
    auc : float or None, default=0.1
        Width of the interval of the AUC (C statistic).
    net_benefit : float or None, default=0.2
        Width of the interval of the standardised net benefit, which is net benefit over event rate. Needs `threshold`.
    threshold : float, optional
        Of decisions, for the net benefit.
    expected_auc : float, optional
        The AUC to expect; by default that of calibrated scores with the given distribution.
    confidence_level : float, default=0.95

    See Also
    --------
    SampleSize, sample_size

    Notes
    -----
    None skips a criterion. The criteria assume a calibrated model and independent rows.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> wanted = ValidationPrecision(slope=0.4, auc=None, net_benefit=None)
    >>> dict(cb.sample_size(np.linspace(0.01, 0.4, 40), precision=wanted).validation)
    {'O/E': 1495, 'calibration slope': 1497}
    """

    oe_ratio: float | None = 0.2
    slope: float | None = 0.2
    auc: float | None = 0.1
    net_benefit: float | None = 0.2
    threshold: float | None = None
    expected_auc: float | None = None
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        for name in ("oe_ratio", "slope", "auc", "net_benefit"):
            width = getattr(self, name)
            if width is not None and not (is_number(width) and width > 0):
                raise InputError(f"{name} must be a width above 0, or None; got {width!r}.", argument=name, value=width)
        for name in ("threshold", "expected_auc"):
            if getattr(self, name) is not None:
                check_share(name, getattr(self, name))
        check_share("confidence_level", self.confidence_level)
        default = type(self).__dataclass_fields__["net_benefit"].default
        if self.threshold is None and self.net_benefit not in (None, default):
            raise InputError(
                f"threshold must be given with net_benefit; got net_benefit={self.net_benefit!r} alone.",
                hint="Pass the threshold of the decisions.",
                argument="threshold",
            )

    @property
    def quantile(self) -> float:
        """The normal quantile of the intervals."""
        from scipy.special import ndtri

        return float(ndtri((1 + self.confidence_level) / 2))


def validation_rows(
    precision: ValidationPrecision, score: Floats, share: Floats, *, has_spread: bool
) -> dict[str, int | None]:
    """Return the rows that each criterion needs; None where the expected scores do not determine it."""
    rate, z = float(share @ score), precision.quantile
    needed: dict[str, int | None] = {}
    if precision.oe_ratio is not None:
        needed["O/E"] = oe_rows(rate, precision.oe_ratio, z)
    if precision.slope is not None:
        needed["calibration slope"] = slope_rows(score, share, precision.slope, z) if has_spread else None
    if precision.auc is not None:
        expected = precision.expected_auc or (_expected_auc(score, share) if has_spread else None)
        needed["AUC"] = None if expected is None else auc_rows(expected, rate, precision.auc, z)
    if precision.net_benefit is not None and precision.threshold is not None:
        needed["net benefit"] = None
        act, t = score >= precision.threshold, precision.threshold
        if has_spread and act.any():
            sensitivity = float(np.sum(share * score * act)) / rate
            specificity = 1 - float(np.sum(share * (1 - score) * act)) / (1 - rate)
            needed["net benefit"] = net_benefit_rows(sensitivity, specificity, rate, t, precision.net_benefit, z)
    return needed


def oe_rows(rate: float, width: float, z: float) -> int:
    """Return the rows for an interval of O/E of this width around 1: exp(z SE) - exp(-z SE) = width.

    SE(ln O/E)^2 = (1 - rate) / (N rate).
    """
    error = math.asinh(width / 2) / z
    return math.ceil((1 - rate) / (rate * error**2))


def slope_rows(score: Floats, share: Floats, width: float, z: float) -> int:
    """Return the rows for an interval of the calibration slope of this width, from the information of the scores.

    N = I_a / (SE^2 (I_a I_b - I_ab^2)), with I_a, I_ab, I_b the means of p (1 - p) times 1, x and x^2, x = logit p.
    """
    inside = (score > 0) & (score < 1)
    p, weight = score[inside], share[inside]
    x, information = np.log(p) - np.log1p(-p), weight * p * (1 - p)
    a, ab, b = (float(np.sum(information * x**j)) for j in range(3))
    determinant = a * b - ab**2
    if not determinant > 1e-12 * a * b:
        raise InputError(
            "scores must have at least two distinct values between 0 and 1 for the calibration slope; got one.",
            hint="Pass ValidationPrecision(slope=None), or the scores of a validation set.",
            argument="scores",
        )
    return math.ceil(a / ((width / (2 * z)) ** 2 * determinant))


def auc_rows(auc: float, rate: float, width: float, z: float) -> int:
    """Return the rows for an interval of the AUC of this width, by Newcombe's variance (2006, method 4)."""

    def error(n: float) -> float:
        half = n / 2 - 1
        inner = 1 + half * (1 - auc) / (2 - auc) + half * auc / (1 + auc)
        return math.sqrt(max(auc * (1 - auc) * inner / (n**2 * rate * (1 - rate)), 0.0))

    def refuse() -> NoReturn:
        raise InputError("auc must be a width that fewer than 2**53 rows reach; it is too small.", argument="auc")

    return _smallest(lambda n: 2 * z * error(n) <= width, refuse, start=2)


def net_benefit_rows(
    sensitivity: float, specificity: float, rate: float, threshold: float, width: float, z: float
) -> int:
    """Return the rows for an interval of the standardised net benefit of this width (Marsh et al. 2020).

    N SE^2 = sens (1 - sens) / rate + w^2 spec (1 - spec) / (1 - rate) + w^2 (1 - spec)^2 / (rate (1 - rate)), with w =
    (1 - rate) / rate times threshold / (1 - threshold).
    """
    w = (1 - rate) / rate * threshold / (1 - threshold)
    variance = sensitivity * (1 - sensitivity) / rate + w**2 * specificity * (1 - specificity) / (1 - rate)
    variance += w**2 * (1 - specificity) ** 2 / (rate * (1 - rate))
    return max(math.ceil(variance / (width / (2 * z)) ** 2), 1)


def _expected_auc(score: Floats, share: Floats) -> float:
    """Return the AUC of calibrated scores: the probability that an event has a higher score than another row."""
    events, others = share * score, share * (1 - score)
    below = np.cumsum(others) - others / 2
    return float(np.sum(events * below) / (events.sum() * others.sum()))


def _smallest(enough: Callable[[int], bool], refuse: Callable[[], NoReturn], start: int = 1) -> int:
    """Return the smallest number of rows that is enough, from `start` on."""
    low, high = start - 1, start
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_ROWS:
            refuse()
    return first_integer(low, high, enough)


@dataclass(frozen=True, repr=False)
class SampleSize:
    """Rows and events that an evaluation needs; see `sample_size`.

    Attributes
    ----------
    detect, detect_events : int
        Rows, and expected events among them, with which the deviation is detected.
    equivalence, equivalence_events : int
        Rows, and expected events among them, with which a calibrated model is shown to lie within the margin.
    kind : str
    deviation, margin, alpha, power : float
    event_rate : float
        Mean of the expected scores.
    information : float
        Information of one row: the mean of p (1 - p).
    at_least : bool
        Whether only the event rate was given, so that scores with spread need more rows.
    validation : mapping of criterion to int or None
        Rows for an external validation of the given precision, by criterion: "O/E", "calibration slope", "AUC", "net
        benefit". None where only the event rate is known; empty without ``precision=``.
    precision : ValidationPrecision or None

    See Also
    --------
    sample_size, ValidationPrecision

    Examples
    --------
    >>> import calibrant as cb
    >>> plan = cb.sample_size(event_rate=0.05, deviation=0.5)
    >>> plan.detect, plan.detect_events, plan.at_least
    (1226, 62, True)
    """

    detect: int
    detect_events: int
    equivalence: int
    equivalence_events: int
    kind: Kind
    deviation: float
    margin: float
    alpha: float
    power: float
    event_rate: float
    information: float
    at_least: bool
    validation: Mapping[str, int | None] = field(default_factory=dict)
    precision: ValidationPrecision | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        fields = plain(self, skip=("precision",))
        return fields if self.precision is None else fields | {"precision": asdict(self.precision)}

    @property
    def validation_rows(self) -> int | None:
        """Rows that reach all precisions of an external validation; None where one of them is not known.

        An event rate alone determines the rows for O/E only, so it is None there: ``validation`` has each criterion.
        """
        known = [rows for rows in self.validation.values() if rows is not None]
        return max(known) if known and len(known) == len(self.validation) else None

    def __repr__(self) -> str:
        return "\n".join(self._sentences())

    def _repr_html_(self) -> str:
        return f"<p>{'<br>'.join(html.escape(sentence) for sentence in self._sentences())}</p>"

    def _sentences(self) -> list[str]:
        power = f"with {100 * self.power:g} % power"
        off = f"odds that are off by {_percent(self.deviation)}"
        if self.kind == "slope":
            off = f"a slope of {1 - self.deviation:g} or {1 + self.deviation:g}"
        sentences = [
            f"To detect {off} {power}: {self._sizes(self.detect)}.",
            f"To show that the odds of a calibrated model are accurate to within {_percent(self.margin)} {power}: "
            f"{self._sizes(self.equivalence)}.",
        ]
        if self.precision is not None:
            level = f"{100 * self.precision.confidence_level:g} % interval"
            for name, rows in self.validation.items():
                width = getattr(self.precision, _CRITERIA[name])
                need = "needs expected scores" if rows is None else self._sizes(rows)
                sentences.append(f"For a {level} of {name} of width {width:g}: {need}.")
        if self.at_least:
            which = "The rows to detect and to show" if self.validation else "These"
            sentences.append(f"{which} are lower limits: scores with spread need more rows.")
        return sentences

    def _sizes(self, rows: int) -> str:
        rounded = round_up(rows)
        return f"{rounded:,} rows ({round_up(rounded * self.event_rate):,} events)"


def sample_size(
    scores: Column | ScoreTable | None = None,
    *,
    event_rate: float | None = None,
    deviation: float = 0.2,
    margin: float = 0.1,
    alpha: float = 0.05,
    power: float = 0.8,
    kind: Kind = "shift",
    precision: ValidationPrecision | None = None,
) -> SampleSize:
    """Rows and events needed to detect a deviation, and to show that a calibrated model lies within a margin.

    Parameters
    ----------
    scores : column or ScoreTable, optional
        Expected scores, for example those of a validation set. Only their distribution is used.
    event_rate : float, optional
        Expected event rate, where no scores are known. Give one of the two.
    deviation : float, default=0.2
        The deviation to detect. ``kind="shift"``: the error of all log-odds; 0.2 means true odds that are 22 % higher
        or 18 % lower than predicted. ``kind="slope"``: the slope of the log-odds is 1 - deviation or 1 + deviation, and
        the mean score is the event rate.
    margin : float, default=0.1
        The largest log-odds error that is still negligible; 0.1 means that the odds are accurate to about 10 %.
    alpha : float, default=0.05
        Level of both tests.
    power : float, default=0.8
        Probability with which a deviation is detected, and with which a calibrated model is shown to lie within the
        margin.
    kind : {"shift", "slope"}, default="shift"
        Which deviation to detect.
    precision : ValidationPrecision, optional
        Adds the rows of an external validation whose confidence intervals have given widths, by the criteria of Riley
        et al. (2021): O/E, calibration slope, AUC and, with a threshold, standardised net benefit.

    Returns
    -------
    SampleSize
        ``detect`` and ``equivalence`` in rows, ``detect_events`` and ``equivalence_events`` in expected events.

    See Also
    --------
    detectable, SampleSize, ValidationPrecision

    Notes
    -----
    Rows count by their information, p (1 - p): 0.25 at a score of 50 %, about 0.01 at 1 %. An event rate alone gives
    the information of a model without spread, an upper bound, so the rows are lower limits; for rare events they are
    close.

    Detection: the power of the omnibus test is at least that of each of its tests at alpha divided by their number.
    The plan takes the best of calibration in the large (for a slope: the slope) and the two tests over bins, and the
    direction that needs more rows. Equivalence: the log-odds error is shown to lie within the margin, which in addition
    needs that the test over fine bins does not reject; it rejects at most alpha / 4 of the calibrated models, which the
    plan ignores. Rows are independent and have equal weights; more rows are needed in clusters. A simulation study is
    in the documentation under "Sample size".

    Examples
    --------
    >>> sample_size(np.random.default_rng(0).beta(1, 19, 5_000))
    To detect odds that are off by 22 % with 80 % power: 7,100 rows (360 events).
    To show that the odds of a calibrated model are accurate to within 10 % with 80 % power: 46,000 rows (2,300 events).
    >>> plan = sample_size(event_rate=0.05, deviation=0.5)
    >>> plan.detect, plan.detect_events
    (1226, 62)
    >>> from calibrant.inference import ValidationPrecision
    >>> dict(sample_size(np.linspace(0.01, 0.4, 40), precision=ValidationPrecision(threshold=0.1)).validation)
    {'O/E': 1495, 'calibration slope': 5988, 'AUC': 631, 'net benefit': 353}
    """
    expected = _Expected.read(scores, event_rate)
    for name, value in (("deviation", deviation), ("margin", margin)):
        _check_log_odds(name, value)
    for name, value in (("alpha", alpha), ("power", power)):
        check_share(name, value)
    _check_kind(kind, expected, deviation)
    detect = max(_rows_to_detect(expected, sign * deviation, alpha, power, kind) for sign in (-1, 1))
    needed = information_needed(margin, alpha=alpha, power=power, scores=expected.shape) / expected.information
    equivalence = math.ceil(needed) if needed <= MOST_ROWS else _refuse("margin", margin)
    events = [math.ceil(rows * expected.event_rate - 1e-9) for rows in (detect, equivalence)]
    settings = (kind, float(deviation), float(margin), float(alpha), float(power))
    shape = (expected.event_rate, expected.information, scores is None)
    planned = (*shape, _validation(expected, precision), precision)
    return SampleSize(detect, events[0], equivalence, events[1], *settings, *planned)


def _validation(expected: "_Expected", precision: ValidationPrecision | None) -> dict[str, int | None]:
    if precision is None:
        return {}
    if not isinstance(precision, ValidationPrecision):
        raise InputError(
            f"precision must be a ValidationPrecision; got {precision!r}.",
            hint="Pass calibrant.inference.ValidationPrecision(slope=0.2, ...).",
            argument="precision",
            value=precision,
        )
    return validation_rows(precision, expected.table.score, expected.share, has_spread=expected.has_spread)


@dataclass(frozen=True, eq=False)
class _Expected:
    """Expected scores: a table, and whether their spread is known."""

    table: ScoreTable
    has_spread: bool

    @classmethod
    def read(cls, scores: Column | ScoreTable | None, event_rate: float | None) -> "_Expected":
        if (scores is None) == (event_rate is None):
            given = "neither" if scores is None else "both"
            raise InputError(
                f"scores or event_rate must be given, and not both; got {given}.",
                hint="Pass the scores of a validation set, or event_rate=0.05 where none exist.",
                argument="scores",
            )
        if event_rate is not None:
            check_share("event_rate", event_rate)
            return cls(ScoreTable.from_counts([float(event_rate)], [1], [0]), has_spread=False)
        table = scores if isinstance(scores, ScoreTable) else table_of_scores(scores, "scores")
        expected = cls(table, has_spread=True)
        if not len(table) or not expected.information > 0:
            raise InputError(
                "scores must have a score between 0 and 1; got none.",
                hint="Pass the scores of a validation set.",
                argument="scores",
            )
        return expected

    @property
    def shape(self) -> ScoreTable | float:
        """Argument of `information_needed`: the table, or one score that represents distinct ones."""
        return self.table if self.has_spread else float(self.table.score[0])

    @cached_property
    def share(self) -> Floats:
        return np.asarray(self.table.n / float(self.table.n.sum()))

    @cached_property
    def event_rate(self) -> float:
        return float(np.sum(self.share * self.table.score))

    @cached_property
    def information(self) -> float:
        """Information of one row."""
        return float(np.sum(self.share * self.table.score * (1 - self.table.score)))

    @cached_property
    def is_constant(self) -> bool:
        """Whether no slope exists."""
        p = self.table.score
        return self.has_spread and int(np.sum((p > 0) & (p < 1))) < 2

    def bin_counts(self, information: float) -> list[int]:
        """Return the numbers of coarse and of fine bins that are tested with so much information."""
        coarse, fine = information_bins(information), fine_bin_count(information)
        counts = [coarse] + [fine] * (fine > 2 * coarse)
        if self.has_spread:
            counts = [EqualInformation(max(count, 1))(self.table).start.size for count in counts]
        return [count for count, least in zip(counts, (1, 2 * coarse), strict=False) if count > least]

    def truth(self, deviation: float, kind: Kind) -> Floats:
        """Return the true probabilities of events if scores deviate."""
        x = log_odds.logits(self.table.score)
        if kind == "shift":
            return np.asarray(expit(x + deviation))
        one = np.zeros(1, dtype=np.int64)
        steep = (1 + deviation) * x
        return np.asarray(expit(steep + log_odds.offsets(steep, self.share, np.array([self.event_rate]), one)[0]))


def _rows_to_detect(expected: _Expected, deviation: float, alpha: float, power: float, kind: Kind) -> int:
    """Return the smallest number of rows with which the omnibus test has this power."""
    truth = expected.truth(deviation, kind)
    alone = _large_power(expected, truth) if kind == "shift" else _slope_power(expected, truth)

    def enough(rows: int) -> bool:
        information = rows * expected.information
        counts = expected.bin_counts(information)
        level = alpha / (1 + (not expected.is_constant) + len(counts))
        if alone(rows, level) >= power:
            return True
        return expected.has_spread and any(_bin_power(expected, truth, rows, n, level) >= power for n in counts)

    return _smallest(enough, lambda: _refuse("deviation", abs(deviation)))


def _large_power(expected: _Expected, truth: Floats) -> Callable[[int, float], float]:
    """Return the power of the test of calibration in the large as a function of rows and level."""
    share, p = expected.share, expected.table.score
    gap, spread = float(np.sum(share * (truth - p))), float(np.sum(share * truth * (1 - truth)))
    rows_vary = spread + float(np.sum(share * (truth - p) ** 2))
    rate, true_rate = expected.event_rate, expected.event_rate + gap
    rarest = min(rate, 1 - rate, true_rate, 1 - true_rate)

    def power(rows: int, level: float) -> float:
        if rows * rarest < MIN_EVENTS:
            return _normal_power(rows * abs(gap) - 0.5, rows * rate * (1 - rate), rows * spread, level)
        return _normal_power(rows * abs(gap), rows * max(expected.information, rows_vary), rows * spread, level)

    return power


def _slope_power(expected: _Expected, truth: Floats) -> Callable[[int, float], float]:
    """Return the power of the score test of slope 1; the mean score is the event rate, so no shift is fitted."""
    share, p = expected.share, expected.table.score
    x, weight = log_odds.logits(p), share * p * (1 - p)
    contrast = x - np.sum(weight * x) / np.sum(weight)
    gap = abs(float(np.sum(share * contrast * (truth - p))))
    model = float(np.sum(weight * contrast**2))
    spread = float(np.sum(share * contrast**2 * truth * (1 - truth)))
    rows_vary = spread + float(np.sum(share * contrast**2 * (truth - p) ** 2))
    return lambda rows, level: _normal_power(rows * gap, rows * max(model, rows_vary), rows * spread, level)


def _normal_power(gap: float, variance: float, spread: float, level: float) -> float:
    """Return the probability that a sum with mean `gap` and variance `spread` is significant with `variance`."""
    from scipy.special import ndtr, ndtri

    return float(ndtr((gap + ndtri(level / 2) * math.sqrt(variance)) / math.sqrt(spread)))


def _bin_power(expected: _Expected, truth: Floats, rows: int, count: int, level: float) -> float:
    """Return the power of a test over bins, by a scaled noncentral chi-squared distribution."""
    from scipy.special import chdtri

    share, p = expected.share, expected.table.score
    bins = LogOddsBins.from_table(expected.table, EqualInformation(count))
    variance = bins.total(share * p * (1 - p))
    scale = float(np.mean(bins.total(share * truth * (1 - truth)) / variance))
    centre = rows * float(np.sum(bins.total(share * (truth - p)) ** 2 / variance))
    return 1 - noncentral_chi2_cdf(float(chdtri(len(bins), level)) / scale, len(bins), centre / scale)


def _check_log_odds(name: str, value: float) -> None:
    if not (isinstance(value, Real) and not isinstance(value, bool) and 0 < value <= _LARGEST):
        raise InputError(
            f"{name} must be above 0 and at most {_LARGEST:g}; got {value!r}.",
            hint=f"Give it in log-odds: {name}=0.1 means odds that are off by about 10 %.",
            argument=name,
            value=value,
        )


def _refuse(name: str, value: float) -> NoReturn:
    """Raise the error that no number of rows which can be counted is enough."""
    raise InputError(
        f"{name} must be one for which 2**53 rows are enough; got {value!r}.",
        hint=f"Give a larger {name}: 0.1 means odds that are off by about 10 %.",
        argument=name,
        value=value,
    )


def _check_kind(kind: str, expected: _Expected, deviation: float) -> None:
    if kind not in get_args(Kind):
        raise InputError(
            f"kind must be 'shift' or 'slope'; got {kind!r}.",
            hint="A shift changes all log-odds; a slope makes scores overconfident or underconfident.",
            argument="kind",
            value=kind,
        )
    if kind == "shift":
        return
    if not expected.has_spread or expected.is_constant:
        raise InputError(
            "scores must have at least two distinct values between 0 and 1 for kind='slope'; got "
            f"{'one' if expected.has_spread else 'none'}.",
            hint="Pass the scores of a validation set.",
            argument="scores",
        )
    if deviation >= 1:
        raise InputError(
            f"deviation must be below 1 for kind='slope'; got {deviation!r}.",
            hint="A deviation of 0.2 means a slope of 0.8 or 1.2.",
            argument="deviation",
            value=deviation,
        )


def _percent(deviation: float) -> str:
    """Format the error of the odds, rounded down to two significant digits: 0.1 is about 10 %, 0.2 about 22 %."""
    value = 100 * math.expm1(deviation)
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.floor(value / unit) * unit:.6g} %"
