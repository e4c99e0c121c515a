"""The admissible region, drawn: where it lies, and how far from it the paper's figures are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import stats
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

FLOAT32_LEAST = math.log10(2.0**-149)


def sheet(study: Any, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Six panels: largest omega, random starts, the figures, cost of beta, cost of kappa, closest signals."""
    fig, axes = figure.sheet(2, 3, width=3.6, height=3.0)
    _region(axes[0, 0], record, law)
    _shares(axes[0, 1], record)
    _figures(axes[0, 2], record)
    _costs(axes[1, 0], axes[1, 1], record, law)
    _infimum(axes[1, 2], law)
    best, over = float(law.best.max()), float(record.omega_over.min())
    held = stats.share(record.admissible.values)
    figure.finding(
        fig,
        f"D.1-D.5 admit starts up to ω = $10^{{{best:.1f}}}$; the figures' are {over:.0f} decades larger, or "
        f"more ({held.value:.0%} of {held.n} admissible)",
        f"{study.reading}; ω = min|W(0)|, β = max|W(0)|/ω; signals 1, R, R², ...; "
        f"{study.seeds} starts W = UUᵀ, U ~ U(0, scale), of each setting; margins of {study.looked}",
    )
    return fig


def _region(ax: Any, record: xarray.Dataset, law: xarray.Dataset) -> None:
    for s, colour in zip(law.concepts.values, figure.COLOURS * 2, strict=False):
        ax.plot(record.searched_ratio, record.searched.sel(concepts=s), "o", color=colour, markersize=4.5,
                label=f"s = {s}")  # fmt: skip
        figure.theory(ax, law.ratio, law.curve.sel(concepts=s), label="_")
    ax.axhline(FLOAT32_LEAST, color=figure.MUTED, linewidth=0.9)
    ax.text(
        law.ratio[-1],
        FLOAT32_LEAST - 2,
        "smallest float32",
        ha="right",
        va="top",
        fontsize=7,
        color=figure.MUTED,
    )
    low, high = float(record.log10_omega.min()), float(record.log10_omega.max())
    ax.axhspan(low, high, color=figure.COLOURS[1], alpha=0.25, linewidth=0)
    ax.text(
        law.ratio[-1],
        low - 2,
        "starts of the figures",
        ha="right",
        va="top",
        fontsize=7,
        color=figure.COLOURS[1],
    )
    ax.plot([], [], color="black", linestyle=(0, (4, 2)), linewidth=1.1, label="closed form")
    ax.set(
        xscale="log",
        xlabel="ratio R of neighbouring signals",
        ylabel="log₁₀ of the largest ω",
        ylim=(-200, 4),
    )
    ax.set_xticks([3, 10, 100, 1000], ["3", "10", "100", "1000"])
    ax.set_title("Largest admissible start, by search")
    ax.legend(loc="lower left", fontsize=7, borderaxespad=0.2)


def _shares(ax: Any, record: xarray.Dataset) -> None:
    x = record.log10_scale.values
    for s, colour in zip(record.concepts.values, figure.COLOURS * 2, strict=False):
        found = [stats.share(v) for v in record.held.sel(concepts=s).values]
        ax.plot(x, [e.value for e in found], color=colour, label=f"s = {s}")
        ax.fill_between(
            x, [e.low for e in found], [e.high for e in found], color=colour, alpha=0.2, linewidth=0
        )
    ax.axvline(x[0], color=figure.COLOURS[1], linewidth=1)
    ax.text(
        x[0] - 1.5, 0.98, "figures", rotation=90, ha="right", va="top", fontsize=7, color=figure.COLOURS[1]
    )
    ax.set(xlabel="log₁₀ of the scale of U(0)", ylabel="share admissible", ylim=(-0.03, 1.03))
    ax.set_title("Random starts, best signals and step")
    ax.legend(loc="center", bbox_to_anchor=(0.83, 0.5), handlelength=1.2)


def _figures(ax: Any, record: xarray.Dataset) -> None:
    names = [str(n) for n in record.figure.values]
    y = np.arange(len(names))[::-1]
    middle = record.omega_over.median("look").values
    spread = np.abs(record.omega_over.quantile([0.1, 0.9], "look").values - middle)
    ax.barh(y, middle, xerr=spread, color=figure.COLOURS[0], height=0.62, error_kw={"linewidth": 0.8})
    fails = record.fails.mean("look").values
    for row, k in zip(y, range(len(names)), strict=True):
        a = record.a.values[k]
        a = a[np.isfinite(a)]
        ratio = float(np.min(a[1:] / a[:-1]))
        words = f"a ratio {ratio:.2f}" + (" < 3" if fails[k, 2] > 0 else "")
        if fails[k, 0] > 0:
            over = float(record.step_over.values[k, 0])
            words += f", step ×{10**over:.{int(over < 1)}f}"
        ax.text(1.5, row, words, va="center", ha="left", fontsize=6.8, color="white")
    ax.set_yticks(y, names)
    ax.grid(visible=False, axis="y")
    ax.set(xlabel="decades from ω to the largest for any signals")
    ax.set_title("The paper's own figures")


def _costs(left: Any, right: Any, record: xarray.Dataset, law: xarray.Dataset) -> None:
    for ax, name in ((left, "beta"), (right, "kappa")):
        for s, colour in zip(law.concepts.values, figure.COLOURS * 2, strict=False):
            lost = law.best.sel(concepts=s) - law[f"by_{name}"].sel(concepts=s)
            ax.plot(law[name], lost, color=colour, label=f"s = {s}")
        ax.plot(
            record[f"searched_{name}"], record.best_searched - record[f"{name}_searched"], "o", color="black",
            markersize=4, label=f"search, s = {int(law.concepts[0])}",
        )  # fmt: skip
        ax.legend(loc="upper left")
    left.set(xscale="log", xlabel="unevenness β of the start", ylabel="decades of ω lost")
    left.set_title("What uneven entries cost")
    right.set(xlabel="κ", ylabel="decades of ω lost")
    right.set_title("What a larger κ costs")


def _infimum(ax: Any, law: xarray.Dataset) -> None:
    x = -law.log10_omega_asked
    ax.plot(x, law.infimum - 3, color=figure.COLOURS[0], label="α free")
    ax.plot(x, law.infimum_alpha_min - 3, color=figure.COLOURS[1], label="α = min a")
    ax.set(yscale="log", xlabel="-log₁₀ ω", ylabel="smallest ratio of signals, less 3")
    ax.set_title("Signals may be as close as 3, not reached")
    ax.legend(loc="upper right")
