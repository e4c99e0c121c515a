"""Theorem 4.1 beside trained one-layer networks, each from its own start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saltus._lazy import jax, jnp, np, xr
from saltus.core import claim, stats
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.core.study import study
from saltus.papers import sim
from saltus.papers.sim.studies import _checks, _common, _theory, _trends
from saltus.papers.sim.studies._common import Case, Trained, case_name, learnt

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


@study(
    "sim/one-layer",
    cites="yang2025dynamics",
    figure="Theorem 4.1",
    cost="a few seconds on two cores",
    checks=(
        "full-batch descent is the closed form with (1 - eta a)^n for exp(-a t), to rounding",
        "that is the theorem's flow in the limit of small steps",
        "the sum in the theorem, printed up to s, has to run over all axes",
        "networks trained with batches follow it from their own start",
        "their rate is -ln(1 - eta a)/eta",
        "and not a",
    ),
)
@dataclass(frozen=True)
class OneLayerTheory(Trained):
    """One layer does what Theorem 4.1 says, at steps of any size.

    Two checks. Full-batch descent on the population loss, by automatic differentiation, against the closed
    form: rounding. Networks trained with batches against the same form from their own start: a per cent.
    As drawn there are biases, to which the theorem does not apply, and its affine extension does.
    """

    mu: tuple[tuple[float, float], ...] = setting(((1.0, 2.0), (3.0, 2.0)), "signals", above=0)
    sigma: float = setting(0.05, "spread of both clusters, in the unit of the reading", low=0)
    seeds: int = setting(128, "runs of each setting", low=1)
    cases: int = setting(20, "random networks and inputs of the exact check", low=1)
    exact_dim: int = setting(6, "dimension of the exact check", low=3)
    step_sizes: tuple[float, ...] = setting((0.1, 0.01, 0.001), "step sizes of the exact check", above=0)
    horizon: float = setting(4.0, "time the exact check covers", above=0)

    def check(self) -> None:
        super().check()
        if len(set(self.mu)) < 2:
            raise BadInput("mu needs two pairs or more: the law of one is the control of the other")

    def trained(self) -> list[Case]:
        return [(pair, (self.sigma, self.sigma)) for pair in self.mu]

    def run(self, lab: Lab) -> xarray.Dataset:
        data = _common.train_cases(self, lab, self.trained())
        return data.merge(lab.keep("full batch", self.descend))

    def descend(self) -> xarray.Dataset:
        """Full-batch descent on the population loss (eq. 4.1) at random starts and inputs."""
        d, key = self.exact_dim, jax.random.key(self.base)
        keys = jax.random.split(key, 3)
        start = jax.random.normal(keys[0], (self.cases, d, d + self.drawn)) / d**0.5
        at = jax.random.normal(keys[1], (self.cases, d))
        moment = jnp.asarray(self.moment())
        target = jnp.eye(d, d + self.drawn)

        def loss(W: Any) -> Any:
            return jnp.trace((W - target) @ moment @ (W - target).T) / 2

        def descent(W: Any, eta: Any, count: int) -> Any:
            def move(W: Any, _: None) -> tuple[Any, None]:
                return W - eta * jax.grad(loss)(W), None

            return jax.lax.scan(move, W, None, length=count)[0]

        whole = jax.jit(jax.vmap(descent, in_axes=(0, None, None)), static_argnums=2)
        z = jnp.concatenate([at, jnp.ones((self.cases, 1))], axis=1) if self.drawn else at
        reached = [
            jnp.einsum("ckl,cl->ck", whole(start, eta, round(self.horizon / eta)), z)
            for eta in self.step_sizes
        ]
        return xr.Dataset(
            {
                "gd_output": (("eta", "case", "coordinate"), np.stack([np.asarray(r) for r in reached])),
                "gd_start": (("case", "coordinate", "entry"), np.asarray(start)),
                "gd_input": (("case", "coordinate"), np.asarray(at)),
            },
            coords={"eta": list(self.step_sizes)},
        )

    def moment(self) -> Any:
        """Second moment of x, with biases of (x, 1), of the first setting in `exact_dim` dimensions."""
        world = self.protocol(*self.trained()[0], dim=self.exact_dim).world
        if not self.drawn:
            return np.diag(world.second_moment())
        return np.asarray(
            sim.law.affine.moment(world.test_point(), world.sigmas, self.exact_dim, world.origin)
        )

    def law(self, record: xarray.Dataset) -> xarray.Dataset:
        """The laws of the runs, and of full-batch descent: `gd_` discrete, `flow_`, and `printed_output`.

        `printed_output` is the closed form with the sum up to s; `theorem` the law without biases.
        """
        data = _theory.one_layer_law(self, record, bias=self.drawn)
        data["theorem"] = _theory.one_layer_law(self, record, bias=False).g
        starts, inputs, law = record.gd_start.values, record.gd_input.values, sim.law
        M, d, a = self.moment(), self.exact_dim, np.diag(self.moment())[: self.exact_dim]
        found: dict[str, list[Any]] = {"gd_output": [], "flow_output": [], "printed_output": []}
        for eta in record.eta.values:
            n = round(self.horizon / eta)
            steps, times = np.asarray([n]), np.asarray([n * eta])
            for name in found:
                one = []
                for W, z in zip(starts, inputs, strict=True):
                    cut = np.where(np.arange(d) < 2, z, 0) if name == "printed_output" else z
                    if self.drawn:
                        W0, b0 = W[:, :d], W[:, d]
                        if name == "flow_output":
                            y = law.affine.output(times, M, W0, b0, cut).output
                        else:
                            y = law.affine.discrete_output(steps, eta, M, W0, b0, cut).output
                    elif name == "flow_output":
                        y = law.one_layer.output(times, a, W, cut, 2).output
                    else:
                        y = law.one_layer.discrete_output(steps, eta, a, W, cut, 2).output
                    one.append(np.asarray(y)[0])
                found[name].append(np.stack(one))
        for name, values in found.items():
            data[name] = record.gd_output.copy(data=np.stack(values))
        return data

    def claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        def gap(name: str) -> Any:
            return abs(record.gd_output - law[name]).max(("case", "coordinate")).values

        yield claim.below(
            "closed-form",
            "full-batch descent is the closed form with (1 - eta a)^n (largest gap of all)",
            stats.worst(gap("gd_output")),
            1e-10,
            control=("with the flow's exp(-a t)", stats.worst(gap("flow_output"))),
        )
        yield claim.within(
            "flow-is-the-limit",
            "the gap to the flow falls in proportion to the step (exponent between the two smallest steps)",
            self.order(gap("flow_output")),
            (0.9, 1.1),
            control=("gap to the closed form, which is rounding", self.order(gap("gd_output"))),
        )
        yield claim.below(
            "sum-to-s",
            "the noise term summed up to s, as printed, gives the output at any input (largest gap)",
            stats.worst(gap("printed_output")),
            1e-10,
            control=("the flow's form", stats.worst(gap("flow_output"))),
            expected=False,
            because="inputs off the first s axes keep their start: the sum has to run over all d axes",
        )
        yield from self.trained_claims(record, law)

    def order(self, gaps: Any) -> stats.Estimate:
        """Exponent p of gap ~ eta^p between the two smallest step sizes."""
        if len(self.step_sizes) < 2:
            return stats.exact(float("nan"))
        small = np.argsort(self.step_sizes)[:2]
        eta, gaps = np.asarray(self.step_sizes)[small], np.maximum(gaps[small], 1e-300)
        return stats.exact(float(np.diff(np.log(gaps))[0] / np.diff(np.log(eta))[0]), self.cases)

    def trained_claims(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        g = learnt(record)
        yield from _checks.follows_law(record, g, law)
        shifted = law.assign(theorem=law.theorem.copy(data=np.roll(law.theorem.values, 1, axis=1)))
        other = stats.median(_checks.distances(record, g, shifted, "theorem"))
        yield claim.below(
            "theorem",
            "each run follows Theorem 4.1, which has no biases (relative distance, median over runs)",
            stats.median(_checks.distances(record, g, law, "theorem")),
            0.02,
            control=("from another network's start", other),
            expected=not self.drawn,
            because="the networks as drawn have biases; their law is the affine one" if self.drawn else "",
        )
        yield from self.rates(record, law)

    def rates(self, record: xarray.Dataset, law: xarray.Dataset) -> Iterator[Claim]:
        """The rate of the mean growth term on the faster axis: the output less what the start adds to it."""
        case = self.trained()[0]
        name, eta, steps = case_name(case), _theory.step_size(self), record.step.values
        a = _theory.rates(self, *case)
        fast, slow = int(np.argmax(a)), int(np.argmin(a))
        mine = law.g_median.sel(setting=name).transpose("axis", "step").values
        own = _trends.fitted_rate(steps, mine, eta, low=0.05)
        seen = (learnt(record) - law.g + law.g_median).sel(setting=name)
        seen = seen.transpose("seed", "step", "axis").values

        def ratio(axis: int, over: float) -> stats.Estimate:
            return stats.bootstrap(
                seen[..., axis],
                lambda v: float(_trends.fitted_rate(steps, v.mean(axis=0), eta, low=0.05)) / over,
            )

        yield claim.within(
            "discrete-rate",
            f"growth on axis {fast + 1} ends at the rate of the law with steps of this size (ratio)",
            ratio(fast, own[fast]),
            (0.95, 1.05),
            control=(f"axis {slow + 1}", ratio(slow, own[fast])),
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            discrete = float(np.log1p(-eta * a[fast]) / -eta)
        why = "biases slow the end of both axes" if self.drawn else (
            f"at steps of {eta:g} the rate is -ln(1 - eta a)/eta = {discrete:.4g}"
        )  # fmt: skip
        same = not self.drawn and abs(discrete / a[fast] - 1) < 0.05
        yield claim.within(
            "flow-rate",
            f"growth on axis {fast + 1} ends at the flow's rate a_{fast + 1} = {a[fast]:.4g} (ratio)",
            ratio(fast, a[fast]),
            (0.95, 1.05),
            control=(f"axis {slow + 1}", ratio(slow, a[fast])),
            expected=same,
            because="" if same else why,
        )

    def draw(self, record: xarray.Dataset, law: xarray.Dataset) -> Figure:
        from saltus.papers.sim.studies import _pictures

        return _pictures.theorem(self, record, law)
