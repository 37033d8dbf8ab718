"""Whatever happens, in whatever order: every frontier answers as the one in memory does.

Hypothesis drives three stores through the same history of discoveries, claims, settles (some of them stale, late or
twice), holds, lapsed leases and people's changes, and compares every answer; after each step every store counts itself
again.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from comity.clock import VirtualClock
from comity.frontier import contract
from comity.frontier.memory import MemoryFrontier
from comity.frontier.sqlite import SqliteFrontier
from comity.model import (
    Access,
    Cause,
    Change,
    Claim,
    Claims,
    Entry,
    Failure,
    HostState,
    RobotsFile,
    RobotsState,
    Settlement,
    Status,
)

EXAMPLES = 30

HOSTS = st.sampled_from(["a.example", "b.example", "c.example"])
PATHS = st.integers(0, 11)
WORKERS = st.sampled_from(["w1", "w2"])
DIGESTS = st.sampled_from(["d1", "d2", "d3"])
SOON = st.sampled_from([None, -5.0, 0.0, 1.0, 10.0, 100.0])  # from now

PASSING = st.sampled_from([0.0, 0.5, 5.0, 5.0, 61.0])

STATES = st.builds(
    lambda next_s, hold_s, digests, pages: (next_s, hold_s, digests, pages),
    st.sampled_from([0.0, 0.5, 5.0]),
    st.sampled_from([0.0, 20.0]),
    st.sets(st.one_of(DIGESTS, st.none()), max_size=2),
    st.integers(0, 3),
)


def url_of(host: str, path: int) -> str:
    return f"https://{host}/{path}"


DISCOVERIES = st.lists(
    st.tuples(
        HOSTS, PATHS, SOON, st.integers(0, 3), st.booleans(), st.booleans(), st.one_of(st.none(), st.none(), DIGESTS)
    ),
    min_size=1,
    max_size=6,
)

RESULTS = st.one_of(
    st.tuples(st.just(Status.FETCHED), st.none(), st.none()),
    st.tuples(st.just(Status.REDIRECTION), st.none(), st.none()),
    st.tuples(st.just(Status.FETCH_ERROR), st.none(), st.sampled_from([Failure.HTTP_503, Failure.DNS])),
    st.tuples(st.just(Status.ERROR), st.sampled_from([Cause.GONE, Cause.MAX_ERRORS]), st.just(Failure.HTTP_404)),
    st.tuples(st.just(Status.ERROR), st.just(Cause.ROBOTS), st.none()),
)


def comparable(claims: Claims) -> Claims:
    return Claims(tuple(replace(c, entries=ordered(c.entries)) for c in claims.claims), claims.next_ready_at)


def ordered(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Refusals to be judged again come last, in the store's own order."""
    due = tuple(entry for entry in entries if entry.due_at is not None)
    assert entries[: len(due)] == due
    return due + tuple(sorted(entries[len(due) :], key=lambda entry: entry.seq))


class Histories(RuleBasedStateMachine):
    claims_seen = 0
    changes_settled = 0

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = VirtualClock(1000.0, auto=False)
        self.taken: list[Claim] = []

    @initialize(many=DISCOVERIES)
    def open(self, many: Any) -> None:
        folder = Path(self.folder.name)

        async def made() -> tuple[MemoryFrontier, SqliteFrontier, SqliteFrontier]:
            return (
                MemoryFrontier(clock=self.clock),
                await SqliteFrontier.open(folder / "f.db", clock=self.clock),
                await SqliteFrontier.open(folder / "g.db", clock=self.clock, slot=lambda key: contract.slot(key) & 3),
            )

        self.stores = self.runner.run(made())
        self.same(lambda store: store.add(self.entries(many), self.clock.now()))

    def same(self, ask: Callable[[Any], Coroutine[Any, Any, Any]], view: Callable[[Any], Any] = lambda x: x) -> Any:
        answers = [self.runner.run(ask(store)) for store in self.stores]
        assert view(answers[1]) == view(answers[0]), "sqlite"
        assert view(answers[2]) == view(answers[0]), "sqlite-colliding"
        return answers[0]

    def entries(self, many: list[tuple[str, int, float | None, int, bool, bool, str | None]]) -> tuple[Entry, ...]:
        made = []
        for host, path, soon, depth, is_sitemap, is_feed, refused_by in many:
            url = url_of(host, path)
            entry = Entry(
                url,
                url,
                host,
                due_at=None if soon is None else self.clock.now() + soon,
                depth=depth,
                via=f"{depth}",
                is_sitemap=is_sitemap,
                is_feed=is_feed,
            )
            if refused_by is not None:
                entry = replace(entry, due_at=None, status=Status.ERROR, cause=Cause.ROBOTS, rules_digest=refused_by)
            made.append(entry)
        return tuple(made)

    @rule(many=DISCOVERIES)
    def add(self, many: Any) -> None:
        self.same(lambda store: store.add(self.entries(many), self.clock.now()))

    @rule(worker=WORKERS, hosts=st.integers(0, 3), per_host=st.integers(1, 4), seconds=PASSING)
    def claim(self, worker: str, hosts: int, per_host: int, seconds: float) -> None:
        self.time_passes(seconds)
        got = self.same(lambda store: store.claim(worker, self.clock.now(), hosts, per_host), comparable)
        self.taken += got.claims
        Histories.claims_seen += len(got.claims)

    @rule(data=st.data(), per_host=st.integers(1, 4), seconds=PASSING)
    def refill(self, data: st.DataObject, per_host: int, seconds: float) -> None:
        self.time_passes(seconds)
        if self.taken:
            claim = data.draw(st.sampled_from(self.taken))
            more = self.same(
                lambda store: store.refill([claim], self.clock.now(), per_host),
                lambda got: {host: ordered(entries) for host, entries in got.items()},
            )
            self.taken.append(replace(claim, entries=claim.entries + more[claim.host]))

    @rule(data=st.data(), discoveries=DISCOVERIES, state=st.one_of(st.none(), STATES), give_back=st.booleans())
    def settle(self, data: st.DataObject, discoveries: Any, state: Any, give_back: bool) -> None:
        if data.draw(st.integers(0, 3)) or not self.taken:
            self.claim("w1", 2, 4, data.draw(PASSING))
        if not self.taken:
            return
        claim = data.draw(st.sampled_from(self.taken[-4:]))
        now = self.clock.now()
        changes = []
        for entry in (
            data.draw(st.lists(st.sampled_from(claim.entries), min_size=1, max_size=4)) if claim.entries else []
        ):
            status, cause, failure = data.draw(RESULTS)
            soon = data.draw(SOON)
            refused = cause is Cause.ROBOTS
            after = replace(
                entry,
                status=status,
                cause=cause,
                failure=failure,
                due_at=None if refused or soon is None else now + soon,
                visited_at=entry.visited_at if refused else now,
                rules_digest=data.draw(DIGESTS) if refused else None,
                digest=str(entry.version),
            )
            changes.append(Change(entry, after))
        host_state = None
        if state is not None:
            next_s, hold_s, digests, pages = state
            robots = {f"https://{d}": RobotsState(Access.RULES, rules_digest=d) for d in digests}
            host_state = HostState(
                next_at=now + next_s, not_before_at=now + hold_s if hold_s else 0.0, pages=pages, robots=robots
            )
        settlement = Settlement(
            claim.host,
            claim.token,
            tuple(changes),
            self.entries(discoveries),
            host_state,
            robots=(RobotsFile(claim.host, b"", claim.host, now),),
            give_back=give_back,
            visits=len(changes),
        )
        settled = self.same(lambda store: store.settle([settlement], {"sink": {"at": claim.token}}, now))
        Histories.changes_settled += len(changes) if not settled.stale else 0

    @rule(host=HOSTS, soon=st.sampled_from([-1.0, 3.0, 30.0]))
    def hold(self, host: str, soon: float) -> None:
        self.same(lambda store: store.hold(host, self.clock.now() + soon))

    @rule(worker=WORKERS, what=st.sampled_from(["release", "renew", "end_leases"]))
    def lease(self, worker: str, what: str) -> None:
        if what == "release":
            self.same(lambda store: store.release(worker))
        elif what == "renew":
            self.same(lambda store: store.renew(worker, 90.0))
        else:
            self.same(lambda store: store.end_leases(self.clock.now()))

    @rule(what=st.sampled_from(["requeue", "set_next", "forget"]), host=HOSTS, path=PATHS, soon=SOON)
    def by_hand(self, what: str, host: str, path: int, soon: float | None) -> None:
        if what == "requeue":
            keys = [url_of(host, path), url_of(host, path + 1)]
            self.same(lambda store: store.requeue(keys, self.clock.now()))
        elif what == "set_next":
            due_at = None if soon is None else self.clock.now() + soon
            self.same(lambda store: store.set_next(url_of(host, path), due_at))
        else:
            self.same(lambda store: store.forget(url_of(host, path)))

    def time_passes(self, seconds: float) -> None:
        async def later() -> None:
            self.clock.advance_to(self.clock.now() + seconds)

        self.runner.run(later())

    @invariant()
    def all_see_the_same(self) -> None:
        self.same(lambda store: store.stats())
        self.same(lambda store: store.find(limit=1_000), lambda got: sorted(got, key=lambda entry: entry.key))
        self.same(lambda store: store.deletions("sink", 0, 1_000))
        self.same(lambda store: store.marks())
        for host in ("a.example", "b.example", "c.example"):
            self.same(lambda store, host=host: store.host(host))  # type: ignore[misc]
        assert self.same(lambda store: store.check()) == ()

    def teardown(self) -> None:
        async def closed() -> None:
            for store in self.stores:
                await store.close()

        if hasattr(self, "stores"):
            self.runner.run(closed())
        self.runner.close()
        self.folder.cleanup()


def check_histories(examples: int, *phases: Phase, derandomize: bool) -> None:
    Histories.claims_seen = Histories.changes_settled = 0
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            derandomize=derandomize,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )
    tame = "the histories were too tame to mean anything"
    assert Histories.claims_seen > examples, tame
    assert Histories.changes_settled > examples, tame


def test_every_frontier_answers_alike() -> None:
    """The same histories every time; a failure names its history, though not the shortest one."""
    check_histories(EXAMPLES, Phase.generate, derandomize=True)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_frontier_answers_alike_for_long() -> None:
    """Other histories every time; a failure is shortened, which takes minutes."""
    check_histories(20 * EXAMPLES, Phase.reuse, Phase.generate, Phase.shrink, derandomize=False)
