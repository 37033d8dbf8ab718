"""How long until the next visit, and by which rule.

    recrawl.fetched, recrawl.redirection   a fixed interval each
    recrawl.error.CAUSE                    by cause; each further one in a row waits longer, up to a limit
    never.WORD                             no interval: not again by itself
    recrawl.fresh                          when the last answer goes stale by its own word
    retry.N                                after the N-th error in a row
    discovered                             at once

Invariant: every date comes with the name of the rule that set it (stored in `Entry.next_rule`, so that "when, and why
then" is answered years later), no date lies before `now`, and "never" is `None`, absorbing, and never a number: an
interval of −1 that is added to a clock is a hot loop (P14, P15).

Why ERROR is looked at again: a robots.txt that failed for an hour, a proxy of ours that died, a site that moved would
otherwise take URLs away for ever (P03). Why more and more rarely: most of what is dead stays dead. Two causes stay
shut: `robots`, which is judged again when the rules change, and `malformed`, which no waiting mends.

Rules by metadata and adaptive intervals will come behind the same function, which is why it is given the whole entry.
Refuses to know outcomes and profiles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from comity.model import Cause, Entry, Status

DAY_S = 86_400.0

ERROR_S: Mapping[Cause, float | None] = MappingProxyType(
    {
        Cause.ROBOTS: None,
        Cause.MALFORMED: None,
        Cause.GONE: 30 * DAY_S,
        Cause.SCOPE: 30 * DAY_S,  # judged by our own options, without a request
        Cause.BUDGET: 30 * DAY_S,
    }
)
"""First looks at an ERROR again, by cause; a cause that is not here waits `Schedule.error_other_s`."""


class Next(NamedTuple):
    """When, and by which rule. None: never again by itself."""

    due_at: float | None
    rule: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """The intervals, in seconds; None is never. Raises ValueError for values that mean nothing."""

    fetched_s: float | None = DAY_S
    redirection_s: float | None = DAY_S
    error_s: Mapping[Cause, float | None] = field(default_factory=lambda: ERROR_S)
    error_other_s: float | None = 7 * DAY_S
    error_growth: float = 2.0  # each ERROR of one cause in a row waits so many times longer
    error_max_s: float = 90 * DAY_S
    fresh_min_s: float = 60.0  # a page that is still fresh is not looked at again sooner…
    fresh_max_s: float = 7 * DAY_S  # …nor later: what claims to be good for a year is still seen to change (FRS-2)

    def __post_init__(self) -> None:
        of_causes = {f"error_s.{cause.word}": wait_s for cause, wait_s in self.error_s.items()}
        fixed = {"fetched_s": self.fetched_s, "redirection_s": self.redirection_s, "error_other_s": self.error_other_s}
        bounds = {"error_max_s": self.error_max_s, "fresh_min_s": self.fresh_min_s, "fresh_max_s": self.fresh_max_s}
        for name, value in (fixed | of_causes | bounds).items():
            if value is not None and not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"recrawl.{name} is a number of seconds of 0 or more, or never, not {value!r}")
        if not 1 <= self.error_growth <= 100:
            raise ValueError(f"recrawl.error_growth is a number from 1 to 100, not {self.error_growth!r}")


COMITY = Schedule()

STORMCRAWLER = Schedule(error_s=MappingProxyType({}), error_other_s=None, error_growth=1.0)
"""fetchInterval.default of 1440 minutes, fetchInterval.error of −1."""

SCHEDULES: Mapping[str, Schedule] = MappingProxyType({"comity": COMITY, "stormcrawler": STORMCRAWLER})


def next_visit(entry: Entry, schedule: Schedule, *, now: float) -> Next:
    """The next visit of an entry that just became what it is, this visit being the last line of its history.

    FETCH_ERROR is not asked for here, as its wait depends on the profile: see `retry`.
    """
    if entry.status is Status.FETCHED:
        return _after(schedule.fetched_s, "fetched", now)
    if entry.status is Status.REDIRECTION:
        return _after(schedule.redirection_s, "redirection", now)
    if entry.status is Status.ERROR:
        return _of_error(entry, schedule, now)
    return Next(now, "discovered")


def _of_error(entry: Entry, schedule: Schedule, now: float) -> Next:
    cause = entry.cause
    word = cause.word if cause is not None else "unknown"
    first_s = schedule.error_other_s if cause is None else schedule.error_s.get(cause, schedule.error_other_s)
    if first_s is None:
        return Next(None, f"never.{word}")
    before = 0
    for past in reversed(entry.history[:-1]):
        if past.status is not Status.ERROR or past.cause is not cause:
            break
        before += 1
    longest_s = max(first_s, schedule.error_max_s)
    return Next(now + min(first_s * schedule.error_growth**before, longest_s), f"recrawl.error.{word}")


def _after(wait_s: float | None, word: str, now: float) -> Next:
    return Next(None, f"never.{word}") if wait_s is None else Next(now + wait_s, f"recrawl.{word}")


def still_fresh(until_at: float, schedule: Schedule, *, now: float) -> Next:
    """When an answer that is still fresh goes stale: not within `fresh_min_s`, not after `fresh_max_s`."""
    return Next(min(max(until_at, now + schedule.fresh_min_s), now + schedule.fresh_max_s), "recrawl.fresh")


MOST_STEPS = 64
"""Beyond so many errors in a row the wait grows no more, whatever the limit: a bound for the arithmetic."""


def retry_wait_s(n: int, *, base_s: float, factor: float, most_s: float, jitter: float | None) -> float:
    """Seconds to wait after the n-th error in a row (n from 1): base × factor^(n−1), at most `most_s`, times a number
    between a half and one drawn by `jitter` in [0, 1); None: without that."""
    steps = min(max(n, 1), MOST_STEPS) - 1
    try:
        wait_s = min(base_s * factor**steps, most_s)
    except OverflowError:
        wait_s = most_s
    return wait_s if jitter is None else wait_s * (0.5 + 0.5 * jitter)


def retry(n: int, *, now: float, base_s: float, factor: float, most_s: float, jitter: float | None) -> Next:
    """The visit after the n-th error in a row."""
    return Next(now + retry_wait_s(n, base_s=base_s, factor=factor, most_s=most_s, jitter=jitter), f"retry.{max(n, 1)}")
