"""What an answer means, and what a libcurl error means: from bytes and codes to the words of `comity.model`.

Owns the reading of a header block (status line and fields) and two total functions: every status is one outcome, every
way libcurl can fail is one `Failure`. Pure: the transfer brings the facts.

Two readings are stricter than libcurl's. A 304 to a request without validators is an error, for there is nothing it
could confirm (RFC 9110 15.4.5). A field whose value holds control characters is left out, and stays visible in the raw
bytes (RFC 9110 5.5 leaves the choice to the recipient). One is wider: a Location that is UTF-8 is read as such, as
browsers do, and bytes that are not are escaped one by one.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from urllib.parse import quote_from_bytes

from comity.model import Failed, Failure, Headers, HttpError, NotModified, Outcome, Page, Redirect
from comity.url import Url, resolve

_STATUS = re.compile(rb"HTTP/([0-9.]+) +([0-9]{3})(?!\d)")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_BLANK = " \t\r\n"


def status_of(line: bytes) -> tuple[str, int] | None:
    """HTTP version and status code of a status line ("1.1", 200); None if it is none."""
    match = _STATUS.match(line)
    return None if match is None else (match[1].decode("ascii"), int(match[2]))


def fields_of(block: Sequence[bytes]) -> Headers:
    """The fields of a header block's lines (status line and blank line left out)."""
    fields: list[tuple[str, str]] = []
    for line in block:
        text = line.decode("latin-1")
        if text[0] in " \t" and fields:  # a folded line continues the one before (RFC 9112 5.2)
            name, value = fields[-1]
            fields[-1] = (name, f"{value} {text.strip(_BLANK)}".strip())
            continue
        name, colon, value = text.partition(":")
        if colon and name.strip(_BLANK):
            fields.append((name.strip(_BLANK).lower(), value.strip(_BLANK)))
    return tuple(field for field in fields if _CONTROL.search(field[1]) is None)


def outcome_of(
    url: Url, status: int, headers: Headers, *, body: bytes, truncated: str | None, conditional: bool
) -> Outcome:
    """What a complete answer says. `truncated`: why `body` is not whole, if it is not."""
    if 200 <= status < 300:
        if status == 206:
            truncated = "unasked_206"
        return Page(status, headers, body, truncated)
    if status == 304:
        return NotModified(headers) if conditional else HttpError(status, headers)
    if 300 <= status < 400:
        location = next((value for name, value in headers if name == "location" and value), None)
        target = None if location is None else resolve(url, _as_browsers_read(location))
        return Redirect(status, headers, location, None if target is None else target.href)
    return HttpError(status, headers)


def _as_browsers_read(location: str) -> str:
    if location.isascii():
        return location
    raw = location.encode("latin-1")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(quote_from_bytes(raw[at : at + 1]) if byte > 0x7F else chr(byte) for at, byte in enumerate(raw))


# ----------------------------------------------------------------------------------------------------- libcurl's errors

_CONNECT_ERRORS = {
    errno.ECONNREFUSED: Failure.REFUSED,
    errno.ECONNRESET: Failure.RESET,
    errno.ETIMEDOUT: Failure.TIMEOUT_CONNECT,
    errno.ENETUNREACH: Failure.UNREACHABLE,
    errno.EHOSTUNREACH: Failure.UNREACHABLE,
    errno.ENETDOWN: Failure.UNREACHABLE,
    errno.EACCES: Failure.UNREACHABLE,  # a firewall of ours or on the way says no
    errno.EPERM: Failure.UNREACHABLE,
    errno.EADDRNOTAVAIL: Failure.UNREACHABLE,  # no address of ours reaches that family
    errno.EAFNOSUPPORT: Failure.UNREACHABLE,
    errno.EMFILE: Failure.SELF,
    errno.ENFILE: Failure.SELF,
    errno.ENOBUFS: Failure.SELF,
    errno.ENOMEM: Failure.SELF,
}

WEIRD_SERVER_REPLY = 8  # pycurl has no name for it

_ERRORS = {
    1: Failure.PROTOCOL,  # UNSUPPORTED_PROTOCOL: also "HTTP/0.9 when not allowed"
    5: Failure.PROXY,
    7: Failure.UNREACHABLE,  # COULDNT_CONNECT without an errno we know
    WEIRD_SERVER_REPLY: Failure.PROTOCOL,
    16: Failure.PROTOCOL,  # HTTP2
    18: Failure.CUT_OFF,  # PARTIAL_FILE
    28: Failure.TIMEOUT_TOTAL,  # our own limits are not libcurl's; this is its backstop
    35: Failure.TLS,
    52: Failure.RESET,  # GOT_NOTHING: closed without a byte
    53: Failure.TLS,
    54: Failure.TLS,
    55: Failure.RESET,  # SEND_ERROR
    56: Failure.RESET,  # RECV_ERROR
    59: Failure.TLS,
    60: Failure.TLS,  # PEER_FAILED_VERIFICATION
    61: Failure.DECODE,  # a transfer coding other than chunked
    64: Failure.TLS,
    80: Failure.TLS,
    83: Failure.TLS,
    90: Failure.TLS,
    91: Failure.TLS,
    92: Failure.PROTOCOL,  # HTTP2_STREAM
    95: Failure.PROTOCOL,  # HTTP3
    97: Failure.PROXY,
    98: Failure.TLS,
    100: Failure.HEADERS_TOO_LARGE,  # TOO_LARGE: libcurl's own limit on a line, 100 KB
    101: Failure.TLS,
}
"""By libcurl's code (curl/curl.h). Whatever is not here (out of memory, bad option, CA file unreadable) is ours."""

_BROKEN_BODY = {8, 16, 55, 56, 92, 95}


def failed(code: int, words: str, *, os_errno: int = 0, in_body: bool = False) -> Failed:
    """Libcurl's error as ours. `os_errno`: of the last system call, for failed connections. `in_body`: the header block
    was complete, so that what failed is the body."""
    words = words or f"libcurl error {code}"
    if in_body and code in _BROKEN_BODY:
        return Failed(Failure.CUT_OFF, words)
    if code == 7:
        return Failed(_CONNECT_ERRORS.get(os_errno, Failure.UNREACHABLE), words)
    failure = _ERRORS.get(code, Failure.SELF)
    return Failed(failure, words if failure is not Failure.SELF else f"libcurl error {code}: {words}")


NOT_SENT = {Failure.REFUSED, Failure.UNREACHABLE, Failure.TIMEOUT_CONNECT}
"""Failures of an address rather than of its host: another address may do better, and nothing was asked of anybody."""
