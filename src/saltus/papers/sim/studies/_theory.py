"""The one-layer laws of a record of trained networks: Theorem 4.1, or with biases the affine law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saltus._lazy import jax, np, xr
from saltus.papers import sim
from saltus.papers.sim.studies._common import Trained

if TYPE_CHECKING:
    import xarray

__all__ = ["growth", "one_layer_law", "rates", "step_size"]


def step_size(study: Trained) -> float:
    """The learning rate on the paper's loss, half the squared error."""
    return study.lr * 2 * study.protocol((1.0, 1.0), (0.05, 0.05)).loss_factor


def rates(study: Trained, mu: Any, sigma: Any) -> Any:
    """a_k of Theorem 4.1 on the two concept axes."""
    return study.protocol(tuple(mu), tuple(sigma)).world.second_moment()[:2]


def _outputs(
    study: Trained, mu: Any, sigma: Any, steps: Any, start: Any, offset: Any, bias: bool, slower: int = 1
) -> Any:
    how, eta = study.protocol(tuple(mu), tuple(sigma)), step_size(study) / slower
    if bias:
        moment = how.world.augmented_moment()
        run = jax.vmap(lambda W, b: sim.law.affine.discrete_output(steps, eta, moment, W, b, mu).output)
        return np.asarray(run(start, offset))
    a = how.world.second_moment()[:2]
    free = jax.vmap(lambda W: sim.law.one_layer.discrete_output(steps, eta, a, W, mu).output)
    return np.asarray(free(start))


def growth(study: Trained, mu: Any, sigma: Any, steps: Any, bias: bool, slower: int = 1) -> Any:
    """What is learnt, g [step, axis], from a start at zero: the median over symmetric random starts.

    slower: how many times smaller the steps are than the study's.
    """
    nothing = np.zeros((1, 2, 2)), np.zeros((1, 2))
    return _outputs(study, mu, sigma, np.asarray(steps), *nothing, bias, slower)[0] / np.asarray(mu)


def one_layer_law(study: Trained, record: xarray.Dataset, bias: bool) -> xarray.Dataset:
    """The exact mean of one-layer descent on fresh batches, from each network's own start.

    **Returns:** `g` [setting, seed, step, axis] from each start, `g_mirror`, the same from the opposite start
    (as likely as itself), and `g_median` [setting, step, axis].
    """
    steps = record.step.values
    own: list[Any] = []
    mirror: list[Any] = []
    median: list[Any] = []
    for name in record.setting.values:
        one = record.sel(setting=name)
        mu, sigma = one.mu.values, one.sigma.values
        for found, sign in ((own, 1), (mirror, -1)):
            start = sign * one.start.values, sign * one.offset.values
            found.append(_outputs(study, mu, sigma, steps, *start, bias) / mu)
        median.append(growth(study, mu, sigma, steps, bias))
    data = xr.Dataset(
        {
            "g": (("setting", "seed", "step", "axis"), np.stack(own)),
            "g_mirror": (("setting", "seed", "step", "axis"), np.stack(mirror)),
            "g_median": (("setting", "step", "axis"), np.stack(median)),
        },
        coords={name: record[name] for name in ("setting", "seed", "step", "axis")},
    )
    data.g.attrs.update(long_name="learnt share by the law, from each start", units="1")
    data.g_mirror.attrs.update(long_name="learnt share by the law, from each opposite start", units="1")
    data.g_median.attrs.update(long_name="learnt share by the law, median over starts", units="1")
    return data
