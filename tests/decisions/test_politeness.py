"""When a host may next be asked: docs/architecture.md "Politeness", POL-1…6, THR-1, THR-2."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from comity.model import (
    Cause,
    Failed,
    Failure,
    HostState,
    HttpError,
    NotModified,
    Outcome,
    Page,
    Redirect,
    Refused,
    StillFresh,
)
from comity.politeness import (
    Answer,
    Policy,
    answer,
    delay_s,
    finished,
    named,
    next_at,
    rested,
    started,
    too_long,
)

NOW = 1_800_000_000.0
DAY = 86_400.0
POLICY = Policy()
FRESH = HostState()


def after(
    state: HostState = FRESH,
    kind: Answer = Answer.GOOD,
    policy: Policy = POLICY,
    *,
    at: float = NOW,
    heard: float | None = 0.25,
    took: float = 0.5,
    retry_after_s: float | None = None,
    jitter: float = 0.0,
) -> HostState:
    """The state after one request: started at `at`, heard after `heard`, finished after `took` seconds."""
    return finished(
        started(state, policy, at),
        policy,
        answer=kind,
        heard_at=None if heard is None else at + heard,
        finished_at=at + took,
        service_s=took,
        retry_after_s=retry_after_s,
        jitter=jitter,
    )


def many(kind: Answer, times: int, state: HostState = FRESH, policy: Policy = POLICY, **more: Any) -> HostState:
    for _ in range(times):
        at = next_at(state, policy)
        state = after(state, kind, policy, at=max(at, NOW), **more)
    return state


# --- the formula -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "heard", "took", "expected"),
    [
        pytest.param(Policy(), 0.25, 0.5, 1.25, id="from the first byte of the answer"),
        pytest.param(Policy(), None, 0.5, 1.5, id="no answer: from its end"),
        pytest.param(Policy(), 0.25, 3.0, 6.0, id="a slow answer: rests as long as it worked"),
        pytest.param(Policy(response_factor=0.5), 0.25, 3.0, 4.5, id="by half"),
        pytest.param(Policy(response_factor=0), 0.25, 3.0, 3.0, id="not before its end"),
        pytest.param(Policy(delay_s=0), 0.25, 3.0, 3.0, id="delay 0: no rest either"),
        pytest.param(Policy(delay_s=0, min_delay_s=5), 0.25, 0.5, 5.25, id="min_delay_s"),
    ],
)
def test_pol_2_next_at(policy: Policy, heard: float | None, took: float, expected: float) -> None:
    state = after(policy=policy, heard=heard, took=took)
    assert next_at(state, policy) == NOW + expected
    assert state.in_flight == 0


@pytest.mark.parametrize(
    ("policy", "state", "expected"),
    [
        pytest.param(Policy(), HostState(), 1.0, id="none named"),
        pytest.param(Policy(), HostState(wanted_s=0.5), 0.5, id="P5 named, faster than ours: it is the site's word"),
        pytest.param(Policy(), HostState(wanted_s=10.0), 10.0, id="EXT-1 named"),
        pytest.param(Policy(), HostState(wanted_s=0.0), 1.0, id="0 is none named"),
        pytest.param(Policy(min_delay_s=2), HostState(wanted_s=0.5), 2.0, id="our own least"),
        pytest.param(Policy(), HostState(widened_s=4.0), 4.0, id="widened"),
        pytest.param(Policy(), HostState(widened_s=4.0, wanted_s=9.0), 9.0, id="widened below named"),
        pytest.param(Policy(host_backoff=False), HostState(widened_s=4.0), 1.0, id="back-off off"),
        pytest.param(Policy(), HostState(wanted_s=1e9), 1e9, id="D7 B020 never cut"),
    ],
)
def test_delay(policy: Policy, state: HostState, expected: float) -> None:
    assert delay_s(state, policy) == expected


def test_a_hold_wins_over_the_clock() -> None:
    assert next_at(HostState(next_at=5.0, not_before_at=9.0), POLICY) == 9.0
    assert next_at(HostState(next_at=9.0, not_before_at=5.0), POLICY) == 9.0


def test_d7_a_long_crawl_delay_is_obeyed_or_refused() -> None:
    state = HostState(wanted_s=DAY + 1)
    assert not too_long(state, POLICY)
    assert too_long(state, Policy(on_long_delay="refuse"))
    assert not too_long(HostState(wanted_s=DAY), Policy(on_long_delay="refuse"))
    assert not too_long(HostState(), Policy(on_long_delay="refuse", crawl_delay_limit_s=0.5))
    assert too_long(HostState(wanted_s=31.0), Policy(on_long_delay="refuse", crawl_delay_limit_s=30))


def test_a_named_delay_binds_the_very_next_request() -> None:
    asked = started(HostState(), POLICY, NOW)
    before = finished(
        named(asked, POLICY, 10.0),
        POLICY,
        answer=Answer.GOOD,
        heard_at=NOW + 1,
        finished_at=NOW + 2,
        service_s=1,
        jitter=0,
    )
    assert next_at(before, POLICY) == NOW + 11
    late = named(after(), POLICY, 10.0)
    assert (late.wanted_s, next_at(late, POLICY)) == (10.0, NOW + 10.25)


def test_a_shorter_delay_named_in_time_counts_afresh() -> None:
    asked = started(HostState(wanted_s=1e7), POLICY, NOW)
    state = finished(
        named(asked, POLICY, None), POLICY, answer=Answer.GOOD, heard_at=NOW, finished_at=NOW, service_s=0, jitter=0
    )
    assert next_at(state, POLICY) == NOW + 1
    assert next_at(named(after(HostState(wanted_s=10.0)), POLICY, 2.0), POLICY) == NOW + 10.25


def test_pol_3_a_host_that_comes_back_rests_one_delay() -> None:
    state = rested(HostState(in_flight=1, wanted_s=3.0, next_at=NOW + 1), POLICY, NOW)
    assert (state.in_flight, next_at(state, POLICY)) == (0, NOW + 3)
    assert next_at(rested(HostState(next_at=NOW + 9), POLICY, NOW), POLICY) == NOW + 9


def test_while_a_request_is_out_the_next_is_a_delay_away_and_counted() -> None:
    state = started(HostState(), POLICY, NOW)
    assert (state.in_flight, next_at(state, POLICY)) == (1, NOW + 1)


# --- several in flight -----------------------------------------------------------------------------------------------


def test_pol_1_starts_stay_spaced_with_several_in_flight() -> None:
    policy = Policy(delay_s=0.1, in_flight=4, response_factor=0)
    state, starts = HostState(), []
    for _ in range(4):
        at = max(NOW, next_at(state, policy))
        starts.append(at)
        state = started(state, policy, at)
    assert state.in_flight == 4
    assert [round(b - a, 6) for a, b in itertools.pairwise(starts)] == [0.1] * 3
    more = {"answer": Answer.GOOD, "service_s": 0.5, "jitter": 0.0}
    state = finished(state, policy, heard_at=NOW + 0.49, finished_at=NOW + 0.5, **more)  # type: ignore[arg-type]
    assert next_at(state, policy) == pytest.approx(NOW + 0.5)  # the slot is free at once: A10's 20 pages in 2.6 s


def test_the_rest_after_a_slow_answer_is_shared_by_the_slots() -> None:
    policy = Policy(in_flight=2)
    state = started(started(HostState(), policy, NOW), policy, NOW + 1)
    state = finished(
        state, policy, answer=Answer.GOOD, heard_at=NOW + 1, finished_at=NOW + 4, service_s=4.0, jitter=0.0
    )
    assert (state.in_flight, next_at(state, policy)) == (1, NOW + 6)


def test_a_host_narrowed_to_one_in_flight_keeps_the_spacing_of_what_is_out() -> None:
    state = started(started(HostState(), Policy(in_flight=2), NOW), Policy(in_flight=2), NOW + 8)
    state = finished(state, POLICY, answer=Answer.GOOD, heard_at=NOW, finished_at=NOW, service_s=0, jitter=0)
    assert next_at(state, POLICY) == NOW + 9


# --- throttling ------------------------------------------------------------------------------------------------------


def test_thr_2_growing_holds_without_retry_after() -> None:
    state, pauses = HostState(), []
    for _ in range(13):
        at = max(NOW, next_at(state, POLICY))
        state = after(state, Answer.THROTTLED, at=at, took=0.5, jitter=0.999999)
        pauses.append(round(state.not_before_at - at - 0.5))
    assert pauses == [60, 120, 240, 480, 960, 1920, 3840, 7680, 15360, 30720, 61440, 86400, 86400]
    least = after(HostState(), Answer.THROTTLED, jitter=0.0)
    assert least.not_before_at == NOW + 0.5 + 30
    assert least.hold_reason == "429 or 503: pause 1 in a row, 30 s"


@pytest.mark.parametrize(
    ("retry_after_s", "hold_s", "reason"),
    [
        pytest.param(5.0, 5.0, "Retry-After: 5 s", id="THR-1"),
        pytest.param(7 * DAY, 7 * DAY, "Retry-After: 604800 s", id="THR-1 at the limit"),
        pytest.param(1e9, 7 * DAY, "Retry-After: 1000000000 s, cut to 604800 s", id="THR-1 the cap is shown"),
    ],
)
def test_thr_1_retry_after(retry_after_s: float, hold_s: float, reason: str) -> None:
    state = after(kind=Answer.THROTTLED, retry_after_s=retry_after_s)
    assert (state.not_before_at, state.hold_reason) == (NOW + 0.5 + hold_s, reason)


def test_thr_1_retry_after_counts_whatever_the_status_but_widens_only_when_throttled() -> None:
    state = after(kind=Answer.GOOD, retry_after_s=9.0)
    assert (state.not_before_at, state.widened_s, state.good) == (NOW + 9.5, 0.0, 1)


def test_retry_after_of_zero_holds_nothing_and_still_widens() -> None:
    state = after(kind=Answer.THROTTLED, retry_after_s=0.0)
    assert (state.not_before_at, state.hold_reason, state.widened_s) == (0.0, None, 2.0)


def test_holds_only_grow() -> None:
    held = after(kind=Answer.THROTTLED, retry_after_s=1000.0)
    again = after(held, Answer.THROTTLED, retry_after_s=5.0)
    assert (again.not_before_at, again.hold_reason) == (held.not_before_at, held.hold_reason)


def test_a_hold_that_is_over_loses_its_reason() -> None:
    held = after(kind=Answer.THROTTLED, retry_after_s=5.0)
    later = after(held, at=held.not_before_at)
    assert (later.hold_reason, later.not_before_at) == (None, held.not_before_at)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (HostState(), 2.0),
        (HostState(wanted_s=0.1), 1.0),
        (HostState(wanted_s=10.0), 20.0),
        (HostState(widened_s=2.0), 4.0),
        (HostState(widened_s=3000.0), 3600.0),
        (HostState(wanted_s=DAY), 3600.0),
    ],
)
def test_throttling_widens(before: HostState, expected: float) -> None:
    state = after(before, Answer.THROTTLED)
    assert state.widened_s == expected
    assert delay_s(state, POLICY) >= delay_s(before, POLICY)


def test_ten_good_answers_in_a_row_narrow_by_a_fifth_until_nothing_is_left() -> None:
    state = replace(HostState(), widened_s=2.0)
    widths = [round((state := many(Answer.GOOD, 10, state)).widened_s, 3) for _ in range(5)]
    assert widths == [1.6, 1.28, 1.024, 0.0, 0.0]
    assert many(Answer.GOOD, 9, HostState(widened_s=2.0)).widened_s == 2.0
    assert many(Answer.GOOD, 10, HostState(widened_s=2.0, wanted_s=1.7)).widened_s == 0.0


def test_a_row_is_broken_by_what_is_not_good_and_not_by_a_404() -> None:
    nine = many(Answer.GOOD, 9, HostState(widened_s=2.0))
    assert many(Answer.GOOD, 1, after(nine, Answer.OTHER)).widened_s == 1.6
    assert many(Answer.GOOD, 1, after(nine, Answer.OURS)).widened_s == 1.6
    assert many(Answer.GOOD, 9, after(nine, Answer.FAILED)).widened_s == 2.0
    assert after(nine, Answer.THROTTLED).good == 0


def test_a_row_of_throttles_ends_with_any_other_answer() -> None:
    assert after(many(Answer.THROTTLED, 3), Answer.GOOD).throttled == 0
    assert after(many(Answer.THROTTLED, 3), Answer.OTHER).throttled == 0
    assert after(many(Answer.THROTTLED, 3), Answer.OURS).throttled == 3


@pytest.mark.parametrize(
    ("kinds", "held"),
    [
        ("F", False),
        ("FF", False),
        ("FFF", True),
        ("FGFGF", True),
        ("FGGFGF", False),
        ("FGFGGF", False),
        ("FOFOF", True),
        ("FFGGGF", False),
        ("F-F-F", True),
        ("F---F", False),
    ],
)
def test_thr_2_one_broken_page_does_not_stop_a_host_three_of_five_do(kinds: str, held: bool) -> None:
    state = HostState()
    for kind in kinds:
        state = after(state, {"F": Answer.FAILED, "G": Answer.GOOD, "O": Answer.OTHER, "-": Answer.OURS}[kind])
    assert (state.not_before_at > 0, state.widened_s > 0) == (held, held)
    if held:
        assert state.hold_reason == "3 of the last 5 requests failed: pause 1 in a row, 30 s"


def test_back_off_off_means_nothing_holds_and_nothing_widens() -> None:
    policy = Policy(host_backoff=False)
    state = many(Answer.THROTTLED, 5, policy=policy, retry_after_s=99.0)
    assert replace(state, next_at=0.0) == HostState()
    assert next_at(HostState(not_before_at=NOW + 9), policy) == NOW + 9  # an operator's hold is not ours to lift


# --- what an answer says ---------------------------------------------------------------------------------------------

ANSWERS: list[tuple[Outcome, Answer]] = [
    (Page(200, (), b""), Answer.GOOD),
    (NotModified(()), Answer.GOOD),
    (Redirect(301, ()), Answer.GOOD),
    (HttpError(404, ()), Answer.OTHER),
    (HttpError(403, ()), Answer.OTHER),
    (HttpError(429, ()), Answer.THROTTLED),
    (HttpError(503, ()), Answer.THROTTLED),
    (HttpError(500, ()), Answer.FAILED),
    (HttpError(504, ()), Answer.FAILED),
    (HttpError(599, ()), Answer.FAILED),
    (HttpError(999, ()), Answer.OTHER),
    (HttpError(101, ()), Answer.OTHER),
    (Failed(Failure.TIMEOUT_READ), Answer.FAILED),
    (Failed(Failure.REFUSED), Answer.FAILED),
    (Failed(Failure.DNS), Answer.FAILED),
    (Failed(Failure.HTTP_503), Answer.THROTTLED),
    (Failed(Failure.HTTP_502), Answer.FAILED),
    (Failed(Failure.HTTP_404), Answer.OTHER),
    (Failed(Failure.HTTP_OTHER), Answer.OTHER),
    (Failed(Failure.BOMB), Answer.OTHER),
    (Failed(Failure.HEADERS_TOO_LARGE), Answer.OTHER),
    (Failed(Failure.PROXY), Answer.OURS),
    (Failed(Failure.SELF), Answer.OURS),
    (Failed(Failure.FORBIDDEN_ADDRESS), Answer.OURS),
    (Refused(Cause.SCOPE, "scope.host"), Answer.OURS),
    (StillFresh(NOW), Answer.OURS),
]


@pytest.mark.parametrize(("outcome", "expected"), ANSWERS, ids=[f"{o!r:.40}" for o, _ in ANSWERS])
def test_answers(outcome: Outcome, expected: Answer) -> None:
    assert answer(outcome) is expected


@given(st.sampled_from(Failure))
@settings(deadline=None)
def test_every_failure_says_something(failure: Failure) -> None:
    assert isinstance(answer(Failed(failure)), Answer)


@pytest.mark.parametrize(
    "bad",
    [
        {"delay_s": -1.0},
        {"delay_s": float("nan")},
        {"delay_s": float("inf")},
        {"min_delay_s": -0.1},
        {"response_factor": -1.0},
        {"in_flight": 0},
        {"in_flight": 5},
        {"on_long_delay": "skip"},
    ],
    ids=str,
)
def test_policy_refuses_what_means_nothing(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="politeness"):
        Policy(**bad)


# --- properties ------------------------------------------------------------------------------------------------------

POLICIES = st.builds(
    Policy,
    delay_s=st.sampled_from([0.0, 0.25, 1.0, 7.0]),
    min_delay_s=st.sampled_from([0.0, 2.0]),
    response_factor=st.sampled_from([0.0, 1.0, 3.0]),
    host_backoff=st.booleans(),
    in_flight=st.integers(1, 4),
)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["start", "finish", "name", "rest"]),
        st.sampled_from(Answer),
        st.floats(0, 5),  # time passing before
        st.floats(0, 3),  # service
        st.none() | st.floats(0, 1e7),  # Retry-After
        st.none() | st.floats(0, 50),  # a delay named
        st.floats(0, 1, exclude_max=True),  # jitter
        st.booleans(),  # heard
    ),
    max_size=40,
)


@given(POLICIES, EVENTS)
@settings(deadline=None, max_examples=400)
def test_whatever_happens_starts_keep_their_distance_and_holds_only_grow(policy: Policy, events: list[Any]) -> None:
    state, now = HostState(), NOW
    last: float | None = None
    out: list[float] = []
    for what, kind, passes, service, retry_after_s, wanted, jitter, heard in events:
        now += passes
        before = state
        if what == "start" and state.in_flight < policy.in_flight:
            now = max(now, next_at(state, policy))
            if last is not None:
                assert now - last >= delay_s(state, policy) - 1e-6
            state = started(state, policy, now)
            last = now
            out.append(now)
        elif what == "finish" and out:
            began = out.pop(0)
            now = max(now, began)
            state = finished(
                state,
                policy,
                answer=kind,
                heard_at=(began + now) / 2 if heard else None,
                finished_at=now,
                service_s=min(service, now - began),
                retry_after_s=retry_after_s,
                jitter=jitter,
            )
            if policy.in_flight == 1:
                assert next_at(state, policy) >= now
        elif what == "name":
            state = named(state, policy, wanted)
        elif what == "rest":
            state, out = rested(state, policy, now), []
            assert next_at(state, policy) >= now + delay_s(state, policy)
        assert state.not_before_at >= before.not_before_at
        assert 0.0 <= state.widened_s <= 3600.0
        assert 0 <= state.in_flight == len(out) <= policy.in_flight
        assert len(state.recent) <= 5


@given(POLICIES, st.integers(0, 60), st.none() | st.floats(0.01, 5000))
@settings(deadline=None, max_examples=100)
def test_recovery_ends(policy: Policy, throttles: int, wanted: float | None) -> None:
    state = many(Answer.THROTTLED, throttles, HostState(wanted_s=wanted), policy, retry_after_s=1.0)
    for _ in range(70):
        state = many(Answer.GOOD, 10, state, policy)
    assert delay_s(state, policy) == delay_s(HostState(wanted_s=wanted), policy)
    assert state.widened_s == 0.0
