"""Pictures of the first stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.report.figure import COLOURS, band, finding, sheet, theory

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.features.studies.early import Early


def early(study: Early, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    fig, axes = sheet(1, 4, width=2.9, height=2.9)
    ratio, onset, kept, scale = axes[0]
    chi = record.chi.values
    band(
        ratio,
        chi,
        record.ratio.values.T,
        label="trained, before saturation",
        colour=COLOURS[0],
        marker="o",
        markersize=3,
    )
    theory(ratio, chi, law.early.values, label="theory: n SNR²/2")
    band(ratio, chi, record.point.values.T, label="stationary point, solved", colour=COLOURS[1])
    ratio.set(xscale="log", yscale="log", xlabel="n SNR²", ylabel="signal / noise, mean products")
    ratio.set_title("Early: slope 1")
    ratio.legend(loc="upper left", fontsize=7)

    band(
        onset,
        chi,
        record.onset.values.T / 1000,
        label="loss has fallen by 1%",
        colour=COLOURS[2],
        marker="o",
        markersize=3,
    )
    theory(onset, chi, np.median(record.blow_up.values, axis=1) / 1000, label="theory: blow-up")
    onset.set(xscale="log", xlabel="n SNR²", ylabel="step, thousands", ylim=(0, None))
    onset.set_title("The blow-up tells when it ends")
    onset.legend(loc="lower left", fontsize=7)

    shares = record.share.values
    for name, label, colour in (("kept", "|w| sin³θ", COLOURS[3]), ("kept_once", "|w| sin θ", COLOURS[4])):
        runs = record[name].transpose("chi", "seed", "share").values.reshape(-1, len(shares))
        band(kept, shares, np.maximum(runs, 1e-16), label=label, colour=colour, marker="o", markersize=3)
    kept.set(yscale="log", xlabel="time over blow-up time", ylabel="largest relative change")
    kept.set_title("|w| sin³θ is kept")
    kept.legend(loc="lower right", fontsize=7)

    for name, label, colour in (("sigma0", "σ₀", COLOURS[0]), ("dim", "d, |ξ| held", COLOURS[1])):
        x, y = record[name].values, record[f"onset_{name}"].values
        base = np.median(y, axis=1)[0]
        band(scale, x / x[0], y.T / base, label=f"{label}: trained", colour=colour, marker="o", markersize=3)
        power, slow = (-1.0, -2.0) if name == "sigma0" else (-0.5, -1.0)
        theory(scale, x / x[0], (x / x[0]) ** power, label="theory" if name == "dim" else "_")
        scale.plot(x / x[0], (x / x[0]) ** slow, color=colour, linestyle=":", linewidth=1.1,
                   label=f"{label}: as T₂")  # fmt: skip
    scale.set(xscale="log", yscale="log", xlabel="over the smallest", ylabel="onset over the first")
    scale.set_ylim(bottom=scale.get_ylim()[0] / 100)  # room for the names below the curves
    scale.set_title("Onset scales as 1/(σ₀√d)")
    scale.legend(loc="lower left", fontsize=7)
    finding(fig, "The first stage sets the ratio to n SNR²/2 and ends at a computable step", study.note())
    return fig
