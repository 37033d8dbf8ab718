"""The user's own metadata: which keys a page keeps, which it hands to its links; and the StormCrawler view of an entry.

Two kinds of facts live in an entry. What comity knows itself (depth, dates, counts, causes) are typed fields, always
stored, never in the way of the user's keys. What the user brought with a seed is an opaque multi-map, governed by two
lists: a key in `transfer` is kept by the page *and* handed to its links, one in `persist` is kept by the page alone,
any other is let go when the entry is stored. An entry of a list that ends in ``*`` is a prefix (T122–T126).

StormCrawler keeps both kinds in one map of strings and forgets much of the first (P09, P11). `render` and `report` show
an entry as that map would be, so that its users read ours: `render` is what StormCrawler would have kept, `report` says
besides what one event brought and the lists did not keep. What was cleared because it no longer holds, an error count
after a success, is not dropped: it is over.

Where ours differs, on purpose: lists add to the keys that are always kept, they never replace them (P10); `isSitemap`
and `isFeed` are rendered only when true (an absent one reads the same); `_redirTo` and `error.cause` go when they no
longer hold (P07).

Refuses to know events, profiles and stores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from comity.model import Cause, Entry, Failure, Metadata, Status

ALWAYS = frozenset({"fetch.error.count", "_redirTo", "error.cause", "error.source", "isSitemap", "isFeed"})
"""Rendered keys that are kept whatever the lists say: StormCrawler's default `metadata.persist`, and the count."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The two lists, and whether depth and path are shown as metadata (they are known in any case)."""

    transfer: tuple[str, ...] = ()
    persist: tuple[str, ...] = ()
    track_depth: bool = True
    track_path: bool = True
    _transfers: _Keys = field(init=False, repr=False, compare=False)
    _keeps: _Keys = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tracked = (*(("depth", "max.depth") if self.track_depth else ()), *(("url.path",) if self.track_path else ()))
        handed = (*self.transfer, *tracked)
        object.__setattr__(self, "_transfers", _Keys.of(handed))
        object.__setattr__(self, "_keeps", _Keys.of((*handed, *self.persist, "fetch.error.count")))


class _Keys(NamedTuple):
    """A list of keys and prefixes, made ready."""

    whole: frozenset[str]
    prefixes: tuple[str, ...]

    @classmethod
    def of(cls, listed: Iterable[str]) -> _Keys:
        names = frozenset(listed)
        prefixes = tuple(sorted(name[:-1] for name in names if name.endswith("*")))
        return cls(frozenset(name for name in names if not name.endswith("*")), prefixes)

    def have(self, key: str) -> bool:
        return key in self.whole or key.startswith(self.prefixes)


DEFAULT = Policy()


def for_link(parent: Metadata, policy: Policy = DEFAULT) -> Metadata:
    """What a page's links inherit from it (the same for redirect targets, sitemap children and feed items)."""
    return {key: values for key, values in parent.items() if policy._transfers.have(key)} if parent else {}


def keep(metadata: Metadata, policy: Policy = DEFAULT) -> Metadata:
    """What of its metadata a page keeps when it is stored."""
    return {key: values for key, values in metadata.items() if policy._keeps.have(key)} if metadata else metadata


def dropped(metadata: Metadata, policy: Policy = DEFAULT) -> tuple[str, ...]:
    """The keys that are let go when a page with these metadata is stored, in order."""
    return tuple(key for key in metadata if not policy._keeps.have(key))


# ---------------------------------------------------------------------------------------------- as StormCrawler sees it

CAUSE_WORDS = {
    Cause.ROBOTS: "robots.txt",
    Cause.CRAWL_DELAY: "crawl_delay",
    Cause.MALFORMED: "malformed URL",
    Cause.MAX_ERRORS: "maxFetchErrors",
}
"""`error.cause` in StormCrawler's words; a cause that it does not have keeps ours."""

EXCEPTION_WORDS = {
    Failure.TIMEOUT_DNS: "Socket timeout fetching",
    Failure.TIMEOUT_CONNECT: "Socket timeout fetching",
    Failure.TIMEOUT_READ: "Socket timeout fetching",
    Failure.TIMEOUT_TOTAL: "Socket timeout fetching",
    Failure.DNS: "Unknown host",
    Failure.DNS_TEMPORARY: "Unknown host",
    Failure.REFUSED: "java.net.ConnectException",
    Failure.UNREACHABLE: "java.net.NoRouteToHostException",
    Failure.RESET: "java.net.SocketException",
    Failure.TLS: "javax.net.ssl.SSLException",
}
"""`fetch.exception`, where StormCrawler has a word of its own or a class that its users look for."""

ANSWERED = frozenset(
    {
        Failure.REDIRECT_WITHOUT_LOCATION,
        Failure.REDIRECT_BAD_LOCATION,
        Failure.TOO_MANY_REDIRECTS,
        Failure.PARSE,
        *(failure for failure in Failure if failure.value.startswith("http_")),
    }
)
"""Failures that are an answer we do not like. All others are exceptions, in StormCrawler's terms."""


class Rendered(NamedTuple):
    """What one event left of an entry's metadata, and the keys it brought that were not kept (sorted)."""

    kept: dict[str, list[str]]
    dropped: list[str]


def exception_word(failure: Failure) -> str | None:
    """StormCrawler's `fetch.exception` of a failure; None: the server answered, which is no exception."""
    if failure in ANSWERED:
        return None
    known = EXCEPTION_WORDS.get(failure)
    return known if known is not None else f"comity.{failure.value.title().replace('_', '')}Exception"


def processed_at(entry: Entry) -> float | None:
    """When the entry was last settled, refusals included: StormCrawler's `lastProcessedDate`. None: never."""
    return entry.history[-1].at if entry.history else entry.visited_at


def render(entry: Entry, policy: Policy = DEFAULT, *, path: Sequence[str] = ()) -> dict[str, list[str]]:
    """The metadata that StormCrawler would have stored with this entry: the user's keys first, then its own.

    `path`: the URLs of the pages that led here, seed first, where the caller knows them (`url.path`). An entry that no
    page named has neither path nor depth. Dates are ISO 8601 in UTC.
    """
    shown = {key: list(values) for key, values in entry.metadata.items() if values and policy._keeps.have(key)}
    shown |= {key: value for key, value in _own(entry, policy, path) if key in ALWAYS or policy._keeps.have(key)}
    return shown


def report(
    entry: Entry,
    policy: Policy = DEFAULT,
    *,
    path: Sequence[str] = (),
    old: Status | None = None,
    given: Collection[str] = (),
) -> Rendered:
    """`render`, and which keys this event brought in vain. `old` is the status before; None: it was just discovered.

    A discovery brings its date and whatever the seed was `given`; a visit brings its own date and, if the network
    failed, the words for it. Keys dropped by an earlier event came no further and are not named again.
    """
    brought: set[str] = set(given)
    if old is None:
        brought.add("discoveryDate")
    else:
        brought.add("lastProcessedDate")
        if entry.failure is not None and exception_word(entry.failure) is not None:
            brought.add("fetch.exception")
    kept = render(entry, policy, path=path)
    return Rendered(kept, sorted(brought - kept.keys()))


def _own(entry: Entry, policy: Policy, path: Sequence[str]) -> Iterable[tuple[str, list[str]]]:
    """Every fact of comity's own that StormCrawler has a key for."""
    if entry.via is not None:
        if path and policy.track_path:
            yield "url.path", list(path)
        if policy.track_depth:
            yield "depth", [str(entry.depth)]
    if entry.is_sitemap:
        yield "isSitemap", ["true"]
    if entry.is_feed:
        yield "isFeed", ["true"]
    yield "discoveryDate", [instant(entry.discovered_at)]
    if (at := processed_at(entry)) is not None:
        yield "lastProcessedDate", [instant(at)]
    if entry.http_status is not None:
        yield "fetch.statusCode", [str(entry.http_status)]
    if entry.failure is not None and (word := exception_word(entry.failure)) is not None:
        yield "fetch.exception", [word]
    if entry.status is Status.FETCH_ERROR:
        yield "fetch.error.count", [str(entry.errors)]
    if entry.status is Status.ERROR and entry.cause is Cause.PARSE:
        yield "error.source", [_source(entry)]
        if entry.detail:
            yield "error.message", [entry.detail]
    elif entry.status is Status.ERROR and entry.cause is not None:
        yield "error.cause", [CAUSE_WORDS.get(entry.cause, entry.cause.word)]
    if entry.redirect_to is not None:
        yield "_redirTo", [entry.redirect_to]


def _source(entry: Entry) -> str:
    if entry.is_sitemap:
        return "sitemap parsing"
    return "feed parsing" if entry.is_feed else "content parsing"


def instant(at: float) -> str:
    """ISO 8601 in UTC, to the second, or to the millisecond where there is a fraction: ``2026-11-03T10:15:30Z``."""
    moment = datetime.fromtimestamp(at, UTC)
    text = moment.isoformat(timespec="milliseconds" if moment.microsecond >= 500 else "seconds")
    return text.replace("+00:00", "Z")
