from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import saltus
from saltus import BadInput, python
from saltus.core import lab


def test_three_lines_do_what_the_command_line_does(plain_file: Path, tmp_path: Path) -> None:
    outcome = saltus.run(str(plain_file), out=tmp_path, rate=2)
    again = saltus.run(str(plain_file), out=tmp_path, rate="2.0")
    data = saltus.load(outcome.record.path)
    assert (outcome.computed, again.computed) == (True, False)
    xr.testing.assert_equal(outcome.data, data)
    assert data.attrs["manifest"]["settings"]["rate"] == 2.0
    assert outcome.as_documented
    assert [c.id for c in outcome.claims] == ["near", "runs"]
    assert outcome.law is not None
    assert outcome.figure().axes


def test_what_run_takes(Quick: Any, quick_file: Path, tmp_path: Path) -> None:
    for study in (Quick, Quick(), str(quick_file)):
        assert saltus.run(study, out=tmp_path).record.manifest["study"] == "tests/quick"
    assert saltus.run(Quick, out=tmp_path, rate=3).data.x.item() == 3
    with pytest.raises(BadInput, match="constructor"):
        saltus.run(Quick(), out=tmp_path, rate=3)
    for wrong in (3, None, int, {"a": 1}):
        with pytest.raises(BadInput, match="takes a study"):
            saltus.run(wrong, out=tmp_path)
    with pytest.raises(BadInput, match="no study 'tests/quik'"):
        saltus.run("tests/quik", out=tmp_path)


def test_reopening_computes_nothing(Plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = saltus.run(Plain(), out=tmp_path)
    monkeypatch.setattr(lab, "_compute", None)
    again = saltus.reopen(first.record.path)
    assert not again.computed
    assert [c.as_json() for c in again.claims] == [c.as_json() for c in first.claims]


def test_reopening_a_record_of_another_version(Plain: Any, tmp_path: Path) -> None:
    path = saltus.run(Plain(), out=tmp_path).record.path
    file = path / "manifest.json"
    held = json.loads(file.read_text()) | {"version": 7}
    del held["seal"]  # as in the records of the first saltus
    file.write_text(json.dumps(held))
    with pytest.raises(BadInput, match="version 7"):
        python.reopen(path)
    file.write_text(json.dumps(held | {"study": "tests/gone"}))
    with pytest.raises(BadInput, match="does not know"):
        python.reopen(path)


def test_a_record_brings_its_users_file_along(plain_file: Path, tmp_path: Path) -> None:
    path = saltus.run(str(plain_file), out=tmp_path).record.path
    code = f"from saltus import python; print(python.reopen({str(path)!r}).as_documented)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_study_written_at_a_prompt(tmp_path: Path) -> None:
    code = f"""
from dataclasses import dataclass
import saltus, xarray

@saltus.study("mine/prompt")
@dataclass(frozen=True)
class Prompt:
    x: int = saltus.setting(1, "x")
    def run(self):
        return xarray.Dataset({{"x": self.x}})
    def claims(self, record, law):
        yield from ()

o = saltus.run(Prompt(x=2), out={str(tmp_path)!r})
print(o.data.x.item(), o.record.manifest["command"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2 saltus run mine/prompt --x 2\n"


def test_representations(Plain: Any, tmp_path: Path) -> None:
    from rich.console import Console

    outcome = saltus.run(Plain(), out=tmp_path)
    console = Console(width=150, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(outcome)
    console.file.close()
    text = console.export_text()
    # Square brackets are a study's own words, never markup.
    assert "theory [and] run are near" in text
    assert "control: twice [the] law" in text
    assert "Growth is exponential." in text
    page = outcome._repr_html_()
    assert page.count("<section") == page.count("</section>") == 1
    assert "data:image/png;base64," in page
    assert len(repr(outcome)) < 10_000
    assert "near" in repr(outcome.claims[0])
    assert str(outcome.claims["runs"]).startswith("holds: there are runs: 24 [24, 24] (n=1), must be ≥ -inf")
    assert [c.id for c in outcome.claims[:1]] == ["near"]
    with pytest.raises(BadInput, match="did you mean near"):
        _ = outcome.claims["neat"]
    table = outcome.claims._repr_html_()
    assert table.count("<tr>") == 3
    assert "theory [and] run are near" in table
    assert "tests/plain" in outcome.record._repr_html_()
    assert "tests/plain" in repr(outcome.record)


def test_what_is_told_is_what_is_drawn_now(Plain: Any, tmp_path: Path) -> None:
    first, later = (saltus.run(Plain(colour=c), out=tmp_path) for c in ("blue", "red"))
    assert first.record.path == later.record.path  # a colour computes nothing
    told = later.as_json()
    assert told["settings"]["colour"] == "red"
    assert told["command"].endswith("--colour red")
    assert first.as_json()["command"] == first.record.manifest["command"]
    assert "--colour red" in later._repr_html_()


def test_the_studies_there_are() -> None:
    assert {"sim/fig2a", "sim/fig18", "sim/census"} <= set(python.studies())
    assert "Growth" in saltus.show(str(Path(__file__).parent / "studies" / "plain.py"))
    assert set(dir(saltus)) >= {"run", "load", "study", "train"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = saltus.nothing  # type: ignore[attr-defined]
