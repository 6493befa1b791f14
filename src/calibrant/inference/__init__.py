"""Inference: intervals, null distributions, tests of calibration, equivalence, curves, streams and sample sizes."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "inference.bands": "Band consistency_band cumulative_band",
        "inference.calibration_tests": "ecce_test hosmer_lemeshow slope_intercept_test spiegelhalter",
        "inference.curves.belts": "CalibrationBelt calibration_belt",
        "inference.curves.calibration_curves": "CalibrationCurve calibration_curve",
        "inference.event_rates": "EventRate estimate_event_rate",
        "inference.levels": "CalibrationLevels",
        "inference.multiplicity": "benjamini_hochberg holm",
        "inference.power": "Detectable detectable",
        "inference.sample_size": "SampleSize ValidationPrecision",
        "inference.sequential.change_points": "ChangePoint Dispersion WindowSums change_point dispersion",
        "inference.sequential.e_processes": "EProcess Evidence ShiftSequence pit_table",
        "inference.sequential.e_values": "e_bh log_mean_e",
    },
    has_old_names=True,
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
