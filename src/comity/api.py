"""comity from Python: ``async for visit in comity.crawl(seeds)``.

The loop *is* a sink. A visit is yielded before it is settled, and counts as written when the loop asks for the next
one, which is yielded only after the settle. So a programme that dies in the loop's body is shown that visit again when
it resumes, and one that leaves the loop has settled exactly what it was done with.

Leaving drains: requests in flight end, nothing more is asked, hosts and files are given back. A ``break`` begins that
at once and the event loop finishes it; ``async with comity.crawl(…) as visits`` (or ``await visits.aclose()``) waits
for it. A second crawl of the same directory waits for the first to be given back.

Everything a crawl from the command line keeps holds here: robots.txt, delays, private addresses refused, no anonymous
start. Without a directory the frontier lives in memory and is gone afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from comity.model import Deletion, Mark, Visit
from comity.settling import Enough

if TYPE_CHECKING:
    from comity.assemble import Running
    from comity.config import Settings
    from comity.ports import Clock, Sink


def crawl(
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
) -> Visits:
    """Crawl every URL found from `seeds` once; an async iterator of `Visit`. Nothing happens before it is iterated.

    `directory` keeps the crawl (frontier, outputs, log) and resumes it when called again; None keeps it in memory.
    `contact` is a URL or mail address where the operator can be reached; without one (here, in the environment or in
    the user's configuration) only loopback seeds are crawled. `sinks` are written and settled with the loop.
    Arguments given here win over `settings`, which are the defaults unless given; durations are in seconds.

    Iterating raises `comity.config.ConfigError` (a `ValueError`) for bad settings or seeds,
    `comity.identity.NoContact` when the crawl would be anonymous, and whatever made the store or a sink fail, after
    everything settled is safe.
    """
    given = [seeds] if isinstance(seeds, str) else list(seeds)
    options: dict[str, Any] = {
        "directory": directory,
        "scope": scope,
        "delay_s": delay_s,
        "max_pages": max_pages,
        "max_depth": max_depth,
        "patience_s": patience_s,
        "contact": contact,
        "allow_private": allow_private,
        "settings": settings,
        "clock": clock,
    }
    return Visits(given, sinks, options)


class Visits:
    """The visits of one crawl, in the order they are settled. Made by `crawl`."""

    def __init__(self, seeds: list[str], sinks: Sequence[Sink], options: dict[str, Any]) -> None:
        self._seeds, self._sinks, self._options = seeds, sinks, options
        self._reader = _Reader()
        self._running: Running | None = None
        self._work: asyncio.Task[None] | None = None
        self._stepping = False

    def __aiter__(self) -> Visits:
        return self

    async def __anext__(self) -> Visit:
        if self._stepping:
            raise RuntimeError("the loop over this crawl is already running in another task")
        self._stepping = True
        try:
            if self._work is None:
                await self._start()
            visit = await self._reader.next()
        finally:
            self._stepping = False
        if visit is None:
            await self.aclose()
            raise StopAsyncIteration
        return visit

    async def aclose(self) -> None:
        """Leave the crawl: drain, settle, give back. Raises what made it fail, if anything did."""
        self._leave()
        if self._work is not None:
            await asyncio.shield(self._work)

    async def __aenter__(self) -> Visits:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the event loop may be gone
            self._leave()

    async def _start(self) -> None:
        from comity.assemble import prepared  # the adapters are heavy: load them when a crawl begins

        directory = self._options["directory"]
        place = Path(directory).resolve() if directory is not None else None
        if place is not None and (before := _AT_WORK.get(place)) is not None and before.get_loop() is _loop():
            if _LEFT.get(place):
                await asyncio.wait([before])
        self._running = await prepared(self._seeds, sinks=[self._reader, *self._sinks], batch=1, **self._options)
        self._work = asyncio.create_task(_drive(self._running, self._reader), name="crawl")
        if place is not None:
            _AT_WORK[place], _LEFT[place] = self._work, False
            self._work.add_done_callback(lambda _: _AT_WORK.pop(place, None))

    def _leave(self) -> None:
        self._reader.leave()
        if self._running is not None and self._work is not None and not self._work.done():
            self._running.stop("the reader has left")
            if self._running.directory is not None:
                _LEFT[self._running.directory.root.resolve()] = True


_AT_WORK: dict[Path, asyncio.Task[None]] = {}
_LEFT: dict[Path, bool] = {}
"""Directories that a crawl of this process holds, and whether its loop has been left: the next one there waits."""


async def _drive(running: Running, reader: _Reader) -> None:
    """Run and close. Knows the reader but not the iterator, so that a dropped iterator is seen to be dropped."""
    try:
        await running.run()
    finally:
        reader.end()
        await running.close()


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


class _Reader:
    """A sink whose `write` hands visits over one by one and waits for the loop to come back."""

    name = "reader"

    def __init__(self) -> None:
        self._offered: Visit | None = None
        self._offer = asyncio.Event()  # there is something to take, or nothing will come any more
        self._taken = asyncio.Event()  # the loop came back, or will not
        self._left = self._holding = False

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
        """The loop may still hold the last visit: `end` says when nothing more will come."""

    async def next(self) -> Visit | None:
        """The next visit; asking for it says that the one before is done with. None: the crawl has ended."""
        if self._holding:
            self._holding = False
            self._taken.set()
        await self._offer.wait()
        if self._offered is None:
            return None
        self._offer.clear()
        visit, self._offered = self._offered, None
        self._holding = True
        return visit

    def leave(self) -> None:
        self._left = True
        self._taken.set()

    def end(self) -> None:
        self._offer.set()
