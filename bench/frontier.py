"""What one visit costs in the SQLite frontier: claim, settle in batches, discoveries, everything in its own thread.

    python bench/frontier.py --urls 100000 --hosts 1000

Fills a file with URLs (half of them due), then claims and settles as a crawl does: batches of one visit a host, each
with validators, a digest and a history of eight visits, the host's state, and links found. Links are drawn as a seen
cache leaves them: `--new` of `--found` are unknown to the store. CPU is the process's, all threads, background
checkpoints included, but without making the values (measured apart and taken off). Repeat runs differ by up to 30 %
on a shared machine.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from comity.clock import SystemClock
from comity.frontier.sqlite import SqliteFrontier
from comity.model import Access, Change, Claim, Entry, HostState, PastVisit, RobotsState, Settlement, Status

PATH = "some/folder/of/ordinary/length/page"
NOW = 1_000_000.0


@dataclass
class Cost:
    """CPU and wall time of some calls, summed."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    longest_s: float = 0.0
    calls: int = 0

    def __enter__(self) -> None:
        self._began = time.process_time(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        cpu, wall = self._began
        took = time.perf_counter() - wall
        self.cpu_s += time.process_time() - cpu
        self.wall_s += took
        self.longest_s = max(self.longest_s, took)
        self.calls += 1


def entry(number: int, host: int, due_at: float | None = NOW) -> Entry:
    name = f"www.host{host:06}.example"
    url = f"https://{name}/{PATH}/{number:09}.html"
    via = f"https://{name}/{PATH}/{number // 7:09}.html"
    return Entry(url, url, name, due_at=due_at, discovered_at=NOW, depth=3, via=via, metadata={"source": ("seed",)})


def visited(before: Entry) -> Change:
    past = (*before.history, PastVisit(NOW, Status.FETCHED, None, True, 200))[-8:]
    after = replace(
        before,
        status=Status.FETCHED,
        due_at=NOW + 86_400.0,
        visited_at=NOW,
        http_status=200,
        etag='"5f3c9e0a1b2c3d4e"',
        last_modified="Tue, 05 May 2026 10:00:00 GMT",
        digest=hashlib.sha256(before.key.encode()).hexdigest(),
        changed_at=NOW,
        next_rule="fetched",
        history=past,
        place="1:123456789",
        version=before.version + 1,
    )
    return Change(before, after)


def state(host: str) -> HostState:
    robots = RobotsState(Access.RULES, "d" * 64, "r" * 32, 200, None, NOW, NOW, NOW + 86_400.0)
    return HostState(
        NOW + 1.0, recent=(False,) * 5, good=7, address="192.0.2.7", pages=9, robots={f"https://{host}": robots}
    )


def size_bytes(path: Path) -> int:
    return path.stat().st_size


async def run(args: argparse.Namespace, path: Path) -> None:
    chance = random.Random(1)
    frontier = await SqliteFrontier.open(path, clock=SystemClock(), lease_s=3600.0)
    fill, claim, settle, make = Cost(), Cost(), Cost(), Cost()
    with fill:
        for i in range(0, args.urls, 10_000):
            due = (NOW if n % 2 else NOW + 1e6 for n in range(10_000))
            await frontier.add(
                [entry(n, n % args.hosts, due_at) for n, due_at in zip(range(i, i + 10_000), due, strict=True)], NOW
            )
    cpu_us = fill.cpu_s / args.urls * 1e6
    print(f"filled: {args.urls} URLs, {cpu_us:.0f} µs CPU and {size_bytes(path) / args.urls:.0f} B on disk each")
    number, done, new = args.urls, 0, 0
    now = NOW
    while done < args.visits:
        now += 2.0
        with claim:
            claims: tuple[Claim, ...] = (await frontier.claim("bench", now, args.batch, 1)).claims
        with make:
            settlements = []
            for held in claims:
                discoveries = []
                for n in range(args.found):
                    host = chance.randrange(args.hosts) if chance.random() < 0.1 else int(held.host[8:14])
                    if n < args.new:
                        number += 1
                        discoveries.append(entry(number, host))
                    else:
                        discoveries.append(entry(chance.randrange(args.urls // args.hosts) * args.hosts + host, host))
                settlements.append(
                    Settlement(
                        held.host, held.token, tuple(map(visited, held.entries)), tuple(discoveries),
                        state(held.host), give_back=True, visits=len(held.entries),
                    )
                )  # fmt: skip
        with settle:
            settled = await frontier.settle(settlements, {"jsonl": {"file": 0, "offset": done}}, now)
        done += len(claims)
        new += settled.new
    for name, cost in (("claim", claim), ("settle", settle)):
        a_visit = f"{cost.cpu_s / done * 1e6:.0f} µs CPU, {cost.wall_s / done * 1e6:.0f} µs wall a visit"
        a_call = f"mean {cost.wall_s / cost.calls * 1e3:.1f} ms, longest {cost.longest_s * 1e3:.0f} ms"
        print(f"{name}: {a_visit}; a call of {done / cost.calls:.0f}: {a_call}")
    log_mb = size_bytes(path.with_name(path.name + "-wal")) / 1e6
    print(f"{done} visits, {new / done:.1f} new of {args.found} links each, {log_mb:.0f} MB of log")
    await frontier.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=100_000)
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--visits", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=64, help="visits a settle")
    parser.add_argument("--found", type=int, default=6, help="links sent a visit")
    parser.add_argument("--new", type=int, default=3, help="of these, unknown to the store")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(args, Path(folder) / "frontier.db"))


if __name__ == "__main__":
    main()
