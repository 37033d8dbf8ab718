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
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from lxml import etree

from comity.headers import parse_date, parse_w3c_date
from comity.model import Link, LinkKind
from comity.parse import encoding, inflate, salvage
from comity.parse.html import LONGEST_URL
from comity.parse.sniff import category
from comity.url import InvalidUrl, Url, host_key, parse, resolve

_CHUNK = 65_536
_DAY_S = 86_400.0
_OURS = re.compile(r"https?://(?:www\.)?(?:sitemaps\.org|google\.com)/schemas/sitemap/", re.IGNORECASE)
_SPACES = " \t\r\n\f\v\x85\xa0\u1680\u180e\u2028\u2029\u202f\u205f\u3000\ufeff\u200b" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_NO_XML = bytes(byte for byte in range(32) if byte not in b"\t\n\r")
_MAX_REFERENCES = 2_000_000
_ENTITY_CHARACTER = "\uf8ff"  # stands for an entity, which is never read
_ENTITY = _ENTITY_CHARACTER.encode()
_REFERENCE = re.compile(
    rb"(<!\[CDATA\[.*?(?:\]\]>|\Z))|&(?!(?:#[0-9]+|#[xX][0-9A-Fa-f]+|amp|lt|gt|quot|apos);)([A-Za-z_][\w.\-]*;)?",
    re.DOTALL,
)
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:\-]{1,40})["']""")
_ROOT = re.compile(rb"<\?xml[\s]|<(?:[\w.\-]+:)?(?:urlset|sitemapindex)[\s/>]", re.IGNORECASE)
_ROOT_NAME = re.compile(rb"<(?:[\w.\-]+:)?(urlset|sitemapindex)[\s/>]", re.IGNORECASE)
_END = re.compile(rb"</(?:[\w.\-]+:)?(?:urlset|sitemapindex)\s*>", re.IGNORECASE)
_NAMES = ("urlset", "sitemapindex", "url", "sitemap", "loc", "lastmod")
_TAGS = tuple(f"{{*}}{form(name)}" for name in _NAMES for form in (str, str.upper))


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
        self.tried = 0

    @property
    def full(self) -> bool:
        return len(self.found) >= self.limit or self.tried >= 4 * self.limit

    def add(self, loc: str, lastmod: str | None = None) -> None:
        self.tried += 1
        loc = loc.strip(_SPACES)
        url = self._read(loc) if len(loc) <= LONGEST_URL and _ENTITY_CHARACTER not in loc else None
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
    data, cut = inflate.whole(body, max_bytes)
    looks = category(data[:_CHUNK])
    if looks == "gzip":
        return Listed("other", cut=cut, problem="not a sitemap: its gzip data cannot be read")
    if looks not in {"sitemap", "text", "empty"}:
        junk = _ROOT.search(data, 0, _CHUNK)  # warnings printed before it
        if junk is None or category(data[junk.start() : junk.start() + _CHUNK]) != "sitemap":
            what = {"xml": "XML of another kind", "xhtml": "an XHTML page", "html": "an HTML page"}
            return Listed("other", cut=cut, problem=f"not a sitemap: {what.get(looks, 'binary data')}")
        data = data[junk.start() :]
    name, data = _in_utf8(data, charset)
    if looks in {"text", "empty"}:
        listed = _text(data, _Entries(url, LinkKind.SITEMAP_URL, max_urls, per, now))
    else:
        listed = _xml(data, url, max_urls, per, now)
    return listed._replace(charset=name, cut=listed.cut or cut)


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
    left_out = 0
    for line in dict.fromkeys(re.split(r"[\r\n]+", data.decode("utf-8", "replace"))):
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
    data = data.translate(None, _NO_XML).lstrip()
    if data.count(b"&") <= _MAX_REFERENCES:
        data = _REFERENCE.sub(_only_characters, data)
    root = _ROOT_NAME.search(data)
    is_index = root is not None and root[1].lower() == b"sitemapindex"
    entry = "sitemap" if is_index else "url"
    entries = _Entries(url, LinkKind.SITEMAP if is_index else LinkKind.SITEMAP_URL, max_urls, per, now)
    problem: str | None = None
    left_out = 0
    try:
        fed = _parse(data, _Reading(entries, entry))
        left_out = data.count(b"<loc", fed) if entries.full else 0
    except (etree.XMLSyntaxError, ValueError) as error:
        problem = f"not well-formed ({error}); what can be read of it was"
        entries.found.clear()
        entries.tried = 0
        for loc, lastmod in salvage.entries(data, entry):
            if entries.full:
                left_out += 1
            else:
                entries.add(loc, lastmod)
    return Listed(
        "sitemapindex" if is_index else "sitemap",
        tuple(entries.found.values()),
        left_out,
        cut=problem is not None and _END.search(data, max(0, len(data) - _CHUNK)) is None,
        problem=problem,
    )


def _only_characters(found: re.Match[bytes]) -> bytes:
    """Marked sections stay, a bare ampersand is itself, and an entity of anybody's making is nothing."""
    if found[1] is not None:
        return found[1]
    return _ENTITY if found[2] is not None else b"&amp;"


def _parse(data: bytes, reading: _Reading) -> int:
    """Feeds the parser piece by piece, until the file or the room for URLs ends; says how far it came."""
    parser = etree.XMLPullParser(
        events=("start", "end"),
        tag=_TAGS,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
    )
    for start in range(0, len(data), _CHUNK):
        parser.feed(data[start : start + _CHUNK])
        reading.take(parser.read_events())
        if reading.entries.full:
            return start + _CHUNK
    parser.close()
    reading.take(parser.read_events())
    reading.flush()
    return len(data)


class _Reading:
    """Turns the parser's events into entries, and lets go of what was read."""

    def __init__(self, entries: _Entries, entry: str) -> None:
        self.entries, self.entry = entries, entry
        self.root: Any = None
        self.namespace: str | None = None
        self.inside = False
        self.loc: str | None = None
        self.lastmod: str | None = None

    def take(self, events: Iterator[Any]) -> None:
        for event, element in events:
            space, name = _name_of(element)
            if self.root is None:
                self.root, self.namespace = element.getroottree().getroot(), space
            if space and space != self.namespace and not _OURS.match(space):
                continue
            if name == self.entry:
                self.flush()
                self.inside = event == "start"
            elif event == "end" and self.inside:
                if name == "loc" and self.loc is None:
                    self.loc = _text_of(element)
                elif name == "lastmod" and self.lastmod is None:
                    self.lastmod = _text_of(element)
        self._forget()

    def flush(self) -> None:
        if self.loc:
            self.entries.add(self.loc, self.lastmod)
        self.loc = self.lastmod = None

    def _forget(self) -> None:
        """Only elements still open are needed: each is the last child of its parent."""
        node = self.root
        while node is not None and len(node):
            del node[:-1]
            node = node[-1]


def _name_of(element: Any) -> tuple[str, str]:
    tag: str = element.tag
    space, _, name = tag.rpartition("}")
    return space[1:], name.lower()


def _text_of(element: Any) -> str:
    """Its characters; none if it holds an element."""
    text: str | None = element.text
    return text if text is not None and len(element) == 0 else ""
