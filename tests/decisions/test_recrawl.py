"""How long until the next visit, and by which rule: stormcrawler.md 2.2 and 2.3 (fixed intervals), P03, P04, P14."""

from __future__ import annotations

import math
from dataclasses import replace as with_option

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, an_entry
from comity.model import Cause, Entry, PastVisit, Status
from comity.recrawl import COMITY, SCHEDULES, STORMCRAWLER, Next, Schedule, next_visit, retry, retry_wait_s, still_fresh

DAY = 86_400.0
FETCHED, REDIRECTION, ERROR = Status.FETCHED, Status.REDIRECTION, Status.ERROR


def ended(cause: Cause | None, *, before: tuple[PastVisit, ...] = ()) -> Entry:
    return an_entry(status=ERROR, cause=cause, history=(*before, PastVisit(NOW, ERROR, cause)))


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_good_pages_and_redirects_daily(schedule: Schedule) -> None:
    assert next_visit(an_entry(status=FETCHED), schedule, now=NOW) == (NOW + 1440 * 60, "recrawl.fetched")
    assert next_visit(an_entry(status=REDIRECTION), schedule, now=NOW) == (NOW + 1440 * 60, "recrawl.redirection")
    assert next_visit(an_entry(), schedule, now=NOW) == (NOW, "discovered")


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.word)
def test_t090_stormcrawler_never_looks_at_an_error_again(cause: Cause) -> None:
    assert next_visit(ended(cause), STORMCRAWLER, now=NOW) == (None, f"never.{cause.word}")


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.word)
def test_p03_an_error_is_looked_at_again_by_cause_within_7_to_90_days(cause: Cause) -> None:
    due_at, rule = next_visit(ended(cause), COMITY, now=NOW)
    if cause in (Cause.ROBOTS, Cause.MALFORMED):
        assert (due_at, rule) == (None, f"never.{cause.word}")
    else:
        assert due_at is not None
        assert 7 * DAY <= due_at - NOW <= 90 * DAY
        assert rule == f"recrawl.error.{cause.word}"


def test_each_further_error_of_a_cause_waits_longer_up_to_a_limit() -> None:
    gone = PastVisit(NOW - 1, ERROR, Cause.GONE)
    for times, days in enumerate([30, 60, 90, 90, 90, 90, 90, 90]):
        assert next_visit(ended(Cause.GONE, before=(gone,) * times), COMITY, now=NOW).due_at == NOW + days * DAY
    other, good = PastVisit(NOW - 1, ERROR, Cause.MAX_ERRORS), PastVisit(NOW - 1, FETCHED)
    for before in ((gone, other), (gone, good)):
        assert next_visit(ended(Cause.GONE, before=before), COMITY, now=NOW).due_at == NOW + 30 * DAY


def test_an_interval_above_the_limit_is_not_shortened_by_it() -> None:
    schedule = Schedule(error_s={Cause.GONE: 365 * DAY})
    assert next_visit(ended(Cause.GONE), schedule, now=NOW).due_at == NOW + 365 * DAY


def test_an_error_without_a_cause_is_looked_at_too() -> None:
    assert next_visit(ended(None), COMITY, now=NOW) == (NOW + 7 * DAY, "recrawl.error.unknown")


def test_t100_never_is_absorbing_and_no_number() -> None:
    once = Schedule(fetched_s=None, redirection_s=None, error_other_s=None, error_s={})
    for status, word in ((FETCHED, "fetched"), (REDIRECTION, "redirection")):
        assert next_visit(an_entry(status=status), once, now=NOW) == (None, f"never.{word}")
    assert next_visit(ended(Cause.GONE), once, now=NOW) == (None, "never.gone")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("fetched_s", -1.0),
        ("redirection_s", math.inf),
        ("error_other_s", math.nan),
        ("error_max_s", -5.0),
        ("fresh_max_s", -1.0),
        ("error_growth", 0.5),
        ("error_growth", math.nan),
        ("error_growth", 1e9),
    ],
)
def test_p14_t102_intervals_that_mean_nothing_are_refused(option: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"recrawl\.{option}"):
        with_option(COMITY, **{option: value})  # type: ignore[arg-type]


def test_p14_an_interval_of_a_cause_is_named() -> None:
    with pytest.raises(ValueError, match=r"recrawl\.error_s\.gone"):
        Schedule(error_s={Cause.GONE: -1.0})


def test_p04_the_curve() -> None:
    waits = [retry_wait_s(n, base_s=30, factor=4, most_s=21_600, jitter=None) for n in range(1, 9)]
    assert waits == [30, 120, 480, 1920, 7680, 21_600, 21_600, 21_600]
    assert retry(3, now=NOW, base_s=30, factor=4, most_s=21_600, jitter=0.0) == (NOW + 240, "retry.3")


def test_t101_no_wait_is_a_wait() -> None:
    assert retry(2, now=NOW, base_s=0, factor=4, most_s=21_600, jitter=0.5) == (NOW, "retry.2")


@settings(deadline=None)
@given(
    st.integers(-5, 10**9),
    st.floats(0, 1e9),
    st.floats(1, 1e300),
    st.floats(0, 1e9),
    st.one_of(st.none(), st.floats(0, 1, exclude_max=True)),
)
def test_a_wait_is_a_number_within_its_limit(
    n: int, base_s: float, factor: float, most_s: float, jitter: float | None
) -> None:
    wait_s = retry_wait_s(n, base_s=base_s, factor=factor, most_s=most_s, jitter=jitter)
    assert 0 <= wait_s <= most_s
    longer_s = retry_wait_s(n + 1, base_s=base_s, factor=factor, most_s=most_s, jitter=jitter)
    assert wait_s <= longer_s


@settings(deadline=None)
@given(st.floats(-1e12, 1e12))
def test_frs_2_a_fresh_page_waits_within_bounds(until_at: float) -> None:
    due_at, rule = still_fresh(until_at, COMITY, now=NOW)
    assert due_at is not None
    assert NOW + 60 <= due_at <= NOW + 7 * DAY
    assert rule == "recrawl.fresh"
    if NOW + 60 <= until_at <= NOW + 7 * DAY:
        assert due_at == until_at


@settings(deadline=None)
@given(
    st.sampled_from([FETCHED, REDIRECTION, ERROR, Status.DISCOVERED]),
    st.one_of(st.none(), st.sampled_from(Cause)),
    st.lists(
        st.builds(PastVisit, st.floats(0, NOW), st.sampled_from(Status), st.one_of(st.none(), st.sampled_from(Cause)))
    ),
    st.sampled_from(list(SCHEDULES.values())),
)
def test_every_state_has_a_way_out_or_a_rule_that_says_never(
    status: Status, cause: Cause | None, history: list[PastVisit], schedule: Schedule
) -> None:
    entry = an_entry(status=status, cause=cause, history=tuple(history))
    found = next_visit(entry, schedule, now=NOW)
    assert isinstance(found, Next)
    assert (found.due_at is None) is found.rule.startswith("never.")
    assert found.due_at is None or NOW <= found.due_at <= NOW + 90 * DAY
