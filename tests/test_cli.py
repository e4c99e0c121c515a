from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from said import Said
from saltus.cli import main

CLI = Callable[..., Said]
KEYS = [
    "id", "title", "figure", "cites", "settings", "variant", "device", "seconds", "computed", "record",
    "command", "diverged", "claims",
]  # fmt: skip


@pytest.fixture
def run(cli: CLI, plain_file: Path, tmp_path: Path) -> CLI:
    return lambda *words: cli("run", plain_file, "--quiet", "--out", tmp_path / "out", *words)


def saltus(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **options.pop("env", {})}
    line = [sys.executable, "-m", "saltus", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, env=env, timeout=120, **options)


def test_json_is_the_contract(run: CLI) -> None:
    (row,) = run("--json").objects
    assert list(row) == KEYS
    assert row["id"] == "tests/plain"
    assert row["settings"]["mu"] == [[1.0, 2.0], [2.0, 2.0]]
    assert Path(row["record"]).is_dir()
    near, runs = row["claims"]
    assert near["holds"] is near["expected"] is True
    assert near["control"]["holds"] is False
    assert runs["threshold"] is None  # minus infinity, which JSON cannot say
    assert row["device"].startswith("cpu")


def test_exit_status(run: CLI) -> None:
    assert run().status == 0
    failed = run("--truth", "fails", "--json")
    assert (failed.status, failed.objects[0]["claims"][0]["holds"]) == (1, False)
    lost = run("--truth", "lost", "--json", "--no-figure")
    assert (lost.status, lost.objects[0]["claims"][0]["value"]) == (1, None)
    assert lost.objects[0]["diverged"] == {"runs": 24, "of": 24, "first": 3.0}
    assert "24 of 24 runs diverged, the first at 3" in run("--truth", "lost").out
    run("--truth", "perhaps").refused()


def test_one_object_a_study(cli: CLI, plain_file: Path, quick_file: Path, tmp_path: Path) -> None:
    said = cli("run", plain_file, quick_file, "--json", "--no-figure", "--out", tmp_path, "--rate", "3")
    assert [row["id"] for row in said.objects] == ["tests/plain", "tests/quick"]
    assert {row["settings"]["rate"] for row in said.objects} == {3.0}
    assert "2 studies" in said.err


def test_the_command_shows_it_again(run: CLI, cli: CLI, tmp_path: Path) -> None:
    (row,) = run(
        "--json", "--no-figure", "--mu", "-1,-2", "3,4", "--name", "two words", "--words", "a b", "c"
    ).objects
    again = cli(
        *shlex.split(row["command"])[1:], "--json", "--no-figure", "--quiet", "--out", tmp_path / "out"
    )
    assert again.objects == [row | {"computed": False}]


def test_views_lie_beside_the_record(run: CLI) -> None:
    (row,) = run("--json").objects
    place = Path(row["record"])
    assert {p.name for p in place.iterdir()} == {
        "manifest.json",
        "data.zarr",
        "claims.json",
        "figure.png",
        "figure.pdf",
    }
    first = (place / "figure.png").read_bytes(), (place / "figure.pdf").read_bytes()
    run()
    assert ((place / "figure.png").read_bytes(), (place / "figure.pdf").read_bytes()) == first


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lst"], "no command 'lst'; did you mean list?"),
        (["list", "--jsn"], "did you mean json"),
        (["show"], "show needs a study"),
        (["show", "tests/plian"], "no study"),
        (["run"], "run needs a study"),
        (["run", "--all", "sim"], "leave out"),
        (["run", "FILE", "--rat", "1"], "no option --rat; did you mean rate?"),
        (["run", "sim", "--sead", "3"], "none of these studies has an option --sead; did you mean seeds?"),
        (["run", "FILE", "--jso"], "did you mean json"),
        (["run", "FILE", "--run", "1"], "did you mean runs"),
        (["run", "FILE", "--rate"], "rate needs a value"),
        (["run", "FILE", "--rate", "1", "--rate", "2"], "given twice"),
        (["run", "FILE", "--out", "a", "--out", "b"], "given twice"),
        (["run", "FILE", "--out"], "--out needs a value"),
        (["run", "FILE", "--out="], "--out needs a value"),
        (["run", "FILE", "--json=yes"], "takes no value"),
        (["run", "FILE", "-x"], "no option -x"),
        (["run", "FILE", "--"], "-- alone"),
        (["run", "FILE", "--span", "2,1"], "from a smaller number"),
        (["run", "FILE", "--rate", "-1"], "greater than 0, not -1"),
        (["run", "FILE", "--runs", "a\0"], "null character"),
        (["run", "FILE", "--name", "a", "b"], "takes a word"),
        (["run", "FILE", "\u2014rate", "2"], "two plain hyphens: --rate"),
        (["run", "FILE", "--Rate", "2"], "did you mean rate"),
        (["show", "SIM/FIG2A"], "did you mean sim/fig2a"),
        (["run", "nowhere.py"], "no file nowhere.py"),
        (["run", "x" * 5000 + ".py"], "name too long"),
        (["run", ""], "no study ''"),
        (["run", "-5"], "no study '-5'"),
        (["tour", "sim"], "takes no study"),
        (["report", "--out", "nowhere"], "no store at nowhere"),
        (["report", "--to", "x", "--out", "nowhere"], "no store"),
    ],
)
def test_bad_input_is_one_clear_line(
    words: list[str], says: str, cli: CLI, plain_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = cli(*[str(plain_file) if w == "FILE" else w for w in words])
    assert says in said.refused()
    assert len(said.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


TOML = {
    'rate = 2.5\nmu = [[1, 2], [3, 4]]\nnoisy = false\nname = "x"\n': None,
    "widths = 3\nspan = [0, 2]": None,
    "rate = ": "not TOML",
    "rate = nan": "finite",
    "rate = 1979-05-27": "takes a number",
    "[rate]\na = 1": "is a table",
    "rat = 1": "did you mean rate",
    "runs = " + "9" * 5000: "not TOML",
    "runs = 0x" + "f" * 5000: "too large",
    "mu = " + "[" * 5000: "not TOML",
    "mu = [{a = 1}]": "takes 2 values",
    "\ufeffrate = 2.5": None,  # as some editors begin every file
    "json = true": "json is an option of the command line",
    "no-isy = true": "did you mean noisy",
    "a-b = 1\na_b = 2": "'a_b' is given twice",
    "rate = 1 #" + "x" * (1 << 20): "too long",
}


@pytest.mark.parametrize("text", TOML, ids=lambda text: text[:20].replace("\n", ";"))
def test_settings_from_a_file(text: str, run: CLI, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    said = run("--settings", file, "--no-figure", "--json")
    says = TOML[text]
    if says is None:
        assert said.status == 0
    else:
        assert says in said.refused()


def test_the_line_wins_over_the_file(run: CLI, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("rate = 2.5\nno-such = 1")
    assert "settings.toml: tests/plain has no setting no-such" in run("--settings", file).refused()
    file.write_text("rate = 2.5\nruns = 9")
    (row,) = run("--settings", file, "--rate", "3", "--json", "--no-figure").objects
    assert (row["settings"]["rate"], row["settings"]["runs"]) == (3.0, 9)
    file.write_bytes(b"\xff\xfe")
    run("--settings", file).refused()
    run("--settings", tmp_path).refused()
    run("--settings", tmp_path / "none.toml").refused()


def test_a_file_without_end_is_not_read_to_it(run: CLI) -> None:
    assert "too long" in run("--settings", "/dev/zero").refused()


BROKEN = {
    "raise ZeroDivisionError('deep\\nin it')": "line 1 could not be imported: ZeroDivisionError: deep in it",
    "import sys; sys.exit(7)": "could not be imported: SystemExit",
    "def (": "SyntaxError",
    "x = 1": "registers no study",
    "import nothing_of_that_name": "ModuleNotFoundError",
    "import saltus\n@saltus.study('mine/x')\nclass X: pass": "put @dataclass",
    "import saltus\n@saltus.study('../../mine')\nclass X: pass": "not a study's id",
    "import saltus\n@saltus.study('mine')\nclass X: pass": "not a study's id",
    "\0": "could not be imported",
    "raise RecursionError": "RecursionError",
    "raise BaseException('out')": "BaseException: out",
    "DECLARED a: dict = saltus.setting(None, 'a')": "a is declared as dict; a setting is int",
    "DECLARED a: 'Nope' = saltus.setting(1, 'a')": "name 'Nope' is not defined",
    "DECLARED a: int = saltus.setting('b', 'a')": "a has a default it cannot have",
    "DECLARED json: int = saltus.setting(1, 'a')": "cannot be called json",
    "import saltus\nsaltus.study('mine/x', checks='one')": "a tuple of sentences",
    "import saltus\nsaltus.study('mine/x', version='1')": "version is a whole number",
    "import saltus\nsaltus.study('mine/x', cost=3)": "cost is a word or a sentence",
}
DECLARED = """
import saltus
from dataclasses import dataclass

@saltus.study("mine/declared")
@dataclass
class Declared:
    %s
    def run(self): ...
    def claims(self, record, law): ...
"""


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:20])
def test_a_users_file_that_is_no_study(text: str, cli: CLI, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(DECLARED % text[9:] if text.startswith("DECLARED") else text)
    assert BROKEN[text] in cli("run", file, "--out", tmp_path / "out").refused()
    cli("run", file, "--out", tmp_path / "out").refused()  # half a file is none the second time either


def test_two_studies_of_one_name_in_a_file(cli: CLI, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    one = DECLARED % "x: int = 1"
    file.write_text(one + one.replace("class Declared", "class Other"))
    assert "two studies called 'mine/declared'" in cli("run", file, "--out", tmp_path / "out").refused()


def test_a_changed_file_is_read_anew(cli: CLI, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(DECLARED % "x: int = 1")
    assert "--x 1" in cli("show", file).out
    file.write_text(DECLARED.replace("mine/declared", "mine/renamed") % "x: int = 2")
    assert "--x 2" in cli("show", file).out
    assert "mine/declared" not in cli("list").out


def test_a_fault_in_a_users_study_is_told_with_its_line(cli: CLI, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\nimport saltus\n\n\n@saltus.study('mine/broken')\n"
        "@dataclass(frozen=True)\nclass Broken:\n    def run(self):\n        return 1 // 0\n\n"
        "    def claims(self, record, law): ...\n"
    )
    said = cli("run", file, "--out", tmp_path / "out", "--quiet")
    assert f"{file}, line 9: ZeroDivisionError" in said.refused()
    assert "Traceback" in cli("run", file, "--out", tmp_path / "out", "--debug").err


LOUD = """
import sys
from dataclasses import dataclass
import saltus, xarray

print("while it is read")

@saltus.study("mine/loud")
@dataclass(frozen=True)
class Loud:
    how: str = saltus.setting("prints", "what it does")
    def run(self):
        print("while it runs")
        if self.how == "exits":
            sys.exit(7)
        if self.how == "refuses":
            raise saltus.BadInput("it cannot be done")
        return xarray.Dataset({"x": 1.0})
    def claims(self, record, law):
        yield from ()
"""


def test_nothing_but_objects_on_stdout(cli: CLI, quick_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "loud.py"
    file.write_text(LOUD)
    said = cli("run", file, "--json", "--out", tmp_path / "out")
    assert [row["id"] for row in said.objects] == ["mine/loud"]
    assert "while it is read" in said.err
    assert "while it runs" in said.err
    assert "SystemExit: 7" in cli("run", file, "--how", "exits", "--quiet", "--out", tmp_path / "out").err
    # What was done before something failed is told all the same, and what failed leaves nothing behind.
    said = cli("run", quick_file, file, "--how", "refuses", "--json", "--out", tmp_path / "new")
    assert (said.status, [row["id"] for row in said.objects]) == (2, ["tests/quick"])
    assert said.err.endswith("saltus: it cannot be done\n")
    assert [p.name for p in (tmp_path / "new" / "mine" / "loud").iterdir()] == []


@pytest.mark.parametrize(
    ("run", "claims", "draw", "says"),
    [
        ("3", "()", "None", "run must return an xarray Dataset, not int"),
        ("xr.Dataset()", "None", "None", "claims must yield claims, not NoneType"),
        ("xr.Dataset()", "[3]", "None", "claims must yield claims, not int"),
        ("xr.Dataset()", "()", "None", "draw must return a figure, not NoneType"),
    ],
)
def test_a_users_study_that_gives_back_the_wrong_thing(
    run: str, claims: str, draw: str, says: str, cli: CLI, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\nimport saltus\nimport xarray as xr\n\n\n"
        f"@saltus.study('mine/{tmp_path.name}')\n@dataclass(frozen=True)\nclass Wrong:\n"
        f"    def run(self):\n        return {run}\n\n"
        f"    def claims(self, record, law):\n        return {claims}\n\n"
        f"    def draw(self, record, law):\n        return {draw}\n"
    )
    said = cli("run", file, "--out", tmp_path / "out", "--quiet")
    assert f"mine/{tmp_path.name}: {says}" in said.refused()


def test_help_everywhere(cli: CLI, plain_file: Path) -> None:
    for words in (
        [],
        ["help"],
        ["--help"],
        ["-h"],
        *([c, "--help"] for c in ("list", "show", "report", "tour", "data")),
    ):
        said = cli(*words)
        assert said.status == 0
        assert "saltus run ID" in said.out
    assert "saltus run ID" in cli("run", "--help").out
    for word in ("--help", "-h"):
        said = cli("run", plain_file, word)
        assert "--rate 1.0" in said.out
        assert "(as-written | as-drawn)" in said.out
    assert cli("--version").out.startswith("saltus 0.")


def test_show(cli: CLI, plain_file: Path) -> None:
    out = cli("show", plain_file).out
    for words in (
        "tests/plain  Growth is exponential.",
        "A longer word",
        "Fig. 0",
        "nothing",
        "- the growth is",
    ):
        assert words in out
    assert "--reading as-drawn stands for: --rate 2.0 --widths 3,4" in out
    assert max(map(len, out.splitlines())) <= 100


# --- what loads and how long it takes -----------------------------------------------------------------

HEAVY = ("numpy", "jax", "xarray", "zarr", "matplotlib", "rich", "pandas")


@pytest.mark.parametrize(
    "words", [["--help"], ["list"], ["list", "--json"], ["run", "FILE", "--help"], ["show", "FILE"]]
)
def test_nothing_heavy_is_loaded_to_answer(words: list[str], plain_file: Path) -> None:
    words = [str(plain_file) if w == "FILE" else w for w in words]
    code = (
        "import sys, contextlib, io\nfrom saltus.cli import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()): main({words!r})\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("word", ["--help", "list"])
def test_answers_in_time(word: str) -> None:
    # Processor time, not time on the clock: other work on the machine must not fail this.
    code = (
        f"from saltus.cli import main\nmain([{word!r}])\n"
        "import sys, time\nprint(time.process_time(), file=sys.stderr)"
    )
    # As installed: modules are compiled once, by pip or by the first command.
    home = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=home)
        for _ in range(3)
    ]
    assert min(float(run.stderr.splitlines()[-1]) for run in runs) < 0.3


# --- streams and places -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def done(quick_file: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    out = tmp_path_factory.mktemp("done")
    line = ["run", str(quick_file), "--out", str(out)]
    assert main([*line, "--quiet"]) == 0
    return line


def shell(line: str, **env: str) -> tuple[int, str, str]:
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env={**os.environ, **env}, errors="replace"
    )
    return done.returncode, done.stdout, done.stderr


def test_streams_that_are_closed_full_or_plain(done: list[str]) -> None:
    line = f"{sys.executable} -m saltus {' '.join(done)}"
    assert shell(f"{line} >&-")[0] == 0
    assert shell(f"{line} >&- 2>&- <&-")[0] == 0
    status, out, err = shell(f"{line} --json 2>&-")
    assert (status, err, out[:1], out.count("\n")) == (0, "", "{", 1)
    status, _, err = shell(f"{line} --json --quiet >/dev/full")
    assert (status, err) == (2, "saltus: No space left on device\n")
    status, _, err = shell(f"set -o pipefail; {line} --json --quiet | true")
    assert status in (0, 141)
    assert not err
    # Progress that nobody can read is no reason to stop.
    status, out, _ = shell(f"{line} --json 2>/dev/full")
    assert (status, out.count("\n")) == (0, 1)
    for env in (
        {"COLUMNS": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"COLUMNS": "5"},
        {"COLUMNS": "1", "TERM": "dumb"},
        {"TERM": "", "COLUMNS": "huge"},
    ):
        status, out, err = shell(f"{line}", **env)
        assert (status, "Error" in err) == (0, False), (env, err)
        assert out
    assert ">= 1" in shell(line, PYTHONIOENCODING="ascii", COLUMNS="200")[1]
    assert len(shell(line, COLUMNS="1")[1].splitlines()) < 30
    listed = shell(f"{sys.executable} -m saltus list", PYTHONIOENCODING="ascii")[1]
    assert "Boix-Adsera" in listed
    assert "?" not in listed


def test_a_home_that_cannot_be_written(quick_file: Path, tmp_path: Path) -> None:
    for home in ("/proc", "/nonexistent"):
        said = saltus("run", quick_file, "--out", tmp_path, "--json", env={"HOME": home, "TMPDIR": "/proc"})
        assert said.returncode == 0, said.stderr


def test_a_fault_of_ours_is_one_line_and_a_file(
    cli: CLI, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from saltus import commands

    def broken(words: list[str]) -> int:
        raise AssertionError("what?")

    monkeypatch.setattr(commands, "do_run", broken)
    said = cli(*done)
    assert said.status == 3
    log = Path(said.err.split()[-1])
    assert "what?" in log.read_text()
    log.unlink()
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.tempdir", "/nowhere")
        assert "--debug" in cli(*done).err

    def huge(words: list[str]) -> int:
        raise MemoryError

    monkeypatch.setattr(commands, "do_run", huge)
    assert "not enough memory" in cli(*done).refused()


# --- any line at all ----------------------------------------------------------------------------------

_NAMES = (
    "rate runs noisy name kind mode cut size widths span mu layers words flags cuts holds reading "
    "json again no-figure quiet out settings help all debug zzz - _ no_figure é 1 -x"
)
_ODD = (
    "nan inf -inf 1e400 -1e400 1e-400 0 -0 -1 1 2,3 1,2;3,4 [[1,2],[3,4]] [[[[[1]]]]] [ ((( () [] {} '' -- - "
    "--- -x none None true False ☃ é٣ \u202e \x1b[31m 0x10 1_000 +-5 -5,-6 99999999999999999999 1e18 "
    "9223372036854775807 , ; = ../.. / ~ * $(ls) %s {0} as-drawn up fine"
)
NAMES, ODD = _NAMES.split(), ["", *_ODD.split()]
values = st.one_of(
    st.sampled_from(ODD),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=12),
    st.text(st.characters(categories=["Cs", "Cc"]), max_size=3),
    st.lists(st.floats(-9, 9), max_size=4).map(str),
)
names = st.sampled_from(NAMES)
options = st.one_of(
    names.map(lambda n: [f"--{n}"]),
    st.tuples(names, values).map(lambda t: [f"--{t[0]}", t[1]]),
    st.tuples(names, values).map(lambda t: [f"--{t[0]}={t[1]}"]),
    st.tuples(names, values, values).map(lambda t: [f"--{t[0]}", t[1], t[2]]),
    values.map(lambda v: [v]),
)


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judge(said: Said) -> None:
    assert said.status in (0, 1, 2), said
    assert "Traceback" not in said.err + said.out
    if said.status == 2:
        assert said.err.splitlines()[-1].startswith("saltus: ")


def test_no_line_breaks_run(cli: CLI, quick_file: Path, inside: Path) -> None:
    @settings(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(st.lists(options, max_size=3))
    def judged(given_: list[list[str]]) -> None:
        words = [w for option in given_ for w in option]
        judge(cli("run", quick_file, "--no-figure", *words))

    judged()


def test_no_setting_breaks_a_run_it_is_accepted_by(cli: CLI, quick_file: Path, inside: Path) -> None:
    accepted = 0

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(NAMES[:17]), values)
    def judged(name: str, value: str) -> None:
        nonlocal accepted
        said = cli("run", quick_file, "--no-figure", "--json", "--quiet", f"--{name}={value}")
        judge(said)
        if said.status != 2:
            accepted += 1
            assert len(said.objects) == 1

    judged()
    assert accepted


@pytest.mark.parametrize("command", ["list", "show", "report", "help", ""])
def test_no_line_breaks_the_rest(command: str, cli: CLI, inside: Path) -> None:
    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(st.lists(values | names.map(lambda n: f"--{n}"), max_size=3))
    def judged(words: list[str]) -> None:
        judge(cli(*([command] if command else []), *words))

    judged()
