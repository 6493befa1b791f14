"""Hazards of input: invalid, unusual and equivalent columns of outcomes and scores, with what must happen.

The shared reader is tested on all of them (tests/tables/test_rows.py), and each public function on two of each kind
(tests/test_inputs.py).
"""

import numpy as np

RNG = np.random.default_rng(7)
P = RNG.random(200)
Y = (RNG.random(200) < P).astype(int)


def put(values, row, value, dtype=None):
    out = np.array(values, dtype=dtype)
    out[row] = value
    return out


def masked(values):
    return np.ma.masked_array(values, mask=np.arange(200) == 3)


def a_list_at_the_end(values):
    out = np.array(values, dtype=object)
    out[-1] = [1]
    return out


# name: (y_true, y_prob, options, a pattern of the message, and the attributes argument and row)
REFUSED = {
    "NaN in p": (Y, put(P, 3, np.nan), {}, r"y_prob has 1 missing value \(first at row 3\)\. Pass missing='drop'", "y_prob", 3),
    "NaN in y": (put(Y, 3, np.nan, float), P, {}, r"y_true has 1 missing value \(first at row 3\)", "y_true", 3),
    "None in y": (put(Y, 3, None, object), P, {}, r"y_true has 1 missing value \(first at row 3\)", "y_true", 3),
    "two NaN": (Y, put(P, [5, 9], np.nan), {}, r"y_prob has 2 missing values \(first at row 5\)", "y_prob", 5),
    "masked p": (Y, masked(P), {}, r"y_prob has 1 missing value \(first at row 3\)", "y_prob", 3),
    "masked y": (masked(Y), P, {}, r"y_true has 1 missing value \(first at row 3\)", "y_true", 3),
    "inf in p": (Y, put(P, 3, np.inf), {}, r"y_prob must lie in \[0, 1\].*row 3 is inf", "y_prob", 3),
    "inf in p, though missing are dropped": (Y, put(P, 3, -np.inf), {"missing": "drop"}, "row 3 is -inf", "y_prob", 3),
    "p = 1.5": (Y, put(P, 3, 1.5), {}, r"1 of 200 values do not, the first at row 3 is 1\.5", "y_prob", 3),
    "percent": (Y, P * 100, {}, "percentages, divide them by 100", "y_prob", None),
    "log-probabilities": (Y, np.log(P), {}, r"log-probabilities, apply numpy\.exp", "y_prob", None),
    "logits": (Y, np.log(P / (1 - P)), {}, "apply a sigmoid", "y_prob", None),
    "p beyond rounding": (Y, put(P, 3, 1 + 2e-6), {}, r"must lie in \[0, 1\]", "y_prob", 3),
    "p far beyond": (Y, put(P, 3, 1e6), {}, "Convert the scores", "y_prob", 3),
    "y in -1, 1": (2 * Y - 1, P, {}, "got the labels -1, 1. Say which label is the event, for example pos_label=1", "y_true", 0),
    "y in 1, 2": (Y + 1, P, {}, "got the labels 1, 2", "y_true", 0),
    "y in 0, 2": (Y * 2, P, {}, "got the labels 0, 2", "y_true", 0),
    "soft label": (put(Y, 3, 0.5, float), P, {}, "row 3 is 0.5. Soft labels", "y_true", 3),
    "two soft labels": (np.where(Y, 0.9, 0.1), P, {}, "Soft labels", "y_true", 0),
    "strings": (np.where(Y, "yes", "no"), P, {}, "got the labels 'no', 'yes'. Say which label is the event, for example pos_label='yes'", "y_true", 0),
    "strings as objects": (np.where(Y, "yes", "no").astype(object), P, {}, "pos_label='yes'", "y_true", 0),
    "three classes": (Y + (P > 0.9), P, {}, r"y_true must have two labels; got 3 \(0, 1, 2\).*class probabilities to calibrant.evaluate", "y_true", 0),
    "three classes as text": (np.array(list("abcd"))[Y + 2 * (P > 0.9)], P, {}, "must have two labels; got 4", "y_true", 0),
    "three classes with pos_label": (Y + (P > 0.9), P, {"pos_label": 1}, "must have two labels; got 3", "y_true", 0),
    "pos_label of another type": (Y, P, {"pos_label": "1"}, r"pos_label must be one of the labels of y_true, which are 0, 1; got '1'", "pos_label", None),
    "swapped": (P, Y, {}, r"Are the two swapped\? The order is \(y_true, y_prob\)", "y_true", None),
    "lengths differ": (Y, P[:199], {}, "y_prob has 199 rows, y_true has 200; they must be equally long", "y_prob", None),
    "empty": ([], [], {}, "hold no rows; at least one is needed", "y_true", None),
    "nothing left": (Y, np.full(200, np.nan), {"missing": "drop"}, "No row is left", "y_true", None),
    "object cells that are no numbers": (Y, put(P, 3, "x", object), {}, r"row 3 is 'x' \(str\)", "y_prob", 3),
    "object labels that are no numbers": (put(Y, 3, (1,), object), P, {}, r"row 3 is \(1,\) \(tuple\)", "y_true", 3),
    "a list as a label": (a_list_at_the_end(Y), P, {"pos_label": 1}, r"row 199 is \[1\] \(list\)", "y_true", 199),
    "a number beyond all": (put(Y, 3, 10**400, object), P, {}, r"row 3 is 1000.*\(int\)", "y_true", 3),
    "infinite label": (put(Y, 3, np.inf, float), P, {}, "row 3 is inf", "y_true", 3),
    "ragged rows": (Y.tolist(), [[0.1], [0.2, 0.3]], {}, "y_prob must be one column; NumPy cannot read it", "y_prob", None),
    "an array for pos_label": (Y, P, {"pos_label": np.array([0, 1])}, "pos_label must be one of the labels", "pos_label", None),
    "two columns": (Y, np.column_stack([1 - P, P]), {}, r"got shape \(200, 2\). Two columns.*y_prob\[:, 1\]", "y_prob", None),
    "three columns": (Y, np.ones((200, 3)) / 3, {}, "calibrant.metrics.classwise", "y_prob", None),
    "a scalar": (1, 0.5, {}, "one dimension", "y_true", None),
    "text scores": (Y, P.astype(str), {}, "y_prob must hold numbers", "y_prob", 0),
    "complex scores": (Y, P + 0j, {}, "y_prob must hold numbers; got type complex128", "y_prob", 0),
    "complex labels": (Y + 0j, P, {}, "y_true must hold numbers", "y_true", 0),
    "dates": (Y.astype("M8[s]"), P, {}, "y_true must hold numbers", "y_true", 0),
    "negative weight": (Y, P, {"sample_weight": put(np.ones(200), 3, -1)}, "sample_weight must be finite and not negative.*row 3 is -1", "sample_weight", 3),
    "infinite weight": (Y, P, {"sample_weight": put(np.ones(200), 3, np.inf)}, "row 3 is inf", "sample_weight", 3),
    "vanishing weight": (Y, P, {"sample_weight": put(np.ones(200), 3, 1e-170)}, "0 or at least 1e-100.*row 3 is 1e-170", "sample_weight", 3),
    "missing weight": (Y, P, {"sample_weight": put(np.ones(200), 3, np.nan)}, "sample_weight has 1 missing value", "sample_weight", 3),
    "all weights zero": (Y, P, {"sample_weight": np.zeros(200)}, "got zero in every row", "sample_weight", None),
    "weights too large": (Y, P, {"sample_weight": np.full(200, 1e300)}, r"less than 2\*\*53", "sample_weight", None),
    "fractional frequency": (Y, P, {"frequency": put(np.ones(200), 3, 1.5)}, r"frequency must be a whole number of rows, 0 or more; got 1.5 \(row 3\). .*sample_weight", "frequency", 3),
    "negative frequency": (Y, P, {"frequency": put(np.ones(200), 3, -1)}, r"got -1 \(row 3\)", "frequency", 3),
    "missing frequency": (Y, P, {"frequency": put(np.ones(200), 3, np.nan)}, "frequency has 1 missing value", "frequency", 3),
    "all frequencies zero": (Y, P, {"frequency": np.zeros(200)}, "frequency must be positive in at least one row", "frequency", None),
    "weight and frequency": (Y, P, {"frequency": np.ones(200), "sample_weight": np.ones(200)}, "must not be given together", "frequency", None),
    "too few weights": (Y, P, {"sample_weight": np.ones(199)}, "sample_weight has 199 rows", "sample_weight", None),
    "an option that is none": (Y, P, {"missing": "ignore"}, "missing must be 'raise' or 'drop'; got 'ignore'", "missing", None),
}  # fmt: skip

# name: (y_true, y_prob, options, the codes of the notes)
NOTED = {
    "one row": (Y[:1], P[:1], {}, {"one_row", "one_class"}),
    "one class": (Y * 0, P, {}, {"one_class"}),
    "p just above 1": (Y, put(P, 3, 1 + 1e-12), {}, {"clipped"}),
    "p just below 0": (Y, put(P, 3, -1e-12), {}, {"clipped"}),
    "(n, 1)": (Y, P.reshape(-1, 1), {}, {"one_column"}),
    "float16": (Y, P.astype(np.float16), {}, {"float16"}),
    "integer scores": (Y, Y, {}, {"hard_labels"}),
    "boolean scores": (Y, Y.astype(bool), {}, {"hard_labels"}),
    "missing, dropped": (Y, put(P, 3, np.nan), {"missing": "drop"}, {"missing"}),
    "zero weight": (Y, P, {"sample_weight": put(np.full(200, 2), 3, 0)}, {"zero_weight"}),
    "zero frequency": (Y, P, {"frequency": put(np.full(200, 2), 3, 0)}, {"zero_frequency"}),
}

ACCEPTED = {
    "bool y": (Y.astype(bool), P),
    "uint8 y": (Y.astype(np.uint8), P),
    "objects": (Y.astype(object), P.astype(object)),
    "lists": (Y.tolist(), P.tolist()),
    "float y": (Y.astype(float), P),
}
