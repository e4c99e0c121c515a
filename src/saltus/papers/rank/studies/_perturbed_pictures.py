"""Figures 3, 10 and 11: paths after a push beside the paths without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.papers.rank.studies import _captions
from saltus.papers.rank.studies.perturbed import BACK, CODES
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.rank.studies.perturbed import Perturbed

__all__ = ["pushes"]

WORDS = {"random": "random times", "transition": "mid-transition", "new": "a coordinate becomes large"}


def pushes(study: Perturbed, record: xarray.Dataset) -> Figure:
    """Some pushes of the first teacher, then how far all runs are from their paths."""
    shown = [k for k in ("random", "new") if k in study.kinds]
    panels = [(k, n) for k in shown for n in range(2 if len(shown) > 1 else 5)]
    columns = min(3, len(panels) + 1)
    rows = -(-(len(panels) + 1) // columns)
    fig, axes = figure.sheet(rows, columns, width=3.7, height=2.7)
    first = record.isel(run=0)
    for ax, (kind, n) in zip(axes.flat, panels, strict=False):
        number = _chosen(first, kind, n)
        if number is None:
            ax.set_visible(False)
            continue
        _paths(ax, first.isel(push=number), WORDS[kind])
    _all(axes.flat[len(panels)], study, record)
    for ax in axes.flat[len(panels) + 1 :]:
        ax.set_visible(False)
    axes[0, 0].plot([], [], color=figure.MUTED, label="pushed")
    figure.theory(axes[0, 0], [], [], label="not pushed")
    axes[0, 0].legend(fontsize=7)
    _captions.finding(
        fig,
        "Pushed, products nearly always come back to their path; with dormant ones pushed too, they do not",
        study.note()
        + f"; α = $10^{{-{study.power:g}}}$; the first teacher's pushes; right, all with room before "
        "the next stage: median, and 80% of them",
    )
    return fig


def _chosen(first: Any, kind: str, n: int) -> int | None:
    """The n-th push of that kind."""
    of_kind = np.flatnonzero((first.kind.values == CODES[kind]) & (first["all"].values == 0))
    return int(of_kind[n]) if n < len(of_kind) else None


def _paths(ax: Any, one: Any, words: str) -> None:
    time = one.share.values * float(one.duration)
    pushed, plain = (one[n].transpose("coordinate", "share").values for n in ("pushed", "plain"))
    # A push at a random time is small beside what is learnt: its difference is drawn, not the products.
    whole = int(one.kind) == CODES["new"]
    number = 0
    for ours, theirs in zip(pushed, plain, strict=True):
        if max(abs(ours).max(), abs(theirs).max()) < 1e-2:
            continue
        colour = figure.COLOURS[number % 6]
        number += 1
        ax.plot(time, ours if whole else ours - theirs, color=colour, linewidth=1.2)
        if whole:
            figure.theory(ax, time, theirs, label="_", linewidth=0.8)
    if not whole:
        figure.theory(ax, time, 0 * time, label="_", linewidth=0.8)
    ax.set(xlabel="time since the push", ylabel="product u v" if whole else "product, less that not pushed")
    ax.set_title(f"{words}, t = {float(one.moment):.2f}")


def _all(ax: Any, study: Perturbed, record: xarray.Dataset) -> None:
    flat = record.stack(case=("run", "push"))
    off = flat.off.transpose("case", "share").values
    lone = "new" not in study.kinds or "random" not in study.kinds
    kinds = [k for k in ("random", "new") if k in study.kinds]
    for number, kind in enumerate(kinds):
        for everything, dash in ((0, "-"), (1, ":")):
            chosen = (flat.kind.values == CODES[kind]) & (flat["all"].values == everything)
            if not chosen.any():
                continue
            words = "dormant ones too" if everything else "large ones" if lone else WORDS[kind]
            colour = figure.COLOURS[3 * everything + number]
            figure.band(
                ax,
                record.share.values,
                np.maximum(off[chosen], 1e-8),
                label=words,
                colour=colour,
                linestyle=dash,
            )
    ax.axhline(BACK, color=figure.MUTED, linewidth=0.8)
    ax.set(yscale="log", xlabel="share of the time given", ylabel="largest difference of a product")
    ax.set_title("all teachers")
    ax.legend(fontsize=7, loc="lower left")
