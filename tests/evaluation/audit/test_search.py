"""The search for segments, and the codes of features that it works on."""

from dataclasses import asdict

import numpy as np
import pytest
from numpy.random import SeedSequence

from calibrant._support.columns import read
from calibrant.evaluation.audit import features as encoding
from calibrant.evaluation.audit import residual_blocks
from calibrant.evaluation.audit.audit_rows import read_rows, split_units
from calibrant.evaluation.audit.features import FeatureCounter, count_feature
from calibrant.evaluation.audit.residual_blocks import ResidualBlocks
from calibrant.evaluation.audit.search import explained, search


def sample(n=500, seed=6, **options):
    rng = np.random.default_rng(seed)
    features = {name: rng.integers(0, 4, n) for name in "ab"}
    p = rng.uniform(0.3, 0.7, n)
    y = rng.random(n) < p + 0.2 * (features["a"] == 2)
    return read_rows(y, p, features, cluster=None, classes=None, seed=SeedSequence(0), options=options)


def test_the_search_agrees_with_a_slow_one():
    rows = sample()
    rules = search(ResidualBlocks(rows, None), depth=2, min_rows=20, n_rules=1)
    _, value, variance, _ = rows.residuals(np.arange(len(rows)))
    features = rows.features
    single = sum(len(feature.conditions) for feature in features)
    pairs = (single**2 - sum(len(feature.conditions) ** 2 for feature in features)) // 2
    tried = [()] + [((i, c),) for i, f in enumerate(features) for c in range(len(f.conditions))]
    tried += [(*one, *two) for one in tried[1:] for two in tried[1:] if one[0][0] < two[0][0]]
    best, top = None, -np.inf
    for rule in tried:
        chosen = np.ones(len(rows), dtype=bool)
        for feature, condition in rule:
            chosen &= np.isin(rows.codes[feature], features[feature].conditions[condition].codes)
        if chosen.sum() < 20:
            continue
        gain = value[chosen].sum() ** 2 / variance[chosen].sum() - [0, 2 * np.log(single), 2 * np.log(pairs)][len(rule)]
        gain -= 2 * sum(features[i].conditions[c].has_two_limits for i, c in rule)
        if gain > top:
            best, top = rule, gain
    assert rules[0] == best


def test_blocks_do_not_change_the_search(monkeypatch):
    rows = sample(3_000)
    expected = search(ResidualBlocks(rows, 0), depth=3, min_rows=20, n_rules=6)
    gains = explained(ResidualBlocks(rows, None), expected)
    monkeypatch.setattr(residual_blocks, "BLOCK", 128)
    monkeypatch.setattr(residual_blocks, "MOST_KEPT", 0)
    assert search(ResidualBlocks(rows, 0), depth=3, min_rows=20, n_rules=6) == expected
    assert explained(ResidualBlocks(rows, None), expected) == pytest.approx(gains)  # by rule


def test_a_segment_that_is_explained_has_no_gain_again():
    rows = sample(3_000)
    rule = search(ResidualBlocks(rows, None), depth=1, min_rows=20, n_rules=1)[0]
    residuals = ResidualBlocks(rows, None)
    assert explained(residuals, [rule])[rule] > 20
    assert explained(residuals.shifted(rule, residuals.sums([rule])[0]), [rule])[rule] == pytest.approx(0, abs=1e-9)
    assert list(explained(residuals, [rule, ()], least=1e9)) == [rule]


@pytest.mark.parametrize("kind", ["numbers", "levels", "categories"])
def test_batches_do_not_change_the_codes(kind, monkeypatch):
    monkeypatch.setattr(encoding, "MOST_CUT_ROWS", 100)
    rng = np.random.default_rng(1)
    values = {
        "numbers": np.where(rng.random(1_000) < 0.1, np.nan, rng.normal(size=1_000)),
        "levels": rng.integers(0, 5, 1_000).astype(float),
        "categories": np.array([f"c{i}" for i in rng.geometric(0.1, 1_000)], dtype=object),
    }[kind]
    whole = count_feature("x", read(values, "x"))
    counter = FeatureCounter("x")
    for start in range(0, 1_000, 77):
        counter.add(read(values[start : start + 77], "x"))
    np.testing.assert_equal(asdict(counter.finish()), asdict(whole))
    codes, coarse = whole.encode(read(values, "x"))
    parts = [whole.encode(read(values[start : start + 77], "x")) for start in range(0, 1_000, 77)]
    assert np.array_equal(codes, np.concatenate([part[0] for part in parts]))
    assert np.array_equal(coarse, np.concatenate([part[1] for part in parts]))


def test_conditions_describe_their_codes():
    rng = np.random.default_rng(2)
    values = np.where(rng.random(2_000) < 0.1, np.nan, rng.normal(size=2_000))
    column = read(values, "x")
    feature = count_feature("x", column)
    codes, _ = feature.encode(column)
    for condition in feature.conditions:
        assert np.array_equal(condition.mask(column), np.isin(codes, condition.codes)), condition.text


def test_halves_have_equal_sizes_in_each_run():
    first = split_units(200_001, SeedSequence(3))
    assert first.sum() == 100_000
    assert first[: 2**16].sum() == 2**15
    assert np.array_equal(first, split_units(200_001, SeedSequence(3)))


def test_frequencies_count_as_rows():
    rng = np.random.default_rng(4)
    rows = sample(400, frequency=rng.integers(1, 5, 400))
    assert rows.size == rows.rows.weight.values.sum()
    assert sum(block.number.sum() for block in ResidualBlocks(rows, None)) == rows.size
