"""The map of failures drawn, with the contours of the law; the plateau's end and its tail; depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import stats
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.sim.studies.failures import Failures

CONTOURS = (0.1, 0.5, 0.9)


def panel(ax: Any, study: Failures, record: xarray.Dataset, law: xarray.Dataset, width: int) -> Any:
    """Measured probability at `time` over ratio and size, the law's contours dashed."""
    at = dict(width=width, time=study.time)
    seen = (record.late / record.runs).sel(at).transpose("size", "ratio").values
    ratio, size = record.ratio.values, record["size"].values
    shown = ax.pcolormesh(ratio, size, seen, shading="nearest", cmap="cividis", vmin=0, vmax=1)
    said = law.late.sel(at).transpose("size", "ratio").values
    if said.min() < 0.1 and said.max() > 0.1:
        ax.contour(ratio, size, said, levels=list(CONTOURS), colors="white", linestyles="dashed",
                   linewidths=1.1)  # fmt: skip
    kind = "a trap" if width < 3 else "a plateau"
    ax.set(yscale="log", xlabel="ratio of neighbouring signals", title=f"d' = {width}: {kind}")
    ax.grid(False)
    return shown


def ends(ax: Any, study: Failures, record: xarray.Dataset) -> None:
    """The end of the plateau in each run against the law from its own start."""
    wide = [w for w in study.widths if w >= 3]
    top = 0.0
    for number, width in enumerate(wide):
        said = record.predicted.sel(width=width, by="schur").values
        seen = record.long_time.sel(width=width).values
        top = max(top, float(said[np.isfinite(said)].max(initial=0.0)))
        ax.plot(
            said,
            seen,
            ".",
            markersize=2,
            color=figure.COLOURS[number],
            label=f"d' = {width}",
            rasterized=True,
        )
    figure.theory(ax, [0, top], [0, top], label="law")
    ax.set(
        xlabel="$\\ln(1/σ_1) / 2a_1$", ylabel="time the last concept is learnt", title="end of the plateau"
    )
    ax.legend(loc="upper left", markerscale=3)


def depth(ax: Any, study: Failures, record: xarray.Dataset) -> None:
    """Plain linear networks: the share that has not learnt by the horizon, over the size of the start."""
    for number, n in enumerate(study.depths):
        each = [stats.share_of(int(c), study.deep_runs) for c in record.deep_late.sel(depth=n).values]
        x, colour = record.deep_size.values, figure.COLOURS[number]
        ax.plot(x, [e.value for e in each], marker="o", markersize=3, color=colour, label=f"{n} layers")
        ax.fill_between(
            x, [e.low for e in each], [e.high for e in each], color=colour, alpha=0.15, linewidth=0
        )
    ax.set(xscale="log", xlabel="size of every layer's start", title="plain linear networks, no law")
    ax.set(ylabel=f"share not learnt by t = {study.deep_horizon:g}", ylim=(-0.03, 1.03))
    ax.set_xticks(record.deep_size.values, [f"{x:g}" for x in record.deep_size.values])
    ax.minorticks_off()
    ax.legend(loc="best")


def failures(study: Failures, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    widths = sorted({max(w for w in study.widths if w < 3), *[w for w in study.widths if w >= 3][:3]})
    fig, axes = figure.sheet(2, 3, width=3.7, height=2.9)
    panels = list(axes.flat)
    shown = None
    for ax, width in zip(panels, widths, strict=False):
        shown = panel(ax, study, record, law, width)
        ax.set_ylabel("size of the start")
    assert shown is not None
    fig.colorbar(shown, ax=axes[0, 2], label=f"P(not learnt by t = {study.time:g})")
    for ax in panels[len(widths) : 4]:
        ax.set_axis_off()
    ends(panels[4], study, record)
    depth(panels[5], study, record)
    gaps = abs(study.gaps(record, law))
    near = f"; the law of the plateau is {gaps.mean():.3f} off" if gaps.size else ""
    thin = widths[0]
    caught = int(record.long_never.sel(width=thin)) / study.followed_runs(thin)
    slow = int(record.long_never.sel(width=3)) / study.followed_runs(3)
    figure.finding(
        fig,
        f"By t = {study.long:g}, {caught:.0%} of the networks with {thin} columns and {slow:.0%} of those "
        f"with 3 miss a concept{near}",
        f"{study.reading} (A{'²' if study.power == 2 else ''}): {record.trainings:.2g} "
        f"trainings, {study.runs} a cell; strongest signal {study.strongest:g}; {study.start} starts; "
        f"dashed: 10, 50, 90% by the law\nbottom: mu = {', '.join(f'{m:g}' for m in study.mu)}; exact flow, "
        "worst error of W "
        f"{float(record.solver_error.sel(of='flow').max()):.1g}",
    )
    return fig
