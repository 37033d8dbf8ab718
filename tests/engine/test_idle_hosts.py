"""A thousand hosts that wait cost little: a coroutine, a state, some entries; no body, tree or visit (design 8)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from comity.fakeweb import Child

LIMIT_BYTES = 50 * 1024 * 1024

PROGRAMME = """
import asyncio, gc, sys
from comity.assemble import prepared
from comity.config import defaults, override

def rss_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

async def crawl(seeds):
    # robots.txt, a page, and then a long pause: every host waits for its second page with its links in hand
    settings = override(defaults("comity"), {
        "address.allow_private": True, "politeness.delay_s": 4.0, "scope.mode": "host",
    })
    before = rss_bytes()
    running = await prepared(seeds, directory=None, sinks=[], settings=settings)
    try:
        work = asyncio.create_task(running.run())
        while running.tally.visits < len(seeds):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)  # the last batch is settled, and its hosts have their next entries
        waiting = sum(bool(host.waiting) for host in running.crawl.hosts.claimed.values())
        gc.collect()
        after = rss_bytes()
        running.halt()
        await work
    finally:
        await running.close()
    print(waiting, after - before)

asyncio.run(crawl(sys.argv[1:]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the resident set from /proc")
def test_a_thousand_idle_hosts_stay_under_50_MB(fakeweb_process: Callable[..., Child]) -> None:
    web = fakeweb_process("--hosts", "1000", "--pages", "13", "--size", "9500")
    command = [sys.executable, "-c", PROGRAMME, *web.seeds]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert ended.returncode == 0, ended.stderr
    waiting, grown_bytes = map(int, ended.stdout.split())
    assert waiting >= 900, "the hosts are to be waiting when the memory is read"
    assert grown_bytes < LIMIT_BYTES
