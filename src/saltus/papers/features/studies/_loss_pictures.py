"""Losses and accuracies along the trainings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.report.figure import COLOURS, band, finding, sheet, theory

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.features.studies.fig5 import Figure5


def losses(study: Figure5, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    """A row for each SNR: classification loss, DDPM loss, accuracy."""
    fig, axes = sheet(2, 3, width=3.0, height=2.5)
    x, k = record.step.values / 1000, record.k.values + 1
    for row, mu in enumerate(record.mu.values):
        here, said = record.sel(mu=mu), law.sel(mu=mu)
        left, middle, right = axes[row]
        band(left, k, here.classifier_loss.values, colour=COLOURS[2])
        left.set(xscale="log", yscale="log", ylabel="classification loss")
        left.set_title(f"n SNR² = {float(here.chi):.3g}")
        band(middle, x, here.denoiser_loss.values, colour=COLOURS[3], label="training")
        level = float(np.median(said.loss))
        theory(middle, x[[0, -1]], [level, level], label="stationary point, solved")
        bound = float(law.bound)
        middle.axhline(bound, color="#8A8A8A", linewidth=0.9, linestyle=":", label="2d − 2m")
        top = 2.0 * study.d
        middle.set(ylabel="DDPM loss", ylim=(bound - 0.08 * (top - bound), top + 0.08 * (top - bound)))
        band(right, k, here.classifier_accuracy.values, colour=COLOURS[0], label="training points")
        band(right, here["at"].values + 1, here.test.values, colour=COLOURS[1], label="new points")
        right.set(xscale="log", ylabel="accuracy", ylim=(0.3, 1.03))
        if row:
            left.set_xlabel("step + 1")
            middle.set_xlabel("step, thousands")
            right.set_xlabel("step + 1")
        else:
            middle.legend(loc=(0.3, 0.14), fontsize=7)
            right.legend(loc="lower left", fontsize=7)
    finding(
        fig,
        "Both losses converge; at low SNR the classifier knows its training points only",
        study.note(record),
    )
    return fig
