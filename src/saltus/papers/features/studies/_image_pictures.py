"""Noisy images drawn: losses and products over training, and pictures as the paper sets them side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

__all__ = ["dynamics", "note", "of_set"]

SIGNAL, NOISE = figure.COLOURS[0], figure.COLOURS[1]


def of_set(name: str) -> str:
    """The set in words, so that no figure passes one for another."""
    from saltus.papers.features import images

    return images.NAMES.get(name, name)


def note(study: Any, record: xarray.Dataset) -> str:
    """The small print: data and sizes."""
    words = f"{of_set(record.attrs['data'])}, {study.side}x{study.side}, {study.scaling}; classes "
    words += f"{', '.join(map(str, study.classes))}, {study.per_class} pictures of each; SNR {study.snr:g}, "
    words += f"m = {study.neurons}, σ0 = {study.sigma0:g}; {record.sizes['seed']} runs, bands hold 80% of them"
    return words


def dynamics(study: Any, record: xarray.Dataset) -> Figure:
    """Losses of both networks, and their signal and noise over training."""
    fig, axes = figure.sheet(1, 4, width=3.1, height=2.9)
    steps = record.step.values + 1
    clock = record.time.values * study.d / study.eta / 1000
    figure.band(axes[0, 0], steps, record.class_loss.values, colour=figure.COLOURS[2])
    axes[0, 0].set(xscale="log", yscale="log", xlabel="step + 1", ylabel="training loss")
    axes[0, 0].set_title("(a) classifier, loss")
    figure.band(axes[0, 1], clock, record.loss.values, colour=figure.COLOURS[2])
    end = float(np.median(record.end_loss))
    axes[0, 1].axhline(end, color=figure.THEORY, linestyle=(0, (4, 2)), linewidth=1.1, label="stationary point")
    axes[0, 1].set(xlabel=f"training time, thousands of steps of {study.eta:g}", ylabel="loss per coordinate")
    axes[0, 1].set_title(f"(b) denoiser, t = {study.t:g}, loss")
    axes[0, 1].legend(loc="upper right")
    _two(axes[0, 2], steps, record.learnt_signal.values, record.learnt_noise.values)
    axes[0, 2].set(xscale="log", yscale="log", xlabel="step + 1", ylabel="mean of max |⟨w, patch⟩|")
    axes[0, 2].set_title(f"(c) classifier: ratio {_ratio(record.learnt_signal, record.learnt_noise):.2g}")
    axes[0, 2].legend(loc="upper left")
    _two(axes[0, 3], clock, record.signal.values, record.noise.values)
    for end_value, colour in ((record.end_signal, SIGNAL), (record.end_noise, NOISE)):
        axes[0, 3].plot(
            [clock[-1] * 1.04], [float(np.median(end_value))], "D", color=colour, markersize=5, clip_on=False
        )
    axes[0, 3].set(xlabel=f"training time, thousands of steps of {study.eta:g}", yscale="log")
    axes[0, 3].set_title(
        f"(c) denoiser: ratio {_ratio(record.signal, record.noise):.2g}, at rest "
        f"{float(np.median(record.end_signal / record.end_noise)):.2g} (◆)"
    )
    axes[0, 3].legend(loc="lower right")
    low, high = (f([ax.get_ylim()[i] for ax in (axes[0, 2], axes[0, 3])]) for i, f in ((0, min), (1, max)))
    for ax in (axes[0, 2], axes[0, 3]):
        ax.set_ylim(low, high)
    figure.finding(fig, _finding(study, record), note(study, record))
    return fig


def _two(ax: Any, x: Any, signal: Any, noise: Any) -> None:
    figure.band(ax, x, signal, label="signal", colour=SIGNAL)
    figure.band(ax, x, noise, label="noise", colour=NOISE)


def _ratio(signal: Any, noise: Any) -> float:
    return float(np.median(signal.values[:, -1] / noise.values[:, -1]))


def _finding(study: Any, record: xarray.Dataset) -> str:
    other, own = _ratio(record.learnt_signal, record.learnt_noise), _ratio(record.signal, record.noise)
    return f"Signal over noise: classifier {other:.2g}, denoiser {own:.2g} at t = {study.t:g}"
