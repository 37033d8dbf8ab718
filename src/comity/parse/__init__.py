"""From a body to what was found in it.

Owns the choice of the reader: by the media type the server names, by the first bytes where it names none or says only
"some file", and by what the frontier knows (a URL that robots.txt or an index called a sitemap). A page is never taken
for a sitemap because it mentions one. Around every reader stand the same bounds (`Limits`) and the same reading of the
message's own fields: directives, Link, Refresh, language.

`read` is total: any bytes under any fields give a `Found`. A reader that fails is a bug of ours, and still gives one,
with the problem in words, because one bad page must not end a crawl.

Heavy pages are for a thread (`is_heavy`); which thread is the engine's business. Refuses to know what becomes of links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from comity import directives, headers
from comity.model import Directives, Found, Link, LinkKind, Page
from comity.parse import encoding, html, inflate, sitemap, sniff
from comity.parse.text import tidy
from comity.url import Url

_HEAVY_BYTES = 128 * 1024  # about 2 ms of parsing


@dataclass(frozen=True)
class Limits:
    """What one page may cost. `max_depth` counts open elements (a browser nests 512 too), `per` says what a link's
    host key is."""

    max_bytes: int = 10 * 1024 * 1024
    max_depth: int = 512
    max_links: int = 5_000
    sitemap_max_bytes: int = 50 * 1024 * 1024  # after decompression, as sitemaps.org counts
    sitemap_max_urls: int = 50_000
    text: bool = True
    per: Literal["host", "domain"] = "host"


def is_heavy(page: Page) -> bool:
    """Does reading take long enough to hold up everything else? (Compressed bodies unfold to any size.)"""
    return len(page.body) > _HEAVY_BYTES or page.body.startswith(inflate.GZIP)


def read(page: Page, url: Url, *, limits: Limits, token: str, now: float, sitemap: bool = False) -> Found:
    """Reads a page fetched from `url`. `token` is our product token, `sitemap`: it is known to be one. Never raises."""
    media_type, charset = headers.content_type(page.headers)
    wishes = directives.from_headers(headers.robots_tags(page.headers), token, now)
    try:
        found = _read(page, url, media_type, charset, limits, token, now, sitemap, wishes)
    except Exception as error:
        found = Found(kind="other", directives=wishes, problem=f"our reader failed: {type(error).__name__}: {error}")
    return msgspec.structs.replace(
        found,
        media_type=media_type,
        truncated=found.truncated or page.truncated is not None,
        language=found.language or headers.get(page.headers, "content-language"),
    )


def _read(
    page: Page,
    url: Url,
    media_type: str | None,
    charset: str | None,
    limits: Limits,
    token: str,
    now: float,
    known_sitemap: bool,
    wishes: Directives,
) -> Found:
    reader = sniff.reader(media_type, page.body, known_sitemap=known_sitemap)
    if reader == "sitemap":
        return _sitemap(page, url, charset, limits, now, known_sitemap, wishes)
    if reader in {"html", "xhtml"}:
        return _html(page, url, charset, limits, token, now, wishes, xml=reader == "xhtml")
    links = html.Links(url, limits.max_links, limits.per)
    canonical, refresh = _from_fields(page, url, links, [])
    found = Found(
        kind="other",
        links=tuple(links.found.values()),
        links_left_out=len(links.left_out),
        canonical=canonical,
        refresh=refresh,
        directives=wishes,
    )
    if reader != "text":
        return found
    body = page.body[: limits.max_bytes]
    name, mark = encoding.detect(body, charset)
    return msgspec.structs.replace(
        found,
        kind="text",
        charset=name,
        text=tidy(encoding.decode(body[mark:], name)) if limits.text else None,
        truncated=len(body) < len(page.body),
    )


def _html(
    page: Page,
    url: Url,
    charset: str | None,
    limits: Limits,
    token: str,
    now: float,
    wishes: Directives,
    *,
    xml: bool,
) -> Found:
    body = page.body[: limits.max_bytes]
    read = html.read(
        body,
        url,
        charset,
        max_depth=limits.max_depth,
        max_links=limits.max_links,
        per=limits.per,
        text=limits.text,
        xml=xml,
    )
    links: tuple[Link, ...] = read.links
    canonical, refresh = read.canonical, read.refresh
    if any(name in {"link", "refresh"} for name, _ in page.headers):
        more = html.Links(url, limits.max_links, limits.per)
        more.found = {link.key: link for link in links}
        canonical, said = _from_fields(page, url, more, [canonical] if canonical else [])
        refresh = refresh or said
        links = tuple(more.found.values())
    if read.metas:
        wishes = directives.union(wishes, directives.from_meta(read.metas, token, now))
    return Found(
        kind="html",
        links=links,
        links_left_out=read.links_left_out,
        title=read.title,
        text=read.text,
        language=read.language,
        charset=read.charset,
        canonical=canonical,
        refresh=refresh,
        directives=wishes,
        deep=read.deep,
        truncated=read.cut or len(body) < len(page.body),
    )


def _from_fields(page: Page, url: Url, links: html.Links, canonicals: list[str]) -> tuple[str | None, str | None]:
    """Links of the Link and Refresh fields (RFC 8288, RED-7), relative to the page's own URL. Returns what all say of
    the canonical URL, and where a refresh leads."""
    for link in headers.link_values(page.headers):
        if link.param("anchor"):  # it is said of another page
            continue
        kind = html.kind_of(link.rels, link.param("type") or "")
        if kind is not None:
            links.add(url, link.target, kind, "nofollow" in link.rels)
        if kind is LinkKind.CANONICAL:
            canonicals.append(link.target)
    target = html.refresh_target(headers.get(page.headers, "refresh") or "")
    refreshed = links.add(url, target, LinkKind.REFRESH) if target else None
    return html.agreed(url, canonicals), refreshed


def _sitemap(
    page: Page, url: Url, charset: str | None, limits: Limits, now: float, known: bool, wishes: Directives
) -> Found:
    listed = sitemap.read(
        page.body,
        url,
        charset,
        max_bytes=limits.sitemap_max_bytes,
        max_urls=limits.sitemap_max_urls,
        per=limits.per,
        now=now,
    )
    return Found(
        kind=listed.kind,
        links=listed.links,
        links_left_out=listed.left_out,
        charset=listed.charset,
        directives=wishes,
        truncated=listed.cut,
        problem=listed.problem,
    )
