"""What an HTML page holds: its links, its title, its words, and what it asks for.

Owns the reading of a page once it is a tree. The tree is the browser's (HTML Standard, by lexbor, scripting off), so
that a link is what a browser would make of it: nothing is found in comments, scripts or attributes that are not links,
`<noscript>` is markup, and a `<template>` is not yet part of the page (HTML-3, HTML-7).

One URL is one link, however often the page names it. It stands where it was first named, and it asks not to be
followed only if every one of its namings does: a page that also links plainly has said yes once (REL-1, D11). The
number of links is bounded; those beyond are counted, not kept.

Whatever is kept of a page is bounded, and so is the time: no pattern here goes back over what it has read, because one
page that makes a regular expression do so holds up every host (Python's hold the interpreter while they search).

Refuses to know whether a link will be followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from comity.model import Link, LinkKind
from comity.parse import encoding, nesting
from comity.parse.text import visible
from comity.url import Url, host_key, plain, resolve

ANCHOR, AREA = LinkKind.ANCHOR, LinkKind.AREA
Per = Literal["host", "domain"]
_SELECTOR = "a,area,base,link,iframe,frame,meta,title"
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"})
_PAGES = frozenset({"", "text/html", "application/xhtml+xml"})
_WHITE = "\t\n\f\r "
LONGEST_URL = 16_384
"""Characters. Nothing longer is kept or resolved against: twice what RFC 9110 4.1 wants supported. A long base would
otherwise stand in every link of the page."""
_LONGEST_TITLE = 4_096
_LONGEST_LANGUAGE = 64


class Read(NamedTuple):
    """What was read. `metas`: (name, content) of every meta element that has both."""

    links: tuple[Link, ...]
    links_left_out: int
    title: str | None
    text: str | None
    language: str | None
    charset: str
    canonical: str | None
    refresh: str | None
    metas: tuple[tuple[str, str], ...]
    deep: bool
    cut: bool


class Links:
    """Collects links in order, each URL once."""

    def __init__(self, page: Url, limit: int, per: Per) -> None:
        self.page, self.limit, self.per = page, limit, per
        self.found: dict[str, Link] = {}
        self.left_out: set[str] = set()

    def add(self, base: Url, reference: str, kind: LinkKind, nofollow: bool = False) -> str | None:
        """Resolves and keeps a reference, and returns it resolved. A link to the page itself names nothing new and is
        not kept."""
        if len(self.left_out) >= self.limit:  # no more is made of this page than a count of what it writes
            self.left_out.add(reference)
            return None
        href = plain(base, reference)
        if href is not None:
            key, host = href, base.host
        else:
            url = resolve(base, reference)
            if url is None:
                return None
            href, key, host = url.href, url.key, url.host
        if len(href) > LONGEST_URL:
            self.left_out.add(reference)
            return None
        if key == self.page.key:
            return href
        known = self.found.get(key)
        if known is None:
            if len(self.found) >= self.limit:
                self.left_out.add(key)
            else:
                asked = href if key is href or "#" not in href else href.partition("#")[0]
                self.found[key] = Link(asked, key, host_key(host, self.per), kind, nofollow)
        elif known.nofollow and not nofollow:
            self.found[key] = Link(known.url, known.key, known.host, known.kind)
        return href


def read(
    body: bytes,
    url: Url,
    charset: str | None,
    *,
    max_depth: int,
    max_links: int,
    per: Per,
    text: bool,
    xml: bool = False,
) -> Read:
    """Reads a page. `body` is no longer than it may be; `charset` is the HTTP field's; `xml`: it was sent as XHTML."""
    decoded = encoding.to_utf8(body, charset)
    bounded = nesting.bound(_as_html(decoded.data) if xml else decoded.data, max_depth)
    tree = LexborHTMLParser(bounded.data)
    references: dict[tuple[str, bool], LinkKind] = {}  # as written, once for each wish; a dict keeps their order
    metas: list[tuple[str, str]] = []
    base = url
    base_seen = False
    title: str | None = None
    refresh: str | None = None
    canonicals: list[str] = []
    for node in tree.css(_SELECTOR):
        tag = node.tag
        attributes = node.attributes
        if tag == "a" or tag == "area":
            reference = attributes.get("href") or attributes.get("xlink:href")
            if reference and not _is_here(reference):
                rel = attributes.get("rel")
                kind = ANCHOR if tag == "a" else AREA
                references.setdefault((reference, rel is not None and _says_no(rel)), kind)
        elif tag == "meta":
            content = attributes.get("content")
            if content is None:
                continue
            if name := attributes.get("name"):
                metas.append((name, content))
            elif refresh is None and (attributes.get("http-equiv") or "").lower() == "refresh":
                refresh = refresh_target(content)
        elif tag == "link":
            _read_link(node, attributes, references, canonicals)
        elif tag == "base":
            if not base_seen and attributes.get("href") is not None:
                base, base_seen = _base(url, attributes.get("href") or ""), True  # only the first one counts
        elif tag == "title":
            if title is None and _is_html(node):
                title = " ".join(node.text()[: 4 * _LONGEST_TITLE].split())[:_LONGEST_TITLE].rstrip()
        elif source := attributes.get("src"):
            if not _is_here(source):
                references.setdefault((source, False), LinkKind.FRAME)
    links = Links(url, max_links, per)
    respell = _speller(decoded.encoding)
    for (reference, nofollow), kind in references.items():
        links.add(base, respell(reference), kind, nofollow)
    target = links.add(base, respell(refresh), LinkKind.REFRESH) if refresh else None
    language = tree.root.attributes.get("lang") if tree.root is not None else None
    return Read(
        links=tuple(links.found.values()),
        links_left_out=len(links.left_out),
        title=title or None,
        language=(language or "").strip(_WHITE)[:_LONGEST_LANGUAGE] or None,
        charset=decoded.encoding,
        canonical=agreed(base, canonicals),
        refresh=target,
        metas=tuple(metas),
        deep=bounded.deep,
        cut=bounded.cut,
        text=visible(tree) if text else None,
    )


def _base(page: Url, href: str) -> Url:
    base = resolve(page, href)
    return base if base is not None and len(base.href) <= LONGEST_URL else page


def _read_link(
    node: LexborNode,
    attributes: dict[str, str | None],
    references: dict[tuple[str, bool], LinkKind],
    canonicals: list[str],
) -> None:
    reference, rel = attributes.get("href"), attributes.get("rel")
    if not reference or not rel:
        return
    rels = rel.lower().split()
    kind = kind_of(rels, attributes.get("type") or "")
    if kind is LinkKind.CANONICAL:
        parent = node.parent
        if parent is None or parent.tag not in {"head", "noscript"}:  # in the body it is anybody's (REL-2)
            return
        canonicals.append(reference)
    if kind is not None and not _is_here(reference):
        references.setdefault((reference, _says_no(rel)), kind)


def kind_of(rels: list[str] | tuple[str, ...], media_type: str) -> LinkKind | None:
    """What a link element or a Link field leads to, if to something worth asking for."""
    media_type = media_type.partition(";")[0].strip(_WHITE).lower()
    if "canonical" in rels:
        return LinkKind.CANONICAL
    if "next" in rels or "prev" in rels:
        return LinkKind.NEXT
    if "alternate" in rels and "stylesheet" not in rels:
        if media_type in _FEEDS:
            return LinkKind.FEED
        return LinkKind.ALTERNATE if media_type in _PAGES else None
    return None


def agreed(base: Url, references: list[str]) -> str | None:
    """The canonical URL, if all that the page says of it agree (REL-3)."""
    urls = [url for url in (resolve(base, reference) for reference in dict.fromkeys(references)) if url is not None]
    return urls[0].href if len({url.key for url in urls}) == 1 and len(urls[0].href) <= LONGEST_URL else None


_REFRESH = re.compile(
    r"[\t\n\f\r ]*+[0-9.]++(?:[\t\n\f\r ]*+[;,][\t\n\f\r ]*+|[\t\n\f\r ]++)"
    r"(?:url[\t\n\f\r ]*=[\t\n\f\r ]*)?(.*)",
    re.IGNORECASE | re.DOTALL,
)


def refresh_target(content: str) -> str | None:
    """Where a declared refresh leads, as written; None: to the page itself, or it is none (HTML Standard, "shared
    declarative refresh steps"; HTML-6)."""
    found = _REFRESH.match(content)
    if found is None:
        return None
    target = found[1]
    if target[:1] in {"'", '"'}:
        target = target[1:].partition(target[0])[0]
    return target.strip(_WHITE) or None


def _says_no(rel: str) -> bool:
    words = rel.lower().split()
    return "nofollow" in words or "ugc" in words or "sponsored" in words


def _is_here(reference: str) -> bool:
    """An empty reference, or a place on the page: no page of its own (HTML-5)."""
    if reference[:1] == "/":  # most are
        return False
    reference = reference.lstrip(_WHITE)
    return not reference or reference[0] == "#"


def _is_html(node: LexborNode) -> bool:
    """A title of the page, not of a drawing in it."""
    parent = node.parent
    return parent is None or parent.tag in {"head", "body", "html"}


def _speller(name: str) -> Callable[[str], str]:
    """How references are written in a page of that encoding (URL-4)."""
    if name == "utf-8":
        return str
    return lambda reference: encoding.encode_query(reference, name)


_EMPTY_TAG = re.compile(rb"""<([A-Za-z][^\s/><]*+)((?:[^<>"'/]++|/(?!>)|"[^"<]*+"|'[^'<]*+')*+)/>""")
_VOID = frozenset(b"area base br col embed frame hr img input link meta param source track wbr".split())
_CDATA = re.compile(rb"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)


def _as_html(data: bytes) -> bytes:
    """XHTML as HTML says it: an element closed in its own tag gets an end tag, without which `<script/>` would hide
    the rest of the page; marked sections become text. Not well-formed pages are read as far as HTML goes (HTML-8)."""

    def close(found: re.Match[bytes]) -> bytes:
        name = found[1]
        return found[0] if name.lower() in _VOID else b"<" + name + found[2] + b"></" + name + b">"

    def quote(found: re.Match[bytes]) -> bytes:
        return found[1].replace(b"&", b"&amp;").replace(b"<", b"&lt;")

    if b"<![CDATA[" in data:
        end = data.rfind(b"]]>") + 3  # one that is never closed is no marked section, and must not be looked for again
        data = _CDATA.sub(quote, data[:end]) + data[end:]
    return _EMPTY_TAG.sub(close, data) if b"/>" in data else data
