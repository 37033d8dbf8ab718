"""What the answer to /robots.txt means: RFC 9309 section 2.3.1, ROB-23…30, and the table of docs/architecture.md."""

from __future__ import annotations

import hashlib
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.model import (
    Access,
    Cause,
    Failed,
    Failure,
    HttpError,
    NotModified,
    Outcome,
    Page,
    Redirect,
    Refused,
    RobotsState,
    StillFresh,
)
from comity.robots import Policy, consult, follow, must_ask, parked, speaks

NOW = 1_800_000_000.0
DAY = 86_400.0
POLICY = Policy()
BODY = b"User-agent: *\nDisallow: /private/\n"


def page(body: bytes = BODY, cache: str | None = None, status: int = 200, truncated: str | None = None) -> Page:
    return Page(status, (("cache-control", cache),) if cache else (), body, truncated)


def ask(
    outcome: Outcome, previous: RobotsState | None = None, now: float = NOW, policy: Policy = POLICY, hops: int = 0
) -> RobotsState:
    return consult(outcome, hops, previous, now, policy)[0]


DOWN = HttpError(503, ())
GOOD = ask(page())

UNREACHABLE: list[tuple[Outcome, int | None, Failure]] = [
    (HttpError(429, ()), 429, Failure.HTTP_429),
    (HttpError(500, ()), 500, Failure.HTTP_500),
    (HttpError(503, ()), 503, Failure.HTTP_503),
    (HttpError(599, ()), 599, Failure.HTTP_OTHER),
    (HttpError(101, ()), 101, Failure.HTTP_1XX),
    (HttpError(600, ()), 600, Failure.HTTP_OTHER),
    (HttpError(999, ()), 999, Failure.HTTP_999),
    (NotModified(()), 304, Failure.PROTOCOL),
    (Redirect(301, ()), 301, Failure.REDIRECT_WITHOUT_LOCATION),
    (Redirect(302, (), "tel:1", None), 302, Failure.REDIRECT_BAD_LOCATION),
    (Redirect(307, (), "/x", "https://a.example/x"), 307, Failure.TOO_MANY_REDIRECTS),
    (Failed(Failure.DNS), None, Failure.DNS),
    (Failed(Failure.TLS), None, Failure.TLS),
    (Failed(Failure.TIMEOUT_TOTAL), None, Failure.TIMEOUT_TOTAL),
    (Failed(Failure.CUT_OFF), None, Failure.CUT_OFF),
    (Failed(Failure.DECODE), None, Failure.DECODE),
    (Failed(Failure.FORBIDDEN_ADDRESS), None, Failure.FORBIDDEN_ADDRESS),
    (Refused(Cause.FORBIDDEN_ADDRESS, "address"), None, Failure.FORBIDDEN_ADDRESS),
    (Refused(Cause.SCOPE, "?"), None, Failure.SELF),
    (StillFresh(NOW), None, Failure.SELF),
]


@pytest.mark.parametrize(
    ("outcome", "status", "failure"),
    UNREACHABLE,
    ids=[f"ROB-26 {type(o).__name__} {f.value}" for o, _, f in UNREACHABLE],
)
def test_unreachable(outcome: Outcome, status: int | None, failure: Failure) -> None:
    state, body = consult(outcome, 0, None, NOW, POLICY)
    assert body is None
    assert state == RobotsState(
        access=Access.UNREACHABLE,
        http_status=status,
        failure=failure,
        asked_at=NOW,
        expires_at=NOW + 60,
        unreachable_since_at=NOW,
        attempts=1,
    )
    assert speaks(state, NOW, POLICY) is Access.UNREACHABLE


@pytest.mark.parametrize("status", [400, 402, 404, 410, 418, 451, 499])
def test_rob_25_other_client_errors_mean_there_is_none(status: int) -> None:
    state, body = consult(HttpError(status, ()), 0, None, NOW, POLICY)
    assert (state.access, state.expires_at, body) == (Access.ALLOW, NOW + DAY, None)
    assert speaks(state, NOW, POLICY) is Access.ALLOW
    strict = ask(HttpError(status, ()), policy=Policy(client_error="disallow"))
    assert (strict.access, strict.expires_at) == (Access.DISALLOW, NOW + DAY)


@pytest.mark.parametrize("status", [401, 403])
def test_d2_401_and_403_are_a_no_unless_policy_reads_the_rfc(status: int) -> None:
    state = ask(HttpError(status, ()))
    assert (state.access, state.http_status, state.expires_at) == (Access.DISALLOW, status, NOW + DAY)
    assert ask(HttpError(status, ()), policy=Policy(forbidden="allow")).access is Access.ALLOW
    assert ask(HttpError(status, ()), policy=Policy(client_error="disallow", forbidden="allow")).access is Access.ALLOW


def test_d3_429_is_never_a_client_error() -> None:
    assert ask(HttpError(429, ()), policy=Policy(client_error="allow", forbidden="allow")).access is Access.UNREACHABLE


def test_rob_23_a_file_that_was_read() -> None:
    state, body = consult(page(), 0, None, NOW, POLICY)
    assert body == BODY
    assert state == RobotsState(
        access=Access.RULES,
        digest=hashlib.sha256(BODY).hexdigest(),
        http_status=200,
        fetched_at=NOW,
        asked_at=NOW,
        expires_at=NOW + DAY,
    )


@pytest.mark.parametrize("status", [200, 201, 203, 204, 206, 299])
def test_rob_23_every_2xx_is_a_file_even_an_empty_one(status: int) -> None:
    state, body = consult(page(b"", status=status), 0, None, NOW, POLICY)
    assert (state.access, body) == (Access.RULES, b"")


@pytest.mark.parametrize(
    ("cache", "kept_s"),
    [
        (None, DAY),
        ("max-age=7200", 7200.0),
        ("max-age=0", 300.0),
        ("no-store", 300.0),
        ("no-cache", 300.0),
        ("max-age=9999999", DAY),
        ("nonsense", DAY),
    ],
)
def test_rob_28_cache_control_within_five_minutes_and_a_day(cache: str | None, kept_s: float) -> None:
    state = ask(page(cache=cache))
    assert state.expires_at == NOW + kept_s
    assert not must_ask(state, NOW + kept_s - 1)
    assert speaks(state, NOW + kept_s - 1, POLICY) is Access.RULES
    assert must_ask(state, NOW + kept_s)
    assert speaks(state, NOW + kept_s, POLICY) is Access.UNREACHABLE


def test_nothing_is_allowed_before_the_file_was_asked_for() -> None:
    assert must_ask(None, NOW)
    assert speaks(None, NOW, POLICY) is Access.UNREACHABLE


def test_rob_30_b027_at_most_max_bytes_and_no_cut_line() -> None:
    body = b"User-agent: *\n" + b"Disallow: /x\n" * 50_000
    state, kept = consult(page(body), 0, None, NOW, POLICY)
    assert kept is not None
    assert kept == body[: len(kept)]
    assert kept.endswith(b"\n")
    assert POLICY.max_bytes - 13 <= len(kept) <= POLICY.max_bytes
    assert state.digest == hashlib.sha256(kept).hexdigest()
    assert (
        consult(page(b"User-agent: *\nDisallow: /pri", truncated="length"), 0, None, NOW, POLICY)[1]
        == b"User-agent: *\n"
    )


@pytest.mark.parametrize("hops", range(6))
def test_rob_24_b025_five_redirects_are_followed(hops: int) -> None:
    redirect = Redirect(301, (), "/r", "https://b.example/r")
    assert follow(redirect, hops, POLICY) == ("https://b.example/r" if hops < 5 else None)
    assert ask(page(), hops=hops).access is Access.RULES
    assert ask(HttpError(404, ()), hops=hops).access is Access.ALLOW
    assert ask(DOWN, hops=hops).access is Access.UNREACHABLE


def test_d4_what_lies_beyond_is_unreachable_not_allowed() -> None:
    assert ask(Redirect(301, (), "/r", "https://b.example/r"), hops=5).access is Access.UNREACHABLE
    assert ask(page(), hops=6).failure is Failure.TOO_MANY_REDIRECTS
    assert follow(page(), 0, POLICY) is None
    assert follow(Redirect(301, ()), 0, POLICY) is None


def test_growing_pauses_from_a_minute_to_an_hour() -> None:
    state: RobotsState | None = None
    pauses = []
    now = NOW
    for _ in range(9):
        state = ask(DOWN, state, now)
        pauses.append(state.expires_at - now)
        now = state.expires_at
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert state is not None
    assert (state.attempts, state.unreachable_since_at) == (9, NOW)
    again = ask(DOWN, ask(page(), state, now), now + 1)
    assert (again.attempts, again.unreachable_since_at, again.expires_at) == (1, now + 1, now + 61)


def test_rob_29_the_last_good_copy_speaks_for_thirty_days() -> None:
    state = ask(DOWN, GOOD, NOW + DAY)
    assert (state.digest, state.fetched_at, state.access) == (GOOD.digest, NOW, Access.UNREACHABLE)
    assert speaks(state, NOW + DAY, POLICY) is Access.RULES
    state = ask(DOWN, state, NOW + 30 * DAY - 1)
    assert speaks(state, NOW + 30 * DAY, POLICY) is Access.RULES
    assert speaks(state, NOW + 30 * DAY + 1, POLICY) is Access.UNREACHABLE


def test_after_thirty_days_it_is_asked_for_daily_shown_and_never_opened() -> None:
    state, now = GOOD, NOW
    for _ in range(2000):
        now = max(state.expires_at, now)
        state = ask(DOWN, state, now)
        if now > NOW + 400 * DAY:
            break
        if now - NOW > 30 * DAY:
            assert speaks(state, now, POLICY) is Access.UNREACHABLE
    assert parked(state, now, POLICY)
    assert state.expires_at == now + DAY
    assert not parked(GOOD, NOW, POLICY)
    assert not parked(None, NOW, POLICY)


@pytest.mark.parametrize("status", [404, 403])
def test_a_copy_that_was_withdrawn_does_not_come_back(status: int) -> None:
    state = ask(DOWN, ask(HttpError(status, ()), GOOD, NOW + 1), NOW + 2)
    assert speaks(state, NOW + 2, POLICY) is Access.UNREACHABLE
    assert (state.digest, state.previous_digest) == (None, GOOD.digest)


def test_the_copy_before_is_remembered_when_it_differed() -> None:
    same = ask(page(), GOOD, NOW + 1)
    other = ask(page(b"x"), same, NOW + 2)
    assert (same.previous_digest, other.previous_digest) == (None, GOOD.digest)
    assert ask(page(b"x"), ask(DOWN, other, NOW + 3), NOW + 4).previous_digest == GOOD.digest
    gone = ask(HttpError(404, ()), GOOD, NOW + 1)
    assert ask(page(b"x"), gone, NOW + 2).previous_digest == GOOD.digest
    assert ask(page(), gone, NOW + 2).previous_digest is None


def test_while_unreachable_the_rules_digest_is_the_copys() -> None:
    known = RobotsState(access=Access.RULES, digest="d", rules_digest="r", fetched_at=NOW, expires_at=NOW + 1)
    assert ask(DOWN, known, NOW + 1).rules_digest == "r"
    assert ask(page(), known, NOW + 1).rules_digest is None


@pytest.mark.parametrize(
    "bad",
    [
        {"max_age_s": DAY + 1},
        {"min_age_s": 10.0, "max_age_s": 5.0},
        {"max_redirects": 4},
        {"max_bytes": 511_999},
        {"retry_first_s": 0.0},
        {"retry_first_s": 60.0, "retry_max_s": 59.0},
        {"copy_limit_s": -1.0},
        {"forbidden": "maybe"},
        {"client_error": "maybe"},
    ],
    ids=str,
)
def test_policy_keeps_within_the_rfc(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="robots"):
        Policy(**bad)


OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(page, st.binary(max_size=20)),
    st.integers(100, 1000).filter(lambda s: not 200 <= s < 400).map(lambda s: HttpError(s, ())),
    st.sampled_from(Failure).map(Failed),
    st.just(NotModified(())),
    st.sampled_from([Redirect(302, ()), Redirect(302, (), "x", None), Redirect(302, (), "x", "https://a.example/x")]),
    st.sampled_from(Cause).map(lambda cause: Refused(cause, "rule")),
    st.just(StillFresh(NOW)),
)


def test_the_strategy_above_knows_every_outcome() -> None:
    assert set(get_args(Outcome)) == {Page, HttpError, Failed, NotModified, Redirect, Refused, StillFresh}


@given(st.lists(st.tuples(OUTCOMES, st.integers(0, 7), st.floats(0, 10 * DAY)), max_size=12))
@settings(deadline=None)
def test_rob_26_only_a_file_or_its_plain_absence_ever_opens_a_site(steps: list[tuple[Outcome, int, float]]) -> None:
    state: RobotsState | None = None
    copy: bytes | None = None
    copied_at = now = NOW
    for outcome, hops, later in steps:
        now += later
        state, body = consult(outcome, hops, state, now, POLICY)
        access = speaks(state, now, POLICY)
        assert 60 <= state.expires_at - now <= DAY
        assert state.asked_at == now
        answered = hops <= 5 and isinstance(outcome, Page)
        absent = hops <= 5 and isinstance(outcome, HttpError) and 400 <= outcome.status < 500 and outcome.status != 429
        if answered:
            assert body is not None
            assert access is Access.RULES
            copy, copied_at = body, now
        elif absent:
            assert isinstance(outcome, HttpError)
            assert access is (Access.DISALLOW if outcome.status in (401, 403) else Access.ALLOW)
            copy = None
        else:
            usable = copy is not None and now - copied_at <= 30 * DAY
            assert access is (Access.RULES if usable else Access.UNREACHABLE)
        if access is Access.RULES:
            assert copy is not None
            assert state.digest == hashlib.sha256(copy).hexdigest()
