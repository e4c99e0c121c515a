"""The census drawn: how many descents against the number of concepts, and what makes them more or fewer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.papers.sim.studies._counts import share
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.sim.studies.census import Census

NAMES = {1: "A", 2: "A²"}
# Dark for many: one colour a number of descents, ordered, readable without colour.
SHADES = ("#E8E8E8", "#BBD7EA", "#7FB8DA", "#3B8BC2", "#0F5F9C", "#083A66", "#041E36")


def bars(ax: Any, study: Census, record: xarray.Dataset, family: str, each: list[int], start: str) -> None:
    """Stacked shares of 1, 2, ... descents against the number of concepts `each`."""
    power = study.power
    floor = np.zeros(len(each))
    for number in range(1, max(study.concepts) + 1):
        height = np.asarray(
            [
                share(record, family, s, start, power, study.theta[0], number).value
                - share(record, family, s, start, power, study.theta[0], number + 1).value
                for s in each
            ]
        )
        ax.bar(each, height, bottom=floor, color=SHADES[number - 1], edgecolor="white", linewidth=0.5,
               label=str(number), width=0.8)  # fmt: skip
        floor = floor + height
    ax.set(xlabel="concepts s", ylabel="share of starts", ylim=(0, 1), xticks=sorted(study.concepts))
    ax.set_xlim(min(study.concepts) - 0.6, max(study.concepts) + 0.6)
    ax.grid(False)


def lines(ax: Any, study: Census, record: xarray.Dataset, family: str, xs: Any, least: int) -> None:
    """The share with at least so many descents against one setting, for both dynamics and thresholds."""
    for power in (1, 2):
        for theta, style in zip(study.theta[:2], ("-", ":"), strict=True):
            found = [share(record, family, x, "uniform", power, theta, least) for x in xs]
            mid = np.asarray([e.value for e in found])
            colour = figure.COLOURS[power - 1]
            ax.plot(xs, mid, linestyle=style, marker="o", markersize=3, color=colour,
                    label=f"{NAMES[power]}, θ = {theta:g}")  # fmt: skip
            ax.fill_between(
                xs, [e.low for e in found], [e.high for e in found], color=colour, alpha=0.15, lw=0
            )
    ax.set(ylabel=f"share with {least} or more descents", ylim=(-0.02, 1.02))


def census(study: Census, record: xarray.Dataset) -> Figure:
    fig, axes = figure.sheet(2, 3, width=3.5, height=2.9)
    p, signals = study.power, ", ".join(f"{1 + study.spacing * k:g}" for k in range(3))
    for ax, family, each, start, words in (
        (axes[0, 0], "concepts", sorted(study.concepts), "uniform", f"non-negative, μ = {signals}, ..."),
        (axes[0, 1], "concepts", sorted(study.concepts), "gaussian", f"Gaussian, μ = {signals}, ..."),
        (axes[0, 2], "constant ratio", study.kept(), "uniform", f"non-negative, ratio {study.constant:g}"),
    ):
        bars(ax, study, record, family, each, start)
        ax.set_title(f"{NAMES[p]}: {words}", fontsize=8.5)
    handles, labels = axes[0, 2].get_legend_handles_labels()
    axes[0, 2].legend(handles[::-1], labels[::-1], title="descents", loc="upper left", fontsize=7,
                      bbox_to_anchor=(1.0, 1.0), title_fontsize=8)  # fmt: skip
    lines(axes[1, 0], study, record, "size", sorted(study.sizes), 2)
    axes[1, 0].set(xlabel="size of the start", xscale="log", title="size of the start, s = 2")
    lines(axes[1, 1], study, record, "ratio", sorted(study.ratios), 2)
    axes[1, 1].set(xlabel="$μ_2 / μ_1$", title="ratio of the signals, s = 2")
    lines(axes[1, 2], study, record, "width", sorted(study.widths), 2)
    axes[1, 2].set(xlabel="width d'", title="width, s = 3 (world of figure 8)")
    handles, labels = axes[1, 2].get_legend_handles_labels()
    axes[1, 2].legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7)
    s = min(study.concepts)
    seen, gaussian = (share(record, "concepts", s, k, p, study.theta[0], 2) for k in ("uniform", "gaussian"))
    figure.finding(
        fig,
        f"At s = {s} the loss falls twice from {seen.value:.0%} of the non-negative starts, and from "
        f"{gaussian.value:.0%} of the Gaussian ones",
        f"{study.reading} ({NAMES[p]}): {study.starts:,} starts a setting, "
        f"U(0, {study.size:g}) unless said; top: θ = {study.theta[0]:g} L(0); exact flow, "
        f"worst error of W {float(record.solver_error.sel(of='flow').max()):.1g}",
    )
    return fig
