"""One look for every figure: readable in print, safe for colour-blind readers, no chart junk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

# Okabe and Ito (2008), without the yellow that vanishes on white paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
THEORY = "#000000"
MUTED = "#8A8A8A"

RC: dict[str, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "figure.constrained_layout.use": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    # Two drawings of one record are the same file.
    "svg.hashsalt": "saltus",
}


@contextlib.contextmanager
def house_style() -> Iterator[None]:
    """Draw with the house's settings, whatever the user's own are."""
    import matplotlib as mpl
    from cycler import cycler

    with mpl.rc_context():
        mpl.rcdefaults()
        for name, value in RC.items():
            mpl.rcParams[name] = value  # type: ignore[index]
        mpl.rcParams["axes.prop_cycle"] = cycler(color=COLOURS)
        yield
