"""Conditions 3.1, C.1 and D.1 item by item, each with how far it is from holding."""

from __future__ import annotations

import math
from typing import NamedTuple

from saltus.core.errors import BadInput

__all__ = ["KINDS", "Item", "check", "window"]

KINDS = ("both", "classifier", "denoiser")


class Item(NamedTuple):
    """One inequality: `margin` is the side that must be larger over the other, so that it holds from 1 up."""

    name: str
    margin: float

    @property
    def holds(self) -> bool:
        return self.margin >= 1


def check(
    kind: str, *, n: int, d: int, m: int, mu: float, sigma_xi: float, sigma0: float, eta: float,
    alpha: float = math.exp(-0.2), beta: float = math.sqrt(1 - math.exp(-0.4)), C: float = 1.0,
    logs: bool = False, delta: float = 0.1,
) -> list[Item]:  # fmt: skip
    """Every inequality of Condition 3.1 ("both"), C.1 ("classifier") or D.1 ("denoiser").

    The paper gives orders: `C` is the constant every larger side must beat the smaller one by, and with
    `logs` so is log(n m d / delta), the least that its polylogarithmic factors can stand for. Quantities that
    are to be of order 1 must lie between 0.1 and 10.
    """
    if kind not in KINDS:
        raise BadInput(f"the condition is one of {', '.join(KINDS)}, not {kind!r}")
    s, factor = sigma_xi, C * (math.log(n * m * d / delta) if logs else 1.0)
    found: list[Item] = []

    def least(name: str, value: float, bound: float, by: float = factor) -> None:
        found.append(Item(name, value / (by * bound)))

    def most(name: str, value: float, bound: float) -> None:
        found.append(Item(name, bound / (factor * value)))

    def order_one(name: str, value: float) -> None:
        found.append(Item(f"{name} = Θ(1)", 10 * min(value, 1 / value)))

    def step() -> None:
        if kind == "classifier":
            most("η ≤ m‖μ‖⁻²", eta, m / mu**2)
        most("η ≤ nmσ₀σξ⁻¹d⁻¹ᐟ²", eta, n * m * sigma0 / (s * math.sqrt(d)))
        most("η ≤ nmσξ⁻²d⁻¹", eta, n * m / (s**2 * d))

    def largest_start() -> None:
        most("σ₀ ≤ m⁻¹ᐟ⁶d⁻¹ᐟ⁶σξ¹ᐟ³n⁻¹ᐟ³", sigma0, (m * d) ** (-1 / 6) * (s / n) ** (1 / 3))
        most("σ₀ ≤ m⁻¹ᐟ⁶d⁻⁷ᐟ¹²σξ⁻¹ᐟ³n¹ᐟ³", sigma0, m ** (-1 / 6) * d ** (-7 / 12) * (n / s) ** (1 / 3))
        most("σ₀ ≤ d⁻³ᐟ⁴σξ⁻¹n", sigma0, d**-0.75 * n / s)

    if kind == "classifier":
        least("d ≥ n²mσξ⁻¹‖μ‖", d, n**2 * m * mu / s)
        least("d ≥ n⁴m", d, n**4 * m)
        least("d ≥ n⁴m², which the window of σ₀ needs", d, n**4 * m**2)
        least("m ≥ log(n/δ)", m, math.log(n / delta), C)
        least("n ≥ log(m/δ)", n, math.log(m / delta), C)
        least("σ₀ ≥ n²mσξ⁻¹d⁻¹", sigma0, n**2 * m / (s * d))
        most("σ₀ ≤ ‖μ‖⁻¹", sigma0, 1 / mu)
        most("σ₀ ≤ σξ⁻¹d⁻¹ᐟ²", sigma0, 1 / (s * math.sqrt(d)))
        step()
        return found
    if kind == "both":
        least("d ≥ n⁷m⁵", d, n**7 * m**5)
        least("n ≥ log(m/δ)", n, math.log(m / delta), C)
        least("σ₀ ≥ n²mσξ⁻¹d⁻¹", sigma0, n**2 * m / (s * d))
        largest_start()
        step()
        order_one("‖μ‖", mu)
        least("σξ ≥ n⁵ᐟ²m⁷ᐟ⁴d⁻⁵ᐟ⁸", s, n**2.5 * m**1.75 * d**-0.625)
        least("σξ ≥ nm¹ᐟ⁶d⁻¹", s, n * m ** (1 / 6) / d)
        most("σξ ≤ d⁻¹ᐟ⁴", s, d**-0.25)
    else:
        least("d ≥ n⁴", d, n**4)
        least("d ≥ nσξ⁻¹", d, n / s)
        least("n ≥ log(m/δ)", n, math.log(m / delta), C)
        order_one("m", m)
        least("σ₀ ≥ nσξ⁻¹d⁻⁵ᐟ⁴", sigma0, n / s * d**-1.25)
        largest_start()
        order_one("‖μ‖", mu)
        most("SNR⁻¹ ≤ d¹ᐟ⁴", s * math.sqrt(d) / mu, d**0.25)
    order_one("α", alpha)
    order_one("β", beta)
    return found


def window(n: int, d: int, m: int) -> tuple[float, float]:
    """The chi = n SNR^2 that Condition 3.1 leaves room for, |mu| being 1; empty where the first is larger."""
    return n * d**-0.5, min(n**-4.0 * m**-3.5 * d**0.25, d / (n * m ** (1 / 3)))
