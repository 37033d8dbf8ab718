"""Everything that is known of one URL, gathered from the frontier, the crawl log and the settings.

Read beside a running crawl, from what was stored: the entry, its host's state, the robots.txt body that our verdict
rests on, and the events of its last visits. The verdict is computed anew from that body; when the last visit was made
under another (the file has changed since), both are told, for the old one is why the entry is what it is.

Invariant: the answer depends on what is stored and on nothing else, least of all on the time of asking, so that the
same crawl tells the same story for ever. Refuses to know how it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from comity import politeness, robots, scope
from comity.cli import places
from comity.model import Access, Cause, Entry, HostState, RobotsState, Verdict
from comity.outputs import crawllog
from comity.url import Url, host_key

if TYPE_CHECKING:
    from comity.cli.places import Place
    from comity.frontier.ledger import SqliteLedger

EVENTS = 20


@dataclass(frozen=True)
class Robots:
    """What robots.txt says now, by our copy. `state` None: the origin was never asked for it."""

    url: str
    obeyed: bool
    state: RobotsState | None = None
    access: Access | None = None  # what speaks: the copy's rules, or what its absence means
    rules: robots.Rules | None = None
    verdict: Verdict | None = None  # None: nothing can be said
    then: Verdict | None = None  # that of the last visit, where it differs


@dataclass(frozen=True)
class Story:
    url: Url
    host: str
    entry: Entry | None  # None: not known to this crawl
    ruling: scope.Ruling  # what the scope says of it now
    state: HostState | None  # None: the host is not known
    policy: politeness.Policy
    robots: Robots
    events: tuple[crawllog.Event, ...] = ()  # newest first

    @property
    def ready_at(self) -> float | None:
        """When it will be asked for: when it is due and its host may be asked."""
        if self.entry is None or self.entry.due_at is None:
            return None
        if self.state is None:
            return self.entry.due_at
        return max(self.entry.due_at, politeness.next_at(self.state, self.policy))

    @property
    def held(self) -> bool:
        """Does a hold on its host, and not its own schedule, set the next visit?"""
        due_at = self.entry.due_at if self.entry is not None else None
        return self.state is not None and due_at is not None and self.state.not_before_at > due_at


async def story(url: Url, place: Place, ledger: SqliteLedger) -> Story:
    """Raises what the store raises."""
    from comity.config import policies

    settings = place.settings
    per_domain = settings.politeness.per == "domain"
    entry = await ledger.get(url.key)
    host = entry.host if entry is not None else host_key(url.host, "domain" if per_domain else "host")
    claim = await ledger.host(host)
    state = claim.state if claim is not None else None
    seeds = [seed.url for seed in places.stored_seeds(place).seeds]
    ruling = scope.judge(
        policies.scope_of(settings, seeds),
        url.href,
        host,
        entry.depth if entry is not None else 0,
        hops=entry.hops if entry is not None else 0,
        pages_of_host=state.pages if state is not None else 0,
    )
    events = crawllog.story(place.directory.log, entry.place if entry is not None else None, EVENTS)
    obeyed = policies.host_settings(settings, host).robots == "obey"
    return Story(
        url=url,
        host=host,
        entry=entry,
        ruling=ruling,
        state=state,
        policy=policies.politeness_policy(settings, host),
        robots=await _robots(url, state, settings.identity.product, obeyed, _judged(events), ledger),
        events=events,
    )


async def _robots(
    url: Url, state: HostState | None, token: str, obeyed: bool, then: Verdict | None, ledger: SqliteLedger
) -> Robots:
    where = url.origin + robots.ROBOTS_PATH
    known = state.robots.get(url.origin) if state is not None else None
    if not obeyed or known is None:
        return Robots(where, obeyed, then=then)
    access, rules, verdict = known.access, None, None
    if known.digest is not None and (file := await ledger.robots(known.digest)) is not None:
        access = Access.RULES  # while a file cannot be had, the last good copy speaks
        rules = robots.compile(robots.parse(file.body), token, url.origin)
        verdict = robots.verdict(rules, url.target)
    elif access is Access.ALLOW or access is Access.DISALLOW:
        verdict = robots.verdict_without_rules(access, url.target)
    return Robots(where, obeyed, known, access, rules, verdict, then if _differ(then, verdict) else None)


def _judged(events: tuple[crawllog.Event, ...]) -> Verdict | None:
    """The verdict of the last visit that had one."""
    said = next((event["verdict"] for event in events if event["event"] == "visit" and "verdict" in event), None)
    if not isinstance(said, Mapping):
        return None
    return Verdict(
        allowed=bool(said.get("allowed")),
        access=Access(said.get("access", Access.RULES)),
        group=said.get("group"),
        line=said.get("line"),
        rule=said.get("rule"),
        digest=said.get("digest"),
    )


def _differ(then: Verdict | None, now: Verdict | None) -> bool:
    """Do they say something else? A file that changed elsewhere has not changed this verdict."""
    if then is None or now is None:
        return then is not None
    return (then.allowed, then.access, then.group, then.rule) != (now.allowed, now.access, now.group, now.rule)


# -- as data -----------------------------------------------------------------------------------------------------------


def as_dict(story: Story) -> dict[str, Any]:
    """Instants in seconds since the epoch, durations in seconds; null is absent or never."""
    return {
        "url": story.entry.url if story.entry is not None else story.url.href,
        "key": story.url.key,
        "known": story.entry is not None,
        "entry": _entry(story.entry) if story.entry is not None else None,
        "next": _next(story) if story.entry is not None else None,
        "scope": {"keep": story.ruling.keep, "rule": story.ruling.rule},
        "host": _host(story),
        "robots": _robots_data(story.robots),
        "visits": [
            {
                "at": past.at,
                "status": past.status.name,
                "cause": _word(past.cause),
                "failure": past.failure,
                "http_status": past.http_status,
                "changed": past.changed,
            }
            for past in reversed(story.entry.history if story.entry is not None else ())
        ],
        "events": list(story.events),
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "status": entry.status.name,
        "cause": _word(entry.cause),
        "failure": entry.failure,
        "detail": entry.detail,
        "http_status": entry.http_status,
        "errors": entry.errors,
        "discovered_at": entry.discovered_at,
        "via": entry.via,
        "depth": entry.depth,
        "hops": entry.hops,
        "is_sitemap": entry.is_sitemap,
        "is_feed": entry.is_feed,
        "hint_at": entry.hint_at,
        "visited_at": entry.visited_at,
        "changed_at": entry.changed_at,
        "redirect_to": entry.redirect_to,
        "etag": entry.etag,
        "last_modified": entry.last_modified,
        "fresh_until_at": entry.fresh_until_at,
        "digest": entry.digest,
        "version": entry.version,
        "metadata": {key: list(values) for key, values in entry.metadata.items()},
    }


def _next(story: Story) -> dict[str, Any]:
    assert story.entry is not None
    return {
        "at": story.ready_at,
        "due_at": story.entry.due_at,
        "rule": story.entry.next_rule,
        "held": story.held,
    }


def _host(story: Story) -> dict[str, Any]:
    state = story.state
    return {
        "host": story.host,
        "known": state is not None,
        "delay_s": politeness.delay_s(state or HostState(), story.policy),
        "wanted_s": state.wanted_s if state is not None else None,
        "widened_s": state.widened_s if state is not None else 0.0,
        "next_at": state.next_at if state is not None else None,
        "not_before_at": (state.not_before_at or None) if state is not None else None,
        "hold_reason": state.hold_reason if state is not None else None,
        "too_long": state is not None and politeness.too_long(state, story.policy),
        "pages": state.pages if state is not None else 0,
        "address": state.address if state is not None else None,
    }


def _robots_data(said: Robots) -> dict[str, Any]:
    state = said.state
    return {
        "url": said.url,
        "obeyed": said.obeyed,
        "access": said.access,
        "http_status": state.http_status if state is not None else None,
        "failure": state.failure if state is not None else None,
        "fetched_at": state.fetched_at if state is not None else None,
        "asked_at": state.asked_at if state is not None else None,
        "expires_at": state.expires_at if state is not None else None,
        "unreachable_since_at": state.unreachable_since_at if state is not None else None,
        "digest": state.digest if state is not None else None,
        "delay_line": said.rules.delay_line if said.rules is not None else None,
        "verdict": _verdict(said.verdict),
        "then": _verdict(said.then),
    }


def _verdict(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {"allowed": verdict.allowed, "group": verdict.group, "line": verdict.line, "rule": verdict.rule}


def _word(cause: Cause | None) -> str | None:
    return None if cause is None else cause.word
