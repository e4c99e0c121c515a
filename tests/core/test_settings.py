from __future__ import annotations

import contextlib
import math
import shlex
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import saltus
from saltus.arguments import flag, parse
from saltus.core import lab, settings
from saltus.core.describe import describe
from saltus.core.errors import BadInput, nearest

finite = st.floats(allow_nan=False, allow_infinity=False)
whole = st.integers(-(2**63) + 1, 2**63 - 1)
word = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12)
text = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" "), min_size=1
)
VALUES = {
    "rate": finite.filter(lambda x: x > 0),
    "runs": st.integers(1, 2**63 - 1),
    "noisy": st.booleans(),
    "name": text.filter(lambda w: w.strip()),
    "kind": st.sampled_from(["up", "down"]),
    "mode": st.sampled_from(["fine", "coarse"]),
    "cut": st.none() | finite.filter(lambda x: x >= 0),
    "size": st.none() | st.integers(-(2**63) + 1, 1000),
    "widths": st.lists(st.integers(0, 10**9), min_size=1, max_size=5).map(tuple),
    "span": st.tuples(finite, finite),
    "mu": st.lists(st.tuples(finite, finite), min_size=1, max_size=4).map(tuple),
    "layers": st.lists(st.lists(whole, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple),
    "words": st.lists(word, min_size=1, max_size=3).map(tuple),
    "flags": st.lists(st.booleans(), min_size=1, max_size=3).map(tuple),
    "cuts": st.lists(st.none() | finite, min_size=1, max_size=3).map(tuple),
}


@pytest.mark.parametrize("name", VALUES)
def test_text_reads_back_as_the_same_value(Quick: Any, name: str) -> None:
    @given(VALUES[name])
    def same(value: Any) -> None:
        held = Quick(**{name: value})
        assert getattr(held, name) == value
        # Through the command that a record carries, word by word as a shell would hand them over.
        words = shlex.split(lab.command(held))[3:]
        assert Quick(**parse("run", words, {}, open_ended=True).extra) == held
        if name not in ("name", "words"):
            text = settings.as_text(value)
            assert getattr(Quick(**{name: text}), name) == value or (name == "layers" and "," not in text)

    same()


def test_the_command_gives_every_setting_back(Quick: Any) -> None:
    @given(st.fixed_dictionaries({}, optional=VALUES), st.sampled_from(["as-written", "as-drawn"]))
    def same(given_: dict[str, Any], reading: str) -> None:
        held = Quick(**given_, reading=reading)
        words = shlex.split(lab.command(held))[3:]
        again = Quick(**parse("run", words, {"json": flag}, open_ended=True).extra)
        assert again == held
        assert lab.key(again) == lab.key(held)

    same()


@pytest.mark.parametrize(
    ("name", "given_", "expected"),
    [
        ("rate", "1e-3", 1e-3),
        ("rate", 2, 2.0),
        ("rate", np.float32(0.5), 0.5),
        ("rate", np.array(0.5), 0.5),
        ("runs", "1e3", 1000),
        ("runs", " 7 ", 7),
        ("runs", np.int64(2**62 + 1), 2**62 + 1),
        ("runs", 3.0, 3),
        ("noisy", "", True),
        ("noisy", "off", False),
        ("noisy", np.True_, True),
        ("cut", "none", None),
        ("cut", "NONE", None),
        ("cut", 0, 0.0),
        ("widths", "1,2", (1, 2)),
        ("widths", "1 2", (1, 2)),
        ("widths", "[1, 2]", (1, 2)),
        ("widths", ["1", "2"], (1, 2)),
        ("widths", 5, (5,)),
        ("widths", np.arange(3), (0, 1, 2)),
        ("widths", range(2), (0, 1)),
        ("mu", "1,2", ((1.0, 2.0),)),
        ("mu", "-1,-2", ((-1.0, -2.0),)),
        ("mu", "1, 2", ((1.0, 2.0),)),
        ("mu", "1 2", ((1.0, 2.0),)),
        ("mu", "1,2 3,4", ((1.0, 2.0), (3.0, 4.0))),
        ("mu", "1,2;3,4", ((1.0, 2.0), (3.0, 4.0))),
        ("mu", "[[1,2],(3,4)]", ((1.0, 2.0), (3.0, 4.0))),
        ("mu", ["1,2", "3,4"], ((1.0, 2.0), (3.0, 4.0))),
        ("mu", (1, 2), ((1.0, 2.0),)),
        ("mu", [[1, 2], [3, 4]], ((1.0, 2.0), (3.0, 4.0))),
        ("mu", np.ones((2, 2)), ((1.0, 1.0), (1.0, 1.0))),
        ("layers", "1,2,3", ((1, 2, 3),)),
        ("layers", ["1", "2"], ((1,), (2,))),
        ("flags", "true,no,1", (True, False, True)),
        ("cuts", "none,2", (None, 2.0)),
        ("words", "x", ("x",)),
    ],
)
def test_what_is_accepted(Quick: Any, name: str, given_: Any, expected: Any) -> None:
    value = getattr(Quick(**{name: given_}), name)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("name", "given_", "says"),
    [
        ("rate", "nan", "finite"),
        ("rate", "1e400", "finite"),
        ("rate", math.inf, "finite"),
        ("rate", 10**400, "number"),
        ("rate", "fast", "takes a number, not 'fast'"),
        ("rate", True, "number"),
        ("rate", 0, "greater than 0"),
        ("rate", None, "number"),
        ("runs", 0, "at least 1"),
        ("runs", 1.5, "whole number"),
        ("runs", "1.5", "whole number"),
        ("runs", "+-5", "whole number"),
        ("runs", True, "whole number"),
        ("runs", 10**30, "too large"),
        ("runs", "9" * 5000, "finite|whole"),
        ("runs", 10**5000, "too large"),
        ("runs", "1e300", "too large"),
        ("size", 1001, "at most 1000"),
        ("noisy", "maybe", "true or false"),
        ("noisy", 1, "true or false"),
        ("name", "", "needs a value"),
        ("name", 3, "takes a word"),
        ("name", "a\x1bb", "printed"),
        ("name", "\udc80", "printed"),
        ("kind", "upp", "one of up, down, not 'upp'; did you mean up"),
        ("mode", "fin", "one of fine, coarse"),
        ("mode", np.ones(2), "one of"),
        ("widths", "", "needs a value"),
        ("widths", ",", "empty"),
        ("widths", [], "empty"),
        ("widths", "1,-1", "at least 0"),
        ("widths", "1;2", "whole number"),
        ("widths", "[1,2", "could not be read"),
        ("widths", "[" * 100_000, "could not be read"),
        ("widths", "(" + "-" * 50_000 + "1)", "could not be read"),
        ("widths", "[{[]: 1}]", "could not be read"),
        ("widths", "[1 is 2]", "could not be read"),
        ("widths", "(b'ab')", "whole number"),
        ("widths", "[__import__('os')]", "could not be read"),
        ("widths", {"a": 1}, "whole number"),
        ("span", "1", "2 values, not 1"),
        ("span", "1,2,3", "2 values, not 3"),
        ("mu", "1,2,3", "2 values, not 3"),
        ("mu", [["1", "2"], "x"], "2 values, not 1"),
        ("mu", "[[[1]]]", "2 values"),
        ("reading", "as-writen", "did you mean as-written"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) and value.isprintable() else type(value).__name__,
)
def test_what_is_refused(Quick: Any, name: str, given_: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        Quick(**{name: given_})
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


def test_any_object_is_taken_or_refused(Quick: Any) -> None:
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=4),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=8,
    )

    @given(
        st.sampled_from(list(VALUES)),
        anything | st.text(alphabet="[](),;-+.e0123456789 naif'\"", max_size=30),
    )
    def either(name: str, value: Any) -> None:
        with contextlib.suppress(BadInput):
            Quick(**{name: value})

    either()


def test_presets_come_before_what_is_given(Quick: Any) -> None:
    assert Quick(reading="as-drawn").rate == 2.0
    assert Quick(reading="as-drawn", rate=3).rate == 3.0
    assert Quick().rate == 1.0
    assert lab.variant(Quick()) == "as-written"
    assert lab.variant(Quick(reading="as-drawn")) == "as-drawn"
    assert lab.variant(Quick(reading="as-drawn", rate=3)) == "as-drawn; changed: rate"


def test_names(Quick: Any) -> None:
    with pytest.raises(BadInput, match="no setting 'rat'; did you mean rate"):
        Quick(rat=1)
    with pytest.raises(BadInput, match="at most"):
        Quick(*range(40))
    assert Quick(2.5).rate == 2.5
    assert nearest("zzz", ["abc"]) == ""


def test_a_setting_without_default_must_be_given() -> None:
    @saltus.study("tests/needs")
    @dataclass(frozen=True)
    class Needs:
        size: int
        presets: ClassVar[dict[str, Any]] = {}

        def run(self) -> Any: ...

        def claims(self, record: Any, law: Any) -> Any: ...

    with pytest.raises(BadInput, match="needs a value for 'size'"):
        Needs()
    assert Needs(size="3").size == 3
    assert "--size (needed)" in describe(Needs.info)


def test_key_names_what_is_computed(Plain: Any) -> None:
    assert lab.key(Plain()) == lab.key(Plain(colour="red"))
    others = {
        lab.key(Plain(**{f.name: v}))
        for f, v in zip(fields(Plain), (2.0, 9, 4, False, "x", "y", "down", "coarse", 1.0), strict=False)
    }
    assert len(others | {lab.key(Plain())}) == 10
    # Written down once: a change here makes every record ever written unfindable.
    assert lab.key(Plain()) == "a8bb6ad34c6c"
