"""Which of the links found become entries: new ones, ours, and not refused; and why the others do not.

The order is by cost and by meaning. What the page or the link itself asks comes first (nofollow: D11), then what the
store is known to have (0.6 µs), then the scope's ruling (0.3 µs), then robots.txt, if the rules of the link's origin
happen to be in memory: a link refused there is stored as refused in one write and never asked for. That judgement only
saves work; every entry passes the verdict again when its turn comes.

It refuses to know when anything is visited, and decides nothing itself: `comity.scope`, `comity.robots` and
`comity.discovery` do.
"""

from __future__ import annotations

from comity import lifecycle, scope
from comity.hosts import Host, Hosts
from comity.model import Entry, Found, Link, LinkKind, Outcome, Redirect, Status
from comity.plan import Plan
from comity.ports import Seen
from comity.url import InvalidUrl, host_key, parse


class Sifter:
    """The sieve of one run."""

    def __init__(self, plan: Plan, hosts: Hosts, seen: Seen) -> None:
        self._plan, self._hosts, self._seen = plan, hosts, seen

    def links(
        self, entry: Entry, after: Entry, outcome: Outcome, found: Found | None, now: float
    ) -> tuple[tuple[Entry, ...], dict[str, int]]:
        """The links of one visit worth keeping, as entries, and how many were not, by the rule that said so."""
        plan = self._plan
        refused: dict[str, int] = {}
        kept: list[Entry] = []
        depth = entry.depth + 1
        for link in self._followed(after, outcome, found, refused):
            if link.nofollow:
                refused["rel.nofollow"] = refused.get("rel.nofollow", 0) + 1
                continue
            kind = link.kind
            known = self._seen.knows(link.key, depth, kind is LinkKind.SITEMAP, kind is LinkKind.FEED)
            if known and kind is not LinkKind.REDIRECT:
                continue
            child = lifecycle.discover(entry, link, now=now, profile=plan.profile, metadata_policy=plan.metadata)
            ruling = scope.judge(plan.scope, link.url, link.host, child.depth, hops=child.hops)
            if not ruling.keep:
                refused[ruling.rule] = refused.get(ruling.rule, 0) + 1
                continue
            if plan.judge_links and (said := self._hosts.verdict_at_hand(link)) is not None and not said[0].allowed:
                refused["robots"] = refused.get("robots", 0) + 1
                child = lifecycle.refuse_found(child, said[1] if plan.reopen else None)
            kept.append(child)
        return tuple(kept), refused

    def sitemaps(self, host: Host, now: float) -> tuple[Entry, ...]:
        """Sitemaps that a robots.txt just read has named, as entries."""
        named, host.sitemaps = host.sitemaps, []
        if not self._plan.follow_sitemaps:
            return ()
        kept = []
        for sitemap, robots_url in named:
            link = self._link(sitemap, LinkKind.SITEMAP)
            if link is not None and scope.judge(self._plan.scope, link.url, link.host, 0).keep:
                kept.append(lifecycle.sitemap_of_robots(link, robots_url, now=now))
        return tuple(kept)

    def _followed(
        self, after: Entry, outcome: Outcome, found: Found | None, refused: dict[str, int]
    ) -> tuple[Link, ...]:
        """The links that this outcome offers at all."""
        if isinstance(outcome, Redirect):
            if after.status is not Status.REDIRECTION or outcome.target is None:
                return ()
            link = self._link(outcome.target, LinkKind.REDIRECT)
            return (link,) if link is not None else ()
        if found is None or not found.links:
            return ()
        if found.directives.nofollow:
            refused["directives.nofollow"] = len(found.links)
            return ()
        if after.status is Status.REDIRECTION:  # a meta refresh that a profile takes for a redirect
            return tuple(link for link in found.links if link.kind is LinkKind.REFRESH)
        return found.links

    def _link(self, target: str, kind: LinkKind) -> Link | None:
        try:
            url = parse(target, self._plan.clean)
        except InvalidUrl:
            return None
        return Link(url.href, url.key, host_key(url.host, self._plan.host_per), kind)
