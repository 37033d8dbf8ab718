"""The row: what one visit looks like to the people and programmes that use a crawl's results.

Owns: the names, types and meanings of the fields (`COLUMNS`, the source of docs/outputs.md), and the field filter.

Invariant: every row of a version has the same fields in the same order, `null` when absent, so that a reader never
has to ask whether a field exists; only the filter (`Fields`) leaves fields out, and it leaves them out of every row.
A field's name and meaning never change within a version; new fields come at the end.

Why one row per *visit* and not per page: a 304, a refusal and an error are facts too, and a reader that wants the
last page of each URL keeps the row with the greatest `version` per `id`.

Refuses to know: files, batches, who reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from comity.model import Deletion, HttpError, NotModified, Page, Redirect, Visit
from comity.url import document_id

VERSION = 1

Body: TypeAlias = Literal["none", "text", "html"]
Row: TypeAlias = dict[str, Any]


class Column(NamedTuple):
    name: str
    type: str
    meaning: str


COLUMNS = (
    Column("v", "integer", "version of this table: 1"),
    Column("id", "string", "the document's id in every output: SHA-256 of `key`, in hex"),
    Column("url", "string", "the URL that was asked for, in the first spelling seen"),
    Column("key", "string", "the form of the URL that is compared: one document per key"),
    Column("host", "string", "the host key, the unit of politeness"),
    Column("at", "number", "when the visit ended: seconds since 1970-01-01T00:00:00Z"),
    Column("status", "string", "DISCOVERED, FETCHED, REDIRECTION, FETCH_ERROR or ERROR: what the URL became"),
    Column("cause", "string or null", "why it is ERROR: robots, max_errors, gone, scope, …"),
    Column("failure", "string or null", "what this attempt met: http_404, timeout_connect, dns, …"),
    Column("detail", "string or null", "the failure in words"),
    Column("http_status", "integer or null", "the status code of this visit's answer; null when there was none"),
    Column("redirect_to", "string or null", "where a redirect leads, resolved; as received if it names no URL"),
    Column("depth", "integer", "links from a seed; redirects add none"),
    Column("hops", "integer", "redirects in a row before this URL"),
    Column("via", "string or null", "the page that named this URL; null for a seed"),
    Column("kind", "string or null", "what the body was read as: html, sitemap, sitemapindex, text, other, …"),
    Column("media_type", "string or null", "of the body, as declared or found out"),
    Column("charset", "string or null", "the encoding the text was read in"),
    Column("language", "string or null", "as the page declares it"),
    Column("title", "string or null", "of the page"),
    Column("canonical", "string or null", "the URL the page calls its canonical one"),
    Column("noindex", "boolean or null", "the page asks not to be indexed; null when no page was read"),
    Column("links", "integer or null", "links found in the page, those beyond the limit included"),
    Column("truncated", "string or null", "why the body is not whole: length, unasked_206, …"),
    Column("digest", "string or null", "SHA-256 of the last body seen of this URL, decoded, in hex"),
    Column(
        "bytes", "integer or null", "body bytes received by this visit, before content decoding; null: nothing asked"
    ),
    Column("changed", "boolean or null", "did the body differ from the visit before? null: not known"),
    Column("metadata", "object", "your own metadata: each key with a list of strings"),
    Column("next_at", "number or null", "when the URL is visited next; null: never again by itself"),
    Column("next_rule", "string or null", "the named rule that set `next_at`"),
    Column("version", "integer", "grows with every visit of this URL: the greatest is the newest"),
    Column("deleted", "boolean", "false; true in a deletion row"),
    Column("text", "string or null", 'the visible text; absent with `body = "none"`'),
    Column("html", "string or null", 'the body as text; present only with `body = "html"`'),
)

DELETION_COLUMNS = (
    Column("v", "integer", "version of this table: 1"),
    Column("deleted", "boolean", "true: remove the document with this id"),
    Column("id", "string", "the document's id"),
    Column("url", "string", "its URL"),
    Column("at", "number", "when it was decided: seconds since 1970-01-01T00:00:00Z"),
    Column("cause", "string or null", "why: gone, max_errors, robots, …; null: removed by the operator"),
    Column("version", "integer", "later than every row of the document up to then"),
)

REQUIRED = frozenset({"v", "id", "deleted"})  # without these a row cannot be understood or undone
NAMES = frozenset(column.name for column in COLUMNS)


# Both patterns are bounded in every repetition, so that no page can make them slow.
_EMAIL = re.compile(r"[\w.%+\-]{1,64}@(?:[\w\-]{1,63}\.){1,8}[^\W\d_]{2,24}")
_PHONE = re.compile(
    r"(?<![\w.,/-])(?:"
    r"\(?\+\d{1,3}(?:[ .()/-]{0,3}\d){6,13}"  # international
    r"|00[1-9]\d?(?:[ .()/-]{0,3}\d){7,13}"  # international, dialled
    r"|\(?0\d{1,4}\)?(?:[ .()/-]{0,3}\d){6,9}"  # national, with the trunk zero
    r"|\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}"  # 3-3-4
    r"|1[3-9]\d[ -]?\d{4}[ -]?\d{4}"  # mobile, eleven digits
    r")(?![\w-])"
)
MASKS = {"email": (_EMAIL, "[email]"), "phone": (_PHONE, "[phone]")}


@dataclass(frozen=True)
class Fields:
    """The field filter: which fields a row has, and what is masked in its texts (`title`, `text`, `html`)."""

    body: Body = "text"
    drop: frozenset[str] = frozenset()
    mask: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if unknown := self.drop - NAMES:
            raise ValueError(f"no such field: {', '.join(sorted(unknown))}")
        if needed := self.drop & REQUIRED:
            raise ValueError(f"these fields cannot be dropped: {', '.join(sorted(needed))}")
        if unknown := self.mask - MASKS.keys():
            raise ValueError(f"no such mask: {', '.join(sorted(unknown))}")


ALL = Fields()


def row(visit: Visit, fields: Fields = ALL) -> Row:
    """One visit as a flat dictionary, ready for JSON: fields as in `COLUMNS`, minus what `fields` leaves out."""
    before, after, outcome, found = visit.entry, visit.after, visit.outcome, visit.found
    cause = after.cause
    result: Row = {
        "v": VERSION,
        "id": document_id(after.key),
        "url": after.url,
        "key": after.key,
        "host": after.host,
        "at": visit.at,
        "status": after.status.name,
        "cause": None if cause is None else cause.word,
        "failure": after.failure,
        "detail": after.detail,
        "http_status": http_status(visit),
        "redirect_to": (outcome.target or outcome.location) if isinstance(outcome, Redirect) else None,
        "depth": after.depth,
        "hops": after.hops,
        "via": after.via,
        "kind": None,
        "media_type": None,
        "charset": None,
        "language": None,
        "title": None,
        "canonical": None,
        "noindex": None,
        "links": None,
        "truncated": outcome.truncated if isinstance(outcome, Page) else None,
        "digest": after.digest,
        "bytes": None if visit.wire is None else visit.wire.body_bytes,
        "changed": changed(visit),
        "metadata": after.metadata,
        "next_at": after.due_at,
        "next_rule": after.next_rule,
        "version": max(after.version, before.version + 1),  # the frontier counts it up in the settle that follows
        "deleted": False,
    }
    if found is not None:
        result["kind"] = found.kind
        result["media_type"] = found.media_type
        result["charset"] = found.charset
        result["language"] = found.language
        result["title"] = found.title
        result["canonical"] = found.canonical
        result["noindex"] = found.directives.noindex
        result["links"] = len(found.links) + found.links_left_out
    if fields.body != "none":
        result["text"] = None if found is None else found.text
        if fields.body == "html":
            result["html"] = _html(visit)
    for name in fields.mask:
        pattern, instead = MASKS[name]
        for field in ("title", "text", "html"):
            if text := result.get(field):
                result[field] = pattern.sub(instead, text)
    for name in fields.drop:
        result.pop(name, None)
    return result


def deletion_row(deletion: Deletion, fields: Fields = ALL) -> Row:
    """A deletion as a dictionary: fields as in `DELETION_COLUMNS`, minus what `fields` leaves out."""
    result: Row = {
        "v": VERSION,
        "deleted": True,
        "id": deletion.id,
        "url": deletion.url,
        "at": deletion.at,
        "cause": None if deletion.cause is None else deletion.cause.word,
        "version": deletion.version,
    }
    for name in fields.drop:
        result.pop(name, None)
    return result


def http_status(visit: Visit) -> int | None:
    """The code of this visit's answer (`Entry.http_status` may remember an older one)."""
    match visit.outcome:
        case Page(status=status) | Redirect(status=status) | HttpError(status=status):
            return status
        case NotModified():
            return 304
        case _:
            return None


def changed(visit: Visit) -> bool | None:
    """Did the body differ from the visit before? Read from the history line this visit added, if it added one."""
    past = visit.after.history
    return past[-1].changed if past and past != visit.entry.history else None


def _html(visit: Visit) -> str | None:
    if not isinstance(visit.outcome, Page):
        return None
    charset = visit.found.charset if visit.found is not None else None
    try:
        return visit.outcome.body.decode(charset or "utf-8", "replace")
    except LookupError:  # a name that Python does not know
        return visit.outcome.body.decode("utf-8", "replace")


def table(columns: tuple[Column, ...], second: str = "type") -> str:
    """A Markdown table, as printed in docs/outputs.md."""
    lines = [f"| field | {second} | meaning |", "|---|---|---|"]
    lines += [f"| `{column.name}` | {column.type} | {column.meaning} |" for column in columns]
    return "\n".join(lines) + "\n"
