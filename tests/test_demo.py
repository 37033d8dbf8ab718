"""`comity demo`, played once, against the tables it is there to show: T001-T023 (StormCrawler's table in two metadata
configurations), P8 and P10 (polite rounds), and the judgement of the servers."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import uvloop
from rich.console import Console

from builders import a_page, a_visit, an_entry
from comity import demo, metadata
from comity.demo.polite import Rounds
from comity.demo.transitions import Transition, Transitions
from comity.model import Cause, Failure, Status

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def played() -> demo.Demo:
    return uvloop.run(demo.play())


# ------------------------------------------------------------------------------------------------------ the topology

D, F, R, E, X = "DISCOVERED", "FETCHED", "REDIRECTION", "FETCH_ERROR", "ERROR"


@dataclass(frozen=True)
class Expected:
    """`after_min` is `next_min - at_min`; None is never."""

    cases: str
    at_min: int
    url: str
    old: str | None
    new: str
    after_min: int | None
    cause: str | None
    kept: Mapping[str, Sequence[str]]
    dropped: Sequence[str]


PATHS = {"/": [], "/a": ["/"], "/b": ["/", "/a"]}


def expected(configuration: str) -> list[Expected]:
    """Every row, by URL and in order. First attempts fall on minute 0: everything found at once is due at once."""
    b = configuration == "b"
    rows: list[Expected] = []

    def row(cases: str, at: int, url: str, old: str | None, new: str, after: int | None, cause: str | None = None,
            failed: bool = False, **kept: str) -> None:  # fmt: skip
        path = PATHS.get(url, ["/"])
        keys: dict[str, list[str]] = {"url.path": path, "depth": [str(len(path))]} if path else {}
        keys |= {name.replace("__", "."): [value] for name, value in kept.items()}
        stamps = {"discoveryDate": ["0"]} if old is None else {"lastProcessedDate": [str(at)]}
        brought = {**stamps, **({"fetch.exception": ["Socket timeout fetching"]} if failed else {})}
        if url == "/" and old is None:
            brought["nguon"] = ["catalog"]
        if b:
            keys |= {"nguon": ["catalog"], "discoveryDate": ["0"], **brought}
        rows.append(Expected(cases, at, url, old, new, after, cause, keys, [] if b else sorted(brought)))

    def error_row(cases: str, at: int, url: str, old: str, count: int, failed: bool = False) -> None:
        row(cases, at, url, old, E, 120, failed=failed, fetch__error__count=str(count))

    row("T023", 0, "/", None, D, 0)
    for url in ("/a", "/b", "/mat", "/chap", "/cu", "/admin/x", "/cham"):
        row("T013 T020", 0, url, None, D, 0)
    for cases, url in (("T001 T019", "/"), ("T002", "/a"), ("T003", "/b")):
        row(cases, 0, url, D, F, 1440)
        row("T015 T016", 1441, url, F, F, 1440)
        row("T017", 2882, url, F, F, 1440)
    for cases, url, failed in (("T004 T005 T006", "/mat", False), ("T010 T011 T021", "/cham", True)):
        error_row(cases, 0, url, D, 1, failed)
        error_row(cases, 121, url, E, 2, failed)
        row(cases, 242, url, E, X, None, "max_errors", failed, error__cause="maxFetchErrors")
    error_row("T007", 0, "/chap", D, 1)
    error_row("T008", 121, "/chap", E, 2)
    row("T009", 242, "/chap", E, F, 1440)
    row("T017", 2882, "/chap", F, F, 1440)
    row("T012", 0, "/cu", D, R, 1440, _redirTo="/b")
    row("T015", 1441, "/cu", R, R, 1440, _redirTo="/b")
    row("T017", 2882, "/cu", R, R, 1440, _redirTo="/b")
    row("T014", 0, "/admin/x", D, X, None, "robots", error__cause="robots.txt")
    return rows


@pytest.mark.parametrize("url", ["/", "/a", "/b", "/mat", "/chap", "/cu", "/admin/x", "/cham"])
@pytest.mark.parametrize("configuration", ["default", "b"])
def test_topology_T001_to_T023(played: demo.Demo, configuration: str, url: str) -> None:
    wanted = [row for row in expected(configuration) if row.url == url]
    wanted.sort(key=lambda row: (row.at_min, row.old is not None))
    got = [row for row in played.topology[configuration] if row.url == url]
    for want, row in zip(wanted, got, strict=True):
        after = None if row.next_min is None else row.next_min - row.at_min
        assert (want.at_min, want.old, want.new, want.after_min, want.cause) == (
            row.at_min,
            row.old,
            row.new,
            after,
            row.cause,
        ), want.cases
        assert {key: list(values) for key, values in row.kept.items()} == want.kept, want.cases
        assert list(row.dropped) == list(want.dropped), want.cases


def test_the_metadata_configuration_changes_no_behaviour_T022(played: demo.Demo) -> None:
    def behaviour(rows: list[Transition]) -> list[tuple[Any, ...]]:
        return sorted(
            (row.url, row.at_min, row.old or "", row.new, row.next_min or -1, row.cause or "") for row in rows
        )

    assert behaviour(played.topology["default"]) == behaviour(played.topology["b"])


def test_a_forbidden_page_is_never_asked_for_and_the_statuses_end_as_T017_says(played: demo.Demo) -> None:
    last = {row.url: row for row in played.topology["default"]}
    assert sum(row.next_min is None for row in last.values()) == 3
    assert sum(row.next_min == 2882 + 1440 for row in last.values()) == 5
    for seen in played.judgements[:2]:
        assert (seen.forbidden, seen.before_robots, seen.overlaps) == (0, 0, 0)
        assert seen.by_status[301] == 3


# ------------------------------------------------------------------------------------------------- rounds, speed, JSON


def test_the_conditional_rounds_are_P8(played: demo.Demo) -> None:
    table = [(row.new, row.not_modified, row.bytes, row.errors) for row in played.conditional]
    assert table == [(6, 0, 18210, 0), (0, 6, 0, 0), (2, 4, 6070, 0), (0, 6, 0, 0)]
    assert played.judgements[2].by_status[304] == 16


def test_the_sitemap_rounds_are_P10(played: demo.Demo) -> None:
    table = [(row.new, row.not_modified, row.bytes, row.errors, row.private_requests) for row in played.sitemap]
    assert table == [(6, 0, 18210, 0, 0), (0, 6, 0, 0, 0), (1, 5, 3035, 0, 0)]
    assert [row.refused for row in played.sitemap] == [("/private/admin",)] * 3
    assert [row.span_s for row in played.sitemap] == pytest.approx([5.0] * 3, abs=0.05)


def test_many_hosts_are_crawled_whole(played: demo.Demo) -> None:
    assert (played.many_hosts.hosts, played.many_hosts.pages) == (40, 1000)
    assert played.many_hosts.pages_per_s > 50, "a standstill, not a slow machine"
    assert played.judgements[4].repeats == 0
    assert played.judgements[4].overlaps == 0


def test_no_server_has_anything_to_hold_against_us(played: demo.Demo) -> None:
    assert [breach for each in played.judgements for breach in each.breaches] == []
    assert played.counts == {"forbidden": 0, "early": 0, "before_robots": 0}


def test_as_data_it_has_the_published_shape(played: demo.Demo) -> None:
    data = json.loads(json.dumps(played.as_dict()))
    assert {name: set(part) for name, part in data.items()} == {
        "topology": {"default", "b"},
        "polite": {"conditional", "sitemap"},
        "many_hosts": {"hosts", "pages", "seconds", "pages_per_s"},
        "judgement": {"forbidden", "early", "before_robots"},
    }
    assert {tuple(row) for rows in data["topology"].values() for row in rows} == {
        ("at_min", "url", "old", "new", "next_min", "cause", "kept", "dropped")
    }
    assert {tuple(row) for rows in data["polite"].values() for row in rows} == {
        ("new", "not_modified", "errors", "bytes", "refused", "private_requests")
    }


def test_people_are_shown_all_of_it(played: demo.Demo) -> None:
    console = Console(file=io.StringIO(), width=160)
    demo.show(played, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for shown in ("/admin/x", "DISCOVERED → ERROR", "maxFetchErrors", "18,210", "/private/admin", "Polite:", "5.0 s"):
        assert shown in text
    guilty = replace(played.judgements[0], early=1, breaches=("early: GET /x",))
    demo.show(replace(played, judgements=[guilty]), console)
    assert "early: GET /x\nNot polite." in console.file.getvalue()  # type: ignore[attr-defined]


# ----------------------------------------------------------------------------------------------------------- the sinks

BASE = "http://t.localhost:1"


async def test_a_known_url_is_no_discovery_and_unsettled_rows_are_cut_back() -> None:
    log = Transitions(metadata.Policy(), start_at=0.0, base=BASE)
    seed = an_entry(f"{BASE}/", discovered_at=0.0, due_at=0.0)
    log.seeded(seed, {"mine": ["1"]})
    child = an_entry(f"{BASE}/a", via=f"{BASE}/", depth=1, discovered_at=120.0, due_at=120.0)
    after = replace_entry(seed, status=Status.FETCHED, visited_at=120.0, due_at=86520.0)
    mark = await log.write([a_visit(seed, a_page(), after, at=120.0, discoveries=(child, seed))])
    assert [(row.url, row.old, row.at_min, row.next_min) for row in log.rows] == [
        ("/", None, 0, 0),
        ("/", "DISCOVERED", 2, 1442),
        ("/a", None, 2, 2),
    ]
    assert log.rows[0].dropped == ["discoveryDate"], "only StormCrawler's keys and the scene's own are reported"
    failed = replace_entry(child, status=Status.FETCH_ERROR, failure=Failure.TIMEOUT_TOTAL, errors=1, visited_at=180.0)
    await log.write([a_visit(child, a_page(), failed, at=180.0)])
    assert log.rows[-1].dropped == ["fetch.exception", "lastProcessedDate"]
    await log.open(mark)
    assert len(log.rows) == 3
    await log.open(None)
    assert len(log.rows) == 3


async def test_rounds_count_pages_only_and_remember_what_is_closed() -> None:
    rounds = Rounds(BASE, ["/p/1"])
    rounds.begin()
    shut = an_entry(f"{BASE}/private", status=Status.ERROR, cause=Cause.ROBOTS, due_at=None)
    sitemap = an_entry(f"{BASE}/sitemap.xml")
    await rounds.write([a_visit(sitemap, a_page(), discoveries=(shut,)), a_visit(an_entry(f"{BASE}/p/1"), a_page())])
    assert (rounds.rows[0].new, rounds.rows[0].refused, rounds.rows[0].span_s) == (1, ("/private",), 0.0)
    rounds.begin()
    await rounds.write([a_visit(replace_entry(shut, status=Status.FETCHED, cause=None), a_page())])
    assert (rounds.rows[1].new, rounds.rows[1].refused) == (0, ())


def replace_entry(entry: Any, **changes: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(entry, **changes)
