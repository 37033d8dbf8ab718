"""What an attempt met, in one word, and whose affair that is.

Owns the way from an outcome to a `Failure`, and the five classes into which failures fall:

    page     this page's affair: the host works, the page does not
    host     the host as a whole may be in trouble: it refuses, is slow, breaks off, or says so (429, 5xx)
    network  somewhere between us and the host; neither of the two need be at fault
    self     our own machine, programme or rules: the host was never asked
    proxy    a proxy of ours

Both are total: every outcome has an answer and every failure a class, so that nothing is ever counted under "unknown"
or lost (StormCrawler keeps of a network failure one word, and drops it before storing). Codes that IANA registered and
those that servers really send have a failure each; the others share `HTTP_OTHER`, the number being kept beside it.

Refuses to know what follows: whether a failure counts, and when the URL is tried again, is `lifecycle`'s to say; what
it means for the host's clock is `politeness`'.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from comity.model import Failed, Failure, HttpError, Outcome, Redirect

Class: TypeAlias = Literal["page", "host", "network", "self", "proxy"]

_OF_STATUS = {
    int(failure.value[5:]): failure
    for failure in Failure
    if failure.value[:5] == "http_" and failure.value[5:].isdigit()
}


def of_status(status: int) -> Failure:
    """The failure that an HTTP status code is, when it is one. Total: 0 and negative numbers are `HTTP_OTHER`."""
    known = _OF_STATUS.get(status)
    if known is not None:
        return known
    if 100 <= status < 200:
        return Failure.HTTP_1XX
    if 200 <= status < 300:
        return Failure.HTTP_2XX
    return Failure.HTTP_OTHER


def failure_of(outcome: Outcome) -> Failure | None:
    """What went wrong, whatever the profile makes of it; None: nothing did, or nobody was asked.

    A 2xx is no failure here: whether 202, say, is a success is the profile's choice (`of_status` names it if not).
    """
    match outcome:
        case Failed(failure=failure):
            return failure
        case HttpError(status=status):
            return of_status(status)
        case Redirect(location=location, target=None):
            return Failure.REDIRECT_WITHOUT_LOCATION if location is None else Failure.REDIRECT_BAD_LOCATION
        case _:
            return None


_CLASSES: dict[Failure, Class] = {
    **dict.fromkeys(
        (
            Failure.DNS,
            Failure.REFUSED,
            Failure.TLS,
            Failure.RESET,
            Failure.TIMEOUT_CONNECT,
            Failure.TIMEOUT_READ,
            Failure.TIMEOUT_TOTAL,
            Failure.PROTOCOL,
            Failure.CUT_OFF,
            Failure.HTTP_429,
            Failure.HTTP_999,  # a social network's way of saying 429
        ),
        "host",
    ),
    **{failure: "host" for status, failure in _OF_STATUS.items() if 500 <= status < 600},
    **dict.fromkeys((Failure.DNS_TEMPORARY, Failure.TIMEOUT_DNS, Failure.UNREACHABLE), "network"),
    **dict.fromkeys((Failure.SELF, Failure.FORBIDDEN_ADDRESS, Failure.FORBIDDEN_PORT), "self"),
    Failure.PROXY: "proxy",
}


def failure_class(failure: Failure) -> Class:
    """Whose affair it is. Whatever is not known to be another's is the page's."""
    return _CLASSES.get(failure, "page")
