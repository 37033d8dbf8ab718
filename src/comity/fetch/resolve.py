"""From a host name to its addresses.

Owns one look-up at a time per name, however many requests wait for it, and what was found, for a minute. Both families
are asked for (A and AAAA, by c-ares, beside the event loop: no thread a name, so that a thousand slow names delay
nobody), IPv4 first in the answer: the connection is pinned to one address at a time, so the two families cannot be
raced as in RFC 8305, and broken IPv6 is commoner on crawling machines than IPv6-only sites are on the web.

Three things are decided here. `localhost` and the names below it are answered with loopback and never asked for (RFC
6761 6.3). The machine's hosts file is honoured, as by every other client on it: an operator who writes a name there
means it, and the guard judges those addresses like any others. Search domains are not: a name in a URL is complete.

Answers are kept `KEEP_S` whatever their TTL says (SSRF-12 asks for no less), failures for `KEEP_FAILURE_S`, at most
`CAPACITY` names. c-ares keeps answers of its own for their TTL, without a bound on their number (measured: 2.2 KB a
name), so its channel is replaced after `LOOK_UPS_PER_CHANNEL`. No channel is made before the first real look-up.

Invariant: `resolve` returns at least one address, all plain IP addresses, or raises `ResolveError`. Refuses to know
which addresses are allowed.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Sequence

import aiodns
import pycares

from comity.fetch.address import literal
from comity.model import Failure

KEEP_S = 60.0
KEEP_FAILURE_S = 10.0
CAPACITY = 50_000
LOOK_UPS_PER_CHANNEL = 1_000
MOST_REFUSALS = 3
TRY_S = 2.5
TRIES = 3

LOOPBACK = ("127.0.0.1", "::1")

_AI_NOSORT = 1 << 7  # ARES_AI_NOSORT: sorting (RFC 6724) would open a socket for every address

_FAILURES = {
    pycares.errno.ARES_ENOTFOUND: Failure.DNS,
    pycares.errno.ARES_ENODATA: Failure.DNS,
    pycares.errno.ARES_EBADNAME: Failure.DNS,
    pycares.errno.ARES_ENONAME: Failure.DNS,
    pycares.errno.ARES_ETIMEOUT: Failure.TIMEOUT_DNS,
    pycares.errno.ARES_ENOMEM: Failure.SELF,
    pycares.errno.ARES_EFILE: Failure.SELF,
    pycares.errno.ARES_ENOTINITIALIZED: Failure.SELF,
    pycares.errno.ARES_EDESTRUCTION: Failure.SELF,
    pycares.errno.ARES_ECANCELLED: Failure.SELF,
}
"""Anything else (SERVFAIL, REFUSED, FORMERR, no server listening) may be over in a minute: DNS_TEMPORARY."""

_NAME = re.compile(r"(?=.{1,253}$)[^.]{1,63}(?:\.[^.]{1,63})*")
"""What DNS can carry (RFC 1035 2.3.4): labels of 1 to 63 octets, 253 in all. Which characters is not its business."""


class ResolveError(Exception):
    """No address. `failure` is DNS (there is no such name, or it has no address), DNS_TEMPORARY, TIMEOUT_DNS or SELF;
    `detail` is for people."""

    def __init__(self, failure: Failure, detail: str) -> None:
        super().__init__(detail)
        self.failure = failure
        self.detail = detail


class Resolver:
    """Look-ups for one event loop. `servers`: "address" or "address:port", instead of the machine's own. `limit_s`: for
    one look-up as a whole, all tries included."""

    def __init__(
        self,
        *,
        servers: Sequence[str] = (),
        limit_s: float = 10.0,
        try_s: float = TRY_S,
        keep_s: float = KEEP_S,
        keep_failure_s: float = KEEP_FAILURE_S,
        capacity: int = CAPACITY,
    ) -> None:
        self._servers = tuple(servers)
        self._limit_s = limit_s
        self._try_s = try_s
        self._keep_s = keep_s
        self._keep_failure_s = keep_failure_s
        self._capacity = capacity
        self._known: dict[str, tuple[float, tuple[str, ...] | ResolveError]] = {}  # by name: good until, what was found
        self._asking: dict[str, asyncio.Task[tuple[str, ...]]] = {}
        self._channel: aiodns.DNSResolver | None = None
        self._look_ups = 0
        self._refusals = 0  # channels in a row that found no server
        self._users: dict[aiodns.DNSResolver, int] = {}  # look-ups under way, by channel
        self._closed = False

    async def resolve(self, host: str) -> tuple[str, ...]:
        """The addresses of a URL's host (a literal is its own). Raises `ResolveError`, and nothing else."""
        at_hand = self.at_hand(host)
        if at_hand is not None:
            return at_hand
        name = host.lower().removesuffix(".")
        if self._closed:
            raise ResolveError(Failure.SELF, "the resolver was closed")
        task = self._asking.get(name)
        if task is None:
            task = self._asking[name] = asyncio.create_task(self._look_up(name))
            task.add_done_callback(lambda done: self._learn(name, done))
        try:
            # One of those who wait may be cancelled; the others, and the cache, still want the answer.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and not (caller is not None and caller.cancelling()):  # by `close`
                raise ResolveError(Failure.SELF, "the resolver was closed") from None
            raise

    def at_hand(self, host: str) -> tuple[str, ...] | None:
        """What `resolve` would return or raise without asking anybody; None if it would have to ask."""
        ip = literal(host)
        if ip is not None:
            return (ip,)
        name = host.lower().removesuffix(".")
        if name == "localhost" or name.endswith(".localhost"):
            return LOOPBACK
        known = self._known.get(name)
        if known is None or asyncio.get_running_loop().time() >= known[0]:
            return None
        if isinstance(known[1], ResolveError):
            raise ResolveError(known[1].failure, known[1].detail)
        return known[1]

    def prefer(self, host: str, ip: str) -> None:
        """`ip` could be connected to where an earlier one could not: name it first while this answer is kept."""
        name = host.lower().removesuffix(".")
        known = self._known.get(name)
        if known is not None and not isinstance(known[1], ResolveError) and ip in known[1]:
            others = tuple(other for other in known[1] if other != ip)
            self._known[name] = (known[0], (ip, *others))

    async def close(self) -> None:
        """Give up every look-up; those who wait get a `ResolveError`."""
        self._closed = True
        for task in list(self._asking.values()):
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        for channel in list(self._users):
            await channel.close()
        self._users.clear()
        self._channel = None

    def _learn(self, name: str, task: asyncio.Task[tuple[str, ...]]) -> None:
        del self._asking[name]
        if task.cancelled():
            return
        error = task.exception()  # `_look_up` raises ResolveError only
        now = asyncio.get_running_loop().time()
        self._known.pop(name, None)
        if isinstance(error, ResolveError):
            self._known[name] = (now + self._keep_failure_s, error)
        else:
            self._known[name] = (now + self._keep_s, task.result())
        while len(self._known) > 1:
            oldest = next(iter(self._known))  # learnt longest ago
            if len(self._known) <= self._capacity and now < self._known[oldest][0]:
                break
            del self._known[oldest]

    async def _look_up(self, name: str) -> tuple[str, ...]:
        if _NAME.fullmatch(name) is None:
            raise ResolveError(Failure.DNS, f"{name[:80]} cannot be a name in DNS: an empty or too long part")
        try:
            async with asyncio.timeout(self._limit_s):
                answer = await self._ask(name)
        except TimeoutError:
            raise ResolveError(Failure.TIMEOUT_DNS, f"no answer within {self._limit_s:g} s") from None
        except aiodns.error.DNSError as error:
            raise _failed(error) from None
        except Exception as error:
            raise ResolveError(Failure.SELF, f"{type(error).__name__}: {error}") from error
        found = sorted((node.family != socket.AF_INET, place) for place, node in enumerate(answer.nodes))
        addresses = tuple(dict.fromkeys(_text(answer.nodes[place].addr[0]) for _, place in found))
        if not addresses:
            raise ResolveError(Failure.DNS, "the name has no address")
        return addresses

    async def _ask(self, name: str) -> pycares.AddrInfoResult:
        channel = self._take_channel()
        try:
            return await self._query(channel, name)
        except aiodns.error.DNSError as error:
            if error.args[0] != pycares.errno.ARES_ECONNREFUSED or self._refusals >= MOST_REFUSALS:
                raise
        self._refusals += 1
        # Of some thousand channels one finds no server from its first query to its last (seen with c-ares 1.34.9), and
        # the next one does; so before this is believed, another channel is asked.
        if self._channel is channel:
            self._channel = None
        return await self._query(self._take_channel(), name)

    async def _query(self, channel: aiodns.DNSResolver, name: str) -> pycares.AddrInfoResult:
        self._users[channel] += 1
        try:
            answer = await channel.getaddrinfo(name, type=socket.SOCK_STREAM, flags=_AI_NOSORT)
            self._refusals = 0
            return answer
        finally:
            self._users[channel] -= 1
            for other, users in list(self._users.items()):  # one or two
                if other is not self._channel and not users:
                    del self._users[other]
                    await other.close()

    def _take_channel(self) -> aiodns.DNSResolver:
        if self._channel is None or self._look_ups >= LOOK_UPS_PER_CHANNEL:
            self._look_ups = 0
            self._channel = aiodns.DNSResolver(
                nameservers=self._servers or None,
                loop=asyncio.get_running_loop(),
                timeout=self._try_s,
                tries=TRIES,
                flags=pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS,
                lookups="fb",
            )
            self._users[self._channel] = 0
        self._look_ups += 1
        return self._channel


def _text(address: bytes | str) -> str:
    return address if isinstance(address, str) else address.decode("ascii")


def _failed(error: aiodns.error.DNSError) -> ResolveError:
    number, words = error.args[0], str(error.args[-1])
    return ResolveError(_FAILURES.get(number, Failure.DNS_TEMPORARY), words)
