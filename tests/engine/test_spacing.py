"""Spacing and concurrency, as the server sees them (P6, A1, A10): the crawler's own word counts for nothing here."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import pytest

import comity
from comity.config import defaults, override
from comity.fakeweb import NO_ROBOTS, Answer, Site, page
from comity.fakeweb.log import Line
from conftest import StartWeb


def page_starts(lines: Sequence[Line]) -> list[float]:
    return sorted(line.start_at for line in lines if line.path != "/robots.txt")


@pytest.mark.parametrize("delay_s", [0.25, 1.0])
async def test_P6_no_gap_under_the_delay_and_no_time_lost(fakeweb: StartWeb, delay_s: float) -> None:
    """Eight requests of one host: the server sees none early, and the total is that of the theory."""
    paths = [f"/{n}" for n in range(7)]
    web = await fakeweb(Site("a.localhost", {path: page() for path in paths}, (NO_ROBOTS,)))
    seeds = [web.url("a.localhost", path) for path in paths]
    visits = [visit async for visit in comity.crawl(seeds, delay_s=delay_s, allow_private=True)]
    starts = sorted(line.start_at for line in web.lines)
    gaps = [after - before for before, after in itertools.pairwise(starts)]
    assert len(visits) == 7
    assert len(starts) == 8  # robots.txt is one of them: everything counts
    assert min(gaps) >= delay_s - 0.002
    assert starts[-1] - starts[0] <= 1.02 * 7 * delay_s
    assert web.judge(delay_s=delay_s).early == 0


@pytest.mark.parametrize("in_flight", [5, 10, 20])
async def test_A1_in_flight_is_exactly_what_was_allowed(fakeweb: StartWeb, in_flight: int) -> None:
    """Sixty hosts, a page of 200 ms each: never more than N at once, N for long, the total within 10 % of theory."""
    hosts = [f"h{n}.localhost" for n in range(60)]
    slow = Answer(body=b"<title>slow</title>", headers=(("Content-Type", "text/html"),), wait_s=0.2)
    web = await fakeweb(*(Site(host, {"/": slow}, (NO_ROBOTS,)) for host in hosts))
    settings = override(defaults("comity"), {"engine.in_flight_total": in_flight, "address.allow_private": True})
    seeds = [web.url(host, "/") for host in hosts]
    visits = [visit async for visit in comity.crawl(seeds, delay_s=0.0, settings=settings)]
    pages = [line for line in web.lines if line.path == "/"]
    starts = page_starts(web.lines)
    ends = [line.end_at for line in pages if line.end_at is not None]
    assert len(visits) == len(pages) == 60
    assert max(line.open for line in web.lines) == in_flight
    assert max(ends) - starts[0] <= 1.10 * 60 * 0.2 / in_flight


async def test_A10_twenty_pages_a_tenth_of_a_second_apart(fakeweb: StartWeb) -> None:
    """With a server that answers at once. Spacing counts from the first byte heard, so that latency adds to every gap:
    50 ms of it would make the twenty pages take three seconds, and the server would see no gap under 0.1 s either."""
    listing = Answer(body=b"<title>list</title>", headers=(("Content-Type", "text/html"),))
    paths = [f"/list/{n}" for n in range(20)]
    web = await fakeweb(Site("books.localhost", dict.fromkeys(paths, listing), (NO_ROBOTS,)))
    seeds = [web.url("books.localhost", path) for path in paths]
    visits = [visit async for visit in comity.crawl(seeds, delay_s=0.1, allow_private=True)]
    pages = [line for line in web.lines if line.path != "/robots.txt"]
    assert len(visits) == 20
    assert max(line.end_at or 0.0 for line in pages) - page_starts(web.lines)[0] <= 2.1
    assert web.judge(delay_s=0.1).early == 0


async def test_more_in_flight_by_consent_stays_spaced(fakeweb: StartWeb) -> None:
    """Four at once on one's own site: answers of half a second, starts a tenth apart."""
    slow = Answer(body=b"<title>slow</title>", headers=(("Content-Type", "text/html"),), wait_s=0.5)
    paths = [f"/{n}" for n in range(12)]
    web = await fakeweb(Site("own.localhost", dict.fromkeys(paths, slow), (NO_ROBOTS,)))
    settings = override(
        defaults(),
        {"hosts": {"own.localhost": {"in_flight": 4, "own": True, "delay_s": 0.1}}, "address.allow_private": True},
    )
    began = asyncio.get_running_loop().time()
    visits = [v async for v in comity.crawl([web.url("own.localhost", p) for p in paths], settings=settings)]
    took = asyncio.get_running_loop().time() - began
    starts = page_starts(web.lines)
    assert len(visits) == 12
    assert 2 <= max(line.open_here for line in web.lines) <= 4
    assert min(b - a for a, b in itertools.pairwise(starts)) >= 0.1 - 0.002
    assert took < 12 * 0.5  # one after the other it would take six seconds
