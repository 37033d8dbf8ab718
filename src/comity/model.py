"""What flows through the crawler.

One `Entry` goes in, one `Visit` comes out. Everything between the two is made of the frozen values below, and nothing
here has behaviour: the decisions (layer 1) are functions over these values, and the edges (layer 3) carry them.

Invariants, kept by whoever builds a value:

* instants end in ``_at`` (float seconds since the epoch, UTC), durations in ``_s``, sizes in ``_bytes``; ``None`` means
  absent, never 0 or -1;
* a value is never changed; a change is a new value (``msgspec.structs.replace``);
* the enums are closed. Their numbers and words are stored and published, so a member may be added at the end and never
  renumbered or renamed.

Structs are msgspec's with ``gc=False``: none of them can be part of a cycle, making one costs about 0.1 µs, and a
crawl keeps many (measured in the frontier's benchmarks). This module refuses to know how any value is stored,
fetched or shown.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

import msgspec

Metadata: TypeAlias = dict[str, tuple[str, ...]]
"""The user's own multi-map. Opaque to comity: `comity.metadata` alone decides what is kept and handed on."""

Headers: TypeAlias = tuple[tuple[str, str], ...]
"""HTTP fields in the order received: (name in lower case, value decoded as Latin-1, outer white space removed)."""

Mark: TypeAlias = dict[str, int]
"""Where a sink stands, in its own terms (for a file sink: file number and byte offset). Stored by `Frontier.settle`."""


class Status(enum.IntEnum):
    """StormCrawler's five words (reference: its `Status` enum), so that its ecosystem can read our frontier."""

    DISCOVERED = 0
    FETCHED = 1
    REDIRECTION = 2
    FETCH_ERROR = 3
    ERROR = 4


class Cause(enum.IntEnum):
    """Why a status is what it is. Its word, used in every output, is the name in lower case."""

    ROBOTS = 1
    MAX_ERRORS = 2
    GONE = 3
    SCOPE = 4
    CRAWL_DELAY = 5
    MALFORMED = 6
    REDIRECT_LOOP = 7
    PARSE = 8
    BUDGET = 9
    FORBIDDEN_ADDRESS = 10

    @property
    def word(self) -> str:
        return self.name.lower()


class Failure(enum.StrEnum):
    """What the last attempt met. Kept beside the cause, and countable.

    `HTTP_nnn`: the codes of IANA and those that servers send besides; any other is `HTTP_OTHER` (see `http_status`).
    """

    # the name and the address
    DNS = "dns"  # the name does not exist, or has no address
    DNS_TEMPORARY = "dns_temporary"  # no server answered, or SERVFAIL
    FORBIDDEN_ADDRESS = "forbidden_address"
    FORBIDDEN_PORT = "forbidden_port"
    # the connection
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    TLS = "tls"
    RESET = "reset"
    TIMEOUT_DNS = "timeout_dns"
    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_READ = "timeout_read"  # too long between two bytes
    TIMEOUT_TOTAL = "timeout_total"
    # the message
    PROTOCOL = "protocol"  # not HTTP, or broken HTTP
    HEADERS_TOO_LARGE = "headers_too_large"
    CUT_OFF = "cut_off"  # the body ended before its announced end
    DECODE = "decode"  # a content coding we cannot undo
    BOMB = "bomb"  # decoded size out of all proportion
    REDIRECT_WITHOUT_LOCATION = "redirect_without_location"
    REDIRECT_BAD_LOCATION = "redirect_bad_location"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    # ours or between us and the host: counts for nobody
    SELF = "self"  # our own machine or programme: descriptors, memory, a bug
    PROXY = "proxy"
    # what came back
    PARSE = "parse"
    HTTP_1XX = "http_1xx"
    HTTP_400 = "http_400"
    HTTP_401 = "http_401"
    HTTP_402 = "http_402"
    HTTP_403 = "http_403"
    HTTP_404 = "http_404"
    HTTP_405 = "http_405"
    HTTP_406 = "http_406"
    HTTP_407 = "http_407"
    HTTP_408 = "http_408"
    HTTP_409 = "http_409"
    HTTP_410 = "http_410"
    HTTP_411 = "http_411"
    HTTP_412 = "http_412"
    HTTP_413 = "http_413"
    HTTP_414 = "http_414"
    HTTP_415 = "http_415"
    HTTP_416 = "http_416"
    HTTP_417 = "http_417"
    HTTP_418 = "http_418"
    HTTP_421 = "http_421"
    HTTP_422 = "http_422"
    HTTP_423 = "http_423"
    HTTP_424 = "http_424"
    HTTP_425 = "http_425"
    HTTP_426 = "http_426"
    HTTP_428 = "http_428"
    HTTP_429 = "http_429"
    HTTP_431 = "http_431"
    HTTP_451 = "http_451"
    HTTP_500 = "http_500"
    HTTP_501 = "http_501"
    HTTP_502 = "http_502"
    HTTP_503 = "http_503"
    HTTP_504 = "http_504"
    HTTP_505 = "http_505"
    HTTP_506 = "http_506"
    HTTP_507 = "http_507"
    HTTP_508 = "http_508"
    HTTP_510 = "http_510"
    HTTP_511 = "http_511"
    HTTP_520 = "http_520"
    HTTP_521 = "http_521"
    HTTP_522 = "http_522"
    HTTP_523 = "http_523"
    HTTP_524 = "http_524"
    HTTP_525 = "http_525"
    HTTP_526 = "http_526"
    HTTP_530 = "http_530"
    HTTP_999 = "http_999"
    HTTP_2XX = "http_2xx"  # a success code outside the profile's success set
    HTTP_OTHER = "http_other"


class Access(enum.StrEnum):
    """What an origin's robots.txt means for us now."""

    RULES = "rules"  # a file was read: ask it
    ALLOW = "allow"  # there is none (404, 410, …)
    DISALLOW = "disallow"  # access to it was refused (401, 403), and policy reads that as no
    UNREACHABLE = "unreachable"  # cannot be had now: wait; the last good copy, if any, speaks


class Kind(enum.StrEnum):
    """What a request is for. All kinds go through the same wrapper and count alike for politeness."""

    PAGE = "page"
    ROBOTS = "robots"


class LinkKind(enum.StrEnum):
    """Where a link was found."""

    ANCHOR = "a"
    AREA = "area"
    FRAME = "frame"
    NEXT = "next"
    ALTERNATE = "alternate"
    CANONICAL = "canonical"
    REFRESH = "refresh"
    SITEMAP = "sitemap"  # names a sitemap (robots.txt, or a sitemap index)
    SITEMAP_URL = "sitemap_url"  # an entry of a sitemap
    FEED = "feed"  # names a feed
    REDIRECT = "redirect"


class PastVisit(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One line of an entry's short history."""

    at: float
    status: Status
    cause: Cause | None = None
    changed: bool | None = None  # did the content differ from the visit before? None: not known
    http_status: int | None = None
    failure: Failure | None = None


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What the frontier knows of one URL.

    `url` is what is asked and shown, in the first spelling seen; `key` is what is compared (one entry per key); `host`
    is the host key, the unit of politeness, storage and ownership. `version` grows by one with every settled visit and
    guards the settle. `seq` is the order of discovery. Both are assigned by the frontier.
    """

    url: str
    key: str
    host: str
    status: Status = Status.DISCOVERED
    due_at: float | None = None  # None: never again by itself
    seq: int = 0
    version: int = 0
    discovered_at: float = 0.0
    depth: int = 0  # links from a seed; a redirect adds none
    hops: int = 0  # redirects in a row before this URL
    via: str | None = None  # URL of the page that named it; None for a seed
    is_sitemap: bool = False
    is_feed: bool = False
    hint_at: float | None = None  # a sitemap's lastmod or a feed's date
    cause: Cause | None = None
    failure: Failure | None = None
    detail: str | None = None  # the failure in words, e.g. libcurl's
    errors: int = 0  # FETCH_ERRORs in a row
    first_error_at: float | None = None  # when that row began
    visited_at: float | None = None
    http_status: int | None = None
    redirect_to: str | None = None  # Location as received
    etag: str | None = None  # validators exactly as received
    last_modified: str | None = None
    fresh_until_at: float | None = None
    digest: str | None = None  # of the last body (SHA-256, hex)
    changed_at: float | None = None  # when the body was last seen to differ
    next_rule: str | None = None  # the named rule that set due_at
    rules_digest: str | None = None  # of the robots rules that refused it (origin included)
    metadata: Metadata = {}
    history: tuple[PastVisit, ...] = ()  # the last eight, oldest first
    place: str | None = None  # of its last event in the crawl log
    size_bytes: int | None = None  # of the last body, decoded: what a 304 saves
    chain: tuple[str, ...] = ()  # keys of the redirects that led here, oldest first


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What robots.txt says about one URL, and which line says so."""

    allowed: bool
    access: Access
    group: str | None = None  # the token of the group that applied ("*" for the general one)
    line: int | None = None  # 1-based line of the deciding rule; None: no rule matches
    rule: str | None = None  # that line's text, e.g. "Disallow: /private/"
    digest: str | None = None  # of the robots.txt body (SHA-256, hex)


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request, decided. Only a host's wrapper may hand it to a fetcher."""

    url: str
    kind: Kind = Kind.PAGE
    etag: str | None = None
    last_modified: str | None = None
    max_body_bytes: int | None = None  # None: the fetcher's own limit


class Wire(msgspec.Struct, frozen=True, gc=False):
    """What went over the wire, byte for byte, and when. Kept apart from our reading of it."""

    request: bytes  # request line and fields as sent
    response: bytes  # status line and fields as received, interim (1xx) responses left out
    started_at: float
    finished_at: float
    heard_at: float | None = None  # first byte of the answer; None: no answer
    service_s: float = 0.0  # libcurl TOTAL - PRETRANSFER: our own queueing never counts
    address: str | None = None  # the IP address connected to
    port: int | None = None
    http_version: str | None = None
    reused: bool = False  # an open connection was used
    body_bytes: int = 0  # received, before content decoding
    payload: bytes = b""  # the body as received; kept only when a sink asks for it


class Page(msgspec.Struct, frozen=True, gc=False, tag="page"):
    """A 2xx with its decoded body. `truncated` says why the body is not whole ("length", "unasked_206", …)."""

    status: int
    headers: Headers
    body: bytes
    truncated: str | None = None


class NotModified(msgspec.Struct, frozen=True, gc=False, tag="not_modified"):
    """304: the stored body is still the page's; these fields update the stored ones (RFC 9111 3.2)."""

    headers: Headers


class StillFresh(msgspec.Struct, frozen=True, gc=False, tag="still_fresh"):
    """The last answer is still fresh by its own word; nothing was asked."""

    until_at: float


class Redirect(msgspec.Struct, frozen=True, gc=False, tag="redirect"):
    """Any 3xx but 304. `location` is the field as received, None if absent or blank; `target` is it resolved, None if
    it names nothing we could ask for."""

    status: int
    headers: Headers
    location: str | None = None
    target: str | None = None


class HttpError(msgspec.Struct, frozen=True, gc=False, tag="http_error"):
    """Any other answer: 1xx as a final one, 4xx, 5xx and beyond."""

    status: int
    headers: Headers


class Failed(msgspec.Struct, frozen=True, gc=False, tag="failed"):
    """No usable answer. `detail` is for people."""

    failure: Failure
    detail: str = ""


class Refused(msgspec.Struct, frozen=True, gc=False, tag="refused"):
    """We decided not to ask. `rule` names the rule (of robots.txt, of the scope, of policy) that decided."""

    cause: Cause
    rule: str
    verdict: Verdict | None = None


Outcome: TypeAlias = Page | NotModified | StillFresh | Redirect | HttpError | Failed | Refused


class Link(msgspec.Struct, frozen=True, gc=False):
    """One link, resolved. `nofollow`: this very link asks not to be followed (rel=nofollow, ugc, sponsored)."""

    url: str
    key: str
    host: str
    kind: LinkKind = LinkKind.ANCHOR
    nofollow: bool = False
    hint_at: float | None = None  # lastmod, or a feed entry's date


class Directives(msgspec.Struct, frozen=True, gc=False):
    """The page's wishes: union of the restrictive ones of X-Robots-Tag and meta robots, general and for our token."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    nosnippet: bool = False
    unavailable_after_at: float | None = None
    seen: tuple[str, ...] = ()  # every rule read, known or not, for the record


class Found(msgspec.Struct, frozen=True, gc=False):
    """What was read in a page."""

    kind: str  # "html", "sitemap", "sitemapindex", "text_sitemap", "text", "other"
    links: tuple[Link, ...] = ()
    links_left_out: int = 0  # beyond the limit
    title: str | None = None
    text: str | None = None
    language: str | None = None
    charset: str | None = None
    media_type: str | None = None
    canonical: str | None = None
    refresh: str | None = None  # target of a meta refresh, resolved
    directives: Directives = Directives()
    deep: bool = False  # nested beyond the limit; start tags left out
    truncated: bool = False  # cut before reading
    problem: str | None = None  # could not be read as what it claims to be


class Deletion(msgspec.Struct, frozen=True, gc=False):
    """A document to be removed from every output. `id` is the SHA-256 of the key, hex; `seq` is the outbox's order,
    given by the frontier (0 until then)."""

    id: str
    url: str
    at: float
    cause: Cause | None = None
    seq: int = 0
    version: int = 0


class Visit(msgspec.Struct, frozen=True, gc=False):
    """Everything about one visit. All that outputs, tallies and the crawl log see."""

    entry: Entry  # as claimed
    outcome: Outcome
    after: Entry  # what it became
    at: float
    found: Found | None = None
    wire: Wire | None = None
    verdict: Verdict | None = None
    discoveries: tuple[Entry, ...] = ()
    refused_links: dict[str, int] = {}  # links not kept, by rule name
    deletion: Deletion | None = None
    waited_s: float = 0.0  # for the host's clock and a free slot


class RobotsState(msgspec.Struct, frozen=True, gc=False):
    """One origin's robots.txt as last seen. The body itself is stored once, by digest."""

    access: Access = Access.UNREACHABLE
    digest: str | None = None  # of the last good body
    rules_digest: str | None = None  # of the compiled rules for our token, origin included
    http_status: int | None = None  # of the last answer
    failure: Failure | None = None  # of the last attempt
    fetched_at: float | None = None  # of the last good answer
    asked_at: float | None = None  # of the last attempt
    expires_at: float = 0.0  # ask again from then on
    unreachable_since_at: float | None = None
    attempts: int = 0  # failed attempts in a row
    previous_digest: str | None = None  # the copy before, when it differed


class HostState(msgspec.Struct, frozen=True, gc=False):
    """What is known of a host between two requests; `comity.politeness` reads and writes it, the frontier keeps it."""

    next_at: float = 0.0  # the politeness clock
    not_before_at: float = 0.0  # the longest hold
    hold_reason: str | None = None
    wanted_s: float | None = None  # named by robots.txt (Crawl-delay, Request-rate); None: none named
    widened_s: float = 0.0  # learned from 429 and 503
    throttled: int = 0  # 429 and 503 in a row
    good: int = 0  # good answers in a row
    recent: tuple[bool, ...] = ()  # did the last five fail?
    in_flight: int = 0
    address: str | None = None
    pages: int = 0  # pages fetched, ever
    robots: dict[str, RobotsState] = {}  # by origin


class RobotsFile(msgspec.Struct, frozen=True, gc=False):
    """A robots.txt body as first seen, kept by digest so that every past decision can be replayed."""

    digest: str
    body: bytes
    url: str
    at: float


class Change(msgspec.Struct, frozen=True, gc=False):
    """One visit's effect on its entry. The store applies it only while its row still has `before.version`."""

    before: Entry
    after: Entry


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """What the engine tells the frontier about one host."""

    host: str
    token: int
    changes: tuple[Change, ...] = ()
    discoveries: tuple[Entry, ...] = ()
    state: HostState | None = None  # None: unchanged
    deletions: tuple[Deletion, ...] = ()
    robots: tuple[RobotsFile, ...] = ()
    give_back: bool = False
    visits: int = 0  # for the counters: visits settled here, robots files left out


class Settled(msgspec.Struct, frozen=True, gc=False):
    """What a settle did. `stale`: hosts whose token was out of date; nothing of theirs but discoveries was applied."""

    stale: tuple[str, ...] = ()
    new: int = 0  # discoveries inserted
    improved: int = 0  # known, never visited, now with a smaller depth or more flags


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A lease on a host."""

    host: str
    token: int
    entries: tuple[Entry, ...]
    state: HostState


class Claims(msgspec.Struct, frozen=True, gc=False):
    """The answer to a claim: hosts now ours, and when the next unowned host will be ready (None: none is scheduled)."""

    claims: tuple[Claim, ...]
    next_ready_at: float | None = None


class Stats(msgspec.Struct, frozen=True, gc=False):
    """Counters kept at settle, never scanned for."""

    by_status: dict[str, int]
    by_cause: dict[str, int]  # of ERROR
    by_failure: dict[str, int]  # of FETCH_ERROR and ERROR
    urls: int
    hosts: int
    visits: int
    next_ready_at: float | None = None
    held: tuple[tuple[str, float, str], ...] = ()  # (host, not before, reason), the first hundred by time
