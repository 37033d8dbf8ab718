"""Killed at the worst moment, a crawl that comes back hurries no host: by the server's log, with exact gaps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from test_crawl import START_AT, Collected, opened

from comity.assemble import Running
from comity.clock import VirtualClock
from comity.fakeweb import NO_ROBOTS, Answer, FakeWeb, Script, Site, page, robots
from conftest import StartWeb

PATIENT: dict[str, Any] = {"engine.patience_s": 600.0}


async def killed_after(running: Running, web: FakeWeb, requests: int, clock: VirtualClock) -> None:
    """Run until the server has seen so many requests and all of them are settled, then die: nothing is given back, no
    state is stored, as after a SIGKILL."""
    clock.auto = False
    work = asyncio.create_task(running.run())
    while len(web.lines) < requests:
        if clock.waiting:
            await clock.settled()
            clock.advance_to(clock.now() + 0.5)
        await asyncio.sleep(0)
    await asyncio.sleep(0.3)  # a batch leaves after a tenth of a second of real time
    settle = running.store.settle

    async def refused(*_: Any) -> None:
        raise RuntimeError("killed")

    running.store.settle = refused  # type: ignore[method-assign, assignment]
    running.halt()
    with pytest.raises(RuntimeError, match="killed"):
        await work
    running.store.settle = settle  # type: ignore[method-assign]
    clock.auto = True


def starts(web: FakeWeb) -> list[float]:
    return [line.start_at - START_AT for line in web.lines]


async def test_a_long_crawl_delay_just_read_is_not_forgotten(fakeweb: StartWeb, tmp_path: Path) -> None:
    clock = VirtualClock(START_AT)
    web = await fakeweb(Site("a.localhost", {"/": page()}, (robots(delay_s=120),)), now=clock.now)
    seeds = [web.url("a.localhost", "/")]
    async with opened(seeds, Collected(), clock=clock, directory=tmp_path / "c") as running:
        await killed_after(running, web, 1, clock)
    async with opened(seeds, Collected(), clock=clock, directory=tmp_path / "c", **PATIENT) as running:
        await running.run()
    assert web.judge().early == 0, web.judge().breaches
    assert starts(web)[1] >= 120


async def test_a_host_with_a_longer_delay_of_its_own_rests_that_long(fakeweb: StartWeb, tmp_path: Path) -> None:
    clock = VirtualClock(START_AT)
    pages: dict[str, Script] = {"/0": page(), "/1": [Answer(hang=True), page()], "/2": page()}
    web = await fakeweb(Site("a.localhost", pages, (NO_ROBOTS,)), now=clock.now)
    seeds = [web.url("a.localhost", f"/{n}") for n in range(3)]
    options: dict[str, Any] = {"hosts": {"a.localhost": {"delay_s": 50.0}}, **PATIENT}
    async with opened(seeds, Collected(), clock=clock, directory=tmp_path / "c", **options) as running:
        await killed_after(running, web, 3, clock)
    async with opened(seeds, Collected(), clock=clock, directory=tmp_path / "c", **options) as running:
        await running.run()
    assert [line.path for line in web.lines] == ["/robots.txt", "/0", "/1", "/1", "/2"]
    assert web.judge(delay_s=50.0).early == 0, web.judge(delay_s=50.0).breaches
