"""The life of a URL: what an entry becomes by what one attempt gave.

An outcome first becomes an *event* (`comity.events`), which is where a profile has its say. Then one table,
`TRANSITIONS`, read from the top, says for (status before, event, condition) what status and cause become, which rule
sets the next visit, what happens to the count of errors, and whether the document must be deleted from every output.
`advance` looks the row up and fills in the entry; it decides nothing that the table does not say.

Invariants, whatever happens in whatever order:

* every event has a row from every status, and every state has a way out: a date, or a rule named ``never.…``;
* what describes the *attempt* (cause, failure, detail, HTTP status, redirect target, freshness, the digest of the rules
  that refused) is set anew by every attempt, so that no word of an older one misleads (P07);
* what describes the *body last seen* (validators, digest, size) is replaced by a page, and kept by a 304 and by any
  attempt that showed no body, for the outputs still hold that one; it goes with the document, when the entry becomes
  ERROR or REDIRECTION: else a later 304 would stand for something deleted;
* only what tells about the page counts: the host's answers and failures of our own leave status, count and `visited_at`
  alone, and a refusal leaves `visited_at` alone, as nobody was asked;
* a success ends the row of errors; the history keeps the last eight attempts.

An unreachable robots.txt never comes here: the host waits, and no entry changes. Neither does a failed *store*, which
repeats the visit. Refuses to know clocks and chance (arguments), hosts, scope, and how any of it is stored.
"""

from __future__ import annotations

import enum
from typing import Literal, NamedTuple

from msgspec.structs import replace

from comity import body, discovery, metadata, recrawl
from comity.events import Event, event_of
from comity.failures import failure_class, failure_of
from comity.model import (
    Cause,
    Deletion,
    Entry,
    Failed,
    Failure,
    Found,
    NotModified,
    Outcome,
    Page,
    PastVisit,
    Redirect,
    Refused,
    Status,
    StillFresh,
)
from comity.profiles import COMITY, PROFILES, STORMCRAWLER, Profile
from comity.url import document_id

__all__ = [
    "COMITY", "PROFILES", "STORMCRAWLER", "TRANSITIONS", "Advance", "Condition", "Count", "Event", "Profile", "Rule",
    "Transition", "advance", "discover", "failure_class", "failure_of", "refuse_found", "seed", "sitemap_of_robots",
    "transition",
]  # fmt: skip

# How a URL's life begins belongs to the same room, for those who come in by this door.
discover = discovery.discover
refuse_found, seed, sitemap_of_robots = discovery.refuse_found, discovery.seed, discovery.sitemap_of_robots

HISTORY = 8
MOST_ERRORS = 1_000  # counted in a row: a bound for the arithmetic
HOST_LEAST_S = 1.0  # a throttled URL never comes back at once, not even where host back-off is off
REFUSALS = frozenset({Cause.ROBOTS, Cause.SCOPE, Cause.CRAWL_DELAY, Cause.BUDGET, Cause.MALFORMED})
"""Causes that were never the server's word."""


class Condition(enum.Enum):
    LAST_STRAW = "errors in a row reach max_fetch_errors, and the row lasted min_error_span_s"
    AGAIN = "the visit before met the same"
    WAS_REFUSED = "it was ERROR by a refusal, and now was asked"


class Rule(enum.Enum):
    """Who sets the next visit."""

    INTERVAL = "by status and cause: recrawl.…, never.…"
    RETRY = "by the count of errors: retry.N"
    STALE = "when it goes stale: recrawl.fresh"
    HOST = "when the host may be asked: host.answer"
    OURS = "soon, and less soon each time: again.self, again.proxy"


class Count(enum.Enum):
    """What becomes of the count of errors in a row."""

    CLEAR = "0"
    ADD = "+1"
    KEEP = "as it was"
    END = "+1, or 0 where the profile recounts after ERROR"


class Transition(NamedTuple):
    """One row. `before` None: any. `status` None: as it was, and so is the cause. "refusal": the cause it names."""

    before: Status | None
    event: Event
    condition: Condition | None
    status: Status | None
    cause: Cause | Literal["refusal"] | None
    rule: Rule
    errors: Count
    deletes: bool = False


_D, _F, _R, _E, _X = Status

TRANSITIONS: tuple[Transition, ...] = (
    Transition(None, Event.PAGE, None, _F, None, Rule.INTERVAL, Count.CLEAR),
    Transition(None, Event.UNCHANGED, None, _F, None, Rule.INTERVAL, Count.CLEAR),
    Transition(None, Event.FRESH, None, None, None, Rule.STALE, Count.KEEP),
    Transition(None, Event.MOVED, None, _R, None, Rule.INTERVAL, Count.CLEAR),
    Transition(None, Event.SELF, Condition.AGAIN, _X, Cause.REDIRECT_LOOP, Rule.INTERVAL, Count.CLEAR, deletes=True),
    Transition(None, Event.SELF, None, _E, None, Rule.RETRY, Count.ADD),
    Transition(None, Event.LOOP, None, _X, Cause.REDIRECT_LOOP, Rule.INTERVAL, Count.CLEAR, deletes=True),
    Transition(_X, Event.THROTTLED, Condition.WAS_REFUSED, _D, None, Rule.HOST, Count.KEEP),
    Transition(None, Event.THROTTLED, None, None, None, Rule.HOST, Count.KEEP),
    Transition(_X, Event.OURS, Condition.WAS_REFUSED, _D, None, Rule.OURS, Count.KEEP),
    Transition(None, Event.OURS, None, None, None, Rule.OURS, Count.KEEP),
    Transition(None, Event.GONE, None, _X, Cause.GONE, Rule.INTERVAL, Count.CLEAR, deletes=True),
    Transition(None, Event.FORBIDDEN, None, _X, Cause.FORBIDDEN_ADDRESS, Rule.INTERVAL, Count.CLEAR, deletes=True),
    Transition(None, Event.UNREADABLE, None, _X, Cause.PARSE, Rule.INTERVAL, Count.CLEAR, deletes=True),
    Transition(None, Event.FAILED, Condition.LAST_STRAW, _X, Cause.MAX_ERRORS, Rule.INTERVAL, Count.END, deletes=True),
    Transition(None, Event.FAILED, None, _E, None, Rule.RETRY, Count.ADD),
    Transition(None, Event.REFUSED, None, _X, "refusal", Rule.INTERVAL, Count.CLEAR, deletes=True),
)


def transition(before: Status, event: Event, condition: Condition | None) -> Transition:
    """The first row that applies; there always is one."""
    return _ROWS[before, event, condition]


_ROWS = {
    (before, event, condition): next(
        row
        for row in TRANSITIONS
        if row.event is event and row.before in (None, before) and row.condition in (None, condition)
    )
    for before in Status
    for event in Event
    for condition in (None, *Condition)
}


class Advance(NamedTuple):
    """What the entry becomes, the deletion that must reach every output, and the row of the table that said so."""

    after: Entry
    deletion: Deletion | None
    row: Transition


def advance(
    entry: Entry,
    outcome: Outcome,
    found: Found | None = None,
    *,
    now: float,
    jitter: float,
    profile: Profile = COMITY,
    schedule: recrawl.Schedule = recrawl.COMITY,
    metadata_policy: metadata.Policy = metadata.DEFAULT,
    host_due_at: float | None = None,
) -> Advance:
    """What an entry becomes by an attempt that ended at `now`. `jitter` in [0, 1). `host_due_at`: when the host may be
    asked again, for answers that are the host's. Raises nothing. Measured: 7 µs; for a page 20, mostly to read
    its freshness, and the SHA-256 of the body."""
    event, failure = event_of(entry, outcome, found, profile)
    row = transition(entry.status, event, _condition(entry, event, failure, profile, now))
    if isinstance(outcome, StillFresh):
        due = recrawl.still_fresh(outcome.until_at, schedule, now=now)
        return Advance(replace(entry, due_at=due.due_at, next_rule=due.rule), None, row)
    status = entry.status if row.status is None else row.status
    cause = _cause(entry, outcome, row)
    errors, first_error_at = _counted(entry, row.errors, profile, now)
    http_status = 304 if isinstance(outcome, NotModified) else getattr(outcome, "status", None)
    of_body, changed = _body(entry, outcome, event, status, now, schedule)
    asked_of_it = row.rule is not Rule.HOST and row.rule is not Rule.OURS and event is not Event.REFUSED
    after = replace(
        entry,
        status=status,
        cause=cause,
        failure=failure,
        detail=_detail(outcome, found),
        errors=errors,
        first_error_at=first_error_at,
        visited_at=now if asked_of_it else entry.visited_at,
        http_status=http_status,
        redirect_to=entry.redirect_to if row.status is None else _redirect_to(outcome, found, event),
        is_sitemap=entry.is_sitemap or (found is not None and found.kind in ("sitemap", "sitemapindex")),
        rules_digest=None,
        metadata=metadata.keep(entry.metadata, metadata_policy),
        history=(*entry.history[1 - HISTORY :], PastVisit(now, status, cause, changed, http_status, failure)),
        **of_body,
    )
    due = _next(after, row.rule, profile, schedule, now, jitter, host_due_at)
    deletion = None
    if row.deletes:  # later than the row of this visit, whose version the settle makes entry.version + 1
        deletion = Deletion(document_id(entry.key), entry.url, now, cause, version=entry.version + 2)
    return Advance(replace(after, due_at=due.due_at, next_rule=due.rule), deletion, row)


def _condition(entry: Entry, event: Event, failure: Failure | None, profile: Profile, now: float) -> Condition | None:
    if event is Event.FAILED:
        began_at = now if entry.first_error_at is None or not entry.errors else entry.first_error_at
        if entry.errors + 1 >= profile.max_fetch_errors and now - began_at >= profile.min_error_span_s:
            return Condition.LAST_STRAW
    elif event is Event.SELF:
        if entry.status is _E and entry.failure is failure:
            return Condition.AGAIN
    elif event is Event.THROTTLED or event is Event.OURS:
        if entry.cause in REFUSALS:
            return Condition.WAS_REFUSED
    return None


def _cause(entry: Entry, outcome: Outcome, row: Transition) -> Cause | None:
    if row.cause == "refusal":
        return outcome.cause if isinstance(outcome, Refused) else None
    return entry.cause if row.status is None else row.cause


def _counted(entry: Entry, count: Count, profile: Profile, now: float) -> tuple[int, float | None]:
    """Errors in a row, and when the row began."""
    if count is Count.KEEP:
        return entry.errors, entry.first_error_at
    if count is Count.CLEAR or (count is Count.END and profile.recount_after_error):
        return 0, None
    began_at = now if entry.first_error_at is None or not entry.errors else entry.first_error_at
    return min(entry.errors + 1, MOST_ERRORS), began_at


def _body(
    entry: Entry, outcome: Outcome, event: Event, status: Status, now: float, schedule: recrawl.Schedule
) -> tuple[body.Facts, bool | None]:
    """What changes in the facts of the body, and whether it differs from the one before (None: not known)."""
    if event is Event.PAGE and isinstance(outcome, Page):
        facts = body.seen(entry, outcome, now=now, fresh_max_s=schedule.fresh_max_s)
        return facts, None if entry.digest is None else facts["digest"] != entry.digest
    if event is Event.UNCHANGED and isinstance(outcome, NotModified):
        return body.confirmed(entry, outcome, now=now, fresh_max_s=schedule.fresh_max_s), False
    return body.NONE if status is _R or status is _X else body.STALE, None


def _detail(outcome: Outcome, found: Found | None) -> str | None:
    """In words: why it failed, which rule refused it, what could not be read."""
    if isinstance(outcome, Failed):
        return outcome.detail or None
    if isinstance(outcome, Refused):
        return outcome.rule
    return found.problem if found is not None else None


def _redirect_to(outcome: Outcome, found: Found | None, event: Event) -> str | None:
    if isinstance(outcome, Redirect):
        return outcome.location
    return found.refresh if event is Event.MOVED and found is not None else None


def _next(
    after: Entry,
    rule: Rule,
    profile: Profile,
    schedule: recrawl.Schedule,
    now: float,
    jitter: float,
    host_due_at: float | None,
) -> recrawl.Next:
    if rule is Rule.INTERVAL:
        return recrawl.next_visit(after, schedule, now=now)
    if rule is Rule.HOST and host_due_at is not None:
        return recrawl.Next(max(host_due_at, now + HOST_LEAST_S), "host.answer")
    drawn = jitter if profile.jitter else None
    in_a_row = after.errors if rule is Rule.RETRY else _met_in_a_row(after)
    wait = recrawl.retry(
        in_a_row,
        now=now,
        base_s=profile.retry_base_s,
        factor=profile.retry_factor,
        most_s=profile.retry_max_s,
        jitter=drawn,
    )
    if rule is Rule.RETRY:
        return wait
    word = "host.answer" if rule is Rule.HOST else f"again.{failure_class(after.failure or Failure.SELF)}"
    return wait._replace(rule=word)


def _met_in_a_row(after: Entry) -> int:
    """How many of the latest attempts met what this one met."""
    n = 0
    for past in reversed(after.history):
        if past.failure is not after.failure:
            break
        n += 1
    return n
