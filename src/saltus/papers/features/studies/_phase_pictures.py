"""Pictures of the phase diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.papers.features.studies._phase import crossing
from saltus.report.figure import COLOURS, MUTED, band, finding, sheet, theory

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.features.studies.phase import Phase


def phase(study: Phase, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    fig, axes = sheet(2, 2, width=4.1, height=3.1)
    (both, starts), (drift, powers) = axes
    chi, x = record.chi.values, record.chi_denoiser.values
    band(
        both,
        chi,
        record.ratio.values[0].T,
        label="classifier, largest products",
        colour=COLOURS[1],
        marker="o",
        markersize=3,
    )
    band(
        both,
        x,
        record.end.values[0].T,
        label="denoiser, mean products",
        colour=COLOURS[0],
        marker="o",
        markersize=3,
    )
    band(
        both,
        x,
        record.early.values[0].T,
        label="denoiser, early",
        colour=COLOURS[5],
        marker="o",
        markersize=3,
    )
    theory(both, x, law.ratio.values[0], label="theory: stationary point")
    theory(both, x, x / 2, label="theory: n SNR²/2", linestyle=(0, (1, 1.5)))
    both.axvline(float(law.boundary[0]), color=MUTED, linewidth=0.9, label="theory: boundary")
    both.axhline(1, color=MUTED, linewidth=0.6)
    both.set(xscale="log", yscale="log", xlabel="n SNR²", ylabel="signal / noise")
    both.set_title("At the paper's sizes")
    both.set_ylim(top=20 * both.get_ylim()[1])  # room for the names above the curves
    both.legend(fontsize=6.5, loc="upper left")

    sizes = study.sizes("classifier")
    small = [i for i, (kind, _) in enumerate(sizes) if kind in ("base", "σ₀")]
    for n, i in enumerate(small):
        band(
            starts, chi, record.ratio.values[i].T, label=f"σ₀ = {sizes[i][1].sigma0:g}", colour=COLOURS[n % 6]
        )
        starts.axvline(float(law.boundary[i]), color=COLOURS[n % 6], linewidth=0.9, linestyle=":")
    starts.axhline(1, color=MUTED, linewidth=0.6)
    starts.set(xscale="log", yscale="log", xlabel="n SNR²", ylabel="classifier: signal / noise")
    starts.set_title("A smaller start sharpens the transition")
    starts.legend(fontsize=7)

    measured = [crossing(chi, r) for r in record.ratio.values]
    kinds = [kind for kind, _ in sizes]
    for n, kind in enumerate(dict.fromkeys(kinds)):
        here = [i for i, k in enumerate(kinds) if k == kind]
        formula, seen = [float(law.boundary[i]) for i in here], [measured[i] for i in here]
        drift.plot(
            formula, seen, "osD^v"[n % 5], markersize=5, color=COLOURS[n % 6],
            label=kind if kind == "base" else f"another {kind}", zorder=4 if kind == "base" else 3,
        )  # fmt: skip
    ends = np.asarray([law.boundary.min(), law.boundary.max()]) * [0.97, 1.03]
    theory(drift, ends, ends, label="formula")
    drift.set(xlabel="n SNR² by the formula", ylabel="n SNR² measured")
    drift.set_title("Where the classifier's ratio is 1")
    drift.legend(fontsize=7)

    for n, (kind, size) in enumerate(study.sizes("denoiser")):
        told = "base" if kind == "base" else f"{kind} = {getattr(size, kind):g}"
        middle = np.nanmedian(record.end.values[n], axis=1)
        mark = "os"[n // len(COLOURS)]
        powers.plot(x, middle, mark, color=COLOURS[n % len(COLOURS)], markersize=3.5, label=told)
        theory(powers, x, law.ratio.values[n], label="_", linewidth=0.8)
    powers.plot(x, x / 2, color=MUTED, linestyle=":", label="n SNR²/2")
    powers.set(xscale="log", yscale="log", xlabel="n SNR²", ylabel="denoiser at rest: signal / noise")
    powers.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    powers.tick_params(axis="y", which="minor", labelleft=False)
    powers.set_title("No size has power 1")
    powers.legend(fontsize=6.5, ncols=2)
    note = f"{study.trainings()} trainings; σ_ξ = 1, t = 0.2; bands hold 80% of the draws"
    finding(
        fig, "The classifier has a boundary, near n SNR² = 3 and sinking to 2; the denoiser has none", note
    )
    return fig
