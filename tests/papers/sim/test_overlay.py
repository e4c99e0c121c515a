"""Theory beside a training of one's own, in the three lines of its docstring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import saltus
from saltus import descent, model
from saltus.core.errors import BadInput
from saltus.papers import sim

WORLD = sim.World(mu=(1.0, 2.0), sigma=0.3, dim=4, points=4000, rotate=False)
WATCH = [sim.output_at_corner, sim.jacobian]


def trained(how: Any, world: sim.World = WORLD, **more: Any) -> Any:
    return saltus.train(model.Linear(depth=1, width=4), world, how, seeds=6, watch=WATCH, **more)


def test_one_layer_follows_the_theorem_and_not_that_of_another_world() -> None:
    runs = trained(descent.gd(lr=0.1, steps=40), at=descent.at.linear(21))
    assert dict(runs.output_at_corner.sizes) == {"seed": 6, "step": 21, "concept": 2}
    law = sim.theorem(WORLD, runs, eta=0.1)
    # A sample of 8000 points has the population's moment to a per cent.
    assert float(saltus.distance(runs, law).output_at_corner.max()) < 0.01
    other = sim.World(mu=(1.0, 1.0), sigma=0.3, dim=4, points=4000, rotate=False)
    assert float(saltus.distance(runs, sim.theorem(other, runs, eta=0.1)).output_at_corner.min()) > 0.05
    # Steps of this size are visibly not the flow.
    assert float(saltus.distance(runs, sim.theorem(WORLD, runs)).jacobian.min()) > 0.01
    np.testing.assert_allclose(
        law.output_at_corner.isel(step=0), runs.output_at_corner.isel(step=0), atol=1e-12
    )


def test_the_flow_follows_the_theorem() -> None:
    runs = trained(descent.flow(until=4.0), at=descent.at.linear(9))
    assert float(saltus.distance(runs, sim.theorem(WORLD, runs)).output_at_corner.max()) < 0.01


def test_what_it_cannot_do() -> None:
    how = descent.gd(lr=0.1, steps=4)
    with pytest.raises(BadInput, match="rotate=False"):
        trained(how, sim.World(mu=(1.0, 2.0), dim=4, points=50))
    with pytest.raises(BadInput, match=r"watch sim\.jacobian"):
        sim.theorem(WORLD, trained(how).drop_vars("jacobian"))
    with pytest.raises(BadInput, match="look at step 0"):
        sim.theorem(WORLD, trained(how).isel(step=slice(1, None)))
