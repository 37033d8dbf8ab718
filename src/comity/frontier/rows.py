"""An entry as a row of a table, and back.

A row is a few hot columns (what statements look at) and one `tail`: everything else, as a msgpack array. It owns the
mapping and its history. Invariant: every field of `Entry` is in a column or in the tail; a test fills them all and
compares, so a field added to `Entry` cannot be forgotten here.

Why one tail: a row of fourteen columns costs 2.8 µs to read, a tail 0.3 to 0.8 µs to decode, and pages touched are
what a visit costs (measured). The array is a fifth smaller than a map, and can only grow at its end: add fields there,
with defaults, and never move one. `form` says how the array is to be read, should that ever change.

It refuses to know which store the rows are of; enum numbers become members by table, as calling an enum is slow.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from comity.frontier.contract import FEED, SITEMAP, flags
from comity.model import Cause, Entry, Failure, HostState, Mark, Metadata, PastVisit, Status

Row: TypeAlias = tuple[Any, ...]
"""hash, seq, url, key, status, cause, due_at, version, depth, flags, rules, tail: as the statements select them."""

STATUSES = tuple(Status)
CAUSES: dict[int | None, Cause | None] = {None: None, **{cause.value: cause for cause in Cause}}
STATUS_NUMBERS = {status: status.value for status in Status}
CAUSE_NUMBERS: dict[Cause | None, int | None] = {None: None, **{cause: cause.value for cause in Cause}}


class Tail(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The cold fields of `Entry`, by the same names. Append only."""

    form: int = 1
    discovered_at: float = 0.0
    hops: int = 0
    via: str | None = None
    hint_at: float | None = None
    failure: Failure | None = None
    detail: str | None = None
    errors: int = 0
    first_error_at: float | None = None
    visited_at: float | None = None
    http_status: int | None = None
    redirect_to: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    fresh_until_at: float | None = None
    digest: str | None = None
    changed_at: float | None = None
    next_rule: str | None = None
    metadata: Metadata = {}
    history: tuple[PastVisit, ...] = ()
    place: str | None = None
    size_bytes: int | None = None
    chain: tuple[str, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode_tail = msgspec.msgpack.Decoder(Tail).decode
_decode_state = msgspec.msgpack.Decoder(HostState).decode
_decode_mark = msgspec.msgpack.Decoder(Mark).decode
NEVER_ASKED = HostState()


def tail(e: Entry) -> bytes:
    return _encode(
        Tail(
            1,
            e.discovered_at,
            e.hops,
            e.via,
            e.hint_at,
            e.failure,
            e.detail,
            e.errors,
            e.first_error_at,
            e.visited_at,
            e.http_status,
            e.redirect_to,
            e.etag,
            e.last_modified,
            e.fresh_until_at,
            e.digest,
            e.changed_at,
            e.next_rule,
            e.metadata,
            e.history,
            e.place,
            e.size_bytes,
            e.chain,
        )
    )


def entry(row: Row, host: str) -> Entry:
    _, seq, url, key, status, cause, due_at, version, depth, bits, rules, rest = row
    t = _decode_tail(rest)
    return Entry(
        url,
        url if key is None else key,
        host,
        STATUSES[status],
        due_at,
        seq,
        version,
        t.discovered_at,
        depth,
        t.hops,
        t.via,
        bits & SITEMAP != 0,
        bits & FEED != 0,
        t.hint_at,
        CAUSES[cause],
        t.failure,
        t.detail,
        t.errors,
        t.first_error_at,
        t.visited_at,
        t.http_status,
        t.redirect_to,
        t.etag,
        t.last_modified,
        t.fresh_until_at,
        t.digest,
        t.changed_at,
        t.next_rule,
        rules,
        t.metadata,
        t.history,
        t.place,
        t.size_bytes,
        t.chain,
    )


def changing(e: Entry) -> tuple[int, int | None, float | None, int, int, str | None, bytes]:
    """What a visit may change, but for the version: status, cause, due_at, depth, flags, rules, tail."""
    return STATUS_NUMBERS[e.status], CAUSE_NUMBERS[e.cause], e.due_at, e.depth, flags(e), e.rules_digest, tail(e)


def state(blob: bytes | None) -> HostState:
    return NEVER_ASKED if blob is None else _decode_state(blob)


def mark(blob: bytes) -> Mark:
    return _decode_mark(blob)


def packed(value: HostState | Mark) -> bytes:
    return _encode(value)
