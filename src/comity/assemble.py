"""Settings become a running crawl. The only module that knows which adapters exist.

A user who wants another store, fetcher or sink writes a function like `open_crawl`; there is no registry and no plug-in
mechanism to learn. Opening takes the directory's lock first (one crawl at a time), then the store; since the lock was
free, whoever held hosts here is dead: their leases are ended at once, and each of those hosts rests one full delay.
Closing undoes it in the reverse order, whatever failed in between.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from comity import crawldir, lifecycle, politeness, robots
from comity import identity as identities
from comity import seeds as seeding
from comity.clock import SystemClock
from comity.config import ConfigError, Settings, changes, defaults, dumps_commented, load, override, policies
from comity.crawl import Crawl
from comity.crawldir import CrawlDir
from comity.fetch import CurlFetcher
from comity.frontier.lock import DirectoryLock
from comity.frontier.memory import MemoryFrontier
from comity.frontier.seen import SeenCache
from comity.frontier.sqlite import SqliteFrontier
from comity.hosts import Host, Hosts, Manner, Store, Wait
from comity.identity import Identity
from comity.lease import Lease
from comity.model import Access, Entry, Failure, HostState, Stats, Verdict
from comity.outputs.crawllog import CrawlLog
from comity.outputs.files import Opened
from comity.outputs.jsonl import JsonlSink
from comity.outputs.nowhere import NoJournal
from comity.plan import Plan
from comity.ports import Clock, Journal, Sink
from comity.seeds import Seed
from comity.settling import Desk
from comity.sifting import Sifter
from comity.tally import Tally
from comity.url import Url, host_key

WORKER = "0"
"""One process works on a directory at a time (its lock sees to that), so its worker needs no other name."""


@dataclass
class Running:
    """A crawl that is open: run it, stop it, close it."""

    crawl: Crawl
    store: Store
    clock: Clock
    settings: Settings
    identity: Identity
    directory: CrawlDir | None
    began_at: float
    new_seeds: int
    _rows: JsonlSink | None = field(repr=False)
    _closing: contextlib.AsyncExitStack = field(repr=False)

    @property
    def tally(self) -> Tally:
        return self.crawl.tally

    @property
    def results(self) -> Opened:
        """What was not as it was left, in the file of rows, when the run opened it."""
        return self._rows.opened if self._rows is not None else Opened()

    async def run(self) -> None:
        """Until the end, or `stop`. Raises what made the store or a sink fail; everything settled is safe then."""
        await self.crawl.run()

    def stop(self, why: str = "stopped") -> None:
        self.crawl.stop(why)

    def halt(self) -> None:
        self.crawl.halt()

    async def left(self) -> Stats:
        """What the frontier holds now, and when it would go on."""
        return await self.store.stats()

    async def close(self) -> None:
        await self._closing.aclose()


async def open_crawl(
    settings: Settings,
    *,
    directory: CrawlDir | None,
    identity: Identity,
    seeds: Sequence[Seed],
    sinks: Sequence[Sink] = (),
    clock: Clock | None = None,
    once: bool = True,
    max_pages: int | None = None,
    until_s: float | None = None,
    chance: Callable[[], float] = random.random,
) -> Running:
    """Open everything a crawl needs. `once`: every URL once, then end; else for ever, or for `until_s` seconds.

    Raises `frontier.Locked` (another crawl is at work there), `frontier.SchemaTooNew`, `frontier.StoreFailed`,
    `crawldir.DirError`; nothing stays open or locked then.
    """
    clock = clock or SystemClock()
    async with contextlib.AsyncExitStack() as opened:
        if directory is not None:
            opened.enter_context(DirectoryLock(directory.root))
            directory.check()
        manner = manners(settings)
        store = await _store(settings, directory, clock, manner)
        opened.push_async_callback(store.close)
        began_at = clock.now()
        await store.end_leases(began_at)
        journal: Journal
        written: list[Sink] = list(sinks)
        results: JsonlSink | None = None
        if directory is None:
            journal = NoJournal()
        else:
            log = CrawlLog(directory.log, WORKER, clock.now)
            journal = log
            if settings.outputs.jsonl.enabled:
                results = JsonlSink(directory.pages(WORKER), policies.row_fields(settings))
                written.append(results)
            written.append(log)
        fetcher = _fetcher(settings, identity, clock)
        opened.push_async_callback(fetcher.close)
        longest_s = settings.fetch.total_timeout_s
        lease = Lease(store, clock, WORKER, settings.engine.lease_s, longest_s)
        hosts = Hosts(
            store=store,
            fetcher=fetcher,
            clock=clock,
            journal=journal,
            lease=lease,
            token=identity.token,
            manner=manner,
            in_flight=settings.engine.in_flight_total,
            chance=chance,
            host_per=_per(settings),
        )
        tally, seen = Tally(), SeenCache()
        desk = Desk(
            store=store,
            sinks=written,
            clock=clock,
            seen=seen,
            tally=tally,
            batch=settings.engine.batch,
            batch_s=settings.engine.batch_s,
            per_host=settings.engine.per_host,
        )
        plan = Plan(
            worker=WORKER,
            token=identity.token,
            scope=policies.scope_of(settings, [seed.url for seed in seeds]),
            profile=policies.profile(settings, once=once),
            schedule=policies.schedule(settings),
            metadata=policies.metadata_policy(settings),
            limits=policies.parse_limits(settings),
            clean=policies.clean_ups(settings),
            host_per=_per(settings),
            judge_links=settings.robots.judge_links,
            reopen=settings.robots.reopen,
            trust_freshness=settings.lifecycle.trust_freshness,
            follow_sitemaps=settings.robots.follow_sitemaps,
            max_hosts=settings.engine.max_hosts,
            per_host=settings.engine.per_host,
            max_pages=max_pages if max_pages is not None else settings.engine.max_pages,
            once=once,
            patience_s=settings.engine.patience_s,
            until_at=None if until_s is None else began_at + until_s,
        )
        crawl = Crawl(
            plan,
            store=store,
            hosts=hosts,
            desk=desk,
            journal=journal,
            sifter=Sifter(plan, hosts, seen),
            clock=clock,
            tally=tally,
            chance=chance,
        )
        new = await store.add([_entry(seed, settings, began_at) for seed in seeds], began_at)
        for name, host in settings.hosts.items():
            if host.robots == "ignore":
                journal.note("robots_ignored", began_at, host=name)
        return Running(
            crawl, store, clock, settings, identity, directory, began_at, len(new), results, opened.pop_all()
        )
    raise AssertionError("unreachable")


async def prepared(
    given: Sequence[str],
    *,
    directory: str | Path | None,
    sinks: Sequence[Sink],
    settings: Settings | None = None,
    clock: Clock | None = None,
    contact: str | None = None,
    scope: str | None = None,
    delay_s: float | None = None,
    max_pages: int | None = None,
    max_depth: int | None = None,
    patience_s: float | None = None,
    allow_private: bool | None = None,
    batch: int | None = None,
) -> Running:
    """A one-shot crawl for `comity.crawl`: seeds as text, options as keywords, no terminal to ask at. A crawl that is
    in `directory` already keeps its settings and seeds; what is given here wins for this time, new seeds are kept."""
    flags = flag_settings(scope, delay_s, max_depth, patience_s, allow_private)
    if batch is not None:
        flags["engine.batch"] = batch
    place: CrawlDir | None = None
    if directory is not None and crawldir.is_crawl(Path(directory)):
        place = crawldir.at(Path(directory))
        base = settings or load(place.config)
    else:
        base = settings or defaults("comity")
    chosen = override(base, flags)
    read = seeding.read(given, [place.seeds] if place is not None and place.seeds.exists() else [])
    if not read.seeds:
        reasons = "; ".join(str(problem) for problem in read.problems) or "none were given"
        raise ConfigError(f"there is no seed to begin with: {reasons}")
    refused = policies.out_of_reach(chosen, [seed.url for seed in read.seeds])
    if len(refused) == len(read.seeds):
        raise ConfigError(policies.nothing_in_reach(refused))
    who = identities.find(
        flag=contact,
        environment=os.environ,
        configured=chosen.identity.contact,
        memory=identities.memory_path(os.environ, Path.home(), sys.platform),
        local=read.local,
        product=chosen.identity.product,
        version=chosen.identity.version,
        mail=chosen.identity.from_,
    )
    if directory is not None:
        if place is None:
            place = crawldir.create(Path(directory), dumps_commented(chosen), "".join(f"{line}\n" for line in given))
        else:
            seeding.append(place.seeds, given)
    return await open_crawl(
        chosen, directory=place, identity=who, seeds=read.seeds, sinks=sinks, clock=clock, max_pages=max_pages
    )


def flag_settings(
    scope: str | None = None,
    delay_s: float | None = None,
    max_depth: int | None = None,
    patience_s: float | None = None,
    allow_private: bool | None = None,
) -> dict[str, object]:
    """Options given outside the settings, as settings: by dotted name, those not given left out."""
    named = {
        "scope.mode": scope,
        "politeness.delay_s": delay_s,
        "scope.max_depth": max_depth,
        "engine.patience_s": patience_s,
        "address.allow_private": allow_private or None,
    }
    return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class RobotsAnswer:
    """What an origin's robots.txt says of one URL, for `comity robots`."""

    url: Url
    verdict: Verdict | None  # None: unreachable, nothing may be asked
    access: Access
    robots_url: str
    http_status: int | None
    failure: Failure | None
    rules: robots.Rules | None
    expires_at: float
    delay_s: float


async def ask_robots(
    settings: Settings, identity: Identity, urls: Sequence[Url], *, clock: Clock | None = None
) -> list[RobotsAnswer]:
    """Obtain the robots.txt of each URL's origin, politely and through the same wrapper as a crawl, and judge."""
    clock = clock or SystemClock()
    manner = manners(settings)
    store = MemoryFrontier(clock=clock)
    fetcher = _fetcher(settings, identity, clock)
    try:
        hosts = Hosts(
            store=store,
            fetcher=fetcher,
            clock=clock,
            journal=NoJournal(),
            lease=Lease(store, clock, WORKER, settings.engine.lease_s, settings.fetch.total_timeout_s),
            token=identity.token,
            manner=manner,
            in_flight=8,
            chance=random.random,
            host_per=_per(settings),
        )
        answers = []
        known: dict[str, Host] = {}
        for url in urls:
            key = host_key(url.host, _per(settings))
            host = known.get(key)
            if host is None:
                host = known[key] = Host(hosts, key, HostState())
            answers.append(await _ask_robots(host, url, manner(key)))
        return answers
    finally:
        await fetcher.close()
        await store.close()


async def _ask_robots(host: Host, url: Url, manner: Manner) -> RobotsAnswer:
    decision = await host.admit(url)
    state = host.state.robots.get(url.origin)
    verdict = None if isinstance(decision, Wait) else decision.verdict
    return RobotsAnswer(
        url=url,
        verdict=verdict,
        access=state.access if state is not None else Access.UNREACHABLE,
        robots_url=f"{url.origin}{robots.ROBOTS_PATH}",
        http_status=state.http_status if state is not None else None,
        failure=state.failure if state is not None else None,
        rules=host.rules.get(url.origin),
        expires_at=state.expires_at if state is not None else 0.0,
        delay_s=politeness.delay_s(host.state, manner.politeness),
    )


def manners(settings: Settings) -> Callable[[str], Manner]:
    """How to behave towards a host, by its key: the general manner, but for the hosts that have settings of their
    own."""
    policy = policies.robots_policy(settings)
    general = Manner(policies.politeness_policy(settings), policy)
    special = {
        policies.key_of(settings, name): Manner(
            policies.politeness_policy(settings, policies.key_of(settings, name)), policy, obey=host.robots == "obey"
        )
        for name, host in settings.hosts.items()
    }
    return lambda key: special.get(key, general)


async def _store(
    settings: Settings, directory: CrawlDir | None, clock: Clock, manner: Callable[[str], Manner]
) -> SqliteFrontier | MemoryFrontier:
    def rest_s(host: str, state: HostState) -> float:
        return politeness.delay_s(state, manner(host).politeness)

    lease_s = settings.engine.lease_s + settings.fetch.total_timeout_s
    if directory is None or settings.frontier.kind == "memory":
        return MemoryFrontier(clock=clock, lease_s=lease_s, rest_s=rest_s)
    path = directory.root / settings.frontier.path
    return await SqliteFrontier.open(path, clock=clock, lease_s=lease_s, rest_s=rest_s)


def _fetcher(settings: Settings, identity: Identity, clock: Clock) -> CurlFetcher:
    return CurlFetcher(
        clock=clock,
        user_agent=identity.user_agent,
        mail=identity.mail,
        accept_language=settings.fetch.accept_language,
        limits=policies.fetch_limits(settings),
        guard=policies.guard(settings),
    )


def _entry(seed: Seed, settings: Settings, now: float) -> Entry:
    return lifecycle.seed(
        seed.url,
        host_key(seed.url.host, _per(settings)),
        now=now,
        metadata=seed.metadata,
        is_sitemap=seed.is_sitemap,
        is_feed=seed.is_feed,
        metadata_policy=policies.metadata_policy(settings),
    )


def _per(settings: Settings) -> Literal["host", "domain"]:
    return "domain" if settings.politeness.per == "domain" else "host"


@contextlib.asynccontextmanager
async def opened(running: Running) -> AsyncIterator[Running]:
    """``async with``: close it however the body ends."""
    try:
        yield running
    finally:
        await running.close()


__all__ = ["RobotsAnswer", "Running", "ask_robots", "changes", "flag_settings", "open_crawl", "opened", "prepared"]
