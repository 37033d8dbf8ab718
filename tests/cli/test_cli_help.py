"""What the command line says of itself, and to a line that it cannot read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Command

from comity import __version__
from comity.cli import app, main
from comity.cli.exits import MEANINGS, Exit

COMMANDS = ["crawl", "run", "init", "status", "why", "robots", "demo"]


@pytest.fixture
def comity(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


def test_the_commands_are_these() -> None:
    assert [command.name for command in app.registered_commands] == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_examples_and_exit_codes(comity: Command, command: str) -> None:
    ran = comity(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"Usage: comity {command}" in ran.out
    assert f"\n  Examples:\n    comity {command}" in ran.out
    assert "\n  Exit codes:\n    0   " in ran.out
    assert all(len(line) <= 120 for line in ran.out.splitlines())


def test_the_first_help_names_all_of_both(comity: Command) -> None:
    ran = comity("--help")
    assert all(f"\n  {command} " in ran.out for command in COMMANDS)
    assert all(f"\n    {code.value:<3} {MEANINGS[code]}\n" in ran.out for code in Exit)
    assert comity() == ran


def test_the_version(comity: Command) -> None:
    assert comity("--version").out == f"comity {__version__}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["crwl"], "no such command 'crwl'; did you mean crawl? (see comity --help)"),
        (["zzz"], "no such command 'zzz' (see comity --help)"),
        (["crawl", "--dely", "2"], "no such option: --dely; did you mean --delay? (see comity crawl --help)"),
        (
            ["crawl", "--maxpages", "2"],
            "no such option: --maxpages; did you mean --max-pages? (see comity crawl --help)",
        ),
        (["why", "https://a.example/"], "missing option '-o' / '--out' (see comity why --help)"),
        (["crawl", "--delay", "soon", "x"], "'soon' is no duration: give seconds, or a text such as "),
        (["crawl", "--delay", "-1", "x"], "'-1' is no duration"),
        (["crawl", "--delay", "inf", "x"], "'inf' is no duration"),
        (["crawl", "--max-pages", "0", "x"], "'0' is not a whole number of 1 or more"),
        (["crawl", "--max-depth", "1.5", "x"], "'1.5' is not a whole number of 0 or more"),
        (["crawl", "--scope", "page", "x"], "'page' is not one of host, domain, any"),
        (["run", "x", "--until", "dawn"], "'dawn' is no duration"),
        (["crawl"], "there is nothing to crawl: give a URL, --seeds FILE, or -o DIR of a crawl that is there"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_line_that_cannot_be_read_is_told_in_one_line(comity: Command, line: list[str], said: str) -> None:
    ran = comity(*line)
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert len(ran.errors) == 1 and ran.err.startswith("comity: ") and said in ran.err
    assert comity.files() == []


def test_a_fault_of_ours_is_one_line_and_says_how_to_see_more(
    comity: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("comity.config.defaults", broken)
    ran = comity("init", "x")
    assert ran.code == Exit.FAILED
    assert ran.errors == [
        "comity: a fault of ours: RuntimeError: two lines "
        "(run it again with --traceback or COMITY_TRACEBACK=1 to see where)"
    ]
    for line, environment in (
        (["init", "x", "--traceback"], "0"),
        (["--traceback", "init", "x"], ""),
        (["init", "x"], "1"),
    ):
        monkeypatch.setenv("COMITY_TRACEBACK", environment)
        assert main(line) == Exit.FAILED
        said = capsys.readouterr().err
        assert said.startswith("Traceback") and "in broken" in said and said.splitlines()[-1] == ran.errors[0]


def test_a_reader_that_leaves_ends_us_in_silence(tmp_path: Path) -> None:
    """As in ``comity --help | head -0``: the pipe has no reader when we write."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        ended = subprocess.run(
            [sys.executable, "-m", "comity", "--help"], stdout=closed, stderr=subprocess.PIPE, check=False, cwd=tmp_path
        )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_help_needs_no_network_and_no_store() -> None:
    programme = (
        "import sys; from comity.cli import main; main(['--help']); "
        "print(sorted({'pycurl', 'uvloop', 'sqlite3', 'aiodns'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", programme], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def _shell(script: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = ["sh", "-c", script, "sh", sys.executable, "-m", "comity", *words]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_stop_nothing(tmp_path: Path, closed: str) -> None:
    """As daemons start programmes. The loop would abort, and remarks would go into the first file opened."""
    words = ("crawl", "http://a.localhost:9000/", "-o", "x", "--allow-private", "--delay", "0", "--patience", "0")
    ended = _shell(f'"$@" {closed}', tmp_path, *words)
    assert ended.returncode == 0, ended.stderr
    assert "fault" not in ended.stderr
    assert "comity:" not in (tmp_path / "x/seeds.txt").read_text()
    assert (tmp_path / "x/frontier.sqlite").read_bytes().startswith(b"SQLite format 3")
    assert _shell(f'"$@" {closed}', tmp_path, "status", "x").returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_log_on_a_full_disk_stops_no_crawl(tmp_path: Path) -> None:
    words = ("crawl", "http://a.localhost:9000/", "-o", "x", "--allow-private", "--delay", "0", "--patience", "0")
    ended = _shell('"$@" 2>/dev/full', tmp_path, *words)
    assert ended.returncode == 0
    assert ended.stdout.startswith("0 pages in ")
