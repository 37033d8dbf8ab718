"""Is this URL ours to fetch?

Invariant: the rules are asked in one fixed order, the first that refuses decides, and its name goes with the refusal,
so that every URL left out can be counted and explained by name. The same question always gets the same ruling.

    scope.url_length   longer than `max_url_length`
    scope.depth        more than `max_depth` links from a seed
    scope.hops         more than `max_hops` redirects in a row
    scope.host | scope.domain   not a host, not a registrable domain of the seeds
    scope.exclude:PATTERN       the first exclude pattern found in the URL
    scope.include      no include pattern is found in the URL
    scope.trap.repetition       the path repeats itself, as paths do that a server makes up as they grow
    scope.trap.segments         the path is deeper than any made by hand
    scope.trap.escapes          escapes of escapes of escapes: a link generator feeding on its own output
    scope.budget.host  the host has given its pages

The cheap and common ones come first; it is asked for every link of every page (45 links a page; measured 0.3 µs each,
1 µs for deep paths, bench/decisions.py). Applied when a link is found, and again when its turn comes, because seeds and
options change.

Refuses to know robots.txt, the store, and what a URL means: it sees strings already parsed by `url`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from comity.url import Url, host_key, registrable_domain

Mode = Literal["host", "domain", "any"]

LONGEST_PERIOD = 8
"""Path segments in the longest repeated run looked for. Loops of links are short; this bounds the work for hostile
paths (measured: 0.3 ms for 1,000 segments)."""

REMEMBERED_HOSTS = 50_000
"""Rulings on hosts kept in mode "domain", where one costs a look-up in the public suffix list."""


class Ruling(NamedTuple):
    """`rule` names what decided: the rule that refused, or "scope.kept"."""

    keep: bool
    rule: str


KEPT = Ruling(True, "scope.kept")
_URL_LENGTH = Ruling(False, "scope.url_length")
_DEPTH = Ruling(False, "scope.depth")
_HOPS = Ruling(False, "scope.hops")
_HOST = Ruling(False, "scope.host")
_DOMAIN = Ruling(False, "scope.domain")
_INCLUDE = Ruling(False, "scope.include")
_REPETITION = Ruling(False, "scope.trap.repetition")
_SEGMENTS = Ruling(False, "scope.trap.segments")
_ESCAPES = Ruling(False, "scope.trap.escapes")
_BUDGET = Ruling(False, "scope.budget.host")


@dataclass(frozen=True)
class Scope:
    """What is ours. `None` for a limit means no limit. Raises ValueError for a pattern that is no regular expression.

    `hosts` are host keys; `domains` registrable domains, and host keys of hosts that have none (IP addresses,
    localhost). Patterns are Python regular expressions, looked for anywhere in the URL.
    """

    mode: Mode = "domain"
    hosts: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int | None = None
    max_hops: int = 10
    max_url_length: int | None = 2048  # the sitemap protocol's own bound; longer ones carry state, not names
    max_repeats: int | None = 3  # times in a row that a run of path segments may stand
    max_segments: int | None = 30
    max_pages_per_host: int | None = None
    by_domain: bool = False  # host keys are registrable domains (`politeness.per = "domain"`), not host names
    _include: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)
    _exclude: tuple[tuple[re.Pattern[str], Ruling], ...] = field(init=False, repr=False, compare=False)
    _deep: int = field(init=False, repr=False, compare=False)  # slashes below which no path can be a trap
    _ours: dict[str, bool] = field(init=False, repr=False, compare=False)  # a memory: host → of our domains?

    def __post_init__(self) -> None:
        if self.mode not in ("host", "domain", "any"):
            raise ValueError(f'scope.mode is "host", "domain" or "any", not {self.mode!r}')
        for name in ("max_depth", "max_hops", "max_url_length", "max_segments", "max_pages_per_host"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"scope.{name} is 0 or more, not {value!r}")
        if self.max_repeats is not None and self.max_repeats < 1:
            raise ValueError(f"scope.max_repeats is 1 or more, not {self.max_repeats!r}")
        include = tuple(_pattern("include", text) for text in self.include)
        exclude = tuple((_pattern("exclude", text), Ruling(False, f"scope.exclude:{text}")) for text in self.exclude)
        object.__setattr__(self, "_include", include)
        object.__setattr__(self, "_exclude", exclude)
        limits = [limit for limit in (self.max_repeats, self.max_segments) if limit is not None]
        object.__setattr__(self, "_deep", 3 + min(limits, default=1 << 30))
        object.__setattr__(self, "_ours", {})


def from_seeds(
    mode: Mode,
    seeds: Iterable[Url],
    *,
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    max_depth: int | None = None,
    max_hops: int = 10,
    max_url_length: int | None = 2048,
    max_repeats: int | None = 3,
    max_segments: int | None = 30,
    max_pages_per_host: int | None = None,
    by_domain: bool = False,
) -> Scope:
    """The scope that a set of seeds spans: their hosts, or their registrable domains."""
    hosts = frozenset(host_key(seed.host) for seed in seeds)
    return Scope(
        mode=mode,
        hosts=hosts,
        domains=frozenset(registrable_domain(host) or host for host in hosts),
        include=include,
        exclude=exclude,
        max_depth=max_depth,
        max_hops=max_hops,
        max_url_length=max_url_length,
        max_repeats=max_repeats,
        max_segments=max_segments,
        max_pages_per_host=max_pages_per_host,
        by_domain=by_domain,
    )


def judge(scope: Scope, url: str, host: str, depth: int, *, hops: int = 0, pages_of_host: int = 0) -> Ruling:
    """Rule on a URL (its `href`). `host` is its host key; `pages_of_host` how many pages that host has given so far."""
    longest = scope.max_url_length
    if longest is not None and len(url) > longest:
        return _URL_LENGTH
    if scope.max_depth is not None and depth > scope.max_depth:
        return _DEPTH
    if hops > scope.max_hops:
        return _HOPS
    if scope.mode == "host":
        if (_host_of(url) if scope.by_domain else host) not in scope.hosts:
            return _HOST
    elif scope.mode == "domain" and host not in scope.hosts:
        ours = scope._ours.get(host)
        if not (_of_domains(scope, host) if ours is None else ours):
            return _DOMAIN
    if scope._exclude:
        for pattern, ruling in scope._exclude:
            if pattern.search(url):
                return ruling
    if scope._include and not any(pattern.search(url) for pattern in scope._include):
        return _INCLUDE
    if url.count("/") >= scope._deep:
        trap = _trap(scope, url)
        if trap is not None:
            return trap
    if "%252525" in url:
        return _ESCAPES
    if scope.max_pages_per_host is not None and pages_of_host >= scope.max_pages_per_host:
        return _BUDGET
    return KEPT


def _host_of(url: str) -> str:
    """The host name in an `href`, which holds no credentials."""
    authority = url.split("/", 3)[2]
    if authority[-1:].isdigit() and ":" in authority:  # a port, for an IPv6 address ends in "]"
        authority = authority.rpartition(":")[0]
    return host_key(authority)


def _of_domains(scope: Scope, host: str) -> bool:
    """Is the host of one of our domains? Remembered, because the same few hosts come again and again."""
    ours = (registrable_domain(host) or host) in scope.domains
    memory = scope._ours
    if len(memory) >= REMEMBERED_HOSTS:
        memory.clear()
    memory[host] = ours
    return ours


def _trap(scope: Scope, url: str) -> Ruling | None:
    segments = url.partition("?")[0].split("/")[3:]
    if scope.max_segments is not None and len(segments) > scope.max_segments:
        return _SEGMENTS
    if scope.max_repeats is not None and _repeats(segments, scope.max_repeats):
        return _REPETITION
    return None


def _repeats(segments: list[str], most: int) -> bool:
    """Does any run of up to `LONGEST_PERIOD` segments stand more than `most` times in a row?"""
    count = len(segments)
    if count - len(set(segments)) < most:  # every repetition of a run repeats each of its segments
        return False
    for period in range(1, min(LONGEST_PERIOD, count // (most + 1)) + 1):
        enough = period * most
        same = 0
        for at in range(period, count):
            if segments[at] == segments[at - period]:
                same += 1
                if same >= enough:
                    return True
            else:
                same = 0
    return False


def _pattern(option: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as problem:
        raise ValueError(f"scope.{option}: {text!r} is no regular expression: {problem}") from None
