"""How a crawl goes, while it goes: a display on a terminal, a line every few seconds elsewhere.

Everything is read from the running crawl at the moment it is shown; nothing is counted here, so that a display can
neither slow the crawl down nor disagree with its summary. What a crawl waits for is said as soon as nothing else
happens: a polite crawler waits for most of its life, and nobody should have to guess whether it hangs.

All of it goes to standard error. If nobody reads that any more the crawl goes on in silence: it is work, and an
onlooker who leaves must not stop it.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from comity import politeness
from comity.cli import terminal
from comity.cli.terminal import many, plain, size, span

if TYPE_CHECKING:
    from comity.assemble import Running
    from comity.model import Stats

DISPLAY_S = 0.25
LINE_S = 5.0
LATER_S, LATER_LINE_S = 300.0, 60.0  # a crawl that has gone on for so long is watched by nobody: fewer lines
RATE_S = 10.0  # the rate shown is that of the last seconds
SHORT_WAIT_S = 1.5  # not worth a word
Manner = Literal["display", "lines", "silent"]


@dataclass(frozen=True)
class Sight:
    """What there is to see at one moment."""

    elapsed_s: float
    pages: int
    pages_per_s: float
    hosts: int  # at hand: a request is under way, or waits for its host's time
    at_work: int
    not_modified: int
    errors: int
    bytes: int
    bytes_saved: int
    waits_for: str | None = None


def words(sight: Sight) -> str:
    """One line, for files and pipes."""
    parts = [
        span(round(sight.elapsed_s, 1)),
        many(sight.pages, "page"),
        f"{sight.pages_per_s:.1f}/s",
        f"{many(sight.hosts, 'host')} ({sight.at_work} at work, {sight.hosts - sight.at_work} waiting)",
        many(sight.errors, "error"),
        size(sight.bytes),
    ]
    if sight.not_modified:
        parts.append(f"{sight.not_modified:,} not modified, {size(sight.bytes_saved)} saved")
    if sight.waits_for:
        parts.append(sight.waits_for)
    return "  ".join(parts)


def picture(sight: Sight, spinner: Spinner, place: str) -> Group:
    """Three lines, for a terminal."""
    first = Text.assemble((plain(place), "bold"), f"  {span(round(sight.elapsed_s, 1))}  ")
    first.append(many(sight.pages, "page"), "bold green").append(f"  {sight.pages_per_s:.1f}/s")
    spinner.update(text=first)
    second = Text("  ", no_wrap=True, overflow="ellipsis")
    for name, said, style in (
        ("hosts", f"{sight.hosts:,}", ""),
        ("at work", f"{sight.at_work:,}", ""),
        ("waiting", f"{sight.hosts - sight.at_work:,}", ""),
        ("errors", f"{sight.errors:,}", "yellow" if sight.errors else ""),
        ("received", size(sight.bytes), ""),
        ("saved by 304", size(sight.bytes_saved), ""),
    ):
        second.append(f"{name} ", "dim").append(f"{said}   ", style)
    third = Text(f"  {sight.waits_for or ''}", "dim", no_wrap=True, overflow="ellipsis")
    return Group(spinner, second, third)


@dataclass
class Progress:
    """``async with Progress(running, manner, place) as progress``: shows until the block ends."""

    running: Running
    manner: Manner
    place: str
    _seen: deque[tuple[float, int]] = field(default_factory=deque)
    _task: asyncio.Task[None] | None = None
    _live: Live | None = None
    _spinner: Spinner = field(default_factory=lambda: Spinner("dots", style="cyan"))

    async def __aenter__(self) -> Progress:
        if self.manner == "display":
            self._live = Live(console=terminal.err(), auto_refresh=False, transient=True, redirect_stdout=False)
            self._live.start()
        if self.manner != "silent":
            self._task = asyncio.create_task(self._run(), name="progress")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.stop()

    def tell(self, text: str) -> None:
        """A remark, above the display if there is one."""
        with contextlib.suppress(OSError):
            if self._live is not None:
                self._live.console.print(f"comity: {plain(text)}")
            else:
                terminal.tell(text)

    async def _run(self) -> None:
        every_s = DISPLAY_S if self._live is not None else LINE_S
        while True:
            await asyncio.sleep(every_s)
            sight = await self.look()
            if self._live is None and sight.elapsed_s > LATER_S:
                every_s = LATER_LINE_S
            try:
                if self._live is not None:
                    self._live.update(picture(sight, self._spinner, self.place), refresh=True)
                else:
                    terminal.tell(words(sight))
            except OSError:
                return

    async def look(self) -> Sight:
        running = self.running
        now = running.clock.now()
        tally = running.tally
        self._seen.append((now, tally.pages))
        while len(self._seen) > 2 and self._seen[0][0] < now - RATE_S:
            self._seen.popleft()
        began_at, pages = (running.began_at, 0) if len(self._seen) == 1 else self._seen[0]
        hosts = list(running.crawl.hosts.claimed.values())
        at_work = sum(host.state.in_flight > 0 for host in hosts)
        return Sight(
            elapsed_s=now - running.began_at,
            pages=tally.pages,
            pages_per_s=(tally.pages - pages) / max(now - began_at, 0.001),
            hosts=len(hosts),
            at_work=at_work,
            not_modified=tally.not_modified,
            errors=tally.errors,
            bytes=tally.bytes,
            bytes_saved=tally.bytes_saved,
            waits_for=None if at_work else await self._waits_for(now),
        )

    async def _waits_for(self, now: float) -> str | None:
        """The next thing that will happen, when nothing does now."""
        resting = [
            (politeness.next_at(host.state, host.manner.politeness), host)
            for host in self.running.crawl.hosts.claimed.values()
            if host.waiting
        ]
        if resting:
            at, host = min(resting, key=lambda rest: rest[0])
            every_s = politeness.delay_s(host.state, host.manner.politeness)
            if at - now < SHORT_WAIT_S:
                return None
            return f"next: {plain(host.key)} in {span(at - now)} (asked every {span(every_s)})"
        return wait_of(await self.running.left(), now)


def wait_of(left: Stats, now: float) -> str | None:
    """What a crawl with no host at hand waits for."""
    at = left.next_ready_at
    if at is None or at - now < SHORT_WAIT_S:
        return None
    host, why = next(((host, why) for host, until_at, why in left.held if abs(until_at - at) < 1), ("", ""))
    what = f"{plain(host)} ({plain(why)})" if host and why else "what is due then"
    return f"waiting {span(at - now)} for {what}"


def manner(*, quiet: bool) -> Manner:
    if quiet:
        return "silent"
    return "display" if terminal.err().is_terminal and sys.stderr.isatty() else "lines"
