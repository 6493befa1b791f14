"""All means of Tables 1, 2 and 4 to 7: printed and reproduced."""

from matplotlib.figure import Figure

from research.reproduction.costs.tables import Cell, Results, cells

# Okabe and Ito's colours, with a marker for each, which is distinct without colours.
_LOOKS = {
    "agrees": ("#0072B2", "o"),
    "differs": ("#CC79A7", "D"),
    "isotonic regression, differs": ("#E69F00", "s"),
    "isotonic regression, cannot be right": ("#D55E00", "X"),
    "too few of our splits to tell": ("#7f7f7f", "^"),
}


def _look(cell: Cell) -> str:
    if cell.verdict == "too few splits":
        return "too few of our splits to tell"
    return f"isotonic regression, {cell.verdict}" if cell.method == "IR" and cell.verdict != "agrees" else cell.verdict


def agreement(results: Results) -> Figure:
    """Plot reproduced means against printed ones, with three standard errors of each."""
    figure = Figure(figsize=(7.2, 6.4), layout="constrained")
    axes = figure.subplots()
    found = [cell for cell in cells(results) if cell.set != "Sentiment" and cell.ours.size > 1]
    for word, (colour, mark) in _LOOKS.items():
        own = [cell for cell in found if _look(cell) == word]
        if own:
            axes.errorbar(
                [cell.printed.mean for cell in own],
                [cell.mean for cell in own],
                xerr=[3 * cell.printed.error for cell in own],
                yerr=[min(3 * cell.error, 0.999 * cell.mean) for cell in own],
                fmt=mark,
                color=colour,
                ecolor=colour,
                elinewidth=0.7,
                markersize=5,
                alpha=0.85,
                label=f"{word} ({len(own)})",
            )
    limits = (0.0015, 1.8)
    axes.plot(limits, limits, color="#4d4d4d", linewidth=0.8, zorder=0)
    axes.set(xscale="log", yscale="log", xlim=limits, ylim=limits, aspect="equal")
    axes.set(xlabel="expected calibration cost, as printed", ylabel="expected calibration cost, here")
    axes.legend(loc="upper left", frameon=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
