"""Cases of the experiment on the chapter's taxonomy: for each kind of calibration real data, a model and its versions.

Rows are shuffled once with seed 0. The model is fitted on the first part; recalibrators on the second, on forecasts of
the distorted model; everything is measured on the third.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit, softmax
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_predict

import calibrant as cb
from calibrant import regression as rg
from research.reproduction.sources import DATA, NoDataError

BRIER, HULL = "MSEp (Brier score)", "CalLoss over the ROC hull (mcb)"
Value = Callable[[np.ndarray, Any], float]


@dataclass(frozen=True)
class Measure:
    """A measure, and the column of Table 2 that lists it for a kind ("" if none does).

    `ideal` is the value of a calibrated model. Without one, lower values are better, or higher ones if `higher`.
    """

    name: str
    value: Value
    listed: str = ""
    ideal: float | None = None
    higher: bool = False

    def improvement(self, before: float, after: float) -> float:
        """Return how much better the second value is; negative if it is worse."""
        if self.ideal is not None:
            return abs(before - self.ideal) - abs(after - self.ideal)
        return after - before if self.higher else before - after


@dataclass(frozen=True)
class Change:
    """A distortion of the model, and the distorted model after recalibration."""

    distortion: str
    calibrator: str
    distorted: Any
    recalibrated: Any


@dataclass(frozen=True)
class Case:
    """One kind: outcomes of the measured rows, and versions of the forecasts.

    `methods` are recalibrators of one of the distortions. `informative` and `uninformative` are calibrated exactly on
    the measured rows, because they were fitted on them. `overall` and `local` are the deviations of Table 1;
    `predictions` returns the predicted classes or numbers; `pure` and `impure` name the measures that compare methods.
    """

    kind: str
    data: str
    y: np.ndarray
    base: Any
    changes: tuple[Change, ...]
    methods: tuple[Change, ...]
    informative: Any
    uninformative: Any
    measures: tuple[Measure, ...]
    overall: Value
    local: Value
    predictions: Callable[[Any], np.ndarray]
    pure: str
    impure: str

    def measure(self, name: str) -> Measure:
        return next(measure for measure in self.measures if measure.name == name)


@dataclass(frozen=True)
class Scores:
    """Probabilities of an event, and the threshold above which it is predicted."""

    p: np.ndarray
    threshold: float

    def part(self, rows: np.ndarray) -> "Scores":
        return replace(self, p=self.p[rows])

    @property
    def labels(self) -> np.ndarray:
        return (self.p > self.threshold).astype(np.int64)


@dataclass(frozen=True)
class Decided:
    """Predicted classes, the scores behind them, and a group for each row."""

    labels: np.ndarray
    scores: np.ndarray
    group: np.ndarray

    def part(self, rows: np.ndarray) -> "Decided":
        return Decided(self.labels[rows], self.scores[rows], self.group[rows])


def take(forecast: Any, rows: np.ndarray) -> Any:
    """Return the forecasts of some rows."""
    return forecast.part(rows) if hasattr(forecast, "part") else forecast[rows]


def read(folder: str, name: str) -> pd.DataFrame:
    path = DATA / folder / f"{name}.csv.gz"
    if not path.exists():
        raise NoDataError(f"{path} does not exist: set CALIBRANT_DATA to the folder with the data sets.")
    return pd.read_csv(path)


def split(size: int, *parts: int) -> list[np.ndarray]:
    """Return shuffled row numbers in parts of these sizes."""
    order = np.random.default_rng(0).permutation(size)
    return np.split(order[: sum(parts)], np.cumsum(parts)[:-1])


def cases() -> Iterator[Case]:
    """Yield the case of each kind."""
    yield from classifier_cases()
    yield class_probabilities()
    yield from regression_cases()


def classifier_cases() -> Iterator[Case]:
    """Yield labels (CD) and probabilities (CP) of one classifier: who subscribes to a bank's offer?"""
    frame = read("cost_aware", "bank_full")
    y, group = frame.pop("label").to_numpy(), frame["housing"].to_numpy()
    X = pd.get_dummies(frame, drop_first=True).to_numpy(dtype=float)
    train, known, test = split(len(y), 20_000, 10_000, 5_000)
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(X[train], y[train])
    yield labels(model, X, y, group, known, test)
    yield probabilities(model.predict_proba(X)[:, 1], y, known, test)


def labels(model: Any, X: np.ndarray, y: np.ndarray, group: np.ndarray, known: np.ndarray, test: np.ndarray) -> Case:
    """Type CD. The third distortion cancels: one group has too many predicted events, the other too few."""
    p, first = model.predict_proba(X[test])[:, 1], group == "yes"

    def cut(threshold: Any) -> Decided:
        return Decided((p >= threshold).astype(np.int64), p, group[test])

    def fitted(rows: np.ndarray, **options: Any) -> float:
        return float(
            cb.calibrators.ProportionThreshold(FrozenEstimator(model), **options).fit(X[rows], y[rows]).threshold_
        )

    moved = 0.5 * y[known][first[known]].sum()  # events, from the group with a housing loan to the other
    thresholds = []
    for inside, extra in ((first, -moved), (~first, moved)):
        rows = known[inside[known]]
        share = (y[rows].sum() + extra) / rows.size
        thresholds.append((fitted(rows, target={0: 1 - share, 1: share}), fitted(rows)))
    shifted, by_group = (cut(np.where(first[test], *pair)) for pair in zip(*thresholds, strict=True))
    whole, exact = cut(fitted(known)), [np.sort(p[own])[-y[test][own].sum()] for own in (first[test], ~first[test])]
    rare = Change("too rarely (threshold 0.5)", "ProportionThreshold()", cut(0.5), whole)
    often = Change("too often (threshold 0.1)", "ProportionThreshold()", cut(0.1), whole)
    mixed = Change("by group: too rarely, too often", "ProportionThreshold() by group", shifted, by_group)
    return Case(
        "CD: labels",
        "bank, boosted trees",
        y[test],
        cut(0.5),
        (rare, often, mixed),
        (rare, replace(rare, calibrator=mixed.calibrator, recalibrated=by_group)),
        cut(np.where(first[test], *exact)),
        Decided(permuted(y[test], group[test]), np.full(test.size, y[test].mean()), group[test]),
        LABEL_MEASURES,
        overall=class_shift,
        local=class_shift_by_group,
        predictions=lambda forecast: forecast.labels,
        pure="class proportions by group",
        impure="accuracy",
    )


def permuted(y: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the outcomes, permuted within each group."""
    rng, found = np.random.default_rng(0), y.copy()
    for name in np.unique(group):
        found[group == name] = rng.permutation(y[group == name])
    return found


def class_shift(y: np.ndarray, forecast: Decided) -> float:
    """Return the total variation distance between predicted and actual class proportions."""
    return float(np.abs(cb.metrics.proportions(y, forecast.labels, classes=[0, 1]).difference).sum() / 2)


def class_shift_by_group(y: np.ndarray, forecast: Decided) -> float:
    """Return the mean over rows of the distance within their group."""
    groups = cb.metrics.proportions(y, forecast.labels, classes=[0, 1], by=forecast.group).groups.values()
    return float(sum(own.size * np.abs(own.difference).sum() / 2 for own in groups) / y.size)


LABEL_MEASURES = (
    Measure(
        "macro-averaged accuracy",
        lambda y, f: cb.metrics.proportions(y, f.labels).macro_accuracy,
        "calibration",
        None,
        True,
    ),
    Measure("class proportions", class_shift, "calibration", 0.0),
    Measure("class proportions by group", class_shift_by_group, "", 0.0),
    Measure("accuracy", lambda y, f: cb.metrics.proportions(y, f.labels).accuracy, "partial", None, True),
    Measure("mean F-measure", lambda y, f: cb.metrics.proportions(y, f.labels).f_measure, "partial", None, True),
    Measure("AUC", lambda y, f: cb.metrics.auc(y, f.scores), "insensitive", None, True),
    Measure(BRIER, lambda y, f: cb.brier(y, f.scores), "insensitive"),
    Measure("log loss", lambda y, f: cb.log_loss(y, f.scores), "insensitive"),
)


def probabilities(p: np.ndarray, y: np.ndarray, known: np.ndarray, test: np.ndarray) -> Case:
    """Type CP, two classes. Distortions are straight lines on the logit scale."""
    centre = logit(y[known].mean())
    distortions = {
        "overestimates (log-odds + 1)": lambda z: z + 1,
        "underestimates (log-odds - 1)": lambda z: z - 1,
        "overconfident (log-odds x 2)": lambda z: centre + 2 * (z - centre),
    }

    def change(name: str, calibrator: Any) -> Change:
        bent, threshold = expit(distortions[name](logit(p))), float(expit(distortions[name](0.0)))
        cal = calibrator.fit(bent[known], y[known])
        after = Scores(cal(bent[test]), float(cal(np.array([threshold]))[0]))
        return Change(name, repr(calibrator), Scores(bent[test], threshold), after)

    exact = rg.IsotonicRecalibrator(cv=None).fit(p[test], y[test]).predict(p[test])
    methods = (cb.calibrators.BinningAverage(), cb.Isotonic(), cb.Platt(on="score"), cb.Platt(), cb.Beta())
    return Case(
        "CP: probabilities",
        "bank, boosted trees",
        y[test],
        Scores(p[test], 0.5),
        tuple(change(name, cb.Beta()) for name in distortions),
        tuple(change("overconfident (log-odds x 2)", each) for each in methods),
        Scores(exact, 0.5),
        Scores(np.full(test.size, y[test].mean()), 0.5),
        SCORE_MEASURES,
        overall=lambda y, f: abs(cb.metrics.bias(y, f.p)),
        local=lambda y, f: cb.metrics.ace(y, f.p),
        predictions=lambda forecast: forecast.labels,
        pure=HULL,
        impure=BRIER,
    )


def at_half(y: np.ndarray, forecast: Scores) -> float:
    """Return the accuracy of predictions above 0.5."""
    return float(np.mean((forecast.p > 0.5) == y))


SCORE_MEASURES = (
    Measure(BRIER, lambda y, f: cb.brier(y, f.p), "calibration"),
    Measure("log loss", lambda y, f: cb.log_loss(y, f.p), "calibration"),
    Measure("CalBin", lambda y, f: cb.metrics.calbin(y, f.p), "calibration", 0.0),
    Measure("CalLoss", lambda y, f: cb.metrics.calloss(y, f.p), "calibration", 0.0),
    Measure(HULL, lambda y, f: cb.metrics.mcb(y, f.p), "", 0.0),
    Measure("ECE", lambda y, f: cb.ece(y, f.p), "", 0.0),
    Measure("TCE, %", lambda y, f: cb.tce(y, f.p), "", 0.0),
    Measure("AUC", lambda y, f: cb.metrics.auc(y, f.p), "insensitive", None, True),
    Measure("accuracy", lambda y, f: float(np.mean(f.labels == y)), "insensitive", None, True),
    Measure("mean F-measure", lambda y, f: cb.metrics.proportions(y, f.labels).f_measure, "insensitive", None, True),
    Measure("accuracy at 0.5", at_half, "", None, True),
)


def class_probabilities() -> Case:
    """Type CP, ten classes: a network on CIFAR-10, overconfident itself. Values are means over classes."""
    y, proba = network()
    known, test = split(len(y), 5_000, 5_000)
    z = np.log(np.maximum(proba, 1e-12))
    distortions = {
        "overconfident (as fitted)": z,
        "underconfident (logits x 0.25)": 0.25 * z,
        "a class overestimates (logit + 2)": z + np.where(np.arange(10) == 3, 2.0, 0.0),
    }

    def change(name: str, calibrator: Any) -> Change:
        bent = softmax(distortions[name], axis=1)
        return Change(name, repr(calibrator), bent[test], calibrator.fit(bent[known], y[known])(bent[test]))

    own, flat, raised = distortions
    methods = (
        cb.calibrators.SoftmaxTemperature(),
        cb.calibrators.VectorScaling(),
        cb.calibrators.Dirichlet(),
        cb.calibrators.Spline(),
        cb.calibrators.OneVsRest(cb.Platt()),
        cb.calibrators.OneVsRest(cb.Isotonic()),
        cb.calibrators.PairwiseCoupling(cb.Isotonic()),
    )
    return Case(
        "CP: class probabilities",
        "CIFAR-10, Wide ResNet",
        y[test],
        proba[test],
        (
            change(own, cb.calibrators.SoftmaxTemperature()),
            change(flat, cb.calibrators.SoftmaxTemperature()),
            change(raised, cb.calibrators.VectorScaling()),
        ),
        tuple(change(raised, each) for each in methods),
        rates_of_cells(y[test], proba[test]),
        np.tile(np.bincount(y[test], minlength=10) / test.size, (test.size, 1)),
        CLASS_MEASURES,
        overall=lambda y, f: float(np.abs(f.mean(axis=0) - np.bincount(y, minlength=10) / y.size).sum() / 2),
        local=lambda y, f: by_class("ace", y, f),
        predictions=lambda forecast: forecast.argmax(axis=1),
        pure=HULL,
        impure=BRIER,
    )


def network() -> tuple[np.ndarray, np.ndarray]:
    """Return classes and predicted probabilities of the 10,000 test images of CIFAR-10."""
    path = DATA / "forecasts" / "cifar10_wideresnet_16_4.npz"
    if not path.exists():
        raise NoDataError(f"{path} does not exist: set CALIBRANT_DATA to the folder with the data sets.")
    with np.load(path) as rows:
        columns = {rows[name].ndim: rows[name] for name in rows}
    proba = columns[2].astype(np.float64)
    return columns[1].astype(np.int64), proba / proba.sum(axis=1, keepdims=True)


def rates_of_cells(y: np.ndarray, proba: np.ndarray) -> np.ndarray:
    """Return the class rates among the rows with the same top label and the same fifth of its confidences."""
    best, sure = proba.argmax(axis=1), proba.max(axis=1)
    exact = np.empty_like(proba)
    for label in range(proba.shape[1]):
        rows = np.flatnonzero(best == label)
        for cell in np.array_split(rows[np.argsort(sure[rows], kind="stable")], 5):
            exact[cell] = np.bincount(y[cell], minlength=proba.shape[1]) / cell.size
    return exact


def by_class(metric: str, y: np.ndarray, proba: np.ndarray) -> float:
    return cb.metrics.classwise(metric, y, proba, classes=range(10)).value


def class_log_loss(y: np.ndarray, proba: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(-np.mean(np.log(proba[np.arange(y.size), y])))


def of_top_label(y: np.ndarray, proba: np.ndarray) -> Any:
    return cb.metrics.proportions(y, proba.argmax(axis=1), classes=range(10))


CLASS_MEASURES = (
    Measure(BRIER, lambda y, f: by_class("brier", y, f), "calibration"),
    Measure("log loss", class_log_loss, "calibration"),
    Measure("CalBin", lambda y, f: by_class("calbin", y, f), "calibration", 0.0),
    Measure("CalLoss", lambda y, f: by_class("calloss", y, f), "calibration", 0.0),
    Measure(HULL, lambda y, f: by_class("mcb", y, f), "", 0.0),
    Measure("ECE", lambda y, f: by_class("ece", y, f), "", 0.0),
    Measure("ECE of the top label", lambda y, f: cb.ece(cb.metrics.top_label(y, f, classes=range(10))), "", 0.0),
    Measure("AUC", lambda y, f: by_class("auc", y, f), "insensitive", None, True),
    Measure("accuracy", lambda y, f: of_top_label(y, f).accuracy, "insensitive", None, True),
    Measure("mean F-measure", lambda y, f: of_top_label(y, f).f_measure, "insensitive", None, True),
)


def regression_cases() -> Iterator[Case]:
    """Yield point predictions (RD) and predictive distributions (RP) of house prices in California.

    Prices at the cap of the census are dropped: these are not the prices of the houses.
    """
    frame = read("regression", "california_housing").query("median_house_value <= 500_000")
    price = frame.pop("median_house_value").to_numpy(dtype=float) / 1e5
    X = pd.get_dummies(frame).to_numpy(dtype=float)
    parts = split(len(price), 6_000, 4_000, 4_000)
    model = HistGradientBoostingRegressor(max_iter=100, random_state=0).fit(X[parts[0]], price[parts[0]])
    yield points(model.predict(X), price, *parts[1:])
    yield distributions(X, np.log(price), *parts)


def points(predicted: np.ndarray, y: np.ndarray, known: np.ndarray, test: np.ndarray) -> Case:
    """Type RD. The third distortion cancels: high predictions are too high, low ones too low."""
    sd, centre = y[known].std(), predicted[known].mean()
    distortions = {
        "overestimates (+ 0.3 sd)": predicted + 0.3 * sd,
        "underestimates (- 0.3 sd)": predicted - 0.3 * sd,
        "overconfident (spread x 1.3)": centre + 1.3 * (predicted - centre),
    }

    def change(name: str, calibrator: Any) -> Change:
        bent, shown = distortions[name], repr(calibrator).replace("cv=None", "").replace("(, ", "(").replace(", )", ")")
        return Change(name, shown, bent[test], calibrator.fit(bent[known], y[known]).predict(bent[test]))

    methods = (
        rg.LinearRecalibrator(cv=None),
        rg.LinearRecalibrator(against="outcome", cv=None),
        rg.IsotonicRecalibrator(cv=None),
        rg.LocalRecalibrator(cv=None),
    )
    return Case(
        "RD: points",
        "California housing, boosted trees",
        y[test],
        predicted[test],
        tuple(change(name, methods[0]) for name in distortions),
        tuple(change("overconfident (spread x 1.3)", each) for each in methods),
        rg.IsotonicRecalibrator(cv=None).fit(predicted[test], y[test]).predict(predicted[test]),
        np.full(test.size, y[test].mean()),
        POINT_MEASURES,
        overall=lambda y, f: abs(rg.mean_error(y, f)) / y.std(),
        local=lambda y, f: rg.bias_by_bin(y, f).mean_absolute / y.std(),
        predictions=lambda forecast: forecast,
        pure="bias by bin",
        impure="MSEr",
    )


POINT_MEASURES = (
    Measure("average error, E(f - y)", rg.mean_error, "calibration", 0.0),
    Measure("relative error, E(f / y)", rg.mean_quotient, "calibration", 1.0),
    Measure("ratio of the means, E(f) / E(y)", rg.ratio, "", 1.0),
    Measure("bias by bin", lambda y, f: rg.bias_by_bin(y, f).mean_absolute, "", 0.0),
    Measure("MSEr", rg.mse, "partial"),
    Measure("MAE", rg.mae, "partial"),
    Measure("relative MSE", rg.relative_mse, ""),
)


def distributions(X: np.ndarray, y: np.ndarray, train: np.ndarray, known: np.ndarray, test: np.ndarray) -> Case:
    """Type RP: normal forecasts whose standard deviation is a second model, of the absolute out-of-fold errors."""
    model = HistGradientBoostingRegressor(max_iter=100, random_state=0)
    errors = np.abs(y[train] - cross_val_predict(model, X[train], y[train], cv=5))
    size = HistGradientBoostingRegressor(max_iter=40, max_depth=3, random_state=0).fit(X[train], errors)
    mean = model.fit(X[train], y[train]).predict(X)
    sd = np.maximum(size.predict(X), 0.02) * np.sqrt(np.pi / 2)  # E|error| of a normal error is sd sqrt(2 / pi)
    distortions = {
        "overconfident (sd x 0.6)": rg.Gaussian(mean, 0.6 * sd),
        "underconfident (sd x 1.6)": rg.Gaussian(mean, 1.6 * sd),
        "overestimates (mean + 0.5 sd)": rg.Gaussian(mean + 0.5 * sd, sd),
    }

    def change(name: str, calibrator: Any) -> Change:
        bent = distortions[name]
        cal = calibrator.fit(bent.part(known), y[known])
        return Change(name, repr(calibrator), bent.part(test), cal(bent.part(test)))

    narrow, wide, high = distortions
    scaling, warping = rg.VarianceScaling, rg.PITRecalibrator
    base = rg.Gaussian(mean, sd).part(test)
    marginal = rg.Gaussian(np.full(test.size, y[test].mean()), y[test].std())
    return Case(
        "RP: distributions",
        "California housing, boosted trees (log price)",
        y[test],
        base,
        (change(narrow, scaling()), change(wide, scaling()), change(high, warping())),
        tuple(change(narrow, each) for each in (scaling(), scaling(level=None), warping(), rg.ParetoRecalibrator())),
        warping(n_knots=100).fit(base, y[test])(base),
        warping(n_knots=100).fit(marginal, y[test])(marginal),
        DISTRIBUTION_MEASURES,
        overall=coverage_error,
        local=coverage_error_by_width,
        predictions=lambda forecast: forecast.point(),
        pure="Anderson-Darling A2",
        impure="CRPS",
    )


def coverage_error(y: np.ndarray, forecast: Any) -> float:
    """Return the mean absolute coverage error of central intervals."""
    return rg.coverage(y, forecast).mean_absolute


def coverage_error_by_width(y: np.ndarray, forecast: Any) -> float:
    """Return the mean over fifths of the rows by the width of their 90 % interval."""
    width = np.diff(forecast.quantile([0.05, 0.95]), axis=1)[:, 0]
    fifths = np.array_split(np.argsort(width, kind="stable"), 5)
    return float(np.mean([coverage_error(y[rows], take(forecast, rows)) for rows in fifths]))


DISTRIBUTION_MEASURES = (
    Measure("Anderson-Darling A2", lambda y, f: rg.anderson_darling(rg.pit(y, f)).statistic, "calibration", 0.0),
    Measure("coverage error", coverage_error, "", 0.0),
    Measure("NLL", rg.nll),
    Measure("CRPS", rg.crps),
    Measure("average error, E(f - y)", lambda y, f: rg.mean_error(y, f.point()), "insensitive", 0.0),
    Measure(
        "relative error, E(f / y)", lambda y, f: rg.mean_quotient(np.exp(y), np.exp(f.point())), "insensitive", 1.0
    ),
    Measure("MSEr", lambda y, f: rg.mse(y, f.point()), "insensitive"),
    Measure("MAE", lambda y, f: rg.mae(y, f.point()), "insensitive"),
)
