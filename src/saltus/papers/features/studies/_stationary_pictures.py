"""Pictures of the stationary point: where its ratio is of the order of n SNR^2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.report.figure import COLOURS, MUTED, band, finding, sheet, theory

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.features.studies.stationary import Stationary


def stationary(study: Stationary, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    fig, axes = sheet(2, 2, width=3.8, height=3.0)
    (paper, unit), (power, cosine) = axes
    chi, x = record.chi.values, law.chi_law.values
    shown = (x >= 0.1) & (x <= 100)
    theory(paper, x[shown], law.line.values[shown], label="theory: stationary point")
    paper.plot(
        x[shown], x[shown] / 2, color=MUTED, linestyle=":", label="n SNR²/2: the early ratio, Θ(n SNR²)"
    )
    _dots(paper, chi, record.ratio.values, COLOURS[0], "trained")
    paper.set(xscale="log", yscale="log", xlabel="n SNR²", ylabel="signal / noise, mean products")
    paper.set_title(f"The paper's setting, m = {study.m}")
    paper.legend(fontsize=7)

    for n, m in enumerate(study.neurons):
        theory(unit, x, law.unit.sel(width=m).values, label="theory" if n == 0 else "_", linewidth=0.9)
        _dots(unit, record.chi_theory.values, record.theory_ratio.sel(m=m).values, COLOURS[n % 6], f"m = {m}")
    _dots(
        unit, record.chi_inside.values, record.inside_ratio.values, COLOURS[6], "inside Cond. 3.1, m = 1", "s"
    )
    unit.plot(x, x / 2, color=MUTED, linestyle=":")
    unit.set(xscale="log", yscale="log", xlabel="n SNR²", ylabel="signal / noise, mean products",
             ylim=(0.01, 3000), xlim=(5e-4, 1e4))  # fmt: skip
    unit.set_title("|mu| = 1: linear far above 1 only")
    unit.legend(fontsize=7, loc="upper left")

    for n, m in enumerate(law.width.values):
        power.plot(x, law.unit_power.sel(width=m), color=COLOURS[n % 6], label=f"m = {m}", linewidth=1.2)
    power.plot(x, law.line_power, color="black", linewidth=1.2, label="paper's setting")
    power.axhline(1, color=MUTED, linestyle=":", linewidth=0.9)
    power.set(xscale="log", xlabel="n SNR²", ylabel="power of n SNR² it goes with", ylim=(-0.15, 1.1))
    power.set_title("Θ(n SNR²) is power 1")
    power.legend(fontsize=7, loc="center right")

    for n, mu in enumerate((record.mu.values[0], record.mu.values[-1])):
        label = f"n SNR² = {float(record.chi.sel(mu=mu)):.3g}"
        band(
            cosine, record.step.values / 1000, record.cosine.sel(mu=mu).values, colour=COLOURS[n], label=label
        )
    cosine.axhline(0, color=MUTED, linewidth=0.8)
    cosine.set(xlabel="step, thousands", ylabel="mean cosine of two neurons")
    cosine.set_title("Neurons align and come apart again")
    cosine.legend(fontsize=7)
    finding(
        fig,
        "The stationary ratio is Θ(n SNR²) far above 1 only; at the paper's sizes it saturates",
        study.note(),
    )
    return fig


def _dots(ax: object, chi: object, runs: object, colour: str, label: str, marker: str = "o") -> None:
    """Median over runs with a bar over 80% of them."""
    low, middle, high = np.quantile(np.asarray(runs, float), [0.1, 0.5, 0.9], axis=1)
    ax.errorbar(  # type: ignore[attr-defined]
        chi, middle, [np.maximum(middle - low, 0), np.maximum(high - middle, 0)],
        fmt=marker, markersize=3.5, color=colour, label=label, linewidth=0.9,
    )  # fmt: skip
