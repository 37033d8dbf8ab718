"""The crawl: claim hosts, visit their URLs, settle what came of it, until there is nothing left or nobody wants more.

`Crawl.visit` is the whole path of one URL and fits on one screen. Around it there is one coroutine per claimed host
(`serve`): politeness is the shape of the program, since a host's visits follow one another and a host is claimed by
one worker at a time. `claim` keeps as many hosts at work as there is room for. Everything else belongs to the
decisions (layer 1), to `comity.hosts` (robots, clock, slot) and to `comity.settling` (outputs before settle).

Invariants:

* an entry is handed out again only when its visit is settled, so no URL is asked twice at once;
* a host's coroutine holds no body, tree or visit while it waits: `visit` hands them to the desk and lets go;
* an entry that cannot be asked now is simply not settled: the store never marked it, so nothing is lost by stopping
  here, at any moment.

Stopping. `stop` (the first Ctrl-C) lets requests in flight end, and only them; hosts that wait are given back at once.
`halt` (the second) cancels those requests too: their visits are not settled and will be made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from comity import lifecycle, parse, politeness, scope
from comity.hosts import GIVE_BACK_S, Held, Host, Hosts, Stopping, Store, Wait
from comity.model import (
    Cause,
    Change,
    Claim,
    Entry,
    Found,
    Outcome,
    Page,
    Refused,
    Request,
    RobotsFile,
    Settlement,
    Status,
    StillFresh,
    Verdict,
    Visit,
    Wire,
)
from comity.plan import Plan
from comity.ports import Clock, Journal
from comity.settling import Desk, Enough
from comity.sifting import Sifter
from comity.tally import Tally
from comity.url import InvalidUrl, Url
from comity.url import parse as parse_url

CLAIM_AT_ONCE = 200
"""Hosts asked for in one claim (45-170 µs each: more would hold the store for too long)."""

PUT_OFF_S = 300.0
"""A one-shot crawl puts off what is due a second time by at least this."""

POLL_S = 1.0
"""How often a worker looks for ready hosts that nobody told it of (another process may have added them)."""


Waiting: TypeAlias = tuple[Entry, Wait]
"""An entry that cannot be asked now, and until when."""

Attempt: TypeAlias = asyncio.Task[Waiting | None]


class Crawl:
    """One worker's crawl, from `run` to its end."""

    def __init__(
        self,
        plan: Plan,
        *,
        store: Store,
        hosts: Hosts,
        desk: Desk,
        journal: Journal,
        sifter: Sifter,
        clock: Clock,
        tally: Tally,
        chance: Callable[[], float],
    ) -> None:
        self.plan, self.hosts, self.tally, self.clock = plan, hosts, tally, clock
        self._store, self._desk, self._journal, self._sifter, self._chance = store, desk, journal, sifter, chance
        desk.given_back = hosts.given_back
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._readers = asyncio.Semaphore(2)  # heavy pages parsed at once
        self._pages_left = plan.max_pages
        self._began_at = clock.now()
        self._put_off_until_at = float("-inf")
        self._crowded = False  # more hosts are ready than there is room for
        self._freed = asyncio.Event()
        self.why_ended = "nothing is left that is due"
        self.failure: BaseException | None = None

    async def visit(self, host: Host, entry: Entry) -> Wait | None:
        """The whole path of one URL. A `Wait` means: not now, and nothing has changed."""
        at = self.clock.now()
        found: Found | None = None
        verdict, wire, waited_s = None, None, 0.0
        url, outcome = self._refuse(entry, host)
        if url is not None and outcome is None:
            decision = await host.admit(url)
            if isinstance(decision, Wait):
                return decision
            verdict = decision.verdict
            if isinstance(decision, Refused):
                outcome = decision
            elif self._is_fresh(entry):
                outcome = StillFresh(entry.fresh_until_at or at)
            else:
                outcome, wire, place = await self._ask(host, entry, verdict)
                waited_s = max(0.0, wire.started_at - at)
                entry = msgspec.structs.replace(entry, place=place)
                host.state = msgspec.structs.replace(host.state, pages=host.state.pages + 1)
                found = await self._read(outcome, url, entry)
        assert outcome is not None
        now = self.clock.now()
        step = lifecycle.advance(
            entry, outcome, found, now=now, jitter=self._chance(), profile=self.plan.profile,
            schedule=self.plan.schedule, metadata_policy=self.plan.metadata,
            host_due_at=politeness.next_at(host.state, host.manner.politeness),
        )  # fmt: skip
        after = self._file_refusal(step.after, outcome, host, url)
        discoveries, refused_links = self._sifter.links(entry, after, outcome, found, now)
        visit = Visit(entry, outcome, after, now, found, wire, verdict, discoveries, refused_links, step.deletion,
                      waited_s)  # fmt: skip
        after = msgspec.structs.replace(after, place=self._journal.visited(visit))
        await self._settle(host, visit, Change(entry, after), urgent=host.state.not_before_at > now)
        return None

    async def run(self) -> None:
        """Crawl until the end that the plan names, or until `stop`. Raises what made the store or a sink fail."""
        self._began_at = self.clock.now()
        self._journal.note("start", self._began_at, worker=self.plan.worker)
        await self._desk.open()
        desk = asyncio.create_task(self._desk.run(), name="desk")
        heart = asyncio.create_task(self.hosts.lease.keep(), name="lease")
        claims = asyncio.create_task(self._claim(), name="claims")
        try:
            await asyncio.wait([desk, claims, heart], return_when=asyncio.FIRST_COMPLETED)
            for task in (desk, claims, heart):
                if task.done() and not task.cancelled() and task.exception() is not None:
                    self.failure = self.failure or task.exception()
            if isinstance(self.failure, Enough):
                self.stop("the reader has left")
            elif self.failure is not None:
                self.halt()
            await _ended(claims)
            await self._join()
            self._desk.close()
            await _ended(desk)
            if desk.done() and not desk.cancelled() and desk.exception() is not None:
                self.failure = self.failure or desk.exception()
        finally:
            for task in (heart, claims, desk):
                task.cancel()
            await asyncio.gather(heart, claims, desk, return_exceptions=True)
            if self._serving:  # this run was cancelled
                self.halt()
                await self._join()
            if isinstance(self.failure, Enough):
                self.failure = None
            await self._leave()
        if self.failure is not None:
            raise self.failure

    def stop(self, why: str = "stopped") -> None:
        """Ask nothing more; let what is in flight end; give back the rest."""
        if not self.hosts.stopping:
            self.why_ended = why
        self.hosts.stopping = True
        self._freed.set()
        self._desk.changed.set()
        for task in self.hosts.waiting():
            task.cancel()

    def halt(self) -> None:
        """Stop at once, requests in flight included."""
        self.stop("stopped at once")
        for task in self._serving.values():
            task.cancel()

    async def _claim(self) -> None:
        """Keep hosts at work; return when the crawl has come to its end."""
        plan, clock = self.plan, self.clock
        while not self.hosts.stopping and not self._spent:
            if plan.until_at is not None and clock.now() >= plan.until_at:
                self.stop("the time given is over")
                break
            self._desk.changed.clear()
            self._freed.clear()
            await self.hosts.lease.prove()
            room = plan.max_hosts - len(self._serving)
            idle = not self._serving and self._desk.idle  # asked before: else a host on its way back is overlooked
            now = clock.now()
            got = await self._store.claim(plan.worker, now, min(room, CLAIM_AT_ONCE), plan.per_host) if room else None
            for claim in got.claims if got else ():
                self._serving[claim.host] = asyncio.create_task(self._serve(claim), name=f"host {claim.host}")
            if got is not None and len(got.claims) == min(room, CLAIM_AT_ONCE):
                self._crowded = room <= CLAIM_AT_ONCE
                continue
            self._crowded = got is None
            next_at = got.next_ready_at if got else None
            if plan.once and idle and not (got and got.claims):
                if next_at is None or next_at > now + plan.patience_s or next_at == self._put_off_until_at:
                    return
            await self._until_something_changes(next_at, now)

    async def _until_something_changes(self, next_at: float | None, now: float) -> None:
        """Return when a host was given back, something was settled, or the next host is ready."""
        waits: set[asyncio.Task[object]] = {
            asyncio.create_task(self._freed.wait()),
            asyncio.create_task(self._desk.changed.wait()),
        }
        if next_at is not None and len(self._serving) < self.plan.max_hosts:
            waits.add(asyncio.create_task(self.clock.sleep_until(max(next_at, now))))
        if self.plan.until_at is not None:
            waits.add(asyncio.create_task(self.clock.sleep_until(self.plan.until_at)))
        if not self.plan.once:
            waits.add(asyncio.create_task(self.clock.sleep_until(now + POLL_S, heartbeat=True)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _broken_off(waits)

    async def _serve(self, claim: Claim) -> None:
        """One claimed host's coroutine: its due entries in order, by its clock, until none is due or it must rest."""
        host = self.hosts.take(claim)
        entries = claim.entries
        under_way: set[Attempt] = set()
        hold: Wait | None = None
        try:
            while entries:
                hold = await self._put_off(host, await self._work_off(host, entries, under_way), len(entries))
                if hold or not self._goes_on(host) or (self._crowded and len(claim.entries) > 1):
                    break
                entries = await self._desk.refill(msgspec.structs.replace(claim, state=host.state))
        except (asyncio.CancelledError, Stopping):
            pass  # the crawl is ending, which is all that cancels a host
        except BaseException as error:
            self.failure = self.failure or error
            self.stop("something failed")
        finally:
            try:
                await _broken_off(under_way)  # the host's state is whole only then
            finally:
                self._give_back(host, hold)

    def _goes_on(self, host: Host) -> bool:
        ends = self.hosts.stopping or self._spent or self.failure is not None
        return not ends and host.state.not_before_at <= self.clock.now() + GIVE_BACK_S

    async def _work_off(self, host: Host, entries: Sequence[Entry], under_way: set[Attempt]) -> list[Waiting]:
        """Visit these in order, as many at once as the host allows. Returns those that must wait."""
        waiting: list[Waiting] = []
        for entry in entries:
            if not self._goes_on(host):
                break
            if self._seen_in_this_run(entry):
                await self._postpone(host, entry)
            elif host.manner.politeness.in_flight == 1:
                if (waits := await self._attempt(host, entry)) is not None:
                    waiting.append(waits)
            else:
                under_way.add(asyncio.create_task(self._attempt(host, entry)))
                if len(under_way) >= host.manner.politeness.in_flight:
                    waiting += await _some(under_way)
        return waiting + await _all(under_way) if under_way else waiting

    async def _attempt(self, host: Host, entry: Entry) -> Waiting | None:
        """Visit, unless the host turns out to be on hold when it is this URL's turn."""
        try:
            wait = await self.visit(host, entry)
        except Held as held:
            wait = held.wait
        return (entry, wait) if wait is not None else None

    async def _put_off(self, host: Host, waiting: Sequence[Waiting], of: int) -> Wait | None:
        """What becomes of entries whose robots.txt is out of reach. If all that is due waits for that, and no other
        origin of the host is known, the host waits (returned) and they stay as they are. If others can be asked, were
        not come to, or may stand behind a full hand of these, then these are due when their robots.txt is asked for
        again, and the others have their turn."""
        stuck = [(entry, wait) for entry, wait in waiting if wait.origin is not None]
        if not stuck:
            return None
        is_all = len(stuck) == of and host.out_of_reach()
        if not is_all or len(stuck) >= self.plan.per_host:
            for entry, wait in stuck:
                await self._move(host, entry, wait.until_at)
        return min((wait for _, wait in stuck), key=lambda wait: wait.until_at) if is_all else None

    def _give_back(self, host: Host, hold: Wait | None) -> None:
        state = host.state
        if hold is not None and hold.until_at > state.not_before_at:
            state = msgspec.structs.replace(state, not_before_at=hold.until_at, hold_reason=hold.reason)
            self._journal.note("hold", self.clock.now(), host=host.key, until=hold.until_at, why=hold.reason)
        host.state = state
        found = self._sifter.sitemaps(host, self.clock.now())
        self._desk.put_last(Settlement(host.key, host.token, (), found, state, (), _drained(host), give_back=True))
        self.hosts.leave(host)
        self._serving.pop(host.key, None)
        self._freed.set()

    async def _settle(self, host: Host, visit: Visit, change: Change, *, urgent: bool) -> None:
        discoveries = visit.discoveries + self._sifter.sitemaps(host, self.clock.now())
        deletions = (visit.deletion,) if visit.deletion is not None else ()
        settlement = Settlement(
            host.key, host.token, (change,), discoveries, host.state, deletions, _drained(host), visits=1
        )
        after = msgspec.structs.replace(visit, after=change.after)
        await self._desk.put(after, settlement, urgent=urgent)

    def _refuse(self, entry: Entry, host: Host) -> tuple[Url | None, Outcome | None]:
        """What can be said without asking anybody: is it a URL, and is it ours?"""
        try:
            url = parse_url(entry.url)
        except InvalidUrl as error:
            return None, Refused(Cause.MALFORMED, f"url.{error.reason}")
        ruling = scope.judge(
            self.plan.scope, url.href, entry.host, entry.depth, hops=entry.hops, pages_of_host=host.state.pages
        )
        if not ruling.keep:
            cause = Cause.BUDGET if ruling.rule.startswith("scope.budget") else Cause.SCOPE
            return url, Refused(cause, ruling.rule)
        return url, None

    def _is_fresh(self, entry: Entry) -> bool:
        return (
            self.plan.trust_freshness
            and entry.status is Status.FETCHED
            and entry.fresh_until_at is not None
            and self.clock.now() < entry.fresh_until_at
        )

    async def _ask(self, host: Host, entry: Entry, verdict: Verdict | None) -> tuple[Outcome, Wire, str]:
        """Ask for one page of the run's budget; with none left this visit is given up, those that have theirs go on."""
        if self._pages_left is None:
            return await host.ask(_request(entry), verdict=verdict, previous=entry.place)
        if self._pages_left <= 0:
            raise Stopping
        self._pages_left -= 1
        try:
            answer = await host.ask(_request(entry), verdict=verdict, previous=entry.place)
        except Held:
            self._pages_left += 1
            raise
        if self._spent and not self.hosts.stopping:
            self.why_ended = f"{self.plan.max_pages} pages were asked for, as many as allowed"
        return answer

    @property
    def _spent(self) -> bool:
        return self._pages_left is not None and self._pages_left <= 0

    async def _read(self, outcome: Outcome, url: Url, entry: Entry) -> Found | None:
        """What is in the page: in the loop if it is small, in a thread if it is not."""
        if not isinstance(outcome, Page):
            return None
        limits, token, now = self.plan.limits, self.plan.token, self.clock.now()
        if not parse.is_heavy(outcome):
            return parse.read(outcome, url, limits=limits, token=token, now=now, sitemap=entry.is_sitemap)
        async with self._readers:
            with self.clock.busy():
                return await asyncio.to_thread(
                    parse.read, outcome, url, limits=limits, token=token, now=now, sitemap=entry.is_sitemap
                )

    def _file_refusal(self, after: Entry, outcome: Outcome, host: Host, url: Url | None) -> Entry:
        """A URL refused by robots.txt keeps the digest of the rules that refused it."""
        if not isinstance(outcome, Refused) or outcome.cause is not Cause.ROBOTS or url is None or not self.plan.reopen:
            return after
        state = host.state.robots.get(url.origin)
        return msgspec.structs.replace(after, rules_digest=state.rules_digest if state else None)

    def _seen_in_this_run(self, entry: Entry) -> bool:
        """Has this one-shot run had its end of this URL, or met the host's refusal there again and again (which has no
        end where back-off is off)?"""
        began_at = self._began_at
        if not self.plan.once or entry.status is Status.FETCH_ERROR:
            return False
        if len(entry.history) >= lifecycle.HISTORY and entry.history[0].at >= began_at:
            return True
        return (
            entry.visited_at is not None
            and entry.visited_at >= began_at
            and entry.status is not Status.DISCOVERED
            and entry.rules_digest is None
            and entry.cause is not Cause.ROBOTS
        )

    async def _postpone(self, host: Host, entry: Entry) -> None:
        """A one-shot crawl visits every URL once: one that is due again already is left for the next run. All are put
        off to one instant, by which `_claim` knows that nothing else is left; it moves away as the run goes on, so that
        an entry is put off a few times at most."""
        now = self.clock.now()
        if now >= self._put_off_until_at:
            self._put_off_until_at = now + self.plan.patience_s + max(PUT_OFF_S, now - self._began_at)
        await self._move(host, entry, self._put_off_until_at)

    async def _move(self, host: Host, entry: Entry, due_at: float) -> None:
        after = msgspec.structs.replace(entry, due_at=due_at)
        await self._desk.put(None, Settlement(host.key, host.token, (Change(entry, after),), state=host.state))

    async def _join(self) -> None:
        """Wait for the hosts still at work. One that was halted before its first step has left nothing behind."""
        while at_work := [task for task in self._serving.values() if not task.done()]:
            await asyncio.wait(at_work)

    async def _leave(self) -> None:
        """Give everything back and close the sinks, whatever happened before."""
        if self.failure is None:
            await self._desk.finish()
            await self._store.release(self.plan.worker)
        else:  # the store does not know our last requests: its hosts stay leased, and rest when the lease is ended
            self.why_ended = f"failed: {self.failure}"
            await self._desk.close_sinks()
        self._journal.note("end", self.clock.now(), worker=self.plan.worker, why=self.why_ended)


def _request(entry: Entry) -> Request:
    """Conditional if the last good answer came with validators (RFC 9110 13.1), sent back exactly as received."""
    return Request(entry.url, etag=entry.etag, last_modified=entry.last_modified)


def _drained(host: Host) -> tuple[RobotsFile, ...]:
    files, host.files = tuple(host.files), []
    return files


async def _ended(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])


async def _broken_off(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel them all and return when they have ended; if we are cancelled meanwhile, only then too."""
    cancelled: asyncio.CancelledError | None = None
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        try:
            await asyncio.wait(left)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def _some(tasks: set[Attempt]) -> list[Waiting]:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    tasks -= done
    return _waiting(done)


async def _all(tasks: set[Attempt]) -> list[Waiting]:
    done, _ = await asyncio.wait(tasks)
    tasks -= done
    return _waiting(done)


def _waiting(done: set[Attempt]) -> list[Waiting]:
    """The ended visits that must wait; one broken off by the end of the crawl asks for nothing."""
    waiting = []
    for task in done:
        if task.cancelled() or isinstance(task.exception(), Stopping):
            continue
        if (waits := task.result()) is not None:
            waiting.append(waits)
    return waiting
