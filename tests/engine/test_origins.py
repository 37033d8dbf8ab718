"""Several origins under one host key: one whose robots.txt is out of reach is no reason to keep the others waiting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from test_crawl import START_AT, Collected, crawled, of, opened

from comity.clock import VirtualClock
from comity.fakeweb import NO_ROBOTS, Answer, Site, page, robots_unreachable
from comity.model import Status
from conftest import StartWeb

DOMAIN: dict[str, Any] = {"politeness.per": "domain", "politeness.delay_s": 1.0}
GONE = Answer(raw=b"")
"""The connection ends without an answer: once or twice that is no reason to hold the host."""

DEAD = Site("dead.x.localhost", {"/": page()}, (robots_unreachable(GONE),))


async def test_one_dead_subdomain_does_not_hold_its_domain(fakeweb: StartWeb) -> None:
    clock = VirtualClock(START_AT)
    links = [f"/{n}" for n in range(50)]
    good = Site("www.x.localhost", {"/": page(links)} | {link: page() for link in links}, (NO_ROBOTS,))
    web = await fakeweb(good, DEAD, now=clock.now)
    seeds = [web.url("dead.x.localhost", "/"), web.url("www.x.localhost", "/")]
    sink = await crawled(seeds, clock=clock, **DOMAIN)
    assert len(of(sink.visits, "")) == 51
    assert max(line.start_at for line in web.lines if line.path != "/robots.txt") <= START_AT + 55
    assert len([line for line in web.lines if "dead" in line.host]) <= 3
    assert web.judge(delay_s=1.0).early == 0


@pytest.mark.parametrize("dead", [19, 20, 75])
async def test_many_urls_of_a_dead_subdomain_do_not_hide_the_others(fakeweb: StartWeb, dead: int) -> None:
    """They are due first, and more than are handed out at once."""
    clock = VirtualClock(START_AT)
    good = Site("www.x.localhost", {"/": page(["/b"]), "/b": page()}, (NO_ROBOTS,))
    web = await fakeweb(good, DEAD, now=clock.now)
    seeds = [web.url("dead.x.localhost", f"/{n}") for n in range(dead)] + [web.url("www.x.localhost", "/")]
    sink = Collected()
    options = DOMAIN | {"engine.patience_s": 4000.0}
    async with opened(seeds, sink, clock=clock, **options) as running:
        running.crawl.plan = replace(running.crawl.plan, until_at=START_AT + 10_000)
        await running.run()
        left = await running.left()
    assert {visit.after.status for visit in sink.visits} == {Status.FETCHED}
    assert len(sink.visits) == 2
    assert left.by_status["DISCOVERED"] == dead
    asked = [line for line in web.lines if "dead" in line.host]
    assert {line.path for line in asked} == {"/robots.txt"}
    assert len(asked) <= 9  # 60 s, 120 s, … 1 h within ten thousand seconds
