"""The people's side of the SQLite frontier; also of one that a crawl is using at this moment.

It owns how an operator, a sink and `comity why` look things up and change them by hand. Readers have a connection and
a thread of their own and read in pages, so that neither the crawl nor the tidying waits for them; writers take their
place in the same line as the crawl and write in short steps, so that nobody starves behind a large requeue.

Invariant: what a person sets while a worker has the entry in hand stands when that worker settles it (see `contract`).

Order of `find`: hosts in the order of their discovery, within a host by the 64-bit hash of the key, which is how the
rows lie. A page costs the same wherever it begins; ordering by text would need an index as large as the table. It
refuses to know what the engine does with an entry.
"""

from __future__ import annotations

import sqlite3
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from comity.frontier import StoreFailed, contract, rows
from comity.frontier.database import SCHEMA_VERSION, Database, Lane, version
from comity.frontier.writing import PLACES, SQL, Run, Slot, Writing, locate, next_due
from comity.model import Claim, Deletion, Entry, RobotsFile, Stats, Status
from comity.ports import Clock

REQUEUED_AT_ONCE = 250  # keys a transaction: 12-22 µs each (measured), so others wait some milliseconds
SCANNED_AT_ONCE = 1_000
HELD_SHOWN = 100
CHECKPOINT_PAGES = 1_000  # where no crawl tidies up
FIRST_PLACE, LAST_PLACE = -(PLACES >> 1), (PLACES >> 1) - 1


class SqliteLedger:
    """`comity.ports.Ledger` over a frontier's file."""

    def __init__(
        self, path: Path, clock: Clock, reader: Lane, writer: Lane, slot: Slot, written: Callable[[], None]
    ) -> None:
        """`SqliteLedger.open` is the way in; this one is for a frontier that shares its writer."""
        self.path = path
        self._clock = clock
        self._reader = reader
        self._writer = writer
        self._slot = slot
        self._written = written

    @classmethod
    async def open(cls, path: str | Path, *, clock: Clock, slot: Slot = contract.slot) -> SqliteLedger:
        """Look into a frontier, in use or not. Raises `StoreFailed` if there is none, `SchemaTooNew` if it is of a
        newer comity. Nothing is written until a verb is called that writes."""
        path = Path(path)
        reader = Lane("ledger", path, clock, lambda: open_reader(path))
        writer = Lane("ledger-writer", path, clock, lambda: Database(path, checkpoint_pages=CHECKPOINT_PAGES))
        ledger = cls(path, clock, reader, writer, slot, lambda: None)
        try:
            await reader.do(reader.database)
        except BaseException:
            await ledger.close()
            raise
        return ledger

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()

    # -------------------------------------------------------------------------------------------------------- look

    async def get(self, key: str) -> Entry | None:
        return await self._reader.do(self._get, key)

    async def find(
        self, *, host: str | None = None, status: Status | None = None, after: str | None = None, limit: int = 100
    ) -> tuple[Entry, ...]:
        return await self._reader.do(self._find, host, status, after, limit)

    async def stats(self) -> Stats:
        return await self._reader.do(self._stats, self._clock.now())

    async def host(self, host: str) -> Claim | None:
        return await self._reader.do(self._host, host)

    async def robots(self, digest: str) -> RobotsFile | None:
        return await self._reader.do(self._robots, digest)

    async def deletions(self, sink: str, after: int, limit: int) -> tuple[Deletion, ...]:
        return await self._reader.do(self._deletions, after, limit)

    async def check(self) -> tuple[str, ...]:
        """Count everything again; one sentence for each difference from what is kept. Reads the whole file, and the
        tidying waits meanwhile (some seconds for 10^6 URLs)."""
        return await self._reader.do(self._check)

    # ------------------------------------------------------------------------------------------------------ change

    async def requeue(self, keys: Sequence[str], now: float) -> int:
        changed = 0
        for i in range(0, len(keys), REQUEUED_AT_ONCE):
            some = keys[i : i + REQUEUED_AT_ONCE]
            changed += await self._writer.do(self._rewrite, some, lambda entry: contract.requeued(entry, now))
            self._written()
        return changed

    async def set_next(self, key: str, due_at: float | None) -> bool:
        changed = await self._writer.do(self._rewrite, [key], lambda entry: contract.moved(entry, due_at))
        self._written()
        return changed == 1

    async def forget(self, key: str) -> bool:
        removed = await self._writer.do(self._forget, key, self._clock.now())
        self._written()
        return removed

    # ------------------------------------------------------------------------------------- in the reader's thread

    def _get(self, key: str) -> Entry | None:
        with (db := self._reader.database()).reading():
            where = self._locate(db.run, key)
            return rows.entry(where[2], where[1]) if where is not None else None

    def _locate(self, run: Run, key: str) -> tuple[int, str, rows.Row] | None:
        """An entry's host (id and key) and row, by its key alone."""
        for host in contract.possible_hosts(key):
            found = run(SQL["host_id"], (host,)).fetchone()
            row = locate(run, self._slot, found[0], key) if found is not None else None
            if row is not None:
                return found[0], host, row
        return None

    def _find(self, host: str | None, status: Status | None, after: str | None, limit: int) -> tuple[Entry, ...]:
        run = self._reader.database().run
        found: list[Entry] = []
        for host_id, host_key, begin in self._hosts(run, host, after):
            for row in self._walk(run, host_id, begin, status, limit):
                found.append(rows.entry(row, host_key))
                if len(found) == limit:
                    return tuple(found)
        return tuple(found)

    def _hosts(self, run: Run, host: str | None, after: str | None) -> Iterator[tuple[int, str, int]]:
        """The hosts to look through, each with the first place wanted."""
        first, begin = 0, FIRST_PLACE
        if after is not None:
            where = self._locate(run, after)
            if where is not None:
                first, begin = where[0], where[2][0] + 1
            else:  # gone meanwhile; what was pushed past it may have moved back to its place
                ids = [run(SQL["host_id"], (key,)).fetchone() for key in contract.possible_hosts(after)]
                first = next((found[0] for found in ids if found is not None), 0)
                begin = self._slot(after)
        if host is not None:
            found = run(SQL["host_id"], (host,)).fetchone()
            if found is not None and found[0] >= first:
                yield found[0], host, begin if found[0] == first else FIRST_PLACE
            return
        last = first - 1
        while page := run(SQL["host_page"], (last, SCANNED_AT_ONCE)).fetchall():
            for host_id, key, *_ in page:
                yield host_id, key, begin if host_id == first else FIRST_PLACE
            last = page[-1][0]

    def _walk(self, run: Run, host_id: int, begin: int, status: Status | None, limit: int) -> Iterator[rows.Row]:
        """The rows of a host from a place on, a short read at a time."""
        size = limit if status is None else SCANNED_AT_ONCE
        while begin <= LAST_PLACE and (page := run(SQL["url_statuses"], (host_id, begin, size)).fetchall()):
            for place, number in page:
                if status is None or number == status:
                    row = run(SQL["url_read"], (host_id, place)).fetchone()
                    if row is not None and (status is None or row[4] == status):
                        yield row
            begin = page[-1][0] + 1

    def _stats(self, now: float) -> Stats:
        with (db := self._reader.database()).reading():
            run = db.run
            totals = {name: run(SQL["total_read"], (name,)).fetchone()[0] for name in ("hosts", "visits")}
            held = run(SQL["host_held"], (now, HELD_SHOWN)).fetchall()
            return contract.stats(
                _tally(run),
                hosts=totals["hosts"],
                visits=totals["visits"],
                next_ready_at=run(SQL["host_next_ready"]).fetchone()[0],
                held=tuple(contract.held(key, rows.state(state), not_before) for key, state, not_before in held),
            )

    def _host(self, host: str) -> Claim | None:
        row = self._reader.database().run(SQL["host_find"], (host,)).fetchone()
        if row is None:
            return None
        _, token, _, _, not_before, state = row
        return Claim(host, token, (), contract.with_holds(rows.state(state), not_before))

    def _robots(self, digest: str) -> RobotsFile | None:
        row = self._reader.database().run(SQL["robots_read"], (digest,)).fetchone()
        return RobotsFile(*row) if row is not None else None

    def _deletions(self, after: int, limit: int) -> tuple[Deletion, ...]:
        page = self._reader.database().run(SQL["deletion_page"], (after, limit)).fetchall()
        return tuple(Deletion(id_, url, at, rows.CAUSES[cause], seq, n) for id_, url, at, cause, seq, n in page)

    def _check(self) -> tuple[str, ...]:
        with (db := self._reader.database()).reading():
            return tuple(self._differences(db.run))

    def _differences(self, run: Run) -> Iterator[str]:
        counted: Tally[contract.Counter] = Tally()
        hosts, last_host, last_seq = 0, 0, 0
        while page := run(SQL["host_page"], (last_host, SCANNED_AT_ONCE)).fetchall():
            for host_id, key, kept, state in page:
                hosts += 1
                if (due_at := next_due(run, host_id, state)) != kept:
                    yield f"host {key}: next_due is {kept}, and should be {due_at}"
                for row in self._walk(run, host_id, FIRST_PLACE, None, SCANNED_AT_ONCE):
                    entry = rows.entry(row, key)
                    counted[contract.counter(entry)] += 1
                    last_seq = max(last_seq, entry.seq)
                    if locate(run, self._slot, host_id, entry.key) != row:
                        yield f"url {entry.key}: lies where it cannot be found"
            last_host = page[-1][0]
        yield from contract.differences(_tally(run), counted)
        totals = {name: run(SQL["total_read"], (name,)).fetchone()[0] for name in ("hosts", "seq")}
        if hosts != totals["hosts"]:
            yield f"hosts: {totals['hosts']} kept, {hosts} counted"
        if last_seq > totals["seq"]:
            yield f"order of discovery: {totals['seq']} kept, {last_seq} given"

    # ------------------------------------------------------------------------------------- in the writer's thread

    def _rewrite(self, keys: Sequence[str], to: Callable[[Entry], Entry | None]) -> int:
        db = self._writer.database()
        with db.writing():
            writing = Writing(db.run, self._slot, {})
            changed = 0
            for key in keys:
                if (where := self._locate(db.run, key)) is not None:
                    host_id, host, row = where
                    changed += writing.rewrite(host_id, row, host, to)
            writing.finish()
        return changed

    def _forget(self, key: str, now: float) -> bool:
        db = self._writer.database()
        with db.writing():
            where = self._locate(db.run, key)
            if where is None:
                return False
            host_id, host, row = where
            writing = Writing(db.run, self._slot, {})
            writing.delete(contract.forgotten(rows.entry(row, host), now))
            writing.remove(host_id, row, host)
            writing.finish()
        return True


def open_reader(path: Path) -> Database:
    """A connection that cannot write, to a frontier of the present schema."""
    if not path.exists():
        raise StoreFailed(str(path), "there is no such file")
    database = Database(path, read_only=True)
    try:
        found = version(database.connection, path)
        if not found:
            raise StoreFailed(str(path), "it is empty")
        if found < SCHEMA_VERSION:
            raise StoreFailed(
                str(path), "it is of an older comity: let a crawl open it once, which brings it up to date"
            )
    except (sqlite3.Error, StoreFailed):
        database.close()
        raise
    return database


def _tally(run: Run) -> Mapping[contract.Counter, int]:
    return {(status, cause, failure): n for status, cause, failure, n in run(SQL["tally_all"])}
