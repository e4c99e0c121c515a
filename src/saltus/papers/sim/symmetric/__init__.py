"""The symmetric two-layer linear model, a hundred thousand runs at a time.

    found = symmetric.evolve(world.second_moment(), world.test_point(), 100_000, steps=10_000)
    found["descents"]      # [run, threshold]

The model itself, one run at a time and in matrix form, is in `law.two_layer`.
"""

from __future__ import annotations

from saltus.papers.sim.symmetric.algebra import eigenvalues, smallest_eigenvalue
from saltus.papers.sim.symmetric.evolve import WATCH, evolve, starts
from saltus.papers.sim.symmetric.watch import Cone, Descents, Diverged, Hits, Lowest, Rises, View, Watcher

__all__ = [
    "WATCH",
    "Cone",
    "Descents",
    "Diverged",
    "Hits",
    "Lowest",
    "Rises",
    "View",
    "Watcher",
    "eigenvalues",
    "evolve",
    "smallest_eigenvalue",
    "starts",
]
