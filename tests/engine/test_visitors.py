"""A robots.txt that lives on another host: that host is asked by its own clock, whoever asks, and whenever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from test_crawl import START_AT, Collected, crawled, opened

from comity.clock import VirtualClock
from comity.fakeweb import NO_ROBOTS, Answer, FakeWeb, Robots, Site, html, page, redirect, robots
from conftest import StartWeb

HTML = (("Content-Type", "text/html"),)
SLOW_S = 0.2
"""Long enough for another request to arrive meanwhile, were one sent."""


def away(host: str, port: int, *pages: str) -> Site:
    """A site whose robots.txt lives at www.z.localhost."""
    moved = Robots(redirect(f"http://www.z.localhost:{port}/robots.txt"))
    return Site(host, {"/": page(), **{path: page() for path in pages}}, (moved,))


def z(rules: Robots = NO_ROBOTS, **pages: Answer) -> Site:
    return Site("www.z.localhost", {"/robots.txt": rules.answer, "/": page(), **pages}, (rules,))


def slow(answer: Answer) -> Answer:
    return Answer(answer.status, answer.body, answer.headers, wait_s=SLOW_S)


def starts(web: FakeWeb, host: str = "www.z.localhost") -> list[float]:
    return [line.start_at - START_AT for line in web.lines if line.host.partition(":")[0] == host]


async def until(true: Callable[[], bool]) -> None:
    """Let everybody else go on until it is true."""
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0)


def polite(web: FakeWeb, delay_s: float) -> None:
    judged = web.judge(delay_s=delay_s)
    assert (judged.early, judged.overlaps) == (0, 0), judged.breaches


async def test_many_askers_of_one_foreign_host_follow_one_another(fakeweb: StartWeb) -> None:
    names = [f"h{n}.localhost" for n in range(5)]

    def sites(port: int) -> list[Site]:
        return [*(away(name, port) for name in names), z(Robots(slow(NO_ROBOTS.answer)))]

    web = await fakeweb(sites)
    sink = await crawled([web.url(name, "/") for name in names], **{"politeness.delay_s": 0.05})
    assert len(sink.visits) == 5
    assert len(starts(web)) == 5
    polite(web, 0.05)


async def test_a_visit_and_the_hosts_own_work_follow_one_another(fakeweb: StartWeb) -> None:
    def sites(port: int) -> list[Site]:
        pages = {f"/{n}": slow(page()) for n in range(4)}
        return [*(away(f"h{n}.localhost", port) for n in range(4)), z(Robots(slow(NO_ROBOTS.answer)), **pages)]

    web = await fakeweb(sites)
    seeds = [web.url("www.z.localhost", f"/{n}") for n in range(4)] + [
        web.url(f"h{n}.localhost", "/") for n in range(4)
    ]
    sink = await crawled(seeds, **{"politeness.delay_s": 0.05})
    assert len(sink.visits) == 8
    polite(web, 0.05)


async def test_a_host_claimed_again_remembers_the_visits_that_still_wait(fakeweb: StartWeb) -> None:
    """Its own pages are done, so it is given back while others wait their turn there; then a link leads to it."""

    def sites(port: int) -> list[Site]:
        late = Answer(body=html([f"http://www.z.localhost:{port}/more"]), headers=HTML, wait_s=0.5)
        linking = Site("l.localhost", {"/": late}, (NO_ROBOTS,))
        more = {"/": page(), "/more": slow(page())}
        return [*(away(f"h{n}.localhost", port) for n in range(6)), linking, z(Robots(slow(NO_ROBOTS.answer)), **more)]

    web = await fakeweb(sites)
    seeds = [web.url(host, "/") for host in ("www.z.localhost", "l.localhost", *(f"h{n}.localhost" for n in range(6)))]
    sink = await crawled(seeds, **{"politeness.delay_s": 0.05})
    assert len(sink.visits) == 9
    polite(web, 0.05)


async def test_a_visit_keeps_the_crawl_delay_that_is_known(fakeweb: StartWeb, tmp_path: Path) -> None:
    clock = VirtualClock(START_AT)
    rules = robots(delay_s=30)
    web = await fakeweb(lambda port: [away("a.localhost", port), z(rules, **{"/new": page()})], now=clock.now)
    own, other, new = web.url("www.z.localhost", "/"), web.url("a.localhost", "/"), web.url("www.z.localhost", "/new")
    await crawled([own], clock=clock, directory=tmp_path / "c")
    clock.advance_to(START_AT + 1000)
    async with opened([other], Collected(), clock=clock, directory=tmp_path / "c") as running:
        work = asyncio.create_task(running.run())
        await until(lambda: len(starts(web)) == 3)
        running.stop()
        await work
    await crawled([new], clock=clock, directory=tmp_path / "c")
    assert [round(at) for at in starts(web)] == [0, 30, 1000, 1030]


async def test_a_visit_broken_off_is_remembered_by_the_next_run(fakeweb: StartWeb, tmp_path: Path) -> None:
    clock = VirtualClock(START_AT)
    hanging = Robots(Answer(hang=True))
    web = await fakeweb(lambda port: [away("a.localhost", port), z(hanging)], now=clock.now)
    options: dict[str, Any] = {"directory": tmp_path / "c", "politeness.delay_s": 10.0}
    async with opened([web.url("a.localhost", "/")], Collected(), clock=clock, **options) as running:
        await running.store.hold("www.z.localhost", START_AT + 9)  # so that the visit starts long after it was wanted
        work = asyncio.create_task(running.run())
        await until(lambda: len(starts(web)) == 1)
        running.halt()
        await work
    assert starts(web) == [9]
    async with opened([web.url("www.z.localhost", "/")], Collected(), clock=clock, **options) as running:
        work = asyncio.create_task(running.run())
        await until(lambda: len(starts(web)) == 2)
        running.halt()
        await work
    assert starts(web)[1] >= 19


async def test_stopping_does_not_wait_for_a_visit_that_waits(fakeweb: StartWeb) -> None:
    web = await fakeweb(lambda port: [away("a.localhost", port), z()])
    async with opened([web.url("a.localhost", "/")], Collected()) as running:
        await running.store.hold("www.z.localhost", running.clock.now() + 50)
        work = asyncio.create_task(running.run())
        await until(lambda: len(web.lines) == 1)
        await until(lambda: bool(running.crawl.hosts.waiting()))
        running.stop()
        await asyncio.wait_for(work, 3)
    assert [line.path for line in web.lines] == ["/robots.txt"]
