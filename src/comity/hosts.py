"""A claimed host's run state: its robots, its clock, its slot; go, wait until, or refuse.

`Host.ask` is the one wrapper of design: every request of every kind (page, robots.txt, a hop of a robots redirect)
goes through it, and there is no other way to the network. It holds four things in this order: room among the host's
requests in flight (however many visits and guests there are), the host's turn (so that starts are spaced), its clock,
and one of the crawl's slots. The clock is read again after every sleep and once more after the slot is held, because a
loop may wake a millisecond early and a slot may be long in coming. A lease is proved before each request, not assumed.
A host on hold for long is not waited for: `Held` says until when, and the host is given back.

`Host.admit` answers for one URL by the rules of its *origin*: it obtains robots.txt when the copy at hand is missing
or too old, reads the verdict, and says `Go`, `Wait` or refuses. An unreachable robots.txt makes the host wait and
changes no entry.

A robots.txt may redirect to another host, whose clock must be kept too. If that host is claimed here its own `Host` is
used; else one without a claim, which begins with what the store knows of the host and places a `Frontier.hold` just
before it starts a request and again after it, so that other workers, a later claim of ours, and a later run keep their
distance. Invariant: while anybody waits or asks there, there is one `Host` a key, through claims and their ends.

This module decides nothing about spacing, rules or retries: `comity.politeness` and `comity.robots` do. It refuses to
know which frontier, fetcher or log it talks to.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from comity import headers, politeness, robots
from comity.lease import Lease
from comity.model import (
    Access,
    Cause,
    Claim,
    Failed,
    Failure,
    HostState,
    HttpError,
    Kind,
    Link,
    Outcome,
    Refused,
    Request,
    RobotsFile,
    RobotsState,
    Verdict,
    Wire,
)
from comity.ports import Clock, Fetcher, Frontier, Journal, Ledger
from comity.url import Url, host_key, parse

GIVE_BACK_S = 5.0
"""A host on hold for longer than this is given back instead of kept waiting: its claim costs memory and a place."""

LONGEST_VISIT_WAIT_S = 60.0
"""A foreign host that may not be asked for longer than this is taken as out of reach for now."""

LONGEST_REST_S = 86_400.0
"""A delay that a robots.txt names is waited out, and no request comes sooner; but one longer than a day is shown as a
hold, which the end of a crawl does not wait for."""

JUST_READ_S = 1.0
"""A robots.txt that may not be kept at all (`min_age_s` 0) speaks at least for the page for whose sake it was read."""

HEAVY_BYTES = 32 * 1024
"""A larger robots.txt is parsed and compiled in a thread (512 KiB of wildcards: 105 ms measured)."""

WILD_AT_HAND = 500
"""With more wildcard rules than this, links are judged when their turn comes only, not 45 at once when found."""

RULES_KEPT = 20_000
"""Compiled rules kept in memory for hosts not claimed now; some hundred bytes each for an ordinary file."""


class Store(Frontier, Ledger, Protocol):
    """What the engine needs of the store: the frontier's verbs, and robots.txt bodies by digest."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How we behave towards one host."""

    politeness: politeness.Policy
    robots: robots.Policy
    obey: bool = True  # False only for one's own hosts, by configuration


@dataclass(frozen=True, slots=True)
class Go:
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing may be asked before `until_at`: of this origin, whose robots.txt is out of reach, or (None) of the host,
    which is on hold."""

    until_at: float
    reason: str
    origin: str | None = None


class Stopping(Exception):
    """Raised out of a wait when the crawl ends."""


class Held(Exception):
    """Raised instead of a long wait when the host is on hold."""

    def __init__(self, wait: Wait) -> None:
        super().__init__(wait.reason)
        self.wait = wait


_NO_TURN = contextlib.nullcontext()


class Hosts:
    """All hosts this worker holds or is visiting, and what they share: fetcher, slots, rules, lease."""

    def __init__(
        self,
        *,
        store: Store,
        fetcher: Fetcher,
        clock: Clock,
        journal: Journal,
        lease: Lease,
        token: str,
        manner: Callable[[str], Manner],
        in_flight: int,
        chance: Callable[[], float],
        host_per: Literal["host", "domain"] = "host",
    ) -> None:
        self.store, self.fetcher, self.clock, self.journal, self.lease = store, fetcher, clock, journal, lease
        self.token, self.manner, self.chance = token, manner, chance
        self.slots = asyncio.Semaphore(in_flight)
        self.per = host_per
        self.claimed: dict[str, Host] = {}
        self.requests = 0
        self.stopping = False
        self._visited: dict[str, Host] = {}  # hosts not claimed that have guests
        self._left: dict[str, HostState] = {}  # hosts given back whose last state the store has yet to hear of
        self._rules: OrderedDict[str, robots.Rules] = OrderedDict()

    def take(self, claim: Claim) -> Host:
        """The run state of a host just claimed; guests still there keep it, and it keeps their clock."""
        host = self._visited.pop(claim.host, None)
        if host is None:
            host = Host(self, claim.host, msgspec.structs.replace(claim.state, in_flight=0))
        else:
            here = host.state
            host.state = msgspec.structs.replace(
                claim.state,
                next_at=max(claim.state.next_at, here.next_at),
                not_before_at=max(claim.state.not_before_at, here.not_before_at),
                widened_s=max(claim.state.widened_s, here.widened_s),
                in_flight=here.in_flight,
            )
        host.token = claim.token
        self.claimed[claim.host] = host
        return host

    def leave(self, host: Host) -> None:
        self.claimed.pop(host.key, None)
        self._left[host.key] = host.state
        if host.guests:
            self._visited[host.key] = host

    def given_back(self, key: str) -> None:
        """The store knows now how we left this host."""
        self._left.pop(key, None)

    def waiting(self) -> list[asyncio.Task[object]]:
        """The tasks that wait for a host's clock or for a slot: what may be broken off when the crawl ends."""
        return [task for host in (*self.claimed.values(), *self._visited.values()) for task in host.waiting]

    def verdict_at_hand(self, link: Link) -> tuple[Verdict, str | None] | None:
        """What the rules in memory say of a link just found, with their digest; None: no rules at hand."""
        host = self.claimed.get(link.host)
        if host is None or not host.manner.obey or not host.rules:
            return None
        for origin, rules in host.rules.items():  # a host has one or two; parsing the link again would cost 4 µs
            if link.url.startswith(f"{origin}/"):
                state = host.state.robots.get(origin)
                if state is None or state.access is not Access.RULES or len(rules.wild) > WILD_AT_HAND:
                    return None
                return robots.verdict(rules, link.url[len(origin) :]), rules.digest
        return None

    async def elsewhere(self, request: Request, url: Url) -> tuple[Outcome, Wire]:
        """Ask a host that is not the asker's own, by its own clock."""
        key = host_key(url.host, self.per)
        host = self.claimed.get(key) or self._visited.get(key)
        if host is None:
            known = await self.store.host(key)
            host = self.claimed.get(key) or self._visited.get(key)  # somebody may have come meanwhile
            if host is None:
                state = self._left.get(key) or (known.state if known is not None else HostState())
                host = self._visited[key] = Host(self, key, _as_a_guest(state))
        host.guests += 1
        try:
            now = self.clock.now()
            if politeness.next_at(host.state, host.manner.politeness) > now + LONGEST_VISIT_WAIT_S:
                return Failed(Failure.UNREACHABLE, f"{key} may not be asked yet"), _silence(now)
            outcome, wire, _ = await host.ask(request)
            if self.claimed.get(key) is not host:
                await self.store.hold(key, politeness.next_at(host.state, host.manner.politeness))
            return outcome, wire
        except Held as held:
            return Failed(Failure.UNREACHABLE, f"{key} is on hold: {held.wait.reason}"), _silence(self.clock.now())
        finally:
            host.guests -= 1
            if not host.guests and self._visited.get(key) is host:
                del self._visited[key]

    def compiled(self, body: bytes, digest: str, origin: str) -> robots.Rules:
        """The rules of a robots.txt body for our token; hosts that serve the same body share all but the origin."""
        rules = self._rules.get(digest)
        if rules is None:
            rules = self._rules[digest] = robots.compile(robots.parse(body), self.token, origin)
            if len(self._rules) > RULES_KEPT:
                self._rules.popitem(last=False)
        else:
            self._rules.move_to_end(digest)
        return robots.for_origin(rules, origin)

    async def recall(self, state: RobotsState, origin: str) -> robots.Rules | None:
        """The compiled rules of an origin's last good copy: from memory, else from the body in the store."""
        if state.digest is None:
            return None
        if (rules := self._rules.get(state.digest)) is not None:
            return robots.for_origin(rules, origin)
        file = await self.store.robots(state.digest)
        return self.compiled(file.body, file.digest, origin) if file is not None else None


class Host:
    """One host, while we hold it (or visit it without a claim)."""

    __slots__ = (
        "_all",
        "_consulting",
        "_room",
        "_turn",
        "files",
        "guests",
        "key",
        "manner",
        "rules",
        "sitemaps",
        "state",
        "token",
        "waiting",
    )

    def __init__(self, hosts: Hosts, key: str, state: HostState) -> None:
        self._all = hosts
        self.key = key
        self.state = state
        self.token = 0
        self.manner = hosts.manner(key)
        self.rules: dict[str, robots.Rules] = {}
        self.files: list[RobotsFile] = []  # robots bodies not yet settled
        self.sitemaps: list[tuple[str, str]] = []  # (sitemap URL, robots URL) named by robots.txt, not yet handed on
        self.waiting: set[asyncio.Task[object]] = set()  # in a wait that may be broken off
        self.guests = 0  # requests on behalf of other hosts, waiting or in flight
        self._room = asyncio.Semaphore(self.manner.politeness.in_flight)
        self._turn = asyncio.Lock() if self.manner.politeness.in_flight > 1 else None  # else the room is the turn
        self._consulting: asyncio.Lock | None = None

    async def admit(self, url: Url) -> Go | Wait | Refused:
        """May this URL be asked now? Obtains robots.txt first if need be, by the same clock."""
        policy = self.manner.politeness
        if not self.manner.obey:
            return Go(None)
        try:
            state = await self._robots(url)
        except Held as held:
            return held.wait
        now = self._all.clock.now()
        access = robots.speaks(state, now, self.manner.robots)
        if access is Access.UNREACHABLE:
            return Wait(
                max(state.expires_at, now), f"robots.txt of {url.origin} unreachable ({_met(state)})", url.origin
            )
        rules = self.rules.get(url.origin)
        if access is Access.RULES:
            if rules is None:  # the body is gone from the store: never guess
                until_at = now + self.manner.robots.retry_first_s
                return Wait(until_at, f"robots.txt of {url.origin} is to be read again", url.origin)
            verdict = robots.verdict(rules, url.target)
        else:
            verdict = robots.verdict_without_rules(access)
        if not verdict.allowed:
            return Refused(Cause.ROBOTS, verdict.rule or f"robots.{access.value}", verdict)
        if politeness.too_long(self.state, policy):
            return Refused(Cause.CRAWL_DELAY, f"Crawl-delay {self.state.wanted_s:g} s", verdict)
        return Go(verdict)

    def out_of_reach(self) -> bool:
        """Is there no origin of this host that we know of and could ask now?"""
        now, policy = self._all.clock.now(), self.manner.robots
        known = self.state.robots.values()
        return all(
            now < state.expires_at and robots.speaks(state, now, policy) is Access.UNREACHABLE for state in known
        )

    async def ask(
        self, request: Request, *, verdict: Verdict | None = None, previous: str | None = None
    ) -> tuple[Outcome, Wire, str]:
        """The wrapper: one request, when the host's clock, the crawl's slots and the lease allow it. The string is the
        place of its event in the crawl log. Raises `Held` if the host is on hold for long."""
        everyone, policy = self._all, self.manner.politeness
        async with self._room:
            async with self._turn or _NO_TURN:
                started_at = await self._until_free()
                self.state = politeness.started(self.state, policy, started_at)
            place = None
            try:
                place = everyone.journal.asking(request, self.key, started_at, verdict, previous)
                everyone.requests += 1
                outcome, wire = await everyone.fetcher.fetch(request)
            except BaseException:
                now = everyone.clock.now()  # broken off: the server may well have been asked
                self.state = politeness.finished(
                    self.state, policy, answer=politeness.Answer.OTHER, heard_at=None, finished_at=now,
                    service_s=now - started_at, retry_after_s=None, jitter=0.0,
                )  # fmt: skip
                if place is not None:
                    everyone.journal.note("broken_off", now, host=self.key, url=request.url, asked=place)
                raise
            finally:
                everyone.slots.release()
            self._heard(outcome, wire)
        return outcome, wire, place

    def _heard(self, outcome: Outcome, wire: Wire) -> None:
        """Learn from an answer, before anybody else asks."""
        retry_after_s = None
        if isinstance(outcome, HttpError):
            retry_after_s = headers.retry_after_s(outcome.headers, wire.heard_at or self._all.clock.now())
        self.state = politeness.finished(
            self.state, self.manner.politeness, answer=politeness.answer(outcome), heard_at=wire.heard_at,
            finished_at=wire.finished_at, service_s=wire.service_s, retry_after_s=retry_after_s,
            jitter=self._all.chance(),
        )  # fmt: skip
        if wire.address is not None and wire.address != self.state.address:
            self.state = msgspec.structs.replace(self.state, address=wire.address)

    async def _until_free(self) -> float:
        """Return holding a slot, with the present instant, at which the host may be asked."""
        everyone, policy = self._all, self.manner.politeness
        clock, slots = everyone.clock, everyone.slots
        task = asyncio.current_task()
        assert task is not None
        self.waiting.add(task)
        try:
            while True:
                if everyone.stopping:
                    raise Stopping
                if (held := self._held()) is not None:
                    raise Held(held)
                if clock.now() < (at := politeness.next_at(self.state, policy)):
                    await clock.sleep_until(at)
                    continue
                await everyone.lease.prove()
                await slots.acquire()
                try:
                    if (now := await self._start()) is not None:
                        return now
                except BaseException:
                    slots.release()
                    raise
                slots.release()
        finally:
            self.waiting.discard(task)

    async def _start(self) -> float | None:
        """The present instant if a request may start now, for the waits before may have been long. Where we hold no
        claim the store is told first."""
        everyone, policy = self._all, self.manner.politeness
        if (now := self._may_start()) is None or everyone.claimed.get(self.key) is self or not self.guests:
            return now
        known_at = await everyone.store.hold(self.key, now + politeness.delay_s(self.state, policy))
        if known_at > now:  # another worker was faster
            self.state = msgspec.structs.replace(self.state, next_at=max(self.state.next_at, known_at))
        return self._may_start()

    def _may_start(self) -> float | None:
        now = self._all.clock.now()
        may = not self._all.stopping and now >= politeness.next_at(self.state, self.manner.politeness)
        return now if may else None

    def _held(self) -> Wait | None:
        now = self._all.clock.now()
        if self.state.next_at > max(now + LONGEST_REST_S, self.state.not_before_at):
            reason = f"Crawl-delay: {politeness.delay_s(self.state, self.manner.politeness):g} s"
            self.state = msgspec.structs.replace(self.state, not_before_at=self.state.next_at, hold_reason=reason)
        until_at = self.state.not_before_at
        if until_at <= now + GIVE_BACK_S:
            return None
        return Wait(until_at, self.state.hold_reason or "on hold")

    async def _robots(self, url: Url) -> RobotsState:
        """The state of this origin's robots.txt, fetched if the copy at hand may not be used any longer."""
        state = self.state.robots.get(url.origin)
        now = self._all.clock.now()
        if state is not None and now < state.expires_at:
            if url.origin not in self.rules and state.digest is not None:
                if (rules := await self._all.recall(state, url.origin)) is not None:
                    self.rules[url.origin] = rules
            if url.origin in self.rules or robots.speaks(state, now, self.manner.robots) is not Access.RULES:
                return state
        if self._consulting is None:
            self._consulting = asyncio.Lock()
        async with self._consulting:  # one fetch per origin at a time, however many visits wait
            again = self.state.robots.get(url.origin)
            if again is not None and again is not state and self._all.clock.now() < again.expires_at:
                return again
            return await self._consult(url.origin, again)

    async def _consult(self, origin: str, previous: RobotsState | None) -> RobotsState:
        """Fetch robots.txt along at most the policy's number of redirects, each hop by its own host's clock."""
        everyone, policy = self._all, self.manner.robots
        first = target = f"{origin}/robots.txt"
        hops = 0
        while True:
            request = Request(target, Kind.ROBOTS, max_body_bytes=policy.max_bytes)
            here = parse(target)
            if host_key(here.host, everyone.per) == self.key:
                outcome, wire, _ = await self.ask(request)
            else:
                outcome, wire = await everyone.elsewhere(request, here)
            everyone.journal.heard(request, self.key, outcome, wire, origin=origin, hops=hops)
            if (following := robots.follow(outcome, hops, policy)) is None:
                break
            target, hops = following, hops + 1
        now = everyone.clock.now()
        state, body = robots.consult(outcome, hops, previous, now, policy)
        if state.expires_at < now + JUST_READ_S:  # else the page that asked for it could never be asked for
            state = msgspec.structs.replace(state, expires_at=now + JUST_READ_S)
        if body is not None and (digest := state.digest) is not None:
            if len(body) > HEAVY_BYTES:  # compiled beside the loop, then found in memory
                with everyone.clock.busy():
                    await asyncio.to_thread(everyone.compiled, body, digest, origin)
            rules = everyone.compiled(body, digest, origin)
            self.rules[origin] = rules
            state = msgspec.structs.replace(state, rules_digest=rules.digest)
            if previous is None or previous.digest != digest:
                self.files.append(RobotsFile(digest, body, first, everyone.clock.now()))
            self.sitemaps += [(sitemap, first) for sitemap, _ in rules.sitemaps]
        elif state.access in (Access.ALLOW, Access.DISALLOW):
            self.rules.pop(origin, None)
            state = msgspec.structs.replace(state, rules_digest=robots.digest_without_rules(state.access, origin))
        elif origin not in self.rules and (kept := await everyone.recall(state, origin)) is not None:
            self.rules[origin] = kept
        self.state = msgspec.structs.replace(self.state, robots={**self.state.robots, origin: state})
        wanted = [rules.wanted_s for rules in self.rules.values() if rules.wanted_s is not None]
        if self.state.wanted_s is not None and any(
            known.digest is not None and of not in self.rules for of, known in self.state.robots.items()
        ):
            wanted.append(self.state.wanted_s)  # named, perhaps, by an origin whose rules are not loaded
        self.state = politeness.named(self.state, self.manner.politeness, max(wanted, default=None))
        next_at = politeness.next_at(self.state, self.manner.politeness)
        if self.key in everyone.claimed and next_at > everyone.clock.now() + GIVE_BACK_S:
            await everyone.store.hold(self.key, next_at)  # the next settle is as far away: a crash must not forget it
        return state


def _met(state: RobotsState) -> str:
    if state.failure is not None:
        return state.failure.value
    return f"HTTP {state.http_status}" if state.http_status is not None else "no answer"


def _as_a_guest(state: HostState) -> HostState:
    """A hold is waited out here like any other instant (`LONGEST_VISIT_WAIT_S`): it may stand for a request before."""
    return msgspec.structs.replace(
        state, next_at=max(state.next_at, state.not_before_at), not_before_at=0.0, in_flight=0
    )


def _silence(at: float) -> Wire:
    return Wire(request=b"", response=b"", started_at=at, finished_at=at)
