"""A web server that misbehaves on purpose: raw bytes over asyncio streams, on a port of the kernel's choosing.

A path stands for a behaviour, written as a coroutine that is given the connection after the request was read. What the
server saw (requests byte for byte, connections opened) is kept, since that is what a site would have seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Behaviour: TypeAlias = Callable[[Streams], Awaitable[None]]


@dataclass
class BadServer:
    """``async with serve({"/": answer(b"hello")}) as server: server.url("/")``."""

    paths: dict[str, Behaviour]
    port: int = 0
    scheme: str = "http"
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)  # set by every request
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # set when a client closes a connection

    def url(self, path: str = "/", host: str = "a.localhost") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(request)
                self.heard.set()
                path = request.split(b" ", 2)[1].decode().partition("?")[0]
                await self.paths[path]((reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self.gone.set()
            writer.close()


@contextlib.asynccontextmanager
async def serve(
    paths: dict[str, Behaviour], *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[BadServer]:
    bad = BadServer(paths, scheme="https" if tls else "http")
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(bad._serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, host, port, ssl=tls, limit=1 << 20)
    bad.port = server.sockets[0].getsockname()[1]
    try:
        yield bad
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# ---------------------------------------------------------------------------------------------------------- behaviours


def send(*pieces: bytes, close: bool = False) -> Behaviour:
    """These bytes, a write each; then the connection is kept, or closed."""

    async def behave(streams: Streams) -> None:
        _, writer = streams
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if close:
            raise ConnectionError

    return behave


def answer(body: bytes = b"", status: str = "200 OK", *fields: str) -> Behaviour:
    """A well-formed answer."""
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}"))
    return send(head.encode("latin-1") + b"\r\n" + body)


def then_silence(*pieces: bytes) -> Behaviour:
    """These bytes, and nothing more, for as long as the client stays."""

    async def behave(streams: Streams) -> None:
        await send(*pieces)(streams)
        await streams[0].read()
        raise ConnectionError

    return behave


def drip(piece: bytes, every_s: float, head: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> Behaviour:
    """A body without end, a little at a time."""

    async def behave(streams: Streams) -> None:
        await send(head)(streams)
        while True:
            await asyncio.sleep(every_s)  # the behaviour under test, no synchronisation
            await send(piece)(streams)

    return behave


def reset(*pieces: bytes) -> Behaviour:
    """These bytes, then RST."""

    async def behave(streams: Streams) -> None:
        await send(*pieces)(streams)
        streams[1].transport.abort()
        raise ConnectionError

    return behave


def endless(chunk: bytes, head: bytes) -> Behaviour:
    """A body without end, as fast as it is taken."""

    async def behave(streams: Streams) -> None:
        await send(head)(streams)
        while True:
            await send(chunk)(streams)

    return behave


# ----------------------------------------------------------------------------------------------------------------- TLS

# A key that guards nothing, and two certificates signed with it, for a.localhost: valid 2000 to 2125, and in January
# 2020 only.
KEY = """\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIJAxEPWoJHlUgwuCYw7obzhLqMh3llPV0WN2y6/GFO7QoAoGCCqGSM49
AwEHoUQDQgAECqwnaJWLszuIDXQMc4iwhtJYzBNWH0IO4XkMe6R2rQsrusG0RniR
yjxp+0xqAaMJFBHu0rTwSGLbkdnVNvMycg==
-----END EC PRIVATE KEY-----
"""

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBYzCCAQqgAwIBAgIBATAKBggqhkjOPQQDAjAWMRQwEgYDVQQDDAthLmxvY2Fs
aG9zdDAgFw0wMDAxMDEwMDAwMDBaGA8yMTI1MDEwMTAwMDAwMFowFjEUMBIGA1UE
AwwLYS5sb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQKrCdolYuz
O4gNdAxziLCG0ljME1YfQg7heQx7pHatCyu6wbRGeJHKPGn7TGoBowkUEe7StPBI
YtuR2dU28zJyo0cwRTAWBgNVHREEDzANggthLmxvY2FsaG9zdDAMBgNVHRMEBTAD
AQH/MB0GA1UdDgQWBBT4OGHwiv1gf5F55ViI8fiQkcKezDAKBggqhkjOPQQDAgNH
ADBEAiAw0D+2TNWwbQUSzSCqmgOHwxVUNm+c5x+Yy43ScQ+FWwIgR5h+KOZzFYPH
JUtj7DZ6Rah+BBUFKXh/ghMMJ0q+zQ4=
-----END CERTIFICATE-----
"""

EXPIRED = """\
-----BEGIN CERTIFICATE-----
MIIBYTCCAQigAwIBAgIBATAKBggqhkjOPQQDAjAWMRQwEgYDVQQDDAthLmxvY2Fs
aG9zdDAeFw0yMDAxMDEwMDAwMDBaFw0yMDAyMDEwMDAwMDBaMBYxFDASBgNVBAMM
C2EubG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAECqwnaJWLszuI
DXQMc4iwhtJYzBNWH0IO4XkMe6R2rQsrusG0RniRyjxp+0xqAaMJFBHu0rTwSGLb
kdnVNvMycqNHMEUwFgYDVR0RBA8wDYILYS5sb2NhbGhvc3QwDAYDVR0TBAUwAwEB
/zAdBgNVHQ4EFgQU+Dhh8Ir9YH+ReeVYiPH4kJHCnswwCgYIKoZIzj0EAwIDRwAw
RAIgFLny7OVrDd9pcqePv4XckijFbPuoA3Dd1PfvXwBhiioCIGPuW0IOUVoeZID4
JxwiTsopTt0h7Ku3zgqj/sGm/FRu
-----END CERTIFICATE-----
"""


def tls(folder: Path, certificate: str = CERTIFICATE, alpn: tuple[str, ...] = ("http/1.1",)) -> ssl.SSLContext:
    """A server's context. The certificate is also left in `folder`, as ``ca.pem``, for a client that trusts it."""
    (folder / "ca.pem").write_text(certificate)
    (folder / "server.pem").write_text(KEY + certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.set_alpn_protocols(list(alpn))
    return context


# -------------------------------------------------------------------------------------------------------------- HTTP/2


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


async def http2(streams: Streams) -> None:
    """As much of RFC 9113 as one client needs: every stream is answered with 200 and the body "two"."""
    reader, writer = streams
    await reader.readexactly(24)  # the client's preface
    writer.write(_frame(4, 0, 0))  # SETTINGS, none
    while True:
        head = await reader.readexactly(9)
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        await reader.readexactly(int.from_bytes(head[:3], "big"))
        if kind == 4 and not flags & 1:
            writer.write(_frame(4, 1, 0))
        if kind == 1:  # HEADERS: 0x88 is ":status: 200" in HPACK's static table
            writer.write(_frame(1, 4, stream, b"\x88") + _frame(0, 1, stream, b"two"))
        await writer.drain()


@contextlib.asynccontextmanager
async def serve_http2(context: ssl.SSLContext) -> AsyncIterator[int]:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await http2((reader, writer))
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
