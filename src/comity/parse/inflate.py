"""Bodies that are gzip files, unfolded in bounds.

A sitemap may be compressed by its author, by its server, or by both, whatever its name and its media type say (SMP-3):
only the first two bytes tell. Owns the unfolding of at most two layers, each of any number of members (RFC 1952 2.2),
to at most so many bytes: what can be read of a damaged file is read, and a bomb unfolds no further than the limit.

Content codings are undone by the fetcher; this is for what the body itself is. Refuses to know what is inside.
"""

from __future__ import annotations

import zlib

GZIP = b"\x1f\x8b"
_LAYERS = 2
_PIECE_BYTES = 1 << 20
_READ_BYTES = 16_384
_MAX_MEMBERS = 10_000  # files made for reading in parts have one for each 64 KB


def beginning(head: bytes, size: int) -> bytes:
    """The first bytes of what is inside, out of the first bytes of a body."""
    for _ in range(_LAYERS):
        if not head.startswith(GZIP):
            break
        try:
            head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, size)
        except zlib.error:
            break
    return head


def whole(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    """(what is inside, was it cut?). A body that is no gzip file is itself."""
    cut = False
    for _ in range(_LAYERS):
        if not body.startswith(GZIP):
            break
        inside, damaged = _layer(body, max_bytes)
        cut = cut or damaged
        if damaged and not inside:
            break
        body = inside
    return (body[:max_bytes], True) if len(body) > max_bytes else (body, cut)


def _layer(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    parts: list[bytes] = []
    room = max_bytes
    view, at = memoryview(body), 0  # zlib copies what it leaves over, so it gets little at a time
    for _ in range(_MAX_MEMBERS):
        if view[at : at + 2] != GZIP:  # anything else after a member is padding
            return b"".join(parts), False
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        rest: bytes | memoryview = b""
        while not member.eof:
            if room <= 0:
                return b"".join(parts), True
            if not rest:
                rest = view[at : at + _READ_BYTES]
                at += len(rest)
            try:
                part = member.decompress(rest, min(room, _PIECE_BYTES))
            except zlib.error:
                return b"".join(parts), True
            if not part and not rest:
                return b"".join(parts), True  # it ends in the middle
            parts.append(part)
            room -= len(part)
            rest = member.unconsumed_tail
        at -= len(member.unused_data)
    return b"".join(parts), at < len(body)
