"""The life of a URL: stormcrawler.md 8.1 and 8.2 (T001–T054) under `STORMCRAWLER`, docs/architecture.md under `COMITY`,
and what holds whatever happens."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace as with_option
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import NOW, a_page, a_redirect, an_entry, an_error, not_modified
from comity import recrawl
from comity.lifecycle import (
    COMITY,
    STORMCRAWLER,
    TRANSITIONS,
    Advance,
    Condition,
    Event,
    Profile,
    Rule,
    advance,
    transition,
)
from comity.metadata import Policy
from comity.model import (
    Cause,
    Entry,
    Failed,
    Failure,
    Found,
    HttpError,
    NotModified,
    Outcome,
    Page,
    PastVisit,
    Redirect,
    Refused,
    Status,
    StillFresh,
)
from comity.url import document_id

MIN = 60.0
HOUR = 3600.0
DAY = 86_400.0
D, F, R, E, X = Status
CRAWL = with_option(COMITY, min_error_span_s=0.0)
ROBOTS = Refused(Cause.ROBOTS, "Disallow: /admin/")
SLOW = Failed(Failure.TIMEOUT_READ, "nothing for 2 s")


def step(entry: Entry, outcome: Outcome, found: Found | None = None, **more: Any) -> Advance:
    profile: Profile = more.pop("profile", COMITY)
    schedule = more.pop("schedule", recrawl.SCHEDULES[profile.name])
    facts: dict[str, Any] = {"now": NOW, "jitter": 0.5, "profile": profile, "schedule": schedule} | more
    return advance(entry, outcome, found, **facts)


def storm(entry: Entry, outcome: Outcome, found: Found | None = None, **more: Any) -> Advance:
    return step(entry, outcome, found, profile=STORMCRAWLER, **more)


def lived(outcomes: Sequence[Outcome], entry: Entry | None = None, **more: Any) -> Advance:
    """The last step of a life in which each visit comes when the one before said, starting at `NOW`."""
    entry = entry if entry is not None else an_entry()
    result = None
    for outcome in outcomes:
        now = NOW if entry.due_at is None else max(NOW, entry.due_at)
        result = step(entry, outcome, now=now, **more)
        entry = result.after
    assert result is not None
    return result


# -------------------------------------------------------------------------------------------------------- StormCrawler

ERROR_404, ERROR_503 = an_error(404), an_error(503)

ROWS: dict[str, tuple[list[Outcome], Status, float | None, dict[str, Any]]] = {
    # id: what the visits gave; status; minutes to the next visit (None: never); fields
    "T001 / 200": ([a_page()], F, 1440, {}),
    "T004 /mat 404": ([ERROR_404], E, 120, {"errors": 1}),
    "T005 /mat 404 again": ([ERROR_404] * 2, E, 120, {"errors": 2}),
    "T006 /mat 404 third": ([ERROR_404] * 3, X, None, {"cause": Cause.MAX_ERRORS, "errors": 0}),
    "T007 /chap 503": ([ERROR_503], E, 120, {"errors": 1}),
    "T008 /chap 503 again": ([ERROR_503] * 2, E, 120, {"errors": 2}),
    "T009 /chap 200": ([ERROR_503, ERROR_503, a_page()], F, 1440, {"errors": 0}),
    "T010 /cham slow": ([SLOW], E, 120, {"errors": 1}),
    "T010 /cham slow again": ([SLOW] * 2, E, 120, {"errors": 2}),
    "T011 /cham slow third": ([SLOW] * 3, X, None, {"cause": Cause.MAX_ERRORS, "errors": 0}),
    "T012 /cu 301": ([a_redirect("/b")], R, 1440, {"redirect_to": "/b"}),
    "T014 /admin/x": ([ROBOTS], X, None, {"cause": Cause.ROBOTS, "errors": 0, "visited_at": None}),
    "T015 / again": ([a_page(), a_page()], F, 1440, {}),
    "T015 /cu again": ([a_redirect("/b"), a_redirect("/b")], R, 1440, {"redirect_to": "/b"}),
    "T018 /admin/x stays": ([ROBOTS], X, None, {"next_rule": "never.robots"}),
    "T027 304": ([not_modified()], F, 1440, {"http_status": 304}),
    "T031 300 without Location": ([a_redirect(None, None, 300)], R, 1440, {"redirect_to": None, "failure": None}),
    "T032 302 relative": (
        [a_redirect("../x?y=1", "https://a.example/x?y=1", 302)],
        R,
        1440,
        {"redirect_to": "../x?y=1"},
    ),
    "T035 301 blank Location": ([a_redirect(None, None)], R, 1440, {"redirect_to": None}),
    "T037 301 to itself": ([a_redirect("/page", "https://a.example/page")] * 3, R, 1440, {"redirect_to": "/page"}),
    "T040 410 as 404": ([an_error(410)], E, 120, {"errors": 1}),
    "T041 429, Retry-After": ([an_error(429, retry_after="3600")], E, 120, {"errors": 1}),
    "T043 999": ([an_error(999)], E, 120, {"failure": Failure.HTTP_999}),
    "T044 timeout": ([SLOW], E, 120, {"failure": Failure.TIMEOUT_READ}),
    "T045 no such host": ([Failed(Failure.DNS)], E, 120, {"failure": Failure.DNS}),
    "T046 refused": ([Failed(Failure.REFUSED)], E, 120, {"failure": Failure.REFUSED}),
    "T047 malformed": ([Refused(Cause.MALFORMED, "url.x")], X, None, {"cause": Cause.MALFORMED}),
    "T050 timeout, then 200": ([SLOW, a_page()], F, 1440, {"failure": None, "detail": None}),
    "T052 cut at the limit": ([Page(200, (), b"x", "length")], F, 1440, {}),
    "T053 broken off": ([Failed(Failure.CUT_OFF)], E, 120, {"errors": 1}),
    "T061 errors, then redirect": ([ERROR_503, ERROR_503, a_redirect()], R, 1440, {"errors": 0, "cause": None}),
    "T066 500, 200, 500": ([an_error(500), a_page(), an_error(500)], E, 120, {"errors": 1}),
    "crawl_delay": ([Refused(Cause.CRAWL_DELAY, "Crawl-delay 31 s")], X, None, {"cause": Cause.CRAWL_DELAY}),
    "a proxy's failure counts": ([Failed(Failure.PROXY)], E, 120, {"errors": 1}),
    "a forbidden address counts": ([Failed(Failure.FORBIDDEN_ADDRESS)], E, 120, {"errors": 1}),
}
for number, code in [
    ("T028", 201),
    ("T029", 204),
    ("T030", 206),
    ("1.2", 202),
    ("1.2", 203),
    ("1.2", 205),
    ("1.2", 226),
]:
    ROWS[f"{number} {code}"] = ([a_page(status=code)], E, 120, {"errors": 1, "failure": Failure.HTTP_2XX})
for code in (303, 305, 306, 307, 308, 399):
    ROWS[f"T033 {code}"] = ([a_redirect(status=code)], R, 1440, {"http_status": code})
for code in (100, 400, 401, 403, 405, 451, 500, 599, 600, 0, -1):
    ROWS[f"T039, T042, 1.2: {code}"] = ([an_error(code)], E, 120, {"errors": 1, "http_status": code})


@pytest.mark.parametrize("row", ROWS)
def test_stormcrawler(row: str) -> None:
    outcomes, status, wait_min, fields = ROWS[row]
    result = lived(outcomes, profile=STORMCRAWLER)
    after = result.after
    assert after.status is status
    at = after.history[-1].at
    assert after.due_at == (None if wait_min is None else at + wait_min * MIN)
    assert {name: getattr(after, name) for name in fields} == fields
    assert (result.deletion is not None) is (status is X)


def test_t024_an_error_interval_looks_again_and_counts_from_nothing() -> None:
    weekly = with_option(recrawl.STORMCRAWLER, error_other_s=7 * DAY)
    third = lived([ERROR_404] * 3, profile=STORMCRAWLER, schedule=weekly).after
    assert third.due_at == third.history[-1].at + 10_080 * MIN
    fourth = lived([ERROR_404], third, profile=STORMCRAWLER, schedule=weekly).after
    assert (fourth.status, fourth.errors, fourth.cause) == (E, 1, None)  # StormCrawler keeps the old cause: P07, T064
    assert lived([ERROR_404] * 3, third, profile=STORMCRAWLER, schedule=weekly).after.status is X


@pytest.mark.parametrize(
    ("limit", "status"), [(1, X), (0, X), (-1, X), (5, E)], ids=["T055", "T056", "T056 -1", "T057"]
)
def test_the_limit(limit: int, status: Status) -> None:
    profile = with_option(STORMCRAWLER, max_fetch_errors=limit)
    assert storm_with(profile, an_entry(), an_error(500)).after.status is status


def test_t059_a_count_above_the_limit_ends_too() -> None:
    assert storm(an_entry(errors=7), an_error(500)).after.status is X


def storm_with(profile: Profile, entry: Entry, outcome: Outcome) -> Advance:
    return step(entry, outcome, profile=profile, schedule=recrawl.STORMCRAWLER)


def test_t062_a_page_that_cannot_be_read_is_an_error_at_once() -> None:
    carried = lived([ERROR_503] * 2, an_entry(is_sitemap=True), profile=STORMCRAWLER).after
    result = storm(carried, a_page(), Found("other", problem="no XML"))
    assert (result.after.status, result.after.cause, result.after.errors) == (X, Cause.PARSE, 0)
    assert (result.after.failure, result.after.detail) == (Failure.PARSE, "no XML")
    assert result.deletion is not None


def test_1_3_a_meta_refresh_redirects() -> None:
    found = Found("html", refresh="https://a.example/there")
    after = storm(an_entry(), a_page(etag='"1"'), found).after
    assert (after.status, after.redirect_to, after.http_status) == (R, "https://a.example/there", 200)
    assert after.etag is None  # or the next visit would be told 304, and be a page
    assert step(an_entry(), a_page(), found).after.status is F


def test_the_profile_knows_no_loops() -> None:
    far = an_entry(hops=50, chain=("https://a.example/b",), via="https://a.example/b")
    assert storm(far, a_redirect()).after.status is R


def test_the_profile_waits_without_chance() -> None:
    assert storm(an_entry(), ERROR_404, jitter=0.0) == storm(an_entry(), ERROR_404, jitter=0.999)


# -------------------------------------------------------------------------------------------------------------- comity


@pytest.mark.parametrize("code", [200, 201, 203, 204, 205, 206])
def test_success(code: int) -> None:
    after = step(an_entry(errors=2, first_error_at=NOW - 9), Page(code, (), b"")).after
    assert (after.status, after.errors, after.first_error_at, after.failure) == (F, 0, None, None)
    assert (after.due_at, after.next_rule) == (NOW + DAY, "recrawl.fetched")


@pytest.mark.parametrize("code", [202, 207, 226, 299])
def test_other_2xx_are_errors(code: int) -> None:
    after = step(an_entry(), a_page(status=code)).after
    assert (after.status, after.failure, after.http_status) == (E, Failure.HTTP_2XX, code)


def test_retries_wait_longer_each_time_with_jitter() -> None:
    entry, waits = an_entry(), []
    for n in range(1, 9):
        after = step(entry, an_error(500), now=NOW, jitter=0.0).after
        assert after.next_rule == f"retry.{n}"
        waits.append((after.due_at or 0) - NOW)
        most = step(entry, an_error(500), now=NOW, jitter=1.0 - 1e-9).after.due_at or 0
        assert most - NOW == pytest.approx(2 * waits[-1], rel=1e-6)
        entry = after
    assert waits == [15, 60, 240, 960, 3840, 3 * HOUR, 3 * HOUR, 3 * HOUR]


def test_an_evenings_outage_kills_nothing() -> None:
    """P05: three errors in a row *and* a day."""
    entry, now = an_entry(), NOW
    while now - NOW < DAY:
        entry = step(entry, an_error(500), now=now).after
        assert entry.status is E
        now = entry.due_at or math.inf
    assert entry.errors > 3
    result = step(entry, an_error(500), now=now)
    assert (result.after.status, result.after.cause) == (X, Cause.MAX_ERRORS)
    assert result.deletion is not None


def test_the_row_begins_anew_after_a_success() -> None:
    late = lived([an_error(500), an_error(500), a_page()]).after
    after = step(late, an_error(500), now=NOW + 9 * DAY).after
    assert (after.errors, after.first_error_at) == (1, NOW + 9 * DAY)


def test_in_a_one_shot_crawl_three_in_a_row_are_enough() -> None:
    assert lived([an_error(500)] * 2, profile=CRAWL).after.status is E
    after = lived([an_error(500)] * 3, profile=CRAWL).after
    assert (after.status, after.cause, after.next_rule) == (X, Cause.MAX_ERRORS, "recrawl.error.max_errors")


def test_p03_a_dead_url_is_looked_at_again_by_one_request_each_time() -> None:
    entry = lived([an_error(500)] * 3, profile=CRAWL).after
    waits = []
    for _ in range(6):
        at = entry.due_at or 0.0
        waits.append((at - entry.history[-1].at) / DAY)
        entry = step(entry, an_error(500), now=at, profile=CRAWL).after
        assert (entry.status, entry.cause) == (X, Cause.MAX_ERRORS)
    assert waits == [7, 14, 28, 56, 90, 90]
    assert step(entry, a_page(), now=NOW + 999 * DAY).after.status is F


@pytest.mark.parametrize("before", [D, F, R, E], ids=lambda status: status.name)
@pytest.mark.parametrize(
    "outcome",
    [an_error(429), an_error(503, retry_after="7"), an_error(429, retry_after="x")],
    ids=["429", "503", "junk"],
)
def test_b091_b092_a_throttled_url_keeps_its_place(before: Status, outcome: Outcome) -> None:
    entry = an_entry(
        status=before, errors=2, first_error_at=NOW - 60, visited_at=NOW - 60, etag='"1"', digest="d", size_bytes=3
    )
    if before is R:
        entry = replace(entry, etag=None, digest=None, size_bytes=None, redirect_to="/b")
    result = step(entry, outcome, host_due_at=NOW + 777)
    after = result.after
    assert (after.status, after.errors, after.first_error_at) == (before, 2, NOW - 60)
    assert (after.due_at, after.next_rule) == (NOW + 777, "host.answer")
    for name in ("visited_at", "etag", "digest", "size_bytes", "redirect_to"):
        assert getattr(after, name) == getattr(entry, name), name
    assert after.failure is not None and after.http_status in (429, 503)
    assert after.history[-1].failure is after.failure
    assert result.deletion is None


def test_503_without_retry_after_is_an_error() -> None:
    after = step(an_entry(), an_error(503), host_due_at=NOW + 777).after
    assert (after.status, after.errors, after.next_rule) == (E, 1, "retry.1")


def test_a_throttled_url_never_comes_back_at_once() -> None:
    assert step(an_entry(), an_error(429), host_due_at=NOW - 5).after.due_at == NOW + 1
    waits, entry = [], an_entry()
    for _ in range(3):  # where nobody knows the host's date
        entry = step(entry, an_error(429), jitter=0.0).after
        waits.append((entry.due_at or 0) - NOW)
        assert entry.next_rule == "host.answer"
    assert waits == [15, 60, 240]


@pytest.mark.parametrize("failure", [Failure.SELF, Failure.PROXY])
def test_p06_t_i_failures_of_ours_count_for_nobody(failure: Failure) -> None:
    entry = an_entry(status=F, visited_at=NOW - 60, etag='"1"')
    waits = []
    for _ in range(12):
        result = step(entry, Failed(failure, "broken"), jitter=0.0)
        entry = result.after
        assert (entry.status, entry.errors, entry.visited_at, entry.etag) == (F, 0, NOW - 60, '"1"')
        assert (entry.failure, entry.detail, entry.next_rule) == (failure, "broken", f"again.{failure}")
        assert result.deletion is None
        waits.append((entry.due_at or 0) - NOW)
    assert waits[:6] == [15, 60, 240, 960, 3840, 3 * HOUR]
    assert set(waits[6:]) == {3 * HOUR}


@pytest.mark.parametrize("outcome", [an_error(429), Failed(Failure.SELF)], ids=["429", "self"])
def test_a_refusal_taken_back_is_over_once_the_url_was_asked(outcome: Outcome) -> None:
    refused = replace(step(an_entry(), ROBOTS).after, rules_digest="old")
    after = step(refused, outcome, host_due_at=NOW + 9).after
    assert (after.status, after.cause, after.rules_digest) == (D, None, None)
    assert after.due_at is not None
    dead = step(an_entry(), an_error(410)).after
    assert (step(dead, outcome).after.status, step(dead, outcome).after.cause) == (X, Cause.GONE)


def test_410_is_believed_at_once() -> None:
    result = step(an_entry(status=F, etag='"1"', digest="d"), an_error(410))
    assert (result.after.status, result.after.cause, result.after.failure) == (X, Cause.GONE, Failure.HTTP_410)
    assert (result.after.due_at, result.after.next_rule) == (NOW + 30 * DAY, "recrawl.error.gone")
    assert (result.after.etag, result.after.digest) == (None, None)


@pytest.mark.parametrize("failure", [Failure.FORBIDDEN_ADDRESS, Failure.FORBIDDEN_PORT])
def test_ssrf_a_forbidden_address_ends_a_url_at_once(failure: Failure) -> None:
    after = step(an_entry(), Failed(failure)).after
    assert (after.status, after.cause, after.failure) == (X, Cause.FORBIDDEN_ADDRESS, failure)
    assert after.next_rule == "recrawl.error.forbidden_address"


@pytest.mark.parametrize("code", [300, 301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "failure"),
    [(None, Failure.REDIRECT_WITHOUT_LOCATION), ("mailto:x@a.example", Failure.REDIRECT_BAD_LOCATION)],
)
def test_red_1_b148_a_redirect_that_leads_nowhere_is_an_error(
    code: int, location: str | None, failure: Failure
) -> None:
    after = step(an_entry(), a_redirect(location, None, code)).after
    assert (after.status, after.failure, after.redirect_to, after.http_status) == (E, failure, location, code)


def test_p25_p27_b038_a_redirect_to_itself_is_tried_once_more() -> None:
    itself = a_redirect("/page#top", "https://a.example/page#top")
    first = step(an_entry(), itself).after
    assert (first.status, first.failure, first.next_rule) == (E, Failure.TOO_MANY_REDIRECTS, "retry.1")
    assert step(first, a_page()).after.status is F
    second = step(first, itself)
    assert (second.after.status, second.after.cause) == (X, Cause.REDIRECT_LOOP)
    assert second.deletion is not None
    between = step(first, an_error(500)).after
    assert step(between, itself).after.status is E


@pytest.mark.parametrize(
    ("facts", "loops"),
    [
        ({"hops": 9}, False),
        ({"hops": 10}, True),
        ({"hops": 2, "chain": ("https://a.example/b", "https://a.example/c")}, True),
        ({"hops": 1, "via": "https://a.example/b"}, True),
        ({"hops": 0, "via": "https://a.example/b"}, False),
        ({"hops": 2, "chain": ("https://a.example/x", "https://a.example/c")}, False),
    ],
    ids=["ten hops", "eleven", "its chain", "whence it came", "a page that links here", "another chain"],
)
def test_p27_loops(facts: dict[str, Any], loops: bool) -> None:
    after = step(an_entry(**facts), a_redirect()).after
    assert (after.cause is Cause.REDIRECT_LOOP) is loops
    assert after.status is (X if loops else R)
    assert after.redirect_to == "/b"


def test_b148_a_304_needs_a_condition() -> None:
    unasked = step(an_entry(), not_modified()).after
    assert (unasked.status, unasked.failure, unasked.http_status) == (E, Failure.PROTOCOL, 304)
    for asked in ({"etag": "x"}, {"last_modified": "yesterday"}):
        assert step(an_entry(**asked), not_modified()).after.status is F


@pytest.mark.parametrize("cause", list(Cause), ids=lambda cause: cause.word)
def test_a_refusal_counts_no_error_and_was_no_visit(cause: Cause) -> None:
    entry = an_entry(status=F, errors=2, first_error_at=NOW - 5, visited_at=NOW - 5, etag='"1"', http_status=200)
    result = step(entry, Refused(cause, "the rule"))
    after = result.after
    assert (after.status, after.cause, after.detail) == (X, cause, "the rule")
    assert (after.errors, after.failure, after.http_status, after.visited_at) == (0, None, None, NOW - 5)
    assert (after.due_at is None) is (cause in (Cause.ROBOTS, Cause.MALFORMED))
    assert after.next_rule in (f"never.{cause.word}", f"recrawl.error.{cause.word}")
    assert after.etag is None
    assert result.deletion is not None and result.deletion.cause is cause


@pytest.mark.parametrize(
    ("until_s", "wait_s"), [(600, 600), (1, 60), (-5, 60), (400 * DAY, 7 * DAY)], ids=["then", "soon", "over", "a year"]
)
def test_frs_2_a_fresh_page_is_left_alone_until_it_goes_stale(until_s: float, wait_s: float) -> None:
    entry = an_entry(status=F, visited_at=NOW - 60, etag='"1"', history=(PastVisit(NOW - 60, F),), version=3)
    result = step(entry, StillFresh(NOW + until_s))
    assert result.after == replace(entry, due_at=NOW + wait_s, next_rule="recrawl.fresh")
    assert result.deletion is None


def test_what_could_not_be_read_is_noted_and_no_failure() -> None:
    after = step(an_entry(is_sitemap=True), a_page(), Found("other", problem="line 3: no XML")).after
    assert (after.status, after.failure, after.detail) == (F, None, "line 3: no XML")


def test_a_sitemap_found_out_stays_one() -> None:
    assert step(an_entry(), a_page(), Found("sitemapindex")).after.is_sitemap
    assert not step(an_entry(), a_page(), Found("html")).after.is_sitemap
    assert step(an_entry(is_sitemap=True), a_page(), Found("html")).after.is_sitemap


# ------------------------------------------------------------------------------------------ facts and what clears them


def test_p07_p09_facts_of_an_attempt_are_of_the_last_one() -> None:
    entry = lived([Failed(Failure.DNS, "no such host")]).after
    assert (entry.failure, entry.detail, entry.http_status) == (Failure.DNS, "no such host", None)
    entry = step(entry, a_redirect("/b")).after
    assert (entry.failure, entry.detail, entry.http_status, entry.redirect_to) == (None, None, 301, "/b")
    entry = step(entry, a_page()).after  # T065: StormCrawler would keep the redirect target
    assert (entry.http_status, entry.redirect_to, entry.cause) == (200, None, None)
    entry = replace(step(entry, ROBOTS).after, rules_digest="rules")
    entry = step(entry, an_error(500)).after  # T064: and the cause
    assert (entry.status, entry.cause, entry.rules_digest, entry.http_status) == (E, None, None, 500)


def test_facts_of_the_body_outlive_an_attempt_that_showed_none() -> None:
    """P16, B169: a blip resets nothing, since the outputs still hold that body."""
    page = a_page("text", etag='W/"1"', last_modified="Mon", cache_control="max-age=60")
    entry = step(an_entry(), page).after
    digest = hashlib.sha256(b"text").hexdigest()
    assert (entry.etag, entry.last_modified, entry.digest, entry.size_bytes) == ('W/"1"', "Mon", digest, 4)
    assert entry.fresh_until_at == NOW + 60
    later = step(entry, an_error(500), now=NOW + 99).after
    assert (later.etag, later.last_modified, later.digest, later.size_bytes) == ('W/"1"', "Mon", digest, 4)
    assert (later.fresh_until_at, later.changed_at) == (None, NOW)
    for end in (a_redirect(), an_error(410), ROBOTS):
        ended = step(later, end, now=NOW + 99).after
        assert (ended.etag, ended.last_modified, ended.digest, ended.size_bytes) == (None, None, None, None)
        assert ended.changed_at == NOW


def test_changes_are_seen_by_the_body() -> None:
    """CND-5, B169."""
    bodies: list[Outcome] = [a_page("a"), a_page("a"), not_modified(), an_error(500), a_page("b"), a_page("b")]
    entry, changed_at = replace(an_entry(), etag='"0"'), []
    for n, outcome in enumerate(bodies):
        entry = step(replace(entry, etag='"0"'), outcome, now=NOW + n).after
        changed_at.append((entry.changed_at or 0) - NOW)
    assert [past.changed for past in entry.history] == [None, False, False, None, True, False]
    assert changed_at == [0, 0, 0, 0, 4, 4]


def test_the_history_keeps_the_last_eight() -> None:
    entry = an_entry()
    for n in range(12):
        entry = step(entry, an_error(500) if n % 2 else a_page(), now=NOW + n).after
    assert [past.at - NOW for past in entry.history] == list(range(4, 12))
    assert entry.history[-1] == PastVisit(NOW + 11, E, None, None, 500, Failure.HTTP_500)


def test_metadata_are_filtered_as_they_are_stored() -> None:
    entry = an_entry(metadata={"nguon": ("catalog",), "other": ("x",)})
    assert step(entry, a_page(), metadata_policy=Policy(transfer=("nguon",))).after.metadata == {"nguon": ("catalog",)}
    assert step(entry, a_page()).after.metadata == {}


def test_t_d_t_l_a_deletion_names_the_document_and_is_later_than_the_visits_row() -> None:
    result = step(an_entry(version=4), an_error(410))
    assert result.deletion is not None
    assert result.deletion.id == document_id("https://a.example/page")
    assert (result.deletion.url, result.deletion.at, result.deletion.cause) == (result.after.url, NOW, Cause.GONE)
    assert result.deletion.version == 6  # the settle makes this visit 5
    again = step(result.after, an_error(410))
    assert again.deletion is not None  # each ERROR has one, since each has a row


# --------------------------------------------------------------------------------------------------------- the table

WRITTEN = {
    # event: what it becomes from each of the five statuses; a star: the document is deleted; "=": as it was
    Event.PAGE: "FETCHED",
    Event.UNCHANGED: "FETCHED",
    Event.FRESH: "=",
    Event.MOVED: "REDIRECTION",
    Event.SELF: "FETCH_ERROR",
    Event.LOOP: "ERROR/redirect_loop*",
    Event.THROTTLED: "=",
    Event.OURS: "=",
    Event.GONE: "ERROR/gone*",
    Event.FORBIDDEN: "ERROR/forbidden_address*",
    Event.UNREADABLE: "ERROR/parse*",
    Event.FAILED: "FETCH_ERROR",
    Event.REFUSED: "ERROR/refusal*",
}
CONDITIONED = {
    (Event.SELF, Condition.AGAIN): "ERROR/redirect_loop*",
    (Event.FAILED, Condition.LAST_STRAW): "ERROR/max_errors*",
}


@pytest.mark.parametrize("before", Status, ids=lambda status: status.name)
@pytest.mark.parametrize("event", Event, ids=lambda event: event.name)
def test_the_table_is_total_and_says_what_is_written_here(before: Status, event: Event) -> None:
    for condition in (None, *Condition):
        row = transition(before, event, condition)
        said = "=" if row.status is None else row.status.name
        if row.cause is not None:
            said += "/" + (row.cause if isinstance(row.cause, str) else row.cause.word)
        if row.deletes:
            said += "*"
        expected = CONDITIONED.get((event, condition), WRITTEN[event]) if condition else WRITTEN[event]
        if before is X and condition is Condition.WAS_REFUSED and event in (Event.THROTTLED, Event.OURS):
            expected = "DISCOVERED"
        assert said == expected


def test_every_row_of_the_table_is_reached() -> None:
    reached = {
        transition(before, event, condition) for before in Status for event in Event for condition in (None, *Condition)
    }
    assert reached == set(TRANSITIONS)


def test_an_ending_row_deletes_and_no_other_does() -> None:
    for row in TRANSITIONS:
        assert row.deletes is (row.status is X)
        assert (row.cause is not None) is (row.status is X)
        assert (row.rule is Rule.RETRY) is (row.status is E)


# ------------------------------------------------------------------------------------------------- whatever happens

HEADERS = st.sampled_from(
    [
        (),
        (("etag", '"1"'),),
        (("etag", 'W/"2"'), ("cache-control", "max-age=30")),
        (("retry-after", "7"),),
        (("etag", '"3"'),),
    ]
)
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Page, st.sampled_from([200, 202, 204, 206]), HEADERS, st.sampled_from([b"", b"a", b"b"])),
    st.builds(NotModified, HEADERS),
    st.builds(StillFresh, st.floats(NOW - DAY, NOW + 900 * DAY)),
    st.builds(
        Redirect,
        st.sampled_from([300, 301, 302, 308, 399]),
        HEADERS,
        st.sampled_from([None, "/b", "x"]),
        st.sampled_from([None, "https://a.example/b", "https://a.example/page", "https://a.example/c", "odd"]),
    ),
    st.builds(HttpError, st.one_of(st.sampled_from([404, 410, 429, 500, 503]), st.integers(-5, 1100)), HEADERS),
    st.builds(Failed, st.sampled_from(Failure)),
    st.builds(Refused, st.sampled_from(Cause), st.just("rule")),
)
FOUND = st.one_of(
    st.none(),
    st.builds(
        Found,
        st.sampled_from(["html", "sitemap", "other"]),
        refresh=st.sampled_from([None, "https://a.example/b"]),
        problem=st.sampled_from([None, "unreadable"]),
    ),
)
PROFILE = st.sampled_from([COMITY, CRAWL, STORMCRAWLER, with_option(COMITY, max_fetch_errors=1)])
STEPS = st.lists(
    st.tuples(
        OUTCOMES,
        FOUND,
        st.floats(0, 400 * DAY),
        st.floats(0, 1, exclude_max=True),
        st.one_of(st.none(), st.floats(-9, 9 * DAY)),
    ),
    max_size=25,
)
BEGUN = st.builds(
    lambda hops, chain, flagged: an_entry(hops=hops, chain=chain, is_sitemap=flagged),
    st.integers(0, 12),
    st.sampled_from([(), ("https://a.example/b",)]),
    st.booleans(),
)


@settings(deadline=None, max_examples=300)
@given(BEGUN, PROFILE, STEPS)
def test_whatever_happens(
    entry: Entry, profile: Profile, steps: list[tuple[Outcome, Found | None, float, float, float | None]]
) -> None:
    now = NOW
    for outcome, found, later, jitter, host_s in steps:
        now += later
        host_due_at = None if host_s is None else now + host_s
        before = entry
        result = step(entry, outcome, found, now=now, jitter=jitter, profile=profile, host_due_at=host_due_at)
        entry = result.after
        check_state(entry, now)
        check_change(before, entry, outcome, result, profile)


def check_state(entry: Entry, now: float) -> None:
    assert entry.next_rule
    if entry.due_at is None:
        assert entry.next_rule.startswith("never.")
    else:
        assert now <= entry.due_at <= now + 100 * DAY
        assert not entry.next_rule.startswith("never.")
    assert (entry.cause is not None) is (entry.status is X)
    assert len(entry.history) <= 8
    assert 0 <= entry.errors <= 1000
    assert (entry.first_error_at is not None) is (entry.errors > 0)
    assert entry.rules_digest is None
    if entry.status in (X, R):
        assert entry.etag is None and entry.last_modified is None and entry.digest is None and entry.size_bytes is None
    assert (entry.digest is None) is (entry.size_bytes is None)


def check_change(before: Entry, after: Entry, outcome: Outcome, result: Advance, profile: Profile) -> None:
    for name in ("url", "key", "host", "seq", "version", "discovered_at", "depth", "hops", "via", "chain", "place"):
        assert getattr(after, name) == getattr(before, name), name
    if isinstance(outcome, StillFresh):
        assert after == replace(before, due_at=after.due_at, next_rule=after.next_rule)
        return
    assert after.history[-1].at == result.after.history[-1].at
    assert (after.history[-1].status, after.history[-1].failure) == (after.status, after.failure)
    assert (result.deletion is not None) is (after.status is X and result.row.deletes)
    if after.status is X and not (before.status is X and result.row.status is None):
        assert result.deletion is not None
    if result.row.status is F or result.row.status is R:
        assert (after.errors, after.cause, after.failure) == (0, None, None)
    if isinstance(outcome, Refused):
        assert (after.visited_at, after.errors, after.failure) == (before.visited_at, 0, None)
    if after.status is E and result.row.status is E:
        assert after.errors == min(before.errors + 1, 1000)
        assert after.failure is not None
    if after.status is not before.status:
        assert result.row.status is after.status
    if profile is STORMCRAWLER:
        assert after.errors <= max(2, before.errors)
