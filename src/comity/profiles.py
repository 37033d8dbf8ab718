"""How strict a life is: the options by which one table of transitions serves two profiles.

`comity.lifecycle` holds the table; a `Profile` only says which event an answer counts as and how long to wait after an
error. So a profile is data, two profiles differ by named options and by nothing else, and an operator who wants a third
one changes a field (`dataclasses.replace`) instead of writing code.

`COMITY` is our own. `STORMCRAWLER` does what StormCrawler does: 200 and 304 are good, every other 3xx is a redirection
with or without a target, all the rest is an error, three errors are the end; nothing is forgiven and nothing ends
sooner. Its intervals are in `comity.recrawl.STORMCRAWLER`, which belongs to it.

Refuses to know entries, outcomes and time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Profile:
    """The options. Durations in seconds. Raises ValueError for values that mean nothing."""

    name: str = "comity"
    success: frozenset[int] = frozenset({200, 201, 203, 204, 205, 206})
    """Codes of a page; any other 2xx is an error. A 206 that nobody asked for is a page, marked truncated."""
    max_fetch_errors: int = 3
    """Errors in a row that end a URL; 1 or less: the first does. There is no "never": a dead URL must cost nothing."""
    min_error_span_s: float = DAY_S
    """…and so long must the row have lasted: an evening's outage must not kill a site. 0 in a one-shot crawl."""
    retry_base_s: float = 30.0
    retry_factor: float = 4.0
    retry_max_s: float = 6 * 3600.0
    """The n-th error in a row is tried again after base × factor^(n−1), at most this."""
    jitter: bool = True
    """…times a number between a half and one, so that what failed together does not come back together."""
    recount_after_error: bool = False
    """Does a URL that was ended, and is looked at again, start a new row of errors? If not, one more error is enough:
    a dead URL costs one request each time it is looked at, not three."""
    gone: frozenset[int] = frozenset({410})
    """Codes that end a URL at once: they say so themselves."""
    host_answers: bool = True
    """429, and 503 with Retry-After, are the host's answer and say nothing about the page."""
    forgive_ours: bool = True
    """Failures of our own machine or of a proxy count for nobody."""
    refuse_forbidden: bool = True
    """A forbidden address or port ends a URL at once: asking again would not make it allowed."""
    conditional_304: bool = True
    """A 304 is an error unless the request was conditional: there is no body that it could stand for (CND-4, B148)."""
    redirect_needs_target: bool = True
    """A 3xx without a Location, or with one that names nothing we could ask for, is an error: it is broken."""
    max_hops: int | None = 10
    """Redirects in a row; one more, or one back into its own chain, is a loop. None: chains are not watched."""
    redirect_adds_depth: bool = False
    """Is a redirect's target one link deeper than the page that redirects?"""
    refresh_redirects: bool = False
    """Does a meta refresh make its page a redirection? If not, its target is a link like others."""
    unreadable_ends: bool = False
    """Does a page that cannot be read as what it claims to be end in ERROR? If not, the problem is noted."""

    def __post_init__(self) -> None:
        for name, least in (
            ("min_error_span_s", 0.0),
            ("retry_base_s", 0.0),
            ("retry_max_s", 0.0),
            ("retry_factor", 1.0),
        ):
            value = getattr(self, name)
            if not (value >= least and math.isfinite(value)):
                raise ValueError(f"lifecycle.{name} is a number of {least:g} or more, not {value!r}")
        if self.max_hops is not None and self.max_hops < 0:
            raise ValueError(f"lifecycle.max_hops is 0 or more, not {self.max_hops!r}")


COMITY = Profile()

STORMCRAWLER = Profile(
    name="stormcrawler",
    success=frozenset({200}),
    min_error_span_s=0.0,
    retry_base_s=120 * 60.0,  # fetchInterval.fetch.error, the same after each error
    retry_factor=1.0,
    retry_max_s=120 * 60.0,
    jitter=False,
    recount_after_error=True,
    gone=frozenset(),
    host_answers=False,
    forgive_ours=False,
    refuse_forbidden=False,
    conditional_304=False,
    redirect_needs_target=False,
    max_hops=None,
    redirect_adds_depth=True,
    refresh_redirects=True,
    unreadable_ends=True,
)

PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in (COMITY, STORMCRAWLER)})
