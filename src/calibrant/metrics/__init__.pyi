from typing import Literal

from calibrant._support.arrays import Column
from calibrant._support.errors import Note as Note
from calibrant.forecasts.forecast_table import ForecastTable
from calibrant.metrics.bins import Bins
from calibrant.metrics.calibration_counter import CalibrationCounter as CalibrationCounter
from calibrant.metrics.calibration_errors import ACE as ACE
from calibrant.metrics.calibration_errors import ECC as ECC
from calibrant.metrics.calibration_errors import ECE as ECE
from calibrant.metrics.calibration_errors import ICI as ICI
from calibrant.metrics.calibration_errors import MCE as MCE
from calibrant.metrics.calibration_errors import RMSCE as RMSCE
from calibrant.metrics.calibration_errors import TCE as TCE
from calibrant.metrics.calibration_errors import Bias as Bias
from calibrant.metrics.calibration_errors import CalBin as CalBin
from calibrant.metrics.calibration_errors import CalLoss as CalLoss
from calibrant.metrics.calibration_errors import DebiasedSCE as DebiasedSCE
from calibrant.metrics.calibration_errors import Ecce as Ecce
from calibrant.metrics.calibration_errors import EcceMad as EcceMad
from calibrant.metrics.calibration_errors import EcceR as EcceR
from calibrant.metrics.calibration_errors import Emax as Emax
from calibrant.metrics.calibration_errors import IsotonicErrors as IsotonicErrors
from calibrant.metrics.calibration_errors import OERatio as OERatio
from calibrant.metrics.calibration_errors import ecce as ecce
from calibrant.metrics.calibration_errors import isotonic_errors as isotonic_errors
from calibrant.metrics.costs import Cost
from calibrant.metrics.decision_costs import DecisionCost as DecisionCost
from calibrant.metrics.decision_costs import bayes_threshold as bayes_threshold
from calibrant.metrics.decision_costs import optimal_prediction as optimal_prediction
from calibrant.metrics.distribution import CRPS as CRPS
from calibrant.metrics.distribution import NLL as NLL
from calibrant.metrics.distribution import CoverageError as CoverageError
from calibrant.metrics.distribution import DistributionMetric as DistributionMetric
from calibrant.metrics.distribution import IntervalScore as IntervalScore
from calibrant.metrics.frequencies import CountFrequencies as CountFrequencies
from calibrant.metrics.frequencies import count_frequencies as count_frequencies
from calibrant.metrics.gce import GCE as GCE
from calibrant.metrics.gce import Breakdown as Breakdown
from calibrant.metrics.labels import Proportions as Proportions
from calibrant.metrics.labels import proportions as proportions
from calibrant.metrics.log_odds import LogOddsError as LogOddsError
from calibrant.metrics.log_odds import slope_intercept as slope_intercept
from calibrant.metrics.metric import Metric as Metric
from calibrant.metrics.metric import MetricValue as MetricValue
from calibrant.metrics.metric import UnbinnedMetric as UnbinnedMetric
from calibrant.metrics.metric import metric_function as metric_function
from calibrant.metrics.multiclass import Classwise as Classwise
from calibrant.metrics.multiclass import ClasswiseMetric as ClasswiseMetric
from calibrant.metrics.multiclass import MulticlassBrier as MulticlassBrier
from calibrant.metrics.multiclass import MulticlassLogLoss as MulticlassLogLoss
from calibrant.metrics.multiclass import TopLabelMetric as TopLabelMetric
from calibrant.metrics.multiclass import classwise as classwise
from calibrant.metrics.multiclass import top_label as top_label
from calibrant.metrics.norms import Norm
from calibrant.metrics.optimal_bins import OptimalBins as OptimalBins
from calibrant.metrics.optimal_bins import mean_within_error as mean_within_error
from calibrant.metrics.optimal_bins import total_error as total_error
from calibrant.metrics.ordinal import RPS as RPS
from calibrant.metrics.ordinal import CumulativeMetric as CumulativeMetric
from calibrant.metrics.ordinal import rps as rps
from calibrant.metrics.point import MAE as MAE
from calibrant.metrics.point import MSE as MSE
from calibrant.metrics.point import RMSE as RMSE
from calibrant.metrics.point import ErrorTolerance as ErrorTolerance
from calibrant.metrics.point import MeanError as MeanError
from calibrant.metrics.point import MeanQuotient as MeanQuotient
from calibrant.metrics.point import Pinball as Pinball
from calibrant.metrics.point import PointMetric as PointMetric
from calibrant.metrics.point import Ratio as Ratio
from calibrant.metrics.point import RelativeMSE as RelativeMSE
from calibrant.metrics.proper_scores import AUC as AUC
from calibrant.metrics.proper_scores import MCB as MCB
from calibrant.metrics.proper_scores import Brier as Brier
from calibrant.metrics.proper_scores import CorpDecomposition as CorpDecomposition
from calibrant.metrics.proper_scores import LogLoss as LogLoss
from calibrant.metrics.proper_scores import MurphyDecomposition as MurphyDecomposition
from calibrant.metrics.proper_scores import StratifiedBrier as StratifiedBrier
from calibrant.metrics.proper_scores import corp_decomposition as corp_decomposition
from calibrant.metrics.proper_scores import murphy_decomposition as murphy_decomposition
from calibrant.metrics.registry import METRICS as METRICS
from calibrant.metrics.registry import as_metric as as_metric
from calibrant.metrics.registry import as_metrics as as_metrics
from calibrant.metrics.registry import from_spec as from_spec
from calibrant.metrics.registry import metric_names as metric_names
from calibrant.metrics.significance import Test
from calibrant.metrics.smooth_errors import LocalRegression as LocalRegression
from calibrant.metrics.smooth_errors import SmoothECE as SmoothECE
from calibrant.metrics.smooth_errors import SmoothErrors as SmoothErrors
from calibrant.metrics.smooth_errors import loess_errors as loess_errors
from calibrant.tables.class_table import ClassTable as ClassTable
from calibrant.tables.class_table import ConfusionTable as ConfusionTable
from calibrant.tables.collection import Tables as Tables
from calibrant.tables.mean_table import MeanTable
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import Partition as Partition
from calibrant.tables.score_table import ScoreTable

def ace(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def bias(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def calbin(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    window: int | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def calloss(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def debiased_sce(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def ecc(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    cost: Cost = ...,
    n_bins: int | None = None,
    bins: Bins | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def ecce_mad(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def ecce_r(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def ece(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def emax(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def ici(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def mce(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def oe_ratio(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def rmsce(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def tce(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    alpha: float = 0.05,
    bins: Bins = ...,
    test: Test = ...,
    norm: Norm = ...,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def auc(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def brier(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def log_loss(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def mcb(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def stratified_brier(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def coverage_error(
    y_true: ForecastTable | Column,
    forecast: Column | None = None,
    *,
    levels: tuple[float, ...] | None = None,
    missing: Missing = "raise",
) -> float: ...
def crps(y_true: ForecastTable | Column, forecast: Column | None = None, *, missing: Missing = "raise") -> float: ...
def interval_score(
    y_true: ForecastTable | Column, forecast: Column | None = None, *, level: float = 0.9, missing: Missing = "raise"
) -> float: ...
def nll(y_true: ForecastTable | Column, forecast: Column | None = None, *, missing: Missing = "raise") -> float: ...
def smooth_ece(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def log_odds_error(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> float: ...
def error_tolerance(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    share: float = 0.9,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> float: ...
def mae(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> float: ...
def mean_error(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> float: ...
def mean_quotient(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    zeros: Literal["raise", "drop"] = "raise",
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> float: ...
def mse(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> float: ...
def pinball(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    level: float = 0.5,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> float: ...
def ratio(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> float: ...
def relative_mse(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> float: ...
def rmse(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> float: ...
