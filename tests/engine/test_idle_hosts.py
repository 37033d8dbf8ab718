"""A thousand hosts that wait cost little: a coroutine, a state, a few entries, and no body, tree or visit (design 8)."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIMIT_BYTES = 50 * 1024 * 1024

PROGRAMME = """
import asyncio, gc, sys
import comity
from comity.assemble import prepared
from comity.config import defaults, override
from comity.fakeweb import Site, in_thread, page, NO_ROBOTS

HOSTS = 1000

def rss_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def sites(port):
    links = [f"/{n}" for n in range(12)]
    return [Site(f"h{n}.localhost", {"/": page(links, size_bytes=9500)}, (NO_ROBOTS,)) for n in range(HOSTS)]

async def crawl(web):
    # robots.txt, a page, and then an hour until the next: every host waits with its links in hand
    settings = override(defaults(), {
        "address.allow_private": True, "politeness.delay_s": 0.0, "politeness.min_delay_s": 0.0,
        "scope.mode": "host",
    })
    before = rss_bytes()
    seeds = [web.url(f"h{n}.localhost", "/") for n in range(HOSTS)]
    running = await prepared(seeds, directory=None, sinks=[], settings=override(settings, {"politeness.delay_s": 3.0}))
    try:
        work = asyncio.create_task(running.run())
        while running.tally.visits < HOSTS:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)  # the last batch is settled and refilled
        waiting = sum(bool(host.waiting) for host in running.crawl.hosts.claimed.values())
        gc.collect()
        after = rss_bytes()
        running.halt()
        await work
    finally:
        await running.close()
    print(waiting, after - before)

with in_thread(sites) as web:
    asyncio.run(crawl(web))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the resident set from /proc")
def test_a_thousand_idle_hosts_stay_under_50_MB() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAMME], capture_output=True, text=True, timeout=110, check=False)
    assert ended.returncode == 0, ended.stderr
    waiting, grown_bytes = map(int, ended.stdout.split())
    assert waiting >= 900, "the hosts are to be waiting when the memory is read"
    assert grown_bytes < LIMIT_BYTES
