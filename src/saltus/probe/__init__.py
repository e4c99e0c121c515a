"""What is watched along the way: pure functions of a `State`, on any network.

A probe is a plain function `fn(state) -> array` (the variable takes its name) or a `Probe` that also
says what the axes are called. Probes are evaluated inside the compiled loop.
"""

from __future__ import annotations

from saltus.probe._chance import (
    gaussian_change_rank,
    gaussian_edge,
    gaussian_rank,
    random_change,
    random_head_products,
)
from saltus.probe._curvature import hessian, lanczos, sharpness
from saltus.probe._files import heads_of, matrices_of
from saltus.probe._heads import head_matrices, head_products, head_ranks, head_spectra
from saltus.probe._outputs import jacobian_at, loss, output_at
from saltus.probe._paths import find, paths
from saltus.probe._probe import Probe, as_probe, probe
from saltus.probe._products import normalised, product_spectrum, stable_rank_of
from saltus.probe._spectra import norm, singular_values, stable_rank, weights
from saltus.probe._state import State

__all__ = [
    "Probe",
    "State",
    "as_probe",
    "find",
    "gaussian_change_rank",
    "gaussian_edge",
    "gaussian_rank",
    "head_matrices",
    "head_products",
    "head_ranks",
    "head_spectra",
    "heads_of",
    "hessian",
    "jacobian_at",
    "lanczos",
    "loss",
    "matrices_of",
    "norm",
    "normalised",
    "output_at",
    "paths",
    "probe",
    "product_spectrum",
    "random_change",
    "random_head_products",
    "sharpness",
    "singular_values",
    "stable_rank",
    "stable_rank_of",
    "weights",
]
