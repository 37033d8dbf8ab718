"""The fake web's server: one loopback port, many hosts told apart by the Host field, every request in the log.

It is a small HTTP/1.1 server written for one purpose: to be exact about when a request arrived and when its answer had
left, to do wrong precisely what its script says, and to stand in the same event loop as the crawler it serves without
being what is measured (about 60 µs of CPU for a plain page). Plain answers go out in one write from the callback
that brought the request; only waiting, dripping, hanging and huge ones cost a task.

Invariant: a line enters the log before anything is answered and is completed after the last byte has been handed to the
kernel, or when the visitor has left.

It refuses to know what a polite visitor is: that is the judge's to say. It speaks no TLS and no HTTP/2, and listens on
127.0.0.1 only.
"""

from __future__ import annotations

import asyncio
import http
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

from comity.fakeweb.judge import Judgement, judge
from comity.fakeweb.log import Line, encode, header, rules_of
from comity.fakeweb.site import Answer, Asked, Site

REASONS = {status.value: status.phrase for status in http.HTTPStatus}
MAX_HEAD_BYTES = 1 << 20
PIECE_BYTES = 1 << 16

_wall_offset_s = time.time() - time.monotonic()


def steady_wall() -> float:
    """The wall clock as first read, carried by the monotonic one: comparable between processes to a few ms."""
    return _wall_offset_s + time.monotonic()


class FakeWeb:
    """Some sites on one port. ``async with FakeWeb(sites, now=clock.now) as web: web.url("a.localhost", "/")``.

    `now` stamps the log (seconds since the epoch): the crawler's own clock when both share a process. `log_path`: also
    write the log to this file, each line when its request ends.
    """

    def __init__(
        self,
        sites: Iterable[Site],
        *,
        now: Callable[[], float] = steady_wall,
        log_path: Path | str | None = None,
        port: int = 0,
    ) -> None:
        self.sites: dict[str, Site] = {}
        self.lines: list[Line] = []
        self.port = port  # 0 until `start` has been given one
        self.now = now
        self._asked: Counter[tuple[str, str]] = Counter()
        self._open = 0
        self._open_here: Counter[str] = Counter()
        self._robots_answer: Counter[str] = Counter()
        self._log_path = log_path
        self._file: BinaryIO | None = None
        self._server: asyncio.Server | None = None
        self._visitors: set[_Visitor] = set()
        self._watchers: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self.add(sites)

    def add(self, sites: Iterable[Site]) -> None:
        """Serve these too (in place of those of the same host)."""
        added = {site.host: site for site in sites}
        self.sites |= added
        if self._file is not None:
            self._file.write(header(rules_of(added.values())))

    async def start(self) -> None:
        """Listen, and begin the log."""
        if self._log_path is not None:
            self._file = open(self._log_path, "wb", buffering=0)  # noqa: ASYNC230, SIM115  (a line a write, as it happens)
            self._file.write(header(rules_of(self.sites.values())))
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Visitor(self), "127.0.0.1", self.port, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Hang up on everybody and end the log. No request is answered afterwards."""
        if self._server is not None:
            self._server.close()
            for visitor in list(self._visitors):
                visitor.hang_up()
            await self._server.wait_closed()
            self._server = None
        if self._file is not None:
            self._file.close()
            self._file = None

    async def __aenter__(self) -> FakeWeb:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def url(self, host: str, path: str = "/") -> str:
        """``http://HOST:PORT/PATH`` for a running web."""
        return f"http://{host}:{self.port}{path}"

    def judge(self, *, delay_s: float = 0.0) -> Judgement:
        """What this web saw so far. `delay_s`: owed to every host whose robots.txt names no delay."""
        return judge(self.lines, rules_of(self.sites.values()), delay_s=delay_s)

    def asked(self, host: str | None = None, path: str | None = None) -> list[Line]:
        """The requests for a host, a path, or both, in order of arrival."""
        return [line for line in self.lines if host in (None, line.host) and path in (None, line.path)]

    async def when(self, condition: Callable[[], bool]) -> None:
        """Return once `condition` holds; it is asked after every arrival and departure."""
        if not condition():
            watched = asyncio.get_running_loop().create_future()
            self._watchers.append((condition, watched))
            await watched

    def _look(self) -> None:
        for watcher in list(self._watchers):
            condition, watched = watcher
            if watched.done() or condition():
                self._watchers.remove(watcher)
                if not watched.done():
                    watched.set_result(None)

    # what a connection tells

    def arrived(self, at: float, method: str, host: str, path: str, fields: dict[str, str]) -> tuple[Line, Answer]:
        """A request is here: note it, and look up what is to be answered."""
        site = self.sites.get(host)
        self._asked[host, path] += 1
        self._open_here[host] += 1
        self._open += 1
        line = Line(
            seq=len(self.lines) + 1,
            start_at=at,
            host=host,
            method=method,
            path=path,
            number=self._asked[host, path],
            open=self._open,
            open_here=self._open_here[host],
            robots_answer=self._robots_answer[host],
            is_robots=path == "/robots.txt" or (site is not None and path in site.robots_paths),
            agent=fields.get("user-agent", ""),
            if_none_match=fields.get("if-none-match"),
            if_modified_since=fields.get("if-modified-since"),
        )
        self.lines.append(line)
        if self._watchers:
            self._look()
        if site is None:
            return line, Answer(421, b"no such site here\n", (("Content-Type", "text/plain"),))
        return line, site.answer(Asked(method, host, path, fields, line.number, site.round))

    def left(self, line: Line, status: int, size_bytes: int, whole: bool, retry_after: str | None) -> None:
        """Its answer, or as much of it as there will be, has left."""
        line.status, line.bytes, line.whole, line.end_at = status, size_bytes, whole, self.now()
        if retry_after is not None and retry_after.isdecimal():
            line.retry_after_s = float(retry_after)
        self._open_here[line.host] -= 1
        self._open -= 1
        if line.path == "/robots.txt" and status:
            self._robots_answer[line.host] = line.number
        if self._file is not None:
            self._file.write(encode(line))
        if self._watchers:
            self._look()


def unchanged(line: Line, answer: Answer) -> bool:
    """Does the request name the validators of this answer, byte for byte? A conditional request that alters them (the
    W/ of a weak tag dropped, a date written anew) deserves a full answer here: that is how it is found out."""
    if answer.status != 200:
        return False
    if line.if_none_match is not None:
        return line.if_none_match == answer.header("etag")
    return line.if_modified_since is not None and line.if_modified_since == answer.header("last-modified")


class _Visitor(asyncio.Protocol):
    """One connection: requests in, one answer at a time out."""

    def __init__(self, web: FakeWeb) -> None:
        self._web = web
        self._buffer = bytearray()
        self._came_at: float | None = None  # first byte of the request being read
        self._skip = 0  # bytes of a request body still to come: nobody reads them
        self._performing: asyncio.Task[None] | None = None
        self._writable: asyncio.Event | None = None

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by shape only
        self._web._visitors.add(self)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, error: Exception | None) -> None:
        self._web._visitors.discard(self)
        if self._performing is not None:
            self._performing.cancel()

    def pause_writing(self) -> None:
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._came_at is None:
            self._came_at = self._web.now()
        self._read()

    # reading

    def _read(self) -> None:
        """Answer every whole request in the buffer, but never two at once."""
        while self._performing is None and not self._transport.is_closing():
            if self._skip:
                taken = min(self._skip, len(self._buffer))
                del self._buffer[:taken]
                self._skip -= taken
                if self._skip:
                    return
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if not self._buffer:
                    self._came_at = None
                elif len(self._buffer) > MAX_HEAD_BYTES:
                    self._transport.close()
                return
            head = self._buffer[:end].decode("latin-1")
            del self._buffer[: end + 4]
            at = self._came_at if self._came_at is not None else self._web.now()
            self._came_at = self._web.now() if self._buffer else None
            self._request(at, head)

    def _request(self, at: float, head: str) -> None:
        first, _, rest = head.partition("\r\n")
        method, _, tail = first.partition(" ")
        path, _, version = tail.rpartition(" ")
        fields = {}
        for text in rest.split("\r\n") if rest else ():
            name, _, value = text.partition(":")
            fields[name.lower()] = value.strip()
        host = fields.get("host", "").lower()
        if host.rpartition(":")[2].isdecimal():
            host = host.rpartition(":")[0]
        if not path or not version.startswith("HTTP/1."):
            self._transport.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            self._transport.close()
            return
        wanted = fields.get("content-length", "")
        self._skip = int(wanted) if wanted.isdecimal() else 0
        line, answer = self._web.arrived(at, method, host, path, fields)
        close = answer.close or version == "HTTP/1.0" or fields.get("connection", "").lower() == "close"
        if answer.plain:
            self._hand_over(line, answer, close)
        else:
            self._performing = asyncio.get_running_loop().create_task(self._perform(line, answer, close))

    # answering

    def _hand_over(self, line: Line, answer: Answer, close: bool) -> None:
        status, head = _head(line, answer, close)
        body = answer.body if line.method != "HEAD" and status != 304 else b""
        self._transport.write(head + body)
        self._web.left(line, status, len(body), True, answer.header("retry-after"))
        if close:
            self._transport.close()

    async def _perform(self, line: Line, answer: Answer, close: bool) -> None:
        """An answer that takes its time, or goes wrong. Cancelled when the visitor leaves."""
        status, sent, whole = 0, 0, False
        retry_after = answer.header("retry-after")
        try:
            if answer.wait_s:
                await asyncio.sleep(answer.wait_s)
            if answer.hang:
                await asyncio.get_running_loop().create_future()
            if answer.raw is not None:
                status, sent, whole, close = answer.status, len(answer.raw), True, True
                self._transport.write(answer.raw)
            else:
                status, head = _head(line, answer, close)
                self._transport.write(head)
                total = 0 if line.method == "HEAD" or status == 304 else answer.length_bytes
                ends = total if answer.cut_after_bytes is None else min(total, answer.cut_after_bytes)
                whole = ends == total
                while sent < ends:
                    if answer.pause_s:
                        await asyncio.sleep(answer.pause_s)
                    if self._writable is not None:
                        await self._writable.wait()
                    piece = _piece(answer, sent, min(answer.chunk_bytes or PIECE_BYTES, ends - sent))
                    self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if answer.chunked else piece)
                    sent += len(piece)
                    if not answer.pause_s:
                        await asyncio.sleep(0)  # a huge body must not stop the loop it is sent from
                if answer.chunked and whole and line.method != "HEAD" and status != 304:
                    self._transport.write(b"0\r\n\r\n")
                close = close or not whole
        except asyncio.CancelledError:
            whole = False
        finally:
            self._web.left(line, status, sent, whole, retry_after if status else None)
            self._performing = None
            if close:
                self._transport.close()
        self._read()

    def hang_up(self) -> None:
        self._transport.abort()


def _head(line: Line, answer: Answer, close: bool) -> tuple[int, bytes]:
    """Status and header block. No Date field: a real server's would betray a virtual clock."""
    same = unchanged(line, answer)
    status = 304 if same else answer.status
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Odd')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers if not same or name.lower() != "content-type"]
    if answer.chunked and not same:
        lines.append("Transfer-Encoding: chunked")
    elif status >= 200 and status not in (204, 304):
        lines.append(f"Content-Length: {answer.length_bytes}")
    lines.append("Connection: close\r\n\r\n" if close else "\r\n")
    return status, "\r\n".join(lines).encode("latin-1", "surrogateescape")


def _piece(answer: Answer, start: int, size: int) -> bytes:
    """`size` bytes of the body from `start`, the body repeated as often as it takes."""
    if answer.size_bytes is None:
        return answer.body[start : start + size]
    unit = answer.body or b"\0"
    shift = start % len(unit)
    return (unit * (size // len(unit) + 2))[shift : shift + size]
