"""Options of an evaluation are resolved in one place; tests/cli/test_options.py compares them with the command line."""

import numpy as np
import pytest

import calibrant as cb

RNG = np.random.default_rng(0)
P = RNG.random(3000)
Y = RNG.random(3000) < P**1.3
PROBA = RNG.dirichlet([1, 1, 1], 600)
LABEL = (PROBA.cumsum(axis=1) > RNG.random((600, 1)) ** 1.2).argmax(axis=1)


def test_alpha_is_the_level_of_tce_in_the_default_panel():
    result = cb.evaluate(Y, P, alpha=0.01, n_resamples=19)
    bins = cb.bins.PAVABC(sizes="grades")
    assert result["TCE"].value == cb.tce(Y, P, alpha=0.01, bins=bins) < cb.tce(Y, P, bins=bins)
    assert result.settings.metrics["TCE"] == cb.TCE(alpha=0.01, bins=bins)
    compared = cb.compare(Y, {"a": P, "b": P**1.3}, alpha=0.01, n_resamples=19)
    assert compared.models["a"]["TCE"].value == result["TCE"].value
    given = cb.evaluate(Y, P, alpha=0.01, metrics=["tce"], n_resamples=19)
    assert given["TCE"].value == cb.tce(Y, P)  # a metric that is given has its own level and bins


def test_alpha_is_the_level_of_tce_of_class_probabilities():
    result = cb.evaluate(LABEL, PROBA, alpha=0.01, n_resamples=19)
    for name in ("top-label TCE", "class-wise TCE"):
        default = cb.evaluate(LABEL, PROBA, n_resamples=19)[name].value
        assert result[name].value < default
    assert result.breakdowns["top-label TCE"].value == result["top-label TCE"].value


def test_the_number_of_bins_is_that_of_the_default_panel():
    result = cb.evaluate(Y, P, n_bins=7, n_resamples=19)
    assert (result["ECE"].value, result["ACE"].value) == (cb.ece(Y, P, n_bins=7), cb.metrics.ace(Y, P, n_bins=7))
    compared = cb.compare(Y, {"a": P, "b": P**1.3}, n_bins=7, n_resamples=19)
    assert compared.models["a"]["ECE"].value == result["ECE"].value


@pytest.mark.parametrize("n_bins", [0, 2.5, "ten"])
def test_the_number_of_bins_must_be_a_whole_number(n_bins):
    with pytest.raises(cb.InputError, match="n_bins must be a whole number of at least 1"):
        cb.evaluate(Y, P, n_bins=n_bins)


def test_bins_are_refused_where_they_have_no_effect():
    with pytest.raises(cb.InputError, match="n_bins must not be given with metrics; got both. Give the number of bins"):
        cb.evaluate(Y, P, n_bins=5, metrics=["ece"])
    with pytest.raises(cb.InputError, match="n_bins must be omitted for forecasts of kind 'multiclass'; got 5"):
        cb.evaluate(LABEL, PROBA, n_bins=5)
    with pytest.raises(cb.InputError, match="bins must be omitted for forecasts of kind 'binary'"):
        cb.evaluate(Y, P, bins=cb.bins.EqualSize(5))
    points = {"a": cb.Point(P), "b": cb.Point(P**2)}
    with pytest.raises(cb.InputError, match="n_bins must be omitted in a comparison of kind 'point'; got 5"):
        cb.compare(Y.astype(float), points, n_bins=5)
