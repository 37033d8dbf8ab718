"""What an attempt amounts to, under a profile.

Seven kinds of outcome, every status code and some thirty failures become thirteen events: the words in which the table
of `comity.lifecycle` is written. Here, and only here, a profile has its say: is 204 good, is 429 the page's fault, is a
redirect without a target a redirect?

Invariant: total. Every outcome is exactly one event, whatever the entry and the profile; what nobody thought of is
`FAILED`, never nothing. With the event comes the failure in one word, None where the event is no failure.

A redirect is followed by nobody: its target is a discovery. So a loop is seen from within: an entry that a redirect led
to carries the keys of those before it (`Entry.chain`) and their number (`Entry.hops`).

Refuses to know statuses, counts, time, and what follows.
"""

from __future__ import annotations

import enum

from comity import headers
from comity.failures import failure_class, failure_of, of_status
from comity.model import (
    Entry,
    Failed,
    Failure,
    Found,
    HttpError,
    NotModified,
    Outcome,
    Page,
    Redirect,
    StillFresh,
)
from comity.profiles import Profile
from comity.url import InvalidUrl, parse


class Event(enum.Enum):
    PAGE = "a page"
    UNCHANGED = "not modified"
    FRESH = "still fresh, not asked"
    MOVED = "a redirect that leads somewhere"
    SELF = "a redirect to itself"
    LOOP = "a redirect too many, or back into its own chain"
    THROTTLED = "the host asks for patience"
    OURS = "a failure of ours or of a proxy"
    GONE = "gone for good, by its own word"
    FORBIDDEN = "an address or port that may not be asked"
    UNREADABLE = "a page that is not what it claims to be"
    FAILED = "any other answer, or none"
    REFUSED = "not asked: robots.txt, scope, policy"


FORBIDDEN = frozenset({Failure.FORBIDDEN_ADDRESS, Failure.FORBIDDEN_PORT})


def event_of(entry: Entry, outcome: Outcome, found: Found | None, profile: Profile) -> tuple[Event, Failure | None]:
    """The event, and the failure it is (None: it is none)."""
    if isinstance(outcome, Page):
        return _of_page(outcome, found, profile)
    if isinstance(outcome, Redirect):
        return _of_redirect(entry, outcome, profile)
    if isinstance(outcome, NotModified):
        if profile.conditional_304 and entry.etag is None and entry.last_modified is None:
            return Event.FAILED, Failure.PROTOCOL
        return Event.UNCHANGED, None
    if isinstance(outcome, HttpError):
        return _of_error(outcome, profile), of_status(outcome.status)
    if isinstance(outcome, Failed):
        return _of_failure(outcome.failure, profile), outcome.failure
    return Event.FRESH if isinstance(outcome, StillFresh) else Event.REFUSED, None


def _of_page(page: Page, found: Found | None, profile: Profile) -> tuple[Event, Failure | None]:
    if page.status not in profile.success:
        return Event.FAILED, of_status(page.status)
    if found is not None:
        if profile.unreadable_ends and found.problem is not None:
            return Event.UNREADABLE, Failure.PARSE
        if profile.refresh_redirects and found.refresh is not None:
            return Event.MOVED, None
    return Event.PAGE, None


def _of_redirect(entry: Entry, redirect: Redirect, profile: Profile) -> tuple[Event, Failure | None]:
    if redirect.target is None:
        return (Event.FAILED, failure_of(redirect)) if profile.redirect_needs_target else (Event.MOVED, None)
    if profile.max_hops is None:
        return Event.MOVED, None
    key = _key(redirect.target)
    if key == entry.key or redirect.target == entry.url:
        return Event.SELF, Failure.TOO_MANY_REDIRECTS
    if entry.hops >= profile.max_hops or key in entry.chain or (entry.hops > 0 and redirect.target == entry.via):
        return Event.LOOP, Failure.TOO_MANY_REDIRECTS
    return Event.MOVED, None


def _of_error(error: HttpError, profile: Profile) -> Event:
    status = error.status
    if status in profile.gone:
        return Event.GONE
    if profile.host_answers:
        if status == 429 or (status == 503 and headers.get(error.headers, "retry-after") is not None):
            return Event.THROTTLED
    return Event.FAILED


def _of_failure(failure: Failure, profile: Profile) -> Event:
    if failure in FORBIDDEN:
        return Event.FORBIDDEN if profile.refuse_forbidden else Event.FAILED
    if profile.forgive_ours and failure_class(failure) in ("self", "proxy"):
        return Event.OURS
    return Event.FAILED


def _key(url: str) -> str:
    try:
        return parse(url).key
    except InvalidUrl:  # it was resolved by somebody else: compare it as it stands
        return url
