"""What the studies of noisy images share: their settings, and one run's data, start and coordinates."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np
from saltus.core.errors import BadInput
from saltus.core.settings import Presets, setting

if TYPE_CHECKING:
    from saltus.core.progress import Silent
    from saltus.papers.features.images import Drawn, NoisyImages

__all__ = ["SETS", "NoisyPictures", "Run", "describe"]

SETS = ("auto", "mnist", "digits", "fashion-mnist")


@dataclass(frozen=True)
class NoisyPictures:
    """Settings of the training on noisy images (Section 5.2); what the paper leaves open is named as such."""

    presets: ClassVar[Presets] = {"data": {}}  # named in every output

    data: str = setting("auto", "pictures; auto: MNIST where it can be had, else digits", choices=SETS)
    snr: float = setting(0.1, "factor on the pictures, the paper's SNR with a tilde", above=0)
    t: float = setting(0.2, "diffusion time", above=0, high=10)
    classes: tuple[int, ...] = setting((0, 1), "classes taken", low=0, high=9)
    per_class: int = setting(50, "training pictures of each class", low=2, high=2000)
    neurons: int = setting(
        100, "neurons of the denoiser, and of each of the two halves of the classifier", low=2
    )
    sigma0: float = setting(0.01, "standard deviation of the first weights", above=0)
    eta: float = setting(
        0.5, "the denoiser's step, that of the synthetic experiment (not given here)", above=0
    )
    iterations: int = setting(40000, "the denoiser's iterations, as there (not given here)", low=20)
    class_eta: float = setting(0.1, "the classifier's step, as there (not given here)", above=0)
    class_steps: int = setting(1000, "the classifier's iterations (not given)", low=2)
    scaling: str = setting(
        "standardised", "of the pixels (not given)", choices=("standardised", "centred", "raw")
    )
    side: int = setting(28, "pixels a side; pictures of another size are resized", low=2, high=64)
    test: int = setting(2000, "test pictures of each class at most", low=3)
    seeds: int = setting(8, "runs: pictures drawn, noise, and first weights", low=1)
    base: int = setting(0, "number that all seeds share", low=0, high=2**32 - 1)

    def check(self) -> None:
        if len(set(self.classes)) != len(self.classes) or len(self.classes) < 2:
            raise BadInput("classes needs two or more different ones, as in 0,1")
        if self.per_class > 120 and self.data == "digits":
            raise BadInput("the embedded digits allow at most 120 pictures of a class for training")

    def settle(self, show: Silent) -> Any:
        from saltus.papers.features import images

        name = images.available(self.data, show)
        return self if name == self.data else dataclasses.replace(self, data=name)

    @property
    def world(self) -> NoisyImages:
        from saltus.papers.features import images

        return images.NoisyImages(
            images.available(self.data),
            self.classes,
            self.per_class,
            self.snr,
            self.side,
            self.scaling,
            self.test,
        )

    @property
    def d(self) -> int:
        return self.side**2

    @property
    def n(self) -> int:
        return self.per_class * len(self.classes)

    @property
    def two(self) -> bool:
        """Whether the classifier has its two halves; with more classes, one layer and a fixed random head."""
        return len(self.classes) == 2

    @property
    def horizon(self) -> float:
        """The denoiser's training time: the sum of its steps on the loss summed over coordinates."""
        return self.eta * self.iterations / self.d

    def alpha_beta(self) -> tuple[float, float]:
        from saltus.papers.features.law import ddpm

        return ddpm.diffusion(self.t)

    def prepare(self, seed: int) -> Run:
        """Run number `seed`: the same pictures, noise and first weights in every study and at every snr
        and t."""
        from saltus.papers.features import model, world

        rng = np.random.default_rng([self.base, seed])
        drawn = self.world.draw(rng)
        W = world.start(rng, self.neurons, self.d, self.sigma0)
        width = 2 * self.neurons if self.two else self.neurons
        C = world.start(rng, width, self.d, self.sigma0)
        V = None if self.two else model.head(rng, self.neurons, len(self.classes))
        return Run(drawn, W, C, V, np.asarray(self.classes))

    def shared(self, kind: type, **changes: Any) -> Any:
        """Another study of noisy images with these settings, where it has them, but for `changes`."""
        mine = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}
        has = {f.name for f in dataclasses.fields(kind) if f.init}
        return kind(**{n: v for n, v in {**mine, **changes}.items() if n in has})


@dataclass(frozen=True)
class Run:
    """Data and first weights of one run: `W` [m, d] of the denoiser; `C` [2m or m, d] and `V` of the
    classifier."""

    drawn: Drawn
    W: Any
    C: Any
    V: Any
    classes: Any

    def index(self, digit: Any) -> Any:
        """Digits as numbers 0, 1, ... in the order of the classes."""
        order = np.argsort(self.classes)
        return order[np.searchsorted(self.classes, digit, sorter=order)]

    def labels(self, digit: Any) -> Any:
        """What the classifier is trained on: +1 for the second of two classes, else 0, 1, ..."""
        index = self.index(digit)
        return index if self.V is not None else np.where(index == 1, 1, -1)

    def outputs(self, C: Any, signal: Any, noise: Any) -> Any:
        """The classifier's outputs on patches [n, d]: f [n] of two classes, or logits [n, classes]."""
        return self.read_out((signal @ C.T) ** 2 + (noise @ C.T) ** 2)

    def read_out(self, energy: Any) -> Any:
        """The same from the squared products [n, neurons], both patches of a point added up."""
        if self.V is not None:
            return energy @ self.V / len(self.V)
        m = energy.shape[1] // 2
        return (energy[:, :m].sum(1) - energy[:, m:].sum(1)) / m

    def right(self, outputs: Any, digit: Any) -> Any:
        """Whether each point is on the right side."""
        if self.V is not None:
            return outputs.argmax(1) == self.index(digit)
        return np.sign(outputs) == self.labels(digit)

    def loss(self, outputs: Any, digit: Any) -> float:
        """Logistic loss, or cross-entropy of the softmax."""
        if self.V is None:
            return float(np.logaddexp(0, -self.labels(digit) * outputs).mean())
        top = outputs.max(1, keepdims=True)
        total = np.log(np.exp(outputs - top).sum(1)) + top[:, 0]
        return float((total - outputs[np.arange(len(outputs)), self.index(digit)]).mean())

    def gradients(self, C: Any, digit: Any, patch: Any) -> Any:
        """What the paper shows [n, d]: the derivative by the patch of the own class's F_y, or its logit."""
        from saltus.papers.features import model

        if self.V is not None:
            return np.asarray(model.class_input_gradient(C, self.V, patch[:, None], self.index(digit)))[:, 0]
        m, second = len(C) // 2, self.labels(digit) > 0
        found = np.empty_like(patch)
        for rows, W in ((second, C[:m]), (~second, C[m:])):
            found[rows] = model.input_gradient(W, patch[rows])
        return found


def describe(data: Any, words: dict[str, tuple[str, str]]) -> None:
    """Long names and units of what a record holds."""
    for name, (long_name, units) in words.items():
        data[name].attrs.update(long_name=long_name, units=units)
