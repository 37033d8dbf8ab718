"""Outcome → event under a profile: total, and where the two profiles part."""

from __future__ import annotations

from dataclasses import replace as with_option

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, a_page, a_redirect, an_entry, an_error, not_modified
from comity.events import Event, event_of
from comity.failures import failure_of
from comity.model import Cause, Entry, Failed, Failure, Found, HttpError, Outcome, Page, Redirect, Refused, StillFresh
from comity.profiles import COMITY, STORMCRAWLER, Profile

ENTRY = an_entry(hops=1, chain=("https://a.example/first",), via="https://a.example/first")
SITE = "https://a.example"

# what: outcome, found, as comity, as StormCrawler
PARTED: dict[str, tuple[Outcome, Found | None, Event, Event]] = {
    "200": (a_page(), Found("html"), Event.PAGE, Event.PAGE),
    "204": (a_page(status=204), None, Event.PAGE, Event.FAILED),
    "202": (a_page(status=202), None, Event.FAILED, Event.FAILED),
    "200, unreadable": (a_page(), Found("other", problem="?"), Event.PAGE, Event.UNREADABLE),
    "200, refresh": (a_page(), Found("html", refresh=f"{SITE}/b"), Event.PAGE, Event.MOVED),
    "202, refresh": (a_page(status=202), Found("html", refresh=f"{SITE}/b"), Event.FAILED, Event.FAILED),
    "304, unasked": (not_modified(), None, Event.FAILED, Event.UNCHANGED),
    "301": (a_redirect(), None, Event.MOVED, Event.MOVED),
    "301, no Location": (a_redirect(None, None), None, Event.FAILED, Event.MOVED),
    "301, bad Location": (a_redirect("mailto:x", None), None, Event.FAILED, Event.MOVED),
    "301 to itself": (a_redirect("", f"{SITE}/page"), None, Event.SELF, Event.MOVED),
    "301 to itself, spelt otherwise": (a_redirect("", f"{SITE}/%70age#x"), None, Event.SELF, Event.MOVED),
    "301 back": (a_redirect("", f"{SITE}/first"), None, Event.LOOP, Event.MOVED),
    "404": (an_error(404), None, Event.FAILED, Event.FAILED),
    "410": (an_error(410), None, Event.GONE, Event.FAILED),
    "429": (an_error(429), None, Event.THROTTLED, Event.FAILED),
    "503": (an_error(503), None, Event.FAILED, Event.FAILED),
    "503, Retry-After": (an_error(503, retry_after="1"), None, Event.THROTTLED, Event.FAILED),
    "500, Retry-After": (an_error(500, retry_after="1"), None, Event.FAILED, Event.FAILED),
    "self": (Failed(Failure.SELF), None, Event.OURS, Event.FAILED),
    "proxy": (Failed(Failure.PROXY), None, Event.OURS, Event.FAILED),
    "address": (Failed(Failure.FORBIDDEN_ADDRESS), None, Event.FORBIDDEN, Event.FAILED),
    "port": (Failed(Failure.FORBIDDEN_PORT), None, Event.FORBIDDEN, Event.FAILED),
    "dns": (Failed(Failure.DNS), None, Event.FAILED, Event.FAILED),
    "fresh": (StillFresh(NOW), None, Event.FRESH, Event.FRESH),
    "refused": (Refused(Cause.ROBOTS, "x"), None, Event.REFUSED, Event.REFUSED),
}


@pytest.mark.parametrize("what", PARTED)
def test_where_the_profiles_part(what: str) -> None:
    outcome, found, ours, theirs = PARTED[what]
    assert event_of(ENTRY, outcome, found, COMITY)[0] is ours
    assert event_of(ENTRY, outcome, found, STORMCRAWLER)[0] is theirs


def test_the_failure_is_the_outcomes_own_where_there_is_one() -> None:
    assert event_of(ENTRY, an_error(410), None, COMITY)[1] is Failure.HTTP_410
    assert event_of(ENTRY, a_page(status=202), None, COMITY)[1] is Failure.HTTP_2XX
    assert event_of(ENTRY, not_modified(), None, COMITY)[1] is Failure.PROTOCOL
    assert event_of(ENTRY, a_redirect(None, None), None, STORMCRAWLER)[1] is None
    assert event_of(ENTRY, a_redirect("", f"{SITE}/page"), None, COMITY)[1] is Failure.TOO_MANY_REDIRECTS


def test_an_option_moves_one_event() -> None:
    legal = with_option(COMITY, gone=frozenset({410, 451}))
    assert event_of(ENTRY, an_error(451), None, legal) == (Event.GONE, Failure.HTTP_451)


def test_a_target_that_is_no_url_is_compared_as_it_stands() -> None:
    assert event_of(ENTRY, a_redirect("x", "x"), None, COMITY)[0] is Event.MOVED
    assert event_of(an_entry("x"), a_redirect("x", "x"), None, COMITY)[0] is Event.SELF


FAILING = {
    Event.SELF,
    Event.LOOP,
    Event.THROTTLED,
    Event.OURS,
    Event.GONE,
    Event.FORBIDDEN,
    Event.UNREADABLE,
    Event.FAILED,
}
TARGETS = st.sampled_from([None, f"{SITE}/page", f"{SITE}/first", f"{SITE}/b", "x"])


@settings(deadline=None)
@given(
    st.sampled_from([ENTRY, an_entry(), an_entry(etag="x"), an_entry(hops=10)]),
    st.one_of(
        st.builds(Page, st.integers(200, 299), st.just(()), st.just(b"")),
        st.builds(Redirect, st.integers(300, 399), st.just(()), st.sampled_from([None, "x"]), TARGETS),
        st.builds(HttpError, st.integers(-9, 1999), st.sampled_from([(), (("retry-after", "1"),)])),
        st.builds(Failed, st.sampled_from(Failure)),
        st.sampled_from([not_modified(), StillFresh(NOW), Refused(Cause.SCOPE, "x")]),
    ),
    st.sampled_from([COMITY, STORMCRAWLER]),
)
def test_every_outcome_is_one_event_and_failing_ones_have_a_failure(
    entry: Entry, outcome: Outcome, profile: Profile
) -> None:
    event, failure = event_of(entry, outcome, None, profile)
    assert (failure is not None) is (event in FAILING)
    own = failure_of(outcome)
    assert own is None or failure is own or profile is STORMCRAWLER
