"""One request, asked for real: the `Fetcher` port over libcurl.

Owns the order of a request: judge the port and the name, resolve, judge every address, connect to one that was judged,
ask, read under caps, say what came. What is decided on the way lives in its own room: `address` (what may be connected
to), `resolve` (names), `driver` (libcurl on the event loop), `transfer` (one handle and its caps), `decode` (content
codings), `outcomes` (what an answer or an error means), `trust` (certificates).

Invariant: `fetch` never raises for what the network did, and never for a fault of ours either: that is
``Failed(SELF)`` with the fault's name, counts for nobody's host, and the next request finds everything in order. Only
cancellation goes through, and leaves nothing behind.

Every kind of request passes here, so the guard stands here and nowhere else (SSRF-2): pages, robots.txt, sitemaps,
every hop of a redirect. There is no proxy; none is read from the environment either.

Refuses to know why a URL is asked, whether it may be (robots, politeness), and what its body means.
"""

from __future__ import annotations

import asyncio

import msgspec
import pycurl

from comity.fetch import decode
from comity.fetch.address import Guard
from comity.fetch.driver import Driver, Ended
from comity.fetch.outcomes import NOT_SENT, WEIRD_SERVER_REPLY, failed, outcome_of
from comity.fetch.resolve import ResolveError, Resolver
from comity.fetch.transfer import Limits, Transfer
from comity.fetch.trust import ca_file as find_ca_file
from comity.model import Failed, Failure, Outcome, Request, Wire
from comity.ports import Clock
from comity.url import InvalidUrl, Url, parse

__all__ = ["CONNECTIONS_KEPT", "CurlFetcher", "Guard", "Limits", "Resolver"]

CONNECTIONS_KEPT = 512
"""Open connections kept for the next request. Measured, idle: 1.5 KB each in the clear, 140 KB with TLS (70 MB for all
512); a connection used again saves about 60 µs, with TLS about 900."""

HANDLES_KEPT = 256
DEFAULT_LIMITS = Limits()
DEFAULT_GUARD = Guard()
ADDRESSES_TRIED = 3
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

_BREAKS = str.maketrans("", "", "\r\n\0")


class CurlFetcher:
    """The `Fetcher` port. Belongs to the event loop of its first request.

    `user_agent` and `mail` (the From field) are sent as given. `accept_language`: the Accept-Language field, if any.
    `guard`: what may be connected to. `resolver`: to be shared or replaced; by default one of its own. `ca_file`: a
    bundle of certificates to trust instead of the machine's; ValueError if it cannot be read.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        user_agent: str,
        mail: str | None = None,
        accept_language: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
        guard: Guard = DEFAULT_GUARD,
        resolver: Resolver | None = None,
        ca_file: str | None = None,
        connections_kept: int = CONNECTIONS_KEPT,
    ) -> None:
        self._clock, self._limits, self._guard = clock, limits, guard
        self._resolver = resolver if resolver is not None else Resolver(limit_s=limits.connect_s)
        self._ca_file = find_ca_file(ca_file)
        self._connections_kept = connections_kept
        self._fields = _lines(
            ("User-Agent", user_agent),
            ("Accept", ACCEPT),
            ("Accept-Encoding", decode.OFFERED),
            ("Accept-Language", accept_language),
            ("From", mail),
        )
        self._driver: Driver[Failure] | None = None
        self._idle: list[Transfer] = []
        self._closed = False

    async def fetch(self, request: Request) -> tuple[Outcome, Wire]:
        """Ask once. The outcome is a `Page`, `NotModified`, `Redirect`, `HttpError` or `Failed`, never an exception."""
        with self._clock.busy():
            began_at = self._clock.now()
            try:
                return await self._fetch(request)
            except ResolveError as error:
                return self._unasked(Failed(error.failure, error.detail), began_at)
            except InvalidUrl as error:
                return self._unasked(Failed(Failure.SELF, f"InvalidUrl: {error.reason}"), began_at)
            except Exception as error:
                return self._unasked(Failed(Failure.SELF, f"{type(error).__name__}: {error}"), began_at)

    async def close(self) -> None:
        """End every request under way (each as ``Failed(SELF)``) and close every connection. Idempotent."""
        self._closed = True
        await self._resolver.close()
        if self._driver is not None:
            self._driver.close()
        for transfer in self._idle:
            transfer.curl.close()
        self._idle.clear()

    async def _fetch(self, request: Request) -> tuple[Outcome, Wire]:
        url = parse(request.url)
        driver = self._opened()
        began_at, total_at = self._clock.now(), asyncio.get_running_loop().time() + self._limits.total_s
        if (problem := self._guard.port_problem(url.port)) is not None:
            return self._unasked(Failed(Failure.FORBIDDEN_PORT, problem), began_at)
        if (problem := self._guard.name_problem(url.host)) is not None:
            return self._unasked(Failed(Failure.FORBIDDEN_ADDRESS, f"{url.host}: {problem}"), began_at)
        found = await self._addresses(url.host, total_at)
        addresses, problem = self._guard.choose(url.host, found)
        if not addresses:
            return self._unasked(Failed(Failure.FORBIDDEN_ADDRESS, problem or ""), began_at)
        outcome, wire = await self._ask(driver, request, url, addresses[0], total_at)
        for address in addresses[1:ADDRESSES_TRIED]:
            # The address failed, not the host: nothing was sent, so this is still the same one request.
            if not _address_failed(outcome) or self._closed:
                break
            other, other_wire = await self._ask(driver, request, url, address, total_at)
            if _address_failed(other):  # what is told is how the first one failed
                wire = msgspec.structs.replace(wire, finished_at=other_wire.finished_at)
            else:
                outcome, wire = other, other_wire
                self._resolver.prefer(url.host, address)
        return outcome, wire

    def _opened(self) -> Driver[Failure]:
        if self._closed:
            raise RuntimeError("the fetcher was closed")
        if self._driver is None:
            self._driver = Driver(connections_kept=self._connections_kept, sweep_s=self._limits.sweep_s)
        return self._driver

    async def _addresses(self, host: str, total_at: float) -> tuple[str, ...]:
        at_hand = self._resolver.at_hand(host)
        if at_hand is not None:
            return at_hand
        try:
            async with asyncio.timeout_at(total_at):
                return await self._resolver.resolve(host)
        except TimeoutError:
            raise ResolveError(Failure.TIMEOUT_DNS, f"no answer within {self._limits.total_s:g} s") from None

    async def _ask(
        self, driver: Driver[Failure], request: Request, url: Url, address: str, total_at: float
    ) -> tuple[Outcome, Wire]:
        """One attempt at one address."""
        transfer = self._idle.pop() if self._idle else self._made()
        usable = False
        try:
            limit = request.max_body_bytes
            transfer.prepare(
                url.origin,
                url.target,
                address,
                url.port,
                self._fields + _lines(("If-None-Match", request.etag), ("If-Modified-Since", request.last_modified)),
                max_body_bytes=self._limits.max_body_bytes if limit is None else limit,
                total_at=total_at,
            )
            ended = await driver.perform(transfer.curl, transfer.overdue)
            outcome = self._outcome(transfer, ended, request, url)
            wire = self._wire(transfer, address, url.port)
            usable = not ended.closed and transfer.fault is None
            return outcome, wire
        finally:
            # The multi has let go by now, however the attempt ended.
            if usable and len(self._idle) < HANDLES_KEPT and not self._closed:
                transfer.forget()
                self._idle.append(transfer)
            else:
                transfer.curl.close()

    def _made(self) -> Transfer:
        return Transfer(self._limits, self._guard, self._clock, asyncio.get_running_loop().time, self._ca_file)

    def _outcome(self, transfer: Transfer, ended: Ended[Failure], request: Request, url: Url) -> Outcome:
        if transfer.fault is not None:
            return Failed(Failure.SELF, f"{type(transfer.fault).__name__}: {transfer.fault}")
        if ended.closed:
            return Failed(Failure.SELF, "the fetcher was closed")
        if transfer.failure is not None:
            return Failed(transfer.failure, transfer.detail)
        # Of a redirect or an error the status is the answer; whatever happened to the body changes nothing.
        unread = transfer.status is not None and not 200 <= transfer.status < 300
        if ended.code != 0 and not transfer.enough and not unread:
            if ended.overdue is not None:
                return Failed(ended.overdue, self._waited(ended.overdue))
            if ended.code == WEIRD_SERVER_REPLY and (cut := transfer.redirect_so_far()) is not None:
                return outcome_of(url, *cut, body=b"", truncated=None, conditional=False)
            os_errno = transfer.curl.getinfo(pycurl.OS_ERRNO)
            return failed(ended.code, ended.words, os_errno=os_errno, in_body=transfer.in_body)
        if transfer.status is None:
            return Failed(Failure.PROTOCOL, "an answer without a final status")
        return outcome_of(
            url,
            transfer.status,
            transfer.headers,
            body=transfer.body(),
            truncated=transfer.truncated,
            conditional=bool(request.etag or request.last_modified),
        )

    def _waited(self, failure: Failure) -> str:
        limits = self._limits
        return {
            Failure.TIMEOUT_CONNECT: f"not connected within {limits.connect_s:g} s",
            Failure.TIMEOUT_READ: f"no byte for {limits.between_bytes_s:g} s",
        }.get(failure, f"not done within {limits.total_s:g} s")

    def _wire(self, transfer: Transfer, address: str, port: int) -> Wire:
        return Wire(
            request=transfer.request,
            response=transfer.response,
            started_at=transfer.started_at,
            finished_at=self._clock.now(),
            heard_at=transfer.heard_at,
            service_s=transfer.service_s(),
            address=address,
            port=port,
            http_version=transfer.http_version,
            reused=transfer.sent and not transfer.curl.getinfo(pycurl.NUM_CONNECTS),
            body_bytes=transfer.body_bytes,
            payload=transfer.payload,
        )

    def _unasked(self, outcome: Failed, began_at: float) -> tuple[Outcome, Wire]:
        """Nothing was sent to anybody."""
        return outcome, Wire(request=b"", response=b"", started_at=began_at, finished_at=self._clock.now())


def _address_failed(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.failure in NOT_SENT


def _lines(*fields: tuple[str, str | None]) -> list[bytes]:
    """Whole header lines; fields without a value are not sent, and nothing can end a line early (SSRF-10)."""
    return [f"{name}: {value.translate(_BREAKS)}".encode("latin-1", "replace") for name, value in fields if value]
