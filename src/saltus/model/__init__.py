"""Networks that more than one study uses, and the way in for any other JAX functions.

A model is anything with `init(key) -> params` and `apply(params, x [..., n_in]) -> y [..., n_out]`.
"""

from __future__ import annotations

from saltus.model._dense import MLP, Linear
from saltus.model._equinox import from_equinox
from saltus.model._functions import Model
from saltus.model._gpt import GPT
from saltus.model._symmetric import SymmetricLinear
from saltus.model._vit import ViT

__all__ = ["GPT", "MLP", "Linear", "Model", "SymmetricLinear", "ViT", "from_equinox"]
