"""libcurl's multi handle, driven by the running event loop.

Owns when libcurl is called: when one of its sockets is ready, when its timer runs out, and every `sweep_s` while
anything is under way, to ask each transfer whether it has been waited for long enough. Libcurl's own time limits are
not used, because they count whole seconds between bytes and do not say which of them ran out.

Invariant: a handle is in the multi from `perform`'s beginning to its end and never after it, however it ends (by
itself, overdue, cancelled, or by `close`); nothing of libcurl is called from inside one of its callbacks.

All of libcurl's sockets live in one selector whose descriptor the loop watches, because a watcher of the loop for each
costs more than the transfer's other Python (measured on uvloop, a request: 32 µs here, 43 with pycurl's
`AsyncCurlMulti`). Refuses to know what is transferred.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import pycurl

Reason = TypeVar("Reason")

LATE_S = 0.5
"""A sweep later than this was held up by ourselves, and bytes may lie unread: the next one judges."""


class Ended(NamedTuple, Generic[Reason]):
    """How a transfer ended: libcurl's code and words (0 for a good end); or `overdue`, what the transfer's own watch
    said; or `closed` by us."""

    code: int
    words: str
    overdue: Reason | None = None
    closed: bool = False


class _Job(NamedTuple, Generic[Reason]):
    ended: asyncio.Future[Ended[Reason]]
    overdue: Callable[[float], Reason | None]


class Driver(Generic[Reason]):
    """One multi handle on one event loop: make it inside the running loop. `connections_kept`: open ones, in use or
    not; beyond them the one idle longest is closed. `sweep_s`: how exactly time limits are kept."""

    def __init__(self, *, connections_kept: int, sweep_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._sweep_s = sweep_s
        self._jobs: dict[pycurl.Curl, _Job[Reason]] = {}
        self._selector = selectors.DefaultSelector()
        self._known: set[int] = set()  # sockets in the selector
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._wanted_at: float | None = None  # when libcurl wants to be called
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_at = 0.0
        self._passed = False  # was the last sweep too late to judge by?
        self.closed = False
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections_kept)
        self._loop.add_reader(self._selector_fd(), self._on_ready)

    async def perform(self, curl: pycurl.Curl, overdue: Callable[[float], Reason | None]) -> Ended[Reason]:
        """Run a prepared handle to its end. `overdue` is given the loop's time; what it returns, if not None, ends the
        transfer. When this returns or raises (cancellation only), the multi has let go of the handle."""
        if self.closed:
            return Ended(-1, "closed", closed=True)
        ended: asyncio.Future[Ended[Reason]] = self._loop.create_future()
        self._jobs[curl] = _Job(ended, overdue)
        try:
            self._multi.add_handle(curl)
            self._plan_sweep()
            return await ended
        finally:
            if self._jobs.pop(curl, None) is not None:
                self._multi.remove_handle(curl)

    def close(self) -> None:
        """End every transfer and close every connection. Idempotent."""
        if self.closed:
            return
        self.closed = True
        for curl in list(self._jobs):
            self._end(curl, Ended(-1, "closed", closed=True))
        for timer in (self._timer, self._sweep):
            if timer is not None:
                timer.cancel()
        self._multi.close()
        self._loop.remove_reader(self._selector_fd())
        self._selector.close()

    def _selector_fd(self) -> int:
        return int(self._selector.fileno())  # epoll and kqueue have one

    # ------------------------------------------------------------------------- what libcurl tells us, in its callbacks

    def _on_socket(self, what: int, fd: int, multi: Any, data: Any) -> None:
        if what in (pycurl.POLL_IN, pycurl.POLL_OUT, pycurl.POLL_INOUT):
            # POLL_* and EVENT_* and CSELECT_* agree: 1 reads, 2 writes.
            if fd in self._known:
                self._selector.modify(fd, what)
            else:
                self._known.add(fd)
                self._selector.register(fd, what)
        elif fd in self._known:
            self._known.remove(fd)
            self._selector.unregister(fd)

    def _on_timer(self, timeout_ms: int) -> None:
        """A later wish moves no timer: the one that is set finds out when it goes off."""
        if timeout_ms < 0:
            self._wanted_at = None
            return
        self._wanted_at = self._loop.time() + timeout_ms / 1000
        if self._timer is None or self._wanted_at < self._timer_at:
            self._set_timer(self._wanted_at)

    # ----------------------------------------------------------------------------------- what we tell it, from the loop

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self._wanted_at is None or self.closed:
            return
        if self._loop.time() < self._wanted_at - 0.001:  # uvloop counts whole milliseconds
            self._set_timer(self._wanted_at)
            return
        self._wanted_at = None
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()

    def _on_ready(self) -> None:
        act = self._multi.socket_action
        for key, events in self._selector.select(0):
            if key.fd in self._known:  # an earlier one of this round may have closed it
                act(key.fd, events)
        self._collect()

    def _collect(self) -> None:
        left = 1
        while left:
            left, good, bad = self._multi.info_read()
            for curl in good:
                self._end(curl, Ended(0, ""))
            for curl, code, words in bad:
                self._end(curl, Ended(code, words))

    def _end(self, curl: pycurl.Curl, ended: Ended[Reason]) -> None:
        job = self._jobs.pop(curl, None)
        if job is None:
            return
        self._multi.remove_handle(curl)
        if not job.ended.done():
            job.ended.set_result(ended)

    def _plan_sweep(self) -> None:
        if self._sweep is None:
            self._sweep_at = self._loop.time() + self._sweep_s
            self._sweep = self._loop.call_at(self._sweep_at, self._on_sweep)

    def _on_sweep(self) -> None:
        now = self._loop.time()
        self._sweep = None
        self._passed = now - self._sweep_at > LATE_S and not self._passed
        if not self._passed:
            overdue = [(curl, reason) for curl, job in self._jobs.items() if (reason := job.overdue(now)) is not None]
            for curl, reason in overdue:
                self._end(curl, Ended(-1, "overdue", overdue=reason))
        if self._jobs:
            self._plan_sweep()
