"""However a crawl ends, it ends: soon, with nothing asked afterwards, nothing lost and nothing written twice."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from test_crawl import START_AT, Collected, crawled, of, opened

import comity
from comity.clock import VirtualClock
from comity.fakeweb import NO_ROBOTS, Answer, Robots, Site, page, robots, throttled
from comity.model import Claims, Mark, Settled, Settlement, Status, Visit
from comity.outputs.jsonl import JsonlSink
from conftest import StartWeb

HTML = (("Content-Type", "text/html"),)


def many(pages: int, answer: Answer | None = None) -> dict[str, Any]:
    links = [f"/{n}" for n in range(pages)]
    return {"/": page(links)} | {link: answer or page() for link in links}


async def until(true: Callable[[], bool]) -> None:
    """Let everybody else go on until it is true."""
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0)


# ------------------------------------------------------------------------------------------------------ holds are left


async def test_a_host_held_by_the_answer_to_its_robots_txt_is_not_waited_for(fakeweb: StartWeb, tmp_path: Path) -> None:
    """Its last good copy speaks, so nothing is unreachable; the hold is the host's."""
    clock = VirtualClock(START_AT)
    good = robots()
    short = Robots(good.answer.with_headers(("Cache-Control", "max-age=300")), good.rules)
    web = await fakeweb(Site("a.localhost", many(2), (short, Robots(throttled(3600, 503), good.rules))), now=clock.now)
    seeds = [web.url("a.localhost", "/")]
    await crawled(seeds, clock=clock, directory=tmp_path / "c")
    clock.advance_to(START_AT + 1000)
    again = [*seeds, web.url("a.localhost", "/new")]
    sink = Collected()
    async with opened(again, sink, clock=clock, directory=tmp_path / "c") as running:
        await running.run()
        left = await running.left()
    assert sink.visits == []
    assert clock.now() <= START_AT + 1061
    assert left.held[0][1] == pytest.approx(START_AT + 4600, abs=1)
    assert [host.split(" ")[0] for _, _, host in left.held] == ["Retry-After:"]


async def test_visits_under_way_beside_one_that_is_throttled_are_given_up(fakeweb: StartWeb) -> None:
    clock = VirtualClock(START_AT)
    pages = {f"/{n}": throttled(3600) if n == 0 else page() for n in range(8)}
    web = await fakeweb(Site("a.localhost", pages, (NO_ROBOTS,)), now=clock.now)
    options: dict[str, Any] = {"hosts": {"a.localhost": {"in_flight": 4, "own": True, "delay_s": 1.0}}}
    sink = Collected()
    async with opened([web.url("a.localhost", path) for path in pages], sink, clock=clock, **options) as running:
        await running.run()
        left = await running.left()
    assert len(web.lines) == 2
    assert clock.now() <= START_AT + 61
    assert left.by_status["DISCOVERED"] == 8


async def test_a_page_of_the_budget_is_not_spent_on_a_host_that_was_held(fakeweb: StartWeb, tmp_path: Path) -> None:
    clock = VirtualClock(START_AT)
    pages = {f"/{n}": throttled(30) if n == 0 else page() for n in range(8)}
    web = await fakeweb(Site("a.localhost", pages, (NO_ROBOTS,)), now=clock.now)
    options: dict[str, Any] = {"hosts": {"a.localhost": {"in_flight": 4, "own": True, "delay_s": 1.0}}}
    options["engine.max_pages"] = 6
    sink = await crawled([web.url("a.localhost", path) for path in pages], clock=clock, **options)
    assert len(sink.visits) == 6


# ------------------------------------------------------------------------------------------------ stopping, cancelling


async def test_halting_before_a_claimed_host_has_begun_ends(fakeweb: StartWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    web = await fakeweb(Site("a.localhost", many(3), (NO_ROBOTS,)))
    async with opened([web.url("a.localhost", "/")], Collected()) as running:
        claim = running.store.claim

        async def and_halt(*arguments: Any) -> Claims:
            got = await claim(*arguments)
            asyncio.get_running_loop().call_soon(running.halt)  # runs before the hosts' first steps
            return got

        monkeypatch.setattr(running.store, "claim", and_halt)
        await running.run()
    assert web.lines == []


@pytest.mark.parametrize("in_flight", [1, 3])
async def test_cancelling_a_run_cancels_its_hosts(fakeweb: StartWeb, in_flight: int) -> None:
    hanging = Answer(hang=True)
    web = await fakeweb(Site("a.localhost", many(9, hanging), (NO_ROBOTS,)), Site("b.localhost", many(9), (NO_ROBOTS,)))
    own: dict[str, Any] = {"hosts": {h: {"in_flight": in_flight, "own": True} for h in ("a.localhost", "b.localhost")}}
    seeds = [web.url("a.localhost", "/"), web.url("b.localhost", "/")]
    async with opened(seeds, Collected(), **own) as running:
        before = asyncio.all_tasks()
        work = asyncio.create_task(running.run())
        await until(lambda: any(line.path == "/0" for line in web.lines))
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert asyncio.all_tasks() - before <= {t for t in asyncio.all_tasks() if "fakeweb" in repr(t)}
        host = await running.store.host("a.localhost")
        assert host is not None
        assert host.state.in_flight == 0
        asked = len(web.lines)
        await asyncio.sleep(0.1)  # not to synchronise: to see that nothing comes any more
        assert len(web.lines) == asked


async def test_halting_leaves_no_request_of_a_host_with_several_in_flight(fakeweb: StartWeb, tmp_path: Path) -> None:
    """And tells of those that it broke off: the log has no request without an end."""
    web = await fakeweb(Site("a.localhost", {f"/{n}": Answer(hang=True) for n in range(9)}, (NO_ROBOTS,)))
    own: dict[str, Any] = {"hosts": {"a.localhost": {"in_flight": 3, "own": True}}, "directory": tmp_path / "c"}
    async with opened([web.url("a.localhost", f"/{n}") for n in range(9)], Collected(), **own) as running:
        work = asyncio.create_task(running.run())
        await until(lambda: len(web.lines) == 4)
        running.halt()
        await work
        host = await running.store.host("a.localhost")
        assert host is not None
        assert host.state.in_flight == 0
        assert len(host.state.recent) == 4  # what was broken off has been learned from
        assert running.directory is not None
        log = [json.loads(line) for file in running.directory.log.rglob("*.jsonl") for line in file.open()]
        broken_off = [event for event in log if event["event"] == "broken_off"]
        assert {event["url"] for event in broken_off} == {web.url("a.localhost", f"/{n}") for n in range(3)}


class Torn:
    """A store whose settle is cut off: done or not, whoever waits for it is cancelled."""

    def __init__(self, settle: Callable[..., Any], *, done: bool) -> None:
        self._settle, self._done = settle, done
        self.reached = asyncio.Event()

    async def settle(self, settlements: Sequence[Settlement], marks: Mapping[str, Mark], now: float) -> Settled:
        if self.reached.is_set() or not any(settlement.changes for settlement in settlements):
            settled: Settled = await self._settle(settlements, marks, now)
            return settled
        self.reached.set()
        if self._done:
            await self._settle(settlements, marks, now)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


@pytest.mark.parametrize("done", [False, True])
async def test_a_run_cancelled_within_a_settle_writes_no_row_twice_and_loses_none(
    fakeweb: StartWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    web = await fakeweb(Site("a.localhost", many(5), (NO_ROBOTS,)))
    seeds = [web.url("a.localhost", "/")]
    rows = tmp_path / "rows.jsonl"
    options: dict[str, Any] = {"outputs.jsonl.enabled": False, "directory": tmp_path / "c"}
    async with opened(seeds, JsonlSink(rows), **options) as running:  # type: ignore[arg-type]
        torn = Torn(running.store.settle, done=done)
        monkeypatch.setattr(running.store, "settle", torn.settle)
        work = asyncio.create_task(running.run())
        await torn.reached.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    async with opened(seeds, JsonlSink(rows), **options) as running:  # type: ignore[arg-type]
        await running.run()
    written = Counter(json.loads(line)["key"] for line in rows.read_text().splitlines())
    assert len(written) == 6
    assert set(written.values()) == {1}


# ------------------------------------------------------------------------------------------------- the loop over visits


async def test_a_reader_that_leaves_while_hosts_ask_for_more_is_not_waited_for(fakeweb: StartWeb) -> None:
    """Thirty hosts, each at its last entry: somebody asks for more just as the desk ends."""
    web = await fakeweb(*(Site(f"h{n}.localhost", many(1), (NO_ROBOTS,)) for n in range(30)))
    seeds = [web.url(f"h{n}.localhost", "/") for n in range(30)]
    for most in range(0, 12, 3):
        visits = comity.crawl(seeds, delay_s=0.0, allow_private=True)
        taken: list[Visit] = []
        async for visit in visits:
            taken.append(visit)
            if len(taken) > most:
                break
        await asyncio.wait_for(visits.aclose(), 10)
        assert len(taken) == most + 1


async def test_refilling_after_the_end_gives_nothing(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site("a.localhost", many(1), (NO_ROBOTS,)))
    async with opened([web.url("a.localhost", "/")], Collected()) as running:
        await running.run()
        (claim,) = (await running.store.claim("x", running.clock.now() + 1e6, 1, 1)).claims or (None,)
        assert claim is not None
        assert await asyncio.wait_for(running.crawl._desk.refill(claim), 2) == ()


async def test_two_loops_over_one_crawl_are_refused_as_over_a_generator(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site("a.localhost", many(5), (NO_ROBOTS,)))
    visits = comity.crawl([web.url("a.localhost", "/")], delay_s=0.0, allow_private=True)
    first = asyncio.create_task(anext(visits))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="already running"):
        await anext(visits)
    assert (await first).after.status is Status.FETCHED
    assert len([visit async for visit in visits]) == 5
    with pytest.raises(StopAsyncIteration):
        await anext(visits)


async def test_a_time_limit_on_a_step_of_the_loop_loses_no_visit(fakeweb: StartWeb) -> None:
    slow = Answer(body=b"<title>slow</title>", headers=HTML, wait_s=0.05)
    web = await fakeweb(Site("a.localhost", many(5, slow), (NO_ROBOTS,)))
    visits = comity.crawl([web.url("a.localhost", "/")], delay_s=0.0, allow_private=True)
    taken: list[Visit] = [await anext(visits)]
    while True:
        try:
            taken.append(await asyncio.wait_for(anext(visits), 0.02))
        except TimeoutError:
            continue
        except StopAsyncIteration:
            break
    assert Counter(visit.entry.key for visit in taken) == Counter({v.entry.key: 1 for v in taken})
    assert len(of(taken, "")) == 6
