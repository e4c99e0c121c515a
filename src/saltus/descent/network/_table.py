"""What one network learns from, kept on the device as it is stored: bytes of images, numbers of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput


@dataclass(frozen=True, eq=False)
class Table:
    """Points x [N, ...] and targets y [N, ...], of any kind of number.

    A network sees (x - mean) / std, by the last axis of x; points of whole numbers with no `mean` reach it
    as they are, as tokens do.
    """

    x: Any
    y: Any
    mean: Any = None
    std: Any = None

    def __post_init__(self) -> None:
        if np.ndim(self.x) < 2 or np.ndim(self.y) < 1 or len(self.x) != len(self.y) or not len(self.x):
            raise BadInput(
                f"a table needs x [N, ...] and y [N, ...]; got {np.shape(self.x)} and {np.shape(self.y)}"
            )
        if (self.mean is None) != (self.std is None):
            raise BadInput("a table takes both mean and std, or neither")

    def __len__(self) -> int:
        return len(self.x)

    def arrays(self) -> dict[str, jax.Array]:
        """What goes to the device."""
        found = {"x": jnp.asarray(self.x), "y": jnp.asarray(self.y)}
        if self.mean is not None:
            found["mean"] = jnp.asarray(self.mean, jnp.float32)
            found["factor"] = jnp.asarray(1 / np.asarray(self.std, np.float64), jnp.float32)
        return found


def pick(table: dict[str, jax.Array], at: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The points a network sees, and their targets, at numbers [B]."""
    x, y = table["x"][at], table["y"][at]
    if "mean" in table:
        x = (x.astype(jnp.float32) - table["mean"]) * table["factor"]
    return x, y


def images(held: Any, train: int | None = None, test: int | None = None) -> tuple[Table, Table]:
    """Training and test tables of images (`saltus.data.load`), each channel with mean 0 and deviation 1.

    - `train`, `test`: only the first so many. Where the images have no split, the last sixth is the test.

    Mean and deviation are those of the training points.
    """
    x, y, test_x, test_y = held.x, held.y, held.test_x, held.test_y
    if not len(test_x):
        cut = len(x) - len(x) // 6
        x, y, test_x, test_y = x[:cut], y[:cut], x[cut:], y[cut:]
    x, y, test_x, test_y = x[:train], y[:train], test_x[:test], test_y[:test]
    if x.ndim == 3:
        x, test_x = x[..., None], test_x[..., None]
    # Sums of bytes in whole numbers: exact, and no copy of the images as floats.
    axes, count = (0, 1, 2), x[..., 0].size
    mean = x.sum(axes, dtype=np.int64) / count
    square = np.stack([np.square(x[..., c], dtype=np.int64).sum() for c in range(x.shape[-1])]) / count
    std = np.sqrt(np.maximum(square - mean**2, 1e-12))
    return Table(x, y, mean, std), Table(test_x, test_y, mean, std)


def tokens(ids: Any, context: int, test: float = 0.1) -> tuple[Table, Table]:
    """Training and test tables of windows of `context` tokens, each with the tokens that follow.

    - `ids` [n]: tokens in the order of the text; the last `test` of the windows are the test.
    """
    flat = np.asarray(ids)
    count = (len(flat) - 1) // context
    held = round(test * count)
    if flat.ndim != 1 or flat.dtype.kind not in "iu" or count - held < 1:
        raise BadInput(f"tokens: a list of at least {context + 1} whole numbers is needed")
    x = flat[: count * context].reshape(count, context)
    y = flat[1 : count * context + 1].reshape(count, context)
    return Table(x[: count - held], y[: count - held]), Table(x[count - held :], y[count - held :])
