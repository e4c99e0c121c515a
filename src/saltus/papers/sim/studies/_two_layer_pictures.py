"""The two-layer model drawn: how fast steps approach the flow, and when an axis is logistic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.papers.sim.studies import _descent_pictures as pictures
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.sim.studies.two_layer import TwoLayerModel

__all__ = ["model"]

NAMES = {"gd": "gradient descent on U", "recursion": "recursion D.2 on W", "flow": "RK4 on U"}


def model(study: TwoLayerModel, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Distance against step, one start with every way to move it, and the terms of its velocity."""
    from saltus.papers.sim.law import two_layer

    fig, axes = figure.sheet(1, 3, width=3.7, height=3.3)
    eta = record.eta.values
    orders = {}
    for number, (how, words) in enumerate(NAMES.items()):
        orders[how] = float(np.nanmedian(study.orders(record, how)))
        runs = record.distance.sel(how=how).values.T
        label, colour = f"{words}: {orders[how]:.2f}", figure.COLOURS[number]
        figure.band(axes[0, 0], eta, runs, label=label, colour=colour, marker="o", markersize=3)
    middle = np.nanmedian(record.distance.sel(how="gd").values, axis=1)
    figure.theory(axes[0, 0], eta, middle[-1] * eta / eta[-1], label="slope 1")
    axes[0, 0].set(xscale="log", yscale="log", xlabel="step η", ylabel="largest distance of an entry of W")
    axes[0, 0].set_xticks(eta, [f"{x:g}" for x in eta])
    axes[0, 0].minorticks_off()
    axes[0, 0].set_title("distance from the exact flow, fitted power")
    axes[0, 0].legend(loc="center right", fontsize=7)
    time, W, s = record.time.values, record.exact.values[0], study.s
    steps = record.shown.sel(how="gd").values
    for i in range(s):
        for j in range(i, s):
            colour = pictures.entry_colour(i, j, s)
            axes[0, 1].plot(time, W[:, i, j], color=colour, label=pictures.name(i, j))
            axes[0, 1].plot(time, steps[:, i, j], "o", color=colour, markersize=3, markerfacecolor="white")
    for i in range(s):
        figure.theory(
            axes[0, 1], time, law.exact.values[0, :, i], label="_" if i else "logistic", linewidth=0.9
        )
    axes[0, 1].set(xlabel="time t", ylabel="entries of W", ylim=(-0.05, 1.3))
    axes[0, 1].set_title(f"start 0: flow, and steps of {study.eta:g} (circles)")
    axes[0, 1].legend(loc="upper left", ncols=2, fontsize=7)
    growth, suppression, noise = (np.asarray(x) for x in two_layer.split(W, study.rates()))
    for term, words, colour in (
        (growth, "growth G", figure.COLOURS[2]),
        (-suppression, "suppression -S", figure.COLOURS[1]),
        (-noise, "noise -N", figure.COLOURS[3]),
    ):
        axes[0, 2].plot(time, term[:, 0, 1], color=colour, label=words)
    figure.theory(axes[0, 2], time, (growth - suppression - noise)[:, 0, 1], label="V")
    axes[0, 2].axhline(0, color=figure.MUTED, linewidth=0.8)
    axes[0, 2].set(
        xlabel="time t", ylabel=f"velocity of {pictures.name(0, 1)}", title="what moves the minor entry"
    )
    axes[0, 2].legend(loc="lower right", fontsize=7)
    figure.finding(
        fig,
        f"Gradient descent on U is off the flow by its step to the power {orders['gd']:.2f}; "
        f"G - S - N is V to {float(record.split_gap.max()):.0e}",
        f"{study.reading}: A{'' if study.power == 1 else '²'}; d = {study.dim}, μ = {study.mu}, "
        f"U(0) ~ U(0, {study.scale:g}); {study.starts} starts, bands hold 80% of them; "
        f"split at {study.random} random Jacobians",
    )
    return fig
