"""What is remembered of the body last seen: enough to ask "has it changed?", and to know that it has.

Owns the fields `etag`, `last_modified`, `digest`, `size_bytes`, `changed_at` and `fresh_until_at` of an entry. They
speak of one body, the one that the outputs hold: a page replaces them all, a 304 keeps the body and merges what it says
of it, and when the document is deleted they go together, because a validator without its body would turn a later 304
into a page that nobody has.

Validators are opaque and kept byte for byte. The digest is of the decoded body, so that a change of content coding is
no change. Refuses to know statuses, schedules, and how a body was obtained.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

from comity import headers
from comity.model import Entry, NotModified, Page

Facts: TypeAlias = dict[str, Any]
"""Fields of an entry, by name."""

NONE: Facts = {"etag": None, "last_modified": None, "digest": None, "size_bytes": None, "fresh_until_at": None}
"""There is no body any more. When it last changed stays known."""

STALE: Facts = {"fresh_until_at": None}
"""The body is the one before; that it is fresh is no longer anybody's word."""


def seen(entry: Entry, page: Page, *, now: float, fresh_max_s: float) -> Facts:
    """After a page. A first body counts as changed now (B169)."""
    etag, last_modified = headers.validators(page.headers)
    digest = hashlib.sha256(page.body).hexdigest()
    return {
        "etag": etag,
        "last_modified": last_modified,
        "digest": digest,
        "size_bytes": len(page.body),
        "changed_at": entry.changed_at if digest == entry.digest else now,
        "fresh_until_at": headers.fresh_until_at(page.headers, now, cap_s=fresh_max_s),
    }


def confirmed(entry: Entry, answer: NotModified, *, now: float, fresh_max_s: float) -> Facts:
    """After a 304 (RFC 9111 3.2, 4.3.4): what it says replaces what we had, what it leaves out stays.

    A strong ETag that is not ours speaks of another body (CND-3). Ours stays, but will be asked for without conditions.
    """
    etag, last_modified = headers.validators(answer.headers)
    if etag is not None and entry.etag is not None and not etag.startswith("W/"):
        if etag != entry.etag.removeprefix("W/"):
            return {"etag": None, "last_modified": None, "fresh_until_at": None}
    return {
        "etag": etag or entry.etag,
        "last_modified": last_modified or entry.last_modified,
        "fresh_until_at": headers.fresh_until_at(answer.headers, now, cap_s=fresh_max_s),
    }
