"""A crawl that waits does next to nothing: few questions to the store, no request that leads nowhere."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from test_crawl import START_AT, Collected, crawled, opened

from comity.clock import VirtualClock
from comity.fakeweb import NO_ROBOTS, Robots, Site, page, robots, throttled
from comity.model import Claims
from conftest import StartWeb


@pytest.mark.parametrize("what", ["delay", "hold", "full", "for ever", "fresh"])
async def test_waiting_asks_the_store_seldom(fakeweb: StartWeb, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    links = [f"/{n}" for n in range(5)]
    pages = {"/": page(links)} | {link: throttled(30) if what == "hold" else page() for link in links}
    web = await fakeweb(*(Site(f"h{n}.localhost", pages, (NO_ROBOTS,)) for n in range(3)))
    options: dict[str, Any] = {"politeness.delay_s": 0.0 if what in ("hold", "for ever") else 30.0}
    if what == "full":
        options["engine.max_hosts"] = 1
    async with opened([web.url(f"h{n}.localhost", "/") for n in range(3)], Collected(), **options) as running:
        if what == "for ever":
            running.crawl.plan = replace(running.crawl.plan, once=False)
        claim, asked = running.store.claim, 0

        async def counted(*arguments: Any) -> Claims:
            nonlocal asked
            asked += 1
            return await claim(*arguments)

        work = asyncio.create_task(running.run())
        await asyncio.sleep(1.0)
        monkeypatch.setattr(running.store, "claim", counted)
        turns = 0
        until_at = asyncio.get_running_loop().time() + 2.0
        while asyncio.get_running_loop().time() < until_at:
            await asyncio.sleep(0.01)
            turns += 1
        assert not work.done()
        assert asked <= 4, f"{asked} claims in two idle seconds"
        running.halt()
        await work


async def test_a_robots_txt_that_may_not_be_kept_does_not_keep_its_site_from_being_crawled(fakeweb: StartWeb) -> None:
    """With `robots.min_age_s = 0` it is asked for before each page: not for ever, and never a page."""
    clock = VirtualClock(START_AT)
    never = Robots(robots().answer.with_headers(("Cache-Control", "max-age=0")))
    web = await fakeweb(Site("a.localhost", {"/": page(["/b"]), "/b": page()}, (never,)), now=clock.now)
    options: dict[str, Any] = {"politeness.delay_s": 10.0, "robots.min_age_s": 0.0}
    sink = Collected()
    async with opened([web.url("a.localhost", "/")], sink, clock=clock, **options) as running:
        running.crawl.plan = replace(running.crawl.plan, until_at=START_AT + 1000)
        await running.run()
    assert len(sink.visits) == 2
    assert [line.path for line in web.lines] == ["/robots.txt", "/", "/robots.txt", "/b"]
    assert web.judge(delay_s=10.0).early == 0


@pytest.mark.parametrize("backoff", [True, False])
async def test_a_host_that_throttles_for_ever_is_left_by_a_crawl_that_ends(fakeweb: StartWeb, backoff: bool) -> None:
    clock = VirtualClock(START_AT)
    web = await fakeweb(Site("a.localhost", {"/": throttled(1)}, (NO_ROBOTS,)), now=clock.now)
    options: dict[str, Any] = {"politeness.delay_s": 1.0, "politeness.host_backoff": backoff}
    sink = await crawled([web.url("a.localhost", "/")], clock=clock, **options)
    assert 1 <= len(sink.visits) <= 20
