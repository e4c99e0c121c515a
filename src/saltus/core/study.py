"""A study: one published figure or table, or one of our own."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from saltus.core import settings
from saltus.core.errors import BadInput, nearest

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from saltus.core.claim import Claim
    from saltus.core.lab import Lab


class Study(Protocol):
    """What a study declares; `law` may return None and `draw` be absent."""

    def run(self, lab: Lab) -> xr.Dataset: ...

    def law(self, record: xr.Dataset) -> xr.Dataset | None: ...

    def claims(self, record: xr.Dataset, law: xr.Dataset | None) -> Iterator[Claim]: ...

    def draw(self, record: xr.Dataset, law: xr.Dataset | None) -> Figure: ...


@dataclass(frozen=True)
class Paper:
    """A work whose figures are studies, and how to cite it."""

    id: str
    key: str
    title: str
    authors: str
    year: int
    venue: str

    def bibtex(self) -> str:
        return (
            f"@inproceedings{{{self.key},\n  title = {{{self.title}}},\n  author = {{{self.authors}}},\n"
            f"  booktitle = {{{self.venue}}},\n  year = {{{self.year}}},\n}}"
        )


@dataclass(frozen=True)
class Info:
    """Everything about a study that is known without running it."""

    id: str
    cls: type
    figure: str
    cites: str
    cost: str
    version: int
    checks: tuple[str, ...]
    source: str

    @property
    def paper(self) -> str:
        return self.id.split("/")[0]

    @property
    def shows(self) -> str:
        """`Fig. 2(a)`, or what else of the paper it is about: `Theorem 4.1`."""
        return f"Fig. {self.figure}" if self.figure[:1].isdigit() else self.figure

    @property
    def title(self) -> str:
        doc = (inspect.getdoc(self.cls) or "").strip()
        # A dataclass without words of its own describes its constructor.
        return self.id if not doc or doc.startswith(f"{self.cls.__name__}(") else doc.splitlines()[0]


# An id is also a folder of the store, so it names one below it and nothing else.
_ID = re.compile(r"\w[\w-]*(/\w[\w-]*)+", re.ASCII)
_STUDIES: dict[str, Info] = {}
_PAPERS: dict[str, Paper] = {}
C = TypeVar("C", bound=type)


def paper(entry: Paper) -> Paper:
    """Register a work."""
    _PAPERS[entry.id] = entry
    return entry


def papers() -> dict[str, Paper]:
    return dict(_PAPERS)


def study(
    id: str,
    *,
    cites: str = "",
    figure: str = "",
    cost: str = "",
    version: int = 1,
    checks: tuple[str, ...] = (),
) -> Callable[[C], C]:
    """Register a frozen dataclass as a study.

    **Arguments:** `id` as `paper/name`; `cost` on a named machine; `version` is raised when what the study
    computes changes, so that older records are not mistaken for it; `checks`: the claims it will check, a
    sentence each. The class's constructor fills in the presets of the chosen reading or scale
    (`presets: ClassVar = {"reading": {"as-drawn": {...}}}`), checks every value, and calls `check()`.
    """

    if not _ID.fullmatch(id):
        raise BadInput(
            f"{id!r} is not a study's id; write it like mine/features, in letters, digits, - and _"
        )

    for name, given in (("cites", cites), ("figure", figure), ("cost", cost)):
        if not isinstance(given, str):
            raise BadInput(f"study {id!r}: {name} is a word or a sentence, not {given!r}")
    if type(version) is not int:
        raise BadInput(f"study {id!r}: version is a whole number, not {version!r}")
    if isinstance(checks, str) or not all(isinstance(c, str) for c in checks):
        raise BadInput(f"study {id!r}: checks is a tuple of sentences, like ('the first is larger',)")

    def register(cls: C) -> C:
        if not dataclasses.is_dataclass(cls):
            raise TypeError(f"study {id!r}: put @dataclass(frozen=True) under @study(...)")
        if not callable(getattr(cls, "run", None)) or not callable(getattr(cls, "claims", None)):
            raise TypeError(f"study {id!r} needs methods run and claims")
        taken = sorted(settings.TAKEN & {f.name for f in dataclasses.fields(cls)})
        if taken:
            raise BadInput(f"study {id!r}: a setting cannot be called {taken[0]}, an option of saltus run is")
        plain_init = cls.__init__

        @functools.wraps(plain_init)
        def init(self: Any, *args: Any, **given: Any) -> None:
            names = list(settings.hints(cls))
            if len(args) > len(names):
                raise BadInput(f"{id} takes at most {len(names)} settings")
            given = dict(zip(names, args, strict=False)) | given
            plain_init(self, **settings.resolve(cls, given, id))
            check = getattr(self, "check", None)
            if check is not None:
                check()

        setattr(cls, "__init__", init)  # noqa: B010
        try:
            source = inspect.getsourcefile(cls) or ""
        except (OSError, TypeError):  # written in a notebook or at a prompt
            source = ""
        held = _STUDIES.get(id)
        if held is not None and held.source != source:
            raise BadInput(f"study {id!r} is already registered by {held.source}; choose another id")
        _STUDIES[id] = Info(id, cls, figure, cites, cost, version, tuple(checks), source)
        cls.info = _STUDIES[id]  # type: ignore[attr-defined]
        return cls

    return register


def studies() -> dict[str, Info]:
    """All registered studies, in natural order of their names (fig2a before fig10)."""
    return dict(sorted(_STUDIES.items(), key=lambda item: natural(item[0])))


def of_file(source: str) -> list[Info]:
    """The studies that a file registered."""
    return [info for info in _STUDIES.values() if info.source == source]


def forget(source: str) -> None:
    """Take back what a file registered, before it is imported anew."""
    for info in of_file(source):
        del _STUDIES[info.id]


def natural(text: str) -> tuple[Any, ...]:
    """Sort key under which fig2 comes before fig10."""
    words: list[Any] = []
    for is_digit, group in _runs(text):
        words.append((1, int(group), "") if is_digit else (0, 0, group))
    return tuple(words)


def _runs(text: str) -> Iterator[tuple[bool, str]]:
    start = 0
    for i in range(1, len(text) + 1):
        if i == len(text) or text[i].isdigit() != text[start].isdigit():
            if text:
                yield text[start].isdigit(), text[start:i]
            start = i


def info(id: str) -> Info:
    """The study of that name, or one line naming the nearest."""
    if id not in _STUDIES:
        close = nearest(id, [*_STUDIES, *{s.split("/")[0] for s in _STUDIES}])
        raise BadInput(f"no study {id!r}{close or '; saltus list shows them all'}")
    return _STUDIES[id]


def select(names: list[str]) -> list[Info]:
    """Studies by id or by paper, each once, in the order asked for."""
    chosen: dict[str, Info] = {}
    for name in names:
        of_paper = {i: s for i, s in studies().items() if s.paper == name.rstrip("/")}
        chosen.update(of_paper or {name: info(name)})
    return list(chosen.values())
