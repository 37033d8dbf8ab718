"""Every option once: name, type, default, what it means and why the default is what it is.

Invariant: an option exists here or nowhere. Its comment in ``comity.toml``, its row in docs/configuration.md, its check
when a file is read and its place in the policies all come from the one definition below. Durations end in ``_s``, sizes
in ``_bytes``; ``None`` means no limit, or what the description says.

Why structs and not a schema elsewhere: the type checker then sees every use of an option.

Refuses to know files, flags and the decisions that the options steer (`policies` builds those).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, field

Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Duration: TypeAlias = Annotated[float, Meta(gt=0)]
Bytes: TypeAlias = Annotated[int, Meta(ge=1)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
Texts: TypeAlias = tuple[str, ...]
Codes: TypeAlias = tuple[Annotated[int, Meta(ge=100, le=999)], ...]
Interval: TypeAlias = Seconds | Literal["never"]


def about(what: str, why: str = "", *, like: Any = None, **limits: Any) -> Meta:
    """`like`: an example, for options that have no value unless given one."""
    return Meta(description=what, extra={"why": why, "like": like}, **limits)


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks. Every request carries `product/version (+contact)` as its User-Agent."""

    contact: Annotated[
        str | None,
        about(
            "a URL or a mail address at which the operator can be reached",
            "a crawl does not start without one (flag, COMITY_CONTACT, here, or remembered), unless it stays on this "
            "machine",
            like="https://your.site/crawler",
        ),
    ] = None
    product: Annotated[
        str, about("the name robots.txt is asked for, letters, '-' and '_' only", "your crawl, your name")
    ] = "comity"
    version: Annotated[str | None, about("the version after the name; unless given, comity's own", like="1.0")] = None
    from_: Annotated[
        str | None,
        about(
            "a mail address sent as the From field",
            "not sent unless given: it goes to every site",
            like="you@your.site",
        ),
    ] = field(default=None, name="from")


class Seeds(msgspec.Struct, frozen=True, kw_only=True):
    """Where the crawl begins, besides what the command line says."""

    urls: Annotated[Texts, about("URLs to begin with")] = ()
    files: Annotated[
        Texts, about("files of URLs, one a line, relative to this file; the default one may be missing")
    ] = ("seeds.txt",)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Which URLs are ours. Applied when a link is found, and again when its turn comes."""

    mode: Annotated[
        Literal["host", "domain", "any"],
        about(
            "stay on the seeds' hosts, within their registrable domains, or follow every link",
            "a site is usually a domain and its sub-domains; the web is rarely what one meant",
        ),
    ] = "domain"
    include: Annotated[Texts, about("regular expressions: if there are any, one must be found in the URL")] = ()
    exclude: Annotated[Texts, about("regular expressions: none may be found in the URL")] = ()
    max_depth: Annotated[Count | None, about("links from a seed; redirects add none", like=5)] = None
    max_hops: Annotated[Count, about("redirects in a row", "browsers stop at 20, robots.txt's standard at 5")] = 10
    max_url_length: Annotated[
        Positive, about("characters", "the sitemap protocol's own bound; longer ones carry state, not names")
    ] = 2048
    max_repeats: Annotated[
        Positive, about("times in a row that a part of the path may stand", "/a/b/a/b/a/b is a trap's work")
    ] = 3
    max_segments: Annotated[Positive, about("slashes in the path", "deeper paths are not made by hand")] = 30
    max_pages_per_host: Annotated[Positive | None, about("pages fetched from one host, ever", like=10_000)] = None


class Urls(msgspec.Struct, frozen=True, kw_only=True):
    """What else two URLs may differ in and still be one. Changes what is compared, never what is asked."""

    drop_query_params: Annotated[
        Texts, about('query parameters that do not count; a final * is a prefix, e.g. "utm_*"')
    ] = ()
    sort_query: Annotated[bool, about("the order of parameters does not count")] = False
    drop_empty_query: Annotated[bool, about("a lone ? and empty parameters do not count")] = False
    collapse_slashes: Annotated[bool, about("doubled slashes in the path count as one")] = False


class Politeness(msgspec.Struct, frozen=True, kw_only=True):
    """How a host is asked: never faster than this, more slowly when it says so."""

    delay_s: Annotated[
        Seconds,
        about(
            "from one request to the next, where robots.txt names no delay",
            "one page a second is what a quick reader asks for",
        ),
    ] = 1.0
    min_delay_s: Annotated[Seconds, about("never faster than this, whatever robots.txt says")] = 0.0
    response_factor: Annotated[
        float,
        about(
            "after a slow answer, rest this many times as long as it took",
            "a slow host is a busy one; does not apply when delay_s is 0",
            ge=0,
        ),
    ] = 1.0
    crawl_delay_limit_s: Annotated[
        Seconds, about("a delay named by robots.txt above this is shown (obeyed) or refused, see on_long_delay")
    ] = 86_400.0
    on_long_delay: Annotated[
        Literal["obey", "refuse"], about("what to do with a longer one", "it is the site's word")
    ] = "obey"
    retry_after_limit_s: Annotated[
        Seconds, about("Retry-After is obeyed up to this", "a typing error must not close a site for a year")
    ] = 604_800.0
    host_backoff: Annotated[
        bool,
        about("slow down and wait after 429, 503 and repeated failures", "false only for tests and your own sites"),
    ] = True
    per: Annotated[
        Literal["host", "domain", "ip"],
        about(
            "what shares one clock: a host name, or a registrable domain with all its hosts",
            '"domain" is kinder to hosting services and slower; "ip" is not built yet',
        ),
    ] = "host"


class Robots(msgspec.Struct, frozen=True, kw_only=True):
    """How robots.txt is read (RFC 9309)."""

    forbidden: Annotated[
        Literal["disallow", "allow"],
        about(
            "what 401 and 403 for robots.txt mean", "who locks the rules away does not invite; the RFC allows either"
        ),
    ] = "disallow"
    client_error: Annotated[
        Literal["allow", "disallow"], about("what 404 and the other 4xx but 429 mean", "no rules: RFC 9309 2.3.1.3")
    ] = "allow"
    min_age_s: Annotated[Seconds, about("a copy is kept at least so long, whatever its Cache-Control")] = 300.0
    max_age_s: Annotated[Seconds, about("a copy is kept at most so long", "RFC 9309 2.4: at most a day")] = 86_400.0
    retry_first_s: Annotated[Seconds, about("first pause when it cannot be had; each further one doubles")] = 60.0
    retry_max_s: Annotated[Seconds, about("the longest such pause")] = 3600.0
    copy_limit_s: Annotated[
        Seconds,
        about("the last good copy speaks for so long while the file cannot be had", "RFC 9309 2.3.1.4: 30 days"),
    ] = 2_592_000.0
    max_redirects: Annotated[Count, about("redirects followed to find it", "RFC 9309 2.3.1.2: at least five")] = 5
    max_bytes: Annotated[Bytes, about("how much of it is read", "RFC 9309 2.5: at least 500 KiB")] = 524_288
    follow_sitemaps: Annotated[bool, about("the sitemaps it names are visited too")] = True
    judge_links: Annotated[
        bool,
        about(
            "links to sites whose rules are at hand are judged when found",
            "saves a row that could never be fetched; every URL is judged again before it is asked for",
        ),
    ] = True
    reopen: Annotated[
        bool, about("URLs that it refused are judged again when its rules change", "a rule taken back is an invitation")
    ] = True


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Which addresses may be connected to. A crawler follows strangers' links: they must not lead inside."""

    allow_private: Annotated[
        bool | Texts,
        about(
            'which private, loopback and other special addresses may be connected to: networks such as "10.1.0.0/16", '
            "or true for all",
            "only for crawls of your own network",
        ),
    ] = False
    deny: Annotated[Texts, about("further networks that are never connected to")] = ()
    ports: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=65_535)], ...],
        about("if there are any, only these ports; else all but those that other services use (Fetch standard)"),
    ] = ()
    mixed: Annotated[
        Literal["refuse", "drop"],
        about(
            "a name with both public and forbidden addresses: refuse it, or use the public ones",
            "an honest name has no reason to point inside",
        ),
    ] = "refuse"
    nat64: Annotated[
        bool, about("your network reaches IPv4 through NAT64 (64:ff9b::/96): the IPv4 address inside is judged")
    ] = False


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """What differs for one host: `[hosts."your.site"]`."""

    delay_s: Annotated[Seconds | None, about("instead of politeness.delay_s", like=0.2)] = None
    in_flight: Annotated[
        Annotated[int, Meta(ge=1, le=4)],
        about("requests at once, 1 to 4; starts stay spaced", "more than one only for your own sites, or by consent"),
    ] = 1
    own: Annotated[bool, about("this site is yours")] = False
    robots: Annotated[
        Literal["obey", "ignore"],
        about(
            "whether robots.txt is asked for and obeyed", '"ignore" needs own = true, is printed at start and logged'
        ),
    ] = "obey"


class Fetch(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one request. None is a judgement on a site: they keep one answer from costing all others."""

    connect_timeout_s: Annotated[Duration, about("to find the address, and again to connect and agree on TLS")] = 10.0
    read_timeout_s: Annotated[Duration, about("from the request to the first byte, and between any two bytes")] = 20.0
    total_timeout_s: Annotated[Duration, about("for one request as a whole")] = 60.0
    max_bytes: Annotated[
        Bytes, about("of a body, as received and as decoded, each; the rest is left out and the page marked truncated")
    ] = 10_485_760
    max_header_line_bytes: Annotated[Bytes, about("of one line of the header")] = 65_536
    max_header_bytes: Annotated[Bytes, about("of the header")] = 262_144
    max_ratio: Annotated[
        float, about("decoded bytes for each byte received, beyond the first MiB", "more is a bomb", ge=1)
    ] = 200.0
    drain_bytes: Annotated[
        Count, about("of a body that nobody reads (redirects, errors), so that the connection can be used again")
    ] = 65_536
    accept_language: Annotated[
        str | None, about("the Accept-Language field; not sent unless given", like="vi,en;q=0.5")
    ] = None


class Parse(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of reading a page."""

    text: Annotated[bool, about("extract the visible text", "27 µs a page")] = True
    max_bytes: Annotated[Bytes, about("of a page; what lies beyond is not read")] = 10_485_760
    max_depth: Annotated[
        Positive, about("nested elements; deeper start tags are left out", "the parser is quadratic in them")
    ] = 512
    max_links: Annotated[Count, about("kept of one page")] = 5000
    sitemap_max_bytes: Annotated[Bytes, about("of a sitemap, unpacked", "the protocol's own limit")] = 52_428_800
    sitemap_max_urls: Annotated[Positive, about("read from one sitemap", "the protocol's own limit")] = 50_000


class Lifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer makes of a URL: when an error is tried again, when it is given up."""

    success: Annotated[Codes, about("codes of a page; any other 2xx is an error")] = (200, 201, 203, 204, 205, 206)
    gone: Annotated[Codes, about("codes that end a URL at once", "they say so themselves")] = (410,)
    max_fetch_errors: Annotated[Positive, about("errors in a row that end a URL (ERROR)")] = 3
    min_error_span_s: Annotated[
        Seconds | None,
        about(
            "and so long must the row have lasted; unless given, 1d in `comity run` and 0 in `comity crawl`",
            "an evening's outage must not kill a site",
            like=86_400.0,
        ),
    ] = None
    retry_base_s: Annotated[Seconds, about("the wait after the first error")] = 30.0
    retry_factor: Annotated[float, about("each further wait is so many times longer", ge=1)] = 4.0
    retry_max_s: Annotated[Seconds, about("the longest wait")] = 21_600.0
    jitter: Annotated[
        bool,
        about("waits are shortened by chance, to a half at most", "what failed together must not come back together"),
    ] = True
    recount_after_error: Annotated[
        bool, about("a URL that was ended and is looked at again has all its errors before it once more")
    ] = False
    host_answers: Annotated[
        bool, about("429, and 503 with Retry-After, are the host's answer and say nothing about the page")
    ] = True
    forgive_ours: Annotated[bool, about("failures of our own machine or of a proxy count for no URL")] = True
    refuse_forbidden: Annotated[
        bool, about("a forbidden address or port ends a URL at once", "asking again would not make it allowed")
    ] = True
    conditional_304: Annotated[bool, about("a 304 that was not asked for is an error", "it stands for no body")] = True
    redirect_needs_target: Annotated[bool, about("a redirect that names nothing to be asked for is an error")] = True
    redirect_loops: Annotated[
        bool,
        about("more than scope.max_hops redirects in a row, or one back into its chain, end a URL; false: no limit"),
    ] = True
    redirect_adds_depth: Annotated[bool, about("a redirect's target is one link deeper")] = False
    refresh_redirects: Annotated[
        bool, about("a meta refresh makes its page a redirection; else its target is a link like others")
    ] = False
    unreadable_ends: Annotated[
        bool, about("a page that cannot be read as what it claims to be ends in ERROR; else that is noted")
    ] = False
    trust_freshness: Annotated[
        bool, about("a page that is still fresh by its own word (Cache-Control, Expires) is not asked for")
    ] = True


class Recrawl(msgspec.Struct, frozen=True, kw_only=True):
    """How long until the next visit, by what the URL has become."""

    fetched_s: Annotated[Interval, about("after a good visit")] = 86_400.0
    redirection_s: Annotated[Interval, about("after a redirect")] = 86_400.0
    error_gone_s: Annotated[Interval, about("after ERROR/gone, the first time", "some come back")] = 2_592_000.0
    error_scope_s: Annotated[Interval, about("after ERROR/scope", "judged by your own options, no request")] = (
        2_592_000.0
    )
    error_budget_s: Annotated[Interval, about("after ERROR/budget")] = 2_592_000.0
    error_robots_s: Annotated[Interval, about("after ERROR/robots", "judged again when the rules change")] = "never"
    error_malformed_s: Annotated[Interval, about("after ERROR/malformed", "no waiting mends it")] = "never"
    error_other_s: Annotated[
        Interval, about("after any other ERROR", "an outage must not take a URL away for ever")
    ] = 604_800.0
    error_growth: Annotated[
        float, about("each further ERROR waits so many times longer", "most of what is dead stays dead", ge=1, le=100)
    ] = 2.0
    error_max_s: Annotated[Seconds, about("the longest such wait")] = 7_776_000.0
    fresh_min_s: Annotated[Seconds, about("a page still fresh by its own word is looked at no sooner")] = 60.0
    fresh_max_s: Annotated[Seconds, about("and no later", "what claims to be good for a year changes too")] = 604_800.0


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the metadata that you give to seeds. An entry that ends in * is a prefix."""

    transfer: Annotated[Texts, about("keys that a page keeps and hands on to its links")] = ()
    persist: Annotated[Texts, about("keys that a page keeps")] = ()
    track_depth: Annotated[bool, about("links know their depth")] = True
    track_path: Annotated[bool, about("links know the way from their seed")] = True


class Jsonl(msgspec.Struct, frozen=True, kw_only=True):
    """The results as JSON lines (docs/outputs.md)."""

    enabled: Annotated[bool, about("write them")] = True
    body: Annotated[
        Literal["none", "text", "html"], about("what of a page's body a row has: nothing, its text, its source too")
    ] = "text"
    drop_fields: Annotated[Texts, about("fields that no row shall have")] = ()
    mask: Annotated[
        tuple[Literal["email", "phone"], ...], about("what to mask in title, text and html (docs/personal-data.md)")
    ] = ()


class Outputs(msgspec.Struct, frozen=True, kw_only=True):
    """Where results go. The crawl log is no option: what cannot be recorded is not asked."""

    jsonl: Jsonl = Jsonl()


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done at once."""

    max_hosts: Annotated[Positive, about("hosts served at once by one process")] = 10_000
    in_flight_total: Annotated[Positive, about("requests at once, over all hosts")] = 512
    per_host: Annotated[Positive, about("due URLs of a host held in memory")] = 20
    batch: Annotated[Positive, about("visits stored in one transaction")] = 64
    batch_s: Annotated[Seconds, about("or earlier: after so long")] = 0.1
    lease_s: Annotated[Duration, about("how long the hosts of a process that died stay its own")] = 60.0
    patience_s: Annotated[
        Seconds,
        about("`comity crawl` waits so long for what is held or due later, and leaves the rest for another time"),
    ] = 60.0
    max_pages: Annotated[Positive | None, about("pages fetched in one run of `comity crawl`", like=1000)] = None


class Frontier(msgspec.Struct, frozen=True, kw_only=True):
    """Where every URL's life story is kept."""

    kind: Annotated[Literal["sqlite", "memory"], about("a file, or this process only: gone when it ends")] = "sqlite"
    path: Annotated[str, about("of the file, relative to this one")] = "frontier.sqlite"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All of a crawl's settings."""

    profile: Annotated[
        Literal["comity", "stormcrawler"],
        about("the defaults to begin with: our own, or those that behave as StormCrawler does, line by line"),
    ] = "comity"
    identity: Identity = Identity()
    seeds: Seeds = Seeds()
    scope: Scope = Scope()
    urls: Urls = Urls()
    politeness: Politeness = Politeness()
    robots: Robots = Robots()
    address: Address = Address()
    fetch: Fetch = Fetch()
    parse: Parse = Parse()
    lifecycle: Lifecycle = Lifecycle()
    recrawl: Recrawl = Recrawl()
    metadata: Metadata = Metadata()
    outputs: Outputs = Outputs()
    engine: Engine = Engine()
    frontier: Frontier = Frontier()
    hosts: dict[str, Host] = {}


PROFILES: dict[str, dict[str, dict[str, Any]]] = {
    "comity": {},
    "stormcrawler": {
        "politeness": {"crawl_delay_limit_s": 30.0, "on_long_delay": "refuse"},
        "robots": {"judge_links": False, "reopen": False, "follow_sitemaps": False},
        "lifecycle": {
            "success": (200,),
            "gone": (),
            "min_error_span_s": 0.0,
            "retry_base_s": 7200.0,
            "retry_factor": 1.0,
            "retry_max_s": 7200.0,
            "jitter": False,
            "recount_after_error": True,
            "host_answers": False,
            "forgive_ours": False,
            "refuse_forbidden": False,
            "conditional_304": False,
            "redirect_needs_target": False,
            "redirect_loops": False,
            "redirect_adds_depth": True,
            "refresh_redirects": True,
            "unreadable_ends": True,
            "trust_freshness": False,
        },
        "recrawl": {
            "error_gone_s": "never",
            "error_scope_s": "never",
            "error_budget_s": "never",
            "error_other_s": "never",
            "error_growth": 1.0,
        },
    },
}
"""What a profile's defaults are where they differ from those above."""
