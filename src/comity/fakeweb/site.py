"""What a site of the fake web is: scripted answers, and the rules a visitor owes it.

A `Site` maps paths to scripts. A script is one answer, a sequence of answers (one a request; the last repeats) or a
function of the request. An `Answer` says what goes on the wire and in which way it goes wrong. Nothing here does
anything: the server performs, the log remembers, the judge compares.

Invariant: a site's `robots` carry the same rules twice, as the bytes that are served and as plain prefixes. The judge
knows only the prefixes, so that no robots parser, least of all ours, judges its own work.

It refuses to know sockets, clocks and the crawler.
"""

from __future__ import annotations

import gzip
import html as markup
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as a script sees it. `path` is the request target as sent, query included."""

    method: str
    host: str
    path: str
    headers: Mapping[str, str]  # names in lower case; the last of several wins
    number: int = 1  # the how-many-th request for this path of this host
    round: int = 1  # the site's


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent. Waits are real seconds: they stand for the network, and libcurl's limits are real time too."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    wait_s: float = 0.0  # before the first byte
    hang: bool = False  # the request is taken and never answered
    chunk_bytes: int = 0  # > 0: the body drips in pieces of this size,
    pause_s: float = 0.0  # with this pause before each
    size_bytes: int | None = None  # the body is repeated until it is this long, and never held in one piece
    cut_after_bytes: int | None = None  # the connection ends after so many bytes of a longer body
    chunked: bool = False  # Transfer-Encoding: chunked instead of Content-Length
    close: bool = False  # Connection: close
    raw: bytes | None = None  # exactly these bytes instead of a well-formed answer, then the end

    def with_headers(self, *headers: tuple[str, str]) -> Answer:
        return replace(self, headers=self.headers + headers)

    def header(self, name: str) -> str | None:
        """The first field of that name (any case)."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def length_bytes(self) -> int:
        return len(self.body) if self.size_bytes is None else self.size_bytes

    @property
    def plain(self) -> bool:
        """Can it be handed over in one write, at once?"""
        return not (
            self.wait_s
            or self.hang
            or self.chunk_bytes
            or self.chunked
            or self.size_bytes is not None
            or self.cut_after_bytes is not None
            or self.raw is not None
        )


Script: TypeAlias = Answer | Sequence[Answer] | Callable[[Asked], Answer]


def play(script: Script, asked: Asked) -> Answer:
    """The answer a script gives to this request."""
    if isinstance(script, Answer):
        return script
    if isinstance(script, Sequence):
        return script[min(asked.number, len(script)) - 1]
    return script(asked)


class Rules(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a robots.txt asks of everybody, in words no parser is needed for: the path prefixes it forbids (a longer
    `allowed` one opens again), and the seconds between requests (None: it names none)."""

    forbidden: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    delay_s: float | None = None

    def forbids(self, path: str) -> bool:
        longest = max((len(prefix) for prefix in self.forbidden if path.startswith(prefix)), default=-1)
        return longest > max((len(prefix) for prefix in self.allowed if path.startswith(prefix)), default=-1)


NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Robots:
    """One answer to /robots.txt, and what it means."""

    answer: Answer
    rules: Rules = NO_RULES


def robots(
    forbidden: Iterable[str] = (),
    *,
    allowed: Iterable[str] = (),
    delay_s: float | None = None,
    sitemaps: Iterable[str] = (),
    more: str = "",
) -> Robots:
    """A robots.txt that says just this to everybody. `more` is appended as it is (and means nothing to the judge)."""
    rules = Rules(tuple(forbidden), tuple(allowed), delay_s)
    lines = ["User-agent: *", *(f"Disallow: {prefix}" for prefix in rules.forbidden or ("",))]
    lines += [f"Allow: {prefix}" for prefix in rules.allowed]
    lines += [f"Crawl-delay: {delay_s:g}"] if delay_s is not None else []
    lines += ["", *(f"Sitemap: {url}" for url in sitemaps)]
    body = "\n".join(lines) + f"\n{more}"
    return Robots(Answer(body=body.encode(), headers=(("Content-Type", "text/plain"),)), rules)


NO_ROBOTS = Robots(Answer(404, b"no such file\n"))
"""There is none: everything is allowed."""


def robots_refused(status: int = 403) -> Robots:
    """401 or 403: read as "keep out" by the cautious."""
    return Robots(Answer(status, b"no\n"), Rules(forbidden=("/",)))


def robots_unreachable(answer: Answer = Answer(503, b"later\n")) -> Robots:
    """An answer from which nothing follows but patience: until a better one, nothing may be asked."""
    return Robots(answer, Rules(forbidden=("/",)))


@dataclass(slots=True)
class Site:
    """One host. `robots` is a script of its own: one answer a request, the last repeats. `round` is turned by whoever
    drives the scene, between visits, and reaches every script."""

    host: str
    pages: Mapping[str, Script] = field(default_factory=dict)
    robots: tuple[Robots, ...] = (NO_ROBOTS,)
    robots_paths: frozenset[str] = frozenset({"/robots.txt"})  # and those it redirects to on this host
    otherwise: Script = Answer(404, b"<!doctype html><title>Not found</title>\n")
    round: int = 1

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/robots.txt" and "/robots.txt" not in self.pages:
            return self.robots[min(asked.number, len(self.robots)) - 1].answer
        return play(self.pages.get(asked.path, self.otherwise), asked)


# ----------------------------------------------------------------------------------------------------- things to say


def html(links: Iterable[str] = (), *, title: str = "A page", more: str = "", size_bytes: int | None = None) -> bytes:
    """A small page with these links in this order; padded with words to exactly `size_bytes`, if given."""
    anchors = "".join(f'<li><a href="{markup.escape(link)}">{markup.escape(link)}</a></li>\n' for link in links)
    head = (
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{markup.escape(title)}</title></head><body>\n"
    )
    page = f"{head}<h1>{markup.escape(title)}</h1>\n<ul>\n{anchors}</ul>\n{more}".encode()
    end = b"</body></html>\n"
    if size_bytes is None:
        return page + end
    room = size_bytes - len(page) - len(end) - len(b"<p></p>\n")
    if room < 0:
        raise ValueError(f"a page with these links does not fit into {size_bytes} bytes")
    words = b"a polite crawler leaves every door as it found it and is glad to be asked back "
    return page + b"<p>" + (words * (room // len(words) + 1))[:room] + b"</p>\n" + end


def page(
    links: Iterable[str] = (),
    *,
    title: str = "A page",
    more: str = "",
    size_bytes: int | None = None,
    etag: str | None = None,
    last_modified: str | None = None,
) -> Answer:
    """A good page. With validators (sent as they stand) the server answers 304 to a request that names them."""
    headers = [("Content-Type", "text/html; charset=utf-8")]
    headers += [("ETag", etag)] if etag is not None else []
    headers += [("Last-Modified", last_modified)] if last_modified is not None else []
    return Answer(body=html(links, title=title, more=more, size_bytes=size_bytes), headers=tuple(headers))


def redirect(location: str, status: int = 301) -> Answer:
    return Answer(status, b"", (("Location", location),))


def throttled(retry_after: str | int | None, status: int = 429) -> Answer:
    """ "Not now": the judge holds the visitor to a Retry-After in seconds."""
    return Answer(status, b"slow down\n", (("Retry-After", str(retry_after)),) if retry_after is not None else ())


def sitemap(urls: Iterable[str], *, lastmod: str | None = None, gzipped: bool = False) -> Answer:
    """A urlset of these absolute URLs."""
    when = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return _xml("urlset", (f"<url><loc>{markup.escape(url)}</loc>{when}</url>" for url in urls), gzipped)


def sitemap_index(urls: Iterable[str], *, gzipped: bool = False) -> Answer:
    """A sitemapindex that names these sitemaps."""
    return _xml("sitemapindex", (f"<sitemap><loc>{markup.escape(url)}</loc></sitemap>" for url in urls), gzipped)


def _xml(root: str, children: Iterable[str], gzipped: bool) -> Answer:
    inner = "\n".join(children)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{inner}\n</{root}>\n'
    if gzipped:
        return Answer(body=gzip.compress(text.encode(), mtime=0), headers=(("Content-Type", "application/x-gzip"),))
    return Answer(body=text.encode(), headers=(("Content-Type", "application/xml"),))


def packed(answer: Answer) -> Answer:
    """The same, under Content-Encoding: gzip."""
    return replace(answer, body=gzip.compress(answer.body, mtime=0)).with_headers(("Content-Encoding", "gzip"))
