"""Figures 5, 8 and 9 drawn: loss and Jacobian with their stages, the path of the output, the census."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.papers.sim.studies import _census, _stages
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.sim.law.stages import Stage
    from saltus.papers.sim.studies._symmetric import Symmetric
    from saltus.papers.sim.studies.descents import Descents

__all__ = ["descents", "entry_colour", "name", "panels", "shade", "shown_until", "stage_colours"]

COUNT = {1: "#D9D9D9", 2: "#56B4E9", 3: "#0072B2", 4: "#003D66", 5: "#001A2E", 6: "#000000"}
GROWTH = ("#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#5E3C99", "#000000")
SUPPRESSION = ("#D55E00", "#E69F00", "#A6761D", "#8A8A8A")


def stage_colours(found: Sequence[Stage]) -> list[str]:
    """Cool for growth, warm for suppression."""
    tables = {"growth": GROWTH, "suppression": SUPPRESSION}
    return [tables[one.kind][(one.number - 1) % len(tables[one.kind])] for one in found]


def name(i: int, j: int) -> str:
    return f"$w_{{{i + 1}{j + 1}}}$"


def entry_colour(i: int, j: int, s: int) -> str:
    """Major entries by axis; minor ones in warm colours."""
    if i == j:
        return GROWTH[(s - 1 - i) % 6]
    # Neighbours first, from the strongest down: they are what is suppressed first, second, ...
    pairs = sorted(((p, q) for p in range(s) for q in range(p + 1, s)), key=lambda p: (p[1] - p[0], -p[1]))
    return (*SUPPRESSION, "#F0B27A", "#7F5539")[pairs.index((min(i, j), max(i, j))) % 6]


def shown_until(time: Any, loss: Any) -> float:
    """A little after the loss has come to rest."""
    rest = abs(loss - loss[-1]) > 2e-3 * loss[0]
    return float(min(time[rest][-1] * 1.15, time[-1])) if rest[1:].any() else float(time[-1])


def shade(ax: Any, found: Sequence[Stage], end: float = 1e300) -> None:
    """Stages as bands of colour behind the curves."""
    for one, colour in zip(found, stage_colours(found), strict=True):
        if one.start < end:
            ax.axvspan(one.start, min(one.end, end), color=colour, alpha=0.13, linewidth=0)


def panels(fig: Any, s: int, extra: str) -> dict[str, Any]:
    """Loss over entries on the left, the path in the middle, one more panel on the right."""
    axes: dict[str, Any] = fig.subplot_mosaic(
        [["loss", "plane", extra], ["entries", "plane", extra]],
        width_ratios=[1.35, 1.15, 0.8],
        height_ratios=[1, 1.25],
    )
    axes["loss"].sharex(axes["entries"])
    axes["loss"].tick_params(labelbottom=False)
    return axes


def curves(
    axes: dict[str, Any], study: Symmetric, record: xarray.Dataset, law: xarray.Dataset
) -> list[Stage]:
    """Loss at x̂, and the entries among the concepts, of the start shown."""
    time, loss, W = record.time.values, record.loss.values[0], record.W.values[0]
    found, end, s = _stages.stages_of(study, record, 0), shown_until(time, loss), study.s
    for ax in (axes["loss"], axes["entries"]):
        shade(ax, found, end=end)
    axes["loss"].plot(time, loss, color="black", linewidth=2)
    turns = [leg.start for leg in _stages.legs_of(study, record, 0, found, study.target())][1:]
    at = np.searchsorted(time, turns)
    axes["loss"].plot(time[at], loss[at], "o", color="black", markersize=4.5, markerfacecolor="white")
    axes["loss"].set(ylabel="loss at x̂", ylim=(0, (1.5 - 0.38 * study.logarithmic) * loss.max()))
    for i in range(s - 1, -1, -1):
        axes["entries"].plot(time, W[:, i, i], color=entry_colour(i, i, s), label=name(i, i), linewidth=1.9)
        said = "logistic law" if i == 0 else "_"
        figure.theory(axes["entries"], time, law.major.values[0, :, i], label=said, linewidth=0.9)
    for i in range(s):
        for j in range(i + 1, s):
            axes["entries"].plot(
                time, W[:, i, j], color=entry_colour(i, j, s), label=name(i, j), linewidth=1.5
            )
    first = max(time[1], min(0.3, end / 50))
    if study.logarithmic:
        axes["entries"].set_xscale("log")
    axes["entries"].set_xlim(first if study.logarithmic else 0, end)
    axes["entries"].set(
        ylabel="entries of the Jacobian", xlabel="time t", ylim=(min(-0.06, 1.05 * W[:, :s, :s].min()), 1.12)
    )
    axes["entries"].legend(loc="lower left", bbox_to_anchor=(-0.01, 0.98), ncols=6, fontsize=7.5,
                           handlelength=1.2, columnspacing=0.9, borderaxespad=0.1)  # fmt: skip
    if not study.logarithmic:
        label_stages(axes["loss"], found, end)
    return found


def label_stages(ax: Any, found: Sequence[Stage], end: float) -> None:
    """What each stage is, along the top of a panel with a linear time axis."""
    for one, colour in zip(found, stage_colours(found), strict=True):
        last = min(one.end, end)
        if last - one.start > 0.13 * end:
            words = f"{one.kind}\nof {name(*one.driver)}"
            ax.text((one.start + last) / 2, 0.97, words, color=colour, fontsize=7.5, fontweight="bold",
                    ha="center", va="top", transform=ax.get_xaxis_transform())  # fmt: skip


def plane(
    ax: Any, study: Symmetric, record: xarray.Dataset, found: Sequence[Stage], pair: tuple[int, int]
) -> None:
    """The output at x̂ in the plane of two concepts, coloured by stage, with arrows at equal times."""
    mu = study.target()
    time, output = record.time.values, record.W.values[0] @ mu
    i, j = pair
    path = output[:, [i, j]]
    for one, colour in zip(found, stage_colours(found), strict=True):
        inner = (time >= one.start) & (time <= one.end)
        entry = name(*one.driver)
        ax.plot(
            *path[inner].T, color=colour, linewidth=2.8, solid_capstyle="round", label=f"{one.name}, {entry}"
        )
        marks = np.flatnonzero(inner)
        length = np.r_[0.0, np.cumsum(np.hypot(*np.diff(path[inner], axis=0).T))]
        if len(marks) > 3 and length[-1] > 0.1 * mu[[i, j]].max():
            k = marks[int(np.searchsorted(length, length[-1] / 2))]
            step = path[min(k + 1, len(path) - 1)] - path[k - 1]
            head = dict(arrowstyle="-|>", color=colour, mutation_scale=15, linewidth=0)
            ax.annotate("", xy=path[k] + 1e-2 * step / np.hypot(*step), xytext=path[k], arrowprops=head)
    ax.plot(*path[0], "o", color="black", markersize=4)
    from matplotlib import patheffects

    around = [patheffects.withStroke(linewidth=2.5, foreground="white")]  # paths may pass behind the words
    for point, words, shift in (
        ((mu[i], mu[j]), "x̂", (6, 4)),
        ((0, mu[j]), f"centre {j + 1}", (-4, -15)),
        ((mu[i], 0), f"centre {i + 1}", (-14, 9)),
    ):
        marker = "*" if words == "x̂" else "o"
        ax.plot(*point, marker, color="black", markersize=11 if marker == "*" else 9,
                markerfacecolor="black" if marker == "*" else "none", zorder=5)  # fmt: skip
        ax.annotate(
            words, point, textcoords="offset points", xytext=shift, fontsize=8, path_effects=around, zorder=6
        )
    ax.set(xlabel=f"output along concept {i + 1}", ylabel=f"output along concept {j + 1}", aspect="equal")
    ax.set_xlim(-0.08 * mu[i], 1.25 * mu[i])
    ax.set_ylim(-0.08 * mu[j], 1.16 * mu[j])


def bars(ax: Any, study: Descents, record: xarray.Dataset) -> None:
    """Shares of starts by number of descents, the number of concepts at the right end with its interval."""
    seen = _census.chosen(study, record)
    rows = [(f"θ = {float(t):.1%}", seen.descents.sel(theta=t).values) for t in record.theta]
    for control, words in (("both signs", "both signs"), ("diagonal", "diagonal")):
        some = record.control_descents.sel(control=control, theta=study.theta).values
        rows.append((f"{words},\nθ = {study.theta:.1%}", some))
    most = max(study.s, *(int(v.max()) for _, v in rows))
    for y, (_, values) in enumerate(rows):
        left = 0.0
        for count in range(1, most + 1):
            width = float((values == count).mean())
            ax.barh(y, width, left=left, color=COUNT[min(count, 6)], height=0.72)
            if width > 0.12:
                dark = "white" if count > 2 else "black"
                ax.text(left + width / 2, y, f"{width:.0%}", ha="center", va="center", fontsize=7, color=dark)
            left += width
        at = _census.shares(values, study.s)
        ax.errorbar(1 - at.value, y, xerr=[[max(0.0, at.high - at.value)], [max(0.0, at.value - at.low)]],
                    color="black", capsize=2, linewidth=1)  # fmt: skip
    ax.set_yticks(range(len(rows)), [w for w, _ in rows])
    ax.set(xlim=(0, 1), ylim=(len(rows) - 0.45, -0.95), xlabel="share of starts")
    ax.grid(False)
    for count in range(1, most + 1):
        ax.barh(0, 0, color=COUNT[min(count, 6)], label=str(count))
    ax.legend(loc="upper center", ncols=most, fontsize=7, handlelength=0.9, columnspacing=0.8,
              handletextpad=0.3, title="descents", title_fontsize=7, bbox_to_anchor=(0.5, 1.02))  # fmt: skip


def descents(study: Descents, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """The whole figure."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(11.2, 4.9), layout="constrained")
    axes = panels(fig, study.s, "census")
    found = curves(axes, study, record, law)
    plane(axes["plane"], study, record, found, (0, 1))
    if axes["plane"].get_legend_handles_labels()[0]:  # a start that never moves has no stages
        axes["plane"].legend(loc="center left", bbox_to_anchor=(0.44, 0.42), fontsize=7.5, handlelength=1.1)
    axes["plane"].set_title("output at x̂, coloured by stage")
    axes["loss"].set_title("one start: loss, entries and stages")
    bars(axes["census"], study, record)
    axes["census"].set_title(f"{record.sizes['start']} starts")
    title(fig, study, record)
    return fig


def title(fig: Figure, study: Descents, record: xarray.Dataset) -> None:
    from saltus.papers.sim.studies.descents import TIMES

    at = _census.shares(_census.chosen(study, record).descents.sel(theta=study.theta), study.s)
    lined = _stages.line_up(study, record)
    said = f"The test loss falls {TIMES[study.s]} in {at.value:.1%} of the starts"
    if at.value > 0:
        said += f"; in {lined.inside.mean():.0%} of those it rises while minor entries are suppressed"
    lost = record.negative_at.sel(how="recursion")
    share = float(np.isfinite(lost).mean())
    gone = float(np.isfinite(record.diverged_at.sel(how="recursion")).mean())
    note = f"{study.note()}\n{_census.which(study, record)}; circles: turns of the loss.\n"
    note += f"Recursion D.2 on W from the same starts (η = {study.eta:g}): {share:.1%} get a negative "
    note += (
        f"diagonal entry, {gone:.1%} have diverged by t = {study.horizon:g}; under the flow of U none can."
    )
    figure.finding(fig, said, note)
