"""Every study's settings against everything: refused in one line, or accepted and written back the same."""

from __future__ import annotations

import dataclasses
import json
import shlex
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from said import Said
from saltus import arguments, python, running
from saltus.core import describe, lab
from saltus.core import settings as core
from saltus.core.errors import BadInput

OURS = [s for s in python.studies().values() if not s.id.startswith(("tests/", "mine/"))]
study = pytest.mark.parametrize("info", OURS, ids=lambda s: s.id)

_ODD = (
    "nan inf 1e400 -1 0 1 2 3 1e-300 1e300 2,1 1,2;3,4 [[1,2],[3]] [ true none x ☃ \x1b 9223372036854775807 "
    "1.5 64"
)
numbers = st.one_of(
    st.sampled_from([0, 1, 2, 3, 5, 64, -1, 2**31, 2**63, 10**400]),
    st.sampled_from([0.0, -0.0, 1e-300, 1e-9, 0.05, 0.5, 1.0, 2.0, 1e9, 1e300, float("nan"), float("inf")]),
)
anything = st.one_of(
    st.sampled_from(["", *_ODD.split()]), st.text(max_size=8), st.none(), st.booleans(), numbers,
    st.lists(numbers, max_size=5), st.lists(st.lists(numbers, max_size=3), max_size=3), st.just({}),
    st.just(b"1"),
)  # fmt: skip


def plausible(cls: Any, name: str) -> st.SearchStrategy[Any]:
    """Values of the setting's own type and mostly within its bounds: what only `check()` can refuse."""
    field = cls.__dataclass_fields__[name]
    meta = field.metadata

    def of(hint: Any) -> st.SearchStrategy[Any]:
        args = typing.get_args(hint)
        if meta.get("choices"):
            return st.sampled_from(list(meta["choices"]))
        if typing.get_origin(hint) is tuple:
            if args[-1] is Ellipsis:
                return st.lists(of(args[0]), min_size=1, max_size=5).map(tuple)
            return st.tuples(*map(of, args))
        if hint is bool:
            return st.booleans()
        if hint in (int, float):
            low = max((meta[b] for b in ("low", "above") if meta.get(b) is not None), default=-5)
            high = min(meta["high"] if meta.get("high") is not None else low + 100, low + 100)
            whole = st.integers(int(low), max(int(low), int(high)))
            return whole if hint is int else st.one_of(whole, st.floats(low, high))
        return st.none() if args and type(None) in args else st.just(field.default)

    return of(core.hints(cls)[name])


@study
def test_any_settings_are_refused_in_a_line_or_written_back(info: Any) -> None:
    cls, names = info.cls, sorted(core.hints(info.cls))
    refusals: list[str] = []
    one = st.sampled_from(names).flatmap(
        lambda n: st.tuples(st.just(n), st.one_of(plausible(cls, n), plausible(cls, n), anything))
    )

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(st.lists(one, min_size=1, max_size=3))
    def judged(chosen: list[tuple[str, Any]]) -> None:
        try:
            made = cls(**dict(chosen))
        except BadInput as error:
            refusals.append(str(error))
            return
        # The exact command to see it again gives the very same settings.
        words = shlex.split(lab.command(made))[2:]
        args = arguments.parse("run", words, running.RUN, open_ended=True)
        again = cls(**args.extra)
        assert lab.key(again) == lab.key(made)
        assert lab.values_of(again) == lab.values_of(made)
        json.dumps(core.plain_all(lab.values_of(made)), allow_nan=False)
        assert lab.variant(made)

    judged()
    assert not [r for r in refusals if "\n" in r or len(r) > 500]


@study
def test_what_a_study_says_of_itself(info: Any) -> None:
    text = describe.describe(info)
    assert max(map(len, text.splitlines())) <= 100
    assert info.title.endswith("."), "a title is one line"
    assert info.cost
    assert info.checks
    assert all(f.metadata.get("help") for f in dataclasses.fields(info.cls) if f.init)
    assert lab.variant(info.cls())


@study
def test_bad_settings_from_a_line_are_one_line(
    info: Any, cli: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = next(iter(core.hints(info.cls)))
    for words, says in (
        ((f"--{first[:-1]}x", "1"), "no option"),
        ((f"--{first.replace('_', '-')}", "☃"), first.replace("_", "-")),
        ((f"--{first.replace('_', '-')}", ""), "needs a value"),
    ):
        said = cli("run", info.id, *words)
        assert says in said.refused()
    assert not list(tmp_path.iterdir())
