"""Undoing content codings, a piece at a time, under somebody else's caps.

Owns the reading of Content-Encoding and the three codings that we offer: gzip, deflate, br. `opened` gives a `Coding`
to be fed with pieces as they arrive; each `feed` is a generator of decoded pieces of at most `PIECE_BYTES`, so whoever
counts them stops within one piece of any cap, however much the input would unfold to (SAFE-4). Ratio and size are the
counter's business, for only it knows what was received.

Servers lie about codings, so the bytes have the last word (RFC 9110 8.4 speaks of codings really applied): without
gzip's magic there is no gzip; "deflate" is zlib's format or the raw one; a name that is no coding at all ("utf-8",
"none") over readable text was never applied. What breaks in the middle keeps its beginning, and `whole` is then false:
an end that never came, a broken block, a checksum that does not hold (MSG-7). Whatever follows the end is left out.

Refuses to know HTTP beyond that one field.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator
from typing import Protocol

import brotli

OFFERED = "gzip, deflate, br"
"""The Accept-Encoding field: exactly what is undone here (MSG-5). zstd waits for a decoder in the standard library."""

PIECE_BYTES = 65_536

_NOT_CODED = {"", "identity", "none", "utf-8", "utf8", "binary", "8bit", "7bit", "iso-8859-1", "text/html", "plain"}
"""Seen in the field and never a coding."""

_GZIP_NAMES = {"gzip", "x-gzip"}
_LONGEST_GZIP_HEADER = 65_536
_LONGEST_SILENCE = 4_096  # bytes out of which nothing comes; a block's own header is under 400
_TEXT = bytes(set(range(0x20, 0x100)) - {0x7F} | {0x09, 0x0A, 0x0C, 0x0D})


class DecodeError(Exception):
    """A coding that we cannot undo. The text is for people."""


class Coding(Protocol):
    """One decoder. `whole`: everything up to a proper end was decoded."""

    @property
    def whole(self) -> bool: ...

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The next pieces. To be run to its end, or never fed again. Raises `DecodeError` if nothing came out so far
        and nothing will."""
        ...


def names(values: Iterable[str]) -> tuple[str, ...]:
    """The codings that Content-Encoding fields name, in the order applied; those that change nothing left out."""
    found = [name.strip().lower() for value in values for name in value.split(",")]
    return tuple(name for name in found if name not in _NOT_CODED)


def opened(values: Iterable[str], most: int = 2) -> Coding | None:
    """A decoder for these Content-Encoding fields; None if there is nothing to undo. Raises `DecodeError` for more than
    `most` codings, one inside the other."""
    wanted = names(values)
    if len(wanted) > most:
        raise DecodeError(f"{len(wanted)} codings, one inside the other: {', '.join(wanted)[:80]}")
    coding: Coding | None = None
    for name in wanted:  # the last one applied is undone first
        coding = _one(name) if coding is None else _Chain(_one(name), coding)
    return coding


def _one(name: str) -> Coding:
    if name in _GZIP_NAMES:
        return _Gzip()
    if name == "deflate":
        return _Deflate()
    if name == "br":
        return _Brotli()
    return _Unknown(name)


def looks_like_text(data: bytes) -> bool:
    """Are the first bytes those of a readable text (in any encoding that extends ASCII)?"""
    return not data[:1024].translate(None, _TEXT)


class _Chain:
    """Two codings, one inside the other."""

    def __init__(self, outer: Coding, inner: Coding) -> None:
        self._outer, self._inner = outer, inner

    @property
    def whole(self) -> bool:
        return self._outer.whole and self._inner.whole

    def feed(self, data: bytes) -> Iterator[bytes]:
        for piece in self._outer.feed(data):
            yield from self._inner.feed(piece)


class _Unknown:
    """A name that we do not know: no coding if the bytes read as text, beyond us if they do not."""

    whole = True

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not self._begun and not looks_like_text(data):
            raise DecodeError(f"content coding {self._name[:40]!r} was not offered and cannot be undone")
        self._begun = True
        yield data


class _Deflate:
    """zlib's format (RFC 1950), as the standard says, or raw DEFLATE (RFC 1951), as some servers send; or plain text.
    zlib's two bytes of header tell (CM is 8, the pair a multiple of 31), unless a raw stream begins so by chance: until
    the first byte comes out, what was read is kept and read anew. Both are inflated raw: zlib's reader would throw away
    the last piece over a wrong checksum, and the checksum itself (Adler-32) is not looked at."""

    def __init__(self) -> None:
        self._head = b""  # all that was fed, until something comes out
        self._inflate: zlib._Decompress | None = None
        self._plain = False
        self._broken = False
        self._given = False

    @property
    def whole(self) -> bool:
        if self._plain:
            return True
        return not self._head if self._inflate is None else self._inflate.eof and not self._broken

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._plain:
            yield data
        elif self._given and self._inflate is not None:
            yield from self._inflated(self._inflate, data)
        else:
            yield from self._begin(data)

    def _begin(self, data: bytes) -> Iterator[bytes]:
        self._head += data
        if len(self._head) < 2:
            return
        wrapped = self._head[0] & 0x0F == 8 and (self._head[0] << 8 | self._head[1]) % 31 == 0
        for skip in (2, 0) if wrapped else (0,):
            self._broken = False
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            yield from self._inflated(self._inflate, self._head[skip:])
            if self._given:
                self._head = b""
                return
            if not self._broken and len(self._head) < _LONGEST_SILENCE:
                return
        if not looks_like_text(self._head):
            raise DecodeError("not deflate, whatever its label says")
        self._plain = True
        yield self._head

    def _inflated(self, inflate: zlib._Decompress, data: bytes) -> Iterator[bytes]:
        more = bool(data)
        while more and not self._broken and not inflate.eof:
            try:
                piece = inflate.decompress(data, PIECE_BYTES)
            except zlib.error:
                self._broken = True
                return
            data = inflate.unconsumed_tail
            more = bool(data) or len(piece) == PIECE_BYTES  # a full piece: zlib may hold more, with all input taken
            if piece:
                self._given = True
                yield piece


class _Gzip:
    """Any number of members (RFC 1952). The header is read here and the rest inflated raw, because zlib's own gzip
    reader throws away what it decoded when the checksum at the end does not hold."""

    def __init__(self) -> None:
        self._head = b""  # of a member, or what may become one
        self._inflate: zlib._Decompress | None = None
        self._trailer: bytes | None = None  # of the member just ended, as far as it came
        self._crc = 0
        self._size = 0
        self._members = 0
        self._plain = False
        self._over = False  # what follows is no member: garbage
        self._broken = False

    @property
    def whole(self) -> bool:
        if self._plain:
            return True
        done = self._inflate is None and self._trailer is None and (self._members > 0 or not self._head)
        return done and not self._broken

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._over:
            if self._plain:
                yield data
                return
            if self._inflate is not None:
                data = yield from self._inflated(self._inflate, data)
            elif self._trailer is not None:
                data = self._checked(self._trailer + data)
            else:
                head, data = self._head + data, b""
                self._head = b""
                length = _gzip_header(head)
                if length is None:
                    if len(head) > _LONGEST_GZIP_HEADER:
                        raise DecodeError("a gzip header without end")
                    self._head = head
                elif length:
                    self._inflate, self._crc, self._size = zlib.decompressobj(-zlib.MAX_WBITS), 0, 0
                    data = head[length:]
                elif self._members:
                    self._over = True
                else:
                    self._plain, data = True, head

    def _inflated(self, inflate: zlib._Decompress, data: bytes) -> Generator[bytes, None, bytes]:
        """Decoded pieces of this member; returns the bytes that follow it."""
        more = True
        while more:
            try:
                piece = inflate.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                self._over = self._broken = True
                if not self._size and not self._members:
                    raise DecodeError(f"broken gzip: {error}") from None
                return b""
            data = inflate.unconsumed_tail
            more = bool(data) or len(piece) == PIECE_BYTES
            if piece:
                self._crc = zlib.crc32(piece, self._crc)
                self._size += len(piece)
                yield piece
            if inflate.eof:
                self._inflate, self._trailer = None, b""
                self._members += 1
                return inflate.unused_data
        return b""

    def _checked(self, data: bytes) -> bytes:
        """Checks a member's trailer, once it is complete; returns the bytes that follow it."""
        if len(data) < 8:
            self._trailer = data
            return b""
        self._trailer = None
        crc, size = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
        if crc != self._crc or size != self._size & 0xFFFF_FFFF:
            self._broken = True
        return data[8:]


def _gzip_header(data: bytes) -> int | None:
    """The length of the member header that `data` begins with; 0 if it begins with none; None if more is needed."""
    if not b"\x1f\x8b\x08".startswith(data[:3]):
        return 0
    if len(data) < 10:
        return None
    flags, at = data[3], 10
    if flags & 4:  # FEXTRA
        if len(data) < at + 2:
            return None
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):  # FNAME, FCOMMENT: each ends with a zero byte
        if flags & flag:
            at = data.find(b"\0", at) + 1
            if not at:
                return None
    at += 2 if flags & 2 else 0  # FHCRC
    return at if len(data) >= at else None


class _Brotli:
    """RFC 7932, windows up to 16 MiB (the library's large-window extension stays off). There is no magic and no
    checksum: what cannot be decoded from the start is plain if it reads as text."""

    def __init__(self) -> None:
        self._head = b""  # all that was fed, until something comes out
        self._decompressor = brotli.Decompressor()
        self._given = False
        self._begun = False
        self._plain = False
        self._broken = False

    @property
    def whole(self) -> bool:
        if self._plain or not self._begun:
            return True
        return not self._broken and bool(self._decompressor.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._plain:
            yield data
            return
        rest, self._begun = data, True
        if not self._given and len(self._head) < _LONGEST_SILENCE:
            self._head += data
        while not (self._broken or self._decompressor.is_finished()):
            try:
                piece = self._decompressor.process(rest, output_buffer_limit=PIECE_BYTES)
            except brotli.error as error:
                self._broken = True
                if not self._given:
                    if not looks_like_text(self._head):
                        raise DecodeError(f"not brotli, whatever its label says: {error}") from None
                    self._plain = True
                    yield self._head
                return
            rest = b""
            if piece:
                self._given, self._head = True, b""
                yield piece
            elif self._decompressor.can_accept_more_data():
                return
