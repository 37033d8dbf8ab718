"""The polite rounds: two small sites, visited day after day, and what each visit cost them.

Each round is one crawl of the same directory; between two rounds virtual time moves on by a day, and what is due then
is due by the schedule. Nothing is told to the crawler but the seeds: that the second round asks with the validators of
the first, and that the forbidden page of a sitemap is never asked for, is its own doing.

Counted are the pages of the site. robots.txt, the sitemap and the redirect that leads to the first page take their turn
in the host's spacing like everything else, and are in the server's log, but not in the rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from comity.assemble import opened, prepared
from comity.clock import VirtualClock
from comity.config import defaults, override
from comity.fakeweb import FakeWeb, Judgement, Site, fixtures, open_web
from comity.model import (
    Cause,
    Deletion,
    Entry,
    Failed,
    HttpError,
    Mark,
    NotModified,
    Page,
    Status,
    Visit,
)

START_AT = 1_800_000_000.0
DAY_S = 86_400.0
DELAY_S = 1.0
SETTINGS: dict[str, Any] = {
    "scope.mode": "host",
    "politeness.delay_s": DELAY_S,
    "engine.batch_s": 0.01,  # real time, for which the virtual clock stands still
    "address.allow_private": True,
}


@dataclass(slots=True)
class Round:
    """One day's crawl of one site."""

    new: int = 0  # pages sent in full
    not_modified: int = 0
    errors: int = 0
    bytes: int = 0  # of bodies of pages, as received
    refused: tuple[str, ...] = ()  # known at the end of the round, and closed by robots.txt
    private_requests: int = 0  # as the server saw it
    first_at: float | None = None  # when the first page was asked for, and the last
    last_at: float | None = None

    @property
    def span_s(self) -> float:
        """From the first page to the last."""
        return self.last_at - self.first_at if self.first_at is not None and self.last_at is not None else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "new": self.new,
            "not_modified": self.not_modified,
            "errors": self.errors,
            "bytes": self.bytes,
            "refused": list(self.refused),
            "private_requests": self.private_requests,
        }


@dataclass(slots=True)
class Rounds:
    """A sink that counts, round after round. `pages` are the URLs that count as pages."""

    base: str
    pages: Collection[str]
    rows: list[Round] = field(default_factory=list)
    name: str = "rounds"
    _closed: dict[str, bool] = field(default_factory=dict)  # URL -> does robots.txt close it?

    def begin(self) -> None:
        """The next round."""
        self.rows.append(Round())

    async def open(self, mark: Mark | None) -> None:
        pass

    async def write(self, visits: Sequence[Visit]) -> Mark:
        for visit in visits:
            self._count(visit)
        self.rows[-1].refused = tuple(
            url.removeprefix(self.base) for url, closed in sorted(self._closed.items()) if closed
        )
        return {}

    async def delete(self, deletions: Sequence[Deletion]) -> Mark:
        return {}

    async def close(self) -> None:
        pass

    def _count(self, visit: Visit) -> None:
        row = self.rows[-1]
        self._closed[visit.after.url] = is_refused(visit.after)
        for entry in visit.discoveries:
            self._closed.setdefault(entry.url, is_refused(entry))
        if isinstance(visit.outcome, HttpError | Failed):
            row.errors += 1
        if visit.entry.url.removeprefix(self.base) not in self.pages or visit.wire is None:
            return
        row.last_at = visit.wire.started_at
        if row.first_at is None:
            row.first_at = row.last_at
        if isinstance(visit.outcome, Page):
            row.new += 1
            row.bytes += visit.wire.body_bytes
        elif isinstance(visit.outcome, NotModified):
            row.not_modified += 1


def is_refused(entry: Entry) -> bool:
    return entry.status is Status.ERROR and entry.cause is Cause.ROBOTS


async def conditional() -> tuple[list[Round], Judgement]:
    """Four days of six pages with validators; two are written anew before the third."""
    return await _play(
        lambda port: fixtures.conditional(),
        lambda web: [web.url(fixtures.CONDITIONAL_HOST, path) for path in fixtures.page_paths()],
        rounds=4,
    )


async def sitemap() -> tuple[list[Round], Judgement]:
    """Three days of six pages that a sitemap names, with a seventh that robots.txt forbids."""
    return await _play(fixtures.listed, lambda web: [web.url(fixtures.LISTED_HOST, "/")], rounds=3)


async def _play(
    site: Callable[[int], Site], seeds: Callable[[FakeWeb], list[str]], *, rounds: int
) -> tuple[list[Round], Judgement]:
    """The same crawl, a day apart. All of it virtual: the clock jumps over every wait."""
    clock = VirtualClock(START_AT)
    web = await open_web(lambda port: [site(port)], now=clock.now)
    try:
        (visited,) = web.sites.values()
        counted = Rounds(web.url(visited.host, ""), fixtures.page_paths())
        chosen = override(defaults(), SETTINGS)
        with tempfile.TemporaryDirectory(prefix="comity-demo-") as directory:
            for visited.round in range(1, rounds + 1):
                counted.begin()
                asked_before = len(web.lines)
                running = await prepared(seeds(web), directory=directory, sinks=[counted], settings=chosen, clock=clock)
                async with opened(running):
                    await running.run()
                private = [line for line in web.lines[asked_before:] if line.path.startswith("/private/")]
                counted.rows[-1].private_requests = len(private)
                clock.advance_to(clock.now() + DAY_S)
        return counted.rows, web.judge(delay_s=DELAY_S)
    finally:
        await web.stop()
