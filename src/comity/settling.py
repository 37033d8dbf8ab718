"""Visits become rows: one write to every sink and one transaction for a whole batch.

The order is the promise: write -> flush -> settle, and the settle stores every sink's mark in the transaction that
stores the entries. A crash before it repeats the visits (files are cut back to their marks when they are opened); a
crash after it has lost nothing. Nothing else in comity writes to a sink or settles.

A batch leaves when 64 visits wait, 100 ms after its first, or at once when something urgent is in it (a 429, a 503, a
hold) or a host has nothing left to do until its visits are settled. What waits is bounded: `put` blocks when
four batches are waiting, which is how a slow store or sink slows the crawl down instead of filling the memory.

Deletions are the store's outbox: after a settle that made some, and once at the start, every sink is given those it
has not had, and its place in the outbox is part of its mark.

This module refuses to know what a visit means; it only knows when one may be called done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from comity.model import Change, Claim, Deletion, Entry, HostState, Mark, RobotsFile, Settlement, Visit
from comity.ports import Clock, Frontier, Ledger, Seen, Sink
from comity.tally import Tally

OUTBOX_PAGE = 1_000
PATIENCE_WITH_WAITERS_S = 0.01


class Enough(Exception):
    """Raised by a sink that took only the first `written` visits of a batch and wants no more; it must stand first
    among the sinks, so that no other has written the rest."""

    def __init__(self, written: int, mark: Mark) -> None:
        super().__init__(f"only {written} visits were taken")
        self.written, self.mark = written, mark


class Store(Frontier, Ledger, Protocol):
    """Both sides of the store."""


class Desk:
    """Where finished visits wait to be settled together."""

    def __init__(
        self,
        *,
        store: Store,
        sinks: Sequence[Sink],
        clock: Clock,
        seen: Seen,
        tally: Tally,
        batch: int = 64,
        batch_s: float = 0.1,
        per_host: int = 20,
    ) -> None:
        self._store, self._sinks, self._clock, self._seen, self._tally = store, sinks, clock, seen, tally
        self._batch, self._batch_s, self._per_host = batch, batch_s, per_host
        self._pending: list[tuple[Visit | None, Settlement]] = []
        self._asking: dict[str, tuple[Claim, asyncio.Future[tuple[Entry, ...]]]] = {}
        self._marks: dict[str, Mark] = {}
        self._outbox: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._urgent = self._closing = self._settling = False
        self._over = False  # `run` has ended
        self._torn = False  # the sinks may be ahead of the store: their marks must not be stored
        self._busy: AbstractContextManager[None] | None = None
        self.settled = 0
        self.given_back: Callable[[str], None] = lambda host: None  # told of hosts whose last state is stored
        self.changed = asyncio.Event()  # something was settled: hosts may have become due

    async def open(self) -> None:
        """Open every sink just after its mark, and hand over the deletions that it has not had."""
        marks = await self._store.marks()
        for sink in self._sinks:
            mark = marks.get(sink.name)
            await sink.open(mark)
            if mark is not None:
                self._marks[sink.name] = mark
            self._outbox[sink.name] = (mark or {}).get("deleted", 0)
        await self._hand_over_deletions()

    async def put(self, visit: Visit | None, settlement: Settlement, *, urgent: bool = False) -> None:
        """Queue one visit (or only a host's state). Returns when there is room, not when it is settled."""
        while not self._room.is_set() and not self._closing:
            await self._room.wait()
        self._pending.append((visit, settlement))
        self._urgent = self._urgent or urgent
        if len(self._pending) >= 4 * self._batch:
            self._room.clear()
        self._stir()

    def put_last(self, settlement: Settlement) -> None:
        """Queue a host's last word without waiting for room: for hosts given back, also while stopping."""
        self._pending.append((None, settlement))
        self._stir()

    async def refill(self, claim: Claim) -> tuple[Entry, ...]:
        """More due entries of a host, once all its visits are settled; none when nothing will be settled any more."""
        if self._over:
            return ()
        future: asyncio.Future[tuple[Entry, ...]] = asyncio.get_running_loop().create_future()
        self._asking[claim.host] = (claim, future)
        self._stir()
        return await future

    async def run(self) -> None:
        """Settle batch after batch until `close`. An error of a sink or of the store ends it: the batch is not settled
        and will be visited again."""
        try:
            while True:
                while not self._pending and not self._asking:
                    if self._closing:
                        return
                    self._rest()
                    self._wake.clear()
                    await self._wake.wait()
                await self._gather()
                self._settling = True
                try:
                    await self._settle()
                finally:
                    self._settling = False
                    self.changed.set()
        finally:
            self._over = self._closing = True
            self._room.set()
            for _, future in self._asking.values():
                if not future.done():
                    future.set_result(())
            self._asking.clear()
            self._rest()

    @property
    def idle(self) -> bool:
        """Is everything that was put settled, hosts given back included?"""
        return not self._pending and not self._settling

    def close(self) -> None:
        """Settle what waits, then end `run`."""
        self._closing = True
        self._room.set()
        self._stir()

    async def finish(self) -> None:
        """After `run` has ended well or was cancelled: store the marks that the last deletions moved and the state of
        hosts whose last visits nobody took (their clocks must outlive us), and close the sinks. Cancelled between a
        write and its settle, nobody knows which marks hold: the store keeps those it has, and the files are cut back
        to them."""
        states = [
            Settlement(s.host, s.token, state=s.state, robots=s.robots, give_back=s.give_back)
            for s in merged([settlement for _, settlement in self._pending])
        ]
        marks = {} if self._torn else self._marks
        if marks or states:
            await self._store.settle(states, marks, self._clock.now())
        await self.close_sinks()

    async def close_sinks(self) -> None:
        """Close the sinks and forget what was not settled."""
        self._pending.clear()
        self._rest()
        for sink in self._sinks:
            await sink.close()

    def _stir(self) -> None:
        if self._busy is None:
            self._busy = self._clock.busy()
            self._busy.__enter__()
        self._wake.set()

    def _rest(self) -> None:
        if self._busy is not None and not self._pending and not self._asking:
            self._busy.__exit__(None, None, None)
            self._busy = None

    async def _gather(self) -> None:
        """Wait until the batch is worth a transaction."""
        loop = asyncio.get_running_loop()
        first_at = loop.time()
        while len(self._pending) < self._batch and not self._urgent and not self._closing:
            patience_s = PATIENCE_WITH_WAITERS_S if self._asking else self._batch_s
            left_s = first_at + patience_s - loop.time()
            if left_s <= 0:
                return
            self._wake.clear()
            timer = loop.call_later(left_s, self._wake.set)
            await self._wake.wait()
            timer.cancel()

    async def _settle(self) -> None:
        batch, self._pending = self._pending[: self._batch], self._pending[self._batch :]
        asking: dict[str, tuple[Claim, asyncio.Future[tuple[Entry, ...]]]] = {}
        if not self._pending:  # else some host that asks may have a visit left behind
            asking, self._asking = self._asking, {}
            self._urgent = False
        self._room.set()
        if batch:
            self._torn = True
            batch, enough = await self._write(batch)
            settlements = merged([settlement for _, settlement in batch])
            now = self._clock.now()
            await self._store.settle(settlements, self._marks, now)
            self._torn = False
            for visit, settlement in batch:
                if settlement.discoveries:
                    self._seen.learn(settlement.discoveries)
                if visit is not None:
                    self._tally.add(visit)
                    self.settled += 1
                if settlement.give_back:
                    self.given_back(settlement.host)
            if any(settlement.deletions for settlement in settlements):
                await self._hand_over_deletions()
            if enough is not None:
                raise enough
        if asking:
            claims = [claim for claim, _ in asking.values()]
            more = await self._store.refill(claims, self._clock.now(), self._per_host)
            for host, (_, future) in asking.items():
                if not future.done():
                    future.set_result(more.get(host, ()))

    async def _write(
        self, batch: list[tuple[Visit | None, Settlement]]
    ) -> tuple[list[tuple[Visit | None, Settlement]], Enough | None]:
        visits = [visit for visit, _ in batch if visit is not None]
        if not visits:
            return batch, None
        enough = None
        for sink in self._sinks:
            try:
                mark = await sink.write(visits)
            except Enough as stop:
                enough, mark = stop, stop.mark
                visits = visits[: stop.written]
                taken = {id(visit) for visit in visits}
                batch = [(v, s) for v, s in batch if v is None or id(v) in taken]
            self._marks[sink.name] = {**mark, "deleted": self._outbox.get(sink.name, 0)}
        return batch, enough

    async def _hand_over_deletions(self) -> None:
        for sink in self._sinks:
            while True:
                after = self._outbox.get(sink.name, 0)
                deletions: tuple[Deletion, ...] = await self._store.deletions(sink.name, after, OUTBOX_PAGE)
                if not deletions:
                    break
                mark = await sink.delete(deletions)
                self._outbox[sink.name] = deletions[-1].seq
                self._marks[sink.name] = {**mark, "deleted": deletions[-1].seq}


def merged(settlements: Sequence[Settlement]) -> list[Settlement]:
    """One settlement a host (and token), in order; the last state speaks."""
    by_host: dict[tuple[str, int], list[Settlement]] = {}
    for settlement in settlements:
        by_host.setdefault((settlement.host, settlement.token), []).append(settlement)
    return [parts[0] if len(parts) == 1 else _merge(parts) for parts in by_host.values()]


def _merge(parts: Sequence[Settlement]) -> Settlement:
    changes: list[Change] = []
    discoveries: list[Entry] = []
    deletions: list[Deletion] = []
    files: list[RobotsFile] = []
    state: HostState | None = None
    for part in parts:
        changes += part.changes
        discoveries += part.discoveries
        deletions += part.deletions
        files += part.robots
        state = part.state or state
    return Settlement(
        parts[0].host,
        parts[0].token,
        tuple(changes),
        tuple(discoveries),
        state,
        tuple(deletions),
        tuple(files),
        any(part.give_back for part in parts),
        sum(part.visits for part in parts),
    )
