"""Counters as a fold: what is counted, that folding in parts is folding the whole, and that memory is bounded."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, a_page, a_redirect, a_visit, a_wire, an_entry, an_error, not_modified
from comity import tally as tallies
from comity.lifecycle import advance
from comity.model import Cause, Entry, Failed, Failure, Outcome, Refused, StillFresh, Visit
from comity.tally import Tally


def visit(outcome: Outcome, entry: Entry | None = None, *, body_bytes: int = 0, asked: bool = True) -> Visit:
    entry = entry if entry is not None else an_entry()
    step = advance(entry, outcome, now=NOW, jitter=0.5, host_due_at=NOW + 9)
    wire = a_wire(body_bytes=body_bytes) if asked else None
    return a_visit(entry, outcome, step.after, wire=wire, deletion=step.deletion)


HELD = an_entry(etag='"1"', size_bytes=3035)
VISITS = {
    "page": visit(a_page("text"), body_bytes=4),
    "304": visit(not_modified(), HELD),
    "redirect": visit(a_redirect(), body_bytes=7),
    "404": visit(an_error(404), an_entry("https://b.example/"), body_bytes=5),
    "410": visit(an_error(410)),
    "429": visit(an_error(429)),
    "timeout": visit(Failed(Failure.TIMEOUT_READ)),
    "robots": visit(Refused(Cause.ROBOTS, "Disallow: /"), asked=False),
    "fresh": visit(StillFresh(NOW + 9), an_entry(failure=Failure.HTTP_429), asked=False),
}


def folded(*visits: Visit) -> Tally:
    tally = Tally()
    for one in visits:
        tally.add(one)
    return tally


def test_what_is_counted() -> None:
    assert folded(*VISITS.values()).as_dict() == {
        "visits": 9,
        "requests": 7,
        "pages": 1,
        "not_modified": 1,
        "errors": 4,
        "bytes": 16,
        "bytes_saved": 3035,
        "discoveries": 0,
        "deletions": 2,
        "hosts": 2,
        "more_hosts": False,
        "by_outcome": {
            "http_error": 3,
            "page": 1,
            "not_modified": 1,
            "redirect": 1,
            "failed": 1,
            "refused": 1,
            "still_fresh": 1,
        },
        "by_status": {"FETCHED": 2, "FETCH_ERROR": 2, "ERROR": 2, "DISCOVERED": 2, "REDIRECTION": 1},
        "by_cause": {"gone": 1, "robots": 1},
        "by_failure": {"http_404": 1, "http_410": 1, "http_429": 1, "timeout_read": 1},
        "by_rule": {},
    }


def test_nothing_is_counted_of_nothing() -> None:
    assert not any(folded().as_dict().values())


def test_a_failure_met_before_is_not_counted_again_when_nothing_was_asked() -> None:
    assert not folded(VISITS["fresh"]).by_failure


def test_a_304_for_a_body_of_unknown_size_saves_nothing_that_we_know() -> None:
    assert folded(visit(not_modified(), an_entry(etag='"1"'))).bytes_saved == 0


def test_links_kept_and_left_out() -> None:
    one = a_visit(discoveries=(an_entry(), an_entry()), refused_links={"scope.depth": 3, "rel.nofollow": 1})
    tally = folded(one, one)
    assert tally.discoveries == 4
    assert tally.by_rule == {"scope.depth": 6, "rel.nofollow": 2}


def test_hosts_are_counted_exactly_up_to_a_bound() -> None:
    tally = Tally()
    tally._hosts = {str(n) for n in range(tallies.MOST_HOSTS - 1)}
    tally.add(VISITS["page"])
    assert (tally.hosts, tally.more_hosts) == (tallies.MOST_HOSTS, False)
    tally.add(VISITS["page"])
    assert not tally.more_hosts
    tally.add(VISITS["404"])
    assert (tally.hosts, tally.more_hosts) == (tallies.MOST_HOSTS, True)
    small = Tally()
    small.merge(tally)
    assert (small.hosts, small.more_hosts) == (tallies.MOST_HOSTS, True)


MANY = st.lists(st.sampled_from(list(VISITS.values())), max_size=12)


@settings(deadline=None)
@given(MANY, MANY)
def test_folding_the_parts_is_folding_the_whole(first: list[Visit], second: list[Visit]) -> None:
    one, other = folded(*first), folded(*second)
    kept = copy.deepcopy(other)
    one.merge(other)
    assert one == folded(*first, *second)
    assert other == kept
    reverse = folded(*second)
    reverse.merge(folded(*first))
    assert reverse == one


@pytest.mark.parametrize("name", VISITS)
def test_every_visit_is_one_visit(name: str) -> None:
    tally = folded(VISITS[name])
    assert tally.visits == sum(tally.by_outcome.values()) == sum(tally.by_status.values()) == tally.hosts == 1
