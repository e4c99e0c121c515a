"""Numbers no world can be made of are refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from saltus.core.errors import BadInput
from saltus.papers.sim import World
from saltus.papers.sim.studies import _flows
from saltus.python import studies


@pytest.mark.parametrize(
    ("mu", "sigma"),
    [((1e200, 1.0), 0.05), ((1e-200, 1.0), 0.05), ((1.0, 2.0), 1e200), ((1.0, 2.0), (0.1, 1e60))],
)
def test_a_world_whose_rates_are_no_numbers(mu: Any, sigma: Any) -> None:
    with pytest.raises(BadInput, match=r"must (lie between|be at most)"):
        World(mu, sigma)
    with pytest.raises(BadInput):
        _flows.moment(_flows.World(mu, sigma if isinstance(sigma, tuple) else (sigma, sigma)))
    World((1e50, 1e-50), 1e50)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sim/fig5", dict(sigma=(1e200, 1e200))),
        ("sim/fig10", dict(mu=(1e-300, 1.0, 2.0))),
        ("sim/fig2c", dict(mu=(1.0, 1e300))),
        ("sim/fig14", dict(mu=((1.0, 1e300),))),
        ("sim/recursion", dict(sigma=1e200, reading="as-drawn")),
        *(
            (f"sim/{n}", dict(batch=20000))
            for n in (
                "fig2a",
                "fig2b",
                "fig2c",
                "fig3",
                "fig11",
                "fig12",
                "fig13",
                "fig15",
                "fig16",
                "one-layer",
            )
        ),
    ],
)
def test_refused_in_the_constructor(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"mu must|sigma must|the world has 10000"):
        studies()[name].cls(**wrong)


def test_the_cluster_at_the_origin_counts() -> None:
    for name in ("sim/fig2a", "sim/fig2c", "sim/fig13"):
        studies()[name].cls(batch=15000, reading="as-drawn")
        with pytest.raises(BadInput, match="the world has 15000"):
            studies()[name].cls(batch=15001, reading="as-drawn")
