"""How a URL that was found becomes an entry.

One shape for all sources, so that nothing needs to be asked of an entry later but its fields:

| found | depth | hops | via |
|---|---|---|---|
| a seed | 0 | 0 | none |
| a sitemap named by robots.txt | 0 | 0 | the robots.txt |
| an anchor, a sitemap's entry, a meta refresh | the page's + 1 | 0 | the page |
| a redirect's target | the page's (StormCrawler: + 1) | the page's + 1 | the page that redirects |

A redirect adds no depth because it is no link: else a site that moved to https would lose a level of its pages (P25).
Instead it counts as a hop, and the target carries the keys of the chain that led to it, by which a loop is seen. A
sitemap or feed that moved is a sitemap or feed still (T038).

Invariant: an entry made here was never visited, is due at `now`, and has no history; one refused when it was found is
never due and has the digest of the rules that refused it. Metadata are what the policy hands on, and nothing else.

Called for the links that are not known yet, some six a page: about 2 µs each. Refuses to know scope, robots.txt and
what is known already.
"""

from __future__ import annotations

from msgspec.structs import replace

from comity.metadata import DEFAULT, Policy, for_link, keep
from comity.model import Cause, Entry, Link, LinkKind, Metadata, Status
from comity.profiles import COMITY, Profile
from comity.url import Url

LONGEST_CHAIN = 10
"""Keys of a redirect chain that an entry carries: the latest ones. A limit on hops is best kept no higher."""


def discover(
    parent: Entry,
    link: Link,
    *,
    now: float,
    profile: Profile = COMITY,
    metadata_policy: Policy = DEFAULT,
) -> Entry:
    """The entry that a link in `parent` (or its redirect: `LinkKind.REDIRECT`) makes."""
    kind = link.kind
    inherited = for_link(parent.metadata, metadata_policy)
    if kind is LinkKind.REDIRECT or (kind is LinkKind.REFRESH and profile.refresh_redirects):
        return Entry(
            link.url,
            link.key,
            link.host,
            due_at=now,
            discovered_at=now,
            depth=parent.depth + profile.redirect_adds_depth,
            hops=parent.hops + 1,
            via=parent.url,
            is_sitemap=parent.is_sitemap,
            is_feed=parent.is_feed,
            hint_at=link.hint_at,
            next_rule="discovered",
            metadata=inherited,
            chain=(*parent.chain, parent.key)[-LONGEST_CHAIN:],
        )
    return Entry(
        link.url,
        link.key,
        link.host,
        due_at=now,
        discovered_at=now,
        depth=parent.depth + 1,
        via=parent.url,
        is_sitemap=kind is LinkKind.SITEMAP,
        is_feed=kind is LinkKind.FEED,
        hint_at=link.hint_at,
        next_rule="discovered",
        metadata=inherited,
    )


def refuse_found(entry: Entry, rules_digest: str | None) -> Entry:
    """A discovery that robots.txt refuses as soon as it is found: one write instead of two, and no request. With the
    digest of the rules it is judged again when they change; None: it never is."""
    return replace(
        entry,
        status=Status.ERROR,
        cause=Cause.ROBOTS,
        due_at=None,
        next_rule="never.robots",
        rules_digest=rules_digest,
    )


def seed(
    url: Url,
    host: str,
    *,
    now: float,
    metadata: Metadata | None = None,
    is_sitemap: bool = False,
    is_feed: bool = False,
    metadata_policy: Policy | None = None,
) -> Entry:
    """The entry of a seed. `host` is its host key. Metadata that the policy does not keep are let go here and now
    (T023); without a policy all are kept for now, and let go at the first visit."""
    given = dict(metadata) if metadata else {}
    return Entry(
        url.href,
        url.key,
        host,
        due_at=now,
        discovered_at=now,
        is_sitemap=is_sitemap,
        is_feed=is_feed,
        next_rule="discovered",
        metadata=given if metadata_policy is None else keep(given, metadata_policy),
    )


def sitemap_of_robots(link: Link, robots_url: str, *, now: float) -> Entry:
    """The entry of a sitemap that a robots.txt names. It belongs to the origin, to no page: it inherits nothing."""
    return Entry(
        link.url,
        link.key,
        link.host,
        due_at=now,
        discovered_at=now,
        via=robots_url,
        is_sitemap=True,
        next_rule="discovered",
    )
