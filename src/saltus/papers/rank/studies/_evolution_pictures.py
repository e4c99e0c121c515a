"""Figures 2, 8 and 9: loss and products over rescaled time, from large starts to small ones."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.papers.rank.studies import _captions, _toys
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.rank.studies.evolution import Evolution

__all__ = ["entries", "loss", "shades"]


def shades(number: int) -> list[Any]:
    """So many colours in order, from pale to dark."""
    import matplotlib as mpl

    return [mpl.colormaps["viridis_r"](x) for x in np.linspace(0.15, 1.0, number)]


def power_of_ten(power: float) -> str:
    return f"$10^{{-{power:g}}}$"


def loss(study: Evolution, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Loss from every start, products from the smallest, and how close successive starts are."""
    fig, axes = figure.sheet(1, 3, width=3.8, height=3.3)
    one, said = record.isel(run=0), law.isel(run=0)
    time, colours = one.time.values, shades(record.sizes["power"])
    for power, colour in zip(record.power.values, colours, strict=True):
        label = f"α = {power_of_ten(power)}"
        axes[0, 0].plot(time, one.loss.sel(power=power).values, color=colour, label=label, linewidth=1.3)
    figure.theory(axes[0, 0], time, said.loss.values, label="Algorithm 1")
    axes[0, 0].set(xlabel="time / log(1/α)", ylabel="loss", title="first teacher")
    axes[0, 0].legend(fontsize=7)
    last = one.isel(power=-1)
    half = one.sizes["coordinate"] // 2
    for i, values in enumerate(last.products.transpose("coordinate", "look").values):
        axes[0, 1].plot(time, values, color=figure.COLOURS[int(i >= half)], linewidth=1.1)
        figure.theory(axes[0, 1], time, said.products.values[:, i], label="_", linewidth=0.7)
    for name, colour in (("$w_K w_Q$", 0), ("$w_V w_O$", 1)):
        axes[0, 1].plot([], [], color=figure.COLOURS[colour], label=name)
    axes[0, 1].set(
        xlabel="time / log(1/α)",
        ylabel="product u v",
        title=f"its products, α = {power_of_ten(last.power.item())}",
    )
    axes[0, 1].legend(fontsize=7, loc="upper left")
    _distances(axes[0, 2], study, record)
    ratio = _ratio(study, record, "mean_apart")
    _captions.finding(
        fig,
        "The smaller the start, the closer to Algorithm 1: on average over time the last two starts differ "
        f"{ratio:.2f} times as much as the first two",
        study.note() + "; exact flow; time to 1.15 times the stage at which "
        f"{study.learnt:.0%} of the loss is left",
    )
    return fig


def entries(study: Evolution, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """The block's products of the first teacher, one panel a start, over Algorithm 1."""
    powers = record.power.values
    columns = min(3, len(powers))
    rows = -(-len(powers) // columns)
    fig, axes = figure.sheet(rows, columns, width=3.5, height=2.4, sharex=True, sharey=True)
    one, said = record.isel(run=0), law.isel(run=0)
    inside = np.flatnonzero(study.of_block(one.sizes["coordinate"]))
    shown = [i for i in inside if _toys.grown(record).values[0, i]]
    for ax, power in zip(axes.flat, powers, strict=False):
        values = one.products.sel(power=power).transpose("look", "coordinate").values
        for i in inside:
            colour = figure.COLOURS[shown.index(i) % 6] if i in shown else figure.MUTED
            ax.plot(one.time.values, values[:, i], color=colour, linewidth=1.2)
            figure.theory(ax, one.time.values, said.products.values[:, i], label="_", linewidth=0.7)
        ax.set_title(f"α = {power_of_ten(power)}")
    for ax in axes.flat[len(powers) :]:
        ax.set_visible(False)
    for ax in axes[-1]:
        ax.set_xlabel("time / log(1/α)")
    for ax in axes[:, 0]:
        ax.set_ylabel(f"entries of {'$w_K w_Q$' if study.block == 'KQ' else '$w_V w_O$'}")
    figure.theory(axes[0, 0], [], [], label="Algorithm 1")
    axes[0, 0].legend(loc="best", fontsize=7)
    ratio = _ratio(study, record, "mean_apart")
    _captions.finding(
        fig,
        f"Entries switch on one at a time; the last two starts differ {ratio:.2f} times as much as the "
        f"first two "
        "(average over time)",
        study.note() + "; first teacher shown; exact flow",
    )
    return fig


def _distances(ax: Any, study: Evolution, record: xarray.Dataset) -> None:
    grown = _toys.grown(record).values & study.of_block(record.sizes["coordinate"])
    for name, words, colour in (
        ("most_apart", "largest of all times", figure.COLOURS[1]),
        ("mean_apart", "average over time", figure.COLOURS[0]),
    ):
        values = record[name].transpose("run", "coordinate", "pair").values[grown]
        figure.band(
            ax, np.arange(record.sizes["pair"]), values, label=words, colour=colour, marker="o", markersize=3
        )
    powers = record.power.values
    names = [f"{power_of_ten(a)}\n{power_of_ten(b)}" for a, b in pairwise(powers)]
    ax.set_xticks(np.arange(len(names)), names, fontsize=7)
    ax.set(yscale="log", xlabel="two successive starts α", ylabel="difference of a product")
    ax.set_title("products that grow, all teachers")
    ax.legend(fontsize=7, loc="lower left")


def _ratio(study: Evolution, record: xarray.Dataset, name: str) -> float:
    grown = _toys.grown(record).values & study.of_block(record.sizes["coordinate"])
    values = record[name].transpose("pair", "run", "coordinate").values[:, grown]
    return float(np.median(values[-1] / values[0]))
