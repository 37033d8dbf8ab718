"""How the command line says instants, spans and sizes, and what it makes of others' texts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.spinner import Spinner

from comity.cli import status, summary, terminal
from comity.cli.exits import Exit
from comity.cli.faults import Trouble, explained, ours
from comity.cli.progress import Progress, Sight, picture, wait_of, words
from comity.cli.terminal import counted, instant, many, plain, size, span
from comity.cli.verdicts import sentence
from comity.model import Access, HostState, Stats, Verdict
from comity.politeness import Policy
from comity.tally import Tally


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0 s"), (0.25, "0.25 s"), (1, "1 s"), (9.999, "10 s"), (12.4, "12 s"), (59.6, "1 min"), (90, "1 min 30 s"),
        (3600, "1 h"), (3660, "1 h 1 min"), (86_399, "23 h 59 min"), (86_400, "1 d"), (604_800 + 7200, "7 d 2 h"),
        (1e300, "1e+300 s"),
    ],
)  # fmt: skip
def test_spans(value: float, said: str) -> None:
    assert span(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1.5 * 2**20, "1.5 MiB"), (2**50, "1024.0 TiB")],
)
def test_sizes(value: float, said: str) -> None:
    assert size(value) == said


def test_instants_are_utc_to_the_second_and_never_fail() -> None:
    assert instant(1_800_000_000.999) == "2027-01-15T08:00:00Z"
    assert instant(0) == "1970-01-01T00:00:00Z"
    assert "after 1970" in instant(1e18)


def test_counts() -> None:
    assert (many(1, "page"), many(2000, "page"), many(0, "entry", "entries")) == ("1 page", "2,000 pages", "0 entries")
    assert counted({"b": 1, "a": 1, "c": 1000}) == "c 1,000, a 1, b 1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain, tiếng Việt, 日本語", "plain, tiếng Việt, 日本語"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\x9b31m", "\\x9b31m"),
        ("moc.elpmaxe\u202e", "moc.elpmaxe\\u202e"),
        ("half \ud800", "half \\ud800"),
        ("[bold]no markup[/bold] :smile:", "[bold]no markup[/bold] :smile:"),
    ],
)
def test_what_came_from_the_web_is_shown_and_never_obeyed(
    text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.show([plain(text)])
    terminal.tell(text)
    shown = capsys.readouterr()
    assert shown.out == f"{said}\n"
    assert shown.err == f"comity: {said}\n"
    terminal.data({"title": text})
    assert capsys.readouterr().out.isascii()


def test_long_lines_are_never_broken(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show(["https://a.example/" + "x" * 500])
    assert capsys.readouterr().out.count("\n") == 1


SIGHT = Sight(
    elapsed_s=12.3,
    pages=134,
    pages_per_s=11.26,
    hosts=8,
    at_work=3,
    not_modified=0,
    errors=1,
    bytes=1_500_000,
    bytes_saved=0,
)


def test_progress_elsewhere_is_a_line() -> None:
    assert words(SIGHT) == "12 s  134 pages  11.3/s  8 hosts (3 at work, 5 waiting)  1 error  1.4 MiB"


def test_progress_says_what_304_saved_and_what_is_waited_for() -> None:
    said = words(
        Sight(
            elapsed_s=60,
            pages=1,
            pages_per_s=0,
            hosts=1,
            at_work=0,
            not_modified=7,
            errors=0,
            bytes=10,
            bytes_saved=2048,
            waits_for="next: a.example in 9 s (asked every 10 s)",
        )
    )
    assert said.endswith("7 not modified, 2.0 KiB saved  next: a.example in 9 s (asked every 10 s)")


def test_progress_on_a_terminal_is_three_lines_that_fit() -> None:
    console = Console(width=40, force_terminal=True, color_system=None, record=True)
    with console.capture() as got:
        console.print(picture(SIGHT, Spinner("dots"), "a-crawl-[red]"))
    lines = got.get().splitlines()
    assert len(lines) == 3
    assert "a-crawl-[red]" in lines[0] and "134 pages" in lines[0]
    assert all(len(line) <= 40 for line in lines)


def a_host(key: str, next_at: float, *, waits: bool) -> SimpleNamespace:
    return SimpleNamespace(
        key=key,
        waiting={"a task"} if waits else set(),
        state=HostState(next_at=next_at, wanted_s=10.0, in_flight=0 if waits else 1),
        manner=SimpleNamespace(politeness=Policy()),
    )


@pytest.mark.parametrize(
    ("hosts", "at_work", "said"),
    [
        ([], 0, "waiting 1 min for what is due then"),
        ([a_host("a.example", 109.0, waits=True), a_host("b.example", 105.0, waits=True)], 0,
         "next: b.example in 5 s (asked every 10 s)"),
        ([a_host("a.example", 101.0, waits=True)], 0, None),
        ([a_host("a.example", 109.0, waits=True), a_host("b.example", 0.0, waits=False)], 1, None),
    ],
    ids=["no host at hand", "all wait", "not for long", "one is at work"],
)  # fmt: skip
async def test_a_look_at_a_running_crawl(hosts: list[SimpleNamespace], at_work: int, said: str | None) -> None:
    async def left() -> Stats:
        return stats(160.0)

    running: Any = SimpleNamespace(
        clock=SimpleNamespace(now=lambda: 100.0),
        began_at=90.0,
        tally=Tally(pages=20, errors=2),
        crawl=SimpleNamespace(hosts=SimpleNamespace(claimed=dict(enumerate(hosts)))),
        left=left,
    )
    sight = await Progress(running, "silent", "x").look()
    assert (sight.hosts, sight.at_work, sight.waits_for) == (len(hosts), at_work, said)
    assert (sight.elapsed_s, sight.pages, sight.errors, sight.pages_per_s) == (10.0, 20, 2, 2.0)


def stats(next_at: float | None, *held: tuple[str, float, str]) -> Stats:
    return Stats({}, {}, {}, urls=0, hosts=0, visits=0, next_ready_at=next_at, held=held)


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (stats(None), None),
        (stats(101.0), None),
        (stats(130.0), "waiting 30 s for what is due then"),
        (stats(130.0, ("a.example", 130.0, "Retry-After: 30 s")), "waiting 30 s for a.example (Retry-After: 30 s)"),
        (stats(130.0, ("b.example", 190.0, "x")), "waiting 30 s for what is due then"),
    ],
    ids=["nothing", "soon", "due", "held", "held longer"],
)
def test_what_a_crawl_waits_for(left: Stats, said: str | None) -> None:
    assert wait_of(left, 100.0) == said


def test_what_is_left_names_held_hosts_with_their_reasons() -> None:
    held = [(f"h{n}.example", 1_800_000_000.0, "429 or 503") for n in range(12)]
    rows = list(summary.left(stats(1_800_000_000.0, *held)))
    assert ("held", "h0.example until 2027-01-15T08:00:00Z (429 or 503)") in rows
    assert rows[-1] == ("", "and 2 more")


def test_the_most_frequent_come_first_with_their_words() -> None:
    counts = {"http_404": 2, "dns": 30, "of a later comity": 1, "tls": 0}
    assert list(summary.failures(counts)) == [
        ("failures", "30 dns: the host name does not exist, or has no address"),
        ("", "2 http_404: the server answered 404 (Not Found)"),
        ("", "1 of a later comity: of a later comity"),
    ]


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (
            Verdict(False, Access.RULES, "*", 3, "Disallow: /x\x1b"),
            'may not be fetched: line 3, "Disallow: /x\\x1b" (group *)',
        ),
        (Verdict(True, Access.RULES, "comity", 9, "Allow: /"), 'may be fetched: line 9, "Allow: /" (group comity)'),
        (Verdict(True, Access.RULES, "*"), "may be fetched: no rule matches (group *)"),
        (Verdict(True, Access.RULES), "may be fetched: no rule matches: no group speaks to us"),
        (Verdict(True, Access.ALLOW), "may be fetched: there is no robots.txt, so everything may be asked for"),
        (
            Verdict(False, Access.DISALLOW),
            "may not be fetched: robots.txt may not be read, which counts as a no for everything",
        ),
    ],
    ids=["refused", "allowed", "no rule", "no group", "no file", "no access"],
)
def test_rob_33_a_verdict_says_what_decided(verdict: Verdict, said: str) -> None:
    assert sentence(verdict).plain == said


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Trouble(Exit.NOT_FOUND, "no"), Exit.NOT_FOUND),
        (OSError(28, "No space left on device", "out/x"), Exit.DISK_FULL),
        (OSError(27, "File too large", "out/x"), Exit.DISK_FULL),
        (PermissionError(13, "Permission denied", "out/x"), Exit.CANNOT_WRITE),
        (OSError(30, "Read-only file system", "out/x"), Exit.CANNOT_WRITE),
    ],
)
def test_errors_that_are_meant_have_a_code(error: Exception, code: Exit) -> None:
    found = explained(error)
    assert found is not None and found[0] is code
    assert "\n" not in found[1]


def test_errors_that_nobody_meant_have_none() -> None:
    assert explained(KeyError("x")) is None
    assert explained(OSError(5, "Input/output error")) is None
    assert ours(KeyError()).startswith("a fault of ours: KeyError: without a word (")


@pytest.mark.parametrize(
    ("by_status", "process", "said"),
    [
        ({"DISCOVERED": 3, "ERROR": 1}, None, "as soon as it is run again"),
        ({"FETCHED": 3}, None, "as soon as it is run again"),
        ({"DISCOVERED": 0, "ERROR": 4}, None, "never by itself"),
        ({"DISCOVERED": 3}, 17, "with the hosts that are at work now"),
    ],
    ids=["killed", "killed between visits", "all refused", "at work"],
)
def test_when_a_crawl_goes_on_whose_hosts_are_all_in_hand(
    by_status: dict[str, int], process: int | None, said: str
) -> None:
    stats = Stats(by_status, {}, {}, sum(by_status.values()), 1, 0, None, ())
    assert status._otherwise(stats, process) == said
