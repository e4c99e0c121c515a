"""Tokens: text there and back, and pairs against the definition carried out naively."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltus import data
from saltus.core.errors import BadInput
from saltus.data import tokens

words = st.text(st.sampled_from("ab c\n.1é_☃"), max_size=60)


def naive(text: str, size: int) -> list[tuple[int, int]]:
    """Count every pair anew after every merge; the most frequent, then the lowest."""
    spelt = [[*w.encode()] for w in tokens._WORDS.findall(text)]
    merges: list[tuple[int, int]] = []
    while 256 + len(merges) < size:
        counts = Counter(p for ids in spelt for p in pairwise(ids))
        best = min(counts, key=lambda p: (-counts[p], p), default=None)
        if best is None or counts[best] < 2:
            break
        spelt = [tokens._merged(ids, best, 256 + len(merges)) for ids in spelt]
        merges.append(best)
    return merges


@given(words, st.integers(256, 290))
def test_pairs_are_those_of_the_definition(text: str, size: int) -> None:
    assert list(tokens.Pairs.learn(text, size).merges) == naive(text, size)


@given(words, words)
def test_there_and_back(text: str, other: str) -> None:
    for code in (tokens.Bytes(), tokens.Characters.of(text + other), tokens.Pairs.learn(other, 270)):
        ids = code.encode(text)
        assert ids.dtype == np.int32
        assert not len(ids) or 0 <= ids.min() <= ids.max() < code.size
        assert code.decode(ids) == text


def test_words_leave_nothing_out() -> None:
    text = data.load("plays").parts["lear"]
    assert "".join(tokens._WORDS.findall(text)) == text
    code = tokens.Pairs.learn(text[:50_000], 400)
    ids = code.encode(text)
    assert code.size == 400
    assert len(ids) < 0.62 * len(text)
    assert code.decode(ids) == text
    assert b" the" in code._spelt


def test_pairs_on_disk(tmp_path: Path) -> None:
    code = tokens.Pairs.learn("to be or not to be", 262)
    code.save(tmp_path / "code.json")
    assert tokens.Pairs.load(tmp_path / "code.json") == code
    for bad in ("", "[]", '{"merges": [[1, 2, 3]]}', '{"merges": [[1, 300]]}'):
        (tmp_path / "bad.json").write_text(bad)
        with pytest.raises(BadInput):
            tokens.Pairs.load(tmp_path / "bad.json")


def test_what_cannot_be_written_is_one_line() -> None:
    with pytest.raises(BadInput, match="'z' is not in the alphabet"):
        tokens.Characters("ab").encode("abz")
    with pytest.raises(BadInput, match="not in the alphabet"):
        tokens.Characters("").encode("a")
    assert len(tokens.Characters("").encode("")) == 0
    for code, k in ((tokens.Bytes(), 256), (tokens.Characters("ab"), -1), (tokens.Pairs(()), 256)):
        with pytest.raises(BadInput, match="there is no token"):
            code.decode([k])
    with pytest.raises(BadInput, match="256 or more"):
        tokens.Pairs.learn("a", 255)
