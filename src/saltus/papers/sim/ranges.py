"""What a world can be made of, checked before anything heavy is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from saltus.core.errors import BadInput

__all__ = ["check_batch", "check_signals"]

# Rates go as mu^2 and, as drawn, as mu^4: neither they nor a loss leave the numbers between these.
LEAST, MOST = 1e-50, 1e50


def check_signals(mu: Iterable[float], sigma: Iterable[float]) -> None:
    """Refuse signals and spreads whose squares are no numbers any more; mu > 0 and sigma >= 0."""
    for m in mu:
        if not LEAST <= m <= MOST:
            raise BadInput(f"mu must lie between {LEAST:g} and {MOST:g}, not {m:g}")
    for x in sigma:
        if x > MOST:
            raise BadInput(f"sigma must be at most {MOST:g}, not {x:g}")


def check_batch(batch: int, points: int, reading: str, s: int = 2) -> None:
    """Refuse a batch larger than the data: `points` in each of s clusters, as drawn of s + 1."""
    size = points * (s + (reading == "as-drawn"))
    if batch > size:
        raise BadInput(f"a batch of {batch} needs as many points; the world has {size}")
