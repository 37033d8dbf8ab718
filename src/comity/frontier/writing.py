"""One write transaction on the SQLite frontier: what happens to its rows, and what is summed up at the end.

It owns the rules of the two tables that grow. Invariants, true at every commit:

* *one entry per key*: a row lies at its key's 64-bit hash or, if another key lies there, at the next free place after
  it, and every place between is taken. Keys are compared, never only hashes, so no collision loses a URL (three in a
  million for ten million URLs of one host; a hostile site can only arrange them in its own host);
* *`host.next_due` is exact*: writers stand in line (BEGIN IMMEDIATE), URLs are written first, and the minimum is read
  afterwards in a statement of its own. For a host that only gained URLs the minimum can be told without reading;
* *counters are exact*: each row's change of status is noted, and the sums are written once.

Why an object for each transaction: its notes die with it when it is rolled back. It refuses to know threads, locks and
who asked.
"""

from __future__ import annotations

import sqlite3
from collections import Counter as Tally
from collections.abc import Callable, Mapping
from typing import TypeAlias

from comity.frontier import contract, rows
from comity.frontier.contract import VISITED
from comity.frontier.database import statements
from comity.model import Change, Deletion, Entry, RobotsFile

Run: TypeAlias = Callable[..., sqlite3.Cursor]
Slot: TypeAlias = Callable[[str], int]

SQL: Mapping[str, str] = statements("sqlite_statements.sql")
_INSERT, _KNOWN, _READ, _SETTLE = SQL["url_insert"], SQL["url_known"], SQL["url_read"], SQL["url_settle"]
_FIRST_DUE, _NEXT_RULES, _HOST_ID = SQL["url_first_due"], SQL["url_next_rules"], SQL["host_id"]

PLACES = 1 << 64
NO_RULES = ""  # sorts before every digest


def next_place(place: int) -> int:
    return place + 1 if place < (PLACES >> 1) - 1 else -(PLACES >> 1)


def locate(run: Run, slot: Slot, host_id: int, key: str) -> rows.Row | None:
    """The row of a key, wherever a collision has pushed it."""
    place = slot(key)
    while True:
        row: rows.Row | None = run(_READ, (host_id, place)).fetchone()
        if row is None or (row[2] if row[3] is None else row[3]) == key:
            return row
        place = next_place(place)


def next_due(run: Run, host_id: int, state: bytes | None) -> float | None:
    """When the first of a host's entries is due, by its rows and its present rules."""
    first: float | None = run(_FIRST_DUE, (host_id,)).fetchone()[0]
    if next_refused(run, host_id, state) is not None:
        return contract.DUE_SINCE_EVER_AT
    return first


def next_refused(run: Run, host_id: int, state: bytes | None, after: str = NO_RULES) -> str | None:
    """The first digest after `after` by which entries were refused and which no longer stands. One seek a digest."""
    digest: str | None = run(_NEXT_RULES, (host_id, after)).fetchone()[0]
    if digest is None:
        return None
    present = contract.rules_digests(rows.state(state))
    if not present:
        return None
    while digest in present:
        digest = run(_NEXT_RULES, (host_id, digest)).fetchone()[0]
    return digest


class Writing:
    """The notes of one transaction. `finish` must be the last thing called in it; `hosts` may be kept after it."""

    def __init__(self, run: Run, slot: Slot, hosts: Mapping[str, int]) -> None:
        self._run = run
        self._slot = slot
        self._known_hosts = hosts
        self.hosts: dict[str, int] = {}  # the ids met here, to be remembered once they are committed
        self._new_hosts = 0
        self._tally: Tally[contract.Counter] = Tally()
        self._first_seq: int | None = None
        self._seq = 0
        self._forward: dict[int, float] = {}  # hosts that gained URLs, with the least new due time
        self._recount: set[int] = set()  # hosts whose minimum must be read
        self.visits = 0

    # ------------------------------------------------------------------------------------------------------- hosts

    def host(self, key: str) -> int:
        """The id of a host, which is made if need be."""
        host_id = self._known_hosts.get(key) or self.hosts.get(key)
        if host_id is None:
            row = self._run(_HOST_ID, (key,)).fetchone()
            if row is None:
                host_id = self._run(SQL["host_insert"], (key,)).lastrowid or 0
                self._new_hosts += 1
            else:
                host_id = row[0]
            self.hosts[key] = host_id
        return host_id

    def next_due(self, host_id: int, state: bytes | None) -> float | None:
        """A host's exact minimum, after all that was written so far; whoever asks writes it to the host's row."""
        self._forward.pop(host_id, None)
        self._recount.discard(host_id)
        return next_due(self._run, host_id, state)

    # ------------------------------------------------------------------------------------------------------ entries

    def discover(self, found: Entry, now: float) -> str:
        """ "new", "improved" or "known"."""
        host_id = self.host(found.host)
        if self._first_seq is None:
            self._first_seq = self._seq = self._run(SQL["total_read"], ("seq",)).fetchone()[0]
        new = contract.discovered(found, now, self._seq + 1)
        status, cause, due_at, depth, bits, rules, tail = rows.changing(new)
        key = None if new.key == new.url else new.key
        place = self._slot(new.key)
        while True:
            what = (host_id, place, new.seq, new.url, key, status, cause, due_at, depth, bits, rules, tail)
            if self._run(_INSERT, what).rowcount:
                break
            known_depth, known_bits, known_url, known_key = self._run(_KNOWN, (host_id, place)).fetchone()
            if (known_url if known_key is None else known_key) == new.key:
                if known_bits & VISITED or (known_depth <= depth and not bits & ~known_bits):
                    return "known"
                return self._improve(host_id, place, new)
            place = next_place(place)
        self._seq += 1
        self._tally[contract.counter(new)] += 1
        if due_at is not None:
            self._forward[host_id] = min(due_at, self._forward.get(host_id, due_at))
        elif contract.is_refusal(new):
            self._recount.add(host_id)
        return "new"

    def _improve(self, host_id: int, place: int, found: Entry) -> str:
        row = self._run(_READ, (host_id, place)).fetchone()
        better = contract.improved(rows.entry(row, found.host), found)
        if better is None:
            return "known"
        self._write(host_id, place, better)
        return "improved"

    def change(self, host_id: int, change: Change, now: float) -> bool:
        """Compare and set. False: the entry was settled by another meanwhile, or forgotten."""
        before, after = change.before, change.after
        row = (
            *rows.changing(after),
            host_id,
            self._slot(before.key),
            before.seq,
            before.version,
            rows.STATUS_NUMBERS[before.status],
            rows.CAUSE_NUMBERS[before.cause],
            before.due_at,
            before.depth,
            contract.flags(before),
        )
        if self._run(_SETTLE, row).rowcount:
            self._count(before, after)
            return True
        return self._reconcile(host_id, change, now)

    def _reconcile(self, host_id: int, change: Change, now: float) -> bool:
        """The row is not where or what it was: a person, a discovery, a collision or another worker came between."""
        before = change.before
        row = locate(self._run, self._slot, host_id, before.key)
        if row is None or row[1] != before.seq:
            self.delete(contract.forgotten(before, now, in_hand=True))
            return False
        stored = rows.entry(row, before.host)
        after = contract.reconciled(stored, change)
        if after is None:
            return False
        self._write(host_id, row[0], after)
        self._count(stored, after)
        return True

    def rewrite(self, host_id: int, row: rows.Row, host: str, to: Callable[[Entry], Entry | None]) -> bool:
        """A person's change of one entry. False: it was that already."""
        stored = rows.entry(row, host)
        after = to(stored)
        if after is None:
            return False
        self._write(host_id, row[0], after)
        self._count(stored, after)
        self._recount.add(host_id)
        return True

    def remove(self, host_id: int, row: rows.Row, host: str) -> None:
        """Take a row away, and move back those that a collision had pushed past its place."""
        self._run(SQL["url_remove"], (host_id, row[0]))
        self._tally[contract.counter(rows.entry(row, host))] -= 1
        self._recount.add(host_id)
        gap = place = row[0]
        while True:
            place = next_place(place)
            after = self._run(_KNOWN, (host_id, place)).fetchone()
            if after is None:
                return
            home = self._slot(after[2] if after[3] is None else after[3])
            if (place - home) % PLACES >= (place - gap) % PLACES:
                self._run(SQL["url_move"], (host_id, place, gap))
                gap = place

    def _write(self, host_id: int, place: int, e: Entry) -> None:
        status, cause, due_at, depth, bits, rules, tail = rows.changing(e)
        self._run(SQL["url_write"], (host_id, place, status, cause, due_at, e.version, depth, bits, rules, tail))

    def _count(self, before: Entry, after: Entry) -> None:
        self._tally[contract.counter(before)] -= 1
        self._tally[contract.counter(after)] += 1

    # --------------------------------------------------------------------------------------------------------- rest

    def delete(self, deletion: Deletion) -> None:
        cause = rows.CAUSE_NUMBERS[deletion.cause]
        self._run(SQL["deletion_add"], (deletion.id, deletion.url, deletion.at, cause, deletion.version))

    def keep_robots(self, file: RobotsFile) -> None:
        self._run(SQL["robots_keep"], (file.digest, file.url, file.at, file.body))

    def finish(self) -> None:
        """Write the sums, and bring forward the hosts that gained URLs."""
        run = self._run
        for host_id in self._recount:
            state = run(SQL["host_state"], (host_id,)).fetchone()[0]
            run(SQL["host_due"], (host_id, next_due(run, host_id, state)))
        for host_id, due_at in self._forward.items():
            if host_id not in self._recount:
                run(SQL["host_forward"], (host_id, due_at))
        for counter, n in self._tally.items():
            if n:
                run(SQL["tally_add"], (*counter, n))
        new = self._seq - (self._first_seq or 0)
        for name, n in (("seq", new), ("hosts", self._new_hosts), ("visits", self.visits)):
            if n:
                run(SQL["total_add"], (name, n))
