"""What the studies of the symmetric two-layer model share: their settings, starts and runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from saltus._lazy import np
from saltus.core.errors import BadInput
from saltus.core.settings import reading, setting
from saltus.papers import sim
from saltus.papers.sim.ranges import check_signals

__all__ = ["DRAWN", "THETAS", "Symmetric"]

THETAS = (0.001, 0.01, 0.05)
DRAWN: dict[str, Any] = {"dynamics": "recursion", "power": 2}
RK4_REACH = 0.2  # largest step of the flow, in time constants of the fastest axis: error below 1e-6


@dataclass(frozen=True)
class Symmetric:
    """A world, a distribution of starts and a way to move."""

    reading: str = reading()
    mu: tuple[float, ...] = setting((1.0, 1.5), "signal strength of each concept", above=0)
    sigma: tuple[float, ...] = setting((0.05, 0.05), "standard deviation along each concept axis", low=0)
    dim: int = setting(3, "dimension d of the data", low=1, high=6)
    width: int = setting(0, "columns d' of U; 0 for as many as d", low=0)
    scale: float = setting(0.2, "entries of U(0) are uniform between 0 and this", above=0, high=1e6)
    dynamics: str = setting(
        "flow", "flow of U, gd on U, or recursion D.2", choices=("flow", "gd", "recursion")
    )
    power: int = setting(1, "1 for A in the dynamics, 2 for A squared", choices=(1, 2))
    eta: float = setting(0.01, "step of gd and of the recursion, in the paper's clock", above=0)
    horizon: float = setting(20.0, "how long, in the paper's clock", above=0)
    starts: int = setting(2048, "starts in the census", low=8)
    base: int = setting(0, "key that all starts share", low=0, high=2**32 - 1)

    presets: ClassVar[dict[str, Any]] = {"reading": {"as-drawn": DRAWN}}
    looks: ClassVar[int] = 240
    logarithmic: ClassVar[bool] = True

    def check(self) -> None:
        if len(self.sigma) != len(self.mu):
            raise BadInput(f"sigma needs one value per concept ({len(self.mu)}), not {len(self.sigma)}")
        check_signals(self.mu, self.sigma)
        if self.s > self.dim:
            raise BadInput(
                f"{self.s} concepts do not fit in dimension {self.dim}; dim must be at least {self.s}"
            )
        if self.horizon / self.eta > 1e6:
            raise BadInput("more than a million steps: lower horizon or raise eta")

    @property
    def s(self) -> int:
        return len(self.mu)

    @property
    def columns(self) -> int:
        return self.width or self.dim

    def moment(self) -> Any:
        """Diagonal of A [d]."""
        return sim.World(self.mu, self.sigma, dim=self.dim).second_moment()

    def rates(self) -> Any:
        """What takes the place of a in the dynamics [d]: a, or a squared."""
        return self.moment() ** self.power

    def target(self) -> Any:
        """x̂ [d]."""
        return np.pad(np.asarray(self.mu, float), (0, self.dim - self.s))

    def step(self, how: str) -> float:
        """Step size; the flow's is as large as its accuracy allows."""
        return min(0.05, RK4_REACH / float(self.rates().max())) if how == "flow" else self.eta

    def draw_starts(self, number: int, **how: Any) -> Any:
        """U(0) [number, d, d'], each from its run's own key."""
        from saltus.papers.sim import symmetric

        how = {"start": "uniform", "scale": self.scale, **how}
        return symmetric.starts(number, self.dim, self.columns, base=self.base, **how)

    def evolve(
        self, U0: Any, how: str, horizon: float | None = None, looks: int = 0, **more: Any
    ) -> dict[str, Any]:
        """Run from U0 [run, d, d'] and watch; `time` [T] and `path_*` at so many looks."""
        from saltus.papers.sim import symmetric as engine

        eta = self.step(how)
        steps = max(1, round((horizon or self.horizon) / eta))
        watch = (
            engine.Descents(THETAS),
            engine.Hits((0.5,)),
            engine.Lowest(),
            engine.Diverged(),
            engine.Rises(),
        )
        more = {"watch": watch, "power": self.power, "at": self.look_at(steps, looks), **more}
        found = engine.evolve(
            self.moment(), self.target(), len(U0), how=how, eta=eta, steps=steps, start=U0, **more
        )
        return {**found, "time": np.asarray(found.get("at", [])) * eta}

    def look_at(self, steps: int, looks: int) -> Any:
        if not looks:
            return None
        even = np.linspace(0, steps, looks)
        if self.logarithmic:
            even = np.concatenate([[0], np.geomspace(max(1, steps // 20000), steps, looks)])
        return np.unique(np.round(even).astype(int))

    def note(self) -> str:
        """Settings, in the small print under a figure."""
        ways = {"flow": "exact flow of U", "gd": "gradient descent on U", "recursion": "recursion D.2 on W"}
        words = f"{self.reading}: {ways[self.dynamics]} with {'A' if self.power == 1 else 'A²'}"
        words += (
            f"{'' if self.dynamics == 'flow' else f', η = {self.eta:g}'}; d = {self.dim}, d' = {self.columns}"
        )
        mu, sigma = (", ".join(f"{x:g}" for x in v) for v in (self.mu, self.sigma))
        return f"{words}, μ = ({mu}), σ = ({sigma}); U(0) ~ U(0, {self.scale:g})"
