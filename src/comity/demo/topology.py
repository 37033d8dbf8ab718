"""The topology: one page of every fate, crawled at ten instants of four days, under StormCrawler's table.

Time stands still within a tick: everything that is due is visited, then the clock is set to the next tick. The one
thing that is real is the time limit of two seconds against a page that takes three, so a play of the scene takes six;
both configurations are played side by side, each with a web, a clock and a directory of its own.

Configuration `default` keeps what StormCrawler keeps when nothing is configured: the seed's own key is lost at once,
with the dates. Configuration `b` hands the key on to links, and keeps the dates and the words of a failure.
"""

from __future__ import annotations

import tempfile
from typing import Any

from comity.assemble import opened, prepared
from comity.clock import VirtualClock
from comity.config import Settings, defaults, override, policies
from comity.demo.transitions import Transition, Transitions
from comity.fakeweb import Judgement, fixtures, open_web

TICKS_MIN = (0, 1, 2, 121, 122, 242, 243, 1441, 1442, 2882)
START_AT = 1_800_000_000.0
TIME_LIMIT_S = 2.0
GIVEN = {"nguon": ("catalog",)}

COMMON: dict[str, Any] = {
    "scope.mode": "host",
    "politeness.delay_s": 0.0,
    "politeness.host_backoff": False,
    "fetch.total_timeout_s": TIME_LIMIT_S,
    "engine.patience_s": 0.0,
    "address.allow_private": True,
}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "b": {
        "metadata.transfer": ["nguon"],
        "metadata.persist": ["discoveryDate", "lastProcessedDate", "fetch.exception"],
    },
}


def settings(configuration: str) -> Settings:
    """What a user would write into comity.toml to see this."""
    return override(defaults("stormcrawler"), COMMON | CONFIGURATIONS[configuration])


async def play(configuration: str, *, slow_s: float = 3.0) -> tuple[list[Transition], Judgement]:
    """Every transition in order, and what the server saw."""
    chosen = settings(configuration)
    clock = VirtualClock(START_AT, auto=False)
    web = await open_web([fixtures.topology(slow_s=slow_s)], now=clock.now)
    try:
        base = web.url(fixtures.TOPOLOGY_HOST, "")
        log = Transitions(policies.metadata_policy(chosen), start_at=START_AT, base=base)
        seed = "\t".join([f"{base}/", *(f"{key}={value}" for key, values in GIVEN.items() for value in values)])
        with tempfile.TemporaryDirectory(prefix="comity-demo-") as directory:
            for minute in TICKS_MIN:
                clock.advance_to(START_AT + 60 * minute)
                running = await prepared([seed], directory=directory, sinks=[log], settings=chosen, clock=clock)
                async with opened(running):
                    if not log.rows:
                        stored = await running.store.get(f"{base}/")
                        assert stored is not None, "a seed is stored before the crawl begins"
                        log.seeded(stored, GIVEN)
                    await running.run()
        return log.rows, web.judge()
    finally:
        await web.stop()
