"""What the pages say: their code prints what they show, their links lead somewhere, their commands exist."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import saltus
from saltus import python
from saltus.cli import COMMANDS
from saltus.core import settings
from saltus.core.errors import BadInput
from saltus.running import RUN

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from pages import blocks  # noqa: E402

PAGES = [
    p for p in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")) if p.is_file()
]
# Options of the other commands; those of run are its own and the study's.
OPTIONS = {
    "list": {"json"}, "show": set(), "report": {"out", "to", "quiet"}, "tour": {"out"}, "data": {"json"},
}  # fmt: skip
# What stands for something else: ID, DIR, name..., [--json], your own file.
STANDS_FOR = re.compile(r"^\W*([A-Z]+\W*|\.\.\.|[\w./-]*my_study\.py|\[.*|.*\])$|\.\.\.$")
page = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def test_the_tutorial_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    for block, said in blocks.execute(text, tmp_path, "tutorial.md"):
        assert blocks.alike(block.code, said), f"line {block.line}: the page shows\n{block.code}\nnot\n{said}"


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def headings(text: str) -> set[str]:
    """Anchors as they are made of headings: small letters, hyphens for spaces, no punctuation."""
    found = re.findall(r"^#+ +(.*?) *$", prose(text), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in found}


@page
def test_links_lead_somewhere(page: Path) -> None:
    text = prose(page.read_text())
    found = re.findall(r"\]\(([^)\s]+)[^)]*\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    for link in found:
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        file = (page.parent / name) if name else page
        assert file.exists(), f"{page.name} links to {link}, which is not there"
        if anchor and file.suffix == ".md":
            assert anchor in headings(file.read_text()), f"{page.name}: no heading for {link}"


def commands(text: str) -> Iterator[list[str]]:
    """The saltus command lines of a page: in blocks of a shell's, and between backticks."""
    lines = [
        line.removeprefix("$ ")
        for code in re.findall(r"^```(?:sh|bash|shell|console)\n(.*?)^```$", text, re.M | re.S)
        for line in code.splitlines()
    ]
    for line in [*lines, *re.findall(r"`([^`\n]+)`", prose(text))]:
        line = re.sub(r"^python3 run\.py (?=saltus )", "", line.strip())
        if re.match(r"saltus( |$)", line):
            yield shlex.split(line.split(" > ")[0].split(" | ")[0], comments=True)[1:]


def check(words: list[str]) -> None:
    if not words or words[0] in ("--help", "--version", "..."):
        return
    command, *rest = words
    assert command in COMMANDS, f"there is no saltus {command}"
    names: list[str] = []
    for word in rest:
        if word.startswith("--") or STANDS_FOR.search(word):
            break
        names.append(word)
    options = {w[2:].partition("=")[0] for w in rest if w.startswith("--")} - {"help", "debug"}
    if command not in ("run", "show"):
        assert options <= OPTIONS.get(command, set()), f"saltus {command} has no {options}"
        return
    chosen = python.find(names) if names else list(python.studies().values())
    known = {n.replace("_", "-") for info in chosen for n in settings.hints(info.cls)}
    assert options <= known | set(RUN), f"{names} have no {options - known - set(RUN)}"


@page
def test_commands_exist(page: Path) -> None:
    for words in commands(page.read_text()):
        check(words)


@pytest.mark.parametrize(
    "line", ["lst", "run sim/fig99", "run sim/fig2a --sead 3", "report --json", "show sim/x"]
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    with pytest.raises((AssertionError, BadInput)):
        check(line.split())


@page
def test_run_py_and_make_have_what_pages_ask_of_them(page: Path) -> None:
    text = page.read_text()
    verbs = set(re.findall(r"^    python3 run\.py (\S+)", (ROOT / "run.py").read_text(), re.M))
    targets = set(re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[0].split())
    assert set(re.findall(r"python3 run\.py ([\w-]+)", text)) <= verbs
    assert set(re.findall(r"(?:`|^\$ |^)make ([\w-]+)(?:`|$)", text, re.M)) <= targets


def resolve(name: str) -> Any:
    found: Any = saltus
    path = "saltus"
    for word in name.split(".")[1:]:
        path += f".{word}"
        found = getattr(found, word, None) or importlib.import_module(path)
    return found


@page
def test_names_of_python_exist(page: Path) -> None:
    text = page.read_text()
    for name in re.findall(r"\bsaltus(?:\.[A-Za-z_]\w*)+", text):
        if not name.endswith((".py", ".toml", ".md", ".html")):
            resolve(name)
    for id in re.findall(r'saltus\.run\("([^"]+)"', text):
        if not id.endswith(".py"):
            python.find([id])
