"""Bad input: each has one clear line, its exit code, and leaves what is there as it was."""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path

import pytest
from commands import Command

from comity.cli.exits import Exit
from comity.config import defaults, dumps_commented, override
from comity.crawldir import create
from comity.fakeweb import Site, in_thread, page
from comity.frontier.lock import DirectoryLock

SEED = "http://a.localhost:8999/"


@pytest.fixture
def comity(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


def a_crawl(path: str = "x", seeds: str = f"{SEED}\n") -> Path:
    settings = override(defaults(), {"address.allow_private": True})
    return create(Path(path), dumps_commented(settings), seeds).root


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("line", [("crawl", "-o", "x"), ("run", "x"), ("status", "x"), ("why", SEED, "-o", "x")])
def test_an_unknown_key_is_told_with_its_line_and_what_was_meant(comity: Command, line: tuple[str, ...]) -> None:
    config = a_crawl() / "comity.toml"
    config.write_text("[politeness]\n\ndelay = 2\n")
    ran = comity(*line)
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert ran.errors == ["comity: x/comity.toml, line 3: unknown key politeness.delay; did you mean delay_s?"]


def test_a_bad_line_of_seeds_is_told_with_file_and_number_and_the_others_are_crawled(comity: Command) -> None:
    with in_thread([Site("a.localhost", {"/": page()})]) as web:
        Path("s.txt").write_text(f"{web.url('a.localhost', '/')}\n\nftp://a.localhost/\nhttps://exa mple/\n")
        ran = comity("crawl", "--seeds", "s.txt", "-o", "x", "--allow-private", "--quiet")
    assert ran.code == Exit.OK
    assert len(ran.errors) == 2
    assert ran.errors[0].startswith("comity: s.txt, line 3: 'ftp://a.localhost/' cannot be crawled: ")
    assert ran.errors[1].startswith("comity: s.txt, line 4: there is white space in the URL")
    assert ran.out.startswith("1 page in ")
    assert Path("x/seeds.txt").read_text().count("\n") == 1, "what cannot be crawled is not kept"


def test_no_good_seed_at_all_is_an_error_and_makes_nothing(comity: Command) -> None:
    Path("s.txt").write_text("ftp://a.localhost/\n")
    ran = comity("crawl", "--seeds", "s.txt", "-o", "x")
    assert ran.code == Exit.USAGE
    assert ran.errors[-1] == "comity: none of the seeds can be crawled"
    assert comity.files() == ["s.txt"]


@pytest.mark.parametrize("name", ["none.txt", "."])
def test_a_file_of_seeds_that_cannot_be_read(comity: Command, name: str) -> None:
    ran = comity("crawl", "--seeds", name, "-o", "x")
    assert ran.code == Exit.USAGE
    assert len(ran.errors) == 1 and ran.errors[0].startswith(f"comity: cannot read the seeds in {name}: ")
    assert comity.files() == []


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [
        ("/proc/comity-test", Exit.CANNOT_WRITE, "/proc/comity-test cannot be made or written: "),
        ("file", Exit.CANNOT_WRITE, "file is a file: a crawl is a directory"),
        ("file/x", Exit.CANNOT_WRITE, "file/x cannot be made: part of its path is a file"),
        ("full", Exit.CANNOT_WRITE, "full is not empty and no crawl (it holds mine.txt): choose another directory"),
    ],
)
@pytest.mark.parametrize("command", ["crawl", "init"])
def test_a_directory_that_cannot_be_made(comity: Command, command: str, place: str, code: Exit, said: str) -> None:
    Path("file").write_text("mine")
    Path("full").mkdir()
    Path("full/mine.txt").write_text("mine")
    ran = comity("crawl", SEED, "-o", place, "--allow-private") if command == "crawl" else comity("init", place)
    assert (ran.code, ran.out) == (code, "")
    assert len(ran.errors) == 1 and ran.errors[0].startswith(f"comity: {said}")
    assert contents(comity.folder) == {"file": b"mine", "mine.txt": b"mine"}


@pytest.mark.parametrize("line", [("crawl", "-o", "x"), ("run", "x")])
def test_a_directory_that_may_not_be_written(
    comity: Command, monkeypatch: pytest.MonkeyPatch, line: tuple[str, ...]
) -> None:
    """Root may write everywhere, so the system's answers are given here."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    a_crawl()
    monkeypatch.setattr("os.access", lambda path, how: False)
    monkeypatch.setattr("os.open", refuse)
    ran = comity(*line)
    monkeypatch.undo()
    assert (ran.code, ran.errors) == (Exit.CANNOT_WRITE, ["comity: x cannot be written: permission denied"])


@pytest.mark.parametrize("line", [("crawl", "http://b.localhost:8999/", "-o", "x"), ("run", "x")])
def test_a_second_crawl_in_a_directory_is_kept_off(comity: Command, line: tuple[str, ...]) -> None:
    root = a_crawl()
    with DirectoryLock(root):
        before = contents(root)
        ran = comity(*line)
        assert contents(root) == before
    assert (ran.code, ran.out) == (Exit.LOCKED, "")
    assert ran.errors[-1].startswith("comity: another crawl (process ") and " is at work in x" in ran.errors[-1]


@pytest.mark.parametrize(
    "line",
    [("crawl", "http://b.localhost:8999/", "-o", "x"), ("run", "x"), ("status", "x"), ("why", SEED, "-o", "x")],
)
def test_a_directory_of_a_newer_schema_is_not_touched(comity: Command, line: tuple[str, ...]) -> None:
    root = a_crawl()
    assert comity("crawl", "-o", "x", "--patience", "0").code == Exit.OK
    with sqlite3.connect(root / "frontier.sqlite") as database:
        database.execute("pragma user_version = 99")
    database.close()
    before = contents(root)
    ran = comity(*line)
    assert (ran.code, ran.out) == (Exit.TOO_NEW, "")
    assert len(ran.errors) == 1 and "its schema is version 99, and this comity knows versions up to" in ran.errors[0]
    after = contents(root)
    assert {name: after[name] for name in ("seeds.txt", "comity.toml")} == {
        name: before[name] for name in ("seeds.txt", "comity.toml")
    }


@pytest.mark.parametrize(
    "line", [("crawl", "https://books.example/", "-o", "x"), ("robots", "https://books.example/"), ("run", "x")]
)
def test_without_a_contact_nothing_starts(comity: Command, line: tuple[str, ...]) -> None:
    if line[0] == "run":
        a_crawl(seeds="https://books.example/\n")
    before = comity.files()
    ran = comity(*line)
    assert (ran.code, ran.out) == (Exit.NO_CONTACT, "")
    assert len(ran.errors) == 1 and ran.errors[0].startswith("comity: a crawl needs a contact")
    assert comity.files() == before


def test_a_person_is_asked_once_and_remembered(comity: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comity.cli.asking.somebody_is_there", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("nobody\nme@a.example\n"))
    line = ("robots", "http://10.0.0.1/")
    ran = comity(*line)
    assert ran.code == Exit.REFUSED, "a private address is not connected to, but a contact was needed"
    assert ran.err.count("Contact: ") == 2
    assert "'nobody' is neither a URL" in ran.err and "remembered in " in ran.err
    assert "me@a.example" in Path("home/comity/identity.toml").read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    ran = comity(*line)
    assert "Contact: " not in ran.err and len(ran.errors) == 1
    assert "pass --allow-private" in ran.err


@pytest.mark.parametrize("contact", ["me", "http://localhost/", "https://me:secret@a.example/"])
def test_a_contact_that_reaches_nobody(comity: Command, contact: str) -> None:
    ran = comity("crawl", SEED, "-o", "x", "--contact", contact)
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert len(ran.errors) == 1 and ran.errors[0].startswith("comity: --contact: ")
    assert comity.files() == []


@pytest.mark.parametrize("line", [("run", "x"), ("status", "x"), ("why", SEED, "-o", "x")])
def test_no_such_crawl(comity: Command, line: tuple[str, ...]) -> None:
    ran = comity(*line)
    assert (ran.code, ran.errors) == (Exit.NOT_FOUND, ["comity: there is no x"])
    Path("x").mkdir()
    ran = comity(*line)
    assert (ran.code, ran.errors) == (Exit.NOT_FOUND, ["comity: x is no crawl: it has no comity.toml"])


@pytest.mark.parametrize("line", [("crawl", "-o", "x"), ("run", "x")])
def test_a_crawl_without_seeds_says_where_they_go(comity: Command, line: tuple[str, ...]) -> None:
    assert comity("init", "x").code == Exit.OK
    ran = comity(*line)
    assert (ran.code, ran.errors) == (
        Exit.USAGE,
        ["comity: x has no seeds to begin with: write some into x/seeds.txt"],
    )


def test_a_new_directory_needs_something_to_begin_with(comity: Command) -> None:
    ran = comity("crawl", "-o", "x")
    assert ran.code == Exit.USAGE
    assert ran.errors == ["comity: x is no crawl yet, and there is nothing to begin with: give a URL or --seeds FILE"]
    assert comity.files() == []


def test_init_never_overwrites(comity: Command) -> None:
    root = a_crawl()
    before = contents(root)
    ran = comity("init", "x")
    assert (ran.code, ran.errors) == (Exit.CANNOT_WRITE, ["comity: x is a crawl already: nothing was changed"])
    assert contents(root) == before


@pytest.mark.parametrize("line", [("robots", "ftp://a.example/"), ("why", "ftp://a.example/", "-o", "x")])
def test_a_url_that_is_none(comity: Command, line: tuple[str, ...]) -> None:
    a_crawl()
    ran = comity(*line)
    assert ran.code == Exit.USAGE
    assert "its scheme is ftp, and only http and https are crawled" in ran.errors[0]


def test_another_agent_must_be_a_product_token(comity: Command) -> None:
    ran = comity("robots", "http://a.localhost:1/", "--agent", "two words")
    assert ran.code == Exit.USAGE
    assert len(ran.errors) == 1 and ran.errors[0].startswith("comity: --agent 'two words' is no product token: ")


def test_why_before_the_first_run_and_of_a_frontier_in_memory(comity: Command) -> None:
    root = a_crawl()
    ran = comity("why", SEED, "-o", "x")
    assert ran.code == Exit.NOT_FOUND
    assert ran.errors == ["comity: the crawl in x has not begun: nothing is known of any URL"]
    (root / "comity.toml").write_text('[frontier]\nkind = "memory"\n')
    ran = comity("why", SEED, "-o", "x")
    assert ran.code == Exit.NOT_FOUND and 'frontier.kind is "memory"' in ran.err
    assert comity("status", "x").code == Exit.NOT_FOUND


def test_seeds_that_our_own_guard_refuses_are_told_at_once(comity: Command) -> None:
    """Nobody waits a minute for a robots.txt that we would never ask for; and nothing is made."""
    ran = comity("crawl", "-o", "inside", "http://127.0.0.1:8999/", "http://a.localhost/", "http://localhost/")
    assert ran.code == Exit.USAGE
    assert "http://127.0.0.1:8999/ may not be asked: loopback" in ran.err
    assert "--allow-private" in ran.err
    assert "(and 2 more)" in ran.err
    assert not Path("inside").exists()


def test_a_port_that_our_own_guard_refuses_is_mended_elsewhere(comity: Command) -> None:
    ran = comity("crawl", "-o", "inside", "--allow-private", "http://localhost:22/")
    assert ran.code == Exit.USAGE
    assert "port 22 belongs to another service; address.ports in comity.toml says which may" in ran.err
    assert "--allow-private" not in ran.err


@pytest.mark.parametrize("broken", [b"this is no database " * 500, b""], ids=["overwritten", "emptied"])
def test_a_broken_frontier_says_how_to_go_on_and_no_row_is_lost(comity: Command, broken: bytes) -> None:
    with in_thread([Site("a.localhost", {"/": page()})]) as web:
        line = ("crawl", web.url("a.localhost", "/"), "-o", "x", "--allow-private", "--delay", "0", "--quiet")
        assert comity(*line).code == Exit.OK
        written = Path("x/out/pages-0.jsonl").read_bytes()
        for side in ("-wal", "-shm"):
            Path(f"x/frontier.sqlite{side}").unlink(missing_ok=True)
        Path("x/frontier.sqlite").write_bytes(broken)
        if broken:
            ran = comity(*line)
            assert ran.code == Exit.FAILED
            assert "SQLITE_NOTADB" in ran.err and "or move it away to begin anew" in ran.err
            Path("x/frontier.sqlite").rename("x/broken.sqlite")
        ran = comity(*line)
    assert ran.code == Exit.OK
    assert "was set aside: x/out/pages-0.jsonl.unsettled-1" in ran.out
    assert Path("x/out/pages-0.jsonl.unsettled-1").read_bytes() == written


def test_results_that_somebody_cut_are_told(comity: Command) -> None:
    with in_thread([Site("a.localhost", {"/": page()})]) as web:
        line = ("crawl", web.url("a.localhost", "/"), "-o", "x", "--allow-private", "--delay", "0", "--quiet")
        assert comity(*line).code == Exit.OK
        results = Path("x/out/pages-0.jsonl")
        was = results.stat().st_size
        results.write_bytes(results.read_bytes()[:100])
        ran = comity(*line, "--json")
    assert ran.data["results_missing_bytes"] == was
