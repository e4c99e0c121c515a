"""Where SIM's data come from: Gaussian clusters on the axes, tested on the corner that joins them all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from saltus._jax import jax, jnp
from saltus.core.errors import BadInput, nearest
from saltus.papers.sim.ranges import check_signals

__all__ = ["READINGS", "Draw", "World", "check_reading", "draw", "streams"]

READINGS = ("as-written", "as-drawn")
MOST_CORNERS = 16


class Draw(NamedTuple):
    """One training set.

    - `y`: the points [N, s] in concept coordinates, cluster by cluster.
    - `axes`: orthonormal columns Q [dim, s], where the concept axes point; the inputs are x = Q y.
    - `discarded`: how many points truncation drew again; 0 without truncation.
    - `nearest`: distance from x̂ to the nearest training point.
    """

    y: jax.Array
    axes: jax.Array
    discarded: jax.Array
    nearest: jax.Array


@dataclass(frozen=True)
class World:
    """Clusters p = 1..s at mu_p e_p in R^dim, spread sigma along the concept axes (Yang et al. 2025, Sec. 2).

    - `mu`: distance of each cluster from the origin, one per concept; all positive.
    - `sigma`: standard deviation along the concept axes, one number or one per concept; none elsewhere.
    - `dim`: dimension of the space the concepts live in, at least their number.
    - `points`: training points in each cluster.
    - `origin`: whether one more cluster sits at the origin.
    - `rotate`: whether each run sees the concepts along axes of its own, drawn uniformly.
    - `truncate`: whether training points within half of the smallest mu of x̂ are drawn again (Fig. 16).
    """

    mu: tuple[float, ...]
    sigma: float | tuple[float, ...] = 0.05
    dim: int = 64
    points: int = 5000
    origin: bool = False
    rotate: bool = True
    truncate: bool = False

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "mu", _numbers("mu", self.mu))
        if not self.mu:
            raise BadInput("mu is empty; give one distance per concept, as in mu=(1, 2)")
        if any(m <= 0 for m in self.mu):
            raise BadInput(f"every mu must be positive; got {self.mu}")
        spread = _numbers("sigma", self.sigma)
        if len(spread) not in (1, self.s):
            raise BadInput(f"sigma must be one number or one per concept ({self.s}); got {len(spread)}")
        if any(x < 0 for x in spread):
            raise BadInput(f"sigma is a spread and cannot be negative; got {self.sigma}")
        check_signals(self.mu, spread)
        set_(self, "sigma", spread if isinstance(self.sigma, Sequence | np.ndarray) else spread[0])
        for name, least in (("dim", 1), ("points", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise BadInput(f"{name} must be a whole number of at least {least}; got {value!r}")
        if self.s > self.dim:
            raise BadInput(
                f"{self.s} concepts do not fit in dimension {self.dim}; dim must be at least {self.s}"
            )
        if self.clusters * self.points * self.s >= 2**31:
            raise BadInput(
                f"{self.points} points in each of {self.clusters} clusters are too many; ask for fewer"
            )
        if self.truncate and self.s == 1:
            raise BadInput(
                "truncate needs two concepts or more: with one, x̂ is the centre of the only cluster"
            )

    @classmethod
    def reading(
        cls, reading: str, mu: Sequence[float], sigma: float | Sequence[float] = 0.05, **sizes: Any
    ) -> World:
        """The world as the paper writes it, or as its published figures were drawn.

        - `reading`: "as-written" takes `sigma` as standard deviation; "as-drawn" takes it as the
          variance and always adds the cluster at the origin.
        - `sizes`: `dim`, `points`, `rotate`, `truncate`, and `origin` for the written world.
        """
        if check_reading(reading) == "as-written":
            return cls(_numbers("mu", mu), _scalar_or_tuple(sigma), **sizes)
        if "origin" in sizes:
            raise BadInput("the world as drawn always has the origin cluster; leave origin out")
        variance = _numbers("sigma", sigma)
        if any(x < 0 for x in variance):
            raise BadInput(f"sigma is a spread and cannot be negative; got {sigma}")
        spread = tuple(math.sqrt(x) for x in variance)
        deviation = spread if isinstance(sigma, Sequence | np.ndarray) else spread[0]
        return cls(_numbers("mu", mu), deviation, origin=True, **sizes)

    @property
    def s(self) -> int:
        """Number of concepts."""
        return len(self.mu)

    @property
    def clusters(self) -> int:
        """Number of training clusters, the one at the origin included."""
        return self.s + self.origin

    @property
    def size(self) -> int:
        """Number of training points."""
        return self.clusters * self.points

    @property
    def sigmas(self) -> np.ndarray:
        """Standard deviation along each concept axis [s]."""
        return np.broadcast_to(np.asarray(self.sigma, float), (self.s,)).copy()

    def second_moment(self) -> np.ndarray:
        """Diagonal a [dim] of the population's E[x x^T], before any truncation (App. C)."""
        a = np.zeros(self.dim)
        a[: self.s] = self.sigmas**2 + np.square(self.mu) / self.clusters
        return a

    def augmented_moment(self) -> np.ndarray:
        """Population moment [s+1, s+1] of (y, 1), whose eigenvalues are the rates of a model with biases."""
        mean = np.asarray(self.mu) / self.clusters
        moment = np.zeros((self.s + 1, self.s + 1))
        moment[:-1, :-1] = np.diag(self.second_moment()[: self.s])
        moment[:-1, -1] = moment[-1, :-1] = mean
        moment[-1, -1] = 1.0
        return moment

    def test_point(self) -> np.ndarray:
        """x̂ [s]: the corner that joins all concepts, in concept coordinates."""
        return np.asarray(self.mu, float)

    def corner(self, v: Sequence[int]) -> np.ndarray:
        """x̂(v) [s]: the corner with concept p present where v_p is 1."""
        if len(v) != self.s or any(bit not in (0, 1) for bit in v):
            raise BadInput(f"a corner needs {self.s} zeros and ones; got {tuple(v)}")
        return np.asarray(v, float) * self.test_point()

    def corners(self) -> np.ndarray:
        """All corners x̂(v) [2^s, s], v counting up in binary with the last concept fastest."""
        if self.s > MOST_CORNERS:
            raise BadInput(
                f"{self.s} concepts have 2^{self.s} corners; all of them are listed up to {MOST_CORNERS}"
            )
        return np.array([self.corner(v) for v in itertools.product((0, 1), repeat=self.s)])

    def centres(self) -> np.ndarray:
        """Centres of the training clusters [clusters, s], the origin last."""
        return _centres(self.test_point(), self.origin)

    def draw(self, key: jax.Array) -> Draw:
        """The training set of the run that owns `key`."""
        mu, sigma = jnp.asarray(self.test_point()), jnp.asarray(self.sigmas)
        return draw(key, self, mu, sigma)

    def sample_concepts(self, key: jax.Array) -> jax.Array:
        """Training points [N, s] along the concept axes, cluster by cluster."""
        return self.draw(key).y

    def rotation(self, key: jax.Array) -> jax.Array:
        """Orthonormal columns Q [dim, s]: where the concept axes point in the run that owns `key`."""
        return self.draw(key).axes

    def sample(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Inputs and targets [N, dim]: the same points, since the identity is to be learnt."""
        drawn = self.draw(key)
        x = drawn.y @ drawn.axes.T
        return x, x


def streams(key: jax.Array) -> jax.Array:
    """Keys [4] for what is random in the run that owns `key`: world, redraws, initial network, order."""
    return jax.random.split(key, 4)


def draw(key: jax.Array, shape: World, mu: jax.Array, sigma: jax.Array) -> Draw:
    """One training set with the sizes of `shape`, but distances [s] and deviations [s] of its own."""
    first, redraws, *_ = streams(key)
    # All normal numbers at once, which compiles in half the time; the data first, so that they do not
    # depend on dim, and cluster by cluster, so that the others stay what they are when the origin joins.
    normal = jax.random.normal(first, (shape.size + shape.dim, shape.s), float)
    centres = jnp.repeat(_centres(mu, shape.origin), shape.points, axis=0)

    def inside(y: jax.Array) -> jax.Array:
        return jnp.sum((y - mu) ** 2, axis=-1) < (jnp.min(mu) / 2) ** 2

    y, discarded = centres + sigma * normal[: shape.size], jnp.zeros((), int)
    if shape.truncate:
        # A centre is at least min mu away from x̂, so a new draw is inside with probability below 1/2.
        def again(state: Any) -> Any:
            number, y, out, discarded = state
            noise = jax.random.normal(jax.random.fold_in(redraws, number), y.shape, float)
            y = jnp.where(out[:, None], centres + sigma * noise, y)
            return number + 1, y, inside(y), discarded + jnp.sum(out)

        start = (jnp.zeros((), int), y, inside(y), discarded)
        _, y, _, discarded = jax.lax.while_loop(lambda state: jnp.any(state[2]), again, start)
    return Draw(
        y,
        axes=_axes(normal[shape.size :], shape.rotate),
        discarded=discarded,
        nearest=jnp.sqrt(jnp.min(jnp.sum((y - mu) ** 2, axis=-1))),
    )


def _axes(normal: jax.Array, rotate: bool) -> jax.Array:
    if not rotate:
        return jnp.eye(normal.shape[0], normal.shape[1])
    q, r = jnp.linalg.qr(normal)
    # The signs make Q unique, hence uniformly distributed (Mezzadri 2007).
    return q * jnp.sign(jnp.diagonal(r))


def check_reading(reading: str) -> str:
    """The reading itself, if there is such a one."""
    if reading not in READINGS:
        raise BadInput(
            f"no reading {reading!r}; there are {' and '.join(READINGS)}{nearest(str(reading), READINGS)}"
        )
    return reading


def _centres(mu: Any, origin: bool) -> Any:
    lib = np if isinstance(mu, np.ndarray) else jnp
    axes = lib.diag(mu)
    return lib.concatenate([axes, lib.zeros((1, axes.shape[1]))]) if origin else axes


def _scalar_or_tuple(value: Any) -> float | tuple[float, ...]:
    numbers = _numbers("sigma", value)
    return numbers if isinstance(value, Sequence | np.ndarray) else numbers[0]


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(float(x) for x in np.atleast_1d(np.asarray(value, dtype=float)).tolist())
    except (TypeError, ValueError):
        raise BadInput(f"{name} must be a number or a list of numbers; got {value!r}") from None
    if not all(math.isfinite(x) for x in numbers):
        raise BadInput(f"{name} must be finite; got {value!r}")
    return numbers
