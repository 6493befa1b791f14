"""`Display`, the base of all diagrams: how they are drawn and saved, and what they read."""

import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase, SubFigure

from calibrant._support.columns import distinct_texts
from calibrant._support.errors import InputError, wrong_value
from calibrant._support.file_writing import write_file
from calibrant._support.plain_data import frame_from_columns
from calibrant.metrics.gce import Breakdown
from calibrant.metrics.metric import Metric, MetricValue
from calibrant.plots import canvas
from calibrant.tables.score_table import ScoreTable, read_score_table

_PASSES_OF_FIXED_ASPECT = 3  # a fourth one moves axes by less than half a point
_ONE_AT_A_TIME = Lock()  # rc_context is global: settings of one file must not affect another
_TAG = re.compile(r"<[^>]*>")
_ID = re.compile(r' id="([^"]*)"')
# Coordinates in points: a hundredth is finer than any screen or printer.
_PLACES = re.compile(r' (?:d|x|y|width|height|transform)="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+")
_BETWEEN_TAGS = re.compile(r">\n\s*<(?!text|tspan)")
_CLIP = re.compile(r'<clipPath id="(\w+)">(.*?)</clipPath>')


class Display:
    """A diagram of a result: it keeps its artists, and returns and describes the drawn values.

    Attributes
    ----------
    figure_ : Figure or SubFigure
        After drawing.
    """

    figure_: FigureBase

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`; the class states what its rows are.
        """
        columns = self._columns()
        return frame_from_columns({name: np.asarray(column).tolist() for name, column in columns.items()}, backend)

    def _columns(self) -> Mapping[str, Any]:
        """Return the columns of `data`, of equal length."""
        raise NotImplementedError

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        raise NotImplementedError


class AxesDisplay(Display):
    """A diagram that is drawn in one place: in axes, in a figure, or in a new figure.

    Attributes
    ----------
    ax_ : Axes
        After drawing.
    """

    ax_: Axes
    _size: tuple[float, float] = (6.4, 4.8)  # of a new figure, in inches

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> Self:
        """Draw in `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in; several panels take its place.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        Display
            This display; artists are attributes that end in ``_``.
        """
        self.ax_ = canvas.single_axes(ax, fig, self._size)
        self.figure_: FigureBase = self.ax_.figure
        self._draw()
        return self

    def _draw(self) -> None:
        """Draw in `ax_`."""
        raise NotImplementedError


class ScoreDisplay(AxesDisplay):
    """A diagram of scores: it is drawn from predictions or from a fitted classifier."""

    _takes_several: ClassVar[bool] = False  # models in one diagram

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Predict with a fitted classifier and draw; options as for `from_predictions`.

        Parameters
        ----------
        estimator : fitted classifier
            Diagrams of several models take a mapping of name to classifier too; one alone has the name of its class.
        X : array or frame of n rows
            Features, as the estimator takes them.
        y : column of n outcomes
        **options
            Those of `from_predictions`.

        Returns
        -------
        Display
            The display, drawn.
        """
        if cls._takes_several and not isinstance(estimator, Mapping):
            estimator = {options.pop("name", None) or type(estimator).__name__: estimator}
        scores = predict_scores(estimator, X, options, several=cls._takes_several)
        return cls._from_predictions(y, scores, **options)

    @classmethod
    def _from_predictions(cls, y_true: Any, y_prob: Any = None, **options: Any) -> Self:
        """Call `from_predictions`, whose options differ between diagrams."""
        diagram: Any = cls
        display: Self = diagram.from_predictions(y_true, y_prob, **options)
        return display


class TableDisplay(ScoreDisplay):
    """A diagram of scores that needs the table of a result only."""

    @classmethod
    def from_breakdown(cls, breakdown: Any, **options: Any) -> Self:
        """Draw the table of a result; options as for `from_predictions`.

        Parameters
        ----------
        breakdown : MetricValue or Breakdown
            Result of a metric, with its table. Diagrams of several models take a mapping of name to result too.
        **options
            Those of `from_predictions`.

        Returns
        -------
        Display
            The display, drawn.
        """
        if not cls._takes_several:
            return cls._from_predictions(result_table(breakdown), **options)
        tables = {name: result_table(result) for name, result in named_results(breakdown).items()}
        return cls._from_predictions(tables, **options)


def stacked(key: str, parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Concatenate columns of several models or rows; the column `key` has the name of each part."""
    named = [{key: np.full(len(next(iter(part.values()))), name, dtype=object), **part} for name, part in parts.items()]
    return {column: np.concatenate([part[column] for part in named]) for column in named[0]}


def svg(display: Display) -> str:
    """Return the figure of a display as SVG, identical for identical input (fixed ids, no date).

    Text is stored as text, so that it can be searched, selected and read by screen readers, in the sans-serif font of
    the viewer. If two displays share a figure, the ids of the second end in ``-2``.

    Parameters
    ----------
    display : display
        A drawn display of `calibrant.plots`.

    Returns
    -------
    str
        The SVG document.

    See Also
    --------
    ReliabilityDisplay

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from calibrant.plots import ReliabilityDisplay
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> display = ReliabilityDisplay.from_predictions(table)
    >>> svg(display).startswith("<?xml")
    True
    """
    stream = io.StringIO()
    figure = _drawn_figure(display)
    with _ONE_AT_A_TIME, mpl.rc_context({"svg.hashsalt": "calibrant", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": "Calibrant"})
    return _compact_svg(stream.getvalue())


def save(display: Display, path: str | PathLike[str], *, dpi: float = 150) -> None:
    """Write the figure of a display to a .svg, .png or .pdf file, with identical bytes for identical input.

    An existing file is replaced atomically.

    Parameters
    ----------
    display : display
        A drawn display of `calibrant.plots`.
    path : str or path
        File to write, which replaces an existing one; its suffix is the format: svg, png or pdf.
    dpi : float
        Dots per inch of a PNG.

    See Also
    --------
    load, to_sql, to_onnx

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calibrant import ScoreTable
    >>> from calibrant.plots import ReliabilityDisplay
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> display = ReliabilityDisplay.from_predictions(table)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(display, Path(folder, "reliability.svg"))
    ...     [path.name for path in Path(folder).iterdir()]
    ['reliability.svg']
    """
    kind = Path(path).suffix.lower()
    if kind not in (".svg", ".png", ".pdf"):
        raise InputError(f"path must end in .svg, .png or .pdf; got {str(path)!r}.")
    if kind == ".svg":
        write_file(path, svg(display))
        return
    dated = {"CreationDate": None} if kind == ".pdf" else None
    figure = _drawn_figure(display)
    stream = io.BytesIO()
    with _ONE_AT_A_TIME:
        figure.savefig(stream, format=kind[1:], dpi=dpi, metadata=dated)
    write_file(path, stream.getvalue())


def _compact_svg(text: str) -> str:
    """Round the coordinates of an SVG to two decimals, remove blanks between tags, and name clips by their content."""

    def short(place: re.Match[str]) -> str:
        found = place.group()
        return found if "scale(" in found else _DIGITS.sub(r"\1", found).replace(" \n", " ")

    text = _BETWEEN_TAGS.sub("><", _TAG.sub(lambda tag: _PLACES.sub(short, tag.group()), text))
    names = {old: f"clip{zlib.crc32(shape.encode()):08x}" for old, shape in _CLIP.findall(text)}
    if names:
        text = re.sub("|".join(names), lambda name: names[name.group()], text)
    seen: Counter[str] = Counter()

    def once(found: re.Match[str]) -> str:
        seen[found[1]] += 1
        return found.group() if seen[found[1]] == 1 else f' id="{found[1]}-{seen[found[1]]}"'

    return _TAG.sub(lambda tag: _ID.sub(once, tag.group()), text)


def _drawn_figure(display: Display) -> Figure:
    """Return the figure, ready for the layout pass of `savefig`; with a fixed aspect after the passes before it.

    The layout begins at the places of the grid, so that a figure that was shown or saved before gives the same file.
    """
    figure = _whole(display)
    engine = figure.get_layout_engine()
    if engine is None:
        return figure
    for ax in figure.axes:
        place = ax.get_subplotspec()
        if place is not None and ax.get_in_layout():  # not where the user placed it
            ax.set_subplotspec(place)
    # Axes with a fixed aspect shrink within their place, and the layout adapts to that in the next pass.
    fixed = any(ax.get_aspect() != "auto" for ax in figure.axes)
    for _ in range(_PASSES_OF_FIXED_ASPECT - 1 if fixed else 0):
        engine.execute(figure)
    return figure


def _whole(display: Display) -> Figure:
    figure = getattr(display, "figure_", None)
    if figure is None:
        raise InputError("display must be drawn.", hint="Call its plot() first.")
    while isinstance(figure, SubFigure):
        figure = figure.figure
    assert isinstance(figure, Figure)
    return figure


def predict_event(estimator: Any, X: Any, pos_label: object = None) -> Any:
    """Return the probabilities of the event by a fitted classifier: of `pos_label`, or of its second class."""
    predict = getattr(estimator, "predict_proba", None)
    if predict is None:
        raise InputError(
            f"estimator must have predict_proba; got {type(estimator).__name__}.",
            hint="Pass a classifier with predict_proba, or its probabilities to from_predictions.",
        )
    columns = np.asarray(predict(X))
    classes = list(getattr(estimator, "classes_", range(columns.shape[-1])))
    if columns.ndim != 2 or columns.shape[1] != 2:
        raise InputError(
            f"estimator must predict two classes; got probabilities of shape {columns.shape}.",
            hint="For several classes pass one class against the rest, or calibrant.metrics.top_label(y, proba), to "
            "from_predictions.",
        )
    if pos_label is not None and pos_label not in classes:
        raise InputError(f"pos_label must be one of the classes {classes}; got {pos_label!r}.")
    return columns[:, 1 if pos_label is None else classes.index(pos_label)]


def predict_scores(estimator: Any, X: Any, options: dict[str, Any], *, several: bool = False) -> Any:
    """Return the probabilities of one estimator or, if `several`, of each in a mapping.

    The label of the event is added to the options.
    """
    if isinstance(estimator, Mapping) and (not several or not estimator):
        need = "one estimator, or a mapping with at least one" if several else "one estimator"
        raise InputError(f"estimator must be {need}; got a mapping of {len(estimator)}.")
    first = next(iter(estimator.values())) if isinstance(estimator, Mapping) else estimator
    event, classes = options.get("pos_label"), list(getattr(first, "classes_", (0, 1)))
    if event is None and len(classes) == 2 and classes not in ([0, 1], [False, True]):
        event = options["pos_label"] = classes[1]
    if isinstance(estimator, Mapping):
        return {name: predict_event(each, X, event) for name, each in estimator.items()}
    return predict_event(estimator, X, event)


def predict_numbers(estimator: Any, X: Any) -> Any:
    """Return the predictions of a fitted regressor."""
    if not hasattr(estimator, "predict"):
        raise InputError(f"{type(estimator).__name__} has no predict.", argument="estimator")
    return estimator.predict(X)


def display_names(names: Iterable[object]) -> list[str]:
    """Return unique printable names; control characters are escaped."""
    found = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in str(name)) for name in names]
    twice = [text for text, count in Counter(found).items() if count > 1]
    if twice:
        raise InputError(f"names must be unique; got {twice[0]!r} more than once.", value=found)
    return found


def class_names(labels: Sequence[object]) -> list[str]:
    """Return unique printable names of classes; control characters are escaped."""
    return display_names(distinct_texts(labels))


def read_tables(y_true: Any, y_prob: Any, rows: Mapping[str, Any], default: str = "model") -> dict[str, ScoreTable]:
    """Return a table per model, of one column of predictions or of a mapping of them."""
    if isinstance(y_true, Mapping):
        if y_prob is not None:
            raise InputError("y_prob must be omitted with tables; got both.")
        found = [read_score_table(table, None, rows) for table in y_true.values()]
        names = display_names(y_true)
    elif isinstance(y_prob, Mapping):
        found = [read_score_table(y_true, column, rows) for column in y_prob.values()]
        names = display_names(y_prob)
    else:
        found, names = [read_score_table(y_true, y_prob, rows)], [default]
    if not found:
        raise InputError("y_prob must have predictions of at least one model; got an empty mapping.")
    return dict(zip(names, found, strict=True))


def result_table(result: Any) -> ScoreTable:
    """Return the table of a result."""
    if isinstance(result, MetricValue) and isinstance(result.table, ScoreTable):
        return result.table
    return check_breakdown(result).table


def named_results(breakdown: Any, default: str = "model") -> dict[str, Any]:
    """Return one result, or a mapping of them, as a mapping with unique names."""
    results = breakdown if isinstance(breakdown, Mapping) else {default: breakdown}
    if not results:
        raise InputError("breakdown must have at least one result; got an empty mapping.")
    for each in results.values():
        result_table(each)
    return dict(zip(display_names(results), results.values(), strict=True))


def shared_metric(results: Iterable[MetricValue]) -> Metric:
    """Return the metric that all results share."""
    metrics = [each.definition for each in results]
    if any(metric.spec != metrics[0].spec for metric in metrics):
        names = sorted({metric.name for metric in metrics})
        raise InputError(f"breakdown must have results of one metric with equal settings; got {', '.join(names)}.")
    return metrics[0]


def check_breakdown(result: Any) -> Breakdown:
    """Return the result if it is a Breakdown."""
    if not isinstance(result, Breakdown):
        raise wrong_value(
            "breakdown", "must be a Breakdown, such as cb.TCE()(y_true, y_prob)", result, got=type(result).__name__
        )
    return result
