"""Which reader a body gets.

Owns the choice between what a server says a body is and what it looks like. A media type is believed where it says
something: `text/html` is HTML and `text/plain` never is (HTML-9). XML is known by its root, since sitemaps, XHTML and
feeds share the type. Only "no type" and "some file" are decided by the first bytes alone, and of the latter only
sitemaps are read, which many servers send so. A page known to be a sitemap is one unless it is plainly HTML: a child of
an index that turned into a page is a page (B139).

Refuses to read more than the beginning.
"""

from __future__ import annotations

import re
from typing import Literal

from comity.parse.inflate import GZIP, beginning

Reader = Literal["html", "xhtml", "sitemap", "text", "other"]
Category = Literal["html", "xhtml", "sitemap", "xml", "gzip", "text", "binary", "empty"]

_HEAD_BYTES = 4_096
_FAR_BYTES = 65_536
_HTML = frozenset({"text/html"})
_XHTML = frozenset({"application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_XML = frozenset({"text/xml", "application/xml", "application/x-xml"})
_TEXT = frozenset({"text/plain", "text/markdown"})
_SOME_FILE = frozenset(
    {"application/octet-stream", "application/gzip", "application/x-gzip", "application/x-download"}
    | {"binary/octet-stream", "application/force-download", "application/unknown", "unknown/unknown"}
)

_BOM = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")
# What may stand before the root: white space, comments, instructions, a document type (its subset in brackets).
_PROLOG = re.compile(
    rb"(?:[\s]+|<!--.*?-->|<\?.*?\?>|<!DOCTYPE(?![\s]+html)[^\[>]*+(?:\[[^\]]*+\][^>]*+)?>)*", re.DOTALL | re.IGNORECASE
)
_SITEMAP_ROOT = re.compile(rb"<(?:[\w.\-]+:)?(?:urlset|sitemapindex)[\s/>]", re.IGNORECASE)
_HTML_ROOT = re.compile(
    rb"<(?:!DOCTYPE[\s]+HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|B|BODY|BR|P)(?=[\s/>])",
    re.IGNORECASE,
)
_HTML_PAGE = re.compile(rb"<(?:!DOCTYPE[\s]+HTML|HTML)[\s>]", re.IGNORECASE)
_BINARY = re.compile(rb"[\x01-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def reader(media_type: str | None, body: bytes, *, known_sitemap: bool = False) -> Reader:
    """Who reads this body? `media_type` as `headers.content_type` gives it."""
    if known_sitemap:
        head = beginning(body[:_FAR_BYTES], _FAR_BYTES)  # comments may be long
        looks = category(head)
        if looks not in {"html", "xhtml"} or (_SITEMAP_ROOT.search(head) and not _HTML_PAGE.search(head)):
            return "sitemap"  # warnings of a script may stand before it
        return "xhtml" if looks == "xhtml" or media_type in _XHTML else "html"
    if media_type in _HTML:
        return "html"
    if media_type in _XHTML:
        return "xhtml"
    is_xml = media_type is not None and (media_type in _XML or media_type.endswith("+xml"))
    if not (media_type is None or is_xml or media_type in _TEXT or media_type in _SOME_FILE):
        return "other"
    looks = category(beginning(body[:_HEAD_BYTES], _HEAD_BYTES))
    if looks == "sitemap":
        return "sitemap"
    if media_type in _TEXT:
        return "text" if looks != "binary" and not body.startswith(GZIP) else "other"
    if is_xml:
        return "xhtml" if looks == "xhtml" and not str(media_type).endswith("+xml") else "other"
    if media_type is None and not body.startswith(GZIP):
        return {"html": "html", "xhtml": "xhtml", "text": "text"}.get(looks, "other")  # type: ignore[return-value]
    return "other"


def category(body: bytes) -> Category:
    """What a body looks like, by its beginning (MIME Sniffing 7.1, and the roots of XML)."""
    if body.startswith(GZIP):
        return "gzip"
    head = _in_ascii(body)
    start = _PROLOG.match(head)
    rest = head[start.end() :] if start is not None else head
    if _SITEMAP_ROOT.match(rest):
        return "sitemap"
    is_xml = head.lstrip().startswith(b"<?xml")
    if _HTML_ROOT.match(rest):
        return "xhtml" if is_xml else "html"
    if is_xml or re.match(rb"<[A-Za-z][\w.\-:]*[\s/>]", rest):
        return "xml"
    if not head.strip():
        return "empty"
    if rest[:9].upper() == b"<!DOCTYPE":
        return "xml"
    if rest.startswith((b"<!--", b"<!")):
        return "html"
    return "binary" if _BINARY.search(head) else "text"


def _in_ascii(head: bytes) -> bytes:
    """Without its mark; UTF-16 as if it were ASCII."""
    for mark in _BOM:
        if head.startswith(mark):
            head = head[len(mark) :]
            return head if mark == _BOM[0] else head.replace(b"\0", b"")
    return head.replace(b"\0", b"") if head[:4] in {b"<\0?\0", b"\0<\0?"} else head
