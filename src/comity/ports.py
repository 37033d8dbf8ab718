"""The Protocols between the engine and the world, and nothing else.

An adapter satisfies one of these by shape; it has no parent class. The contract of each verb is stated here once and
tested once, over every adapter (``tests/contracts``). All verbs are coroutines or plain calls that return at once; none
may block the event loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from comity.model import (
    Claim,
    Claims,
    Deletion,
    Entry,
    Mark,
    Outcome,
    Request,
    RobotsFile,
    Settled,
    Settlement,
    Stats,
    Status,
    Verdict,
    Visit,
    Wire,
)


class Clock(Protocol):
    """Where the engine gets its time. `now` never goes back."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        ...

    async def sleep_until(self, at: float, *, heartbeat: bool = False) -> None:
        """Return at or after `at` (a loop may wake a millisecond early: callers check again). A heart-beat is a wait
        that no progress depends on; a virtual clock never jumps for one."""
        ...

    def busy(self) -> AbstractContextManager[None]:
        """Work is under way outside the event loop (a request, a thread): virtual time stands still meanwhile."""
        ...


class Frontier(Protocol):
    """The engine's side of the store. Contract: docs/architecture.md, "The frontier"."""

    async def add(self, discoveries: Sequence[Entry], now: float) -> tuple[str, ...]:
        """Insert by key unless known, as given (DISCOVERED and due, or refused). An entry never visited takes the
        smaller depth (with its `via` and `hops`) and the union of flags. Returns the keys that were new."""
        ...

    async def claim(self, worker: str, now: float, hosts: int, per_host: int) -> Claims:
        """Up to `hosts` unowned hosts whose ready_at <= now, each with up to `per_host` entries in order (due_at, seq).
        The token grows by one at every claim of a host."""
        ...

    async def refill(self, claims: Sequence[Claim], now: float, per_host: int) -> Mapping[str, tuple[Entry, ...]]:
        """More due entries of hosts already held, by host. Everything handed out before must have been settled."""
        ...

    async def settle(self, settlements: Sequence[Settlement], marks: Mapping[str, Mark], now: float) -> Settled:
        """Many hosts at once, one transaction: all or nothing, but for stale tokens, which are told."""
        ...

    async def renew(self, worker: str, lease_s: float) -> None:
        """Extend every lease of this worker, by the store's clock."""
        ...

    async def hold(self, host: str, until_at: float) -> float:
        """No request to this host before `until_at`; durable on return. Holds only grow. Returns the instant before
        which the host was already not to be asked (0.0 if none)."""
        ...

    async def release(self, worker: str) -> None:
        """Give back every host of this worker."""
        ...

    async def marks(self) -> Mapping[str, Mark]:
        """The sink marks of the last settle."""
        ...

    async def close(self) -> None:
        """Give all back and close."""
        ...


class Ledger(Protocol):
    """The people's and the sinks' side of the store; works beside a running crawl."""

    async def get(self, key: str) -> Entry | None: ...

    async def find(
        self, *, host: str | None = None, status: Status | None = None, after: str | None = None, limit: int = 100
    ) -> tuple[Entry, ...]:
        """Entries in key order within host, a page at a time: `after` is the last key of the page before."""
        ...

    async def stats(self) -> Stats: ...

    async def host(self, host: str) -> Claim | None:
        """A host's state as stored (no entries, nothing is claimed); None if unknown."""
        ...

    async def requeue(self, keys: Sequence[str], now: float) -> int:
        """ERROR (or any) entries go back to DISCOVERED, due now. Returns how many changed."""
        ...

    async def set_next(self, key: str, due_at: float | None) -> bool: ...

    async def forget(self, key: str) -> bool:
        """Remove the entry; its deletion goes to the outbox."""
        ...

    async def robots(self, digest: str) -> RobotsFile | None: ...

    async def deletions(self, sink: str, after: int, limit: int) -> tuple[Deletion, ...]:
        """The outbox in order, from just after `after`."""
        ...


class Fetcher(Protocol):
    """One request under caps. Never raises for what the network did."""

    async def fetch(self, request: Request) -> tuple[Outcome, Wire]: ...

    async def close(self) -> None: ...


class Sink(Protocol):
    """Where visits go. Order for a batch: write, flush, settle (which stores the mark in the same transaction)."""

    name: str

    async def open(self, mark: Mark | None) -> None:
        """Begin after `mark`; a file sink cuts off whatever lies beyond it. None: nothing was ever settled."""
        ...

    async def write(self, visits: Sequence[Visit]) -> Mark:
        """Returns once the visits are handed to the kernel (or the service); the mark stands just after them."""
        ...

    async def delete(self, deletions: Sequence[Deletion]) -> Mark: ...

    async def close(self) -> None: ...


class Seen(Protocol):
    """Which links the store has acknowledged. It may forget, it never errs the other way: a link that would improve
    its entry (smaller depth, new flags) is not "known"."""

    def knows(self, key: str, depth: int, is_sitemap: bool = False, is_feed: bool = False) -> bool: ...

    def learn(self, entries: Sequence[Entry]) -> None:
        """Only after the commit that stored them."""
        ...


class Journal(Protocol):
    """The crawl log, as the engine writes it: an event before every request, another before every settle. Plain calls:
    one write(2) each. Every call returns the place of the event written, to be named by the URL's next one."""

    def asking(self, request: Request, host: str, at: float, verdict: Verdict | None, previous: str | None) -> str: ...

    def heard(self, request: Request, host: str, outcome: Outcome, wire: Wire, **facts: Any) -> str:
        """The answer to a request that is no visit (robots.txt and its redirects)."""
        ...

    def visited(self, visit: Visit) -> str: ...

    def note(self, event: str, at: float, **facts: Any) -> str:
        """Start, stop, hold, and whatever else an operator must be able to read later."""
        ...
