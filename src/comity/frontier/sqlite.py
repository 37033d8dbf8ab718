"""The embedded frontier: one SQLite file, for one crawl at a time, with people looking in beside it.

It owns the engine's verbs over the file; the rows are `writing`'s, the file and its threads `database`'s, the people's
verbs `ledger`'s. Each verb is one function that runs in the writer's thread, named like the verb with an underscore.

Invariants:

* a host is held by at most one worker, and claimed by one column alone: `ready_at`, generated from the least due time,
  the politeness clock and the longest hold, and indexed for unowned hosts only. So a claim reads a few index entries
  whatever the number of URLs (0.1-0.2 ms a host from 10^5 to 10^7: measured), and what happens to a held host touches
  no index;
* claimed URLs are not marked: the lease on the host protects them, and a crash leaves nothing to clean up in them;
* a token says which claim a settlement belongs to. It is checked in the transaction that applies it.

Leases: one row a worker, by the clock given to `open` (all processes of one machine share it). A worker that claims
ends the leases of others that have run out; each of their hosts rests one full delay after the end. A worker's name
must be its own: never the same for two processes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from comity.frontier import StoreFailed, contract, rows
from comity.frontier.contract import full_delay
from comity.frontier.database import Database, Lane, Tidier, prepare
from comity.frontier.ledger import SqliteLedger, open_reader
from comity.frontier.writing import SQL, Slot, Writing, next_due, next_refused
from comity.model import (
    Claim,
    Claims,
    Deletion,
    Entry,
    HostState,
    Mark,
    RobotsFile,
    Settled,
    Settlement,
    Stats,
    Status,
)
from comity.ports import Clock

ADDED_AT_ONCE = 1_000  # a longer list of seeds is several transactions, so that others have their turn between
HOSTS_REMEMBERED = 200_000

T = TypeVar("T")

_FIND, _SETTLE_HOST = SQL["host_find"], SQL["host_settle"]


class SqliteFrontier:
    """Both sides of the store, durable. Made by `open`, to be closed by `close`."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        lease_s: float,
        rest_s: Callable[[str, HostState], float],
        max_bytes: int | None,
        slot: Slot,
    ) -> None:
        """Use `open`."""
        self.path = path
        self._clock = clock
        self._lease_s = lease_s
        self._rest_s = rest_s
        self._slot = slot
        self._host_ids: dict[str, int] = {}
        self._ours: set[str] = set()
        self._tidier = Tidier(path)
        self._writer = Lane("frontier", path, clock, lambda: Database(path, max_bytes=max_bytes))
        reader = Lane("frontier-reader", path, clock, lambda: open_reader(path))
        self._reader = reader
        self._ledger = SqliteLedger(path, clock, reader, self._writer, slot, self._tidier.written)

    @classmethod
    async def open(
        cls,
        path: str | Path,
        *,
        clock: Clock,
        lease_s: float = 60.0,
        rest_s: Callable[[str, HostState], float] = full_delay,
        max_bytes: int | None = None,
        slot: Slot = contract.slot,
    ) -> SqliteFrontier:
        """Open the file, made or brought up to date if need be. `lease_s`: how long a claim lasts unless renewed;
        `rest_s`: how long a host rests whose worker vanished; `max_bytes`: refuse to grow beyond it (`StoreFull`);
        `slot`: the hash of a key, to be replaced in tests of collisions only. Raises `SchemaTooNew`, `StoreFailed`."""
        path = Path(path)
        first = Lane("frontier-schema", path, clock, lambda: Database(path))
        try:
            await first.do(prepare, path)
        finally:
            await first.close()
        frontier = cls(path, clock, lease_s, rest_s, max_bytes, slot)
        try:
            await frontier._writer.do(frontier._writer.database)
        except BaseException:
            await frontier.close()
            raise
        return frontier

    # ---------------------------------------------------------------------------------------------------- Frontier

    async def add(self, discoveries: Sequence[Entry], now: float) -> tuple[str, ...]:
        new: list[str] = []
        for i in range(0, len(discoveries), ADDED_AT_ONCE):
            new += await self._write(self._add, discoveries[i : i + ADDED_AT_ONCE], now)
        return tuple(new)

    async def claim(self, worker: str, now: float, hosts: int, per_host: int) -> Claims:
        self._ours.add(worker)
        return await self._write(self._claim, worker, now, hosts, per_host, self._clock.now())

    async def refill(self, claims: Sequence[Claim], now: float, per_host: int) -> Mapping[str, tuple[Entry, ...]]:
        return await self._writer.do(self._refill, claims, now, per_host)

    async def settle(self, settlements: Sequence[Settlement], marks: Mapping[str, Mark], now: float) -> Settled:
        return await self._write(self._settle, settlements, marks, now)

    async def renew(self, worker: str, lease_s: float) -> None:
        self._ours.add(worker)
        await self._write(self._renew, worker, self._clock.now() + lease_s)

    async def hold(self, host: str, until_at: float) -> float:
        return await self._write(self._hold, host, until_at)

    async def release(self, worker: str) -> None:
        await self._write(self._release, [worker], self._clock.now())
        self._ours.discard(worker)

    async def end_leases(self, now: float) -> int:
        """End every lease: for a crawl that knows it is alone. Each host rests one full delay from `now`. Returns how
        many hosts that were."""
        return await self._write(self._release, None, now)

    async def marks(self) -> Mapping[str, Mark]:
        return await self._writer.do(self._marks)

    async def close(self) -> None:
        try:
            if self._ours:
                with contextlib.suppress(StoreFailed):  # no room to say so: the leases end by themselves
                    await self._write(self._release, sorted(self._ours), self._clock.now())
        finally:
            self._tidier.close()
            await self._reader.close()
            await self._writer.close()

    # ------------------------------------------------------------------------------------------------------ Ledger

    async def get(self, key: str) -> Entry | None:
        return await self._ledger.get(key)

    async def find(
        self, *, host: str | None = None, status: Status | None = None, after: str | None = None, limit: int = 100
    ) -> tuple[Entry, ...]:
        return await self._ledger.find(host=host, status=status, after=after, limit=limit)

    async def stats(self) -> Stats:
        return await self._ledger.stats()

    async def host(self, host: str) -> Claim | None:
        return await self._ledger.host(host)

    async def requeue(self, keys: Sequence[str], now: float) -> int:
        return await self._ledger.requeue(keys, now)

    async def set_next(self, key: str, due_at: float | None) -> bool:
        return await self._ledger.set_next(key, due_at)

    async def forget(self, key: str) -> bool:
        return await self._ledger.forget(key)

    async def robots(self, digest: str) -> RobotsFile | None:
        return await self._ledger.robots(digest)

    async def deletions(self, sink: str, after: int, limit: int) -> tuple[Deletion, ...]:
        return await self._ledger.deletions(sink, after, limit)

    async def check(self) -> tuple[str, ...]:
        return await self._ledger.check()

    # ------------------------------------------------------------------------------------- in the writer's thread

    async def _write(self, work: Callable[..., T], *args: object) -> T:
        result = await self._writer.do(work, *args)
        self._tidier.written()
        return result

    def _add(self, discoveries: Sequence[Entry], now: float) -> list[str]:
        db = self._writer.database()
        with db.writing():
            writing = Writing(db.run, self._slot, self._host_ids)
            new = [entry.key for entry in discoveries if writing.discover(entry, now) == "new"]
            writing.finish()
        self._remember(writing)
        return new

    def _claim(self, worker: str, now: float, hosts: int, per_host: int, clock_now: float) -> Claims:
        db = self._writer.database()
        run = db.run
        first: float | None = run(SQL["host_next_ready"]).fetchone()[0]
        if (first is None or first > now or hosts <= 0) and not run(
            SQL["worker_lapsed"], (clock_now, worker)
        ).fetchall():
            return Claims((), first)  # nothing to write: a worker may ask often
        with db.writing():
            for lapsed, lease_until in run(SQL["worker_lapsed"], (clock_now, worker)).fetchall():
                self._end(lapsed, lease_until)
            first = run(SQL["host_next_ready"]).fetchone()[0]
            if first is None or first > now or hosts <= 0:
                return Claims((), first)
            owner = run(SQL["worker_lease"], (worker, clock_now + self._lease_s)).fetchone()[0]
            taken = run(SQL["host_claim"], (owner, now, hosts)).fetchall()
            first = run(SQL["host_next_ready"]).fetchone()[0]
        # The rows are read after the commit: the lease protects them, and others may write meanwhile.
        taken.sort(key=lambda row: (row[5], row[2], row[0]))
        claims: list[Claim] = []
        empty: list[tuple[int, bytes | None]] = []
        for host_id, key, token, not_before, blob, _ in taken:
            entries = self._entries(host_id, key, blob, now, per_host)
            if entries:
                claims.append(Claim(key, token, entries, contract.handed_out(rows.state(blob), not_before)))
            else:
                empty.append((host_id, blob))
        if empty:  # a host row that promised too much, which only a damaged or foreign file can have: put it right
            with db.writing():
                for host_id, blob in empty:
                    run(SQL["host_repair"], (host_id, next_due(run, host_id, blob)))
                first = run(SQL["host_next_ready"]).fetchone()[0]
        return Claims(tuple(claims), first)

    def _entries(self, host_id: int, host: str, state: bytes | None, now: float, per_host: int) -> tuple[Entry, ...]:
        """What of a host is to be done now: its due entries, then refusals to be judged again."""
        run = self._writer.database().run
        due = run(SQL["url_due"], (host_id, now, per_host)).fetchall()
        again: list[rows.Row] = []
        digest = next_refused(run, host_id, state)
        while digest is not None and len(again) < contract.REJUDGED_AT_ONCE:
            again += run(SQL["url_refused"], (host_id, digest, contract.REJUDGED_AT_ONCE - len(again))).fetchall()
            digest = next_refused(run, host_id, state, digest)
        return tuple([rows.entry(row, host) for row in due + again])

    def _refill(self, claims: Sequence[Claim], now: float, per_host: int) -> dict[str, tuple[Entry, ...]]:
        run = self._writer.database().run
        more: dict[str, tuple[Entry, ...]] = {}
        for claim in claims:
            row = run(_FIND, (claim.host,)).fetchone()
            held = row is not None and row[1] == claim.token and row[2] is not None
            more[claim.host] = self._entries(row[0], claim.host, row[5], now, per_host) if held else ()
        return more

    def _settle(self, settlements: Sequence[Settlement], marks: Mapping[str, Mark], now: float) -> Settled:
        db = self._writer.database()
        stale: list[str] = []
        new = improved = 0
        with db.writing():
            writing = Writing(db.run, self._slot, self._host_ids)
            for settlement in settlements:
                host = db.run(_FIND, (settlement.host,)).fetchone()
                if host is None or host[1] != settlement.token or host[2] is None:
                    stale.append(settlement.host)
                    host = None
                else:
                    self._apply(writing, host[0], settlement, now)
                for entry in settlement.discoveries:
                    what = writing.discover(entry, now)
                    new += what == "new"
                    improved += what == "improved"
                if host is not None:
                    self._settle_host(writing, host, settlement, now)
            for sink, mark in marks.items():
                db.run(SQL["mark_write"], (sink, rows.packed(mark)))
            writing.finish()
        self._remember(writing)
        return Settled(tuple(stale), new, improved)

    def _apply(self, writing: Writing, host_id: int, settlement: Settlement, now: float) -> None:
        refused = sum(not writing.change(host_id, change, now) for change in settlement.changes)
        writing.visits += max(0, settlement.visits - refused)
        for file in settlement.robots:
            writing.keep_robots(file)
        for deletion in settlement.deletions:
            writing.delete(deletion)

    def _settle_host(
        self,
        writing: Writing,
        host: tuple[int, int, int, float, float, bytes | None],
        settlement: Settlement,
        now: float,
    ) -> None:
        host_id, _, owner, next_at, not_before, blob = host
        if (state := settlement.state) is not None:
            blob, next_at, not_before = rows.packed(state), state.next_at, state.not_before_at
        due_at = writing.next_due(host_id, blob)
        if settlement.give_back:  # behind those that waited longer; `now` is no constraint
            self._writer.database().run(_SETTLE_HOST, (host_id, due_at, max(next_at, now), not_before, blob, None))
        else:
            self._writer.database().run(_SETTLE_HOST, (host_id, due_at, next_at, not_before, blob, owner))

    def _renew(self, worker: str, until_at: float) -> None:
        db = self._writer.database()
        with db.writing():
            db.run(SQL["worker_lease"], (worker, until_at)).fetchall()

    def _hold(self, host: str, until_at: float) -> float:
        db = self._writer.database()
        with db.writing():
            writing = Writing(db.run, self._slot, self._host_ids)
            host_id = writing.host(host)
            _, _, _, next_at, not_before, _ = db.run(_FIND, (host,)).fetchone()
            db.run(SQL["host_hold"], (host_id, until_at))
            writing.finish()
        self._remember(writing)
        known: float = max(next_at, not_before)
        return known

    def _release(self, workers: Sequence[str] | None, now: float) -> int:
        """End the leases of these workers, or of all."""
        db = self._writer.database()
        with db.writing():
            names = [name for (name,) in db.run(SQL["worker_all"])] if workers is None else workers
            return sum(self._end(name, now) for name in names)

    def _end(self, worker: str, at: float) -> int:
        """Take a worker's hosts from it. They rest, for nobody knows when it asked them last."""
        run = self._writer.database().run
        found = run(SQL["worker_find"], (worker,)).fetchone()
        if found is None:
            return 0
        hosts = run(SQL["host_owned"], found).fetchall()
        for host_id, key, blob in hosts:
            run(SQL["host_rest"], (host_id, at + self._rest_s(key, rows.state(blob))))
        run(SQL["worker_remove"], found)
        return len(hosts)

    def _marks(self) -> dict[str, Mark]:
        return {sink: rows.mark(blob) for sink, blob in self._writer.database().run(SQL["mark_all"]).fetchall()}

    def _remember(self, writing: Writing) -> None:
        """Host rows are never removed, so an id once committed stays true."""
        if len(self._host_ids) > HOSTS_REMEMBERED:
            self._host_ids.clear()
        self._host_ids.update(writing.hosts)
