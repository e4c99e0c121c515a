"""GPT on text: the training of figure 20."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.papers.rank.studies._training import Trained

if TYPE_CHECKING:
    from saltus.core.lab import Lab

__all__ = ["Text"]

TEXTS = ("plays", "shakespeare", "sotu", "wikitext-103")
SAMPLE = 20_000_000  # characters that pairs are learnt from
GPT2 = dict(
    depth=12, heads=12, width=768, head=64, context=256, batch=16, seeds=1, lr=3e-4, epochs=3, warm=0.0,
    points=None,
)  # fmt: skip
SCALES: dict[str, dict[str, dict[str, Any]]] = {
    "scale": {
        "small": {},
        "gpu": {**GPT2, "data": "sotu", "tokens": 8192, "epochs": 6, "compute": "bfloat16"},
        "paper": {**GPT2, "data": "wikitext-103", "tokens": 50257},
    }
}


@dataclass(frozen=True)
class Text(Trained):
    """A GPT and the text it learns."""

    scale: str = setting(
        "small",
        "small: four plays on two cores; gpu: GPT-2's size on speeches; paper: Wikitext-103",
        choices=("small", "gpu", "paper"),
    )
    data: str = setting("plays", "the text", choices=TEXTS)
    tokens: int = setting(0, "kinds of tokens: pairs of bytes merged; 0 for one a character", low=0)
    context: int = setting(32, "tokens of a window", low=2)
    heads: int = setting(4, "heads of each layer", low=1)
    lr: float = setting(2e-3, "largest learning rate", above=0)
    points: int | None = setting(5000, "windows learnt, drawn once from the text; none for all", low=1)
    batch: int = setting(16, "windows a step", low=1)
    epochs: int = setting(1, "passes over the text", low=1)
    warm: float = setting(0.1, "epochs of warm-up", low=0)
    seeds: int = setting(6, "networks trained", low=1)

    kind: ClassVar[str] = "text"
    presets: ClassVar[dict[str, Any]] = SCALES

    def check(self) -> None:
        if self.warm > self.epochs:
            raise BadInput(f"warm must be at most the number of epochs, {self.epochs}, not {self.warm:g}")
        if 0 < self.tokens < 256:
            raise BadInput(f"tokens must be 256 or more, or 0 for one a character, not {self.tokens}")

    def tables(self, lab: Lab) -> tuple[Any, Any]:
        from saltus import data
        from saltus.data import tokens
        from saltus.descent import network

        held = data.load(self.data, lab.show)
        whole = held.parts.get("train") or held.whole  # type: ignore[union-attr]
        if self.tokens:
            lab.show.say(f"learning {self.tokens:,} tokens")
            code: Any = tokens.Pairs.learn(whole[:SAMPLE], self.tokens)
        else:
            code = tokens.Characters.of(whole)
        train, test = network.tokens(code.encode(whole), self.context)
        if self.points is not None and self.points < len(train):
            drawn = np.sort(np.random.default_rng(self.base).permutation(len(train))[: self.points])
            train = replace(train, x=train.x[drawn], y=train.y[drawn])
        if self.batch > len(train):
            raise BadInput(f"batch must be at most the number of windows, {len(train)}, not {self.batch}")
        return train, test

    def network(self, train: Any) -> Any:
        from saltus import model

        kinds = 1 + int(max(train.x.max(), train.y.max()))
        return model.GPT(
            vocabulary=max(self.tokens, kinds), context=self.context, depth=self.depth, heads=self.heads,
            width=self.width, head=self.head, compute=self.numbers,
        )  # fmt: skip

    def steps(self, points: int) -> int:
        return self.epochs * (points // self.batch)

    def descent(self, steps: int) -> Any:
        from saltus import descent

        warm = int(self.warm * steps / self.epochs)
        rate = descent.rate.warm_constant(self.lr, warm=warm)
        return descent.adam(rate, epochs=self.epochs, batch=self.batch)

    def note(self) -> str:
        """The small print under a figure."""
        words = (
            "the paper's scale" if self.scale == "paper" else f"scale {self.scale}, smaller than the paper's"
        )
        kinds = f"{self.tokens:,} tokens" if self.tokens else "characters"
        if self.points is not None:
            kinds += f", {self.points:,} windows"
        return (
            f"{words}: GPT on {self.data} ({kinds}, windows of {self.context}), {self.size()}; adam, "
            f"lr {self.lr:g}, batch {self.batch}, {self.epochs} epoch{'s' if self.epochs > 1 else ''}"
        )
