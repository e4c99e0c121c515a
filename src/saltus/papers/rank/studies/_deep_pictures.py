"""Deep diagonal transformers over Algorithm 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.papers.rank.studies import _captions, _toys
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.rank.studies.deep_diagonal import DeepDiagonal

__all__ = ["deep"]


def deep(study: DeepDiagonal, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Loss of the first networks over their staircases, stage times, and how many coordinates tie."""
    fig, axes = figure.sheet(1, 3, width=3.7, height=3.2)
    counts = _toys.counting(record)
    for number, h in enumerate(study.widths()):
        one = record.sel(heads=h).isel(run=0)
        colour, name = figure.COLOURS[number], f"{h} head{'s' if h > 1 else ''} a layer"
        T, level = one["T"].values, one.level.values
        known = np.isfinite(T)
        place = np.clip(np.searchsorted(T[known], one.time.values, side="right") - 1, 0, None)
        axes[0, 0].plot(one.time.values, one.loss.values / level[0], color=colour, label=name)
        figure.theory(axes[0, 0], one.time.values, level[known][place] / level[0], label="_")
        several = record.sel(heads=h)
        due, seen = (
            x.where(counts.sel(heads=h)).values.ravel() for x in (law.due.sel(heads=h), several.half_rise)
        )
        axes[0, 1].plot(due, seen, "o", markersize=3.5, color=colour, label=name)
        tied = several.tied.where(several.stage < several["last"])
        axes[0, 2].plot(
            tied.stage.values, tied.mean("run").values + 1, "o-", color=colour, markersize=3.5, label=name
        )
    figure.theory(axes[0, 0], [], [], label="Algorithm 1")
    axes[0, 0].set(
        xlabel="time / log(1/α)", ylabel="loss over loss at 0", yscale="log", title="first teacher"
    )
    axes[0, 0].legend(fontsize=7, loc="upper right")
    ends = [float(np.nanmin(law.due.where(counts).values)), float(np.nanmax(law.due.where(counts).values))]
    figure.theory(axes[0, 1], ends, ends, label="equal")
    axes[0, 1].set(xscale="log", yscale="log", xlabel="due, $T_k + C_k/L$", ylabel="half-rise seen")
    axes[0, 1].set_title("stage times, all teachers")
    axes[0, 1].legend(fontsize=7)
    axes[0, 2].set(xlabel="stage", ylabel="coordinates tied for the win", title="ties, average over teachers")
    axes[0, 2].set_ylim(0, None)
    axes[0, 2].legend(fontsize=7)
    _captions.finding(
        fig,
        "With one head a layer stages of deep diagonal transformers come when Algorithm 1 says; with "
        f"{study.heads} they begin tied, and many come at other times",
        f"{study.scale}: {study.layers} layers, d = {study.dim}, {study.tokens} tokens, {study.samples} "
        f"samples, "
        f"GELU layers of width {study.hidden} not trained; {study.teachers} teachers; α = "
        f"$10^{{-{study.power:g}}}$",
    )
    return fig
