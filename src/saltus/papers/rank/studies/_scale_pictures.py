"""Smaller initial values, drawn: singular values over the training, stable ranks after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.papers.rank.studies import _captions, _rank_claims
from saltus.papers.rank.studies import _rank_pictures as ranks
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.rank.studies.scales import RankByScale, ValuesByScale

__all__ = ["evolution", "final"]


def final(study: RankByScale, record: xarray.Dataset) -> Figure:
    """Figure 7: a panel for each of three layers."""
    from saltus.papers.rank.studies.scales import trend

    chosen = ranks.layers(record)
    fig, axes = figure.sheet(1, len(chosen), width=3.0, height=2.8, sharey=True)
    gained, first = study.by_scale(record, "rank"), study.by_scale(record, "random_rank")
    at = np.arange(len(study.scales))
    for ax, layer in zip(axes[0], chosen, strict=True):
        where = [int(k) for k in record.layer.values].index(layer)
        for k, (product, colour) in enumerate(ranks.COLOURS.items()):
            of = gained[:, k, :, where].reshape(len(at), -1)
            ax.errorbar(
                at + 0.08 * (2 * k - 1), of.mean(1), of.std(1), color=colour, marker="o", markersize=4,
                linewidth=1.2, capsize=2, label=ranks.WORDS[product],
            )  # fmt: skip
            tau = float(trend(of, study.scales).mean())
            ax.annotate(
                f"τ = {tau:+.2f}", (0.97, 0.97 - 0.08 * k), xycoords="axes fraction", ha="right", va="top",
                color=colour, fontsize=8,
            )  # fmt: skip
        other = first[:, 0, :, where].reshape(len(at), -1)
        ax.plot(
            at, other.mean(1), color=figure.MUTED, linestyle=(0, (1, 1)), label="random change of that size"
        )
        ax.set(xticks=at, xlabel="scale of the initial values")
        ax.set_xticklabels([f"{x:g}" for x in study.scales])
        ax.set_title(f"layer {layer}")
    axes[0, 0].set_ylabel("stable rank after training")
    axes[0, 0].set_ylim(bottom=0)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize=7.5)
    taus = [float(trend(gained[:, k], study.scales).mean()) for k in (0, 1)]
    words = " and ".join(
        f"{'lower' if t > 0 else 'higher'} rank of {name} (τ = {t:+.2f})"
        for t, name in zip(taus, _rank_claims.NAMES.values(), strict=True)
    )
    _captions.finding(
        fig, f"Smaller initial values: {words}; random changes lose rank as well",
        study.note() + "; τ: Kendall's, over heads and seeds; bars: standard deviation over both",
    )  # fmt: skip
    return fig


def evolution(study: ValuesByScale, record: xarray.Dataset) -> Figure:
    """Figure 6: a row for each product, a column for each scale."""
    second = min(2, record.sizes["layer"])
    head = int(np.random.default_rng(study.base).integers(record.sizes["head"]))
    steps = record.step.values
    known = steps > 0
    fig, axes = figure.sheet(2, len(study.scales), width=2.6, height=2.3)
    for row, (product, colour) in enumerate(ranks.COLOURS.items()):
        for ax, scale in zip(axes[row], study.scales, strict=True):
            member = int(np.flatnonzero(record.scale.values == scale)[0])
            r = record.isel(member=member, head=head).sel(product=product, layer=second)
            values = r["values"].values
            shades = np.linspace(1.0, 0.25, values.shape[1])
            for k in range(values.shape[1])[::-1]:
                ax.plot(steps[known], values[known, k], color=ranks.towards(colour, shades[k]), linewidth=1.1)
            ax.set(xscale="log")
            ax.set_ylim(bottom=0)
            if row == 0:
                ax.set_title(f"scale {scale:g}")
            else:
                ax.set_xlabel("training step")
        axes[row, 0].set_ylabel(f"singular values of {ranks.WORDS[product]}")
    leads = study.leads(record)
    high, low = (np.median(leads[k].reshape(2, -1), axis=1) for k in (0, -1))
    words = ", ".join(
        f"{name} {high[k]:.2f} and {low[k]:.2f}" for k, name in enumerate(_rank_claims.NAMES.values())
    )
    _captions.finding(
        fig,
        f"Second singular value over first, at scales {study.scales[0]:g} and {study.scales[-1]:g}: {words}",
        f"{study.note()}; ratios: mean over the training, medians; head {head + 1} of layer {second}, "
        f"its {record.sizes['order']} largest values",
    )  # fmt: skip
    return fig
