"""Figures 17 and 18 drawn: both losses, and the outputs at the training centres."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import stats
from saltus.papers.sim.studies import _descent_pictures as pictures
from saltus.papers.sim.studies import _stages
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.sim.studies.training_view import TrainingLoss, TrainingOutputs

__all__ = ["losses", "outputs"]

TEST, TRAIN = "#D55E00", "#0072B2"


def losses(study: TrainingLoss, record: xarray.Dataset) -> Figure:
    """Fig. 17: both losses of one start, and of many."""
    fig, axes = figure.sheet(1, 3, width=3.6, height=3.1)
    time, k = record.time.values, study.shown(record)
    test, train = (record[name].values / record[name].values[:, :1] for name in ("loss", "train"))
    end = pictures.shown_until(time, record.loss.values[k])
    found = _stages.stages_of(study, record, k)
    pictures.shade(axes[0, 0], found, end=end)
    axes[0, 0].plot(time, test[k], color=TEST, label="test, at x̂", linewidth=2)
    axes[0, 0].plot(time, train[k], color=TRAIN, label="training", linewidth=2)
    axes[0, 0].legend(loc="upper right")
    axes[0, 0].set(ylabel="loss over its start", title="one start, stages shaded")
    twice = record.descents.sel(theta=study.theta).values[: len(test)] >= 2
    for ax, curves, colour in ((axes[0, 1], test, TEST), (axes[0, 2], train, TRAIN)):
        for curve, rises in sorted(zip(curves, twice, strict=True), key=lambda pair: bool(pair[1])):
            plain = curves is test and not rises
            look = {"color": figure.MUTED, "alpha": 0.25} if plain else {"color": colour, "alpha": 0.5}
            ax.plot(time, curve, linewidth=0.6, rasterized=True, **look)
    axes[0, 1].set_title(f"test loss, {len(test)} starts; coloured: falls twice")
    axes[0, 2].set_title(f"training loss, {len(test)} starts")
    for ax in axes[0]:
        ax.set(xlabel="time t", xlim=(0, end), ylim=(0, 1.08))
    falls = stats.share(record.descents.sel(theta=study.theta).values >= 2)
    rises = stats.share(~(record.train_rise.values <= 1e-12))
    figure.finding(
        fig,
        f"The test loss falls twice in {falls.value:.1%} of {falls.n} starts; "
        f"the training loss rises at some step in {f'{rises.value:.1%}' if rises.value else 'none'}",
        f"{study.note()}\n{study.words(record)}",
    )
    return fig


def outputs(study: TrainingOutputs, record: xarray.Dataset) -> Figure:
    """Fig. 18: the outputs at x̂ and at both centres, and when each stage is reached."""
    from saltus.papers.sim.studies.training_view import passes, stray

    fig, axes = figure.sheet(1, 3, width=3.6, height=3.6)
    time, k, mu = record.time.values, study.shown(record), study.target()
    W = record.W.values[k]
    found = _stages.stages_of(study, record, k)
    plane = axes[0, 0]
    centres = [np.where(np.arange(study.dim) == p, mu, 0.0) for p in (0, 1)]
    for z in (mu, centres[1], centres[0]):
        path = (W @ z)[:, :2]
        for one, colour in zip(found, pictures.stage_colours(found), strict=True):
            inner = (time >= one.start) & (time <= one.end)
            label = f"{one.kind} of {pictures.name(*one.driver)}" if z is mu else "_"
            plane.plot(*path[inner].T, color=colour, linewidth=2.6, label=label)
        plane.plot(*path[0], "o", color="black", markersize=3)
    plane.plot(mu[0], mu[1], "*", color="black", markersize=11)
    plane.plot(
        [0, mu[0]], [mu[1], 0], "o", color="black", markersize=9, markerfacecolor="none", linestyle="none"
    )
    for point, words, shift in (((mu[0], mu[1]), "x̂", (6, 4)), ((0, mu[1]), "centre 2", (-8, 9)),
                                ((mu[0], 0), "centre 1", (-18, 9))):  # fmt: skip
        plane.annotate(words, point, textcoords="offset points", xytext=shift, fontsize=8)
    plane.set(xlabel="output along concept 1", ylabel="output along concept 2", aspect="equal")
    plane.set_xlim(-0.15 * mu[0], 1.45 * mu[0])
    plane.set_ylim(-0.1 * mu[1], 1.2 * mu[1])
    plane.legend(loc="center right", fontsize=7, handlelength=0.8, borderaxespad=0)
    plane.set_title("outputs at x̂ and at both centres")
    end = pictures.shown_until(time, record.loss.values[k])
    pictures.shade(axes[0, 1], found, end=end)
    curves: list[tuple[Any, str, str]] = [
        (W[:, 1, 1], "centre 2, own axis ($w_{22}$)", pictures.GROWTH[0]),
        (W[:, 0, 1], "off axis, both ($w_{12}$)", pictures.SUPPRESSION[0]),
        (W[:, 0, 0], "centre 1, own axis ($w_{11}$)", pictures.GROWTH[1]),
    ]
    for curve, label, colour in curves:
        axes[0, 1].plot(time, curve, color=colour, label=label, linewidth=1.9)
    axes[0, 1].set(xlabel="time t", ylabel="output per unit of the centre", xlim=(0, end), ylim=(-0.05, 1.45))
    axes[0, 1].set_title("one start, stages shaded")
    axes[0, 1].legend(loc="upper left", fontsize=7)
    all_W = record.W.values[study.well(record)]
    strong, weak = (passes(time, all_W[:, :, i, i]) for i in (1, 0))
    peak = time[abs(all_W[:, :, 0, 1]).argmax(1)]
    shown_end = float(np.quantile(weak[np.isfinite(weak)], 0.98)) if np.isfinite(weak).any() else time[-1]
    bins = np.linspace(0, shown_end, 40)
    for values, (_, _, colour), words in zip(
        (strong, peak, weak),
        curves,
        ("$w_{22}$ passes 1/2", "peak of $w_{12}$", "$w_{11}$ passes 1/2"),
        strict=True,
    ):
        axes[0, 2].hist(values[np.isfinite(values)], bins=bins, color=colour, alpha=0.65, label=words)
    axes[0, 2].set(xlabel="time t", ylabel="starts", title=f"when, over {len(all_W)} starts")
    axes[0, 2].legend(loc="upper right", fontsize=7.5)
    share = stats.share(stray(all_W) > 0.1)
    order = stats.share((strong < weak) & (peak < weak))
    figure.finding(
        fig,
        f"Outputs at both centres stray by over 10% and come back in {share.value:.0%} of starts; "
        f"the strong one settles first in {order.value:.0%}",
        f"{study.note()}\n{study.words(record)}",
    )
    return fig
