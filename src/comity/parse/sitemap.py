"""Sitemaps: what a site says it has, read leniently and in bounds.

Owns the three forms of sitemaps.org (url sets, indexes, lists of URLs in text), compressed or not (SMP-1 … SMP-8). The
files are written by many hands and few validate them: namespaces are wrong or missing, ends are cut off, tags are left
open, ampersands stand bare. Every complete `loc` counts, a `lastmod` belongs to the entry it stands in and a bad one
costs nothing but itself; a `loc` that is cut off, or that holds an entity, is no URL (SMP-12).

The XML parser is libxml2 in pieces: no entity is expanded, no document type or network is read, and each entry is
forgotten once read, so that memory follows the number of URLs and not the file. At most 50 MB after decompression and
50,000 URLs (SMP-2); beyond, what was read is kept.

Refuses to know which URLs may be listed where (the location rule is `scope`'s) and what a date is worth.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from lxml import etree

from comity.headers import parse_date, parse_w3c_date
from comity.model import Link, LinkKind
from comity.parse import encoding
from comity.parse.sniff import GZIP, category
from comity.url import InvalidUrl, Url, host_key, parse, resolve

_CHUNK = 65_536
_MAX_LAYERS = 2
_DAY_S = 86_400.0
_OURS = re.compile(r"https?://(?:www\.)?(?:sitemaps\.org|google\.com)/schemas/sitemap/", re.IGNORECASE)
_SPACES = " \t\r\n\f\v\x85\xa0\u1680\u180e\u2028\u2029\u202f\u205f\u3000\ufeff\u200b" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_NO_XML = bytes(byte for byte in range(32) if byte not in b"\t\n\r")
_BARE_AMPERSAND = re.compile(rb"&(?!(?:#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z_][\w.\-]*);)")
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:\-]{1,40})["']""")
_ROOT = re.compile(rb"<\?xml[\s]|<(?:[\w.\-]+:)?(?:urlset|sitemapindex)[\s/>]", re.IGNORECASE)
_TAGS = tuple(f"{{*}}{form(name)}" for name in ("url", "sitemap", "loc", "lastmod") for form in (str, str.upper))


class Listed(NamedTuple):
    """What a sitemap lists. `kind` is one of `Found.kind`'s: "other" if it is no sitemap, and `problem` says so."""

    kind: Literal["sitemap", "sitemapindex", "text_sitemap", "other"]
    links: tuple[Link, ...] = ()
    left_out: int = 0
    charset: str | None = None
    cut: bool = False
    problem: str | None = None


class _Entries:
    """The URLs of one file, in order, each once."""

    def __init__(self, url: Url, kind: LinkKind, limit: int, per: Literal["host", "domain"], now: float) -> None:
        self.url, self.kind, self.limit, self.per, self.now = url, kind, limit, per, now
        self.found: dict[str, Link] = {}

    @property
    def full(self) -> bool:
        return len(self.found) >= self.limit

    def add(self, loc: str, lastmod: str | None = None) -> None:
        url = self._read(loc.strip(_SPACES))
        if url is not None and url.key not in self.found and not self.full:
            href = url.href.partition("#")[0]
            at = _instant(lastmod, self.now) if lastmod else None
            self.found[url.key] = Link(href, url.key, host_key(url.host, self.per), self.kind, hint_at=at)

    def _read(self, loc: str) -> Url | None:
        if not loc:
            return None
        if "://" not in loc[:12]:
            place = loc.partition("/")[0].lower()
            if place in {self.url.host, self.url.origin.partition("://")[2]}:  # only the scheme was forgotten
                loc = f"{self.url.scheme}://{loc}"
            return resolve(self.url, loc)
        try:
            return parse(loc)
        except InvalidUrl:
            return None


def read(
    body: bytes,
    url: Url,
    charset: str | None,
    *,
    max_bytes: int,
    max_urls: int,
    per: Literal["host", "domain"] = "host",
    now: float = 0.0,
) -> Listed:
    """Reads a sitemap found at `url`. `charset` is the HTTP field's; by `now`, a date after tomorrow is none."""
    data, cut = _decompressed(body, max_bytes)
    looks = category(data)
    if looks == "gzip":
        return Listed("other", cut=cut, problem="not a sitemap: its gzip data cannot be read")
    if looks not in {"sitemap", "text", "empty"}:
        junk = _ROOT.search(data, 0, _CHUNK)  # warnings printed before it
        if junk is None or category(data[junk.start() :]) != "sitemap":
            what = {"xml": "XML of another kind", "xhtml": "an XHTML page", "html": "an HTML page"}
            return Listed("other", cut=cut, problem=f"not a sitemap: {what.get(looks, 'binary data')}")
        data = data[junk.start() :]
    name, data = _in_utf8(data, charset)
    if looks in {"text", "empty"}:
        listed = _text(data, _Entries(url, LinkKind.SITEMAP_URL, max_urls, per, now))
    else:
        listed = _xml(data, url, max_urls, per, now)
    return listed._replace(charset=name, cut=listed.cut or cut)


def _decompressed(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    """(the file, was it cut?) out of at most two layers of gzip, each of any number of members (RFC 1952 2.2); what
    can be read of a damaged one."""
    cut = False
    for _ in range(_MAX_LAYERS):
        if not body.startswith(GZIP):
            break
        parts: list[bytes] = []
        room = max_bytes
        rest = body
        while rest.startswith(GZIP) and room > 0:
            member = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                while room > 0 and not member.eof and (part := member.decompress(rest, min(room, 1 << 20))):
                    parts.append(part)
                    room -= len(part)
                    rest = member.unconsumed_tail
            except zlib.error:
                cut = True
                break
            if not member.eof:
                cut = True
                break
            rest = member.unused_data
        if not parts:
            break
        body = b"".join(parts)
    return (body[:max_bytes], True) if len(body) > max_bytes else (body, cut)


def _in_utf8(data: bytes, charset: str | None) -> tuple[str, bytes]:
    """Valid UTF-8 is UTF-8, whatever is said of it; else what the declaration or the field says."""
    declared = _DECLARED.match(data)
    name, mark = encoding.detect(data, None if mark_of(data) else "utf-8")
    if not mark and data[:2] in {b"<\0", b"\0<"}:
        name = "utf-16le" if data[:1] == b"<" else "utf-16be"
    elif not mark and not encoding.is_utf8(data):
        said = encoding.name_of(declared[1].decode("ascii")) if declared is not None else None
        name = said if said not in {None, "utf-8"} else encoding.name_of(charset) or "utf-8"
        if name == "utf-8":
            name = "windows-1252"
    data = data[mark:]
    return name, data if name == "utf-8" else encoding.decode(data, name).encode("utf-8", "replace")


def mark_of(data: bytes) -> bool:
    return data.startswith((b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe"))


def _instant(text: str, now: float) -> float | None:
    read_at = parse_w3c_date(text)
    at = read_at[0] if read_at is not None else parse_date(text, now)
    return at if at is not None and at <= now + _DAY_S else None


def _text(data: bytes, entries: _Entries) -> Listed:
    lines = re.split(r"[\r\n]+", data.decode("utf-8", "replace"))
    left_out = 0
    for line in lines:
        line = line.strip(_SPACES)
        if line[:8].lower().startswith(("http://", "https://")) or line.lower().startswith(f"{entries.url.host}/"):
            if entries.full:
                left_out += 1
            else:
                entries.add(line)
    if not entries.found:
        return Listed("other", problem="not a sitemap: no URL in it")
    return Listed("text_sitemap", tuple(entries.found.values()), left_out)


def _xml(data: bytes, url: Url, max_urls: int, per: Literal["host", "domain"], now: float) -> Listed:
    data = _BARE_AMPERSAND.sub(b"&amp;", data.translate(None, _NO_XML).lstrip())
    root = re.search(rb"<(?:[\w.\-]+:)?(urlset|sitemapindex)[\s/>]", data, re.IGNORECASE)
    is_index = root is not None and root[1].lower() == b"sitemapindex"
    entries = _Entries(url, LinkKind.SITEMAP if is_index else LinkKind.SITEMAP_URL, max_urls, per, now)
    parser = etree.XMLPullParser(
        events=("start", "end"),
        tag=_TAGS,
        recover=True,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
    )
    whole = re.search(rb"</(?:[\w.\-]+:)?(?:urlset|sitemapindex)\s*>", data[-_CHUNK:], re.IGNORECASE) is not None
    reading = _Reading(entries, "sitemap" if is_index else "url")
    fed = 0
    problem: str | None = None
    try:
        for fed in range(0, len(data), _CHUNK):
            parser.feed(data[fed : fed + _CHUNK])
            reading.take(parser.read_events())
            if entries.full:
                break
        else:
            parser.close()
            reading.take(parser.read_events(), complete=whole or b"</" in data[data.rfind(b"<loc") :])
    except (etree.XMLSyntaxError, ValueError, AssertionError) as error:
        problem = str(error)
    reading.flush()
    if problem is None and len(parser.error_log) > 0:
        first = parser.error_log[0]
        problem = f"line {first.line}: {first.message}"
    left_out = data.count(b"<loc", fed + _CHUNK) if entries.full else 0
    return Listed(
        "sitemapindex" if is_index else "sitemap",
        tuple(entries.found.values()),
        left_out,
        cut=not whole,
        problem=f"not well-formed ({problem}); what could be read was" if problem else None,
    )


class _Reading:
    """Turns the parser's events into entries. An entry ends where it is closed, or where the next one begins."""

    def __init__(self, entries: _Entries, entry: str) -> None:
        self.entries, self.entry = entries, entry
        self.inside = False
        self.loc: str | None = None
        self.lastmod: str | None = None
        self.namespace: str | None = None

    def take(self, events: Iterator[Any], *, complete: bool = True) -> None:
        pending = list(events)
        for number, (event, element) in enumerate(pending):
            if not self._is_ours(element):
                continue
            name = etree.QName(element).localname.lower()
            if name == self.entry:
                self.flush()
                self.inside = event == "start"
                if event == "end":
                    _forget(element)
            elif event == "end" and self.inside and name in {"loc", "lastmod"}:
                if not complete and name == "loc" and not any(_is_loc(later) for later in pending[number + 1 :]):
                    continue  # the file ends inside it
                text = _text_of(element)
                if name == "loc" and self.loc is None:
                    self.loc = text
                elif name == "lastmod" and self.lastmod is None:
                    self.lastmod = text

    def flush(self) -> None:
        if self.loc:
            self.entries.add(self.loc, self.lastmod)
        self.loc = self.lastmod = None

    def _is_ours(self, element: Any) -> bool:
        namespace = etree.QName(element).namespace
        if not namespace or _OURS.match(namespace):
            return True
        root = element.getroottree().getroot()
        return bool(namespace == etree.QName(root).namespace)


def _is_loc(event: tuple[str, Any]) -> bool:
    return event[0] == "end" and etree.QName(event[1]).localname.lower() == "loc"


def _text_of(element: Any) -> str:
    """Its characters; none if it holds anything else (an entity, another element)."""
    text: str | None = element.text
    return text if text is not None and len(element) == 0 else ""


def _forget(element: Any) -> None:
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]
