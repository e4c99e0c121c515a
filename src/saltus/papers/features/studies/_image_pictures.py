"""Noisy images drawn: losses and products over training, and pictures as the paper sets them side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import np
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

__all__ = ["accuracies", "dynamics", "film", "note", "of_set", "rows"]

SIGNAL, NOISE = figure.COLOURS[0], figure.COLOURS[1]


def of_set(name: str) -> str:
    """The set in words, so that no figure passes one for another."""
    from saltus.papers.features import images

    return images.NAMES.get(name, name)


def note(study: Any, record: xarray.Dataset) -> str:
    """The small print: data and sizes."""
    words = f"{of_set(record.attrs['data'])}, {study.side}x{study.side}, {study.scaling}; classes "
    words += f"{', '.join(map(str, study.classes))}, {study.per_class} pictures of each; SNR {study.snr:g}, "
    words += (
        f"m = {study.neurons}, σ₀ = {study.sigma0:g}; {record.sizes['seed']} runs, bands hold 80% of them"
    )
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
    axes[0, 1].axhline(
        end, color=figure.THEORY, linestyle=(0, (4, 2)), linewidth=1.1, label="stationary point"
    )
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
        f"(c) denoiser: {_ratio(record.signal, record.noise):.2g}, at rest "
        f"{float(np.median(record.end_signal / record.end_noise)):.2g} (◆)"
    )
    axes[0, 3].legend(loc="best")
    low, high = (f([ax.get_ylim()[i] for ax in (axes[0, 2], axes[0, 3])]) for i, f in ((0, min), (1, max)))
    for ax in (axes[0, 2], axes[0, 3]):
        ax.set_ylim(low, high)
        ticks = [x for x in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if low <= x <= high]
        ax.set_yticks(ticks, [f"{x:g}" for x in ticks])
        ax.tick_params(axis="y", which="minor", labelleft=False)
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


ROWS = {
    "shown": "test point",
    "gradient": "input gradient",
    "denoised": "denoised",
    "plain": "no network:\n$x_t/α$",
    "removed": "what it\ntook away",
}


def rows(study: Any, record: xarray.Dataset) -> Figure:
    """Test points, input gradients and denoised points; beneath, what no network makes of them."""
    names = [n for n in ROWS if n != "gradient" or study.gradients]
    count = record.sizes["picture"]
    fig, axes = figure.sheet(
        len(names), count, width=1.2 if count < 8 else 0.85, height=0.66 if count < 8 else 0.5
    )
    # What is to be compared has one scale; each of the point's two patches has its own.
    noisy = 0.9 * max(float(abs(record[n]).max()) for n in ("denoised", "plain"))
    for i, name in enumerate(names):
        values = record[name].values
        for k in range(count):
            picture = _side_by_side(values[k], study.side, name, noisy)
            signed = name in ("gradient", "removed")
            axes[i, k].imshow(
                picture,
                cmap="PuOr" if signed else "gray",
                vmin=-1,
                vmax=1,
                aspect="equal",
                interpolation="nearest",
            )
            axes[i, k].axvline(study.side + 0.5, color="white", linewidth=2)
            _bare(axes[i, k])
        axes[i, 0].set_ylabel(ROWS[name], rotation=0, ha="right", va="center", fontsize=8)
    for k in range(count):
        axes[0, k].set_title(f"{int(record.digit[k])}", loc="center")
    scale = "each point's patches, gradients and what was taken away have scales of their own; denoised and "
    scale += "x_t/α share one"
    title, rest = _rows_finding(study, record)
    words = note(study, record).replace("bands hold 80% of them", "the first shown")
    figure.finding(fig, title, "\n".join(filter(None, (rest, words, scale))))
    return fig


def _bare(ax: Any) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _side_by_side(patches: Any, side: int, name: str, noisy: float) -> Any:
    """Picture and noise of a point beside each other, in [-1, 1]."""
    parts = []
    for patch in patches:
        if name == "shown":  # from its darkest to its brightest pixel
            low, high = float(patch.min()), float(patch.max())
            patch = 2 * (patch - low) / max(high - low, 1e-30) - 1
        elif name in ("gradient", "removed"):
            patch = patch / max(float(abs(patches).max()), 1e-30)
        else:
            patch = patch / noisy
        parts.append(np.clip(patch.reshape(side, side), -1, 1))
    return np.concatenate([parts[0], np.full((side, 2), np.nan), parts[1]], 1)


def _rows_finding(study: Any, record: xarray.Dataset) -> tuple[str, str]:
    """What was found, and what else there is to say in small print."""
    gains = [100 * float(record[f"gain_{n}"].mean()) for n in ("test_signal", "noise", "test_noise")]
    test, known, new = (f"{g:.2g}%".replace("-", "−") for g in gains)
    if not study.gradients:
        title = f"Of the error the denoiser takes {test} from test pictures, {new} from new noise"
        return title, f"of the error of training noise it takes {known}"
    own, start = (100 * float(np.median(study.share(record, n))) for n in ("odds_test", "odds_test_start"))
    title = f"{own:.3g}% of the gradient's energy lies in the noise patch, {start:.3g}% before training"
    words = f"of the error the denoiser takes {test} from test pictures, {known} from training noise, "
    return title, f"{words}{new} from new noise"


def accuracies(study: Any, record: xarray.Dataset) -> Figure:
    """Training and test accuracy of the classifier over its steps, at both SNR."""
    fig, axes = figure.sheet(1, 2, width=3.6, height=2.9, sharey=True)
    steps = record.step.values + 1
    ends = []
    for ax, snr in zip(axes[0], record.snr.values, strict=True):
        for name, colour in (("train", figure.COLOURS[2]), ("test", figure.COLOURS[3])):
            runs = record[f"{name}_accuracy"].sel(snr=snr).values
            figure.band(ax, steps, runs, label=name, colour=colour)
        ends.append(float(np.median(runs[:, -1])))
        ax.axhline(
            1 / len(study.classes), color=figure.MUTED, linewidth=0.9, linestyle=":", label="by chance"
        )
        ax.set(xscale="log", xlabel="step + 1", ylim=(0, 1.04), title=f"SNR = {snr:g}")
    axes[0, 0].set_ylabel("accuracy")
    axes[0, 1].legend(loc="lower right")
    text = f"Test accuracy {ends[0]:.3f} where noise was learnt, {ends[1]:.3f} where the signal was"
    figure.finding(fig, text, note(study, record).replace(f"SNR {study.snr:g}", "both SNR"))
    return fig


SHOWN = {"denoiser": (0, 1, 2, 4, 8), "classifier": (0, 4, 5, 6, 8)}  # frames in which most happens
FILM = {
    "denoiser_points": "denoiser\npoints at",
    "removed": "takes away",
    "classifier_points": "classifier\npoints at",
    "gradient": "its gradient",
}


def film(study: Any, record: xarray.Dataset) -> Figure:
    """Strips of frames: pictures' part and noise's part of what the networks point at, and of one point."""
    order = [(snr, name) for snr in record.snr.values for name in FILM]
    count = record.sizes["frame"]
    shown = {task: [k for k in frames if k < count] for task, frames in SHOWN.items()}
    fig, axes = figure.sheet(len(order), min(map(len, shown.values())), width=1.3, height=0.66)
    for i, (snr, name) in enumerate(order):
        strip = record[name].sel(snr=snr).values.astype(float)
        scale = float(np.quantile(abs(strip[-1]), 0.995))
        own = "denoiser" if name in ("denoiser_points", "removed") else "classifier"
        clock = record[f"{own}_frame"].sel(snr=snr).values
        for k, frame in enumerate(shown[own][: axes.shape[1]]):
            parts = [np.clip(p.reshape(study.side, study.side) / scale, -1, 1) for p in strip[frame]]
            picture = np.concatenate([parts[0], np.full((study.side, 2), np.nan), parts[1]], 1)
            axes[i, k].imshow(picture, cmap="PuOr", vmin=-1, vmax=1, aspect="equal", interpolation="nearest")
            _bare(axes[i, k])
            if name in ("denoiser_points", "classifier_points"):
                when = clock[frame] * study.d / study.eta if own == "denoiser" else clock[frame]
                axes[i, k].set_title(f"{when:,.0f}", loc="center", fontsize=7, pad=2)
        told = f"SNR {snr:g}\n{FILM[name]}" if i % len(FILM) == 0 else FILM[name]
        axes[i, 0].set_ylabel(told, rotation=0, ha="right", va="center", fontsize=7.5)
    share = {
        (task, float(snr)): record[f"{task}_share"].sel(snr=snr).median("seed").values
        for task in ("denoiser", "classifier")
        for snr in record.snr.values
    }
    both = []
    for level in map(float, record.snr.values):
        mine, other = (share[task, level] for task in ("denoiser", "classifier"))
        line = f"SNR {level:g}: denoiser {mine[0]:.0%} pictures, {mine[1]:.0%} noise"
        both.append(f"{line}; classifier {other[0]:.0%}, {other[1]:.0%}")
    text = "The denoiser comes to point at both parts, the classifier at one"
    words = note(study, record).replace(f"SNR {study.snr:g}", "both SNR")
    words = words.replace("bands hold 80% of them", "the first shown")
    words += "\nabove each frame the step; in each picture's part | noise's part; every row has one scale"
    words += "\nshares of the leading direction in the spans of training pictures and noise, medians"
    figure.finding(fig, text, "\n".join([words, *both]))
    return fig
