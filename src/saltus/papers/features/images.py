"""Noisy images: a scaled picture in one patch, Gaussian noise of the same size in the other (Section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from saltus import data as sets
from saltus.core.errors import BadInput
from saltus.core.progress import Silent

__all__ = ["NAMES", "SCALINGS", "Drawn", "NoisyImages", "available", "resizer"]

NAMES = {"mnist": "MNIST", "digits": "the embedded 8x8 digits", "fashion-mnist": "Fashion-MNIST"}
SCALINGS = ("standardised", "centred", "raw")


def available(name: str, show: Silent | None = None) -> str:
    """The set to use: `name` itself, or for `auto` MNIST where it can be had and the embedded digits
    otherwise."""
    if name != "auto":
        return name
    try:
        sets.load("mnist", show)
    except BadInput as error:
        (show or Silent()).say(f"{error}: {NAMES['digits']} in its place")
        return "digits"
    return "mnist"


class Drawn(NamedTuple):
    """Training and test data of one run: patches [n, d], and digits [n] as they are in the set."""

    signal: np.ndarray
    noise: np.ndarray
    digit: np.ndarray
    test_signal: np.ndarray
    test_noise: np.ndarray
    test_digit: np.ndarray


@dataclass(frozen=True)
class NoisyImages:
    """Pictures of a few classes, `per_class` of each for training, scaled by `snr` (the paper's SNR with a
    tilde).

    - `data`: a set of grey pictures by name; `side`: pixels a side they are resized to.
    - `scaling`: `standardised` (mean 0 and variance 1 over all pixels of the set's training pictures, before
      resizing), `centred` ([-1, 1]) or `raw` ([0, 1]).
    - `test`: test pictures of each class, the first of the set's own test part. Where a set has none (the
      embedded digits), they are those not drawn for training.
    """

    data: str = "mnist"
    classes: tuple[int, ...] = (0, 1)
    per_class: int = 50
    snr: float = 0.1
    side: int = 28
    scaling: str = "standardised"
    test: int = 2000

    def __post_init__(self) -> None:
        if self.scaling not in SCALINGS:
            raise BadInput(f"the scaling is one of {', '.join(SCALINGS)}, not {self.scaling!r}")
        if len(set(self.classes)) != len(self.classes) or len(self.classes) < 2:
            raise BadInput(f"classes needs two or more different ones, as in 0,1; got {self.classes}")
        if self.per_class < 1 or self.test < 1 or self.side < 2 or not self.snr > 0:
            raise BadInput("noisy images need snr above 0, a picture of each class and 2 pixels a side")

    @property
    def d(self) -> int:
        return self.side**2

    def draw(self, rng: np.random.Generator) -> Drawn:
        """The pictures of one run, and noise N(0, I) beside each of them."""
        held = _held(self.data)
        train, test = [], []
        for k in self.classes:
            mine = np.flatnonzero(held.y == k)
            apart = np.flatnonzero(held.test_y == k)
            need = self.per_class + (not len(apart))
            if len(mine) < need:
                raise BadInput(f"{self.data} has {len(mine)} pictures of class {k}, and {need} are needed")
            order = rng.permutation(mine)
            train.append(order[: self.per_class])
            left = np.sort(order[self.per_class :])
            test.append((apart if len(apart) else left)[: self.test])
        rows, test_rows = np.concatenate(train), np.concatenate(test)
        own_test = bool(len(held.test_y))
        signal = self._patches(held.x[rows], held)
        test_signal = self._patches((held.test_x if own_test else held.x)[test_rows], held)
        return Drawn(
            signal,
            rng.standard_normal(signal.shape),
            held.y[rows].astype(np.int64),
            test_signal,
            rng.standard_normal(test_signal.shape),
            (held.test_y if own_test else held.y)[test_rows].astype(np.int64),
        )

    def _patches(self, x: np.ndarray, held: _Held) -> np.ndarray:
        pixels = x / held.peak
        if self.scaling == "standardised":
            pixels = (pixels - held.mean) / held.spread
        elif self.scaling == "centred":
            pixels = 2 * pixels - 1
        down, across = (resizer(size, self.side) for size in x.shape[1:])
        return np.asarray(self.snr * (down @ pixels @ across.T)).reshape(len(x), -1)


class _Held(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    peak: int
    mean: float
    spread: float


@lru_cache(maxsize=2)
def _held(name: str) -> _Held:
    """The set, with the mean and standard deviation of its training pixels (MNIST: 0.1307 and 0.3081)."""
    found: Any = sets.load(name)
    if not isinstance(found, sets.Images) or found.x.ndim != 3:
        raise BadInput(f"{name} holds no grey pictures")
    counts = np.bincount(found.x.ravel(), minlength=found.peak + 1)
    level = np.arange(len(counts)) / found.peak
    mean = float(counts @ level / counts.sum())
    spread = float(np.sqrt(counts @ (level - mean) ** 2 / counts.sum()))
    return _Held(found.x, found.y, found.test_x, found.test_y, found.peak, mean, spread)


@lru_cache(maxsize=16)
def resizer(size: int, side: int) -> np.ndarray:
    """Weights [side, size] of linear interpolation between pixel centres; of averages, where pixels grow."""
    step = size / side
    centres = (np.arange(side) + 0.5) * step - 0.5
    far = abs(centres[:, None] - np.arange(size)) / max(step, 1.0)
    weights = np.maximum(0.0, 1.0 - far)
    return np.asarray(weights / weights.sum(1, keepdims=True))
