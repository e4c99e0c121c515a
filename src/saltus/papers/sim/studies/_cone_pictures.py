"""The recursion on W drawn: shares that are lost against step size, what becomes of them, and start size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import stats
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.sim.studies.recursion import Recursion


def _shares(ax: Any, x: Any, counts: Any, runs: int, **line: Any) -> None:
    """Shares with 95% intervals; what was never seen is left out of a logarithmic axis."""
    x, counts = np.asarray(x, float), np.asarray(counts)
    kept = counts > 0
    each = [stats.share_of(int(c), runs) for c in counts[kept]]
    mid = np.asarray([e.value for e in each])
    reach = np.asarray([[e.value - e.low, e.high - e.value] for e in each]).reshape(-1, 2).T
    ax.errorbar(x[kept], mid, yerr=reach, **{"capsize": 2, "markersize": 4, **line})


def recursion(study: Recursion, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    fig, axes = figure.sheet(1, 3, width=3.6, height=3.3)
    s, n, eta = len(study.mu), study.runs, record.eta.values
    left, middle, right = axes[0]
    for number, width in enumerate(study.widths):
        colour = figure.COLOURS[number]
        _shares(
            left, eta, record.left.sel(width=width).values, n, color=colour, fmt="o", label=f"d' = {width}"
        )
        said = record.predicted.sel(width=width).values / n
        shown = said > 0
        figure.theory(left, eta[shown], said[shown], label="linear phase" if number == 0 else "_")
    left.set(xscale="log", yscale="log", xlabel="step size η", ylabel="share of starts", ylim=(0.3 / n, 1))
    left.set_title("leaves the cone")
    left.legend(loc="lower right", fontsize=7)
    # The three shares nearly coincide: open markers of three sizes show all of them.
    for number, (name, words, marker, size) in enumerate(
        (
            ("left", "negative eigenvalue", "o", 11),
            ("negative", "negative diagonal", "s", 7),
            ("diverged", "diverged", ".", 5),
        )
    ):
        counts = record[name].sel(width=s).values
        line = dict(color=figure.COLOURS[number], marker=marker, markersize=size, markerfacecolor="none")
        _shares(middle, eta, counts, n, label=words, linewidth=0.8, **line)
    gd = [int(record.gd_left.sel(width=s, gd_eta=e)) / n for e in record.gd_eta.values]
    middle.plot(record.gd_eta.values, gd, "x", color=figure.MUTED, label="descent on U: any")
    middle.set(xscale="log", xlabel="step size η", ylabel="share of starts", ylim=(-0.03, None),
               title=f"what becomes of them, d' = {s}")  # fmt: skip
    middle.legend(loc="upper left")
    sizes = record["size"].values
    _shares(
        right, sizes, record.size_left.values, n, color=figure.COLOURS[0], fmt="o", label="leaves the cone"
    )
    order = np.argsort(sizes)
    figure.theory(right, sizes[order], record.size_predicted.values[order] / n, label="linear phase")
    right.set(xscale="log", xlabel="size of the start", ylabel="share of starts", ylim=(0, 1),
              title=f"start size, d' = {s}, η = {study.eta:g}")  # fmt: skip
    right.legend(loc="upper right")
    fitted = [study.exponent(record, w) for w in (s, s + 1)]
    said = [float(law.exponent.sel(width=w)) for w in (s, s + 1)]
    changed = int(record.precise_changed.sel(way_of="float32")) / n
    figure.finding(
        fig,
        f"The recursion on W loses starts as $η^{{{fitted[0].value:.2f}}}$ at d' = {s} (theory {said[0]:g}) "
        f"and as $η^{{{fitted[1].value:.2f}}}$ at d' = {s + 1} (theory {said[1]:g})",
        f"{study.reading} (A{'²' if study.power == 2 else ''}), scale {study.scale}: {n} starts a setting, "
        f"U(0, {study.size:g}); mu = {', '.join(f'{m:g}' for m in study.mu)}; single precision changes "
        f"the fate of {changed:.2%}",
    )
    return fig
