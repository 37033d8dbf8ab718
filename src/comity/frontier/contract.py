"""What every store must decide alike.

The stores differ in where things lie and in how many may come at once; they may not differ in what a settle or an
improvement means. Those meanings are the pure functions here, over the words of `comity.model`.

Three of them need saying in full:

* *Never visited* means `visited_at is None`: not version 0, because a refusal judged again has been settled and still
  was never asked for.
* *An operator's word stands.* A person may requeue an entry, move its due time or forget it while a worker has it in
  hand. The visit's result is kept, but a due time set meanwhile is not overwritten, and a document forgotten meanwhile
  is deleted once more, because the visit has just written it again (`reconciled`, `forgotten`).
* *Refusals are judged again* when the rules change: an entry refused by robots.txt with a rules digest that is not
  among its host's present ones counts as due since ever. A refusal without a digest is never judged again (that is how
  a profile opts out), and neither is any while the host has no rules digest at all.

Nothing here knows where a row lies, or who asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import xxhash
from msgspec.structs import replace

from comity.model import Cause, Change, Deletion, Entry, HostState, Stats, Status
from comity.url import document_id

REJUDGED_AT_ONCE = 1_000
"""Refused entries served for judging again in one claim or refill; they need neither request nor slot."""

DUE_SINCE_EVER_AT = 0.0
"""When a refusal that must be judged again is due. A constant, so that a host's `next_due` can be recomputed."""

SITEMAP, FEED, VISITED = 1, 2, 4

Counter = tuple[int, int, str]
"""What `Stats` counts an entry under: status, cause (0: none, or not an ERROR), failure ("": none, or no failure)."""


def flags(entry: Entry) -> int:
    """The entry's yes-or-no facts in one small number."""
    return entry.is_sitemap * SITEMAP | entry.is_feed * FEED | (entry.visited_at is not None) * VISITED


def counter(entry: Entry) -> Counter:
    status = entry.status
    if status is Status.ERROR:
        return (4, int(entry.cause or 0), entry.failure or "")
    if status is Status.FETCH_ERROR:
        return (3, 0, entry.failure or "")
    return (int(status), 0, "")


def discovered(entry: Entry, now: float, seq: int) -> Entry:
    """A discovery as it is stored: one that is to be visited and names no time is due now, for no URL may be lost."""
    due_at = now if entry.due_at is None and entry.status is Status.DISCOVERED else entry.due_at
    return replace(entry, due_at=due_at, seq=seq, version=0)


def improved(known: Entry, found: Entry) -> Entry | None:
    """A known entry met again: never visited, it takes the smaller depth (with its way there) and the union of flags.
    None: nothing to improve."""
    if known.visited_at is not None:
        return None
    nearer = found.depth < known.depth
    is_sitemap, is_feed = known.is_sitemap or found.is_sitemap, known.is_feed or found.is_feed
    if not nearer and is_sitemap == known.is_sitemap and is_feed == known.is_feed:
        return None
    way = found if nearer else known
    return replace(known, depth=way.depth, hops=way.hops, via=way.via, is_sitemap=is_sitemap, is_feed=is_feed)


def settled(change: Change) -> Entry:
    """What a change writes when its row is as it was claimed. Identity and version are the frontier's own."""
    before = change.before
    return replace(
        change.after,
        url=before.url,
        key=before.key,
        host=before.host,
        seq=before.seq,
        version=before.version + 1,
    )


def reconciled(stored: Entry, change: Change) -> Entry | None:
    """What a change writes when something else touched its row since the claim. None: another visit was settled."""
    before = change.before
    if stored.version != before.version:
        return None
    after = settled(change)
    if stored.due_at != before.due_at:
        after = replace(after, due_at=stored.due_at, next_rule=stored.next_rule)
    if stored.depth < after.depth:
        after = replace(after, depth=stored.depth, hops=stored.hops, via=stored.via)
    if stored.is_sitemap > before.is_sitemap or stored.is_feed > before.is_feed:
        after = replace(
            after, is_sitemap=after.is_sitemap or stored.is_sitemap, is_feed=after.is_feed or stored.is_feed
        )
    return after


def requeued(entry: Entry, now: float) -> Entry | None:
    """The entry as one never failed, due now. None: it is that already. Its version stays: no visit was settled."""
    if entry.status is Status.DISCOVERED and entry.due_at is not None and entry.due_at <= now:
        return None
    return replace(
        entry,
        status=Status.DISCOVERED,
        due_at=now,
        cause=None,
        failure=None,
        detail=None,
        errors=0,
        first_error_at=None,
        rules_digest=None,
        next_rule="requeue",
    )


def moved(entry: Entry, due_at: float | None) -> Entry:
    return replace(entry, due_at=due_at, next_rule="set_next")


def forgotten(entry: Entry, at: float, *, in_hand: bool = False) -> Deletion:
    """The deletion of an entry removed by hand. `in_hand`: it was under way then, and its visit was written since."""
    version = entry.version + (2 if in_hand else 1)
    return Deletion(document_id(entry.key), entry.url, at, entry.cause, version=version)


def posted(deletion: Deletion, seq: int) -> Deletion:
    """The deletion as it stands in the outbox."""
    return replace(deletion, seq=seq)


def rules_digests(state: HostState) -> frozenset[str]:
    """The host's present rules, by digest; a refusal under any other is to be judged again. Empty: none is."""
    return frozenset(robots.rules_digest for robots in state.robots.values() if robots.rules_digest is not None)


def is_refusal(entry: Entry) -> bool:
    """Is this an entry that waits for nothing but a change of rules?"""
    return entry.cause is Cause.ROBOTS and entry.rules_digest is not None and entry.due_at is None


def handed_out(state: HostState, not_before: float) -> HostState:
    """A host's state as a claim gives it: with the holds that others placed, and with nothing in flight, which the
    end of the lease before has proved."""
    if state.in_flight or not_before > state.not_before_at:
        return replace(state, in_flight=0, not_before_at=max(state.not_before_at, not_before))
    return state


def with_holds(state: HostState, not_before: float) -> HostState:
    return replace(state, not_before_at=max(state.not_before_at, not_before))


def full_delay(host: str, state: HostState) -> float:
    """How long a host rests whose worker vanished, where nobody says better: its own pace, and never under a second."""
    return max(1.0, state.wanted_s or 0.0, state.widened_s)


def held(host: str, state: HostState, not_before: float) -> tuple[str, float, str]:
    """A line of `Stats.held`. The reason is the host's own only if it is the longest hold."""
    reason = state.hold_reason if state.not_before_at >= not_before else "held for another worker, or resting"
    return host, not_before, reason or ""


def stats(
    tally: Mapping[Counter, int],
    *,
    hosts: int,
    visits: int,
    next_ready_at: float | None,
    held: tuple[tuple[str, float, str], ...],
) -> Stats:
    by_status = {status.name: 0 for status in Status}
    by_cause: dict[str, int] = {}
    by_failure: dict[str, int] = {}
    for (status, cause, failure), n in sorted(tally.items()):
        by_status[Status(status).name] += n
        if cause and n:
            word = Cause(cause).word
            by_cause[word] = by_cause.get(word, 0) + n
        if failure and n:
            by_failure[failure] = by_failure.get(failure, 0) + n
    return Stats(by_status, by_cause, by_failure, sum(by_status.values()), hosts, visits, next_ready_at, held)


def differences(kept: Mapping[Counter, int], counted: Mapping[Counter, int]) -> Iterator[str]:
    """One sentence for each counter that is not what counting gives."""
    for key in sorted(kept.keys() | counted.keys()):
        if (is_kept := kept.get(key, 0)) != (is_counted := counted.get(key, 0)):
            yield f"counter {key}: {is_kept} kept, {is_counted} counted"


def slot(key: str) -> int:
    """Where a key belongs in its host: a signed 64-bit hash. `find` walks a host in this order."""
    number = xxhash.xxh3_64_intdigest(key.encode())
    return number - (1 << 64) if number >> 63 else number


def possible_hosts(key: str) -> tuple[str, ...]:
    """Every host key under which a key may be filed, the likeliest first: the host with and without its port, then
    each domain above it (politeness may be by registrable domain, and only whoever filed it knows)."""
    authority = key.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2].lower()
    name, _, port = authority.rpartition(":")
    host = name if port.isdigit() else authority
    bare = host.strip("[]").rstrip(".")
    hosts = [bare, host, authority]
    if not host.startswith("["):
        labels = bare.split(".")
        hosts += [".".join(labels[i:]) for i in range(1, len(labels))]
    return tuple(dict.fromkeys(hosts))
