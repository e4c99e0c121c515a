"""How the swing-by figures are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import stats
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


def plane_of_outputs(ax: Any, mu: Any, *, names: bool = True) -> None:
    """Centres, x̂ and limits of the plane in which the output at x̂ moves."""
    mu = np.asarray(mu, float)
    ax.plot([mu[0], 0], [0, mu[1]], "o", color=figure.MUTED, markersize=5, markerfacecolor="white", zorder=4,
            label="centres" if names else "_")  # fmt: skip
    ax.plot(*mu, marker="*", color="black", markersize=10, zorder=5)
    if names:
        ax.annotate("x̂", mu, textcoords="offset points", xytext=(5, 4), fontsize=8)
    ax.set(xlabel="output along concept 1", ylabel="output along concept 2")
    ax.set_xlim(-0.25 * mu[0], 1.25 * mu[0])
    ax.set_ylim(-0.15 * mu[1], 1.3 * mu[1])


def paths(ax: Any, output: Any, turned: Any, colour: str, *, shown: int = 16) -> None:
    """The first runs thin, those that turn back darker, and the median path thick with arrows.

    **Arguments:** `output[seed, step, 2]`, `turned[seed]`.
    """
    output, turned = np.asarray(output, float), np.asarray(turned, bool)
    named: set[bool] = set()
    for run, back in zip(output[:shown], turned[:shown], strict=True):
        back = bool(back)
        label = "" if back in named else "turns back" if back else "does not turn back"
        named.add(back)
        style = dict(color="black", alpha=0.75) if back else dict(color=colour, alpha=0.4)
        ax.plot(run[:, 0], run[:, 1], linewidth=0.7, label=label, **style)
    middle = np.nanmedian(output, axis=0)
    far = np.linalg.norm(middle - middle[-1], axis=1)
    end = max(int(np.argmax(far < 0.02 * far[0])) or len(far) - 1, 4)
    marks = [int(m) for m in np.linspace(1, end, 10)]
    figure.path(ax, middle, colour=colour, label="median of all", marks=marks, linewidth=2.2)


def draw_paths(study: Any, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    low, high = study.low(record), study.high(record)
    fig, axes = figure.sheet(1, 3, width=3.1, height=3.1)
    for ax, data, colour, d, w in (
        (axes[0, 0], low, figure.COLOURS[1], study.dims[0], study.narrow),
        (axes[0, 1], high, figure.COLOURS[0], study.dims[-1], study.widths[-1]),
    ):
        plane_of_outputs(ax, study.mu)
        paths(ax, data.output.values, data.s_rev.sel(theta_rev=study.theta).values, colour)
        figure.theory(ax, law.output.values[:, 0], law.output.values[:, 1], label="one layer, theory")
        ax.set_title(f"d = {d}, width {w}")
        ax.legend(loc="upper left", bbox_to_anchor=(-0.12, -0.2), ncols=2, columnspacing=1.2)
    ax = axes[0, 2]
    for number, d in enumerate(study.dims):
        runs = record.s_rev.sel(dim=d, theta_rev=study.theta)
        found = [stats.share(runs.sel(width=w).values) for w in study.widths]
        middle = np.array([e.value for e in found])
        spread = [middle - [e.low for e in found], np.array([e.high for e in found]) - middle]
        ax.errorbar(
            study.widths, middle, spread, marker="o", capsize=3, label=f"d = {d}", color=_colour(number)
        )
    one = stats.share(record.one_layer_s_rev.sel(theta_rev=study.theta).values)
    ax.axhline(one.value, color=figure.MUTED, linestyle=":", label="one layer")
    ax.set_xscale("log", base=2)
    ax.set_xticks(study.widths, [str(w) for w in study.widths])
    ax.set(xlabel="hidden width", ylabel="share of runs", ylim=(-0.03, 1.03))
    ax.set_title(f"how many turn back by {study.theta:.0%}")
    ax.legend(loc="upper left", bbox_to_anchor=(-0.12, -0.2), ncols=2, columnspacing=1.2)
    near = stats.share(low.s_rev.sel(theta_rev=study.theta).values)
    far = stats.share(high.s_rev.sel(theta_rev=study.theta).values)
    figure.finding(
        fig,
        f"Swing-by: {near.value:.0%} of narrow runs turn back, {far.value:.0%} of wide ones, no single layer"
        if one.value == 0
        else f"Swing-by: {near.value:.0%} of narrow runs turn back, {far.value:.0%} of wide ones, "
        f"{one.value:.0%} with one layer",
        study.note(record),
    )
    return fig


def _colour(number: int) -> str:
    return (figure.COLOURS[1], figure.COLOURS[0], *figure.COLOURS[2:])[number % 7]


def draw_losses(study: Any, record: xarray.Dataset) -> Figure:
    fig, axes = figure.sheet(1, 3, width=3.7, height=3.1, width_ratios=(1, 1, 0.85))
    panels = (
        (axes[0, 0], study.low(record), figure.COLOURS[1], study.dims[0], study.narrow),
        (axes[0, 1], study.high(record), figure.COLOURS[0], study.dims[-1], study.widths[-1]),
    )
    for ax, data, colour, d, w in panels:
        relative = (data.loss / data.loss.isel(step=0)).values
        steps = np.maximum(record.step.values, 0.7)
        figure.band(ax, steps, relative, label="median and 80% of runs", colour=colour)
        turned = np.flatnonzero(data.s_loss.sel(theta_loss=study.theta).values)
        for n, run in enumerate(relative[turned[:4]]):
            ax.plot(steps, run, color="black", linewidth=0.6, label="runs that turn" if n == 0 else "")
        share = stats.share(data.s_loss.sel(theta_loss=study.theta).values)
        bumps = stats.share(data.shoulder.values)
        ax.set_title(
            f"d = {d}, width {w}: {share.value:.0%} turn, {bumps.value:.0%} have a shoulder", fontsize=8
        )
        ax.set_xscale("log")
        ax.set(xlabel="training step", xlim=(0.7, _end(data, steps)), ylim=(-0.03, 1.35))
        ax.legend(loc="upper right")
    axes[0, 0].set(ylabel="loss at x̂ / its start")
    _turns(axes[0, 2], study, record)
    low, high = (stats.share(p[1].s_loss.sel(theta_loss=study.theta).values) for p in panels)
    seen = stats.share(study.low(record).s_loss_epochs.sel(theta_loss=study.theta).values)
    figure.finding(
        fig,
        f"The loss falls, rises and falls in {low.value:.0%} of narrow runs, {high.value:.0%} of wide ones",
        study.note(record) + f"; seen at epoch starts only: {seen.value:.0%}",
    )
    return fig


def _turns(ax: Any, study: Any, record: xarray.Dataset) -> None:
    """The share of double descents against the least turn that counts, on every step and at epoch starts."""
    low, high = study.low(record), study.high(record)
    narrow = f"d = {study.dims[0]}, width {study.narrow}"
    rows = (
        (low.s_loss, narrow, figure.COLOURS[1], "o"),
        (low.s_loss_epochs, "the same, at epoch starts", figure.COLOURS[1], "x"),
        (high.s_loss, f"d = {study.dims[-1]}, width {study.widths[-1]}", figure.COLOURS[0], "o"),
        (record.one_layer_s_loss, "one layer", figure.MUTED, "s"),
    )
    theta = record.theta_loss.values
    for number, (turns, label, colour, marker) in enumerate(rows):
        each = [stats.share(turns.sel(theta_loss=t).values) for t in theta]
        middle = np.array([e.value for e in each])
        reach = [middle - [e.low for e in each], np.array([e.high for e in each]) - middle]
        # Side by side: several of them are zero.
        ax.errorbar(theta * 1.12 ** (number - 1.5), middle, reach, color=colour, marker=marker, markersize=4,
                    capsize=2, linewidth=0.9, ls=":" if marker == "x" else "-", label=label)  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(theta, [f"{t:.1%}" for t in theta])
    ax.minorticks_off()
    ax.set(xlabel="least turn that counts, of L(0)", ylabel="share of runs", ylim=(-0.03, 1.35))
    ax.set_title("how many turn", fontsize=8)
    ax.legend(loc="upper right", fontsize=7)


def _end(data: xarray.Dataset, steps: Any) -> float:
    """Where nearly all runs are over."""
    done = data.learnt_at.values
    done = done[done >= 0]
    return float(min(steps[-1], 4 * np.quantile(done, 0.9))) if done.size else float(steps[-1])
