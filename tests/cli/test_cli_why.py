"""`comity why`: the story of each URL of the topology, as a golden file; and the cases that no fixture shows.

The topology is crawled as the demo crawls it: four virtual days, StormCrawler's table. So every instant of the stories
is the same each time; only the port is made equal here. To write the files anew after a change that is meant:
COMITY_WRITE_GOLDEN=1 pytest tests/cli/test_cli_why.py, and read the difference.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest
from commands import Command

from comity import politeness, robots, scope
from comity.assemble import opened, prepared
from comity.cli import telling, why
from comity.cli.exits import Exit
from comity.cli.telling import Robots, Story
from comity.clock import VirtualClock
from comity.config import Settings, defaults, override
from comity.fakeweb import fixtures, in_thread
from comity.model import Access, Cause, Entry, Failure, HostState, PastVisit, RobotsState, Status, Verdict
from comity.url import parse

GOLDEN = Path(__file__).parent / "golden"
START_AT = 1_800_000_000.0
TICKS_MIN = (0, 1, 2, 121, 122, 242, 243, 1441, 1442, 2882)
TIME_LIMIT_S = 1.0
PATHS = ("/", "/a", "/b", "/mat", "/chap", "/cu", "/admin/x", "/cham", "/nowhere")


@pytest.fixture
def comity(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


def settings() -> Settings:
    return override(
        defaults("stormcrawler"),
        {
            "scope.mode": "host",
            "politeness.delay_s": 0.0,
            "politeness.host_backoff": False,
            "fetch.total_timeout_s": TIME_LIMIT_S,
            "engine.patience_s": 0.0,
            "address.allow_private": True,
            "metadata.transfer": ["source"],
        },
    )


@pytest.fixture(scope="module")
def topology(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The crawl's directory, and what its URLs begin with."""
    directory = tmp_path_factory.mktemp("why") / "x"

    async def crawl(base: str) -> None:
        clock = VirtualClock(START_AT, auto=False)
        for minute in TICKS_MIN:
            clock.advance_to(START_AT + 60 * minute)
            seed = f"{base}/\tsource=catalog"
            running = await prepared([seed], directory=directory, sinks=[], settings=settings(), clock=clock)
            async with opened(running):
                await running.run()

    with in_thread([fixtures.topology(slow_s=TIME_LIMIT_S * 3)]) as web:
        base = web.url(fixtures.TOPOLOGY_HOST, "")
        asyncio.run(crawl(base))
    return directory, base


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_each_url_of_the_topology_has_its_story(comity: Command, topology: tuple[Path, str], path: str) -> None:
    directory, base = topology
    ran = comity("why", base + path, "-o", str(directory))
    assert (ran.code, ran.err) == (Exit.NOT_FOUND if path == "/nowhere" else Exit.OK, "")
    told = ran.out.replace(base.rpartition(":")[2], "PORT")
    golden = GOLDEN / f"why{path.rstrip('/').replace('/', '-') or '-front'}.txt"
    if os.environ.get("COMITY_WRITE_GOLDEN"):
        golden.write_text(told)
    assert told == golden.read_text()


@pytest.mark.slow
def test_the_same_as_data(comity: Command, topology: tuple[Path, str]) -> None:
    directory, base = topology
    said = comity("why", f"{base}/chap", "-o", str(directory), "--json").data
    assert said["known"] is True
    assert said["entry"]["status"] == "FETCHED"
    assert said["entry"]["via"] == f"{base}/"
    assert said["entry"]["metadata"] == {"source": ["catalog"]}
    assert said["next"]["rule"] == "recrawl.fetched"
    assert said["next"]["at"] == said["next"]["due_at"] > START_AT
    assert said["robots"]["verdict"] == {"allowed": True, "group": "*", "line": None, "rule": None}
    assert [visit["http_status"] for visit in said["visits"]][-2:] == [503, 503], "newest first"
    assert said["events"][0]["event"] == "visit" and said["events"][1]["event"] == "ask"
    assert said["scope"] == {"keep": True, "rule": "scope.kept"}
    unknown = comity("why", "https://elsewhere.example/", "-o", str(directory), "--json")
    assert unknown.code == Exit.NOT_FOUND
    assert (unknown.data["known"], unknown.data["entry"], unknown.data["next"]) == (False, None, None)
    assert unknown.data["scope"] == {"keep": False, "rule": "scope.host"}


@pytest.mark.slow
def test_a_url_may_be_named_nearly_as_it_was_crawled(comity: Command, topology: tuple[Path, str]) -> None:
    directory, base = topology
    for nearly in (f"{base}/a#part", f"{base.removeprefix('http://')}/%61", f"{base.upper()}/a"):
        assert comity("why", nearly, "-o", str(directory)).out.startswith(f"{base}/a\n")


# ------------------------------------------------------------------------------------------------ told from given facts

URL = parse("https://a.example/page")
KEPT = scope.Ruling(True, "scope.kept")
FILE = b"User-agent: *\nCrawl-delay: 10\nDisallow: /private/\n"
RULES = robots.compile(robots.parse(FILE), "comity", URL.origin)
READ = RobotsState(
    access=Access.RULES, digest="d", http_status=200, fetched_at=START_AT, asked_at=START_AT, expires_at=START_AT + 3600
)


def story(
    entry: Entry | None = None,
    state: HostState | None = None,
    said: Robots | None = None,
    ruling: scope.Ruling = KEPT,
    policy: politeness.Policy | None = None,
) -> str:
    told = Story(
        url=URL,
        host="a.example",
        entry=entry,
        ruling=ruling,
        state=state,
        policy=policy or politeness.Policy(),
        robots=said or Robots("https://a.example/robots.txt", obeyed=True),
    )
    telling.as_dict(told)
    return "\n".join(line.plain for line in why.lines(told))


def entry(**facts: object) -> Entry:
    known = {"url": URL.href, "key": URL.key, "host": "a.example", "discovered_at": START_AT, "due_at": START_AT}
    return Entry(**(known | facts))  # type: ignore[arg-type]


def with_state(state: RobotsState, **facts: object) -> Robots:
    return Robots("https://a.example/robots.txt", obeyed=True, state=state, access=state.access, **facts)  # type: ignore[arg-type]


def test_a_hold_is_told_with_its_reason() -> None:
    state = HostState(not_before_at=START_AT + 60, hold_reason="Retry-After: 60 s", widened_s=4.0)
    told = story(entry(next_rule="discovered"), state)
    assert "next    2027-01-15T08:01:00Z" in told
    assert "its host may not be asked before 2027-01-15T08:01:00Z: Retry-After: 60 s" in told
    assert "host    a.example: a request every 4 s, more slowly than usual" in told


def test_a_hold_that_ends_before_the_url_is_due_is_no_reason() -> None:
    state = HostState(not_before_at=START_AT + 60, hold_reason="Retry-After: 60 s")
    assert "Retry-After" not in story(entry(due_at=START_AT + 3600, next_rule="retry.3"), state)


def test_a_delay_named_by_robots_is_told_with_its_line() -> None:
    told = story(
        entry(), HostState(wanted_s=10.0), with_state(READ, rules=RULES, verdict=robots.verdict(RULES, "/page"))
    )
    assert "a request every 10 s, as its robots.txt says, line 2" in told
    assert "our copy is of 2027-01-15T08:00:00Z and speaks until 2027-01-15T09:00:00Z" in told
    refusing = politeness.Policy(crawl_delay_limit_s=5, on_long_delay="refuse")
    assert "that is more than politeness.crawl_delay_limit_s (5 s): refused" in story(
        entry(), HostState(wanted_s=10.0), policy=refusing
    )


@pytest.mark.parametrize(
    ("state", "facts", "said"),
    [
        (
            RobotsState(access=Access.ALLOW, http_status=404, asked_at=START_AT, fetched_at=START_AT),
            {"verdict": robots.verdict_without_rules(Access.ALLOW)},
            ["asked for at 2027-01-15T08:00:00Z: HTTP 404; there is no robots.txt", "may be fetched: there is no"],
        ),
        (
            RobotsState(access=Access.DISALLOW, http_status=403, asked_at=START_AT, fetched_at=START_AT),
            {"verdict": robots.verdict_without_rules(Access.DISALLOW)},
            [
                "HTTP 403; robots.txt may not be read, which counts as a no",
                "may not be fetched: robots.txt may not be read",
            ],
        ),
        (
            RobotsState(failure=Failure.DNS, asked_at=START_AT, expires_at=START_AT + 60),
            {},
            [
                "no answer, the host name does not exist, or has no address; robots.txt cannot be had",
                "asked for again from 2027-01-15T08:01:00Z",
            ],
        ),
        (
            RobotsState(
                http_status=503, failure=Failure.HTTP_503, digest="d", fetched_at=START_AT, asked_at=START_AT + 9
            ),
            {"rules": RULES, "verdict": robots.verdict(RULES, "/private/")},
            [
                "HTTP 503, the server answered 503 (Service Unavailable); robots.txt cannot be had",
                "meanwhile our last good copy speaks, of 2027-01-15T08:00:00Z",
                'may not be fetched: line 3, "Disallow: /private/" (group *)',
            ],
        ),
    ],
    ids=["404", "403", "no answer", "503 with a copy"],
)
def test_robots_without_a_file_is_told_in_words(state: RobotsState, facts: dict[str, object], said: list[str]) -> None:
    told = story(entry(), HostState(), with_state(state, **facts))
    for words in said:
        assert words in told


def test_robots_not_asked_for_or_not_obeyed() -> None:
    assert "robots  https://a.example/robots.txt: not asked for yet" in story()
    ignored = Robots("https://a.example/robots.txt", obeyed=False)
    assert "is neither asked for nor obeyed" in story(said=ignored)


def test_a_verdict_that_was_another_at_the_last_visit_is_told_too() -> None:
    then = Verdict(False, Access.RULES, "*", 2, "Disallow: /")
    told = story(entry(), HostState(), with_state(READ, verdict=robots.verdict(RULES, "/page"), then=then))
    assert "may be fetched: no rule matches (group *)" in told
    assert 'at the last visit: may not be fetched: line 2, "Disallow: /" (group *)' in told


def test_what_is_out_of_scope_says_by_which_rule() -> None:
    ruling = scope.Ruling(False, "scope.exclude:\\.pdf$")
    assert "scope   refused by scope.exclude:\\.pdf$: the exclude pattern" in story(ruling=ruling)
    assert "scope   it would be kept" in story()
    assert "scope" not in story(entry())


def test_never_is_never_and_the_history_is_newest_first() -> None:
    past = tuple(PastVisit(START_AT + day * 86_400, Status.FETCHED, None, day == 1, 200) for day in range(3))
    refused = entry(
        status=Status.ERROR,
        cause=Cause.ROBOTS,
        due_at=None,
        next_rule="never.robots",
        history=past,
        depth=2,
        hops=1,
        via="https://a.example/\x1b[31m",
        is_sitemap=True,
        metadata={"k": ("v\n", "w")},
    )
    told = story(refused)
    assert "status    ERROR (robots)\n          Given up: robots.txt forbids it.\n" in told
    assert "next      never by itself\n          never.robots: " in told
    assert (
        "found     2027-01-15T08:00:00Z through https://a.example/\\x1b[31m (a sitemap, 2 links from a seed, 1 redirect"
        in told
    )
    assert "metadata  k=v\\n, w\n" in told
    dates = re.findall(r"(2027-01-1\d)T\S+  FETCHED      the server answered 200 \(OK\), (?:un)?changed", told)
    assert dates == ["2027-01-17", "2027-01-16", "2027-01-15"]
