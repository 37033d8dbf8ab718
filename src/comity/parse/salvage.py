"""What can be saved of a sitemap that is not well-formed.

Owns a reading of XML that no mistake can stop: it looks for the few tags that matter, in order, and takes the text
between them. Tags may be left open, closed twice or out of order; the file may end anywhere. An entry ends where it is
closed or where the next one begins, and a text counts only if a tag ends it, so that nothing half is taken for whole.

Only for files that the XML parser refused. Refuses to know namespaces beyond prefixes: a tag counts if its prefix is
the root's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

_MAX_TOKENS = 1_000_000
"""Fifty thousand entries have six tags each; what has many times that is written to be read for ever."""

_TOKEN = re.compile(
    rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)"
    rb"|<(?P<end>/?)(?:(?P<prefix>[\w.\-]+):)?(?P<name>urlset|sitemapindex|url|sitemap|loc|lastmod)(?=[\s/>])[^<>]*>?",
    re.DOTALL | re.IGNORECASE,
)
_TEXT = re.compile(rb"[^<]*+(?:<!\[CDATA\[.*?\]\]>[^<]*+)*+(?=<)", re.DOTALL)
_CDATA = re.compile(rb"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_REFERENCE = re.compile(r"&(?:#(?:[xX]([0-9A-Fa-f]{1,6})|([0-9]{1,7}))|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


class Entry(NamedTuple):
    loc: str
    lastmod: str | None


def entries(data: bytes, entry: str) -> Iterator[Entry]:
    """The entries of a sitemap in UTF-8; `entry` is "url" or "sitemap"."""
    wanted = entry.encode()
    loc: str | None = None
    lastmod: str | None = None
    prefix: bytes | None = None
    in_root = inside = False
    for token in islice(_TOKEN.finditer(data), _MAX_TOKENS):
        name = token["name"]
        if name is None:
            continue
        name = name.lower()
        if name in {b"urlset", b"sitemapindex"}:
            in_root, prefix = True, token["prefix"]
            continue
        if in_root and token["prefix"] != prefix:
            continue
        if name == wanted:
            if loc:
                yield Entry(loc, lastmod)
            loc = lastmod = None
            inside = not token["end"]
        elif inside and not token["end"] and name in {b"loc", b"lastmod"}:
            text = _text(data, token.end())
            if name == b"loc" and loc is None:
                loc = text
            elif name == b"lastmod" and lastmod is None:
                lastmod = text
    if loc:
        yield Entry(loc, lastmod)


def _text(data: bytes, start: int) -> str | None:
    found = _TEXT.match(data, start)
    if found is None:
        return None
    pieces = _CDATA.split(found[0])  # text and marked sections in turn
    return "".join(
        piece.decode("utf-8", "replace") if number % 2 else _decoded(piece.decode("utf-8", "replace"))
        for number, piece in enumerate(pieces)
    )


def _decoded(text: str) -> str:
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    if found[3]:
        return _NAMED[found[3]]
    code = int(found[1], 16) if found[1] else int(found[2])
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
