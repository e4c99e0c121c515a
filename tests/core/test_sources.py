"""Finished work is kept as long as the code that can have made it is the same, and no longer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from saltus import python
from saltus.core import parts, record, shared, sources

TREE = (
    "_jax.py", "cli.py", "report/page.py", "core/lab.py", "descent/_loop.py", "papers/__init__.py",
    "papers/sim/world.py", "papers/sim/studies/order.py", "papers/sim/studies/_pictures.py",
    "papers/rank/world.py", "papers/another/world.py",
)  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(sources, "PACKAGE", tmp_path)
    yield tmp_path
    sources._of_package.cache_clear()


def seen(tree: Path, source: str) -> set[str]:
    """The files whose change changes the checksum."""
    return {name for name in TREE if changes(tree / name, source)}


def changes(file: Path, source: str) -> bool:
    found = []
    for words in ("before", "after"):
        file.write_text(words)
        sources._of_package.cache_clear()
        found.append(sources.digest(source))
    return found[0] != found[1]


def test_a_paper_depends_on_the_shared_rooms_and_on_its_own(tree: Path) -> None:
    common = {"_jax.py", "core/lab.py", "descent/_loop.py", "papers/__init__.py"}
    own = {"papers/sim/world.py", "papers/sim/studies/order.py"}
    assert seen(tree, str(tree / "papers/sim/studies/order.py")) == common | own


def test_a_users_file_may_use_every_paper(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    own = tmp_path_factory.mktemp("own") / "mine.py"
    own.write_text("x = 1")
    hidden = {"cli.py", "report/page.py", "papers/sim/studies/_pictures.py"}
    assert seen(tree, str(own)) == seen(tree, "") == set(TREE) - hidden
    assert changes(own, str(own))


def test_of_this_package() -> None:
    found = {p.relative_to(sources.PACKAGE).as_posix() for p in sources.files("sim")}
    assert {"core/lab.py", "descent/_train.py", "_jax.py", "papers/sim/studies/order.py"} <= found
    assert not any(name.startswith(("papers/rank", "report", "cli")) for name in found)
    assert all((sources.PACKAGE / name).exists() for name in sources.SHOWS)


def test_a_commit_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = shared.key("x", {"a": 1}, "")
    monkeypatch.setattr(record, "commit", lambda: "another")
    assert shared.key("x", {"a": 1}, "") == before
    monkeypatch.setattr(record, "packages", lambda: {"jax": "0"})
    assert shared.key("x", {"a": 1}, "") != before


def test_parts_of_other_code_are_made_anew(
    Plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "one"
    folder = parts.open_folder(place, Plain.info)
    (folder / "x.part").mkdir()
    assert parts.finished(parts.open_folder(place, Plain.info)) == 1
    monkeypatch.setattr(sources, "digest", lambda source: "other")
    assert parts.finished(parts.open_folder(place, Plain.info)) == 0


def test_pictures_are_for_drawing_only() -> None:
    """What the checksum leaves out is only ever imported to draw."""
    python.studies()
    pictures = [p for p in sources.PACKAGE.rglob("*.py") if p not in sources.files(None)]
    others = [p for p in sources.files(None) if "studies" in p.parts]
    assert len(pictures) > 20
    for path in others:
        tree = ast.parse(path.read_text())
        drawing = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name.lstrip("_").startswith("draw")
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in drawing:
                assert "_pictures" not in ast.unparse(node), f"{path}, line {node.lineno}"
