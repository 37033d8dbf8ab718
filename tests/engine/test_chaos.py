"""Small webs that answer in every way, interrupted in every way: each crawl ends, is polite, and loses nothing.

Each case is a pure function of its number. Time is virtual, the requests are real.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_crawl import START_AT, opened

from comity.clock import VirtualClock
from comity.fakeweb import (
    NO_ROBOTS,
    Answer,
    FakeWeb,
    Robots,
    Script,
    Site,
    page,
    redirect,
    robots,
    robots_unreachable,
    throttled,
)
from comity.frontier.sqlite import SqliteFrontier
from comity.model import Entry, Status
from comity.outputs.jsonl import JsonlSink
from conftest import StartWeb

DELAY_S = 2.0
CUT = Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Type: te")  # libcurl asks again at once where not one byte came
BAD = [throttled(3), throttled(30, 503), Answer(500), CUT, Answer(404)]
OF_ROBOTS = frozenset({"/robots.txt", "/common.txt"})


def names_of(hosts: int) -> list[str]:
    return [f"h{n}.d{n % 3}.localhost" for n in range(hosts)]


def web_of(chance: random.Random, port: int, hosts: int, pages: int) -> list[Site]:
    """Every page is good in the end; every host can be crawled in the end."""
    names = names_of(hosts)
    sites = []
    for name in names:
        scripts: dict[str, Script] = {}
        for n in range(pages):
            links = [f"/{2 * n + 1}", f"/{2 * n + 2}"] if 2 * n + 2 < pages else []
            links += [f"http://{chance.choice(names)}:{port}/{chance.randrange(pages)}"]
            good = page(links)
            script = [chance.choice(BAD) for _ in range(chance.choice([0, 0, 0, 0, 1, 2]))]
            if n and chance.random() < 0.1:
                good = redirect(f"http://{chance.choice(names)}:{port}/0")
            scripts[f"/{n}"] = [*script, good]
        scripts["/"] = scripts["/0"]
        scripts["/private"] = page()
        rules: list[Robots] = []
        kind = chance.randrange(7)
        if kind == 0:
            rules = [robots_unreachable(), robots_unreachable(CUT), robots(["/private"])]
        elif kind == 1:
            rules = [robots(["/private"], delay_s=7)]
        elif kind == 2:
            away = chance.choice(names)
            rules = [Robots(redirect(f"http://{away}:{port}/common.txt"), robots(["/private"]).rules)]
        elif kind == 3:
            brief = robots(["/private"])
            rules = [Robots(brief.answer.with_headers(("Cache-Control", "max-age=1")), brief.rules)]
        elif kind == 4:
            rules = [robots_unreachable(throttled(5)), robots(["/private"])]
        else:
            rules = [NO_ROBOTS]
        scripts["/common.txt"] = robots(["/private"]).answer
        sites.append(Site(name, scripts, tuple(rules), OF_ROBOTS))
    return sites


async def entries(path: Path, clock: VirtualClock) -> list[Entry]:
    store = await SqliteFrontier.open(path, clock=clock)
    try:
        assert await store.check() == ()
        found: list[Entry] = []
        while more := await store.find(after=found[-1].key if found else None, limit=100):
            found += more
        return found
    finally:
        await store.close()


async def part(chance: random.Random, running: Any, web: FakeWeb, how: str) -> None:
    """Run until some more requests have come, then break off in this way."""
    work = asyncio.create_task(running.run())
    until = len(web.lines) + chance.randrange(25)
    for _ in range(100_000):
        if len(web.lines) >= until or work.done():
            break
        await asyncio.sleep(0)
    for _ in range(chance.randrange(40)):
        await asyncio.sleep(0)
    if how == "stop":
        running.stop()
    elif how == "halt":
        running.halt()
    elif how == "stop, halt":
        running.stop()
        await asyncio.sleep(0)
        running.halt()
    elif how == "cancel":
        work.cancel()
    await asyncio.wait([work])
    if not work.cancelled():
        work.result()


@pytest.mark.parametrize("number", [0, 4, 11, 116, 122, 167])
async def test_it_ends_is_polite_and_loses_nothing(fakeweb: StartWeb, tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    clock = VirtualClock(START_AT)
    hosts, pages = chance.randrange(2, 9), chance.randrange(4, 20)
    web = await fakeweb(lambda port: web_of(chance, port, hosts, pages), now=clock.now)
    seeds = [web.url(name, path) for name in names_of(hosts) for path in ("/0", "/private")]
    rows = tmp_path / "rows.jsonl"
    options: dict[str, Any] = {
        "politeness.delay_s": DELAY_S,
        "politeness.per": chance.choice(["host", "domain"]),
        "outputs.jsonl.enabled": False,
        "scope.mode": "host",
        "engine.per_host": chance.choice([1, 3, 20]),
        "engine.max_hosts": chance.choice([1, 3, 100]),
        "engine.in_flight_total": chance.choice([1, 2, 50]),
        "engine.batch": chance.choice([1, 5, 64]),
        "engine.patience_s": 50_000.0,
        "lifecycle.max_fetch_errors": 5,
    }
    sink: Any
    for how in chance.choices(["stop", "halt", "stop, halt", "cancel"], k=5):
        sink = JsonlSink(rows)
        async with opened(seeds, sink, clock=clock, directory=tmp_path / "c", **options) as running:
            await asyncio.wait_for(part(chance, running, web, how), 30)
    sink = JsonlSink(rows)
    async with opened(seeds, sink, clock=clock, directory=tmp_path / "c", **options) as running:
        await asyncio.wait_for(running.run(), 60)
    judged = web.judge(delay_s=DELAY_S)
    assert (judged.early, judged.forbidden, judged.before_robots, judged.overlaps) == (0, 0, 0, 0), judged.breaches
    known = await entries(tmp_path / "c" / "frontier.sqlite", clock)
    assert len({entry.key for entry in known}) == len(known)
    left = [e for e in known if e.status not in (Status.FETCHED, Status.REDIRECTION) and "/private" not in e.key]
    assert left == []
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    written = Counter(line["key"] for line in lines if "key" in line)
    settled = Counter({entry.key: len(entry.history) for entry in known if entry.history})
    assert {k: min(n, 8) for k, n in written.items()} == dict(settled)
