"""Many hosts at full speed: how fast this machine crawls when every site allows it.

Forty made-up hosts of 25 pages, no delay, the system's clock, and everything on that a real crawl has: robots.txt,
durable frontier, crawl log, rows. The fake web runs in the same process and takes its share of it, so the figure is
a demonstration and no benchmark (those are in bench/).
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from typing import Any

from comity.assemble import opened, prepared
from comity.clock import SystemClock
from comity.config import defaults, override
from comity.fakeweb import Judgement, open_web, seeded

PLAN = seeded.Plan(hosts=40, pages=25)
SETTINGS: dict[str, Any] = {
    "scope.mode": "any",
    "politeness.delay_s": 0.0,
    "address.allow_private": True,
}


@dataclass(frozen=True, slots=True)
class ManyHosts:
    hosts: int
    pages: int  # answered with a page
    seconds: float  # from the first claim to the last settle
    pages_per_s: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


async def play(plan: seeded.Plan = PLAN) -> tuple[ManyHosts, Judgement]:
    clock = SystemClock()
    web = await open_web(lambda port: seeded.sites(plan, port), now=clock.now)
    try:
        with tempfile.TemporaryDirectory(prefix="comity-demo-") as directory:
            seeds = seeded.seeds(plan, web.port)
            chosen = override(defaults(), SETTINGS)
            running = await prepared(seeds, directory=directory, sinks=[], settings=chosen, clock=clock)
            async with opened(running):
                began_at = clock.now()
                await running.run()
                seconds = clock.now() - began_at
        pages = {(line.host, line.path) for line in web.lines if line.status == 200 and not line.is_robots}
        hosts = {host for host, _ in pages}
        found = ManyHosts(len(hosts), len(pages), round(seconds, 3), round(len(pages) / seconds, 1))
        return found, web.judge(delay_s=0.0)
    finally:
        await web.stop()
