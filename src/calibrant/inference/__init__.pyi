from collections.abc import Callable
from typing import ParamSpec, TypeVar

from typing_extensions import deprecated

from calibrant import consistency as _consistency
from calibrant import decision_curve as _decision_curve
from calibrant import equivalence as _equivalence
from calibrant import interval as _interval
from calibrant import null as _null
from calibrant.evaluation.audit.file_audit import audit_scan as _audit_scan
from calibrant.inference.bands import Band as Band
from calibrant.inference.bands import consistency_band as consistency_band
from calibrant.inference.bands import cumulative_band as cumulative_band
from calibrant.inference.calibration_tests import ecce_test as ecce_test
from calibrant.inference.calibration_tests import hosmer_lemeshow as hosmer_lemeshow
from calibrant.inference.calibration_tests import slope_intercept_test as slope_intercept_test
from calibrant.inference.calibration_tests import spiegelhalter as spiegelhalter
from calibrant.inference.curves.belts import CalibrationBelt as CalibrationBelt
from calibrant.inference.curves.belts import calibration_belt as calibration_belt
from calibrant.inference.curves.calibration_curves import CalibrationCurve as CalibrationCurve
from calibrant.inference.curves.calibration_curves import calibration_curve as calibration_curve
from calibrant.inference.event_rates import EventRate as EventRate
from calibrant.inference.event_rates import estimate_event_rate as estimate_event_rate
from calibrant.inference.levels import CalibrationLevels as CalibrationLevels
from calibrant.inference.multiplicity import benjamini_hochberg as benjamini_hochberg
from calibrant.inference.multiplicity import holm as holm
from calibrant.inference.power import Detectable as Detectable
from calibrant.inference.power import detectable as detectable
from calibrant.inference.sample_size import SampleSize as SampleSize
from calibrant.inference.sample_size import ValidationPrecision as ValidationPrecision
from calibrant.inference.sequential.change_points import ChangePoint as ChangePoint
from calibrant.inference.sequential.change_points import Dispersion as Dispersion
from calibrant.inference.sequential.change_points import WindowSums as WindowSums
from calibrant.inference.sequential.change_points import change_point as change_point
from calibrant.inference.sequential.change_points import dispersion as dispersion
from calibrant.inference.sequential.e_processes import EProcess as EProcess
from calibrant.inference.sequential.e_processes import Evidence as Evidence
from calibrant.inference.sequential.e_processes import ShiftSequence as ShiftSequence
from calibrant.inference.sequential.e_processes import pit_table as pit_table
from calibrant.inference.sequential.e_values import e_bh as e_bh
from calibrant.inference.sequential.e_values import log_mean_e as log_mean_e
from calibrant.results import AbsoluteMargin as _AbsoluteMargin
from calibrant.results import Audit as _Audit
from calibrant.results import BinaryDetails as _BinaryDetails
from calibrant.results import ClassDeviation as _ClassDeviation
from calibrant.results import ClassProportion as _ClassProportion
from calibrant.results import Condition as _Condition
from calibrant.results import Confusion as _Confusion
from calibrant.results import CumulativeDifferences as _CumulativeDifferences
from calibrant.results import DecisionCurve as _DecisionCurve
from calibrant.results import DecisionResult as _DecisionResult
from calibrant.results import Decisions as _Decisions
from calibrant.results import Deviation as _Deviation
from calibrant.results import Difference as _Difference
from calibrant.results import Equivalence as _Equivalence
from calibrant.results import Estimate as _Estimate
from calibrant.results import Interval as _Interval
from calibrant.results import LabelsDetails as _LabelsDetails
from calibrant.results import MetricResult as _MetricResult
from calibrant.results import MulticalibrationError as _MulticalibrationError
from calibrant.results import MulticlassDetails as _MulticlassDetails
from calibrant.results import NetBenefit as _NetBenefit
from calibrant.results import Null as _Null
from calibrant.results import OmnibusTest as _OmnibusTest
from calibrant.results import PointDetails as _PointDetails
from calibrant.results import RejectionProfile as _RejectionProfile
from calibrant.results import Segment as _Segment
from calibrant.results import Sensitivity as _Sensitivity
from calibrant.results import Settings as _Settings
from calibrant.results import TestResult as _TestResult
from calibrant.results import Verdict as _Verdict

_P = ParamSpec("_P")
_R = TypeVar("_R")

def _like(function: Callable[_P, _R]) -> Callable[[object], Callable[_P, _R]]: ...
@deprecated("Use calibrant.consistency.")
@_like(_consistency)
def consistency() -> None: ...
@deprecated("Use calibrant.decision_curve.")
@_like(_decision_curve)
def decision_curve() -> None: ...
@deprecated("Use calibrant.equivalence.")
@_like(_equivalence)
def equivalence() -> None: ...
@deprecated("Use calibrant.interval.")
@_like(_interval)
def interval() -> None: ...
@deprecated("Use calibrant.null.")
@_like(_null)
def null() -> None: ...

@deprecated("Use calibrant.results.AbsoluteMargin.")
class AbsoluteMargin(_AbsoluteMargin): ...

@deprecated("Use calibrant.results.Audit.")
class Audit(_Audit): ...

@deprecated("Use calibrant.results.BinaryDetails.")
class BinaryDetails(_BinaryDetails): ...

@deprecated("Use calibrant.results.ClassProportion.")
class ClassProportion(_ClassProportion): ...

@deprecated("Use calibrant.results.Condition.")
class Condition(_Condition): ...

@deprecated("Use calibrant.results.Confusion.")
class Confusion(_Confusion): ...

@deprecated("Use calibrant.results.CumulativeDifferences.")
class CumulativeDifferences(_CumulativeDifferences): ...

@deprecated("Use calibrant.results.DecisionCurve.")
class DecisionCurve(_DecisionCurve): ...

@deprecated("Use calibrant.results.DecisionResult.")
class DecisionResult(_DecisionResult): ...

@deprecated("Use calibrant.results.Decisions.")
class Decisions(_Decisions): ...

@deprecated("Use calibrant.results.Deviation.")
class Deviation(_Deviation): ...

@deprecated("Use calibrant.results.Difference.")
class Difference(_Difference): ...

@deprecated("Use calibrant.results.Equivalence.")
class Equivalence(_Equivalence): ...

@deprecated("Use calibrant.results.Estimate.")
class Estimate(_Estimate): ...

@deprecated("Use calibrant.results.Interval.")
class Interval(_Interval): ...

@deprecated("Use calibrant.results.LabelsDetails.")
class LabelsDetails(_LabelsDetails): ...

@deprecated("Use calibrant.results.MetricResult.")
class MetricResult(_MetricResult): ...

@deprecated("Use calibrant.results.MulticalibrationError.")
class MulticalibrationError(_MulticalibrationError): ...

@deprecated("Use calibrant.results.MulticlassDetails.")
class MulticlassDetails(_MulticlassDetails): ...

@deprecated("Use calibrant.results.NetBenefit.")
class NetBenefit(_NetBenefit): ...

@deprecated("Use calibrant.results.Null.")
class Null(_Null): ...

@deprecated("Use calibrant.results.OmnibusTest.")
class OmnibusTest(_OmnibusTest): ...

@deprecated("Use calibrant.results.RejectionProfile.")
class RejectionProfile(_RejectionProfile): ...

@deprecated("Use calibrant.results.Segment.")
class Segment(_Segment): ...

@deprecated("Use calibrant.results.Sensitivity.")
class Sensitivity(_Sensitivity): ...

@deprecated("Use calibrant.results.Settings.")
class Settings(_Settings): ...

@deprecated("Use calibrant.results.TestResult.")
class TestResult(_TestResult): ...

@deprecated("Use calibrant.results.ClassDeviation.")
class ClassDecision(_ClassDeviation): ...

@deprecated("Use calibrant.results.Verdict.")
class Decision(_Verdict): ...

@deprecated("Use calibrant.results.OmnibusTest.")
class JointTest(_OmnibusTest): ...

@deprecated("Use calibrant.results.Verdict.")
class MulticlassDecision(_Verdict): ...

@deprecated("Use calibrant.results.Verdict.")
class ProportionDecision(_Verdict): ...

@deprecated("Use calibrant.results.PointDetails.")
class RegressionDetails(_PointDetails): ...

@deprecated("Use audit.")
@_like(_audit_scan)
def audit_scan() -> None: ...
