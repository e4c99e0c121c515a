"""Conditions 3.1, C.1 and D.1 item by item, each with how far it is from holding."""

from __future__ import annotations

import math
from typing import NamedTuple

from saltus.core.errors import BadInput

__all__ = ["KINDS", "Item", "check", "window"]

KINDS = ("both", "classifier", "denoiser")


class Item(NamedTuple):
    """One inequality; `log_margin` is ln of the side that must be larger over the other: 0 or more holds."""

    name: str
    log_margin: float

    @property
    def margin(self) -> float:
        """The larger side over the other, as far as a float goes."""
        return math.exp(self.log_margin) if self.log_margin < 700 else math.inf

    @property
    def holds(self) -> bool:
        return self.log_margin >= 0


def check(
    kind: str, *, n: int, d: int, m: int, mu: float, sigma_xi: float, sigma0: float, eta: float,
    alpha: float = math.exp(-0.2), beta: float = math.sqrt(1 - math.exp(-0.4)), C: float = 1.0,
    logs: bool = False, delta: float = 0.1,
) -> list[Item]:  # fmt: skip
    """Every inequality of Condition 3.1 ("both"), C.1 ("classifier") or D.1 ("denoiser").

    The paper gives orders: `C` is the constant every larger side must beat the smaller one by, and with
    `logs` so is log(n m d / delta), the least that its polylogarithmic factors can stand for. Quantities that
    are to be of order 1 must lie between 0.1 and 10. Everything is compared in logarithms, so `n`, `d`, `m`
    may be integers of any size.
    """
    if kind not in KINDS:
        raise BadInput(f"the condition is one of {', '.join(KINDS)}, not {kind!r}")
    given = dict(n=n, d=d, m=m, mu=mu, sigma_xi=sigma_xi, sigma0=sigma0, eta=eta, alpha=alpha, beta=beta)
    for name, value in {**given, "C": C, "delta": delta}.items():
        if not value > 0 or value == math.inf:
            raise BadInput(f"{name} must be above 0 and finite, not {value}")
    N, D, M, MU, S, S0, ETA, A, B = (math.log(v) for v in given.values())
    by_delta = {name: v - math.log(delta) for name, v in (("n", N), ("m", M))}  # log(n/δ), log(m/δ)
    many = N + M + D - math.log(delta)
    if min(*by_delta.values(), many) <= 0:
        raise BadInput(f"delta must be below n, m and nmd, not {delta:g}")
    constant = math.log(C)
    factor = constant + (math.log(many) if logs else 0.0)
    found: list[Item] = []

    def least(name: str, value: float, bound: float, by: float = factor) -> None:
        found.append(Item(name, value - bound - by))

    def most(name: str, value: float, bound: float) -> None:
        found.append(Item(name, bound - value - factor))

    def order_one(name: str, value: float) -> None:
        found.append(Item(f"{name} = Θ(1)", math.log(10) - abs(value)))

    def step() -> None:
        if kind == "classifier":
            most("η ≤ m‖μ‖⁻²", ETA, M - 2 * MU)
        most("η ≤ nmσ₀σξ⁻¹d⁻¹ᐟ²", ETA, N + M + S0 - S - D / 2)
        most("η ≤ nmσξ⁻²d⁻¹", ETA, N + M - 2 * S - D)

    def largest_start() -> None:
        most("σ₀ ≤ m⁻¹ᐟ⁶d⁻¹ᐟ⁶σξ¹ᐟ³n⁻¹ᐟ³", S0, -(M + D) / 6 + (S - N) / 3)
        most("σ₀ ≤ m⁻¹ᐟ⁶d⁻⁷ᐟ¹²σξ⁻¹ᐟ³n¹ᐟ³", S0, -M / 6 - 7 * D / 12 + (N - S) / 3)
        most("σ₀ ≤ d⁻³ᐟ⁴σξ⁻¹n", S0, -0.75 * D + N - S)

    if kind == "classifier":
        least("d ≥ n²mσξ⁻¹‖μ‖", D, 2 * N + M + MU - S)
        least("d ≥ n⁴m", D, 4 * N + M)
        least("d ≥ n⁴m², which the window of σ₀ needs", D, 4 * N + 2 * M)
        least("m ≥ log(n/δ)", M, math.log(by_delta["n"]), constant)
        least("n ≥ log(m/δ)", N, math.log(by_delta["m"]), constant)
        least("σ₀ ≥ n²mσξ⁻¹d⁻¹", S0, 2 * N + M - S - D)
        most("σ₀ ≤ ‖μ‖⁻¹", S0, -MU)
        most("σ₀ ≤ σξ⁻¹d⁻¹ᐟ²", S0, -S - D / 2)
        step()
        return found
    if kind == "both":
        least("d ≥ n⁷m⁵", D, 7 * N + 5 * M)
        least("n ≥ log(m/δ)", N, math.log(by_delta["m"]), constant)
        least("σ₀ ≥ n²mσξ⁻¹d⁻¹", S0, 2 * N + M - S - D)
        largest_start()
        step()
        order_one("‖μ‖", MU)
        least("σξ ≥ n⁵ᐟ²m⁷ᐟ⁴d⁻⁵ᐟ⁸", S, 2.5 * N + 1.75 * M - 0.625 * D)
        least("σξ ≥ nm¹ᐟ⁶d⁻¹", S, N + M / 6 - D)
        most("σξ ≤ d⁻¹ᐟ⁴", S, -D / 4)
    else:
        least("d ≥ n⁴", D, 4 * N)
        least("d ≥ nσξ⁻¹", D, N - S)
        least("n ≥ log(m/δ)", N, math.log(by_delta["m"]), constant)
        order_one("m", M)
        least("σ₀ ≥ nσξ⁻¹d⁻⁵ᐟ⁴", S0, N - S - 1.25 * D)
        largest_start()
        order_one("‖μ‖", MU)
        most("SNR⁻¹ ≤ d¹ᐟ⁴", S + D / 2 - MU, D / 4)
    order_one("α", A)
    order_one("β", B)
    return found


def window(n: int, d: int, m: int) -> tuple[float, float]:
    """ln of the chi = n SNR^2 that Condition 3.1 leaves room for, |mu| being 1; empty where the first is
    larger."""
    N, D, M = math.log(n), math.log(d), math.log(m)
    return N - D / 2, min(-4 * N - 3.5 * M + D / 4, D - N - M / 3)
