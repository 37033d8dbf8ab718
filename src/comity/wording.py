"""What comity knows of a URL, in plain English: statuses, causes, failures, rules, outcomes as clauses and sentences.

Owns the words that people read in `comity why` and in summaries, so that one fact is told in one way everywhere. The
names under which facts are stored and counted (`max_errors`, `retry.2`) are never shown without these, and never
replaced by them: a reader can search for the name and understand the words.

Invariant: total. Every member of every closed enum has words, and a rule or a code that this module has never seen is
told by its name instead of failing: what is stored may be older or newer than what reads it.

Clauses begin in lower case and have no full stop; sentences (`entry`, `outcome`) have both. Instants and durations are
left to whoever shows them, in the reader's own zone. Refuses to know terminals, colours and stores.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import assert_never

from comity.failures import failure_class
from comity.model import (
    Cause,
    Entry,
    Failed,
    Failure,
    HttpError,
    NotModified,
    Outcome,
    Page,
    PastVisit,
    Redirect,
    Refused,
    Status,
    StillFresh,
)

STATUSES = {
    Status.DISCOVERED: "found, and not fetched yet",
    Status.FETCHED: "fetched",
    Status.REDIRECTION: "it leads elsewhere",
    Status.FETCH_ERROR: "it failed, and is tried again",
    Status.ERROR: "given up",
}

CAUSES = {
    Cause.ROBOTS: "robots.txt forbids it",
    Cause.MAX_ERRORS: "too many errors in a row",
    Cause.GONE: "the server says that it is gone for good",
    Cause.SCOPE: "it is outside the crawl's scope",
    Cause.CRAWL_DELAY: "robots.txt asks for a longer delay than this crawl accepts",
    Cause.MALFORMED: "it is no URL that could be asked for",
    Cause.REDIRECT_LOOP: "its redirects lead in a circle, or are too many",
    Cause.PARSE: "it cannot be read as what it claims to be",
    Cause.BUDGET: "its host has given as many pages as the crawl takes",
    Cause.FORBIDDEN_ADDRESS: "its address or port may not be asked",
}

FAILURES = {
    Failure.DNS: "the host name does not exist, or has no address",
    Failure.DNS_TEMPORARY: "no name server answered for the host name",
    Failure.FORBIDDEN_ADDRESS: "the host name leads to an address that may not be asked",
    Failure.FORBIDDEN_PORT: "the port is one that may not be asked",
    Failure.REFUSED: "the connection was refused",
    Failure.UNREACHABLE: "there is no way to the host's network",
    Failure.TLS: "no secure connection could be agreed on",
    Failure.RESET: "the connection was broken off",
    Failure.TIMEOUT_DNS: "looking up the host name took too long",
    Failure.TIMEOUT_CONNECT: "connecting took too long",
    Failure.TIMEOUT_READ: "the server stayed silent for too long",
    Failure.TIMEOUT_TOTAL: "the answer took too long as a whole",
    Failure.PROTOCOL: "the answer was not proper HTTP",
    Failure.HEADERS_TOO_LARGE: "the answer's header fields were too large",
    Failure.CUT_OFF: "the answer ended before its announced end",
    Failure.DECODE: "the body's content coding could not be undone",
    Failure.BOMB: "the body would have unpacked to a size out of all proportion",
    Failure.REDIRECT_WITHOUT_LOCATION: "the redirect does not say where to",
    Failure.REDIRECT_BAD_LOCATION: "the redirect names nothing that could be asked for",
    Failure.TOO_MANY_REDIRECTS: "the redirects lead in a circle, or are too many",
    Failure.SELF: "the fault was this machine's or this programme's",
    Failure.PROXY: "the proxy failed",
    Failure.PARSE: "the page cannot be read as what it claims to be",
    Failure.HTTP_1XX: "the server gave an interim answer and no final one",
    Failure.HTTP_2XX: "the server answered with a success code that is not taken for a page",
    Failure.HTTP_OTHER: "the server answered with a code that HTTP does not know",
}
"""Those that are one status code are told by the code: see `failure`."""

UNREGISTERED = {
    520: "Unknown Error",
    521: "Web Server Is Down",
    522: "Connection Timed Out",
    523: "Origin Is Unreachable",
    524: "A Timeout Occurred",
    525: "SSL Handshake Failed",
    526: "Invalid SSL Certificate",
    530: "Origin Error",
    999: "Request Denied",
}
"""Phrases for codes that servers send and nobody registered."""

RULES = {
    "discovered": "it was found, and is due at once",
    "requeue": "an operator put it back in the queue",
    "set_next": "an operator set the date",
    "recrawl.fetched": "a good page is visited again after a fixed interval",
    "recrawl.redirection": "a redirect is looked at again after a fixed interval",
    "recrawl.fresh": "it is still fresh by its own word, and is visited when it goes stale",
    "host.answer": "the host asked for patience, and the URL waits as long as the host does",
    "again.self": "the fault was ours, so it is tried again and nothing is counted",
    "again.proxy": "the fault was a proxy's, so it is tried again and nothing is counted",
    "never.robots": "robots.txt forbids it: never, until its rules change",
    "never.malformed": "no waiting mends a malformed URL: never",
    "never.fetched": "the schedule visits a good page once only",
    "never.redirection": "the schedule visits a redirect once only",
}
"""Rules behind the next visit, by name (`Entry.next_rule`); those with a part that varies are told by `rule`."""

REFUSALS = {
    "scope.url_length": "the URL is too long",
    "scope.depth": "it is too many links away from a seed",
    "scope.hops": "too many redirects led to it",
    "scope.host": "it is not on a host of the seeds",
    "scope.domain": "it is not in a domain of the seeds",
    "scope.include": "no include pattern is found in it",
    "scope.trap.repetition": "its path repeats itself, as endless paths do",
    "scope.trap.segments": "its path is deeper than any made by hand",
    "scope.trap.escapes": "it holds escapes of escapes of escapes",
    "scope.budget.host": "its host has given as many pages as the crawl takes",
    "robots": "robots.txt forbids it",
    "robots.disallow": "robots.txt itself may not be read, which counts as a no",
    "rel.nofollow": "the link asks not to be followed",
    "directives.nofollow": "the page asks that none of its links be followed",
}
"""Why a URL or a link was left out, by the rule's name."""


def status(value: Status) -> str:
    return STATUSES[value]


def cause(value: Cause) -> str:
    return CAUSES[value]


def code(http_status: int) -> str:
    """A status code with its phrase: "404 (Not Found)"."""
    phrase = UNREGISTERED.get(http_status)
    if phrase is None:
        try:
            phrase = HTTPStatus(http_status).phrase
        except ValueError:
            return str(http_status)
    return f"{http_status} ({phrase})"


def failure(value: Failure, http_status: int | None = None) -> str:
    """What an attempt met. `http_status`: the exact code, where the failure names only a family of them."""
    said = FAILURES.get(value)
    if said is None:
        return f"the server answered {code(int(value.value.removeprefix('http_')))}"
    if http_status is not None and value in (Failure.HTTP_1XX, Failure.HTTP_2XX, Failure.HTTP_OTHER):
        return f"{said}: {code(http_status)}"
    return said


def whose(value: Failure) -> str:
    """Whose affair a failure is."""
    return {
        "page": "the page's affair",
        "host": "perhaps the whole host's affair",
        "network": "somewhere between us and the host",
        "self": "our own affair, which counts against no page",
        "proxy": "a proxy's affair, which counts against no page",
    }[failure_class(value)]


def rule(name: str | None) -> str:
    """The rule behind the next visit, in words."""
    if name is None:
        return "no rule is recorded"
    if (said := RULES.get(name)) is not None:
        return said
    family, _, rest = name.partition(".")
    word = rest.removeprefix("error.")
    given_up = CAUSES.get(_CAUSE_WORDS[word]) if word in _CAUSE_WORDS else None
    if family == "retry" and rest.isdigit():
        return f"after {_errors(int(rest))} in a row it is tried again, each time after a longer wait"
    if family == "never":
        return f"{given_up or rest.replace('_', ' ')}: never again by itself"
    if family == "recrawl" and given_up is not None:
        return f"{given_up}: looked at again after a while, less often each time"
    return f"rule {name}"


_CAUSE_WORDS = {value.word: value for value in Cause}


def refusal(name: str) -> str:
    """The rule that left a URL out, in words; a line of robots.txt is quoted as it stands."""
    if (said := REFUSALS.get(name)) is not None:
        return said
    if name.startswith("scope.exclude:"):
        return f"the exclude pattern {name.removeprefix('scope.exclude:')!r} is found in it"
    if name.startswith("url."):
        return f"it is no URL that could be asked for: {name.removeprefix('url.')}"
    return f'robots.txt says "{name}"' if ":" in name else name


def outcome(value: Outcome) -> str:
    """What one attempt gave, as a sentence."""
    match value:
        case Page(status=number, body=body, truncated=truncated):
            cut = f", cut short ({truncated.replace('_', ' ')})" if truncated is not None else ""
            return f"The server sent a page of {len(body):,} bytes{cut}: {code(number)}."
        case NotModified():
            return "The page has not changed since the visit before: 304 (Not Modified)."
        case StillFresh():
            return "Nothing was asked: the last answer is still fresh by its own word."
        case Redirect(status=number, location=None):
            return f"The server redirected without saying where to: {code(number)}."
        case Redirect(status=number, location=location, target=target):
            return f"The server redirected to {target or location}: {code(number)}."
        case HttpError(status=number):
            return f"The server answered {code(number)}."
        case Failed(failure=met, detail=detail):
            return _sentence(failure(met), detail)
        case Refused(cause=why, rule=name):
            return _sentence(f"nothing was asked: {cause(why)}", refusal(name))
        case _:
            assert_never(value)


def entry(value: Entry) -> str:
    """What a URL is now, and why, as one sentence: the first thing to tell of it."""
    now, met = value.status, _met(value)
    if now is Status.DISCOVERED:
        return _sentence(STATUSES[now], met)
    if now is Status.REDIRECTION:
        return _sentence(
            f"it leads to {value.redirect_to}" if value.redirect_to else "it leads elsewhere, unsaid where"
        )
    if now is Status.FETCHED:
        if met is not None:
            return _sentence(f"fetched; at the latest attempt {met}")
        changed = value.history[-1].changed if value.history else None
        said = "fetched" if changed is None else f"fetched, and it had {'changed' if changed else 'not changed'}"
        return _sentence(said, value.detail)
    if now is Status.FETCH_ERROR:
        return _sentence(f"it failed, {_errors(value.errors)} in a row", met)
    why = CAUSES[value.cause] if value.cause is not None else "for a reason that is not recorded"
    if value.cause is Cause.MAX_ERRORS and value.errors:
        why = f"{_errors(value.errors)} in a row"
    elif value.cause in (Cause.ROBOTS, Cause.SCOPE, Cause.MALFORMED, Cause.BUDGET) and value.detail is not None:
        met = refusal(value.detail)
    return _sentence(f"given up: {why}", met if met != why else None)


def past(value: PastVisit) -> str:
    """One line of an entry's history, as a clause."""
    if value.failure is not None:
        return failure(value.failure, value.http_status)
    if value.cause is not None and value.status is Status.ERROR:
        return CAUSES[value.cause]
    said = STATUSES[value.status] if value.http_status is None else f"the server answered {code(value.http_status)}"
    return said if value.changed is None else f"{said}, {'changed' if value.changed else 'unchanged'}"


def _met(value: Entry) -> str | None:
    if value.failure is None:
        return None
    said = failure(value.failure, value.http_status)
    return f"{said} ({value.detail})" if value.detail is not None else said


def _errors(n: int) -> str:
    return f"{n} error" if n == 1 else f"{n} errors"


def _sentence(said: str, more: str | None = None) -> str:
    text = f"{said}: {more}" if more else said
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
