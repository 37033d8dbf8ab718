"""Whose metadata live where: stormcrawler.md 3 and 8.6 (T122–T134); and the fixture of 8.1 (T001–T023), row by row, in
both configurations, as the topology's transition log shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, a_link, a_page, a_redirect, an_entry, an_error
from comity import lifecycle, recrawl
from comity.lifecycle import STORMCRAWLER
from comity.metadata import DEFAULT, Policy, Rendered, dropped, exception_word, for_link, instant, keep, render, report
from comity.model import Cause, Entry, Failed, Failure, LinkKind, Metadata, Outcome, Refused, Status
from comity.url import parse

BASE = "http://127.0.0.1:9811"
B = Policy(transfer=("nguon",), persist=("discoveryDate", "lastProcessedDate", "fetch.exception"))

# ------------------------------------------------------------------------------------------------------------ the lists

SIX: Metadata = dict.fromkeys(
    ("fetch.statusCode", "fetch.error.count", "fetch.exception", "fetchInterval", "isFeed", "depth"), ("x",)
)


@pytest.mark.parametrize(
    ("persist", "kept"),
    [
        ((), {"depth", "fetch.error.count"}),
        (("fetch*",), {"fetch.statusCode", "fetch.error.count", "fetch.exception", "fetchInterval", "depth"}),
        (("fetch.*",), {"fetch.statusCode", "fetch.error.count", "fetch.exception", "depth"}),
        (("*",), set(SIX)),
        (("f*h.statusCode",), {"depth", "fetch.error.count"}),
    ],
    ids=["T123", "T124", "T125", "T126", "3.3 a star elsewhere is a star"],
)
def test_wildcards(persist: tuple[str, ...], kept: set[str]) -> None:
    policy = Policy(persist=persist)
    assert set(keep(SIX, policy)) == kept
    assert set(dropped(SIX, policy)) == set(SIX) - kept


def test_t122_links_inherit_what_is_transferred() -> None:
    parent = {"cookie.id": ("1",), "cookie.source": ("2", "3"), "fetchInterval": ("x",)}
    assert for_link(parent, Policy(transfer=("cookie.*",))) == {"cookie.id": ("1",), "cookie.source": ("2", "3")}


def test_t133_what_is_only_persisted_stays_with_its_page() -> None:
    policy = Policy(transfer=("a",), persist=("b",))
    given_by_user: Metadata = {"a": ("1",), "b": ("2",), "c": ("3",)}
    assert keep(given_by_user, policy) == {"a": ("1",), "b": ("2",)}
    assert for_link(given_by_user, policy) == {"a": ("1",)}
    assert dropped(given_by_user, policy) == ("c",)


def test_t130_t131_a_seeds_limit_on_depth_follows_its_descendants_where_depth_is_tracked() -> None:
    assert for_link({"max.depth": ("2",)}) == {"max.depth": ("2",)}
    untracked = Policy(track_depth=False, track_path=False)
    assert for_link({"max.depth": ("2",)}, untracked) == {}
    assert for_link({"max.depth": ("2",), "k": ("v",)}, Policy(("k",), track_depth=False)) == {"k": ("v",)}


KEYS = st.text(st.sampled_from("ab.*"), max_size=4)
METADATA = st.dictionaries(KEYS, st.lists(st.text(max_size=2), max_size=2).map(tuple), max_size=5)
POLICIES = st.builds(
    Policy, st.lists(KEYS, max_size=3).map(tuple), st.lists(KEYS, max_size=3).map(tuple), st.booleans(), st.booleans()
)


@settings(deadline=None)
@given(METADATA, POLICIES)
def test_lists_only_ever_take_away_and_keep_whole_values(metadata: Metadata, policy: Policy) -> None:
    kept, handed, gone = keep(metadata, policy), for_link(metadata, policy), dropped(metadata, policy)
    assert kept.items() <= metadata.items()
    assert handed.items() <= kept.items()
    assert kept.keys() | set(gone) == metadata.keys() and not kept.keys() & set(gone)
    assert keep(kept, policy) == kept and for_link(handed, policy) == handed


# ------------------------------------------------------------------------------------------------------------ rendering


def test_typed_facts_speak_before_a_users_key_of_the_same_name() -> None:
    entry = an_entry(via=BASE, depth=2, metadata={"depth": ("9",), "k": ("v", "w"), "empty": ()})
    assert render(entry, Policy(persist=("*",)))["depth"] == ["2"]
    assert render(entry, Policy(persist=("k", "empty"))) == {"depth": ["2"], "k": ["v", "w"]}


@pytest.mark.parametrize(
    ("cause", "word"),
    [
        (Cause.ROBOTS, "robots.txt"),
        (Cause.CRAWL_DELAY, "crawl_delay"),
        (Cause.MALFORMED, "malformed URL"),
        (Cause.MAX_ERRORS, "maxFetchErrors"),
        (Cause.GONE, "gone"),
    ],
)
def test_1_6_causes(cause: Cause, word: str) -> None:
    assert render(an_entry(status=Status.ERROR, cause=cause)) == {"error.cause": [word]}


@pytest.mark.parametrize(
    ("flags", "source"),
    [({"is_sitemap": True}, "sitemap parsing"), ({"is_feed": True}, "feed parsing"), ({}, "content parsing")],
)
def test_1_6_what_cannot_be_read_has_a_source_and_no_cause(flags: dict[str, Any], source: str) -> None:
    shown = render(
        an_entry(status=Status.ERROR, cause=Cause.PARSE, detail="no XML", **flags), Policy(persist=("error.*",))
    )
    assert shown["error.source"] == [source]
    assert shown["error.message"] == ["no XML"]
    assert "error.cause" not in shown


@pytest.mark.parametrize("failure", Failure, ids=str)
def test_t044_t046_exceptions(failure: Failure) -> None:
    word = exception_word(failure)
    if failure.value.startswith("timeout"):
        assert word == "Socket timeout fetching"
    elif failure.value.startswith("dns"):
        assert word == "Unknown host"
    elif failure.value.startswith(("http_", "redirect_", "too_many", "parse")):
        assert word is None
    else:
        assert word is not None and word.count(".") >= 1 and word.endswith("Exception")


def test_t051_whatever_is_listed_is_shown() -> None:
    entry = lifecycle.advance(an_entry(), an_error(404), now=NOW, jitter=0, profile=STORMCRAWLER).after
    assert render(entry, Policy(persist=("fetch.statusCode",))) == {
        "fetch.statusCode": ["404"],
        "fetch.error.count": ["1"],
    }


def test_a_count_is_shown_while_it_runs() -> None:
    assert render(an_entry(status=Status.FETCH_ERROR, errors=2)) == {"fetch.error.count": ["2"]}
    ended = an_entry(status=Status.ERROR, cause=Cause.MAX_ERRORS, errors=3)  # ours goes on counting, theirs is gone
    assert render(ended) == {"error.cause": ["maxFetchErrors"]}


def test_p10_lists_add_to_what_is_always_kept() -> None:
    entry = an_entry(status=Status.REDIRECTION, redirect_to="/b", is_sitemap=True, is_feed=True)
    always = {"_redirTo": ["/b"], "isSitemap": ["true"], "isFeed": ["true"]}
    assert render(entry) == always == render(entry, Policy(persist=("k",)))


@pytest.mark.parametrize(
    ("at", "text"),
    [(0.0, "1970-01-01T00:00:00Z"), (NOW, "2027-01-15T08:00:00Z"), (NOW + 0.25, "2027-01-15T08:00:00.250Z")],
)
def test_dates_are_iso_8601(at: float, text: str) -> None:
    assert instant(at) == text


def test_a_refusal_was_processed_though_nobody_was_asked() -> None:
    entry = lifecycle.advance(
        an_entry(), Refused(Cause.ROBOTS, "x"), now=NOW + 60, jitter=0, profile=STORMCRAWLER
    ).after
    assert entry.visited_at is None
    assert render(entry, B)["lastProcessedDate"] == [instant(NOW + 60)]


# ------------------------------------------------------------------------------------------- the fixture of section 8.1

FOUND_ON = {"/a": "/", "/mat": "/", "/chap": "/", "/cu": "/", "/admin/x": "/", "/cham": "/", "/b": "/a"}
GOOD, SLOW = a_page(), Failed(Failure.TIMEOUT_TOTAL, "2 s")
MOVED, SHUT = a_redirect("/b", f"{BASE}/b"), Refused(Cause.ROBOTS, "Disallow: /admin/")
STORIES: dict[str, list[Outcome]] = {
    "/": [GOOD, GOOD, GOOD],
    "/a": [GOOD, GOOD],
    "/b": [GOOD, GOOD],
    "/mat": [an_error(404)] * 3,
    "/chap": [an_error(503), an_error(503), GOOD],
    "/cham": [SLOW] * 3,
    "/cu": [MOVED, MOVED],
    "/admin/x": [SHUT],
}


def seeded(policy: Policy) -> Entry:
    url = parse(f"{BASE}/")
    return lifecycle.seed(url, "127.0.0.1", now=NOW, metadata={"nguon": ("catalog",)}, metadata_policy=policy)


def found(path: str, policy: Policy) -> Entry:
    """As its page found it, one minute after that page was found."""
    if path == "/":
        return seeded(policy)
    parent = FOUND_ON[path]
    return lifecycle.discover(
        found(parent, policy),
        a_link(f"{BASE}{path}", LinkKind.ANCHOR),
        now=NOW + 60.0 * len(way(parent)),
        profile=STORMCRAWLER,
        metadata_policy=policy,
    )


def way(path: str) -> list[str]:
    return [] if path == "/" else [*way(FOUND_ON[path]), FOUND_ON[path]]


def visits(path: str, n: int, policy: Policy) -> tuple[Status | None, Entry]:
    """The status before and the entry after the n-th visit; 0: its discovery."""
    entry, old = found(path, policy), None
    for outcome in STORIES[path][:n]:
        old, now = entry.status, max(entry.due_at or NOW, NOW + 60.0 * len(way(path)))
        entry = lifecycle.advance(
            entry,
            outcome,
            now=now,
            jitter=0.5,
            profile=STORMCRAWLER,
            schedule=recrawl.STORMCRAWLER,
            metadata_policy=policy,
        ).after
    return old, entry


def rendered(path: str, n: int, policy: Policy) -> Rendered:
    old, entry = visits(path, n, policy)
    given_with_seed = ("nguon",) if path == "/" and old is None else ()
    result = report(entry, policy, path=[BASE + step for step in way(path)], old=old, given=given_with_seed)
    return Rendered({key: [short(v) for v in values] for key, values in result.kept.items()}, result.dropped)


def short(value: str) -> str:
    return value.removeprefix(BASE) if value.startswith(BASE) else value


PROCESSED, DISCOVERY, EXCEPTION = "lastProcessedDate", "discoveryDate", "fetch.exception"
LEVEL1 = {"url.path": ["/"], "depth": ["1"]}
LEVEL2 = {"url.path": ["/", "/a"], "depth": ["2"]}
GIVEN_UP = {"error.cause": ["maxFetchErrors"]}

# id: path, visit, kept, dropped. The date of a visit is stamped on it and dropped; a discovery's date was dropped when
# it was stored, so that later visits do not bring it again; a time-out brings its words.
DEFAULT_ROWS: dict[str, tuple[str, int, dict[str, list[str]], list[str]]] = {
    "T023 the seed's own key is lost at the first store": ("/", 0, {}, [DISCOVERY, "nguon"]),
    "T001 a seed has neither depth nor path": ("/", 1, {}, [PROCESSED]),
    "T002 /a found": ("/a", 0, LEVEL1, [DISCOVERY]),
    "T002 /a": ("/a", 1, LEVEL1, [PROCESSED]),
    "T003 /b found": ("/b", 0, LEVEL2, [DISCOVERY]),
    "T003 /b": ("/b", 1, LEVEL2, [PROCESSED]),
    "T004 /mat": ("/mat", 1, {**LEVEL1, "fetch.error.count": ["1"]}, [PROCESSED]),
    "T005 /mat": ("/mat", 2, {**LEVEL1, "fetch.error.count": ["2"]}, [PROCESSED]),
    "T006 /mat: the count is over, not dropped": ("/mat", 3, {**LEVEL1, **GIVEN_UP}, [PROCESSED]),
    "T007 /chap": ("/chap", 1, {**LEVEL1, "fetch.error.count": ["1"]}, [PROCESSED]),
    "T008 /chap": ("/chap", 2, {**LEVEL1, "fetch.error.count": ["2"]}, [PROCESSED]),
    "T009 /chap: the count is over": ("/chap", 3, LEVEL1, [PROCESSED]),
    "T010 /cham": ("/cham", 1, {**LEVEL1, "fetch.error.count": ["1"]}, [EXCEPTION, PROCESSED]),
    "T010 /cham again": ("/cham", 2, {**LEVEL1, "fetch.error.count": ["2"]}, [EXCEPTION, PROCESSED]),
    "T011 /cham: as /mat but for the words": ("/cham", 3, {**LEVEL1, **GIVEN_UP}, [EXCEPTION, PROCESSED]),
    "T012 /cu: Location as written": ("/cu", 1, {**LEVEL1, "_redirTo": ["/b"]}, [PROCESSED]),
    "T014 /admin/x: no count": ("/admin/x", 1, {**LEVEL1, "error.cause": ["robots.txt"]}, [PROCESSED]),
    "T015 / again": ("/", 2, {}, [PROCESSED]),
    "T015 /a again": ("/a", 2, LEVEL1, [PROCESSED]),
    "T015 /cu again": ("/cu", 2, {**LEVEL1, "_redirTo": ["/b"]}, [PROCESSED]),
    "T016 /b again": ("/b", 2, LEVEL2, [PROCESSED]),
}


@pytest.mark.parametrize("row", DEFAULT_ROWS)
def test_the_fixture_in_the_default_configuration(row: str) -> None:
    path, n, kept, let_go = DEFAULT_ROWS[row]
    assert rendered(path, n, DEFAULT) == Rendered(kept, sorted(let_go))


B_ROWS: dict[str, tuple[str, int, set[str], list[str]]] = {
    # id: path, visit, kept beyond nguon, path and depth; nothing is dropped in this configuration
    "T019 the seed": ("/", 0, {DISCOVERY}, []),
    "T019 /: the discovery's date came with the item": ("/", 1, {DISCOVERY, PROCESSED}, []),
    "T020 /a found": ("/a", 0, {DISCOVERY}, []),
    "T020 /mat found": ("/mat", 0, {DISCOVERY}, []),
    "T022 /a": ("/a", 1, {DISCOVERY, PROCESSED}, []),
    "T022 /b": ("/b", 1, {DISCOVERY, PROCESSED}, []),
    "T022 /mat": ("/mat", 1, {DISCOVERY, PROCESSED, "fetch.error.count"}, []),
    "T022 /mat third": ("/mat", 3, {DISCOVERY, PROCESSED, "error.cause"}, []),
    "T022 /chap third": ("/chap", 3, {DISCOVERY, PROCESSED}, []),
    "T022 /cu": ("/cu", 1, {DISCOVERY, PROCESSED, "_redirTo"}, []),
    "T022 /admin/x": ("/admin/x", 1, {DISCOVERY, PROCESSED, "error.cause"}, []),
    "T022 /cham": ("/cham", 1, {DISCOVERY, PROCESSED, EXCEPTION, "fetch.error.count"}, []),
    "T021 /cham third": ("/cham", 3, {DISCOVERY, PROCESSED, EXCEPTION, "error.cause"}, []),
}


@pytest.mark.parametrize("row", B_ROWS)
def test_the_fixture_in_configuration_b(row: str) -> None:
    path, n, kept, let_go = B_ROWS[row]
    got = rendered(path, n, B)
    assert got.dropped == let_go
    assert got.kept.keys() == kept | {"nguon"} | (set() if path == "/" else {"url.path", "depth"})
    assert got.kept["nguon"] == ["catalog"]
    assert got.kept.get("url.path", []) == way(path)
    assert got.kept.get("depth", ["0"]) == [str(len(way(path)))]
    assert got.kept[DISCOVERY] == [instant(NOW + 60 * max(0, len(way(path)) - 1))]
    if EXCEPTION in kept:
        assert got.kept[EXCEPTION] == ["Socket timeout fetching"]


def test_config_b_named_in_full_is_the_same() -> None:
    """StormCrawler's users repeat the defaults, since there a list replaces them."""
    full = Policy(B.transfer, ("_redirTo", "error.cause", "error.source", "isSitemap", "isFeed", *B.persist))
    for path, story in STORIES.items():
        for n in range(len(story) + 1):
            assert rendered(path, n, full) == rendered(path, n, B)


@pytest.mark.parametrize("path", STORIES)
def test_t022_lists_change_no_status_and_no_date(path: str) -> None:
    def plain(policy: Policy) -> Sequence[object]:
        return [(e.status, e.cause, e.due_at, e.next_rule) for _, e in (visits(path, n, policy) for n in range(4))]

    assert plain(DEFAULT) == plain(B)


def test_t129_path_and_depth_grow_together_and_t130_can_be_left_out() -> None:
    entry = an_entry(via=f"{BASE}/4", depth=5)
    path = [f"{BASE}/{n}" for n in range(5)]
    assert render(entry, path=path) == {"url.path": path, "depth": ["5"]}
    assert render(entry, Policy(track_depth=False), path=path) == {"url.path": path}
    assert render(entry, Policy(track_path=False), path=path) == {"depth": ["5"]}
    assert render(entry) == {"depth": ["5"]}  # nobody knows the way: better none than a part
