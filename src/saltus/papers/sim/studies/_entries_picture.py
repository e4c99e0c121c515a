"""Figure 4 drawn: the map of entries as classified, and how far each moves the output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saltus._lazy import np
from saltus.report import figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.papers.sim.studies.entries import EntriesMap

__all__ = ["entries"]


def entries(study: EntriesMap, record: xarray.Dataset) -> Figure:
    """The map, and beside it the measured movement of the output at x̂."""
    from matplotlib.patches import Rectangle

    from saltus.papers.sim.law import two_layer

    d, s = study.dim, study.concepts
    known = two_layer.entries(d, s)
    fig, axes = figure.sheet(1, 2, width=4.3, height=4.0)
    ax = axes[0, 0]
    for i in range(d):
        for j in range(d):
            kind, groups = known.kind[i, j], np.flatnonzero(known.group[i, j])
            ax.add_patch(Rectangle((j, i), 1, 1, facecolor="#F2F2F2", edgecolor="white", linewidth=2))
            if kind == two_layer.MAJOR:
                ax.add_patch(Rectangle((j, i), 1, 1, facecolor="black", edgecolor="white", linewidth=2))
            # Two groups share a cell: the first above its diagonal, the second below.
            for place, p in enumerate(groups.tolist()):
                corners = (
                    [(j, i), (j + 1, i), (j, i + 1)]
                    if place == 0
                    else [(j + 1, i + 1), (j + 1, i), (j, i + 1)]
                )
                if len(groups) == 1:
                    corners = [(j, i), (j + 1, i), (j + 1, i + 1), (j, i + 1)]
                ax.fill(*zip(*corners, strict=True), color=figure.COLOURS[p % 6], alpha=0.75, linewidth=0)
            if len(groups):
                ax.add_patch(Rectangle((j, i), 1, 1, fill=False, edgecolor="white", linewidth=2))
            if d <= 9:
                ax.text(j + 0.5, i + 0.5, f"$w_{{{i + 1}{j + 1}}}$", ha="center", va="center", fontsize=8.5,
                        color="white" if kind else figure.MUTED)  # fmt: skip
    ax.fill([], [], color="black", label="major")
    for k in range(s):
        ax.fill([], [], color=figure.COLOURS[k % 6], alpha=0.75, label=f"minor, group {k + 1}")
    ax.fill([], [], color="#F2F2F2", label="irrelevant")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3, fontsize=7.5)
    ax.set(
        xlim=(0, d),
        ylim=(d, 0),
        xticks=[],
        yticks=[],
        aspect="equal",
        title=f"as classified, d = {d}, s = {s}",
    )
    here = (record.d.values == d) & (record.s.values == s)
    moved = np.zeros((d, d))
    row, col = record.row.values[here], record.col.values[here]
    moved[row, col] = moved[col, row] = record.moves.values[here].mean(1)
    shown = axes[0, 1].imshow(np.where(moved > 0, moved, np.nan), cmap="viridis")
    axes[0, 1].set_facecolor("#F2F2F2")
    axes[0, 1].grid(False)
    axes[0, 1].set(xticks=range(d), yticks=range(d), title="movement of the output at x̂")
    axes[0, 1].set_xticklabels(range(1, d + 1))
    axes[0, 1].set_yticklabels(range(1, d + 1))
    fig.colorbar(shown, ax=axes[0, 1], label="movement per unit of the entry", shrink=0.85)
    agree = (record.moves.values > 1e-9) == (record.kind.values != two_layer.IRRELEVANT)[:, None]
    figure.finding(
        fig,
        f"{agree.all(1).mean():.0%} of {len(agree)} entries move the output at x̂ as classified",
        f"(d, s) = {', '.join(map(str, study.sizes()))}; {study.seeds} Jacobians each; grey: no movement",
    )
    return fig
