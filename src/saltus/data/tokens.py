"""Text as numbers: bytes, characters, or pairs merged greedily (Sennrich, Haddow and Birch 2016).

code = saltus.data.tokens.Pairs.learn(text, 512)
ids = code.encode("To be, or not to be")  # int32 [n], each below code.size
code.decode(ids)
"""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from saltus.core.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int32]

__all__ = ["Bytes", "Characters", "Pairs", "Tokens"]

# A word with the space before it, digits, signs, spaces: merges never cross these (as in GPT-2).
_WORDS = re.compile(r" ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


class Tokens(Protocol):
    """A way to write text as numbers below `size`, and back."""

    @property
    def size(self) -> int: ...

    def encode(self, text: str) -> Ids: ...

    def decode(self, ids: Iterable[int]) -> str: ...


@dataclass(frozen=True)
class Bytes:
    """UTF-8 as it is: 256 tokens, any text."""

    @property
    def size(self) -> int:
        return 256

    def encode(self, text: str) -> Ids:
        return np.frombuffer(text.encode(), np.uint8).astype(np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        return bytes(_within(ids, self.size)).decode(errors="replace")


@dataclass(frozen=True)
class Characters:
    """One token for each character of an alphabet."""

    alphabet: str

    @classmethod
    def of(cls, text: str) -> Characters:
        """The alphabet of this text, in order of the characters' codes."""
        return cls("".join(sorted(set(text))))

    @property
    def size(self) -> int:
        return len(self.alphabet)

    def encode(self, text: str) -> Ids:
        codes, known = (
            np.frombuffer(t.encode("utf-32-le", "surrogatepass"), np.uint32) for t in (text, self.alphabet)
        )
        order = np.argsort(known)
        found = np.searchsorted(known, codes, sorter=order)
        ids = order[np.minimum(found, len(order) - 1)] if len(order) else np.zeros(len(codes), int)
        wrong = codes != known[ids] if len(order) else np.ones(len(codes), bool)
        if wrong.any():
            raise BadInput(
                f"the character {chr(codes[wrong.argmax()])!r} is not in the alphabet of these tokens"
            )
        return ids.astype(np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.alphabet[k] for k in _within(ids, self.size))


@dataclass(frozen=True)
class Pairs:
    """Bytes, and the most frequent pairs of tokens merged into one, again and again, within words.

    **Arguments:** `merges`: pairs of tokens in the order they were merged; the k-th makes token 256 + k.
    """

    merges: tuple[tuple[int, int], ...]

    @classmethod
    def learn(cls, text: str, size: int) -> Pairs:
        """`size` tokens in all, fewer where no pair occurs twice any more; ties go to the lower."""
        if size < 256:
            raise BadInput(f"there are 256 bytes: pairs need a size of 256 or more, not {size}")
        words = Counter(_WORDS.findall(text))
        spelt = [[*word.encode()] for word in words]
        often = list(words.values())
        counts: Counter[tuple[int, int]] = Counter()
        where: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        for k, ids in enumerate(spelt):
            for pair in pairwise(ids):
                counts[pair] += often[k]
                where[pair].add(k)
        heap = [(-n, pair) for pair, n in counts.items()]
        heapq.heapify(heap)
        merges: list[tuple[int, int]] = []
        while heap and 256 + len(merges) < size:
            n, pair = heapq.heappop(heap)
            if counts[pair] != -n:  # its count has changed since; the right one is in the heap too
                continue
            if n > -2:
                break
            new = 256 + len(merges)
            merges.append(pair)
            changed: set[tuple[int, int]] = set()
            for k in where.pop(pair):
                before, after = spelt[k], _merged(spelt[k], pair, new)
                for sign, ids in ((-1, before), (1, after)):
                    for p in pairwise(ids):
                        counts[p] += sign * often[k]
                        changed.add(p)
                        if sign > 0:
                            where[p].add(k)
                spelt[k] = after
            for p in changed:
                heapq.heappush(heap, (-counts[p], p))
        return cls(tuple(merges))

    @property
    def size(self) -> int:
        return 256 + len(self.merges)

    def encode(self, text: str) -> Ids:
        known: dict[str, list[int]] = {}
        out: list[int] = []
        for word in _WORDS.findall(text):
            if word not in known:
                known[word] = self._spell([*word.encode()])
            out += known[word]
        return np.asarray(out, np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join(self._spelt[k] for k in _within(ids, self.size)).decode(errors="replace")

    def save(self, path: str | Path) -> None:
        """As JSON."""
        Path(path).write_text(json.dumps({"kind": "pairs", "merges": self.merges}) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Pairs:
        try:
            held = json.loads(Path(path).read_text())
            merges = tuple((int(a), int(b)) for a, b in held["merges"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadInput(f"{path} holds no pairs of tokens ({type(error).__name__})") from None
        if any(not 0 <= x < 256 + k for k, pair in enumerate(merges) for x in pair):
            raise BadInput(f"{path} merges tokens that do not exist yet")
        return cls(merges)

    @cached_property
    def _rank(self) -> dict[tuple[int, int], int]:
        return {pair: 256 + k for k, pair in enumerate(self.merges)}

    @cached_property
    def _spelt(self) -> list[bytes]:
        out = [bytes([k]) for k in range(256)]
        for a, b in self.merges:
            out.append(out[a] + out[b])
        return out

    def _spell(self, ids: list[int]) -> list[int]:
        """The earliest merge that applies, everywhere, until none does."""
        while len(ids) > 1:
            new, pair = min((self._rank.get(p, 1 << 60), p) for p in pairwise(ids))
            if new == 1 << 60:
                break
            ids = _merged(ids, pair, new)
        return ids


def _merged(ids: list[int], pair: tuple[int, int], new: int) -> list[int]:
    out, k = [], 0
    while k < len(ids):
        if k + 1 < len(ids) and (ids[k], ids[k + 1]) == pair:
            out.append(new)
            k += 2
        else:
            out.append(ids[k])
            k += 1
    return out


def _within(ids: Iterable[int], size: int) -> list[int]:
    found = [int(k) for k in ids]
    for k in found:
        if not 0 <= k < size:
            raise BadInput(f"there is no token {k}: they go from 0 to {size - 1}")
    return found
