"""Products with signal and noise along the trainings, with theory on the same axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.report.figure import COLOURS, MUTED, band, finding, sheet, theory

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from saltus.papers.features.studies._runs import Synthetic

SIGNAL, NOISE = COLOURS[0], COLOURS[1]

__all__ = ["NOISE", "SIGNAL", "classifier_panel", "denoiser_panel", "dynamics"]


def classifier_panel(ax: Axes, record: xarray.Dataset, law: xarray.Dataset | None) -> None:
    """One SNR: the classifier's largest products against the step, both logarithmic."""
    k = record.k.values + 1
    top = 2 * float(np.nanmax(record.classifier_signal.values.max()))
    top = max(top, 2 * float(np.nanmax(record.classifier_noise.values)))
    band(ax, k, record.classifier_signal.values, label="signal", colour=SIGNAL)
    band(ax, k, record.classifier_noise.values, label="noise", colour=NOISE)
    if law is not None:
        for name in ("early_signal", "early_noise"):
            curve = np.median(law[name].values, axis=0)
            end = int(np.argmax(~(curve < top / 2))) or len(curve)
            theory(ax, k[:end], curve[:end], label="theory, |ℓ′| = 1/2" if name == "early_noise" else "_")
    low = float(np.nanmin(record.classifier_signal.values[:, 0]))
    low = min(low, float(np.nanmin(record.classifier_noise.values[:, 0])))
    ax.set(xscale="log", yscale="log", xlabel="step + 1", ylim=(low / 2, top))


def denoiser_panel(ax: Axes, record: xarray.Dataset, law: xarray.Dataset | None) -> None:
    """One SNR: the denoiser's largest products against the step."""
    x = record.step.values / 1000
    band(ax, x, record.denoiser_signal.values, label="signal", colour=SIGNAL)
    band(ax, x, record.denoiser_noise.values, label="noise", colour=NOISE)
    top = 1.12 * float(
        np.nanquantile(np.fmax(record.denoiser_signal.max("step"), record.denoiser_noise.max("step")), 0.9)
    )
    if law is not None:
        until = float(np.median(law.blow_up))
        first = record.step.values < until
        for name in ("stage_signal", "stage_noise"):
            curve = _median_before(law[name].values[:, first])
            shown = curve < top
            theory(
                ax,
                x[first][shown],
                curve[shown],
                label="theory, first stage" if name == "stage_noise" else "_",
            )
        ax.axvline(until / 1000, color=MUTED, linewidth=0.9, linestyle=":", label="its blow-up")
        for name, colour in (("point_top_signal", SIGNAL), ("point_top_noise", NOISE)):
            y = float(np.median(law[name]))
            ax.plot([x[-1] * 0.93, x[-1] * 1.02], [y, y], color="black", linewidth=1.4, zorder=5,
                    label="theory, stationary point" if colour == NOISE else "_")  # fmt: skip
    ax.set(xlabel="step, thousands", ylim=(0, top))


def _median_before(curves: Any) -> Any:
    """The median over seeds where all are finite yet, infinite after."""
    return np.where(np.isfinite(curves).all(0), np.median(np.nan_to_num(curves, nan=np.inf), axis=0), np.inf)


def dynamics(
    study: Synthetic,
    record: xarray.Dataset,
    law: xarray.Dataset,
    title: str = "The classifier chooses, the denoiser ends with both",
) -> Figure:
    """Two rows, classifier and denoiser; a column for every SNR."""
    mus = record.mu.values
    fig, axes = sheet(2, len(mus), width=3.3, height=2.7)
    for column, mu in enumerate(mus):
        here, said = record.sel(mu=mu), law.sel(mu=mu)
        classifier_panel(axes[0, column], here, said)
        denoiser_panel(axes[1, column], here, said)
        chi = float(here.chi)
        ratio = np.median(here.classifier_signal[:, -1] / here.classifier_noise[:, -1])
        axes[0, column].set_title(f"n SNR² = {chi:.3g}: signal/noise {ratio:.2g}")
        last = here.isel(step=-1)
        ratio = np.median(last.denoiser_signal / last.denoiser_noise)
        axes[1, column].set_title(f"signal/noise {ratio:.2g}")
    axes[0, 0].set_ylabel("classifier: largest product")
    axes[1, 0].set_ylabel("denoiser: largest product")
    axes[0, 0].legend(loc="lower right")
    # Signal and noise have their names above; what is left fits under the plateau.
    held = zip(*axes[1, 0].get_legend_handles_labels(), strict=True)
    named = [(h, words) for h, words in held if words not in ("signal", "noise")]
    axes[1, 0].legend(*zip(*named, strict=True), loc="lower right", fontsize=7)
    finding(fig, title, study.note(record))
    return fig
