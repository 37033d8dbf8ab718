"""When a host may next be asked.

    next_at = max(heard_at + delay, finished_at + response_factor × service_s, not_before_at)
    delay   = max(min_delay_s, wanted, widened)

Invariant: whatever a host answers, two requests started no earlier than `next_at` allows are at least `delay` apart,
and a hold is never shortened. Everything counts alike: pages, robots.txt, redirect hops, retries.

`heard_at` is when this process saw the first byte of the answer, or the end of a request that had none: the first
instant at which the server certainly had the request. Counting from our own start lets the server see shorter gaps
(measured on loopback: 63 of 12,000 early; from the first byte none, and the slots still 0.999 full). After a slow
answer the host rests for as long as it worked (`response_factor`), so that our share of its time stays bounded.

A host that answers 429 or 503 is asked more slowly (`widened`) and not at all for a while (a hold, `not_before_at`).
Other server errors, time-outs and connections not made say the same only when three of the last five requests failed:
one broken page must not stop a host. Ten good answers in a row narrow the spacing again by a fifth.

With more than one request in flight (one's own sites, or by consent) starts are still spaced, by our own start: an
answer to an earlier request says nothing about the latest one. The rest after a slow answer is shared among the slots.

Refuses to know clocks, chance (`jitter` is an argument), requests and stores: it turns one `HostState` into the next.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Literal, assert_never

from msgspec.structs import replace

from comity.model import (
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

DAY_S = 86_400.0
WIDENED_LEAST_S = 1.0
WIDENED_MOST_S = 3600.0
WIDENED_NOTHING_S = 0.001  # where no delay is wanted, recovery would never end
HOLD_FIRST_S = 60.0
HOLD_MOST_S = DAY_S
GOOD_IN_A_ROW = 10
NARROWING = 0.8
RECENT = 5
RECENT_FAILED = 3


@dataclass(frozen=True, slots=True)
class Policy:
    """How politely hosts are asked. Durations in seconds. Raises ValueError for values that mean nothing."""

    delay_s: float = 1.0  # between two requests to a host whose robots.txt names no delay
    min_delay_s: float = 0.0  # never faster than this, whatever robots.txt says
    response_factor: float = 1.0  # rest after an answer, in units of the time it took; 0 when delay_s is 0
    crawl_delay_limit_s: float = DAY_S  # a named delay above this is shown, or refused
    on_long_delay: Literal["obey", "refuse"] = "obey"
    retry_after_limit_s: float = 7 * DAY_S
    host_backoff: bool = True  # False: no answer holds or widens, Retry-After neither
    in_flight: int = 1  # requests at once; more only for one's own sites or by consent

    def __post_init__(self) -> None:
        for name in ("delay_s", "min_delay_s", "response_factor", "crawl_delay_limit_s", "retry_after_limit_s"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"politeness.{name} is a number of 0 or more, not {value!r}")
        if self.on_long_delay not in ("obey", "refuse"):
            raise ValueError('politeness.on_long_delay is "obey" or "refuse"')
        if not 1 <= self.in_flight <= 4:
            raise ValueError(f"politeness.in_flight is 1 to 4, not {self.in_flight!r}")


class Answer(enum.Enum):
    """What an outcome says about the host, and nothing about the page."""

    GOOD = "good"  # it answered as it should: 2xx, 3xx
    THROTTLED = "throttled"  # 429, 503: it says slow down
    FAILED = "failed"  # other 5xx, time-outs, no connection, no name: it may be in trouble
    OTHER = "other"  # the page's affair: 404, a body we cannot read
    OURS = "ours"  # it was never asked, or the fault is ours or a proxy's


_OF_FAILURE = {
    **dict.fromkeys(
        (
            Failure.DNS,
            Failure.DNS_TEMPORARY,
            Failure.REFUSED,
            Failure.UNREACHABLE,
            Failure.TLS,
            Failure.RESET,
            Failure.TIMEOUT_DNS,
            Failure.TIMEOUT_CONNECT,
            Failure.TIMEOUT_READ,
            Failure.TIMEOUT_TOTAL,
            Failure.PROTOCOL,
            Failure.CUT_OFF,
        ),
        Answer.FAILED,
    ),
    **dict.fromkeys((Failure.SELF, Failure.PROXY, Failure.FORBIDDEN_ADDRESS, Failure.FORBIDDEN_PORT), Answer.OURS),
}


def answer(outcome: Outcome) -> Answer:
    """What the host told us. Total. A failure named after a status (`http_503`) counts as that status."""
    match outcome:
        case Page() | NotModified() | Redirect():
            return Answer.GOOD
        case HttpError(status=status):
            return _of_status(status)
        case Failed(failure=failure):
            word = failure.value
            if word.startswith("http_") and word[5:].isdigit():
                return _of_status(int(word[5:]))
            return _OF_FAILURE.get(failure, Answer.OTHER)
        case Refused() | StillFresh():
            return Answer.OURS
        case _:
            assert_never(outcome)


def delay_s(state: HostState, policy: Policy) -> float:
    """The least distance between two requests now. A delay of 0 named by robots.txt is none named."""
    widened = state.widened_s if policy.host_backoff else 0.0
    return max(policy.min_delay_s, state.wanted_s or policy.delay_s, widened)


def next_at(state: HostState, policy: Policy) -> float:
    """The first instant at which a request may start. Check again after every sleep, and after any other wait."""
    return max(state.next_at, state.not_before_at)


def too_long(state: HostState, policy: Policy) -> bool:
    """Does robots.txt name a delay that policy refuses to wait for? Its pages are then refused, not asked faster."""
    return policy.on_long_delay == "refuse" and (state.wanted_s or 0.0) > policy.crawl_delay_limit_s


def named(state: HostState, policy: Policy, wanted_s: float | None) -> HostState:
    """robots.txt was read and names this delay (`Rules.wanted_s`). A longer one binds the very next request.

    Best called before `finished` of the request that brought the file: that counts afresh with the new delay. Called
    later, the next request still waits out a shorter delay's predecessor once.
    """
    after = replace(state, wanted_s=wanted_s)
    longer = delay_s(after, policy) - delay_s(state, policy)
    return replace(after, next_at=state.next_at + longer) if longer > 0 else after


def started(state: HostState, policy: Policy, at: float) -> HostState:
    """A request starts at `at`."""
    return replace(state, in_flight=state.in_flight + 1, next_at=max(state.next_at, at + delay_s(state, policy)))


def rested(state: HostState, policy: Policy, at: float) -> HostState:
    """A host that comes back after a crash or a lost lease: assume that it was asked just before `at`, when the lease
    ended. Nothing of ours is in flight any more."""
    return replace(state, in_flight=0, next_at=max(state.next_at, at + delay_s(state, policy)))


def finished(
    state: HostState,
    policy: Policy,
    *,
    answer: Answer,
    heard_at: float | None,
    finished_at: float,
    service_s: float,
    retry_after_s: float | None = None,
    jitter: float,
) -> HostState:
    """A request ended. `heard_at`: first byte of the answer, None if there was none. `service_s`: the server's time,
    our own queueing left out. `retry_after_s`: the answer's Retry-After in seconds from now, None if absent or
    unreadable. `jitter`: a number in [0, 1)."""
    before = delay_s(state, policy)
    if policy.host_backoff:
        state = _learned(state, policy, answer, finished_at, retry_after_s, jitter)
    delay = delay_s(state, policy)
    remaining = max(state.in_flight - 1, 0)
    factor = policy.response_factor / policy.in_flight if policy.delay_s else 0.0
    at = finished_at + factor * service_s
    if remaining == 0:
        at = max(at, (finished_at if heard_at is None else heard_at) + delay)
    if remaining or policy.in_flight > 1:
        # spaced from the latest start, which may not be this request's, by what we have just learned
        at = max(at, state.next_at + max(delay - before, 0.0))
    return replace(state, in_flight=remaining, next_at=at)


def _learned(
    state: HostState, policy: Policy, answer: Answer, at: float, retry_after_s: float | None, jitter: float
) -> HostState:
    """What the host taught us: spacing, holds, and the memory that both need."""
    if answer is Answer.OURS:
        return state
    failed = answer is Answer.THROTTLED or answer is Answer.FAILED
    recent = (*state.recent, failed)[-RECENT:]
    pressed = answer is Answer.THROTTLED or (answer is Answer.FAILED and sum(recent) >= RECENT_FAILED)
    if pressed:
        delay = delay_s(state, policy)
        state = replace(
            state,
            recent=recent,
            good=0,
            throttled=state.throttled + 1,
            widened_s=min(max(2 * delay, WIDENED_LEAST_S), WIDENED_MOST_S),
        )
    elif answer is Answer.FAILED:
        state = replace(state, recent=recent, good=0)
    elif answer is Answer.GOOD:
        state = _recovered(replace(state, recent=recent, throttled=0, good=state.good + 1), policy)
    else:
        state = replace(state, recent=recent, throttled=0)
    if pressed or retry_after_s:
        return _held(state, policy, answer, at, retry_after_s, jitter)
    if state.hold_reason is not None and state.not_before_at <= at:
        return replace(state, hold_reason=None)
    return state


def _recovered(state: HostState, policy: Policy) -> HostState:
    """Ten good answers in a row narrow a widened spacing by a fifth, until robots.txt or policy is the wider again."""
    if not state.widened_s or state.good % GOOD_IN_A_ROW:
        return state
    narrowed = state.widened_s * NARROWING
    enough = max(state.wanted_s or policy.delay_s, WIDENED_NOTHING_S)
    return replace(state, widened_s=narrowed if narrowed > enough else 0.0)


def _held(
    state: HostState, policy: Policy, answer: Answer, at: float, retry_after_s: float | None, jitter: float
) -> HostState:
    """Nobody asks this host for a while: as long as it says, or growing pauses of our own. Holds only grow."""
    if retry_after_s is not None:
        pause_s = min(retry_after_s, policy.retry_after_limit_s)
        reason = f"Retry-After: {retry_after_s:.0f} s"
        if pause_s < retry_after_s:
            reason += f", cut to {pause_s:.0f} s"
    else:
        pause_s = min(HOLD_FIRST_S * 2.0 ** min(state.throttled - 1, 30) * (0.5 + 0.5 * jitter), HOLD_MOST_S)
        why = (
            "429 or 503" if answer is Answer.THROTTLED else f"{sum(state.recent)} of the last {RECENT} requests failed"
        )
        reason = f"{why}: pause {state.throttled} in a row, {pause_s:.0f} s"
    if at + pause_s <= max(state.not_before_at, at):
        return state
    return replace(state, not_before_at=at + pause_s, hold_reason=reason)


def _of_status(status: int) -> Answer:
    if status in (429, 503):
        return Answer.THROTTLED
    return Answer.FAILED if 500 <= status < 600 else Answer.OTHER
