"""The lemmas, drawn: who breaks which, and one start on which two break."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.core import stats
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

LN10 = float.fromhex("0x1.26bb1bbb55516p+1")
SHORT = {"recursion": "recursion on W", "gd": "GD on U"}


def sheet(study: Any, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """Three panels: shares violating, w_11 against D.3's bound, w_11 for ever after."""
    fig, axes = figure.sheet(1, 3, width=4.3, height=4.2, width_ratios=(1.45, 1, 1))
    _matrix(axes[0, 0], law)
    _against_bound(axes[0, 1], record, law)
    _afterwards(axes[0, 2], record, law)
    broken = law.violated.any(("signals", "start"))
    words = [f"{SHORT[d]} breaks {int(broken.sel(dynamics=d).values[:-1].sum())}"
             for d in SHORT]  # fmt: skip
    n = record.sizes["start"] * record.sizes["signals"]
    d3 = stats.share(law.violated.sel(dynamics="gd", bound="D.3").values)
    figure.finding(
        fig,
        f"Of {law.sizes['bound'] - 1} bounds, from starts inside the assumptions, {' and '.join(words)}; "
        f"D.3 fails even for GD from {d3.value:.0%} of {n} starts",
        f"{study.starts} admissible starts of each a, β = {study.beta:g}, κ = {study.kappa:g}, "
        f"{study.slack:g} decades below the largest ω, the largest step D.2 allows, "
        f"{int(record.steps.min())} to {int(record.steps.max())} steps",
    )
    return fig


def _matrix(ax: Any, law: xarray.Dataset) -> None:
    columns = [(d, s) for d in SHORT for s in law.signals.values]
    shares = np.stack([law.share.sel(dynamics=d, signals=s).values for d, s in columns], axis=1)
    order = np.argsort([0 if b.startswith("Cor D.1") else 1 for b in law.bound.values], kind="stable")
    ax.imshow(shares[order], cmap="Reds", vmin=0, vmax=1.25, aspect="auto")
    for row, k in enumerate(order):
        for column in range(len(columns)):
            v = shares[k, column]
            ax.text(column, row, f"{v:.0%}" if v > 0 else "0", ha="center", va="center", fontsize=7.5,
                    color="white" if v > 0.55 else (figure.MUTED if v == 0 else "black"))  # fmt: skip
    ax.set_xticks(range(len(columns)), [s.replace(",", ", ") for _, s in columns], fontsize=7)
    ax.set_yticks(range(len(order)), law.bound.values[order])
    ax.axvline(law.sizes["signals"] - 0.5, color="black", linewidth=1)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.set_xlabel("signals a")
    top = ax.secondary_xaxis("top")
    half = law.sizes["signals"] / 2 - 0.5
    top.set_xticks([half, half + law.sizes["signals"]], list(SHORT.values()))
    top.tick_params(length=0)
    top.spines["top"].set_visible(False)
    ax.set_title("Share of starts violating", pad=22)


def _against_bound(ax: Any, record: xarray.Dataset, law: xarray.Dataset) -> None:
    """Decades above lemma D.3's lower bound, which is the line at zero."""
    t, bound = record.look_step.values / 1000, law.d3.values
    saturated, low, high = _saturation(record) / 1000, 0.0, 0.5
    for d, colour in zip(SHORT, (figure.COLOURS[1], figure.COLOURS[0]), strict=True):
        w = record.path.sel(dynamics=d).values
        with np.errstate(divide="ignore", invalid="ignore"):
            above = (np.where(w > 0, np.log(w), np.nan) - bound) / LN10
        # Both are the same line until one ends.
        ax.plot(t, above, color=colour, label=SHORT[d], linewidth=3.5 if d == "recursion" else 1.4)
        shown = above[(t <= 3 * saturated) & np.isfinite(above)]
        low, high = min(low, *shown), max(high, *shown)
        if (w <= 0).any() and np.isfinite(above).any():
            k = int(np.flatnonzero(w <= 0)[0]) - 1
            near = dict(textcoords="offset points", xytext=(12, -28), fontsize=8, color=colour)
            ax.annotate("$w_{11} < 0$", (t[k], above[k]), **near)
            ax.plot(t[k], above[k], "v", color=colour, markersize=6)
    figure.theory(ax, [0, 3 * saturated], [0, 0], label="lower bound of D.3")
    ax.set_xlim(0, min(3 * saturated, float(law.d3_until) / 1000))
    low, high = 1.1 * low, 1.6 * high
    ax.axhspan(low, 0, color=figure.COLOURS[1], alpha=0.08, linewidth=0)
    ax.set(ylim=(low, high), xlabel="steps / 1000", ylabel="log₁₀ of $w_{11}$ over the bound")
    ax.set_title(f"The weak diagonal, a = {record.signals.values[int(record.shown_signals)]}")
    ax.legend(loc="upper right")


def _saturation(record: xarray.Dataset) -> float:
    one = record.isel(signals=int(record.shown_signals))
    d = int(np.isfinite(one.a.values).sum())
    w = float(one.W0[int(record.shown_start), d - 1, d - 1])
    return float(-np.log(w) / (2.0 * float(one.a[d - 1]) * float(one.eta)))


def _afterwards(ax: Any, record: xarray.Dataset, law: xarray.Dataset) -> None:
    """The same to the end, its size in decades up and down."""
    t = record.look_step.values / 1000
    floor = float(np.nanmin(np.abs(record.path.values[record.path.values != 0])))
    for d, colour in zip(SHORT, (figure.COLOURS[1], figure.COLOURS[0]), strict=True):
        w = record.path.sel(dynamics=d).values
        ax.plot(t, np.sign(w) * np.log10(np.abs(w) / floor), color=colour, label=SHORT[d])
    ax.axhline(0, color=figure.MUTED, linewidth=0.8)
    top = -np.log10(floor)
    ax.set_yticks([-top, 0, top], ["-1", f"±$10^{{{-top:.0f}}}$", "1"])
    ax.set(xlabel="steps / 1000", ylabel="$w_{11}$, in decades either side of 0")
    ax.set_title("The same start to the end")
    ax.legend(loc="upper left")
