"""Figure 10 drawn: one plateau to its end, the law of its length, and how many starts are still on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.papers.sim.studies import _descent_pictures as pictures
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.sim.studies.plateau import Plateau

__all__ = ["plateau"]


def one_start(axes: dict[str, Any], study: Plateau, record: xarray.Dataset) -> None:
    """Loss and entries of the start shown; what the published figure shows is on white."""
    first = max(float(record.time[1]), 0.3 / float(study.rates().max()))
    time, W, loss, s = record.time.values, record.W.values, record.loss.values, study.s
    for name in ("loss", "entries"):
        axes[name].axvspan(study.horizon, study.long, color=figure.MUTED, alpha=0.18, linewidth=0)
        axes[name].set_xscale("log")
    axes["loss"].plot(time, loss, color="black", linewidth=2)
    rest = 0.5 * study.mu[0] ** 2
    axes["loss"].axhline(rest, color=figure.THEORY, linestyle=(0, (4, 2)), linewidth=1)
    axes["loss"].annotate(
        "$μ_1^2/2$", (1.05 * first, rest), xytext=(0, 2), textcoords="offset points", fontsize=8
    )
    axes["loss"].set(ylabel="loss at x̂", ylim=(0, 1.08 * loss[0]), title=f"start {int(record.shown)}")
    for i in range(s - 1, -1, -1):
        colour = pictures.entry_colour(i, i, s)
        axes["entries"].plot(time, W[:, i, i], color=colour, label=pictures.name(i, i), linewidth=1.9)
    for i in range(s):
        for j in range(i + 1, s):
            colour = pictures.entry_colour(i, j, s)
            axes["entries"].plot(time, W[:, i, j], color=colour, label=pictures.name(i, j), linewidth=1.3)
    axes["entries"].set(ylabel="entries of the Jacobian", xlabel="time t (grey: after the figure's end)")
    axes["entries"].set_xlim(first, study.long)
    axes["entries"].set_ylim(-0.06, 1.08)
    axes["entries"].legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 0.98),
        ncols=6,
        fontsize=7.5,
        handlelength=1,
        columnspacing=0.8,
    )


def plateau(study: Plateau, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """The whole figure."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(11.2, 4.6), layout="constrained")
    axes = pictures.panels(fig, study.s, "late")
    one_start(axes, study, record)
    enough = [int(w) for w in record.columns.values if w >= study.s]
    top = 0.0
    for number, width in enumerate(enough):
        said = law.half_time.sel(columns=width).values[:, 0]
        seen = record.half_time.sel(columns=width).values[:, 0]
        seen = np.where(np.isfinite(seen), seen, np.nan)
        colour = figure.COLOURS[number]
        axes["plane"].plot(
            said, seen, ".", markersize=2.5, color=colour, label=f"d' = {width}", rasterized=True
        )
        top = max(top, float(np.nanmax(seen, initial=0.0)))
    figure.theory(axes["plane"], [0, top], [0, top], label="law")
    axes["plane"].set(
        xlabel="predicted, $\\ln(1/σ_1)\\,/\\,2a_1$", ylabel="time at which $w_{11}$ passes 1/2"
    )
    axes["plane"].set_title("when the plateau ends")
    axes["plane"].legend(loc="upper left", markerscale=3)
    for number, width in enumerate(record.columns.values):
        survival(axes["late"], study, record, law, int(width), number)
    axes["late"].set(
        yscale="log", xlabel="time t", ylabel="share of starts not half learnt", ylim=(4e-4, 1.6)
    )
    axes["late"].set_title("still on the plateau")
    axes["late"].set_xlim(0, min(study.long, 1.15 * top or study.long))
    axes["late"].legend(loc="lower left")
    took = record.half_time.sel(columns=study.s).values[:, 0]
    few = record.half_time.sel(columns=study.s - 1).values[:, 0]
    error = np.nanmedian(abs(law.half_time.sel(columns=study.s).values[:, 0] / took - 1))
    late = study.unlearnt(record)[study.networks(record)].mean()
    lost = np.isfinite(record.recursion_negative_at.values).mean()
    gone = np.isfinite(record.diverged_at.values).mean()
    first = study.unlearnt(record).any()
    said = f"By t = {study.long:g}, {np.isfinite(took).mean():.1%} of the starts with d' = {study.s} have "
    said += f"generalised, when the law says ({error:.1%} off); "
    said += f"with d' = {study.s - 1}, {np.isfinite(few).mean():.0%}"
    low = f"$w_{{11}}$ < {study.below:g} at t = {study.horizon:g}"
    note = f"{study.note()}; {study.starts} starts a width.\n"
    which = f"the first start with {low}" if first else f"the slowest start; none has {low}"
    note += f"shown: {which}, where the published figure ends"
    note += f" ({late:.1%} of the starts whose diagonal is positive).\n" if first else ".\n"
    note += f"Recursion D.2 on W (η = {study.eta:g}): {lost:.1%} get a "
    note += f"negative diagonal entry, {gone:.1%} have diverged by t = {study.horizon:g}."
    figure.finding(fig, said, note)
    return fig


def survival(
    ax: Any, study: Plateau, record: xarray.Dataset, law: xarray.Dataset, width: int, number: int
) -> None:
    """The share of starts whose last concept is not yet half learnt, and the slope the law gives its tail."""
    took = np.sort(record.half_time.sel(columns=width).values[:, 0])
    n, colour = len(took), ("#CC79A7", *figure.COLOURS)[number % 8]
    finite = took[np.isfinite(took)]
    left = 1 - (np.arange(len(finite)) + 1) / n
    if not finite.size:
        ax.plot([0, study.long], [1, 1], color=colour, label=f"d' = {width}")
        return
    ax.step([0, *finite], [1, *left], where="post", color=colour, label=f"d' = {width}")
    from saltus.papers.sim.studies.plateau import TAIL

    start, rate = float(np.quantile(took, TAIL)), float(law.falloff.sel(columns=width))
    t = np.linspace(start, start + np.log(200) / rate, 30)
    figure.theory(ax, t, (1 - TAIL) * np.exp(-rate * (t - start)), label="_")
