"""Spectra and stable ranks of heads, drawn as the paper draws them, with their controls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import stages
from saltus.papers.rank.studies import _captions, _rank_claims
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "WORDS", "layers", "pairs", "rank_curves", "ranks", "spectra", "spectrum", "towards"]

WORDS = {"KQ": "$\\Delta W_K W_Q^\\top$", "VO": "$\\Delta W_V W_O^\\top$"}
COLOURS = {"KQ": figure.COLOURS[0], "VO": figure.COLOURS[1]}
START, RANDOM = figure.COLOURS[1], figure.MUTED


def spectrum(
    ax: Axes, record: xarray.Dataset, product: str, layer: int, head: int, *, member: int = 0
) -> None:
    """One head: the first product, random changes of the same size, and what was gained at several steps."""
    r = record.isel(member=member, head=head).sel(product=product, layer=layer)
    count = np.arange(1, r.sizes["index"] + 1)
    steps = record.shown.values
    for k, shade in enumerate(np.linspace(0.3, 1.0, len(steps))):
        ax.plot(
            count, r.spectrum.isel(shown=k), color=towards(figure.COLOURS[2], shade), linewidth=1.2,
            label=f"gained by step {steps[k]:,}",
        )  # fmt: skip
    ax.plot(count[: r.sizes["of_start"]], r.start, color=START, label="first value of the product")
    ax.plot(count, r.random, color=RANDOM, linestyle=(0, (1, 1)), label="random change of that size")
    ax.set(xlabel="index", ylabel="singular value / largest", ylim=(0, 1.03))
    ax.set_xlim(0.5, count[-1])


def share(record: xarray.Dataset, *products: str) -> str:
    """What is left of the area under the spectra of the first products, in words: medians over heads."""
    count = record.sizes["of_start"]
    found = []
    for product in products:
        r = record.sel(product=product)
        areas = (_rank_claims.areas(x.values, count) for x in (r.spectrum.isel(shown=-1), r.start))
        found.append(f"{np.median(np.divide(*areas)):.2f}")
    return " and ".join(found)


def towards(colour: str, shade: float) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(1 - shade * (1 - c) for c in to_rgb(colour))


def spectra(
    study: Any, record: xarray.Dataset, panels: Sequence[tuple[str, int, int]], title: str, columns: int = 3
) -> Figure:
    """A panel for every (product, layer, head)."""
    rows = -(-len(panels) // columns)
    fig, axes = figure.sheet(rows, columns, width=3.1 if columns > 1 else 5.6, height=2.8, sharey=True)
    for ax, (product, layer, head) in zip(axes.flat, panels, strict=False):
        spectrum(ax, record, product, layer, head)
        ax.set_title(f"{WORDS[product]}, layer {layer}, head {head + 1}")
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside right center", fontsize=7.5)
    _captions.finding(fig, title, study.note())
    return fig


def rank_curves(
    ax: Axes, record: xarray.Dataset, layer: int, *, member: int = 0, marks: bool = True, label: bool = True
) -> None:
    """Stable rank of one layer: mean and standard deviation over heads, random walks of the same sizes."""
    steps = record.step.values
    known = steps > 0
    for product, colour in COLOURS.items():
        r = record.isel(member=member).sel(layer=layer, product=product)
        mean, spread = r["rank"].mean("head").values[known], r["rank"].std("head").values[known]
        ax.plot(steps[known], mean, color=colour, label=WORDS[product] if label else "_")
        ax.fill_between(steps[known], mean - spread, mean + spread, color=colour, alpha=0.18, linewidth=0)
        ax.plot(
            steps[known], r.random_rank.mean("head").values[known], color=colour, linestyle=(0, (1, 1)),
            linewidth=1.0, label="_",
        )  # fmt: skip
        if marks:
            x, y = _rank_claims.curves(record.isel(member=[member]).sel(layer=[layer], product=[product]))
            found = stages.find(y[0, 0, 0], x, alarm=_rank_claims.ALARM)
            up = found.at[found.height > 0]
            ax.plot(
                up, np.interp(np.log(up), np.log(steps[known]), mean), "^", color=colour, markersize=5,
                markeredgecolor="white", markeredgewidth=0.6,
            )  # fmt: skip
    if label:
        ax.plot([], [], color=figure.MUTED, linestyle=(0, (1, 1)), label="random walks of their sizes")
    ax.set(xscale="log", xlabel="training step", ylabel="stable rank")
    ax.set_ylim(bottom=0)


def growth(record: xarray.Dataset) -> dict[str, float]:
    """How many times the stable rank grew since early in the training, for each product."""
    early = _rank_claims.early_look(record.step.values)
    return {
        name: _rank_claims.networks(_rank_claims.ratio(record.sel(product=product)["rank"], early)).value
        for product, name in _rank_claims.NAMES.items()
    }


def _folds(record: xarray.Dataset) -> str:
    return " and ".join(f"{times:.2f}-fold in {name}" for name, times in growth(record).items())


def below(record: xarray.Dataset) -> str:
    """How far the ranks reached lie below those of random walks, in words."""
    last = record.isel(step=-1)
    times = (last.random_rank / last["rank"]).median(("member", "layer", "head"))
    return " and ".join(f"{float(times.sel(product=p)):.1f}" for p in _rank_claims.NAMES)


def ranks(study: Any, record: xarray.Dataset, lead: str, columns: int = 3) -> Figure:
    """A panel for every layer, as in figures 12, 15 and 20."""
    title = f"{lead}: the ranks gained end {below(record)} times below random walks"
    layers_ = record.layer.values
    columns = min(columns, len(layers_)) if len(layers_) != 4 else 4
    fig, axes = figure.sheet(-(-len(layers_) // columns), columns, width=2.9, height=3.0, sharey=True)
    for ax, layer in zip(axes.flat, layers_, strict=False):
        rank_curves(ax, record, int(layer))
        ax.set_title(f"layer {layer}")
    for ax in axes.flat[len(layers_) :]:
        ax.set_axis_off()
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    fig.legend(*_legend(axes[0, 0]), loc="outside right center", fontsize=7.5)
    _captions.finding(
        fig,
        title,
        f"{study.note()}; since early in the training {_folds(record)}; first network; bands: standard "
        "deviation over heads; ▲: rises found by the detector of stages",
    )
    return fig


def _legend(ax: Axes) -> tuple[list[Any], list[str]]:
    """Each name once."""
    held = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    return list(held.values()), list(held)


def layers(record: xarray.Dataset, wanted: int = 3) -> list[int]:
    """So many layers, spread over the depth: 1, 3, 5 of 6."""
    every = [int(k) for k in record.layer.values]
    if len(every) == 6 and wanted == 3:
        return [1, 3, 5]
    return [every[int(k)] for k in np.unique(np.linspace(0, len(every) - 1, wanted).round().astype(int))]


def pairs(study: Any, records: dict[str, xarray.Dataset]) -> Figure:
    """Figure 4: the middle layer of each training."""
    columns = min(len(records), 2)
    fig, axes = figure.sheet(-(-len(records) // columns), columns, width=3.6, height=2.8)
    for ax, (name, record) in zip(axes.flat, records.items(), strict=False):
        middle = int(record.layer.values[len(record.layer) // 2])
        rank_curves(ax, record, middle)
        ax.set_title(f"{name}, layer {middle} of {len(record.layer)}")
    for ax in axes.flat[len(records) :]:
        ax.set_axis_off()
    fig.legend(*_legend(axes[0, 0]), loc="outside right center", fontsize=7.5)
    words = ", ".join(
        f"{name} {' and '.join(f'{x:.2f}' for x in growth(record).values())}"
        for name, record in records.items()
    )
    _captions.finding(
        fig, f"Rank gained, end over early: {words}",
        f"{study.note()}; early: {_rank_claims.EARLY:.0%} of the training; in this order "
        f"{' and '.join(_rank_claims.NAMES.values())}",
    )  # fmt: skip
    return fig
