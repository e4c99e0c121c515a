"""Pictures of data of many patches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.papers.features.studies._patches_claims import MIDDLE, over_common
from saltus.report.figure import COLOURS, MUTED, band, finding, sheet, theory

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from saltus.papers.features.studies.patches import Patches

OF = {"common": COLOURS[2], "rare": COLOURS[0], "weak": COLOURS[4], "noise": COLOURS[1]}


def patches(study: Patches, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
    fig, axes = sheet(2, 3, width=3.7, height=3.0)
    here, s = record.isel(strength=MIDDLE), float(record.strength[MIDDLE])
    _time(axes[0, 0], here, "path", "clock")
    for group, value in zip(record.group.values, here.solved.median("seed").values, strict=True):
        axes[0, 0].axhline(float(value), color=OF[group], linestyle=(0, (4, 2)), linewidth=1.1)
    axes[0, 0].plot([], [], color=MUTED, linestyle=(0, (4, 2)), linewidth=1.1, label="theory: at rest")
    axes[0, 0].set(xlabel="training time over that of the blow-up", ylabel="denoiser: mean product")
    axes[0, 0].set_title(f"The denoiser learns all (strength {s:.2g})")
    axes[0, 0].set_ylim(-0.05, 1.5)
    axes[0, 0].legend(fontsize=7, loc="upper left", ncols=2)
    _time(axes[0, 1], here, "class_path", "k")
    axes[0, 1].set(yscale="log", xlim=(0, 40), xlabel="steps × the common feature's growth in one",
                   ylabel="classifier: largest product")  # fmt: skip
    axes[0, 1].set_title("The classifier learns the common one")
    axes[0, 1].set_ylim(0.01, 80)
    axes[0, 1].legend(fontsize=7, loc="upper right", ncols=2)
    _ratios(axes[0, 2], record, law)
    _seen(axes[1, 0], record)
    _told(axes[1, 1], record)
    _many(axes[1, 2], record, law)
    note = f"n = {study.n}, d = {study.d}, m = {study.m}, σ₀ = {study.sigma0:g}, t = {study.time:g}; "
    note += f"common and rare features of length {study.mu:g}; {study.seeds} draws, bands hold 80% of them; "
    note += "strength: frequency times squared length, over the common feature's"
    finding(
        fig, "A denoiser learns rare and weak features that the classifier on the same data ignores", note
    )
    return fig


def _time(ax: Axes, record: xarray.Dataset, name: str, clock: str) -> None:
    for group in record.group.values:
        runs = record[name].sel(group=group).transpose("seed", clock).values
        band(ax, record[clock].values, runs, label=str(group), colour=OF[str(group)])


def _ratios(ax: Axes, record: xarray.Dataset, law: xarray.Dataset) -> None:
    s, fine = record.strength.values, law.fine.values
    for task, name, colour in (
        ("denoiser at rest", "end", COLOURS[0]),
        ("denoiser early", "early", COLOURS[5]),
        ("classifier", "reached", COLOURS[1]),
    ):
        for group, marker in (("rare", "o"), ("weak", "s")):
            middle = np.nanmedian(over_common(record[name], group), axis=1)
            fill, label = ("full", task) if marker == "o" else ("none", "_")
            ax.plot(s, middle, marker, color=colour, markersize=4.5, fillstyle=fill, label=label)
    theory(ax, s, law.rest.sel(group="rare").values, label="theory")
    theory(ax, fine, law.early.values, label="_")
    theory(ax, fine, law.classifier_rare.values, label="_")
    theory(ax, fine, law.classifier_weak.values, label="_")
    ax.set(xscale="log", yscale="log", xlabel="strength", ylabel="product over the common one")
    ax.set_title("Rare (●) or weak (□): strength decides")
    ax.legend(fontsize=7, loc="lower right")


def _seen(ax: Axes, record: xarray.Dataset) -> None:
    s = record.strength.values
    for group in ("common", "rare", "weak", "noise"):
        runs = 100 * record.gain.sel(group=group).transpose("seed", "strength").values
        band(ax, s, runs, label=str(group), colour=OF[group], marker="o", markersize=3)
    band(
        ax,
        s,
        100 * record.gain_unseen.transpose("seed", "strength").values,
        label="an empty patch",
        colour=MUTED,
    )
    ax.axhline(0, color=MUTED, linewidth=0.6)
    ax.set(xscale="log", xlabel="strength of rare and weak", ylabel="error taken away, %")
    ax.set_title("What the denoiser takes away of the error")
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.4 * (high - low))  # room for the names above the curves
    ax.legend(fontsize=7, loc="upper right", ncols=2)


def _told(ax: Axes, record: xarray.Dataset) -> None:
    s = record.strength.values
    for name, words, colour, line in (
        ("alone", "classifier", COLOURS[1], "-"),
        ("probe_start", "probe, untrained denoiser", COLOURS[6 % len(COLOURS)], ":"),
        ("probe", "probe, trained denoiser", COLOURS[0], "-"),
    ):
        runs = record[name].sel(group="rare").transpose("seed", "strength").values
        band(ax, s, runs, label=words, colour=colour, marker="o", markersize=3, linestyle=line)
    ax.axhline(0.5, color=MUTED, linewidth=0.8)
    ax.set(xscale="log", ylim=(0.35, 1.04), xlabel="strength of the rare feature", ylabel="accuracy")
    ax.set_title("Class of points with the rare feature alone")
    ax.legend(fontsize=7, loc="upper left")


def _many(ax: Axes, record: xarray.Dataset, law: xarray.Dataset) -> None:
    count = record["count"].values
    for name, words, colour in (("early", "early", COLOURS[5]), ("end", "at rest", COLOURS[0])):
        band(ax, count, record[f"many_{name}"].values.T, label=words, colour=colour, marker="o", markersize=3)
    theory(ax, count, law.many_rest.values)
    theory(ax, count, np.full(len(count), float(law.many_early)), label="_")
    ax.set(xscale="log", yscale="log", xlabel="equal features a point", ylabel="denoiser: feature over noise",
           xticks=count, xticklabels=[str(c) for c in count])  # fmt: skip
    ax.set_yticks([1, 2, 4], ["1", "2", "4"])
    ax.set_ylim(0.8, 5)
    ax.minorticks_off()
    ax.set_title("More patches: more weight on features")
    ax.legend(fontsize=7, loc="center right")
