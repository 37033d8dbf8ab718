"""The frontier's contract (docs/architecture.md, "The frontier"), over every store.

One suite: a store is a line in `STORES`. After each test the store counts itself again (`check`), so a counter or a
`next_due` that drifted fails whichever test made it drift. The last store is SQLite with a hash of eight values: every
promise holds while keys collide.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

import pytest
from msgspec.structs import replace

from comity.frontier import contract
from comity.frontier.memory import MemoryFrontier
from comity.frontier.sqlite import SqliteFrontier
from comity.model import (
    Access,
    Cause,
    Change,
    Claim,
    Claims,
    Deletion,
    Entry,
    Failure,
    HostState,
    RobotsFile,
    RobotsState,
    Settlement,
    Status,
)
from comity.ports import Frontier, Ledger
from comity.url import document_id

LEASE_S = 60.0
REST_S = 7.0
STORES = ("memory", "sqlite", "sqlite-colliding")


class Store(Frontier, Ledger, Protocol):
    async def end_leases(self, now: float) -> int: ...

    async def check(self) -> tuple[str, ...]: ...


class HandClock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at

    async def sleep_until(self, at: float, *, heartbeat: bool = False) -> None:
        self.at = max(self.at, at)

    def busy(self) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, clock: HandClock, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store
    if request.param == "memory":
        made = MemoryFrontier(clock=clock, lease_s=LEASE_S, rest_s=rest)
    else:
        slot = contract.slot if request.param == "sqlite" else few_places
        made = await SqliteFrontier.open(tmp_path / "f.db", clock=clock, lease_s=LEASE_S, rest_s=rest, slot=slot)
    yield made
    assert await made.check() == ()
    await made.close()


def rest(host: str, state: HostState) -> float:
    return REST_S + state.widened_s


def few_places(key: str) -> int:
    return contract.slot(key) & 7


def found(path: str, host: str = "a.example", *, due_at: float | None = 100.0, **facts: object) -> Entry:
    url = f"https://{host}/{path}"
    return Entry(url, url, host, due_at=due_at, discovered_at=100.0, **facts)  # type: ignore[arg-type]


def visited(entry: Entry, *, due_at: float | None = 9_000.0, **facts: object) -> Change:
    facts = {"status": Status.FETCHED, "visited_at": 200.0, **facts}
    return Change(entry, replace(entry, due_at=due_at, **facts))


def refused(entry: Entry, digest: str | None) -> Change:
    return visited(entry, due_at=None, status=Status.ERROR, cause=Cause.ROBOTS, rules_digest=digest, visited_at=None)


def under(*digests: str | None, **facts: object) -> HostState:
    """A host's state with these rules in force, each of another origin."""
    origins = {f"https://{n}.example": RobotsState(Access.RULES, rules_digest=d) for n, d in enumerate(digests)}
    return HostState(robots=origins, **facts)  # type: ignore[arg-type]


def back(claim: Claim, *changes: Change, state: HostState | None = None, **facts: object) -> Settlement:
    return Settlement(claim.host, claim.token, changes, state=state, give_back=True, visits=len(changes), **facts)  # type: ignore[arg-type]


async def take(store: Store, worker: str = "w", now: float = 200.0, hosts: int = 10, per_host: int = 10) -> Claims:
    return await store.claim(worker, now, hosts, per_host)


async def take_one(store: Store, worker: str = "w", now: float = 200.0, per_host: int = 10) -> Claim:
    (claim,) = (await store.claim(worker, now, 1, per_host)).claims
    return claim


async def known(store: Store, path: str, host: str = "a.example") -> Entry:
    entry = await store.get(f"https://{host}/{path}")
    assert entry is not None
    return entry


def names(entries: Iterable[Entry]) -> list[str]:
    return [entry.key.rpartition("/")[2] for entry in entries]


# ------------------------------------------------------------------------------------------------------------------ add


async def test_add_says_which_keys_were_new(store: Store) -> None:
    assert await store.add([found("1"), found("2"), found("1")], 100.0) == (found("1").key, found("2").key)
    assert await store.add([found("2"), found("3"), found("1", "b.example")], 100.0) == (
        found("3").key,
        found("1", "b.example").key,
    )
    stats = await store.stats()
    assert (stats.urls, stats.hosts) == (4, 2)


async def test_one_entry_per_key_and_the_first_spelling_stays(store: Store) -> None:
    first = replace(found("%7Ea"), key="https://a.example/~a")
    assert await store.add([first, found("~a")], 100.0) == ("https://a.example/~a",)
    assert await store.add([replace(found("%7ea"), key="https://a.example/~a")], 100.0) == ()
    entry = await store.get("https://a.example/~a")
    assert entry is not None
    assert entry.url == "https://a.example/%7Ea"
    assert await store.get("https://a.example/%7Ea") is None


async def test_entries_come_back_as_they_were_given(store: Store) -> None:
    entry = found("1", depth=3, hops=2, via="https://b.example/", is_feed=True, hint_at=5.0, metadata={"k": ("a", "b")})
    await store.add([entry], 100.0)
    assert await known(store, "1") == replace(entry, seq=1)


async def test_the_order_of_discovery_runs_over_all_hosts(store: Store) -> None:
    await store.add([found("1"), found("2", "b.example")], 100.0)
    await store.add([found("1"), found("3")], 100.0)
    assert [(await known(store, *at)).seq for at in [("1",), ("2", "b.example"), ("3",)]] == [1, 2, 3]


async def test_a_discovery_that_names_no_time_is_due_now(store: Store) -> None:
    await store.add([found("1", due_at=None)], 150.0)
    assert (await known(store, "1")).due_at == 150.0


async def test_a_discovery_refused_by_the_rules_is_stored_as_such(store: Store) -> None:
    await store.add([refused(found("1"), "d").after], 100.0)
    assert (await known(store, "1")).cause is Cause.ROBOTS
    assert (await take(store)) == Claims((), None)


@pytest.mark.parametrize(
    ("again", "better"),
    [
        ({"depth": 2, "via": "near", "hops": 1}, {"depth": 2, "via": "near", "hops": 1}),
        ({"depth": 4, "via": "far"}, {}),
        ({"depth": 5, "is_sitemap": True, "via": "far"}, {"is_sitemap": True}),
        ({"depth": 4, "is_feed": True}, {"is_feed": True}),
        ({"depth": 1, "is_feed": True, "via": "near"}, {"depth": 1, "is_feed": True, "via": "near"}),
        ({"depth": 4, "due_at": 1.0, "metadata": {"x": ("y",)}, "hint_at": 9.0}, {}),
    ],
    ids=["nearer", "farther", "sitemap", "feed", "both", "nothing else"],
)
async def test_an_entry_never_visited_takes_the_smaller_depth_and_the_union_of_flags(
    store: Store, again: dict[str, object], better: dict[str, object]
) -> None:
    await store.add([found("1", depth=4, via="first")], 100.0)
    before = await known(store, "1")
    assert await store.add([replace(found("1"), **again)], 101.0) == ()
    assert await known(store, "1") == replace(before, **better)


async def test_flags_add_up_over_discoveries(store: Store) -> None:
    await store.add([found("1", is_feed=True), found("1", is_sitemap=True), found("1")], 100.0)
    entry = await known(store, "1")
    assert entry.is_feed
    assert entry.is_sitemap


async def test_a_visited_entry_is_improved_no_more(store: Store) -> None:
    await store.add([found("1", depth=4)], 100.0)
    claim = await take_one(store)
    await store.settle([back(claim, visited(claim.entries[0]))], {}, 200.0)
    before = await known(store, "1")
    await store.add([found("1", depth=0, is_feed=True)], 300.0)
    assert await known(store, "1") == before


async def test_an_improvement_while_the_entry_is_in_hand_stays(store: Store) -> None:
    await store.add([found("1", depth=4, via="far")], 100.0)
    claim = await take_one(store)
    await store.add([found("1", depth=1, via="near", is_sitemap=True)], 150.0)
    await store.settle([back(claim, visited(claim.entries[0]))], {}, 200.0)
    after = await known(store, "1")
    assert (after.status, after.depth, after.via, after.is_sitemap) == (Status.FETCHED, 1, "near", True)


# ---------------------------------------------------------------------------------------------------------------- claim


async def test_entries_come_in_order_of_due_time_then_of_discovery(store: Store) -> None:
    dues = {"a": 90.0, "b": 80.0, "c": 90.0, "d": 201.0, "e": 80.0, "f": 200.0}
    await store.add([found(path, due_at=due_at) for path, due_at in dues.items()], 100.0)
    assert names((await take_one(store)).entries) == ["b", "e", "a", "c", "f"]


async def test_a_claim_takes_no_more_hosts_and_entries_than_asked_for(store: Store) -> None:
    await store.add([found(str(n), f"{host}.example") for host in "abc" for n in range(5)], 100.0)
    first = await take(store, hosts=2, per_host=3)
    assert [(claim.host, len(claim.entries)) for claim in first.claims] == [("a.example", 3), ("b.example", 3)]
    assert [claim.host for claim in (await take(store, hosts=2, per_host=3)).claims] == ["c.example"]
    assert (await take(store)).claims == ()


async def test_a_claim_for_no_hosts_says_when_the_next_is_ready(store: Store) -> None:
    await store.add([found("1", due_at=150.0)], 100.0)
    assert await take(store, hosts=0) == Claims((), 150.0)


async def test_nothing_is_claimed_before_it_is_due(store: Store) -> None:
    await store.add([found("1", due_at=200.5)], 100.0)
    assert await take(store, now=200.0) == Claims((), 200.5)
    assert len((await take(store, now=200.5)).claims) == 1


async def test_a_token_grows_by_one_at_every_claim_of_its_host(store: Store) -> None:
    await store.add([found("1"), found("1", "b.example")], 100.0)
    tokens = []
    for _ in range(3):
        claims = (await take(store)).claims
        tokens.append([claim.token for claim in claims])
        await store.settle([back(claim) for claim in claims], {}, 200.0)
    assert tokens == [[1, 1], [2, 2], [3, 3]]


async def test_two_workers_never_hold_one_host(store: Store) -> None:
    await store.add([found("1", f"{n}.example") for n in range(30)], 100.0)
    held: list[str] = []
    for turn in range(10):
        held += [claim.host for claim in (await take(store, f"w{turn % 3}", hosts=4)).claims]
    assert len(held) == len(set(held)) == 30


async def test_the_next_ready_host_is_looked_up_after_the_claim_and_among_unowned_ones(store: Store) -> None:
    await store.add([found("1", due_at=120.0), found("1", "b.example", due_at=130.0)], 100.0)
    await store.add([found("1", "c.example", due_at=500.0)], 100.0)
    await store.hold("c.example", 700.0)
    assert (await take(store, hosts=1)).next_ready_at == 130.0
    assert (await take(store, hosts=1)).next_ready_at == 700.0
    assert (await take(store, now=800.0)).next_ready_at is None


async def test_the_host_that_has_waited_longest_comes_first(store: Store) -> None:
    await store.add([found("1", "late.example", due_at=130.0), found("1", "early.example", due_at=120.0)], 100.0)
    assert (await take_one(store)).host == "early.example"


async def test_of_hosts_ready_at_one_instant_the_one_claimed_least_comes_first(store: Store) -> None:
    await store.add([found(str(n), host) for host in ("a.example", "b.example") for n in range(9)], 100.0)
    order = []
    for _ in range(6):
        claim = await take_one(store, per_host=1)
        order.append(claim.host)
        await store.settle([back(claim, visited(claim.entries[0]))], {}, 200.0)
    assert order == ["a.example", "b.example"] * 3


async def test_a_claim_gives_the_state_that_was_settled(store: Store) -> None:
    await store.add([found("1"), found("2")], 100.0)
    assert (await take_one(store)).state == HostState()
    state = under("d", wanted_s=2.5, recent=(True, False), pages=7, address="192.0.2.1", next_at=150.0)
    await store.settle([Settlement("a.example", 1, state=state, give_back=True)], {}, 200.0)
    assert (await take_one(store)).state == state


async def test_a_claim_begins_with_nothing_in_flight(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    await store.settle([back(claim, state=HostState(in_flight=2))], {}, 200.0)
    assert (await take_one(store)).state.in_flight == 0


@pytest.mark.slow
async def test_a_host_with_a_hundred_thousand_urls_starves_nobody(store: Store, request: pytest.FixtureRequest) -> None:
    """Hosts with one URL each, found after a huge one, are all served while it has hardly begun."""
    if "colliding" in request.node.name:
        return
    await store.add([found(str(n), "huge.example", due_at=1.0) for n in range(100_000)], 100.0)
    await store.add([found("1", f"small{n}.example") for n in range(50)], 100.0)
    served: list[str] = []
    for turn in range(51):
        claim = await take_one(store, now=200.0 + turn, per_host=10)
        served.append(claim.host)
        await store.settle([back(claim, *map(visited, claim.entries))], {}, 200.0 + turn)
    assert len(set(served)) == 51


# --------------------------------------------------------------------------------------------------------------- refill


async def test_refill_gives_what_has_become_due_since(store: Store) -> None:
    await store.add([found(str(n), due_at=100.0 + n) for n in range(5)], 100.0)
    claim = await take_one(store, now=101.0)
    await store.settle([Settlement(claim.host, claim.token, tuple(map(visited, claim.entries)))], {}, 102.0)
    assert names((await store.refill([claim], 103.0, 1))[claim.host]) == ["2"]
    assert names((await store.refill([claim], 103.0, 9))[claim.host]) == ["2", "3"]


async def test_refill_gives_nothing_for_a_claim_that_is_over(store: Store) -> None:
    await store.add([found("1"), found("1", "b.example")], 100.0)
    gone, kept = (await take(store)).claims
    await store.settle([back(gone)], {}, 200.0)
    assert await store.refill([gone, kept], 200.0, 9) == {"a.example": (), "b.example": kept.entries}


# --------------------------------------------------------------------------------------------------------------- settle


async def test_a_settled_visit_is_what_the_entry_becomes(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    change = visited(claim.entries[0], etag='W/"x"', http_status=200, metadata={"a": ("1",)}, next_rule="fetched")
    await store.settle([back(claim, change)], {}, 200.0)
    assert await known(store, "1") == replace(change.after, version=1)


async def test_the_version_grows_by_one_with_every_settled_visit(store: Store) -> None:
    await store.add([found("1")], 100.0)
    for turn in range(3):
        claim = await take_one(store, now=200.0 + turn)
        assert claim.entries[0].version == turn
        await store.settle([back(claim, visited(claim.entries[0], due_at=200.0))], {}, 200.0 + turn)


async def test_one_settle_carries_many_hosts(store: Store) -> None:
    await store.add([found(str(n), f"{host}.example") for host in "abc" for n in range(3)], 100.0)
    claims = (await take(store)).claims
    settled = await store.settle(
        [back(claim, *map(visited, claim.entries), discoveries=(found("new", claim.host),)) for claim in claims],
        {"jsonl": {"offset": 9}},
        200.0,
    )
    assert (settled.stale, settled.new, settled.improved) == ((), 3, 0)
    stats = await store.stats()
    assert stats.by_status == {"DISCOVERED": 3, "FETCHED": 9, "REDIRECTION": 0, "FETCH_ERROR": 0, "ERROR": 0}
    assert stats.visits == 9


async def test_a_visit_settled_twice_counts_once(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    settlement = Settlement(claim.host, claim.token, (visited(claim.entries[0]),), visits=1)
    await store.settle([settlement], {}, 200.0)
    before = await known(store, "1"), await store.stats()
    await store.settle([settlement], {}, 200.0)
    assert (await known(store, "1"), await store.stats()) == before


async def test_a_settle_with_an_old_version_changes_nothing(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    first = visited(claim.entries[0], digest="first")
    second = visited(claim.entries[0], digest="second")
    await store.settle([Settlement(claim.host, claim.token, (first, second), visits=2)], {}, 200.0)
    assert (await known(store, "1")).digest == "first"
    assert (await store.stats()).visits == 1


async def test_a_settle_with_an_old_version_changes_nothing_even_where_all_else_is_the_same(store: Store) -> None:
    await store.add([found("1")], 100.0)
    for digest in ("first", "second"):
        claim = await take_one(store)
        change = visited(claim.entries[0], due_at=100.0, digest=digest)
        await store.settle([back(claim, change)], {}, 200.0)
    last = await take_one(store)
    await store.settle([Settlement(last.host, last.token, (change,), visits=1)], {}, 200.0)
    assert (await known(store, "1")).version == 2
    assert (await store.stats()).visits == 2


async def test_a_stale_token_changes_nothing_but_its_discoveries_are_added(store: Store, clock: HandClock) -> None:
    await store.add([found("1")], 100.0)
    old = await take_one(store, "dead")
    clock.at += LEASE_S + REST_S
    new = await take_one(store, "alive", now=clock.at)
    assert new.token == old.token + 1
    stale = back(
        old,
        visited(old.entries[0]),
        state=HostState(next_at=9e9, pages=99),
        discoveries=(found("2"), found("3", "b.example")),
        deletions=(Deletion("id", "url", 1.0),),
        robots=(RobotsFile("d", b"", "url", 1.0),),
    )
    settled = await store.settle([stale], {"jsonl": {"offset": 1}}, clock.at)
    assert (settled.stale, settled.new) == (("a.example",), 2)
    assert await known(store, "1") == old.entries[0]
    assert (await store.host("a.example")) == Claim("a.example", new.token, (), new.state)
    assert await store.deletions("jsonl", 0, 10) == ()
    assert (await store.stats()).visits == 0
    assert names((await store.refill([new], clock.at, 9))["a.example"]) == ["1", "2"]
    assert await store.marks() == {"jsonl": {"offset": 1}}


async def test_a_claim_given_back_settles_no_more(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    await store.settle([back(claim)], {}, 200.0)
    settled = await store.settle([back(claim, visited(claim.entries[0]))], {}, 200.0)
    assert settled.stale == ("a.example",)
    assert (await known(store, "1")).status is Status.DISCOVERED


async def test_a_settlement_for_an_unknown_host_is_stale(store: Store) -> None:
    settled = await store.settle([Settlement("x.example", 0, discoveries=(found("1"),))], {}, 200.0)
    assert (settled.stale, settled.new) == (("x.example",), 1)


async def test_a_host_given_back_is_claimed_again_when_its_clock_and_its_entries_allow(store: Store) -> None:
    await store.add([found("1"), found("2")], 100.0)
    claim = await take_one(store, per_host=1)
    await store.settle([back(claim, visited(claim.entries[0]), state=HostState(next_at=260.0))], {}, 200.0)
    assert await take(store, now=259.9) == Claims((), 260.0)
    claim = await take_one(store, now=260.0)
    await store.settle([back(claim, visited(claim.entries[0], due_at=300.0))], {}, 260.0)
    assert await take(store, now=299.9) == Claims((), 300.0)
    assert len((await take(store, now=300.0)).claims) == 1


async def test_the_longest_hold_of_a_state_holds_its_host(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    state = HostState(next_at=210.0, not_before_at=500.0, hold_reason="Retry-After: 300")
    await store.settle([back(claim, state=state)], {}, 200.0)
    assert await take(store, now=499.0) == Claims((), 500.0)
    assert (await take_one(store, now=500.0)).state == state


async def test_a_settlement_without_a_state_leaves_it(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    await store.settle([Settlement(claim.host, claim.token, state=HostState(pages=3, next_at=300.0))], {}, 200.0)
    await store.settle([Settlement(claim.host, claim.token, (visited(claim.entries[0]),))], {}, 200.0)
    await store.settle([back(claim, discoveries=(found("2"),))], {}, 200.0)
    assert await take(store, now=299.0) == Claims((), 300.0)
    assert (await take_one(store, now=300.0)).state.pages == 3


async def test_a_discovery_wakes_the_host_it_belongs_to(store: Store) -> None:
    await store.add([found("1"), found("1", "b.example", due_at=900.0)], 100.0)
    claim = await take_one(store)
    new = (found("2", "b.example", due_at=400.0), found("3", "c.example", due_at=300.0))
    await store.settle([back(claim, visited(claim.entries[0]), discoveries=new)], {}, 200.0)
    assert (await take(store, now=250.0)).next_ready_at == 300.0
    assert [claim.host for claim in (await take(store, now=400.0)).claims] == ["c.example", "b.example"]


async def test_a_host_with_nothing_due_is_not_ready_until_something_is_found(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    await store.settle([back(claim, visited(claim.entries[0], due_at=None))], {}, 200.0)
    assert await take(store, now=9e9) == Claims((), None)
    await store.add([found("2", due_at=201.0)], 200.0)
    assert names((await take_one(store, now=201.0)).entries) == ["2"]


async def test_discoveries_are_counted_as_new_improved_or_known(store: Store) -> None:
    await store.add([found("1", depth=3), found("2", depth=3)], 100.0)
    claim = await take_one(store)
    settled = await store.settle(
        [back(claim, discoveries=(found("1", depth=1), found("2", depth=3), found("3"), found("3", is_feed=True)))],
        {},
        200.0,
    )
    assert (settled.new, settled.improved) == (1, 2)


async def test_robots_bodies_are_kept_once_by_digest(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    first = RobotsFile("d1", b"User-agent: *\n", "https://a.example/robots.txt", 150.0)
    again = replace(first, url="https://b.example/robots.txt", at=160.0)
    await store.settle([Settlement(claim.host, claim.token, robots=(first, again))], {}, 200.0)
    await store.settle([Settlement(claim.host, claim.token, robots=(again,))], {}, 200.0)
    assert await store.robots("d1") == first
    assert await store.robots("d2") is None


async def test_deletions_come_in_order_from_just_after_a_mark(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    gone = [Deletion(f"id{n}", f"url{n}", 150.0 + n, Cause.GONE, version=n) for n in range(5)]
    await store.settle([Settlement(claim.host, claim.token, deletions=tuple(gone[:2]))], {}, 200.0)
    await store.settle([Settlement(claim.host, claim.token, deletions=tuple(gone[2:]))], {}, 200.0)
    page = await store.deletions("jsonl", 0, 3)
    assert page == tuple(replace(deletion, seq=n + 1) for n, deletion in enumerate(gone[:3]))
    assert [deletion.id for deletion in await store.deletions("jsonl", page[-1].seq, 3)] == ["id3", "id4"]
    assert await store.deletions("jsonl", 5, 3) == ()


async def test_each_sink_keeps_the_last_mark_it_was_settled_with(store: Store) -> None:
    assert await store.marks() == {}
    await store.settle([], {"jsonl": {"file": 0, "offset": 10}, "crawllog": {"offset": 3}}, 200.0)
    await store.settle([], {"jsonl": {"file": 1, "offset": 0}}, 200.0)
    assert await store.marks() == {"jsonl": {"file": 1, "offset": 0}, "crawllog": {"offset": 3}}


# --------------------------------------------------------------------------------------------------------------- leases


async def test_a_dead_workers_hosts_come_back_after_its_lease_and_rest_one_full_delay(
    store: Store, clock: HandClock
) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store, "dead")
    await store.settle([Settlement(claim.host, claim.token, state=HostState(widened_s=5.0))], {}, 200.0)
    end_at = clock.at + LEASE_S
    clock.at = end_at - 0.1
    assert await take(store, "alive", now=clock.at) == Claims((), None)
    clock.at = end_at
    assert await take(store, "alive", now=clock.at) == Claims((), end_at + REST_S + 5.0)
    clock.at = end_at + REST_S + 5.0
    (again,) = (await take(store, "alive", now=clock.at)).claims
    assert again.token == claim.token + 1
    assert again.state.not_before_at == end_at + REST_S + 5.0


async def test_the_rest_counts_from_the_end_of_the_lease_however_late_it_is_noticed(
    store: Store, clock: HandClock
) -> None:
    await store.add([found("1")], 100.0)
    await take_one(store, "dead")
    end_at = clock.at + LEASE_S
    clock.at = end_at + 1000.0
    assert (await take_one(store, "alive", now=clock.at)).state.not_before_at == end_at + REST_S


async def test_a_renewed_lease_lasts_longer(store: Store, clock: HandClock) -> None:
    await store.add([found("1")], 100.0)
    await take_one(store, "slow")
    clock.at += LEASE_S - 1.0
    await store.renew("slow", 500.0)
    await store.renew("slow", 1.0)  # a lease is never cut short
    clock.at += 499.0
    assert (await take(store, "other", now=clock.at)).next_ready_at is None
    clock.at += 1.0
    assert (await take(store, "other", now=clock.at)).next_ready_at == clock.at + REST_S


async def test_a_claim_that_takes_nothing_extends_no_lease(store: Store, clock: HandClock) -> None:
    await store.add([found("1")], 100.0)
    await take_one(store, "slow")
    end_at = clock.at + LEASE_S
    await store.renew("ghost", 1.0)
    clock.at = end_at - 1.0
    assert (await take(store, "slow", now=clock.at)).claims == ()  # it ends the ghost's lease, and takes nothing
    clock.at = end_at
    assert (await take(store, "other", now=clock.at)).next_ready_at == end_at + REST_S


async def test_a_worker_does_not_end_its_own_lease(store: Store, clock: HandClock) -> None:
    """Under a virtual clock time may leap past a lease while its worker waits for nothing else."""
    await store.add([found("1"), found("1", "b.example", due_at=5_000.0)], 100.0)
    claim = await take_one(store)
    clock.at = 6_000.0
    await take(store, now=clock.at)
    settled = await store.settle([back(claim, visited(claim.entries[0]))], {}, clock.at)
    assert settled.stale == ()


async def test_a_lease_that_ran_out_unnoticed_still_settles(store: Store, clock: HandClock) -> None:
    """Nobody else has the host, and the visit was made: throwing it away would only repeat it."""
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    clock.at += LEASE_S + 1.0
    assert (await store.settle([back(claim, visited(claim.entries[0]))], {}, clock.at)).stale == ()


async def test_release_gives_back_every_host_of_the_worker_and_no_other(store: Store, clock: HandClock) -> None:
    await store.add([found("1", f"{host}.example") for host in "abc"], 100.0)
    mine = (await take(store, "mine", hosts=2)).claims
    theirs = await take_one(store, "theirs")
    await store.release("mine")
    clock.at += REST_S
    assert [claim.host for claim in (await take(store, "next", now=clock.at)).claims] == [claim.host for claim in mine]
    assert (await store.settle([back(theirs)], {}, clock.at)).stale == ()
    assert (await store.settle([back(mine[0])], {}, clock.at)).stale == ("a.example",)


async def test_a_host_released_unsettled_rests(store: Store, clock: HandClock) -> None:
    """What its worker asked last is not known, so it counts as asked now."""
    await store.add([found("1")], 100.0)
    await take_one(store)
    await store.release("w")
    assert await take(store, now=clock.at) == Claims((), clock.at + REST_S)


async def test_a_crawl_that_is_alone_ends_every_lease_at_once(store: Store, clock: HandClock) -> None:
    await store.add([found("1", f"{host}.example") for host in "abcd"], 100.0)
    await take(store, "dead1", hosts=2)
    await take(store, "dead2", hosts=1)
    assert await store.end_leases(clock.at) == 3
    assert await store.end_leases(clock.at) == 0
    claims = await take(store, now=clock.at)
    assert ([claim.host for claim in claims.claims], claims.next_ready_at) == (["d.example"], clock.at + REST_S)


# ----------------------------------------------------------------------------------------------------------------- hold


async def test_a_hold_keeps_everybody_off_and_says_what_was_known(store: Store) -> None:
    await store.add([found("1")], 100.0)
    assert await store.hold("a.example", 400.0) == 0.0
    assert await store.hold("a.example", 300.0) == 400.0
    assert await take(store, now=399.0) == Claims((), 400.0)
    assert (await take_one(store, now=400.0)).state.not_before_at == 400.0


async def test_a_hold_on_an_unknown_host_waits_for_its_first_url(store: Store) -> None:
    assert await store.hold("a.example", 400.0) == 0.0
    await store.add([found("1")], 100.0)
    assert await take(store) == Claims((), 400.0)
    assert (await store.stats()).hosts == 1


async def test_a_hold_knows_the_politeness_clock(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    await store.settle([back(claim, state=HostState(next_at=280.0))], {}, 200.0)
    assert await store.hold("a.example", 250.0) == 280.0
    assert (await take(store, now=279.0)).next_ready_at == 280.0


async def test_a_hold_on_an_owned_host_survives_its_owners_settle(store: Store) -> None:
    await store.add([found("1"), found("2")], 100.0)
    claim = await take_one(store)
    await store.hold("a.example", 900.0)
    state = HostState(next_at=210.0, not_before_at=220.0, hold_reason="429")
    await store.settle([back(claim, visited(claim.entries[0]), state=state)], {}, 200.0)
    assert await take(store, now=899.0) == Claims((), 900.0)
    assert (await take_one(store, now=900.0)).state.not_before_at == 900.0


async def test_a_hold_survives_an_empty_queue(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    await store.settle(
        [back(claim, visited(claim.entries[0], due_at=None), state=HostState(not_before_at=800.0))], {}, 200.0
    )
    assert await take(store, now=9e9) == Claims((), None)
    await store.add([found("2")], 300.0)
    assert await take(store, now=300.0) == Claims((), 800.0)


# -------------------------------------------------------------------------------------------------------- judged again


async def refuse_all(store: Store, digest: str | None, state: HostState, *paths: str) -> None:
    await store.add([found(path) for path in paths], 100.0)
    claim = await take_one(store, per_host=2_000)
    await store.settle([back(claim, *(refused(entry, digest) for entry in claim.entries), state=state)], {}, 200.0)


@pytest.mark.parametrize(
    ("refused_by", "before", "after", "again"),
    [
        ("d1", under("d1"), under("d2"), True),
        ("d1", under("d1"), under("d1"), False),
        ("d1", under("d1"), under("d0", "d1", "d2"), False),
        ("d1", under("d1"), under("d0", None, "d2"), True),
        ("d1", under("d1"), under(), False),
        ("d1", under("d1"), under(None), False),
        (None, under("d1"), under("d2"), False),
    ],
    ids=["changed", "same", "another origin's", "one of two gone", "no rules", "unreachable", "not filed by rules"],
)
async def test_a_refusal_is_served_again_when_its_rules_are_no_longer_in_force(
    store: Store, refused_by: str | None, before: HostState, after: HostState, again: bool
) -> None:
    await refuse_all(store, refused_by, before, "1", "2")
    assert await take(store, now=250.0) == Claims((), None)
    await store.add([found("3")], 250.0)
    claim = await take_one(store, now=260.0)
    await store.settle([Settlement(claim.host, claim.token, (visited(claim.entries[0]),), state=after)], {}, 260.0)
    more = (await store.refill([claim], 260.0, 1))[claim.host]
    assert sorted(names(more)) == (["1", "2"] if again else [])
    await store.settle([back(claim)], {}, 260.0)
    claims = await take(store, now=260.0)
    assert [sorted(names(claim.entries)) for claim in claims.claims] == ([["1", "2"]] if again else [])


async def test_refusals_come_after_the_due_entries_and_beside_their_number(store: Store) -> None:
    await refuse_all(store, "d1", under("d1"), "r1", "r2", "r3")
    await store.add([found("due1"), found("due2"), found("due3")], 210.0)
    claim = await take_one(store, now=220.0, per_host=1)
    await store.settle([back(claim, visited(claim.entries[0]), state=under("d2"))], {}, 220.0)
    claim = await take_one(store, now=220.0, per_host=1)
    assert names(claim.entries[:1]) == ["due2"]
    assert sorted(names(claim.entries[1:])) == ["r1", "r2", "r3"]


async def test_a_refusal_that_stands_or_falls_is_served_no_more(store: Store) -> None:
    await refuse_all(store, "d1", under("d1"), "1", "2")
    await store.add([found("3")], 210.0)
    claim = await take_one(store, now=220.0)
    await store.settle([back(claim, visited(claim.entries[0]), state=under("d2"))], {}, 220.0)
    claim = await take_one(store, now=230.0)
    stands, falls = claim.entries
    opened = Change(falls, replace(falls, status=Status.DISCOVERED, cause=None, rules_digest=None, due_at=230.0))
    await store.settle([Settlement(claim.host, claim.token, (refused(stands, "d2"), opened))], {}, 230.0)
    assert (await store.refill([claim], 230.0, 9))[claim.host] == (replace(opened.after, version=2),)


async def test_only_refusals_by_rules_not_in_force_are_served_again(store: Store) -> None:
    await store.add([found(str(n)) for n in range(5)], 100.0)
    claim = await take_one(store)
    digests = ("d1", "d2", "d3", "d4", "d2")
    changes = tuple(map(refused, claim.entries, digests))
    await store.settle([back(claim, *changes, state=under(*digests))], {}, 200.0)
    assert (await take(store)).claims == ()
    await store.add([found("x")], 210.0)
    claim = await take_one(store, now=220.0)
    await store.settle([back(claim, visited(claim.entries[0]), state=under("d1", "d2", "d4"))], {}, 220.0)
    assert names((await take_one(store, now=220.0)).entries) == ["2"]


async def test_a_refusal_with_a_due_time_set_by_hand_waits_for_it_and_comes_once(store: Store) -> None:
    await refuse_all(store, "d1", under("d1"), "1", "2")
    await store.set_next(found("1").key, 300.0)
    assert (await take(store, now=250.0)).next_ready_at == 300.0
    claim = await take_one(store, now=300.0)
    assert names(claim.entries) == ["1"]
    await store.settle([Settlement(claim.host, claim.token, state=under("d2"))], {}, 300.0)
    assert names((await store.refill([claim], 300.0, 9))[claim.host]) == ["1", "2"]


async def test_no_more_than_a_thousand_refusals_are_served_at_once(
    store: Store, request: pytest.FixtureRequest
) -> None:
    extra = 5
    if "colliding" in request.node.name:
        return
    await refuse_all(store, "d1", under("d1"), *map(str, range(contract.REJUDGED_AT_ONCE + extra)))
    await store.add([found("x")], 210.0)
    claim = await take_one(store, now=220.0)
    await store.settle([back(claim, visited(claim.entries[0]), state=under("d2"))], {}, 220.0)
    claim = await take_one(store, now=220.0)
    assert len(claim.entries) == contract.REJUDGED_AT_ONCE
    again = tuple(refused(entry, "d2") for entry in claim.entries)
    await store.settle([Settlement(claim.host, claim.token, again)], {}, 220.0)
    assert len((await store.refill([claim], 220.0, 1))[claim.host]) == extra


async def test_a_discovery_refused_by_rules_not_in_force_makes_its_host_ready(store: Store) -> None:
    await refuse_all(store, "d1", under("d1"), "1")
    await store.add([refused(found("2"), "d0").after], 300.0)
    assert names((await take_one(store, now=300.0)).entries) == ["2"]


# --------------------------------------------------------------------------------------------------------------- ledger


async def test_get_knows_every_key_and_only_keys(store: Store) -> None:
    addresses = ["http://[::1]:8080/x", "https://127.0.0.1/", "https://deep.sub.b.example:8443/?q=/"]
    hosts = ["[::1]", "127.0.0.1", "b.example"]
    await store.add([Entry(url, url, host) for url, host in zip(addresses, hosts, strict=True)], 100.0)
    for url in addresses:
        entry = await store.get(url)
        assert entry is not None
        assert entry.url == url
    assert await store.get("https://nowhere.example/") is None
    assert await store.get("not a key") is None


async def test_find_walks_the_whole_store_a_page_at_a_time(store: Store) -> None:
    everything = [found(str(n), host) for host in ("a.example", "b.example") for n in range(25)]
    await store.add(everything, 100.0)
    for host in (None, "b.example", "x.example"):
        walked: list[str] = []
        after = None
        while page := await store.find(host=host, after=after, limit=7):
            assert len(page) <= 7
            walked += [entry.key for entry in page]
            after = page[-1].key
        assert sorted(walked) == sorted(entry.key for entry in everything if host in (None, entry.host))


async def test_find_goes_on_after_an_entry_that_is_gone_meanwhile(store: Store) -> None:
    await store.add([found(str(n)) for n in range(9)], 100.0)
    first = await store.find(limit=4)
    await store.forget(first[-1].key)
    rest_of_it = await store.find(after=first[-1].key)
    assert len(rest_of_it) >= 5
    assert {entry.key for entry in first[:3] + rest_of_it} == {entry.key for entry in await store.find()}


async def test_find_by_status(store: Store) -> None:
    await store.add([found(str(n), host) for host in ("a.example", "b.example") for n in range(5)], 100.0)
    claim = await take_one(store, per_host=2)
    await store.settle([back(claim, *map(visited, claim.entries))], {}, 200.0)
    assert sorted(names(await store.find(status=Status.FETCHED))) == ["0", "1"]
    assert len(await store.find(status=Status.DISCOVERED, host="a.example")) == 3
    assert len(await store.find(status=Status.DISCOVERED, limit=6)) == 6
    assert await store.find(status=Status.ERROR) == ()


async def test_stats_count_by_status_cause_and_failure(store: Store) -> None:
    await store.add([found(str(n)) for n in range(6)], 100.0)
    claim = await take_one(store)
    e = claim.entries
    changes = (
        visited(e[0]),
        visited(e[1], status=Status.FETCH_ERROR, failure=Failure.HTTP_503, errors=1),
        visited(e[2], status=Status.FETCH_ERROR, failure=Failure.HTTP_503, errors=1),
        visited(e[3], status=Status.ERROR, cause=Cause.GONE, failure=Failure.HTTP_410, due_at=None),
        refused(e[4], "d"),
        visited(e[5], status=Status.REDIRECTION, failure=Failure.PARSE),
    )
    await store.settle([back(claim, *changes)], {}, 200.0)
    stats = await store.stats()
    assert stats.by_status == {"DISCOVERED": 0, "FETCHED": 1, "REDIRECTION": 1, "FETCH_ERROR": 2, "ERROR": 2}
    assert stats.by_cause == {"gone": 1, "robots": 1}
    assert stats.by_failure == {"http_503": 2, "http_410": 1}
    assert (stats.urls, stats.hosts, stats.visits) == (6, 1, 6)
    assert stats.next_ready_at == 9_000.0


async def test_stats_name_the_hosts_on_hold_and_why(store: Store, clock: HandClock) -> None:
    await store.add([found("1", f"{host}.example") for host in "abc"], 100.0)
    claim = await take_one(store)
    state = HostState(not_before_at=clock.at + 50.0, hold_reason="Retry-After: 50")
    await store.settle([back(claim, state=state)], {}, 200.0)
    await store.hold("b.example", clock.at + 10.0)
    await store.hold("c.example", clock.at - 10.0)
    held = (await store.stats()).held
    assert [(host, at - clock.at) for host, at, _ in held] == [("b.example", 10.0), ("a.example", 50.0)]
    assert held[1][2] == "Retry-After: 50"


async def test_host_shows_a_state_and_claims_nothing(store: Store) -> None:
    assert await store.host("a.example") is None
    await store.add([found("1")], 100.0)
    await store.hold("a.example", 150.0)
    assert await store.host("a.example") == Claim("a.example", 0, (), HostState(not_before_at=150.0))
    assert (await take_one(store)).token == 1


async def test_requeued_entries_are_discovered_again_and_due_now(store: Store) -> None:
    await store.add([found("1"), found("2"), found("3")], 100.0)
    claim = await take_one(store, per_host=2)
    dead = {"status": Status.ERROR, "cause": Cause.MAX_ERRORS, "failure": Failure.DNS, "errors": 3, "due_at": None}
    await store.settle([back(claim, visited(claim.entries[0], **dead), visited(claim.entries[1]))], {}, 200.0)  # type: ignore[arg-type]
    keys = [found(path).key for path in ("1", "2", "3", "nowhere", "1")]
    assert await store.requeue(keys, 300.0) == 2
    after = await known(store, "1")
    assert (after.status, after.due_at, after.cause, after.failure, after.errors) == (
        Status.DISCOVERED,
        300.0,
        None,
        None,
        0,
    )
    assert after.version == 1
    assert names((await take_one(store, now=300.0)).entries) == ["3", "1", "2"]
    stats = await store.stats()
    assert (stats.by_status["DISCOVERED"], stats.by_cause, stats.by_failure) == (3, {}, {})


async def test_set_next_moves_one_entry(store: Store) -> None:
    await store.add([found("1"), found("2", due_at=500.0)], 100.0)
    assert await store.set_next(found("1").key, 700.0)
    assert (await known(store, "1")).next_rule == "set_next"
    assert (await take(store)).next_ready_at == 500.0
    assert await store.set_next(found("2").key, None)
    assert (await take(store)).next_ready_at == 700.0
    assert not await store.set_next(found("3").key, 1.0)


async def test_forget_removes_the_entry_and_sends_its_deletion(store: Store, clock: HandClock) -> None:
    await store.add([found("1"), found("2")], 100.0)
    claim = await take_one(store)
    await store.settle([back(claim, *map(visited, claim.entries))], {}, 200.0)
    assert await store.forget(found("1").key)
    assert not await store.forget(found("1").key)
    assert await store.get(found("1").key) is None
    assert (await store.stats()).urls == 1
    assert await store.deletions("jsonl", 0, 9) == (
        Deletion(document_id(found("1").key), found("1").url, clock.at, seq=1, version=2),
    )


async def test_a_host_whose_first_url_is_forgotten_waits_for_its_next(store: Store) -> None:
    await store.add([found("1", due_at=300.0), found("2", due_at=500.0)], 100.0)
    await store.forget(found("1").key)
    assert await take(store) == Claims((), 500.0)
    await store.forget(found("2").key)
    assert await take(store) == Claims((), None)


async def test_a_forgotten_url_may_be_discovered_again(store: Store) -> None:
    await store.add([found("1"), found("2")], 100.0)
    await store.forget(found("1").key)
    assert await store.add([found("1")], 200.0) == (found("1").key,)
    assert names((await take_one(store)).entries) == ["2", "1"]


@pytest.mark.parametrize("verb", ["requeue", "set_next"])
async def test_a_due_time_set_by_hand_while_the_entry_is_in_hand_stands(store: Store, verb: str) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    if verb == "requeue":
        await store.set_next(found("1").key, 5_000.0)
        assert await store.requeue([found("1").key], 210.0) == 1
    else:
        assert await store.set_next(found("1").key, 210.0)
    await store.settle([back(claim, visited(claim.entries[0], due_at=9_000.0))], {}, 220.0)
    after = await known(store, "1")
    assert (after.status, after.due_at, after.version) == (Status.FETCHED, 210.0, 1)


async def test_an_entry_requeued_in_hand_at_its_own_due_time_is_counted_right(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    failed = visited(claim.entries[0], status=Status.FETCH_ERROR, failure=Failure.DNS, due_at=200.0)
    await store.settle([back(claim, failed)], {}, 200.0)
    claim = await take_one(store)
    assert await store.requeue([found("1").key], 200.0) == 1
    await store.settle([back(claim, visited(claim.entries[0], failure=None))], {}, 200.0)
    stats = await store.stats()
    assert (stats.by_status["FETCHED"], stats.by_failure, stats.urls) == (1, {}, 1)


async def test_a_document_forgotten_while_in_hand_is_deleted_once_more(store: Store) -> None:
    """The visit under way has written it again."""
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    await store.forget(found("1").key)
    await store.settle([back(claim, visited(claim.entries[0]))], {}, 220.0)
    assert await store.get(found("1").key) is None
    deletions = await store.deletions("jsonl", 0, 9)
    assert [(deletion.id, deletion.version) for deletion in deletions] == [
        (document_id(found("1").key), 1),
        (document_id(found("1").key), 2),
    ]
    assert (await store.stats()).visits == 0


async def test_an_entry_forgotten_and_found_anew_while_in_hand_begins_a_new_life(store: Store) -> None:
    await store.add([found("1")], 100.0)
    claim = await take_one(store)
    await store.forget(found("1").key)
    await store.add([found("1")], 210.0)
    await store.settle([back(claim, visited(claim.entries[0]))], {}, 220.0)
    assert (await known(store, "1")).status is Status.DISCOVERED


async def test_a_requeue_beside_a_worker_reaches_it_by_refill(store: Store) -> None:
    await store.add([found("1"), found("2")], 100.0)
    claim = await take_one(store)
    await store.settle([Settlement(claim.host, claim.token, tuple(map(visited, claim.entries)))], {}, 200.0)
    await store.requeue([found("2").key], 250.0)
    assert names((await store.refill([claim], 250.0, 9))[claim.host]) == ["2"]
