"""What a data set that no registry has must look like: its authors' counts, in place of a checksum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from saltus.data._content import Unusable

if TYPE_CHECKING:
    from saltus.data._content import Content

# Lines of wiki.train, wiki.valid and wiki.test, the same with and without <unk> (Merity et al. 2017).
WIKI_LINES = {"train": 1_801_350, "valid": 3_760, "test": 4_358}
CIFAR100_EACH = {"train": 500, "test": 100}
IMAGENET = {"train": 1_281_167, "val": 50_000}
IMAGENET_CLASSES = 1000


def cifar100(content: Content) -> None:
    """500 + 100 images of each of the hundred classes, and each class within one of the twenty groups."""
    for split, each in CIFAR100_EACH.items():
        fine, coarse = content[f"{split}_y"], content[f"{split}_group"]
        if not np.array_equal(np.bincount(fine, minlength=100), np.full(100, each)):
            raise Unusable(f"is not cifar100 (its {split} set does not hold {each} images of each class)")
        if len(np.unique(256 * fine.astype(int) + coarse)) != 100 or len(np.unique(coarse)) != 20:
            raise Unusable(f"is not cifar100 (its {split} set does not put each class into one of 20 groups)")


def wikitext(content: Content) -> None:
    """As many lines as the authors' files have."""
    for part, lines in WIKI_LINES.items():
        found = int(np.count_nonzero(content[part] == ord("\n")))
        # The last line may lack its end, and some copies open with an empty line.
        if abs(found - lines) > 2:
            raise Unusable(f"is not wikitext-103 (wiki.{part} has {found:,} lines, should have {lines:,})")


def imagenet(classes: int, counts: dict[str, int]) -> None:
    """A thousand classes, 1,281,167 pictures to learn from and 50,000 to test."""
    if classes != IMAGENET_CLASSES or counts != IMAGENET:
        said = " + ".join(f"{counts[part]:,}" for part in IMAGENET)
        raise Unusable(
            f"is not imagenet ({classes:,} classes and {said} pictures, should be 1,000 and 1,281,167 + "
            "50,000); a tree of your own opens with saltus.data.folder(PATH)"
        )


FACTS: dict[str, Callable[[Content], None]] = {"cifar100": cifar100, "wikitext-103": wikitext}
