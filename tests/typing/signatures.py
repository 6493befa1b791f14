"""Calls whose errors type checkers must find: `tests/test_signatures.py` runs mypy and pyright on this file."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

import numpy as np

import calibrant as cb
from calibrant import metrics
from calibrant.regression import MSE, mse, tce

y, p = np.array([0, 1]), np.array([0.2, 0.7])
table = cb.ScoreTable.from_arrays(y, p, sample_weight=y)

value: float = cb.ece(y, p, n_bins=3, sample_weight=y) + cb.ece(table) + cb.ece(y_true=y, y_prob=p, missing="drop")
cb.ece(y, p, n_bin=3)  # type: ignore[call-arg]
cb.ece(y, p, missing="dropp")  # type: ignore[arg-type]
cb.tce(y, p, alpha="0.05")  # type: ignore[arg-type]
mse(y, p, frequency=y)
mse(y, p, pos_label=1)  # type: ignore[call-arg]
tce(y, p, n_bin=3)  # type: ignore[call-arg]

metrics.ECE(n_bins=3)(y, p, frequency=y)
metrics.ECE(n_bin=3)  # type: ignore[call-arg]
metrics.ECE()(y, p, weight=y)  # type: ignore[call-arg]
metrics.Brier()(y_true=y, y_prob=p, pos_label=1)
metrics.Brier()(y, p, weight=y)  # type: ignore[call-arg]
MSE()(y_true=y, y_pred=p)
MSE()(y, p, pos_label=1)  # type: ignore[call-arg]

verdict: str = cb.evaluate(y, p, alpha=0.05, sample_weight=y).verdict
cb.evaluate(y, p, alpa=3)  # type: ignore[call-arg]
cb.compare(y, {"a": p, "b": p}, clusters=y)  # type: ignore[call-arg]
cb.interval(cb.ece, y, p, missing="drop")
cb.interval("ece", y, p, missing_rows="drop")  # type: ignore[call-arg]
cb.null("ece", y, p, weights=y)  # type: ignore[call-arg]
cb.equivalence("ece", y, p, margin=0.1, weights=y)  # type: ignore[call-arg]
cb.metrics.slope_intercept(y, p, epss=1e-9)  # type: ignore[call-arg]

# Deprecated names have the signatures of the new ones.
value = cb.ace(y, p, n_bins=3) + cb.mce(y, p, bins=cb.Quantile(3))
cb.ace(y, p, n_bin=3)  # type: ignore[call-arg]
cb.inference.audit_scan("rows.csv", y="y")  # type: ignore[call-arg]
tables: cb.metrics.Tables = cb.scan("rows.csv", y="y", p="p", by="group")
counted: cb.ScoreTable = cb.scan("rows.csv", y="y", p="p", max_memory="1GB")
cb.scan("rows.csv", y="y", p="p", memory_limit="1GB")  # type: ignore[call-overload]
cb.audit("rows.csv", y="y", forecast="p", features="a", max_memory=10**9)
cb.audit(y, p, {"a": y}, max_memory=10**9)  # type: ignore[call-overload]
