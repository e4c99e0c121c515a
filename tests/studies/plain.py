"""A study made for tests: every kind of setting and array, parts, a law, claims, a drawing.

Environment: SALTUS_TEST_CALLS names a file that gets a line for every part computed; SALTUS_TEST_DELAY is how
many seconds a part takes.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import saltus
from saltus import claim, stats
from saltus._lazy import np, xr


@saltus.study("tests/plain", figure="0", cost="nothing", checks=("the growth is the one asked for",))
@dataclass(frozen=True)
class Plain:
    """Growth is exponential.

    A longer word about it.
    """

    rate: float = saltus.setting(1.0, "the rate of growth", above=0, high=1e6)
    runs: int = saltus.setting(8, "how many runs", low=1, high=64)
    parts: int = saltus.setting(3, "how many parts the runs are cut into", low=1, high=16)
    noisy: bool = saltus.setting(True, "whether there is noise")
    name: str = saltus.setting("growth", "what it is called")
    note: str = saltus.setting("", "anything, or nothing")
    kind: str = saltus.setting("up", "the direction", choices=("up", "down"))
    mode: Literal["fine", "coarse"] = saltus.setting("fine", "how fine the grid is")
    cut: float | None = saltus.setting(None, "where to stop", low=0)
    widths: tuple[int, ...] = saltus.setting((1, 2), "sizes", low=0)
    span: tuple[float, float] = saltus.setting((0.0, 1.0), "from where to where")
    mu: tuple[tuple[float, float], ...] = saltus.setting(((1.0, 2.0), (2.0, 2.0)), "signals")
    layers: tuple[tuple[int, ...], ...] = saltus.setting(((1,), (2, 3)), "ragged sizes")
    words: tuple[str, ...] = saltus.setting(("a", "b"), "labels")
    flags: tuple[bool, ...] = saltus.setting((True, False), "switches")
    truth: str = saltus.setting("holds", "how the claim comes out", choices=("holds", "fails", "lost"))
    colour: str = saltus.setting("blue", "of the line", drawing=True)
    reading: str = saltus.reading()

    presets: ClassVar[dict[str, Any]] = {"reading": {"as-drawn": {"rate": 2.0, "widths": (3, 4)}}}

    def check(self) -> None:
        if self.span[0] >= self.span[1]:
            raise saltus.BadInput("span must go from a smaller number to a larger one")

    def run(self, lab: saltus.Lab) -> Any:
        with lab.progress("parts") as tick:
            found = []
            for k in range(self.parts):
                found.append(lab.keep(f"part {k}", lambda k=k: self.part(k)))
                tick(k + 1, self.parts)
        return xr.concat(
            found, "seed", data_vars="minimal", coords="minimal", compat="override", join="exact"
        )

    def part(self, k: int) -> Any:
        if "SALTUS_TEST_CALLS" in os.environ:
            with open(os.environ["SALTUS_TEST_CALLS"], "a") as calls:
                calls.write(f"{k}\n")
        time.sleep(float(os.environ.get("SALTUS_TEST_DELAY", "0")))
        t = np.linspace(*self.span, 5)
        noise = np.random.default_rng(k).standard_normal((self.runs, 5)) * (0.01 if self.noisy else 0)
        x = np.exp(self.rate * t) + noise if self.truth != "lost" else np.full((self.runs, 5), np.nan)
        return xr.Dataset(
            {
                "x": (("seed", "t"), x, {"units": "seconds", "note": "as (in) a law"}),
                "odd": ("five", np.array([np.nan, np.inf, -np.inf, -0.0, 1e-320])),
                "up": (("seed",), noise[:, 0] > 0),
                "label": ("two", np.array(["é", "longer ☃"], dtype=object)),
                "none": (("seed", "nothing"), np.zeros((self.runs, 0))),
                "count": (("seed",), np.arange(self.runs, dtype=np.int32)),
                "diverged_at": (("seed",), np.where(self.truth == "lost", 3 + np.arange(self.runs), -1)),
                "single": ((), np.float32(0.1)),
            },
            coords={"seed": np.arange(self.runs) + self.runs * k, "t": t, "two": ["one", "two"]},
            attrs={"made": "by a test", "sizes": [1, 2]},
        )

    def law(self, record: Any) -> Any:
        return xr.Dataset({"x": ("t", np.exp(self.rate * record.t.values))}, coords={"t": record.t})

    def claims(self, record: Any, law: Any) -> Any:
        gap = stats.median(saltus.distance(record, law).x.values)
        other = stats.median(saltus.distance(record, 2 * law).x.values)
        yield claim.below(
            "near",
            "theory [and] run are near",
            gap,
            0.0 if self.truth == "fails" else 0.1,
            control=("twice [the] law", other),
        )
        yield claim.above(
            "runs",
            "there are runs",
            stats.exact(self.runs * self.parts),
            -np.inf,
            control=("none", stats.exact(-np.inf)),
        )

    def draw(self, record: Any, law: Any) -> Any:
        from saltus.report import figure

        fig, ax = figure.sheet()
        figure.band(ax[0, 0], record.t, record.x.values, label="seen", colour=self.colour)
        figure.theory(ax[0, 0], law.t, law.x)
        figure.finding(fig, "Growth is exponential", "as asked")
        return fig
