"""Calibration as a module of Hugging Face's evaluate: ``evaluate.load("examples/huggingface/calibration_error")``."""

import datasets
import evaluate

import calibrant as cb

_DESCRIPTION = """\
Metrics of calibration of predicted probabilities: by default the expected calibration error (ECE), the log-odds error
and the Brier score, each with a confidence interval if `n_resamples` is given.
"""
_KWARGS_DESCRIPTION = """
Args:
    predictions: probability of the event, in [0, 1].
    references: outcome, 0 or 1.
    metrics: names of metrics of calibrant, for example ["ece", "tce"].
    n_resamples: number of resamples of the confidence intervals; 0 for none.
    random_state: seed of the resamples.
Returns:
    dict: for each metric its value, and with resamples also <metric>_low and <metric>_high.
"""
_CITATION = """\
@software{calibrant, title = {Calibrant}, url = {https://pypi.org/project/calibrant/}}
"""


class CalibrationError(evaluate.Metric):
    """Metrics of calibration of one event's probability."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {"predictions": datasets.Value("float64"), "references": datasets.Value("int32")}
            ),
        )

    def _compute(
        self, predictions, references, metrics=("ece", "log_odds_error", "brier"), n_resamples=0, random_state=0
    ):
        found = {}
        for name in metrics:
            metric = cb.METRICS[name]()
            found[name] = float(metric(references, predictions))
            if n_resamples:
                options = {"n_resamples": n_resamples, "random_state": random_state}
                limits = cb.interval(metric, references, predictions, **options)
                found |= {f"{name}_low": float(limits.low), f"{name}_high": float(limits.high)}
        return found
