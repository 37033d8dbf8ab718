"""Time, as the engine sees it: two clocks behind the `Clock` port.

`SystemClock` reads the wall clock once, when it is made, and carries that reading forward by the monotonic clock. So
`now` never goes back and never leaps when somebody sets the machine's time: intervals between requests, which is what
a site feels, are always true; the price is that the calendar may be off by what the wall clock was corrected since
the start, which nothing here depends on.

`VirtualClock` stands still until nothing but waiting is left to do, then jumps to the earliest waiter: a crawl of four
days runs in a second, and every gap is exact. Invariant: it never moves while work is under way (`busy`), and it never
moves past a waiter that is no heart-beat. A heart-beat wakes when time passes it and is never a reason to move, else a
crawl with nothing left to do would run for ever through empty time.

How "every task waits" is known: an event loop does not say whether its queue is empty (uvloop's cannot even be looked
at), but it runs callbacks in rounds, and a task that can go on does so within the next round or two. So after each
event that the clock sees (a sleeper added, woken or gone; work begun or ended) it passes `QUIET_ROUNDS` rounds of the
loop, and if no further event came in, everybody waits. No real time is slept. What is awaited outside the loop (a
socket, a thread, a process) must therefore be inside `busy`, or the clock takes it for waiting.

Neither clock knows what anybody waits for.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TypeAlias

QUIET_ROUNDS = 50
"""Rounds of the event loop without any event before virtual time moves. The longest chain of wake-ups seen in a crawl
is under ten; the rest is margin, and fifty empty rounds cost about 0.1 ms."""

LONGEST_SLEEP_S = 3600.0
"""Longer waits are slept in pieces, so that a drift between the loop's timer and the monotonic clock cannot add up."""

_NOT_COUNTED: nullcontext[None] = nullcontext()


class SystemClock:
    """The real thing. `wall` is read once; `monotonic` carries it (both in seconds; to be replaced in tests only)."""

    def __init__(
        self, *, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._offset_s = wall() - monotonic()

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        return self._offset_s + self._monotonic()

    async def sleep_until(self, at: float, *, heartbeat: bool = False) -> None:
        """Return at or after `at`. uvloop's timers count whole milliseconds and may fire early: asked again until the
        clock itself agrees. An instant already past still lets the other tasks have their turn."""
        left_s = at - self.now()
        if left_s <= 0:
            await asyncio.sleep(0)
        while left_s > 0:
            await asyncio.sleep(min(left_s, LONGEST_SLEEP_S))
            left_s = at - self.now()

    def busy(self) -> AbstractContextManager[None]:
        """Real time goes on whoever works: nothing to count."""
        return _NOT_COUNTED


class VirtualClock:
    """Time that moves by jumps. `auto`: jump by itself to the earliest waiter once every task waits; without it, time
    moves only by `advance_to`. All calls from the event loop's own thread."""

    def __init__(self, start: float = 0.0, *, auto: bool = True) -> None:
        self._now = start
        self.auto = auto
        self._busy = 0
        self._events = 0  # grows with everything that happens here; a probe that sees it unchanged has seen quiet
        self._probing: asyncio.AbstractEventLoop | None = None
        self._reasons: list[_Sleeper] = []  # both are heaps by instant, then order of arrival
        self._heartbeats: list[_Sleeper] = []
        self._onlookers: list[asyncio.Future[None]] = []

    def now(self) -> float:
        """Seconds since the epoch, UTC, as pretended."""
        return self._now

    async def sleep_until(self, at: float, *, heartbeat: bool = False) -> None:
        """Return once virtual time is at or past `at`; at once (after the other tasks' turn) if it is already."""
        self._happened()
        if at <= self._now:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._heartbeats if heartbeat else self._reasons, (at, self._events, woken))
        try:
            await woken
        finally:
            self._happened()

    def busy(self) -> AbstractContextManager[None]:
        """Time stands still inside. May be nested and held by many tasks at once."""
        return _Busy(self)

    def advance_to(self, at: float) -> None:
        """Move to `at` (never back) and wake everyone due by then, earliest first; all of them see `at`. Time moves
        even if work is under way: whoever calls this decides."""
        self._now = max(self._now, at)
        self._wake()

    async def settled(self) -> None:
        """Return once every other task waits on this clock (or on something outside that it was not told of) and no
        work is under way; with `auto`, also nobody is left to jump to."""
        onlooker = asyncio.get_running_loop().create_future()
        self._onlookers.append(onlooker)
        self._happened()
        await onlooker

    @property
    def waiting(self) -> int:
        """How many tasks sleep here, heart-beats included."""
        return sum(not woken.done() for sleepers in (self._reasons, self._heartbeats) for _, _, woken in sleepers)

    def _enter(self) -> None:
        self._busy += 1
        self._happened()

    def _leave(self) -> None:
        self._busy -= 1
        self._happened()

    def _happened(self) -> None:
        """Something happened: look for quiet afterwards, unless a look is on its way (it will see the change)."""
        self._events += 1
        if self._busy:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # the loop has ended; nobody is left to wake
            return
        if self._probing is not loop:  # the loop of an earlier run may have ended with its probe
            self._probing = loop
            loop.call_soon(self._probe, loop, self._events, QUIET_ROUNDS)

    def _probe(self, loop: asyncio.AbstractEventLoop, events: int, rounds: int) -> None:
        """One round of the loop has passed. Begin again after any event; act after enough rounds without one."""
        if self._busy:
            self._probing = None  # `_leave` looks again
        elif events != self._events:
            loop.call_soon(self._probe, loop, self._events, QUIET_ROUNDS)
        elif rounds:
            loop.call_soon(self._probe, loop, events, rounds - 1)
        else:
            self._probing = None
            self._everybody_waits()

    def _everybody_waits(self) -> None:
        while self._reasons and self._reasons[0][2].done():
            heapq.heappop(self._reasons)
        if self.auto and self._reasons:
            self.advance_to(self._reasons[0][0])
            return
        onlookers, self._onlookers = self._onlookers, []
        for onlooker in onlookers:
            if not onlooker.done():
                onlooker.set_result(None)

    def _wake(self) -> None:
        due: list[_Sleeper] = []
        for sleepers in (self._reasons, self._heartbeats):
            while sleepers and (sleepers[0][0] <= self._now or sleepers[0][2].done()):
                due.append(heapq.heappop(sleepers))
        for _, _, woken in sorted(due, key=_arrival):
            if not woken.done():
                woken.set_result(None)


_Sleeper: TypeAlias = tuple[float, int, "asyncio.Future[None]"]


def _arrival(sleeper: _Sleeper) -> tuple[float, int]:
    return sleeper[:2]


class _Busy:
    """One holder of `VirtualClock.busy`."""

    __slots__ = ("_clock",)

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def __enter__(self) -> None:
        self._clock._enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clock._leave()
