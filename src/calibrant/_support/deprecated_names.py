"""Old public names with their new ones, for each package: they work with a `DeprecationWarning` until 1.1."""

from collections.abc import Mapping
from typing import NamedTuple


class DeprecatedNames(NamedTuple):
    """The deprecated names of one package.

    Attributes
    ----------
    moved : mapping of str to str
        From public namespaces, relative to `calibrant`, to the names that moved there, separated by spaces. An empty
        namespace is `calibrant` itself.
    renamed : mapping of str to str
        From old names to new public names, relative to `calibrant`.
    functions : mapping of str to str
        From modules to their deprecated functions, which have no new name, and warn when they are called.
    """

    moved: Mapping[str, str] = {}
    renamed: Mapping[str, str] = {}
    functions: Mapping[str, str] = {}

    def new_names(self) -> dict[str, str]:
        """Return the new public name, relative to `calibrant`, of each old name."""
        moved = {name: f"{place}.{name}".lstrip(".") for place, names in self.moved.items() for name in names.split()}
        return moved | dict(self.renamed)


DEPRECATED_NAMES: dict[str, DeprecatedNames] = {
    "calibrant": DeprecatedNames(
        moved={
            "bins": "Edges EqualWidth PAVA PAVABC",
            "calibrators": "BinningAverage CALIBRATORS CAPS CATS Dirichlet MatrixScaling MetaCal OneVsRest "
            "PairwiseCoupling PriorShift ProportionThreshold SoftmaxTemperature Spline Temperature TreeSmoothing "
            "VectorScaling VennAbers",
            "costs": "ExponentialCost LinearCost LogCost PowerCost StepCost",
            "inference": "detectable ecce_test hosmer_lemeshow slope_intercept_test spiegelhalter",
            "metrics": "ACE Breakdown Brier CalibrationCounter ECC LogLoss LogOddsError MCE RMSCE Tables ace auc bias "
            "calbin calloss classwise corp_decomposition ecc mcb mce murphy_decomposition oe_ratio optimal_prediction "
            "proportions rmsce slope_intercept smooth_ece stratified_brier top_label",
        },
        renamed={"Quantile": "bins.EqualSize"},
        functions={
            "ingest.files": "tables_scan",
            "ingest.frames": "tables_from_frame",
            "ingest.queries": "tables_from_query",
        },
    ),
    "calibrant.bins": DeprecatedNames(renamed={"Quantile": "bins.EqualSize"}),
    "calibrant.inference": DeprecatedNames(
        moved={
            "": "consistency decision_curve equivalence interval null",
            "results": "AbsoluteMargin Audit BinaryDetails ClassProportion Condition Confusion "
            "CumulativeDifferences DecisionCurve DecisionResult Decisions Deviation Difference Equivalence Estimate "
            "Interval LabelsDetails MetricResult MulticalibrationError MulticlassDetails NetBenefit Null OmnibusTest "
            "RejectionProfile Segment Sensitivity Settings TestResult",
        },
        renamed={
            "ClassDecision": "results.ClassDeviation",
            "Decision": "results.Verdict",
            "JointTest": "results.OmnibusTest",
            "MulticlassDecision": "results.Verdict",
            "ProportionDecision": "results.Verdict",
            "RegressionDetails": "results.PointDetails",
        },
        functions={"evaluation.audit.file_audit": "audit_scan"},
    ),
}
