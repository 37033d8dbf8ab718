"""A web of any size, made up from a seed.

Every page is a pure function of (seed, host, number, round): two crawlers, or the same one on two days, see the same
web, and nothing is stored. Page 0 of a host is `/`, the others are `/p/N`; every page is reachable from `/` by links of
its own host (page n names 2n + 1 and 2n + 2), and names a few more of its host, `cross` front pages of other hosts, one
path that robots.txt forbids and one link with rel=nofollow.

Shares of pages that go wrong are drawn from the same seed. It refuses to know who visits.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate

from comity.fakeweb.site import NO_ROBOTS, Answer, Asked, Site, page, redirect, robots, sitemap, throttled

FORBIDDEN = "/private/"
NOFOLLOW = "/nofollow"
EPOCH_AT = 1_767_225_600  # 2026-01-01: when every page was first written


@dataclass(frozen=True, slots=True)
class Plan:
    """What is in the web. Shares are of 1."""

    hosts: int = 10
    pages: int = 20
    seed: int = 1
    links: int = 8  # further links to the own host, on each page
    cross: int = 2  # links to other hosts' front pages, on each page
    size_bytes: int | None = None  # exact size of a page; None: as it comes, about 2 KB
    crawl_delay_s: float | None = None
    with_robots: bool = True
    with_sitemap: bool = False
    latency_s: float = 0.0  # before every answer but that of robots.txt
    missing: float = 0.0  # pages that answer 404
    moved: float = 0.0  # pages that answer 301 to the next one
    flaky: float = 0.0  # pages whose first answer is 503 with Retry-After: 1
    changing: float = 0.1  # pages that differ from one round to the next


def host_name(number: int) -> str:
    """Any name under localhost is loopback (RFC 6761 6.3)."""
    return f"h{number}.localhost"


def sites(plan: Plan, port: int = 0) -> list[Site]:
    """The hosts of the web. `port` is needed for what has to name absolute URLs: cross links and sitemaps."""
    return [_site(plan, number, port) for number in range(plan.hosts)]


def seeds(plan: Plan, port: int) -> list[str]:
    return [f"http://{host_name(number)}:{port}/" for number in range(plan.hosts)]


def path_of(number: int) -> str:
    return f"/p/{number}" if number else "/"


def number_of(plan: Plan, path: str) -> int | None:
    """The page at a path, None if there is none."""
    if path == "/":
        return 0
    tail = path.removeprefix("/p/")
    number = int(tail) if path.startswith("/p/") and tail.isdecimal() else 0
    return number if 0 < number < plan.pages else None


def chance(*what: object) -> float:
    """A number in [0, 1) that depends on its arguments and on nothing else."""
    return zlib.crc32(repr(what).encode()) / 2**32


def _site(plan: Plan, host: int, port: int) -> Site:
    def draw(number: int, what: str) -> float:
        return chance(plan.seed, host, number, what)

    def version(number: int, turn: int) -> int:
        """The last round in which this page was written anew."""
        return next((n for n in range(turn, 1, -1) if chance(plan.seed, host, number, "changed", n) < plan.changing), 1)

    def good(number: int, turn: int) -> Answer:
        written = version(number, turn)
        more = [path_of(int(draw(number, f"link {n}") * plan.pages)) for n in range(plan.links)]
        tree = [path_of(n) for n in (2 * number + 1, 2 * number + 2) if n < plan.pages]
        others = [int(draw(number, f"cross {n}") * plan.hosts) for n in range(plan.cross)]
        return page(
            [*tree, *more, *(f"http://{host_name(other)}:{port}/" for other in others), f"{FORBIDDEN}{number}"],
            title=f"Page {number} of host {host}, version {written}",
            more=f'<a rel="nofollow" href="{NOFOLLOW}">better not</a>\n',
            size_bytes=plan.size_bytes,
            etag=f'"{host}-{number}-{written}"' if number % 2 else f'W/"{host}-{number}-{written}"',
            last_modified=formatdate(EPOCH_AT + 86400 * (written - 1), usegmt=True),
        )

    def answer(asked: Asked) -> Answer:
        number = number_of(plan, asked.path)
        if number is None or (number and draw(number, "missing") < plan.missing):
            return Answer(404, b"<!doctype html><title>Not found</title>\n", wait_s=plan.latency_s)
        if number and draw(number, "moved") < plan.moved:
            return redirect(path_of((number + 1) % plan.pages))
        if number and asked.number == 1 and draw(number, "flaky") < plan.flaky:
            return throttled(1, 503)
        found = good(number, asked.round)
        return found if not plan.latency_s else _late(found, plan.latency_s)

    pages = {}
    base = f"http://{host_name(host)}:{port}"
    if plan.with_sitemap:
        pages["/sitemap.xml"] = sitemap([base + path_of(number) for number in range(plan.pages)])
    rules = robots(
        [FORBIDDEN], delay_s=plan.crawl_delay_s, sitemaps=[f"{base}/sitemap.xml"] if plan.with_sitemap else []
    )
    return Site(host_name(host), pages, (rules if plan.with_robots else NO_ROBOTS,), otherwise=answer)


def _late(answer: Answer, wait_s: float) -> Answer:
    return Answer(answer.status, answer.body, answer.headers, wait_s)


def turn(sites: Sequence[Site], to: int) -> None:
    """Begin round `to` everywhere: `Plan.changing` of the pages differ from the round before."""
    for site in sites:
        site.round = to
