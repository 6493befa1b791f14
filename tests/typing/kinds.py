"""Modules of each kind of forecast have the types of its protocol: `tests/test_signatures.py` runs mypy here."""

from calibrant.kinds import base
from calibrant.kinds.binary import columns as binary_columns
from calibrant.kinds.binary import defaults as binary_defaults
from calibrant.kinds.binary import differences as binary_differences
from calibrant.kinds.binary import evaluation as binary_evaluation
from calibrant.kinds.binary import figures as binary_figures
from calibrant.kinds.binary import sample as binary_sample
from calibrant.kinds.binary import windows as binary_windows
from calibrant.kinds.binary import words as binary_words
from calibrant.kinds.distribution import columns as distribution_columns
from calibrant.kinds.distribution import defaults as distribution_defaults
from calibrant.kinds.distribution import differences as distribution_differences
from calibrant.kinds.distribution import evaluation as distribution_evaluation
from calibrant.kinds.distribution import figures as distribution_figures
from calibrant.kinds.distribution import sample as distribution_sample
from calibrant.kinds.distribution import windows as distribution_windows
from calibrant.kinds.distribution import words as distribution_words
from calibrant.kinds.labels import columns as labels_columns
from calibrant.kinds.labels import defaults as labels_defaults
from calibrant.kinds.labels import differences as labels_differences
from calibrant.kinds.labels import evaluation as labels_evaluation
from calibrant.kinds.labels import figures as labels_figures
from calibrant.kinds.labels import sample as labels_sample
from calibrant.kinds.labels import words as labels_words
from calibrant.kinds.multiclass import columns as multiclass_columns
from calibrant.kinds.multiclass import defaults as multiclass_defaults
from calibrant.kinds.multiclass import differences as multiclass_differences
from calibrant.kinds.multiclass import evaluation as multiclass_evaluation
from calibrant.kinds.multiclass import figures as multiclass_figures
from calibrant.kinds.multiclass import sample as multiclass_sample
from calibrant.kinds.multiclass import windows as multiclass_windows
from calibrant.kinds.multiclass import words as multiclass_words
from calibrant.kinds.ordinal import columns as ordinal_columns
from calibrant.kinds.ordinal import defaults as ordinal_defaults
from calibrant.kinds.ordinal import differences as ordinal_differences
from calibrant.kinds.ordinal import evaluation as ordinal_evaluation
from calibrant.kinds.ordinal import figures as ordinal_figures
from calibrant.kinds.ordinal import sample as ordinal_sample
from calibrant.kinds.ordinal import windows as ordinal_windows
from calibrant.kinds.ordinal import words as ordinal_words
from calibrant.kinds.point import columns as point_columns
from calibrant.kinds.point import defaults as point_defaults
from calibrant.kinds.point import differences as point_differences
from calibrant.kinds.point import evaluation as point_evaluation
from calibrant.kinds.point import figures as point_figures
from calibrant.kinds.point import sample as point_sample
from calibrant.kinds.point import words as point_words
from calibrant.kinds.windows import Windows

defaults: list[base.DefaultsModule] = [
    binary_defaults,
    multiclass_defaults,
    ordinal_defaults,
    labels_defaults,
    point_defaults,
    distribution_defaults,
]
sample: list[base.SampleModule] = [
    binary_sample,
    multiclass_sample,
    ordinal_sample,
    labels_sample,
    point_sample,
    distribution_sample,
]
evaluation: list[base.EvaluationModule] = [
    binary_evaluation,
    multiclass_evaluation,
    ordinal_evaluation,
    labels_evaluation,
    point_evaluation,
    distribution_evaluation,
]
differences: list[base.DifferencesModule] = [
    binary_differences,
    multiclass_differences,
    ordinal_differences,
    labels_differences,
    point_differences,
    distribution_differences,
]
words: list[base.WordsModule] = [
    binary_words,
    multiclass_words,
    ordinal_words,
    labels_words,
    point_words,
    distribution_words,
]
figures: list[base.FiguresModule] = [
    binary_figures,
    multiclass_figures,
    ordinal_figures,
    labels_figures,
    point_figures,
    distribution_figures,
]
columns: list[base.ColumnsModule] = [
    binary_columns,
    multiclass_columns,
    ordinal_columns,
    labels_columns,
    point_columns,
    distribution_columns,
]
windows: list[Windows] = [binary_windows, multiclass_windows, ordinal_windows, distribution_windows]
