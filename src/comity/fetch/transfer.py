"""One request under caps: an easy handle of libcurl and what its callbacks gather.

Owns the options that make libcurl a polite and safe client, set once per handle, and the limits that are kept while
bytes arrive: a callback that has seen enough says so and libcurl stops. Handles are used again (`CurlFetcher` keeps
them), since a new one costs as much as the request.

Decided here:

* *Pinned.* ``CONNECT_TO`` names the address and port to connect to; the URL keeps the name, for Host, SNI and the
  certificate. Libcurl resolves nothing, and opens no socket but to that address, judged once more (+28 µs, new
  connections only). It follows no redirect, sends no cookie, no credentials, uses no proxy and no netrc file.
* *The request is ours.* The target is sent as the URL says (``REQUEST_TARGET``: libcurl would tidy it), the fields in
  our order. What was really sent comes back by libcurl's debug callback (5 µs a request), HTTP/2 in its HTTP/1 shape.
* *Transfer coding is libcurl's, content coding ours.* Chunks are framing: where the message ends is one question, and
  two parsers may give two answers (RFC 9112 6.3 is where smuggling lives). Libcurl has to ask it anyway, to use the
  connection again, so its answer is the only one; a payload kept for archiving is the body without chunks. Content
  codings are undone in `decode`, because only there can decoded size and ratio be held.
* *Time limits are kept by the `Driver`'s sweeps*, which ask `overdue`; the debug callback says when the request left.

Invariant: no callback raises (libcurl could not pass it on); a fault of ours is kept in `fault` and ends the transfer.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pycurl

from comity.fetch import decode
from comity.fetch.address import Guard
from comity.fetch.outcomes import fields_of, status_of
from comity.model import Failure, Headers
from comity.ports import Clock


@dataclass(frozen=True)
class Limits:
    """Of one request. Durations in seconds, sizes in bytes.

    `connect_s`: for the look-up, and again for connecting and agreeing on TLS. `between_bytes_s`: from the request to
    the first byte, and between any two. `total_s`: from the call to the end, everything included. `max_body_bytes`: of
    a page, as received and as decoded, each. `drain_bytes`: of a body that nobody reads (redirects, errors), so that
    the connection can be used again; a longer one is cut. `max_ratio`: decoded bytes for each byte received, once
    `ratio_after_bytes` were decoded. `keep_payload`: the body as received goes into `Wire.payload`.
    """

    connect_s: float = 10.0
    between_bytes_s: float = 20.0
    total_s: float = 60.0
    max_body_bytes: int = 10 * 1024 * 1024
    max_header_line_bytes: int = 64 * 1024
    max_header_bytes: int = 256 * 1024
    max_ratio: float = 200.0
    ratio_after_bytes: int = 1024 * 1024
    max_codings: int = 2
    drain_bytes: int = 64 * 1024
    keep_payload: bool = False

    @property
    def sweep_s(self) -> float:
        """How often waiting is judged: limits are kept to a tenth of the shortest, within 20 … 250 ms."""
        return min(0.25, max(0.02, min(self.connect_s, self.between_bytes_s, self.total_s) / 10))


class Transfer:
    """An easy handle, for one request at a time."""

    def __init__(
        self, limits: Limits, guard: Guard, clock: Clock, now: Callable[[], float], ca_file: str | None
    ) -> None:
        self._limits, self._guard, self._clock, self._now = limits, guard, clock, now
        self.curl = pycurl.Curl()
        self._reset(0, 0.0)
        set_options(self.curl, ca_file)
        self.curl.setopt(pycurl.DEBUGFUNCTION, self._on_debug)
        self.curl.setopt(pycurl.HEADERFUNCTION, self._on_header)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._on_socket)

    def _reset(self, max_body_bytes: int, total_at: float) -> None:
        self._max_body_bytes, self._total_at = max_body_bytes, total_at
        self._address = ""
        self._began_at = self._sent_at = self._byte_at = 0.0
        self._header_bytes = 0
        self._block: list[bytes] = []
        self._block_done = False
        self._coding: decode.Coding | None = None
        self._chunks: list[bytes] = []
        self._payload: list[bytes] = []
        self._decoded_bytes = 0
        self.request = b""
        self.started_at = 0.0
        self.heard_at: float | None = None
        self.status: int | None = None  # of the final answer, once its header block is complete
        self.http_version: str | None = None
        self.headers: Headers = ()
        self.body_bytes = 0
        self.truncated: str | None = None
        self.failure: Failure | None = None  # why a callback stopped the transfer
        self.detail = ""
        self.enough = False  # a callback stopped the transfer, and nothing is wrong
        self.fault: BaseException | None = None

    # -------------------------------------------------------------------------------------------- before and afterwards

    def prepare(
        self,
        origin: str,
        target: str,
        address: str,
        port: int,
        fields: list[bytes],
        *,
        max_body_bytes: int,
        total_at: float,
    ) -> None:
        """Everything about one request. `address`: already judged; the only one that will be connected to. `fields`:
        whole lines, in order, Host left to libcurl. `total_at`: when it must be over, by the loop's time."""
        self._reset(max_body_bytes, total_at)
        self._address = address
        curl = self.curl
        curl.setopt(pycurl.URL, f"{origin}/")
        curl.setopt(pycurl.REQUEST_TARGET, target)
        curl.setopt(pycurl.CONNECT_TO, [f"::[{address}]:{port}" if ":" in address else f"::{address}:{port}"])
        curl.setopt(pycurl.HTTPHEADER, fields)
        self._began_at = self._now()
        self.started_at = self._clock.now()

    @property
    def response(self) -> bytes:
        """Status line and fields as received, of the last header block."""
        return b"".join(self._block)

    @property
    def payload(self) -> bytes:
        return b"".join(self._payload)

    @property
    def in_body(self) -> bool:
        return self._block_done

    @property
    def sent(self) -> bool:
        """Did the request leave?"""
        return self._sent_at > 0.0

    def body(self) -> bytes:
        """The decoded body. Says in `truncated` if the coding came to no proper end."""
        if self._coding is not None and self.truncated is None and not self._coding.whole:
            self.truncated = "broken_coding"
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)

    def redirect_so_far(self) -> tuple[int, Headers] | None:
        """Status and fields of a redirect whose header block libcurl would not read to its end: it refuses a second
        Location, of which RED-2 takes the first. None if there is no Location yet."""
        first = status_of(self._block[0]) if self._block and not self._block_done else None
        headers = fields_of(self._block[1:])
        if first is None or not 300 <= first[1] < 400 or not any(name == "location" for name, _ in headers):
            return None
        self.http_version = first[0]
        return first[1], headers

    def forget(self) -> None:
        """Let go of everything gathered, so that an idle handle holds no page."""
        self._reset(0, 0.0)

    def service_s(self) -> float:
        """How long the server had the request: 0.0 if it never did. Own queueing, look-up and handshake left out."""
        if not self.sent:
            return 0.0
        spent: int = self.curl.getinfo(pycurl.TOTAL_TIME_T) - self.curl.getinfo(pycurl.PRETRANSFER_TIME_T)
        return max(0, spent) / 1e6

    def overdue(self, now: float) -> Failure | None:
        """Which limit has run out, if any. `now`: the loop's time."""
        if now >= self._total_at:
            return Failure.TIMEOUT_TOTAL
        if not self._sent_at:
            return Failure.TIMEOUT_CONNECT if now - self._began_at >= self._limits.connect_s else None
        late = now - max(self._sent_at, self._byte_at) >= self._limits.between_bytes_s
        return Failure.TIMEOUT_READ if late else None

    # ---------------------------------------------------------------------------------------------- libcurl's callbacks

    def _on_debug(self, kind: int, data: bytes) -> None:
        if kind == pycurl.INFOTYPE_HEADER_OUT:
            # Again, if a kept connection turned out to be closed and libcurl sends the request anew.
            self.request, self._sent_at = bytes(data), self._now()

    def _on_socket(self, purpose: int, place: Any) -> _Lent | int:
        try:
            family, kind, protocol, address = place
            ip = address[0] if isinstance(address, tuple) else str(address)
            same = ip == self._address or ipaddress.ip_address(ip) == ipaddress.ip_address(self._address)
            problem = self._guard.address_problem(ip) if same else "not the address that was judged"
            if problem is not None:
                return self._refuse(Failure.FORBIDDEN_ADDRESS, f"{ip}: {problem}")
            return _Lent(socket.socket(family, kind, protocol))
        except OSError as error:
            return self._refuse(Failure.SELF, f"{type(error).__name__}: {error}")
        except BaseException as error:
            self.fault = error
            return int(pycurl.SOCKET_BAD)

    def _refuse(self, failure: Failure, detail: str) -> int:
        self.failure, self.detail = failure, detail
        return int(pycurl.SOCKET_BAD)

    def _on_header(self, line: bytes) -> int | None:
        try:
            if self.heard_at is None:
                self.heard_at = self._clock.now()
            self._byte_at = self._now()
            return self._header(line)
        except BaseException as error:
            self.fault = error
            return -1

    def _header(self, line: bytes) -> int | None:
        self._header_bytes += len(line)
        limits = self._limits
        if len(line) > limits.max_header_line_bytes or self._header_bytes > limits.max_header_bytes:
            return self._stop(Failure.HEADERS_TOO_LARGE, f"{self._header_bytes} bytes of header or more")
        if self._block_done:
            return None  # a trailer field (RFC 9110 6.5): may be ignored, and is
        if line.startswith(b"HTTP/") and line[5:6].isdigit() and (not self._block or self._block[-1] in _BLANK):
            self._block = [line]  # the first block, or the one after an interim answer
            return None
        self._block.append(line)
        return self._block_ended() if line in _BLANK else None

    def _block_ended(self) -> int | None:
        first = status_of(self._block[0])
        if first is None:
            return self._stop(Failure.PROTOCOL, f"no status line: {self._block[0][:80]!r}")
        if 100 <= first[1] < 200 and first[1] != 101:
            return None
        self.http_version, self.status = first
        self.headers = fields_of(self._block[1:-1])
        self._block_done = True
        if 200 <= self.status < 300:
            return self._open_coding()
        length = next((value for name, value in self.headers if name == "content-length"), "0")
        if length.isdecimal() and int(length[:20]) > self._limits.drain_bytes:
            self.enough = True
            return -1
        return None

    def _open_coding(self) -> int | None:
        try:
            codings = [value for name, value in self.headers if name == "content-encoding"]
            self._coding = decode.opened(codings, self._limits.max_codings) if codings else None
        except decode.DecodeError as error:
            return self._stop(Failure.DECODE, str(error))
        return None

    def _on_body(self, data: bytes) -> int | None:
        try:
            self._byte_at = self._now()
            return self._body(data)
        except decode.DecodeError as error:
            return self._stop(Failure.DECODE, str(error))
        except BaseException as error:
            self.fault = error
            return -1

    def _body(self, data: bytes) -> int | None:
        if self.status is None or not 200 <= self.status < 300:
            return self._drain(data)
        over = self.body_bytes + len(data) > self._max_body_bytes
        if over:
            data = data[: self._max_body_bytes - self.body_bytes]
        self.body_bytes += len(data)
        if self._limits.keep_payload:
            self._payload.append(data)
        for piece in (data,) if self._coding is None else self._coding.feed(data):
            if not self._take(piece):
                return -1
        return self._truncate() if over else None

    def _drain(self, data: bytes) -> int | None:
        self.body_bytes += len(data)
        if self._limits.keep_payload:
            self._payload.append(data)
        self.enough = self.body_bytes > self._limits.drain_bytes
        return -1 if self.enough else None

    def _take(self, piece: bytes) -> bool:
        """Keep a decoded piece, unless that is too much."""
        room = self._max_body_bytes - self._decoded_bytes
        self._decoded_bytes += len(piece)
        limits = self._limits
        if (
            self._coding is not None
            and self._decoded_bytes > limits.ratio_after_bytes
            and self._decoded_bytes > limits.max_ratio * self.body_bytes
        ):
            self._chunks.clear()
            self._stop(Failure.BOMB, f"{self.body_bytes} bytes unfold to {self._decoded_bytes} or more")
            return False
        if len(piece) > room:
            self._chunks.append(piece[:room])
            self._truncate()
            return False
        if piece:
            self._chunks.append(piece)
        return True

    def _truncate(self) -> int:
        self.truncated, self.enough = "length", True
        return -1

    def _stop(self, failure: Failure, detail: str) -> int:
        self.failure, self.detail = failure, detail
        return -1


_BLANK = (b"\r\n", b"\n")


class _Lent:
    """A socket for pycurl, which makes a duplicate of the descriptor and drops this: it closes without a word then,
    where a Python socket would warn."""

    __slots__ = ("_fd",)

    def __init__(self, opened: socket.socket) -> None:
        self._fd = opened.detach()

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)


def set_options(curl: pycurl.Curl, ca_file: str | None) -> None:
    """What is the same for every request."""
    for option, value in _options(ca_file):
        curl.setopt(option, value)


def _options(ca_file: str | None) -> Iterator[tuple[int, Any]]:
    yield pycurl.NOSIGNAL, 1
    yield pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
    yield pycurl.REDIR_PROTOCOLS, 0
    yield pycurl.FOLLOWLOCATION, 0
    yield pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS  # HTTP/2 by ALPN, HTTP/1.1 in the clear
    yield pycurl.HTTP09_ALLOWED, 0
    yield pycurl.PATH_AS_IS, 1
    yield pycurl.DNS_CACHE_TIMEOUT, 0  # libcurl sweeps its whole cache at every look-up
    yield pycurl.PROXY, ""  # or libcurl reads the environment
    yield pycurl.NOPROXY, "*"
    yield pycurl.NETRC, pycurl.NETRC_IGNORED
    yield pycurl.CONNECTTIMEOUT_MS, 86_400_000  # `overdue` says when; libcurl's default would be 300 s
    yield pycurl.SSL_VERIFYPEER, 1
    yield pycurl.SSL_VERIFYHOST, 2
    yield pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2  # or later
    if ca_file is not None:
        yield pycurl.CAINFO, ca_file
    yield pycurl.VERBOSE, 1  # for the debug callback
