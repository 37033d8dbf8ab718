"""The frontier in memory: the reference by which the other stores are judged, and a store for tests and dry runs.

It owns the whole contract and nothing else: no file, no thread, nothing survives the process. It is written to be
read; where a store on disk has an index, this one has a dictionary or a heap whose dead lines are dropped when they
come up (a host's due entries, the hosts that are ready). No verb awaits anything, so each is a transaction.

Invariant: every change of an entry goes through `_put` or `_drop`, and every change of a host ends in `_touch`.
"""

from __future__ import annotations

import heapq
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from comity.frontier import contract
from comity.frontier.contract import full_delay
from comity.model import (
    Change,
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

HELD_SHOWN = 100


class _Host:
    """One host's row, with its entries by slot and the indexes over them."""

    __slots__ = (
        "due",
        "entries",
        "key",
        "line",
        "next_at",
        "not_before",
        "place",
        "refused",
        "state",
        "token",
        "worker",
    )

    def __init__(self, key: str, place: int) -> None:
        self.key = key
        self.place = place  # order of arrival
        self.state = HostState()
        self.next_at = 0.0
        self.not_before = 0.0
        self.token = 0
        self.worker: str | None = None
        self.line: tuple[float, int] | None = None  # (ready_at, token) as it stands in the queue of ready hosts
        self.entries: dict[str, Entry] = {}
        self.due: list[tuple[float, int, str]] = []  # (due_at, seq, key), a heap; lines that are no longer true stay
        self.refused: dict[str, dict[str, None]] = {}  # rules digest -> keys, in order

    def due_lines(self) -> Iterator[tuple[float, int, str]]:
        """Every true line in order, taken off the heap: whoever takes puts back."""
        while self.due:
            line = heapq.heappop(self.due)
            entry = self.entries.get(line[2])
            if entry is not None and (entry.due_at, entry.seq) == line[:2]:
                yield line

    def due_entries(self, now: float, limit: int) -> list[Entry]:
        taken: dict[tuple[float, int, str], None] = {}  # a line may stand twice
        for line in self.due_lines():
            taken[line] = None
            if line[0] > now or len(taken) > limit:
                break
        for line in taken:
            heapq.heappush(self.due, line)
        return [self.entries[key] for due_at, _, key in islice(taken, limit) if due_at <= now]

    def to_judge_again(self) -> Iterator[Entry]:
        digests = contract.rules_digests(self.state)
        if digests:
            for digest in sorted(self.refused.keys() - digests):
                yield from (self.entries[key] for key in self.refused[digest])

    @property
    def next_due(self) -> float | None:
        if next(self.to_judge_again(), None) is not None:
            return contract.DUE_SINCE_EVER_AT
        first = next(self.due_lines(), None)
        if first is None:
            return None
        heapq.heappush(self.due, first)
        return first[0]

    @property
    def ready_at(self) -> float | None:
        next_due = self.next_due
        return None if next_due is None else max(next_due, self.next_at, self.not_before)


class MemoryFrontier:
    """Both sides of the store, in this process only."""

    def __init__(
        self, *, clock: Clock, lease_s: float = 60.0, rest_s: Callable[[str, HostState], float] = full_delay
    ) -> None:
        """`lease_s`: how long a claim lasts unless renewed. `rest_s`: how long a host rests whose worker vanished."""
        self._clock = clock
        self._lease_s = lease_s
        self._rest_s = rest_s
        self._seq = 0
        self._hosts: dict[str, _Host] = {}
        self._host_of: dict[str, _Host] = {}  # by the key of an entry
        self._ready: list[tuple[float, int, int, str]] = []  # (ready_at, token, place, host) of unowned hosts, a heap
        self._leases: dict[str, float] = {}  # worker -> end of its lease
        self._ours: set[str] = set()
        self._tally: Tally[contract.Counter] = Tally()
        self._visits = 0
        self._marks: dict[str, Mark] = {}
        self._deletions: list[Deletion] = []
        self._robots: dict[str, RobotsFile] = {}

    # ---------------------------------------------------------------------------------------------------- Frontier

    async def add(self, discoveries: Sequence[Entry], now: float) -> tuple[str, ...]:
        return tuple(entry.key for entry in discoveries if self._discover(entry, now) == "new")

    async def claim(self, worker: str, now: float, hosts: int, per_host: int) -> Claims:
        self._end_lapsed(worker)
        claims: list[Claim] = []
        while len(claims) < hosts and (host := self._next_ready()) is not None:
            if (host.ready_at or 0.0) > now:
                break
            host.worker = worker
            host.token += 1
            state = contract.handed_out(host.state, host.not_before)
            claims.append(Claim(host.key, host.token, self._due(host, now, per_host), state))
        if claims:
            self._ours.add(worker)
            self._leases[worker] = max(self._leases.get(worker, 0.0), self._clock.now() + self._lease_s)
        following = self._next_ready()
        return Claims(tuple(claims), following.ready_at if following is not None else None)

    async def refill(self, claims: Sequence[Claim], now: float, per_host: int) -> Mapping[str, tuple[Entry, ...]]:
        held = {claim.host: self._held(claim.host, claim.token) for claim in claims}
        return {key: self._due(host, now, per_host) if host is not None else () for key, host in held.items()}

    async def settle(self, settlements: Sequence[Settlement], marks: Mapping[str, Mark], now: float) -> Settled:
        stale: list[str] = []
        discoveries: Tally[str] = Tally()
        for settlement in settlements:
            host = self._held(settlement.host, settlement.token)
            if host is None:
                stale.append(settlement.host)
            else:
                self._settle(host, settlement, now)
            discoveries.update(self._discover(entry, now) for entry in settlement.discoveries)
        self._marks.update(marks)
        return Settled(tuple(stale), discoveries["new"], discoveries["improved"])

    async def renew(self, worker: str, lease_s: float) -> None:
        self._leases[worker] = max(self._leases.get(worker, 0.0), self._clock.now() + lease_s)

    async def hold(self, host: str, until_at: float) -> float:
        row = self._host(host)
        known = max(row.next_at, row.not_before)
        row.not_before = max(row.not_before, until_at)
        self._touch(row)
        return known

    async def release(self, worker: str) -> None:
        self._end(worker, self._clock.now())

    async def end_leases(self, now: float) -> int:
        """End every lease: for a crawl that knows it is alone. Each host rests one full delay from `now`. Returns how
        many hosts that were."""
        return sum(self._end(worker, now) for worker in list(self._leases))

    async def marks(self) -> Mapping[str, Mark]:
        return dict(self._marks)

    async def close(self) -> None:
        for worker in self._ours:
            self._end(worker, self._clock.now())
        self._ours.clear()

    # ------------------------------------------------------------------------------------------------------ Ledger

    async def get(self, key: str) -> Entry | None:
        host = self._host_of.get(key)
        return host.entries[key] if host is not None else None

    async def find(
        self, *, host: str | None = None, status: Status | None = None, after: str | None = None, limit: int = 100
    ) -> tuple[Entry, ...]:
        hosts = list(self._hosts.values()) if host is None else [h for h in [self._hosts.get(host)] if h is not None]
        first = self._host_of_key(after) if after is not None else None
        begin = (contract.slot(after), after) if after is not None else None
        found: list[Entry] = []
        for row in hosts:
            if first is not None and row.place < first.place:
                continue
            for place in sorted((contract.slot(key), key) for key in row.entries):
                if begin is not None and row is first and place <= begin:
                    continue
                key = place[1]
                if status is None or row.entries[key].status is status:
                    found.append(row.entries[key])
                    if len(found) == limit:
                        return tuple(found)
        return tuple(found)

    async def stats(self) -> Stats:
        now = self._clock.now()
        held = sorted((h.not_before, h.place, h) for h in self._hosts.values() if h.not_before > now)
        following = self._next_ready()
        return contract.stats(
            self._tally,
            hosts=len(self._hosts),
            visits=self._visits,
            next_ready_at=following.ready_at if following is not None else None,
            held=tuple(contract.held(h.key, h.state, h.not_before) for _, _, h in held[:HELD_SHOWN]),
        )

    async def host(self, host: str) -> Claim | None:
        row = self._hosts.get(host)
        if row is None:
            return None
        return Claim(row.key, row.token, (), contract.with_holds(row.state, row.not_before))

    async def requeue(self, keys: Sequence[str], now: float) -> int:
        return sum(self._rewrite(key, lambda entry: contract.requeued(entry, now)) for key in keys)

    async def set_next(self, key: str, due_at: float | None) -> bool:
        return self._rewrite(key, lambda entry: contract.moved(entry, due_at))

    async def forget(self, key: str) -> bool:
        host = self._host_of.get(key)
        if host is None:
            return False
        self._outbox(contract.forgotten(host.entries[key], self._clock.now()))
        self._drop(host, host.entries[key])
        del self._host_of[key]
        self._touch(host)
        return True

    async def robots(self, digest: str) -> RobotsFile | None:
        return self._robots.get(digest)

    async def deletions(self, sink: str, after: int, limit: int) -> tuple[Deletion, ...]:
        return tuple(self._deletions[after : after + limit])

    async def check(self) -> tuple[str, ...]:
        """What the counters say, counted again; one sentence for each difference."""
        counted = Tally(contract.counter(entry) for row in self._hosts.values() for entry in row.entries.values())
        return tuple(contract.differences(self._tally, counted))

    # ----------------------------------------------------------------------------------------------------- entries

    def _discover(self, found: Entry, now: float) -> str:
        known_at = self._host_of.get(found.key)
        if known_at is None:
            self._seq += 1
            host = self._host_of[found.key] = self._host(found.host)
            self._put(host, contract.discovered(found, now, self._seq))
            self._touch(host)
            return "new"
        better = contract.improved(known_at.entries[found.key], found)
        if better is None:
            return "known"
        self._put(known_at, better)
        return "improved"

    def _settle(self, host: _Host, settlement: Settlement, now: float) -> None:
        applied = [self._change(host, change, now) for change in settlement.changes]
        self._visits += max(0, settlement.visits - applied.count(False))
        for file in settlement.robots:
            self._robots.setdefault(file.digest, file)
        for deletion in settlement.deletions:
            self._outbox(deletion)
        if settlement.state is not None:
            host.state = settlement.state
            host.next_at = settlement.state.next_at
            host.not_before = max(host.not_before, settlement.state.not_before_at)
        if settlement.give_back:
            host.worker = None
            host.next_at = max(host.next_at, now)  # no constraint, but behind those that waited longer
        self._touch(host)

    def _change(self, host: _Host, change: Change, now: float) -> bool:
        stored = host.entries.get(change.before.key)
        if stored is None or stored.seq != change.before.seq:
            self._outbox(contract.forgotten(change.before, now, in_hand=True))
            return False
        after = contract.reconciled(stored, change)
        if after is None:
            return False
        self._put(host, after)
        return True

    def _rewrite(self, key: str, rewrite: Callable[[Entry], Entry | None]) -> bool:
        host = self._host_of.get(key)
        after = rewrite(host.entries[key]) if host is not None else None
        if host is None or after is None:
            return False
        self._put(host, after)
        self._touch(host)
        return True

    def _put(self, host: _Host, entry: Entry) -> None:
        if entry.key in host.entries:
            self._drop(host, host.entries[entry.key])
        host.entries[entry.key] = entry
        self._tally[contract.counter(entry)] += 1
        if entry.due_at is not None:
            heapq.heappush(host.due, (entry.due_at, entry.seq, entry.key))
        if contract.is_refusal(entry):
            host.refused.setdefault(entry.rules_digest or "", {})[entry.key] = None

    def _drop(self, host: _Host, entry: Entry) -> None:
        del host.entries[entry.key]
        self._tally[contract.counter(entry)] -= 1
        if contract.is_refusal(entry):
            keys = host.refused[entry.rules_digest or ""]
            del keys[entry.key]
            if not keys:
                del host.refused[entry.rules_digest or ""]

    def _outbox(self, deletion: Deletion) -> None:
        self._deletions.append(contract.posted(deletion, len(self._deletions) + 1))

    # ------------------------------------------------------------------------------------------------------- hosts

    def _host(self, key: str) -> _Host:
        row = self._hosts.get(key)
        if row is None:
            row = self._hosts[key] = _Host(key, len(self._hosts))
        return row

    def _host_of_key(self, key: str) -> _Host | None:
        rows = [self._hosts[host] for host in contract.possible_hosts(key) if host in self._hosts]
        return self._host_of.get(key) or (rows[0] if rows else None)

    def _held(self, key: str, token: int) -> _Host | None:
        host = self._hosts.get(key)
        return host if host is not None and host.worker is not None and host.token == token else None

    def _due(self, host: _Host, now: float, per_host: int) -> tuple[Entry, ...]:
        again = islice(host.to_judge_again(), contract.REJUDGED_AT_ONCE)
        return (*host.due_entries(now, per_host), *again)

    def _touch(self, host: _Host) -> None:
        """Line the host up again after anything that may have moved its `ready_at`."""
        ready_at = host.ready_at if host.worker is None else None
        if ready_at is not None and host.line != (ready_at, host.token):
            host.line = (ready_at, host.token)
            heapq.heappush(self._ready, (*host.line, host.place, host.key))

    def _next_ready(self) -> _Host | None:
        while self._ready:
            ready_at, token, _, key = self._ready[0]
            host = self._hosts[key]
            if host.worker is None and host.token == token and host.ready_at == ready_at:
                return host
            heapq.heappop(self._ready)
            if host.line == (ready_at, token):
                host.line = None
        return None

    def _end_lapsed(self, but: str) -> None:
        now = self._clock.now()
        for worker, until_at in list(self._leases.items()):
            if until_at <= now and worker != but:
                self._end(worker, until_at)

    def _end(self, worker: str, at: float) -> int:
        """Take a worker's hosts from it. They rest, for nobody knows when it asked them last."""
        self._leases.pop(worker, None)
        hosts = [host for host in self._hosts.values() if host.worker == worker]
        for host in hosts:
            host.worker = None
            host.not_before = max(host.not_before, at + self._rest_s(host.key, host.state))
            self._touch(host)
        return len(hosts)
