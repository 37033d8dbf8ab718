"""Delays that nobody can wait for: the host is shown as held, the crawl ends, and other hosts lose nothing (B020)."""

from __future__ import annotations

import pytest
from test_crawl import START_AT, Collected, opened

from comity.clock import VirtualClock
from comity.fakeweb import NO_ROBOTS, Site, page, robots
from conftest import StartWeb


@pytest.mark.parametrize("named", ["1e300", "999999999", "90000"])
async def test_b020_a_crawl_ends_though_a_host_names_a_delay_of_years(fakeweb: StartWeb, named: str) -> None:
    clock = VirtualClock(START_AT)
    slow = robots(more=f"User-agent: *\nCrawl-delay: {named}\n")
    web = await fakeweb(
        Site("a.localhost", {"/": page(["/b"]), "/b": page()}, (slow,)),
        Site("b.localhost", {"/": page(["/b"]), "/b": page()}, (NO_ROBOTS,)),
        now=clock.now,
    )
    sink = Collected()
    async with opened([web.url("a.localhost", "/"), web.url("b.localhost", "/")], sink, clock=clock) as running:
        await running.run()
        left = await running.left()
    assert clock.now() < START_AT + 70
    assert sink.paths(web) == ["/", "/b"]
    assert [line.path for line in web.lines if line.host == "a.localhost"] == ["/robots.txt"]
    ((host, until_at, why),) = left.held
    assert host == "a.localhost"
    assert until_at == pytest.approx(START_AT + float(named), abs=2)
    assert why.startswith("Crawl-delay: ")


async def test_b020_a_delay_of_a_day_is_waited_out(fakeweb: StartWeb) -> None:
    clock = VirtualClock(START_AT)
    site = Site("a.localhost", {"/": page(["/b"]), "/b": page()}, (robots(delay_s=86_400),))
    web = await fakeweb(site, now=clock.now)
    sink = Collected()
    async with opened([web.url("a.localhost", "/")], sink, clock=clock) as running:
        await running.run()
    assert sink.paths(web) == ["/", "/b"]
