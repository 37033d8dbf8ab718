"""A name server on loopback, speaking just enough DNS (RFC 1035): questions for A and AAAA over UDP.

``async with serve({"a.example": ["192.0.2.1", "2001:db8::1"]}) as dns: dns.place`` is "127.0.0.1:port". A name may also
stand for a behaviour: "nxdomain" (as any name not listed), "servfail", "refused", "empty", "silent", or a callable that
gives one of these or addresses, asked anew for every question.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias, cast

Said: TypeAlias = "str | list[str]"
Book: TypeAlias = "dict[str, Said | Callable[[], Said]]"

_RCODES = {"nxdomain": 3, "servfail": 2, "refused": 5, "empty": 0}
_TYPES = {1: 4, 28: 6}  # A and AAAA, by the version of the addresses they carry


class FakeDns(asyncio.DatagramProtocol):
    def __init__(self, book: Book, delay_s: float) -> None:
        self.book, self.delay_s = book, delay_s
        self.asked: list[tuple[str, int]] = []  # names and types, in order
        self.place = ""
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # one by shape only

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name, end = _name(data, 12)
        kind = int.from_bytes(data[end : end + 2], "big")
        self.asked.append((name, kind))
        said = self.book.get(name, "nxdomain")
        said = said() if callable(said) else said
        if said == "silent":
            return
        answers, rcode = b"", 0
        count = 0
        if isinstance(said, str):
            rcode = _RCODES[said]
        else:
            for address in map(ipaddress.ip_address, said):
                if address.version == _TYPES.get(kind):
                    packed = address.packed
                    answers += b"\xc0\x0c" + kind.to_bytes(2, "big") + b"\0\1" + bytes(4)  # TTL 0: nobody keeps it
                    answers += len(packed).to_bytes(2, "big") + packed
                    count += 1
        head = data[:2] + (0x8180 | rcode).to_bytes(2, "big") + b"\0\1" + count.to_bytes(2, "big") + b"\0\0\0\0"
        asyncio.get_running_loop().call_later(self.delay_s, self._send, head + data[12 : end + 4] + answers, addr)

    def _send(self, packet: bytes, to: tuple[str, int]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(packet, to)


def _name(data: bytes, at: int) -> tuple[str, int]:
    labels = []
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]].decode())
        at += data[at] + 1
    return ".".join(labels).lower(), at + 1


@contextlib.asynccontextmanager
async def serve(book: Book, delay_s: float = 0.0) -> AsyncIterator[FakeDns]:
    loop = asyncio.get_running_loop()
    transport, dns = await loop.create_datagram_endpoint(lambda: FakeDns(book, delay_s), local_addr=("127.0.0.1", 0))
    host, port = transport.get_extra_info("sockname")
    dns.place = f"{host}:{port}"
    try:
        yield dns
    finally:
        transport.close()
