"""comity from Python: ``async for visit in comity.crawl(seeds)``.

The loop *is* a sink. A visit is yielded before it is settled, and counts as written when the loop asks for the next
one; so a programme that dies in the loop's body is shown that visit again when it resumes, and one that leaves the
loop has settled exactly what it took. Leaving drains: requests in flight end, hosts and files are given back.

Everything a crawl from the command line keeps holds here: robots.txt, delays, private addresses refused, no anonymous
start. Without a directory the frontier lives in memory and is gone afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from comity.model import Deletion, Mark, Visit
from comity.settling import Enough

if TYPE_CHECKING:
    from comity.config import Settings
    from comity.ports import Clock, Sink


async def crawl(
    seeds: str | Iterable[str],
    *,
    directory: str | Path | None = None,
    scope: Literal["host", "domain", "any"] | None = None,
    delay_s: float | None = None,
    max_pages: int | None = None,
    max_depth: int | None = None,
    patience_s: float | None = None,
    contact: str | None = None,
    allow_private: bool | None = None,
    sinks: Sequence[Sink] = (),
    settings: Settings | None = None,
    clock: Clock | None = None,
) -> AsyncGenerator[Visit, None]:
    """Crawl every URL found from `seeds` once, and yield each visit.

    `directory` keeps the crawl (frontier, outputs, log) and resumes it when called again; None keeps it in memory.
    `contact` is a URL or mail address where the operator can be reached; without one (here, in the environment or in
    the user's configuration) only loopback seeds are crawled. `sinks` are written and settled with the loop.
    Arguments given here win over `settings`, which are the defaults unless given; durations are in seconds.

    Raises `comity.config.ConfigError` (a `ValueError`) for bad settings or seeds, `comity.identity.NoContact` when the
    crawl would be anonymous, and whatever made the store or a sink fail, after everything settled is safe.
    """
    from comity.assemble import prepared

    reader = _Reader()
    given = [seeds] if isinstance(seeds, str) else list(seeds)
    running = await prepared(
        given,
        directory=directory,
        scope=scope,
        delay_s=delay_s,
        max_pages=max_pages,
        max_depth=max_depth,
        patience_s=patience_s,
        contact=contact,
        allow_private=allow_private,
        sinks=[reader, *sinks],
        settings=settings,
        clock=clock,
    )
    try:
        work = asyncio.create_task(running.run(), name="crawl")
        work.add_done_callback(lambda _: reader.end())
        try:
            while (visit := await reader.next()) is not None:
                yield visit
        finally:
            reader.leave()
            running.stop("the reader has left")
            await asyncio.shield(work)
    finally:
        await running.close()


class _Reader:
    """A sink whose `write` hands visits over one by one and waits for the loop to come back."""

    name = "reader"

    def __init__(self) -> None:
        self._offered: Visit | None = None
        self._offer = asyncio.Event()  # there is something to take, or nothing will come any more
        self._taken = asyncio.Event()  # the loop came back, or will not
        self._left = self._ended = self._holding = False

    async def open(self, mark: Mark | None) -> None:
        """Nothing to cut back: what was not settled is visited again."""

    async def write(self, visits: Sequence[Visit]) -> Mark:
        for number, visit in enumerate(visits):
            if self._left:
                raise Enough(number, {})
            self._taken.clear()
            self._offered = visit
            self._offer.set()
            await self._taken.wait()
            if self._left:
                raise Enough(number, {})
        return {}

    async def delete(self, deletions: Sequence[Deletion]) -> Mark:
        return {}

    async def close(self) -> None:
        self.end()

    async def next(self) -> Visit | None:
        """The next visit; asking for it says that the one before is done with. None: the crawl has ended."""
        if self._holding:
            self._taken.set()
        await self._offer.wait()
        self._offer.clear()
        visit, self._offered = self._offered, None
        self._holding = visit is not None
        return visit

    def leave(self) -> None:
        self._left = True
        self._taken.set()

    def end(self) -> None:
        self._ended = True
        self._offer.set()
