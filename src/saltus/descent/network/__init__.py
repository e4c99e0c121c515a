"""Training one real network: data kept on the device, long runs, checkpoints.

train, test = network.images(saltus.data.load("cifar10"))
found = network.fit(model.ViT(), train, adam(rate.warm_cosine(1e-4, warm=1455, total=48500), epochs=500,
                    batch=512), test=test, watch=[probe.head_spectra()])

`saltus.train` is for thousands of small networks; this is for a few that fill the machine. It needs
nothing but JAX and numpy (and safetensors to keep checkpoints).
"""

from __future__ import annotations

from saltus.descent.network._fit import Fit, fit
from saltus.descent.network._table import Table, images, tokens

__all__ = ["Fit", "Table", "fit", "images", "tokens"]
