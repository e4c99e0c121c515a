from __future__ import annotations

import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import saltus
from said import Said
from saltus.core.errors import BadInput
from saltus.report import write_page

CLI = Callable[..., Said]
VOID = {"meta", "img", "br", "link", "hr", "input"}


class Page(HTMLParser):
    """Every tag, the nesting, and everything a browser would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.loads += [v or "" for n, v in attrs if n in ("src", "srcset", "data", "poster")]
        self.loads += [v or "" for n, v in attrs if n == "href" and tag == "link"]
        assert tag not in ("script", "iframe", "object", "embed", "base")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def shelf(Plain: Any, Quick: Any, tmp_path: Path) -> Path:
    saltus.run(Plain(), out=tmp_path)
    saltus.run(Plain(truth="fails", name="<b>&amp;\"'"), out=tmp_path)
    saltus.run(Quick(), out=tmp_path)
    return tmp_path


def test_one_file_that_needs_nothing_else(cli: CLI, shelf: Path) -> None:
    said = cli("report", "--out", shelf)
    assert said.status == 0
    file = Path(said.out.strip())
    assert file == (shelf / "report.html").resolve()
    text = file.read_text(encoding="utf-8")
    page = Page(text)
    assert page.loads
    assert all(load.startswith("data:image/png;base64,") for load in page.loads)
    assert not re.search(r"url\((?!data:)|@import|https?://", text)
    for words in (
        "Growth is exponential.",
        "Nothing is quick.",
        "does not hold, documented otherwise",
        "<b>&amp;\"'",
    ):
        assert words in page.text
    assert "3studies" in page.text


def test_a_choice_of_records(cli: CLI, shelf: Path) -> None:
    record = next((shelf / "tests/plain").iterdir())
    one = cli("report", record, "--out", shelf, "--to", shelf / "new" / "one.html")
    text = Path(one.out.strip()).read_text(encoding="utf-8")
    assert text.count("<h2>") == 1
    quick = cli("report", "tests/quick", "--out", shelf)
    assert "Nothing is quick." in Path(quick.out.strip()).read_text(encoding="utf-8")
    assert "no record of" in cli("report", "tests/quick", "--out", record.parents[1] / "plain").refused()
    for folder in (shelf, shelf / "tests", shelf / "tests" / "plain"):  # all that lies below it
        assert cli("report", folder, "--out", record.parent, "--to", shelf / "below.html").status == 0
    assert "Nothing is quick." not in (shelf / "below.html").read_text(encoding="utf-8")
    cli("report", "--out", shelf, "--to", shelf).refused()
    cli("report", "--out", shelf, "--to", shelf / "report.html" / "below").refused()


def test_damaged_records_are_left_out_and_named(cli: CLI, shelf: Path) -> None:
    record = next((shelf / "tests/plain").iterdir())
    (record / "manifest.json").write_text("{")
    said = cli("report", "--out", shelf)
    assert said.status == 0
    assert f"left out: the record at {record} is damaged" in said.err
    assert "damaged" in cli("report", record, "--out", shelf).refused()


def test_a_page_that_cannot_be_written_leaves_the_old_one(Quick: Any, tmp_path: Path) -> None:
    outcome = saltus.run(Quick(), out=tmp_path)
    file = write_page([outcome], tmp_path / "a.html")
    before = file.read_bytes()
    with pytest.raises(BadInput):
        write_page([outcome], file / "below")
    assert file.read_bytes() == before
    assert not list(tmp_path.glob(".a.html*"))


def test_a_record_that_cannot_be_judged_does_not_cost_the_page(
    cli: CLI, shelf: Path, Quick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claims(*_: Any) -> Any:
        raise BadInput("nothing to compare with")

    monkeypatch.setattr(Quick, "claims", claims)
    said = cli("report", "--out", shelf)
    assert said.status == 0
    assert "left out: nothing to compare with" in said.err
    assert "Growth is exponential." in Path(said.out.strip()).read_text(encoding="utf-8")


def test_records_of_one_study_are_told_apart(cli: CLI, shelf: Path) -> None:
    text = Path(cli("report", "--out", shelf).out.strip()).read_text(encoding="utf-8")
    targets = re.findall(r'<section class="study saltus" id="([^"]+)"', text)
    assert len(set(targets)) == 3
    assert sorted(re.findall(r'<li><a href="#([^"]+)"', text)) == sorted(targets)
    assert "tests/plain · as-written; changed: name, truth" in text


def test_runs_no_figure_can_show_are_still_reported(
    Plain: Any, cli: CLI, plain_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(*_: Any) -> Any:
        raise ValueError("Maximum allowed size exceeded")

    monkeypatch.setattr(Plain, "draw", draw)
    said = cli("run", plain_file, "--out", tmp_path, "--truth", "lost")
    assert said.status == 1
    assert "not drawn: runs left the numbers" in said.err
    assert "24 of 24 runs diverged" in said.out
    page = Path(cli("report", "--out", tmp_path).out.strip()).read_text(encoding="utf-8")
    assert "24 of 24 runs diverged, the first at 3" in page
    # With finite numbers the same failure is a fault of the study's.
    with pytest.raises(ValueError, match="Maximum"):
        saltus.run(Plain(), out=tmp_path).figure()


def test_two_claims_of_one_name_are_a_mistake(
    Quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = saltus.run(Quick(), out=tmp_path)
    twice = list(outcome.claims) * 2
    monkeypatch.setattr(type(outcome.study), "claims", lambda *_: twice)
    with pytest.raises(BadInput, match="share an id"):
        _ = type(outcome)(outcome.study, outcome.record).claims


def test_where_no_page_can_be_written(cli: CLI, shelf: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for to, says in (
        ("/dev/null", "is no plain file"),
        (tmp_path / "pipe", "is no plain file"),
        (tmp_path, "is a folder"),
        ("/proc/page.html", "cannot write"),
        (tmp_path / "file" / "page.html", "cannot write"),
        (tmp_path / ("x" * 300), "cannot write"),
    ):
        assert says in cli("report", "--out", shelf, "--to", to).refused()
    assert not Path("/dev/null").is_file()


def test_a_page_goes_where_a_link_leads(cli: CLI, shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    for _ in range(2):
        assert cli("report", "--out", shelf, "--to", tmp_path / "link.html").status == 0
    assert (tmp_path / "link.html").is_symlink()
    assert "<h2>" in (tmp_path / "page.html").read_text(encoding="utf-8")
