"""`comity crawl`, `run`, `status` and `robots` on a made-up web: what is made, resumed, told, and refused.

The web runs in a thread of this process and the crawls in its main thread, one after the other, as from a shell.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Command

from comity.cli.exits import Exit
from comity.config import load
from comity.crawldir import CrawlDir
from comity.fakeweb import Answer, Child, FakeWeb, Site, in_thread, page, robots, robots_unreachable
from comity.frontier.lock import DirectoryLock

SHOP = Site(
    "shop.localhost",
    {
        "/": page(["/a", "/b", "/private/x", "/lost"], title="\x1b[31mShop"),
        "/a": page(["/a/1"]),
        "/a/1": page(),
        "/b": page(etag='"b"'),
        "/lost": Answer(404),
        "/private/x": page(),
    },
    (robots(["/private/"]),),
)
LISTED = Site(
    "listed.localhost", {}, (robots(["/private/"], delay_s=0.5, sitemaps=["http://listed.localhost/all.xml"]),)
)
MUTE = Site("mute.localhost", {"/": page()}, (robots_unreachable(),))
OPTIONS = ("--allow-private", "--delay", "0", "--patience", "0")


@pytest.fixture
def comity(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def web() -> Iterator[FakeWeb]:
    with in_thread([SHOP, MUTE, LISTED]) as web:
        yield web


def rows(directory: Path) -> list[str]:
    return [json.loads(line)["url"] for line in CrawlDir(directory).pages().read_text().splitlines()]


# ------------------------------------------------------------------------------------------------------------ a crawl


def test_a_crawl_ends_with_what_it_came_to(comity: Command, web: FakeWeb) -> None:
    ran = comity("crawl", web.url("shop.localhost", "/"), "-o", "x", *OPTIONS)
    assert ran.code == Exit.OK
    assert ran.errors[0].startswith("comity: crawling into x as comity/")
    told = ran.out.splitlines()
    assert told[0].startswith("4 pages in ")
    assert "1 http_404: the server answered 404 (Not Found)" in ran.out
    assert "1 link robots: robots.txt forbids it" in ran.out
    for name, said in (
        ("this run", "5 visits, 6 requests"),
        ("left", "FETCH_ERROR 1"),
        ("contact", "none: every seed is on this machine"),
        ("results", "x/out/pages-0.jsonl"),
        ("log", "x/log"),
    ):
        assert any(line.startswith(name) and said in line for line in told), name
    assert "\x1b" not in ran.out
    assert sorted(url.split("/", 3)[3] for url in rows(Path("x"))) == ["", "a", "a/1", "b", "lost"]


def test_a_crawl_as_json_is_one_object_and_silence(comity: Command, web: FakeWeb) -> None:
    ran = comity("crawl", web.url("shop.localhost", "/"), "-o", "x", *OPTIONS, "--json", "--contact", "me@a.example")
    assert (ran.code, ran.err) == (Exit.OK, "")
    said = ran.data
    assert (said["pages"], said["visits"], said["requests"], said["errors"]) == (4, 5, 6, 1)
    assert said["by_status"] == {"FETCHED": 4, "FETCH_ERROR": 1}
    assert said["by_failure"] == {"http_404": 1}
    assert said["by_rule"] == {"robots": 1}
    assert (said["left"]["urls"], said["left"]["by_cause"]) == (6, {"robots": 1})
    assert said["left"]["next_at"] > said["ended_at"] > said["began_at"]
    assert said["pages_per_s"] == pytest.approx(4 / said["seconds"], rel=0.01)
    assert said["contact"] == "me@a.example" and "(+me@a.example)" in said["user_agent"]
    assert (said["directory"], said["results"], said["log"]) == ("x", "x/out/pages-0.jsonl", "x/log")


def test_without_a_directory_it_is_named_after_the_first_host(comity: Command, web: FakeWeb) -> None:
    assert comity("crawl", web.url("shop.localhost", "/a/1"), web.url("mute.localhost", "/"), *OPTIONS).code == 0
    assert comity.files() == ["crawl-shop.localhost"]


def test_options_given_first_become_the_settings_and_a_resume_needs_none(comity: Command, web: FakeWeb) -> None:
    first = comity(
        *("crawl", web.url("shop.localhost", "/"), "-o", "x", "--scope", "host", "--delay", "0", "--max-pages", "1"),
        *("--max-depth", "7", "--patience", "0", "--allow-private", "--contact", "mailto:me@a.example", "--quiet"),
    )
    assert (first.code, first.err) == (Exit.OK, "")
    assert "1 page in" in first.out
    settings = load(Path("x/comity.toml"))
    assert (settings.scope.mode, settings.scope.max_depth) == ("host", 7)
    assert (settings.politeness.delay_s, settings.engine.max_pages, settings.engine.patience_s) == (0, 1, 0)
    assert (settings.address.allow_private, settings.identity.contact) == (True, "me@a.example")
    second = comity("crawl", "-o", "x", "--json")
    assert (second.data["pages"], second.data["contact"]) == (1, "me@a.example")
    third = comity("crawl", "-o", "x", "--max-pages", "100")
    assert "comity: x keeps its settings: engine.max_pages as given for this run only" in third.errors
    assert load(Path("x/comity.toml")) == settings
    assert len(rows(Path("x"))) == len(set(rows(Path("x")))) == 5


def test_seeds_given_later_are_kept_and_widen_the_scope(comity: Command, web: FakeWeb) -> None:
    assert comity("crawl", web.url("shop.localhost", "/a"), "-o", "x", *OPTIONS).code == 0
    later = web.url("mute.localhost", "/")
    assert comity("crawl", later, "-o", "x").code == 0
    assert Path("x/seeds.txt").read_text().splitlines() == [web.url("shop.localhost", "/a"), later]
    held = comity("crawl", later, "-o", "x", "--json").data["left"]
    assert held["by_status"]["DISCOVERED"] == 1, "it waits for its robots.txt, and is not out of scope"
    assert held["held"][0]["host"] == "mute.localhost" and "robots.txt" in held["held"][0]["why"]
    assert len(Path("x/seeds.txt").read_text().splitlines()) == 2


def test_seeds_come_from_files_and_standard_input_with_their_metadata(
    comity: Command, web: FakeWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("list.txt").write_text(f"# mine\n{web.url('shop.localhost', '/a/1')}\tsource=list\tisSitemap=false\n")
    reading, writing = os.pipe()
    os.write(writing, web.url("shop.localhost", "/b").encode())
    os.close(writing)
    with os.fdopen(reading) as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        ran = comity("crawl", "--seeds", "list.txt", "--seeds", "-", "-o", "x", *OPTIONS)
    assert ran.code == 0
    assert Path("x/seeds.txt").read_text() == (
        f"{web.url('shop.localhost', '/a/1')}\tsource=list\n{web.url('shop.localhost', '/b')}\n"
    )
    assert len(rows(Path("x"))) == 2


def test_run_goes_on_until_told_and_knows_no_limit_of_pages(comity: Command, web: FakeWeb) -> None:
    comity("crawl", web.url("shop.localhost", "/"), "-o", "x", *OPTIONS, "--max-pages", "1")
    ran = comity("run", "x/comity.toml", "--until", "0.7", "--json")
    assert (ran.code, ran.err) == (Exit.OK, "")
    assert ran.data["ended"] == "the time given is over"
    assert (ran.data["visits"], ran.data["directory"]) == (4, "x")
    assert 0.5 < ran.data["seconds"] < 5


def test_robots_ignored_is_told_at_the_start(comity: Command, web: FakeWeb) -> None:
    comity("init", "x")
    with Path("x/comity.toml").open("a") as file:
        file.write('[hosts."mute.localhost"]\nown = true\nrobots = "ignore"\n')
    ran = comity("crawl", web.url("mute.localhost", "/"), "-o", "x", *OPTIONS, "--quiet")
    assert any(
        line.startswith("comity: mute.localhost: robots.txt is neither asked for nor obeyed") for line in ran.errors
    )
    assert len(rows(Path("x"))) == 1


def test_progress_says_what_is_waited_for(comity: Command, web: FakeWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comity.cli.progress.LINE_S", 0.05)
    line = (
        "crawl",
        web.url("shop.localhost", "/"),
        "-o",
        "x",
        "--allow-private",
        "--patience",
        "0",
        "--max-pages",
        "2",
    )
    ran = comity(*line, "--delay", "2")
    assert re.search(
        r"^comity: 0\.\d+ s  0 pages  0\.0/s  1 host \(\d at work, \d waiting\)  0 errors  0 B", ran.err, re.M
    )
    assert re.search(r"  next: shop\.localhost in 1\.\d+ s \(asked every 2 s\)$", ran.err, re.M)
    assert all(said.startswith("comity: ") for said in ran.errors)


def test_an_onlooker_who_leaves_does_not_stop_the_crawl(
    comity: Command, web: FakeWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comity.cli.progress.LINE_S", 0.01)

    def gone(text: str) -> None:
        if "crawling into" not in text:
            raise BrokenPipeError

    monkeypatch.setattr("comity.cli.terminal.tell", gone)
    ran = comity(
        "crawl", web.url("shop.localhost", "/"), "-o", "x", "--allow-private", "--patience", "0", "--delay", "0.1"
    )
    assert ran.code == Exit.OK
    assert ran.out.startswith("4 pages in ")
    assert "fault" not in ran.err


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from comity.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("kib", [8, 24, 160])
def test_a_full_disk_stops_the_crawl_cleanly_and_it_resumes(
    fakeweb_process: Callable[..., Child], tmp_path: Path, kib: int
) -> None:
    """A limit on the size of files: the settings cannot be written, the store cannot be made, or cannot grow."""
    web = fakeweb_process("--hosts", "4", "--pages", "30")
    options = ["-o", "x", "--scope", "any", "--allow-private", "--delay", "0", "--patience", "0", "--quiet"]
    limited = [sys.executable, "-c", LIMITED, str(kib * 1024), "crawl", *web.seeds, *options]
    full = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert full.returncode == Exit.DISK_FULL, full.stderr
    assert "Traceback" not in full.stderr
    assert full.stderr.splitlines()[-1].startswith("comity: ")
    assert "everything settled is safe: make room and run the same command again" in full.stderr
    whole = [sys.executable, "-m", "comity", "crawl", *web.seeds, *options]
    resumed = subprocess.run(whole, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert resumed.returncode == Exit.OK, resumed.stderr
    written = rows(tmp_path / "x")
    pages = {f"http://{line.host}{line.path}" for line in web.lines() if line.status == 200 and not line.is_robots}
    assert pages and pages <= {re.sub(r":\d+/", "/", url) for url in written}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_drains_and_says_so(
    fakeweb_process: Callable[..., Child], tmp_path: Path, number: signal.Signals
) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("ignored here, and so by our children")
    web = fakeweb_process("--hosts", "3", "--pages", "9")
    command = [sys.executable, "-m", "comity", "crawl", *web.seeds, "--scope", "any", "--allow-private", "-o", "x"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("comity: crawling into x as comity/")
    while sum(line.path != "/robots.txt" for line in web.lines()) < 3:
        pass  # the server's log is the signal that the crawl is under way
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == Exit.INTERRUPTED
    assert err.startswith("comity: stopping: requests under way end first")
    assert ": interrupted\n" in out and "comity status x" in out
    again = subprocess.run(
        [sys.executable, "-m", "comity", "status", "x", "--json"], cwd=tmp_path, capture_output=True, check=True
    )
    said = json.loads(again.stdout)
    assert said["running"] is False
    assert said["frontier"]["by_status"]["FETCHED"] >= 3


def test_a_second_interrupt_stops_at_once_and_loses_nothing(
    fakeweb_process: Callable[..., Child], tmp_path: Path
) -> None:
    web = fakeweb_process("--hosts", "1", "--latency", "25")
    command = [sys.executable, "-m", "comity", "crawl", *web.seeds, "--allow-private", "--delay", "0", "-o", "x"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    log = tmp_path / "x" / "log" / "crawl-0.jsonl"
    while not log.exists() or '"kind":"page"' not in log.read_text():
        assert process.poll() is None  # the page is asked for, and will be for long
    process.send_signal(signal.SIGINT)
    while "stopping" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=15)
    assert (process.returncode, err) == (Exit.INTERRUPTED, "")
    assert "0 visits, 2 requests" in out
    assert "DISCOVERED 1" in out, "the page is still to be visited"


# --------------------------------------------------------------------------------------------------- status and robots


def test_status_counts_and_lists(comity: Command, web: FakeWeb) -> None:
    comity("crawl", web.url("shop.localhost", "/"), web.url("mute.localhost", "/"), "-o", "x", *OPTIONS)
    ran = comity("status", "x")
    assert (ran.code, ran.err) == (Exit.OK, "")
    told = [line.split(maxsplit=1) for line in ran.out.splitlines()]
    assert ["crawl", "not at work"] in told
    assert ["known", "7 URLs of 2 hosts, 5 visits ever"] in told
    assert ["left", "DISCOVERED 1, FETCH_ERROR 1"] in told
    assert "by status  DISCOVERED             1\n           FETCHED                4\n" in ran.out
    assert "1 robots: robots.txt forbids it" in ran.out
    assert "mute.localhost until 20" in ran.out
    assert "versions   comity 0.1.0, frontier 1, rows 1, log 1" in ran.out
    data = comity("status", "x", "--json").data
    assert (data["running"], data["process"]) == (False, None)
    assert data["frontier"]["by_status"]["FETCHED"] == 4
    assert data["bytes"]["frontier.sqlite"] > 0 and data["bytes"]["out/pages-0.jsonl"] > 0
    assert data["versions"]["frontier"] == 1


def test_status_beside_a_crawl_and_before_one(comity: Command) -> None:
    comity("init", "x")
    assert "nothing: it has not begun" in comity("status", "x").out
    with DirectoryLock("x"):
        assert f"at work (process {os.getpid()})" in comity("status", "x").out
        assert comity("status", "x", "--json").data["process"] == os.getpid()


def test_robots_gives_verdicts_with_their_lines(comity: Command, web: FakeWeb) -> None:
    urls = [web.url("listed.localhost", path) for path in ("/b", "/private/x")]
    ran = comity("robots", *urls, "--allow-private")
    assert (ran.code, ran.err) == (Exit.REFUSED, "")
    assert "verdict   may be fetched: no rule matches (group *)" in ran.out
    assert 'verdict   may not be fetched: line 2, "Disallow: /private/" (group *)' in ran.out
    assert "delay     a request every 0.5 s, line 3" in ran.out
    assert "sitemaps  http://listed.localhost/all.xml (line " in ran.out
    assert comity("robots", urls[0], "--allow-private").code == Exit.OK
    data = comity("robots", urls[1], "--allow-private", "--json", "--agent", "Other").data
    assert [(one["allowed"], one["line"], one["rule"], one["token"]) for one in data] == [
        (False, 2, "Disallow: /private/", "Other")
    ]
    assert data[0]["sitemaps"][0]["url"] == "http://listed.localhost/all.xml"


def test_robots_that_cannot_be_had_is_a_no_for_now(comity: Command, web: FakeWeb) -> None:
    ran = comity("robots", web.url("mute.localhost", "/"), "--allow-private")
    assert ran.code == Exit.REFUSED
    assert "may not be fetched now: robots.txt cannot be had, and nothing is asked for until it can" in ran.out
