"""Adapters drawn: what each rank leaves of the loss, and the rank that suffices against the one reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.papers.rank.studies import _captions
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.rank.studies.lora import Adapters

__all__ = ["adapters"]

MARKS = ("o", "s", "^", "D", "v")


def adapters(study: Adapters, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """A panel for each task, then all settings together."""
    from saltus.papers.rank.studies.lora import _spearman

    names = [str(t) for t in record.task.values]
    fig, axes = figure.sheet(1, len(names) + 1, width=2.8, height=2.8)
    at = np.arange(record.sizes["rank"])
    words = ["none", *[f"{r}" for r in study.ranks], "free"]
    for ax, name in zip(axes[0], names, strict=False):
        for k, scale in enumerate(record.scale.values):
            loss = record.loss.sel(task=name, scale=scale).transpose("seed", "rank").values
            ax.plot(at, loss.T, color=figure.COLOURS[k], marker="o", markersize=3, linewidth=1.0)
            ax.plot([], [], color=figure.COLOURS[k], label=f"scale {scale:g}")
        ax.set(xticks=at, xlabel="rank of the adapters", yscale="log", title=f"{name}")
        ax.set_xticklabels(words)
    axes[0, 0].set_ylabel("training loss at the end")
    axes[0, 0].legend(loc="best", fontsize=7)
    last, needed = axes[0, -1], study.suffices(record)
    for t, name in enumerate(names):
        for k in range(record.sizes["scale"]):
            last.plot(
                law.reached.values[t, k], needed[t, k], MARKS[t % len(MARKS)], color=figure.COLOURS[k],
                markersize=5, label=name if not k else "_", linestyle="none",
            )  # fmt: skip
    span = [0.7, 1.2 * max(float(law.reached.max()), float(needed.max()))]
    figure.theory(last, span, span, label="equal")
    last.fill_between(
        span, np.divide(span, 2), np.multiply(span, 2), color=figure.MUTED, alpha=0.12, linewidth=0
    )
    last.set(
        xscale="log", yscale="log", xlabel="rank that free training reached", ylabel="rank that suffices"
    )
    last.legend(loc="best", fontsize=7)
    rho = _spearman(study.by_setting(record, law))
    _captions.finding(
        fig, f"Rank reached against rank that suffices: correlation of ranks {rho:+.2f}", study.note()
    )  # fmt: skip
    return fig
