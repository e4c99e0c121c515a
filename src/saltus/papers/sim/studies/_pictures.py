"""The figures of the order of learning, drawn from their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import stats
from saltus.papers.sim.studies import _checks, _drawing, _trends
from saltus.papers.sim.studies._common import case_name, learnt
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.sim.studies.layers import TwoLayerPaths
    from saltus.papers.sim.studies.one_layer import OneLayerTheory
    from saltus.papers.sim.studies.order import DiverseFirst, StrongerFirst

__all__ = ["layers", "signals", "spreads", "theorem"]


def _each(record: xarray.Dataset, law: xarray.Dataset, names: list[str]) -> tuple[list[Any], list[Any]]:
    g = learnt(record)
    return (
        [g.sel(setting=n).values for n in names],
        [law.g_median.sel(setting=n).values for n in names],
    )


def time_panel(ax: Any, record: xarray.Dataset, law: xarray.Dataset, name: str, title: str) -> None:
    """1 - g against steps on a logarithmic axis: straight lines are exponential."""
    steps = record.step.values
    away = np.abs(1 - law.g_median.sel(setting=name).values).max(-1) > 0.02
    end = 1.25 * steps[away][-1] if away.any() else steps[-1]
    shown = steps <= end
    g = learnt(record).sel(setting=name).values
    for axis in range(2):
        rest = np.abs(1 - g[:, shown, axis])
        figure.band(ax, steps[shown], rest, label=f"concept {axis + 1}", colour=figure.COLOURS[axis])
        said = 1 - law.g_median.sel(setting=name).values[shown, axis]
        figure.theory(ax, steps[shown], np.abs(said), label="law" if axis else "_")
    ax.set_yscale("log")
    ax.set(xlabel="step", ylabel="still to learn, $|1 - g_k|$", title=title, ylim=(8e-3, 1.6))
    ax.legend(loc="upper right")


def bulge_panel(ax: Any, x: Any, seen: Any, said: Any, xlabel: str) -> None:
    """Mean bulge with its 95% interval against a setting, the law dashed; seen, said [setting, seed]."""
    each = [stats.mean(v) for v in seen]
    mid = np.asarray([e.value for e in each])
    reach = np.asarray([[e.value - e.low, e.high - e.value] for e in each]).T
    ax.errorbar(x, mid, yerr=np.where(np.isfinite(reach), reach, 0), fmt="o", markersize=4, capsize=2,
                color=figure.COLOURS[0], label="runs, mean and 95%")  # fmt: skip
    figure.theory(ax, x, said.mean(axis=1), label="law, same starts")
    ax.axhline(0, color=figure.MUTED, linewidth=0.8)
    ax.set(xlabel=xlabel, ylabel="bulge: extreme of $g_2 - g_1$")


def signals(study: StrongerFirst, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Fig. 2(a): paths for several signals, and the end of the first."""
    names = [case_name(c) for c in study.cases()]
    paths, laws = _each(record, law, names)
    labels = [f"μ = ({c[0][0]:g}, {c[0][1]:g})" for c in study.cases()]
    fig, axes = figure.sheet(1, 2, width=3.7, height=3.5)
    _drawing.plane(axes[0, 0], paths, labels, laws, record.step.values, law_name="law")
    _drawing.corner_axes(axes[0, 0])
    axes[0, 0].legend(loc="lower right", fontsize=7)
    axes[0, 0].set_title("median path, arrows at equal times")
    uneven = next(i for i, c in enumerate(study.cases()) if c[0][0] != c[0][1])
    time_panel(axes[0, 1], record, law, names[uneven], f"the end is exponential, {labels[uneven]}")
    lead = [_trends.bulge(p) for p in paths]
    way = [np.sign(c[0][1] - c[0][0]) for c in study.cases()]
    right = np.mean([np.sign(b) == w for b, w in zip(lead, way, strict=True) if w])
    figure.finding(
        fig, f"The stronger concept leads in {right:.0%} of the runs with unequal signals", study.note(record)
    )
    return fig


def spreads(study: DiverseFirst, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Fig. 2(b): paths for several spreads, the crossing of the lead, and the end of the first path."""
    names = [case_name(c) for c in study.cases()]
    paths, laws = _each(record, law, names)
    unit = "variance" if study.drawn else "σ"
    labels = [f"$σ_1$ = {x:g}" for x in study.sigma_1]
    fig, axes = figure.sheet(1, 3, width=3.5, height=3.5)
    _drawing.plane(axes[0, 0], paths, labels, laws, record.step.values, law_name="law")
    _drawing.corner_axes(axes[0, 0])
    axes[0, 0].legend(loc="lower right", fontsize=7)
    axes[0, 0].set_title("median path, arrows at equal times")
    every = sorted(study.cases() + study.finer(), key=lambda c: c[1][0])
    g = learnt(record)
    bulge_panel(
        axes[0, 1],
        [c[1][0] for c in every],
        study.bulges(g, every),
        study.bulges(law.g, every),
        f"spread of concept 1 ({unit})",
    )
    spreads = np.asarray([c[1][0] for c in study.finer()])
    found = _trends.crossing(spreads, study.without_start(g, law))
    axes[0, 1].axvline(study.predicted(), color=figure.COLOURS[1], linewidth=1, label="$a_1 = a_2$")
    axes[0, 1].axvline(
        study.predicted(True),
        color=figure.MUTED,
        linewidth=1,
        linestyle=":",
        label="by $(σ^2 + μ^2)/s$",
    )
    axes[0, 1].legend(loc="upper right", fontsize=7, frameon=True, edgecolor="none", framealpha=0.9)
    axes[0, 1].set_title("where the lead changes hands")
    time_panel(axes[0, 2], record, law, names[0], f"the end is exponential, {labels[0]}")
    said = f"The lead changes hands at {unit} = {found.value:.3g}; $a_1 = a_2$ at {study.predicted():.3g}"
    if not np.isfinite(found.value):
        said = "The lead does not change hands within the sweep"
    figure.finding(fig, said, study.note(record))
    return fig


def layers(study: TwoLayerPaths, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Fig. 11 and 12: paths for several spreads and for several signals, and bulge against one layer's."""
    fig, axes = figure.sheet(1, 3, width=3.5, height=3.5)
    sides = (
        (study.left(), [f"$σ_1$ = {c[1][0]:g}" for c in study.left()], "varied spread"),
        (study.right(), [f"μ = ({c[0][0]:g}, {c[0][1]:g})" for c in study.right()], "varied signals"),
    )
    g = learnt(record)
    for ax, (cases, labels, title) in zip(axes[0], sides, strict=False):
        names = [case_name(c) for c in cases]
        paths, laws = _each(record, law, names)
        _drawing.plane(ax, paths, labels, laws, record.step.values, law_name="one layer")
        _drawing.corner_axes(ax)
        ax.legend(loc="lower right", fontsize=7)
        ax.set_title(title)
    last = axes[0, 2]
    seen = np.stack([_trends.bulge(g.sel(setting=n).values) for n in record.setting.values])
    said = _trends.bulge(law.g_median.values)
    low, mid, high = np.nanquantile(seen, [0.1, 0.5, 0.9], axis=1)
    last.errorbar(said, mid, yerr=[mid - low, high - mid], fmt="o", capsize=2, color=figure.COLOURS[0],
                  label="median and 80% of the runs")  # fmt: skip
    reach = [min(said.min(), low.min()), max(said.max(), high.max())]
    figure.theory(last, reach, reach, label="as far as one layer")
    last.set(xlabel="bulge of one layer, by theory", ylabel="bulge of the runs", title="every setting")
    last.legend(loc="upper left", fontsize=7)
    way = [np.sign(c[0][1] - c[0][0]) for c in study.right()]
    lead = [_trends.bulge(g.sel(setting=case_name(c)).values) for c in study.right()]
    right = np.mean([np.sign(b) == w for b, w in zip(lead, way, strict=True) if w])
    one = int(np.argmax(np.abs(said)))
    finding = f"The stronger concept leads in {right:.0%} of the runs"
    finding += f"; widest bulge {mid[one]:.2f}, one layer's {said[one]:.2f}"
    figure.finding(fig, finding, study.note(record))
    return fig


def theorem(study: OneLayerTheory, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Theorem 4.1: single runs with their own law, all runs with the median law, and full-batch descent."""
    fig, axes = figure.sheet(1, 3, width=3.5, height=3.2)
    case = study.trained()[0]
    name, steps = case_name(case), record.step.values
    away = np.abs(1 - law.g_median.sel(setting=name).values).max(-1) > 0.02
    shown = steps <= (1.25 * steps[away][-1] if away.any() else steps[-1])
    ax = axes[0, 0]
    chosen = range(min(3, record.sizes["seed"]))
    for i in chosen:
        runs = learnt(record).sel(setting=name).isel(seed=i).values[shown]
        own = law.g.sel(setting=name).isel(seed=i).values[shown]
        for axis in range(2):
            colour, label = figure.COLOURS[axis], f"concept {axis + 1}" if i == 0 else "_"
            ax.plot(steps[shown], runs[:, axis], color=colour, linewidth=1.2, label=label)
            last = i == len(chosen) - 1 and axis
            figure.theory(ax, steps[shown], own[:, axis], label="law, own start" if last else "_")
    ax.set(
        xlabel="step",
        ylabel="learnt, $g_k$",
        title=f"{len(chosen)} runs, μ = ({case[0][0]:g}, {case[0][1]:g})",
    )
    ax.legend(loc="lower right", fontsize=7)
    time_panel(axes[0, 1], record, law, name, "all runs")
    eta = record.eta.values
    last = axes[0, 2]
    for label, key, marker in (
        ("flow, exp(−at)", "flow_output", "o"),
        ("descent, (1−ηa)ⁿ", "gd_output", "s"),
    ):
        gap = abs(record.gd_output - law[key]).max(("case", "coordinate")).values
        last.loglog(eta, np.maximum(gap, 1e-17), marker=marker, label=label)
    last.set(xlabel="step size η", ylabel="largest gap to the closed form", title="full-batch descent")
    last.set_ylim(1e-17, 10)
    last.legend(loc="center right", fontsize=7)
    far = float(np.nanmedian(_checks.distances(record, learnt(record), law, "g")))
    figure.finding(
        fig, f"Networks follow the one-layer law from their own start to {far:.2%}", study.note(record)
    )
    return fig
