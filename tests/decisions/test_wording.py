"""Facts in plain English: total over everything that is stored, and one form throughout."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, a_page, a_redirect, an_entry, an_error, not_modified
from comity import wording
from comity.lifecycle import COMITY, STORMCRAWLER, Profile, advance
from comity.model import Cause, Entry, Failed, Failure, Outcome, Page, PastVisit, Refused, Status, StillFresh
from comity.recrawl import SCHEDULES


def lived(*outcomes: Outcome, profile: Profile = STORMCRAWLER) -> Entry:
    entry = an_entry()
    for outcome in outcomes:
        entry = advance(
            entry, outcome, now=NOW, jitter=0.5, profile=profile, schedule=SCHEDULES[profile.name], host_due_at=NOW + 9
        ).after
    return entry


def is_clause(text: str) -> bool:
    return bool(re.fullmatch(r"[a-z0-9\"'].*[^.:\s]", text)) and "_" not in text and "None" not in text


def is_sentence(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Z].*[^.:\s]\.", text)) and "_" not in text and "None" not in text


SLOW = Failed(Failure.TIMEOUT_READ, "nothing for 2 s")
ENTRIES = {
    "T020 found": (lived(), "Found, and not fetched yet."),
    "T001 fetched": (lived(a_page()), "Fetched."),
    "changed": (lived(a_page("a"), a_page("b")), "Fetched, and it had changed."),
    "T027 unchanged": (lived(a_page("a"), not_modified()), "Fetched, and it had not changed."),
    "T012 /cu": (lived(a_redirect("/b")), "It leads to /b."),
    "T031 nowhere": (lived(a_redirect(None, None)), "It leads elsewhere, unsaid where."),
    "T004 /mat": (lived(an_error(404)), "It failed, 1 error in a row: the server answered 404 (Not Found)."),
    "T005 /mat": (
        lived(an_error(404), an_error(404)),
        "It failed, 2 errors in a row: the server answered 404 (Not Found).",
    ),
    "T006 /mat": (
        lived(*[an_error(404)] * 3),
        "Given up: too many errors in a row: the server answered 404 (Not Found).",
    ),
    "T011 /cham": (
        lived(*[SLOW] * 3),
        "Given up: too many errors in a row: the server stayed silent for too long (nothing for 2 s).",
    ),
    "T014 /admin/x": (
        lived(Refused(Cause.ROBOTS, "Disallow: /admin/")),
        'Given up: robots.txt forbids it: robots.txt says "Disallow: /admin/".',
    ),
    "scope": (
        lived(Refused(Cause.SCOPE, "scope.depth")),
        "Given up: it is outside the crawl's scope: it is too many links away from a seed.",
    ),
    "gone": (
        lived(an_error(410), profile=COMITY),
        "Given up: the server says that it is gone for good: the server answered 410 (Gone).",
    ),
    "throttled": (
        lived(an_error(429), profile=COMITY),
        "Found, and not fetched yet: the server answered 429 (Too Many Requests).",
    ),
    "throttled later": (
        lived(a_page(), an_error(429), profile=COMITY),
        "Fetched; at the latest attempt the server answered 429 (Too Many Requests).",
    ),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_what_an_entry_is(name: str) -> None:
    entry, told = ENTRIES[name]
    assert wording.entry(entry) == told


@pytest.mark.parametrize("status", Status, ids=lambda status: status.name)
def test_every_status_has_words(status: Status) -> None:
    assert is_clause(wording.status(status))


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.word)
def test_every_cause_has_words_of_its_own(cause: Cause) -> None:
    assert is_clause(wording.cause(cause))
    assert [wording.cause(other) for other in Cause].count(wording.cause(cause)) == 1
    assert wording.rule(f"never.{cause.word}").count("never") == 1
    assert is_clause(wording.rule(f"recrawl.error.{cause.word}"))


@pytest.mark.parametrize("failure", Failure, ids=str)
def test_every_failure_has_words(failure: Failure) -> None:
    assert is_clause(wording.failure(failure))
    assert is_clause(wording.whose(failure))
    if failure.value[5:].isdigit():
        assert failure.value[5:] in wording.failure(failure)


def test_a_family_of_codes_is_told_with_the_code() -> None:
    assert wording.failure(Failure.HTTP_OTHER, 777).endswith(": 777")
    assert wording.failure(Failure.HTTP_2XX, 202).endswith(": 202 (Accepted)")
    assert wording.code(520) == "520 (Unknown Error)"
    assert wording.code(-1) == "-1"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("retry.1", "after 1 error in a row it is tried again, each time after a longer wait"),
        ("retry.2", "after 2 errors in a row it is tried again, each time after a longer wait"),
        ("never.max_errors", "too many errors in a row: never again by itself"),
        ("never.unknown", "unknown: never again by itself"),
        (
            "recrawl.error.gone",
            "the server says that it is gone for good: looked at again after a while, less often each time",
        ),
        ("recrawl.by_next_year", "rule recrawl.by_next_year"),
        ("retry.x", "rule retry.x"),
        (None, "no rule is recorded"),
    ],
)
def test_rules(name: str | None, told: str) -> None:
    assert wording.rule(name) == told


OUTCOMES: list[Outcome] = [
    a_page(), Page(206, (), b"x", "unasked_206"), not_modified(), StillFresh(NOW), a_redirect(), a_redirect(None, None),
    a_redirect("mailto:x", None), an_error(404), an_error(429), an_error(777), an_error(410), an_error(503), SLOW,
    Failed(Failure.SELF), Failed(Failure.PROXY), Failed(Failure.FORBIDDEN_ADDRESS, "10.0.0.1"),
    *(Refused(cause, "scope.depth") for cause in Cause),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(OUTCOMES)))
@pytest.mark.parametrize("profile", [COMITY, STORMCRAWLER], ids=lambda profile: profile.name)
def test_whatever_a_visit_sets_can_be_told(number: int, profile: Profile) -> None:
    """No rule, state, outcome or line of history that a visit leaves is without words."""
    outcome = OUTCOMES[number]
    for before in ([], [a_page()], [an_error(404)]):
        entry = lived(*before, outcome, profile=profile)
        assert is_sentence(wording.entry(entry))
        assert not wording.rule(entry.next_rule).startswith("rule ")
        assert all(is_clause(wording.past(past)) for past in entry.history)
    told = wording.outcome(outcome)
    assert told[0].isupper() and told.endswith(".") and not told.endswith("..")


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("scope.exclude:/cart", "the exclude pattern '/cart' is found in it"),
        ("Disallow: /x", 'robots.txt says "Disallow: /x"'),
        ("robots.disallow", "robots.txt itself may not be read, which counts as a no"),
        ("url.it has no host", "it is no URL that could be asked for: it has no host"),
        ("Crawl-delay 90 s", "Crawl-delay 90 s"),
        ("something.new", "something.new"),
    ],
)
def test_refusals(rule: str, told: str) -> None:
    assert wording.refusal(rule) == told


def test_a_sentence_has_one_full_stop() -> None:
    assert wording.outcome(Failed(Failure.TLS, "bad certificate.")).endswith("bad certificate.")


@settings(deadline=None)
@given(
    st.builds(
        PastVisit,
        st.just(NOW),
        st.sampled_from(Status),
        st.one_of(st.none(), st.sampled_from(Cause)),
        st.one_of(st.none(), st.booleans()),
        st.one_of(st.none(), st.integers(-5, 1100)),
        st.one_of(st.none(), st.sampled_from(Failure)),
    )
)
def test_any_line_of_a_history_can_be_told(past: PastVisit) -> None:
    assert is_clause(wording.past(past))
