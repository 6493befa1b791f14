from collections.abc import Callable
from typing import ParamSpec, TypeVar

from typing_extensions import deprecated

from calibrant import calibrators as calibrators
from calibrant import exceptions as exceptions
from calibrant import forecasts as forecasts
from calibrant import inference as inference
from calibrant import metrics as metrics
from calibrant import plots as plots
from calibrant import regression as regression
from calibrant import results as results
from calibrant._support.errors import CalibrantWarning as CalibrantWarning
from calibrant._support.errors import InputError as InputError
from calibrant.calibrators import CALIBRATORS as CALIBRATORS
from calibrant.calibrators import CAPS as _CAPS
from calibrant.calibrators import CATS as _CATS
from calibrant.calibrators import BinningAverage as _BinningAverage
from calibrant.calibrators import Dirichlet as _Dirichlet
from calibrant.calibrators import MatrixScaling as _MatrixScaling
from calibrant.calibrators import MetaCal as _MetaCal
from calibrant.calibrators import OneVsRest as _OneVsRest
from calibrant.calibrators import PairwiseCoupling as _PairwiseCoupling
from calibrant.calibrators import PriorShift as _PriorShift
from calibrant.calibrators import ProportionThreshold as _ProportionThreshold
from calibrant.calibrators import SoftmaxTemperature as _SoftmaxTemperature
from calibrant.calibrators import Spline as _Spline
from calibrant.calibrators import Temperature as _Temperature
from calibrant.calibrators import TreeSmoothing as _TreeSmoothing
from calibrant.calibrators import VectorScaling as _VectorScaling
from calibrant.calibrators import VennAbers as _VennAbers
from calibrant.calibrators.auto import AutoCalibrator as AutoCalibrator
from calibrant.calibrators.calibrated_model import CalibratedModel as CalibratedModel
from calibrant.calibrators.isotonic import Isotonic as Isotonic
from calibrant.calibrators.logit_scaling import Beta as Beta
from calibrant.calibrators.logit_scaling import Platt as Platt
from calibrant.calibrators.logit_spline import LogitSpline as LogitSpline
from calibrant.calibrators.multicalibrator import Multicalibrator as Multicalibrator
from calibrant.calibrators.scorers import scorers as scorers
from calibrant.calibrators.structured_scaling import StructuredScaling as StructuredScaling
from calibrant.evaluation.audit.segment_audit import audit as audit
from calibrant.evaluation.compare import compare as compare
from calibrant.evaluation.decision_curves import decision_curve as decision_curve
from calibrant.evaluation.decisions import decisions as decisions
from calibrant.evaluation.evaluate import evaluate as evaluate
from calibrant.evaluation.metric_inference import consistency as consistency
from calibrant.evaluation.metric_inference import equivalence as equivalence
from calibrant.evaluation.metric_inference import interval as interval
from calibrant.evaluation.metric_inference import null as null
from calibrant.export.calibrator_files import load as load
from calibrant.export.calibrator_files import save as save
from calibrant.export.onnx_graph import to_onnx as to_onnx
from calibrant.export.sql import to_sql as to_sql
from calibrant.forecasts.counts import NegativeBinomial as NegativeBinomial
from calibrant.forecasts.counts import Poisson as Poisson
from calibrant.forecasts.distributions import Gaussian as Gaussian
from calibrant.forecasts.distributions import Quantiles as Quantiles
from calibrant.forecasts.distributions import Samples as Samples
from calibrant.forecasts.predictions import Labels as Labels
from calibrant.forecasts.predictions import Ordinal as Ordinal
from calibrant.forecasts.predictions import Point as Point
from calibrant.inference import detectable as _detectable
from calibrant.inference import ecce_test as _ecce_test
from calibrant.inference import hosmer_lemeshow as _hosmer_lemeshow
from calibrant.inference import slope_intercept_test as _slope_intercept_test
from calibrant.inference import spiegelhalter as _spiegelhalter
from calibrant.inference.sample_size import sample_size as sample_size
from calibrant.ingest.files import scan as scan
from calibrant.ingest.files import tables_scan as _tables_scan
from calibrant.ingest.frames import from_frame as from_frame
from calibrant.ingest.frames import tables_from_frame as _tables_from_frame
from calibrant.ingest.queries import from_query as from_query
from calibrant.ingest.queries import tables_from_query as _tables_from_query
from calibrant.metrics import ACE as _ACE
from calibrant.metrics import ECC as _ECC
from calibrant.metrics import MCE as _MCE
from calibrant.metrics import RMSCE as _RMSCE
from calibrant.metrics import Breakdown as _Breakdown
from calibrant.metrics import Brier as _Brier
from calibrant.metrics import CalibrationCounter as _CalibrationCounter
from calibrant.metrics import LogLoss as _LogLoss
from calibrant.metrics import LogOddsError as _LogOddsError
from calibrant.metrics import Tables as _Tables
from calibrant.metrics import ace as _ace
from calibrant.metrics import auc as _auc
from calibrant.metrics import bias as _bias
from calibrant.metrics import bins as bins
from calibrant.metrics import brier as brier
from calibrant.metrics import calbin as _calbin
from calibrant.metrics import calloss as _calloss
from calibrant.metrics import classwise as _classwise
from calibrant.metrics import corp_decomposition as _corp_decomposition
from calibrant.metrics import costs as costs
from calibrant.metrics import ecc as _ecc
from calibrant.metrics import ece as ece
from calibrant.metrics import log_loss as log_loss
from calibrant.metrics import log_odds_error as log_odds_error
from calibrant.metrics import losses as losses
from calibrant.metrics import mcb as _mcb
from calibrant.metrics import mce as _mce
from calibrant.metrics import murphy_decomposition as _murphy_decomposition
from calibrant.metrics import norms as norms
from calibrant.metrics import oe_ratio as _oe_ratio
from calibrant.metrics import optimal_prediction as _optimal_prediction
from calibrant.metrics import proportions as _proportions
from calibrant.metrics import rmsce as _rmsce
from calibrant.metrics import significance as significance
from calibrant.metrics import slope_intercept as _slope_intercept
from calibrant.metrics import smooth_ece as _smooth_ece
from calibrant.metrics import stratified_brier as _stratified_brier
from calibrant.metrics import tce as tce
from calibrant.metrics import top_label as _top_label
from calibrant.metrics.bins import PAVA as _PAVA
from calibrant.metrics.bins import PAVABC as _PAVABC
from calibrant.metrics.bins import Edges as _Edges
from calibrant.metrics.bins import EqualSize as _EqualSize
from calibrant.metrics.bins import EqualWidth as _EqualWidth
from calibrant.metrics.calibration_errors import ECE as ECE
from calibrant.metrics.calibration_errors import TCE as TCE
from calibrant.metrics.costs import ExponentialCost as _ExponentialCost
from calibrant.metrics.costs import LinearCost as _LinearCost
from calibrant.metrics.costs import LogCost as _LogCost
from calibrant.metrics.costs import PowerCost as _PowerCost
from calibrant.metrics.costs import StepCost as _StepCost
from calibrant.metrics.gce import GCE as GCE
from calibrant.metrics.registry import METRICS as METRICS
from calibrant.monitor.client import MonitorClient as MonitorClient
from calibrant.monitor.model import Monitor as Monitor
from calibrant.results.comparison import Comparison as Comparison
from calibrant.results.evaluation import Evaluation as Evaluation
from calibrant.results.settings import AbsoluteMargin as AbsoluteMargin
from calibrant.results.settings import RelativeMargin as RelativeMargin
from calibrant.tables.score_table import ScoreTable as ScoreTable
from calibrant.versions import __version__ as __version__
from calibrant.versions import show_versions as show_versions

_P = ParamSpec("_P")
_R = TypeVar("_R")

def _like(function: Callable[_P, _R]) -> Callable[[object], Callable[_P, _R]]: ...

@deprecated("Use calibrant.bins.Edges.")
class Edges(_Edges): ...

@deprecated("Use calibrant.bins.EqualWidth.")
class EqualWidth(_EqualWidth): ...

@deprecated("Use calibrant.bins.PAVA.")
class PAVA(_PAVA): ...

@deprecated("Use calibrant.bins.PAVABC.")
class PAVABC(_PAVABC): ...

@deprecated("Use calibrant.calibrators.BinningAverage.")
class BinningAverage(_BinningAverage): ...

@deprecated("Use calibrant.calibrators.CAPS.")
class CAPS(_CAPS): ...

@deprecated("Use calibrant.calibrators.CATS.")
class CATS(_CATS): ...

@deprecated("Use calibrant.calibrators.Dirichlet.")
class Dirichlet(_Dirichlet): ...

@deprecated("Use calibrant.calibrators.MatrixScaling.")
class MatrixScaling(_MatrixScaling): ...

@deprecated("Use calibrant.calibrators.MetaCal.")
class MetaCal(_MetaCal): ...

@deprecated("Use calibrant.calibrators.OneVsRest.")
class OneVsRest(_OneVsRest): ...

@deprecated("Use calibrant.calibrators.PairwiseCoupling.")
class PairwiseCoupling(_PairwiseCoupling): ...

@deprecated("Use calibrant.calibrators.PriorShift.")
class PriorShift(_PriorShift): ...

@deprecated("Use calibrant.calibrators.ProportionThreshold.")
class ProportionThreshold(_ProportionThreshold): ...

@deprecated("Use calibrant.calibrators.SoftmaxTemperature.")
class SoftmaxTemperature(_SoftmaxTemperature): ...

@deprecated("Use calibrant.calibrators.Spline.")
class Spline(_Spline): ...

@deprecated("Use calibrant.calibrators.Temperature.")
class Temperature(_Temperature): ...

@deprecated("Use calibrant.calibrators.TreeSmoothing.")
class TreeSmoothing(_TreeSmoothing): ...

@deprecated("Use calibrant.calibrators.VectorScaling.")
class VectorScaling(_VectorScaling): ...

@deprecated("Use calibrant.calibrators.VennAbers.")
class VennAbers(_VennAbers): ...

@deprecated("Use calibrant.costs.ExponentialCost.")
class ExponentialCost(_ExponentialCost): ...

@deprecated("Use calibrant.costs.LinearCost.")
class LinearCost(_LinearCost): ...

@deprecated("Use calibrant.costs.LogCost.")
class LogCost(_LogCost): ...

@deprecated("Use calibrant.costs.PowerCost.")
class PowerCost(_PowerCost): ...

@deprecated("Use calibrant.costs.StepCost.")
class StepCost(_StepCost): ...

@deprecated("Use calibrant.inference.detectable.")
@_like(_detectable)
def detectable() -> None: ...
@deprecated("Use calibrant.inference.ecce_test.")
@_like(_ecce_test)
def ecce_test() -> None: ...
@deprecated("Use calibrant.inference.hosmer_lemeshow.")
@_like(_hosmer_lemeshow)
def hosmer_lemeshow() -> None: ...
@deprecated("Use calibrant.inference.slope_intercept_test.")
@_like(_slope_intercept_test)
def slope_intercept_test() -> None: ...
@deprecated("Use calibrant.inference.spiegelhalter.")
@_like(_spiegelhalter)
def spiegelhalter() -> None: ...

@deprecated("Use calibrant.metrics.ACE.")
class ACE(_ACE): ...

@deprecated("Use calibrant.metrics.Breakdown.")
class Breakdown(_Breakdown): ...

@deprecated("Use calibrant.metrics.Brier.")
class Brier(_Brier): ...

@deprecated("Use calibrant.metrics.CalibrationCounter.")
class CalibrationCounter(_CalibrationCounter): ...

@deprecated("Use calibrant.metrics.ECC.")
class ECC(_ECC): ...

@deprecated("Use calibrant.metrics.LogLoss.")
class LogLoss(_LogLoss): ...

@deprecated("Use calibrant.metrics.LogOddsError.")
class LogOddsError(_LogOddsError): ...

@deprecated("Use calibrant.metrics.MCE.")
class MCE(_MCE): ...

@deprecated("Use calibrant.metrics.RMSCE.")
class RMSCE(_RMSCE): ...

@deprecated("Use calibrant.metrics.Tables.")
class Tables(_Tables): ...

@deprecated("Use calibrant.metrics.ace.")
@_like(_ace)
def ace() -> None: ...
@deprecated("Use calibrant.metrics.auc.")
@_like(_auc)
def auc() -> None: ...
@deprecated("Use calibrant.metrics.bias.")
@_like(_bias)
def bias() -> None: ...
@deprecated("Use calibrant.metrics.calbin.")
@_like(_calbin)
def calbin() -> None: ...
@deprecated("Use calibrant.metrics.calloss.")
@_like(_calloss)
def calloss() -> None: ...
@deprecated("Use calibrant.metrics.classwise.")
@_like(_classwise)
def classwise() -> None: ...
@deprecated("Use calibrant.metrics.corp_decomposition.")
@_like(_corp_decomposition)
def corp_decomposition() -> None: ...
@deprecated("Use calibrant.metrics.ecc.")
@_like(_ecc)
def ecc() -> None: ...
@deprecated("Use calibrant.metrics.mcb.")
@_like(_mcb)
def mcb() -> None: ...
@deprecated("Use calibrant.metrics.mce.")
@_like(_mce)
def mce() -> None: ...
@deprecated("Use calibrant.metrics.murphy_decomposition.")
@_like(_murphy_decomposition)
def murphy_decomposition() -> None: ...
@deprecated("Use calibrant.metrics.oe_ratio.")
@_like(_oe_ratio)
def oe_ratio() -> None: ...
@deprecated("Use calibrant.metrics.optimal_prediction.")
@_like(_optimal_prediction)
def optimal_prediction() -> None: ...
@deprecated("Use calibrant.metrics.proportions.")
@_like(_proportions)
def proportions() -> None: ...
@deprecated("Use calibrant.metrics.rmsce.")
@_like(_rmsce)
def rmsce() -> None: ...
@deprecated("Use calibrant.metrics.slope_intercept.")
@_like(_slope_intercept)
def slope_intercept() -> None: ...
@deprecated("Use calibrant.metrics.smooth_ece.")
@_like(_smooth_ece)
def smooth_ece() -> None: ...
@deprecated("Use calibrant.metrics.stratified_brier.")
@_like(_stratified_brier)
def stratified_brier() -> None: ...
@deprecated("Use calibrant.metrics.top_label.")
@_like(_top_label)
def top_label() -> None: ...

@deprecated("Use calibrant.bins.EqualSize.")
class Quantile(_EqualSize): ...

@deprecated("Use scan with by or a list of models.")
@_like(_tables_scan)
def tables_scan() -> None: ...
@deprecated("Use from_frame with by or a list of models.")
@_like(_tables_from_frame)
def tables_from_frame() -> None: ...
@deprecated("Use from_query with by or a list of models.")
@_like(_tables_from_query)
def tables_from_query() -> None: ...
