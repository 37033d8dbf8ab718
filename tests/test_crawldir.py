"""A crawl's directory: made whole or not at all, and nobody else's things in it."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from comity.crawldir import CrawlDir, DirError, DirTooNew, NotACrawl, Versions, at, create, is_crawl


def test_the_names_are_fixed() -> None:
    crawl = CrawlDir(Path("books"))
    assert [str(path) for path in (crawl.config, crawl.seeds, crawl.frontier, crawl.lock)] == [
        "books/comity.toml",
        "books/seeds.txt",
        "books/frontier.sqlite",
        "books/crawl.lock",
    ]
    assert str(crawl.pages()) == "books/out/pages-0.jsonl"
    assert str(crawl.log) == "books/log"


def test_a_directory_becomes_a_crawl(tmp_path: Path) -> None:
    crawl = create(tmp_path / "a" / "b", "x = 1\n", "https://a.example/\n")
    assert at(tmp_path / "a" / "b") == crawl
    assert crawl.config.read_text() == "x = 1\n"
    assert crawl.seeds.read_text() == "https://a.example/\n"
    assert sorted(os.listdir(crawl.root)) == ["comity.toml", "crawl.lock", "log", "out", "seeds.txt"]
    crawl.check()


def test_a_crawl_that_is_there_keeps_its_settings_and_seeds(tmp_path: Path) -> None:
    create(tmp_path, "old", "old")
    (tmp_path / "notes.md").write_text("mine")
    crawl = create(tmp_path, "new", "new")
    assert (crawl.config.read_text(), crawl.seeds.read_text()) == ("old", "old")


@pytest.mark.parametrize("left", [[], ["crawl.lock"], ["crawl.lock", "out", "log", "seeds.txt", "seeds.txt.new"]])
def test_what_a_dead_process_left_while_making_it_is_no_crawl_and_no_hindrance(tmp_path: Path, left: list[str]) -> None:
    for name in left:
        (tmp_path / name).mkdir() if name in ("out", "log") else (tmp_path / name).write_text("hal")
    assert not is_crawl(tmp_path)
    crawl = create(tmp_path, "x", "y")
    assert (crawl.config.read_text(), crawl.seeds.read_text()) == ("x", "y")


def test_other_peoples_things_are_left_alone(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / name).write_text("")
    with pytest.raises(NotACrawl, match=r"is not empty and no crawl \(it holds a, b, c, …\)"):
        create(tmp_path, "x")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c", "d"]


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotACrawl, match="file is a file"):
        create(tmp_path / "file", "x")
    with pytest.raises(NotACrawl, match="part of its path is a file"):
        create(tmp_path / "file" / "x", "x")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_told() -> None:
    with pytest.raises(DirError, match=r"^/proc/comity-test cannot be made or written: ") as error:
        create(Path("/proc/comity-test"), "x")
    assert "\n" not in str(error.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_crawl_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    crawl = create(tmp_path / "c", "x")
    crawl.out.chmod(0o500)
    try:
        with pytest.raises(DirError, match="out cannot be written: permission denied"):
            crawl.check()
    finally:
        crawl.out.chmod(0o700)


def test_what_is_no_crawl_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, reason in (("none", "there is no"), ("file", "is a file"), (".", "it has no comity.toml")):
        with pytest.raises(NotACrawl, match=reason):
            at(tmp_path / path)


MAKER = """
import sys
from pathlib import Path
from comity.crawldir import create
sys.stdin.readline()
print(create(Path(sys.argv[1]), sys.argv[2], sys.argv[2]).config.read_text())
"""


def test_of_many_that_make_it_at_once_one_wins_and_all_open_the_same(tmp_path: Path) -> None:
    root = tmp_path / "c"
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKER, str(root), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("\n")
        maker.stdin.flush()
    said = {maker.communicate(timeout=60)[0] for maker in makers}
    assert len(said) == 1
    assert CrawlDir(root).seeds.read_text() == CrawlDir(root).config.read_text() == said.pop().strip()


@pytest.mark.timeout(20)
def test_a_crawl_that_another_made_and_runs_already_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = CrawlDir(tmp_path)

    def taken(*_: object) -> None:  # by the other, first to make the directory, then for as long as it crawls
        crawl.config.write_text("first")
        raise BlockingIOError

    monkeypatch.setattr(fcntl, "flock", taken)
    assert create(tmp_path, "second") == crawl
    assert crawl.config.read_text() == "first"


def test_versions_are_read_without_opening_anything_for_writing(tmp_path: Path) -> None:
    crawl = create(tmp_path, "x")
    assert crawl.versions() == Versions()
    with sqlite3.connect(crawl.frontier) as database:
        database.execute("pragma user_version = 7")
        database.execute("create table t (x)")
    database.close()
    crawl.pages().write_text('{"v":1}\n{"v":2,"text":"' + "x" * 100_000 + '"}\n{"v":9')
    (crawl.log / "crawl-0.jsonl").write_text('{"event":"opened","v":1}\n')
    (crawl.log / "crawl-1.jsonl").write_text("")
    before = sorted(os.listdir(tmp_path))
    assert crawl.versions() == Versions(frontier=7, rows=2, log=1)
    assert sorted(os.listdir(tmp_path)) == before


def test_files_of_a_later_comity_are_not_touched(tmp_path: Path) -> None:
    crawl = create(tmp_path, "x")
    crawl.pages().write_text('{"v":99}\n')
    with pytest.raises(DirTooNew, match="its results are of version 99, and this comity knows up to 1"):
        crawl.check()


@pytest.mark.parametrize("text", ["", "\n", "no JSON\n", "[1]\n", '{"v":"x"}\n', '{"v":1'])
def test_what_has_no_version_is_nobodys(tmp_path: Path, text: str) -> None:
    crawl = create(tmp_path, "x")
    crawl.pages().write_text(text)
    crawl.frontier.write_text(text)
    assert crawl.versions() == Versions()
