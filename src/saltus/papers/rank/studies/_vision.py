"""Vision transformers on images: the training of figures 1, 4-7 and 12-19."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from saltus._lazy import np
from saltus.core.errors import BadInput
from saltus.core.settings import setting
from saltus.papers.rank.studies import _training
from saltus.papers.rank.studies._training import Trained

if TYPE_CHECKING:
    from saltus.core.lab import Lab

__all__ = ["SCALES", "Vision"]

SETS = ("digits", "mnist", "fashion-mnist", "cifar10", "cifar100", "imagenet")
# The network of the CIFAR runs (App. B), and that of the ImageNet runs, ViT-B/16.
CIFAR = dict(depth=6, heads=8, width=512, head=128, mlp=512, patch=4, batch=512, warm=15, seeds=1)
BASE16 = dict(
    depth=12, heads=12, width=768, head=64, mlp=3072, patch=16, batch=4096, warm=15, seeds=1, epochs=360,
    lr=3e-3, compute="bfloat16",
)  # fmt: skip
SCALES: dict[str, dict[str, dict[str, Any]]] = {
    "scale": {
        "small": {},
        "gpu": {**CIFAR, "data": "cifar10", "epochs": 100, "lr": 1e-4, "compute": "bfloat16"},
        "paper": {**CIFAR, "data": "cifar10", "epochs": 500, "lr": 1e-4},
    },
    "data": {"imagenet": BASE16},
}


@dataclass(frozen=True)
class Vision(Trained):
    """A ViT and the images it learns."""

    scale: str = setting(
        "small",
        "small: digits on two cores; gpu: CIFAR-10 at the paper's size, fewer epochs; paper: all of them",
        choices=("small", "gpu", "paper"),
    )
    data: str = setting("digits", "the images", choices=SETS)
    side: int = setting(224, "height and width that pictures of a tree are read at", low=8)
    points: int | None = setting(None, "training images used, all unless said", low=1)
    patch: int = setting(2, "side of a patch", low=1)
    mlp: int = setting(64, "hidden units of a feed-forward layer", low=1)
    rule: str = setting("adam", "the update rule", choices=("adam", "sgd"))
    lr: float = setting(1e-3, "largest learning rate", above=0)
    epochs: int = setting(20, "passes over the images", low=1)
    warm: int = setting(1, "epochs of warm-up", low=0)
    decay: bool = setting(True, "whether the rate then falls along a cosine")

    kind: ClassVar[str] = "vision"
    presets: ClassVar[dict[str, Any]] = SCALES

    def check(self) -> None:
        if self.warm > self.epochs:
            raise BadInput(f"warm must be at most the number of epochs, {self.epochs}, not {self.warm}")

    def tables(self, lab: Lab) -> tuple[Any, Any]:
        from saltus import data
        from saltus.descent import network

        held: Any = data.load(self.data, lab.show)
        if self.data == "imagenet":
            held = self._read(held, lab)
        train, test = network.images(held, self.points)
        if self.batch > len(train):
            raise BadInput(f"batch must be at most the number of images, {len(train)}, not {self.batch}")
        return train, test

    def _read(self, folder: Any, lab: Lab) -> Any:
        """A tree of pictures as arrays: the centre of each."""
        from saltus.data import Images

        n = min(self.points or len(folder.files), len(folder.files))
        _training.memory(n + len(folder.test_files), 3 * self.side**2, f"{folder.name} at this size")
        # Any first so many of them must be of all classes.
        which = np.random.default_rng(self.base).permutation(len(folder.files))[:n]
        lab.show.say(f"reading {n:,} pictures of {folder.name}")
        x, test_x = (
            folder.read(which, self.side),
            folder.read(range(len(folder.test_files)), self.side, test=True),
        )
        return Images(folder.name, x, folder.y[which], test_x, folder.test_y, 255, folder.classes)

    def network(self, train: Any) -> Any:
        from saltus import model

        height, width, channels = train.x.shape[1:]
        if height % self.patch or width % self.patch:
            raise BadInput(
                f"patch must divide the images' sides, {height} and {width}; {self.patch} does not"
            )
        return model.ViT(
            image=(height, width), channels=channels, patch=self.patch, classes=int(np.max(train.y)) + 1,
            depth=self.depth, heads=self.heads, width=self.width, head=self.head, mlp=self.mlp,
            compute=self.numbers,
        )  # fmt: skip

    def steps(self, points: int) -> int:
        return self.epochs * (points // self.batch)

    def descent(self, steps: int) -> Any:
        from saltus import descent

        warm = self.warm * steps // self.epochs
        rate = (
            descent.rate.warm_cosine(self.lr, warm=warm, total=steps)
            if self.decay
            else descent.rate.warm_constant(self.lr, warm=warm)
        )
        make = descent.adam if self.rule == "adam" else descent.sgd
        return make(rate, epochs=self.epochs, batch=self.batch)

    def note(self) -> str:
        """The small print under a figure."""
        words = (
            "the paper's scale" if self.scale == "paper" else f"scale {self.scale}, smaller than the paper's"
        )
        return (
            f"{words}: ViT on {self.data}, patches of {self.patch}, {self.size()}; {self.rule}, "
            f"lr {self.lr:g}, batch {self.batch}, {self.epochs} epochs"
        )
