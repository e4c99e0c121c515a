"""Heavy libraries under their usual names, loaded at first use.

Studies are declared in files that `saltus list` and `--help` must read in a fraction of a second, so
those files take `np`, `xr`, `jnp`, ... from here. Type checkers see the real modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax as jax
    import jax.numpy as jnp
    import matplotlib.pyplot as plt
    import numpy as np
    import xarray as xr
else:
    import importlib

    class _Lazy:
        def __init__(self, module: str, through: str | None = None) -> None:
            self._module, self._through = module, through

        def __getattr__(self, name: str) -> Any:
            if self._through:
                importlib.import_module(self._through)
            return getattr(importlib.import_module(self._module), name)

        def __repr__(self) -> str:
            return f"<lazy module {self._module}>"

    np = _Lazy("numpy")
    xr = _Lazy("xarray")
    jax = _Lazy("jax", through="saltus._jax")
    jnp = _Lazy("jax.numpy", through="saltus._jax")
    plt = _Lazy("matplotlib.pyplot")

__all__ = ["jax", "jnp", "np", "plt", "xr"]
