"""`comity.parse.read`: which reader a body gets, and that it always gets one."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.model import Headers, LinkKind, Page
from comity.parse import Limits, is_heavy, read
from comity.url import parse

HERE = parse("http://a.example/x")
LIMITS = Limits()
URLSET = b'<?xml version="1.0"?><urlset><url><loc>http://a.example/y</loc></url></urlset>'
XHTML = b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><a href="/y"/></html>'
PAGE = b"<!doctype html><a href=/y>"
MENTIONS = b"<!doctype html><!-- http://www.sitemaps.org/schemas/sitemap/0.9 <urlset> --><a href=/y>"
BINARY = b"\x89PNG\r\n\x1a\n\x00\x01"


@pytest.mark.parametrize(
    ("media_type", "body", "known", "kind"),
    [
        ("text/html", PAGE, False, "html"),
        ("text/html", b"", False, "html"),
        ("application/xhtml+xml", XHTML, False, "html"),
        ("application/vnd.wap.xhtml+xml", XHTML, False, "html"),
        ("text/plain", PAGE, False, "text"),  # HTML-9: plain text is not taken for HTML
        ("text/plain", BINARY, False, "other"),
        ("text/xml", XHTML, False, "html"),
        ("application/xml", URLSET, False, "sitemap"),
        ("application/xml", b"<rss/>", False, "other"),
        ("application/rss+xml", b"<rss/>", False, "other"),
        ("image/svg+xml", b"<svg/>", False, "other"),
        ("application/octet-stream", URLSET, False, "sitemap"),
        ("application/octet-stream", gzip.compress(URLSET), False, "sitemap"),
        ("application/octet-stream", PAGE, False, "other"),
        ("application/gzip", gzip.compress(URLSET), False, "sitemap"),
        ("application/gzip", gzip.compress(PAGE), False, "other"),
        ("application/json", b'{"a": 1}', False, "other"),
        ("image/png", BINARY, False, "other"),
        ("text/css", b"a{}", False, "other"),
        (None, PAGE, False, "html"),
        (None, b"words", False, "text"),
        (None, BINARY, False, "other"),
        (None, URLSET, False, "sitemap"),
        (None, b"", False, "other"),
        # B139: called a sitemap
        ("text/html", URLSET, True, "sitemap"),
        ("application/octet-stream", URLSET, True, "sitemap"),
        ("text/html", MENTIONS, True, "html"),
        ("text/xml", b"<br />\n<b>Warning</b>: no\n" + URLSET, True, "sitemap"),
        ("application/xml", PAGE, True, "html"),
        ("application/json", b'{"a": 1}', True, "other"),
        ("text/html", MENTIONS, False, "html"),
        ("text/xml", MENTIONS, False, "other"),
        ("text/plain", b"http://a.example/y", True, "text_sitemap"),
        ("text/plain", b"http://a.example/y", False, "text"),
    ],
)
def test_which_reader_a_body_gets(media_type: str | None, body: bytes, known: bool, kind: str) -> None:
    fields = (("content-type", media_type),) if media_type else ()
    found = read(Page(200, fields, body), HERE, limits=LIMITS, token="x", now=0.0, sitemap=known)
    assert found.kind == kind
    assert found.media_type == media_type


def test_html_10_fields_are_read_whatever_the_body_is() -> None:
    fields = (
        ("content-type", "application/pdf"),
        ("link", "</canonical>; rel=canonical, </2>; rel=next"),
        ("x-robots-tag", "noindex"),
        ("content-language", "de"),
    )
    found = read(Page(200, fields, b"%PDF-1.7"), HERE, limits=LIMITS, token="x", now=0.0)
    assert (found.kind, found.canonical, found.language) == ("other", "http://a.example/canonical", "de")
    assert found.directives.noindex
    assert [link.kind for link in found.links] == [LinkKind.CANONICAL, LinkKind.NEXT]


def test_plain_text() -> None:
    fields = (("content-type", "text/plain; charset=koi8-r"),)
    body = "слово  слово\n\n".encode("koi8-r")
    found = read(Page(200, fields, body), HERE, limits=LIMITS, token="x", now=0.0)
    assert (found.text, found.charset, found.links) == ("слово слово", "koi8-r", ())
    cut = read(Page(200, fields, body), HERE, limits=Limits(max_bytes=5), token="x", now=0.0)
    assert (cut.text, cut.truncated) == ("слово", True)


def test_a_page_that_came_truncated_says_so() -> None:
    page = Page(200, (("content-type", "text/html"),), b"<p>", truncated="length")
    assert read(page, HERE, limits=LIMITS, token="x", now=0.0).truncated


def test_long_and_compressed_pages_are_heavy() -> None:
    assert not is_heavy(Page(200, (), b"x" * 131_072))
    assert is_heavy(Page(200, (), b"x" * 131_073))
    assert is_heavy(Page(200, (), gzip.compress(b"x")))


NAMES = st.sampled_from(["content-type", "link", "refresh", "x-robots-tag", "content-language"])
VALUES = st.sampled_from(
    ["text/html", "text/xml", "text/plain", "application/gzip", "text/html; charset=koi8-r", "</x>; rel=next"]
) | st.text(st.characters(max_codepoint=255))
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=4).map(tuple)


@settings(deadline=None)
@given(FIELDS, st.binary(), st.booleans(), st.booleans())
def test_any_bytes_under_any_fields_can_be_read(fields: Headers, body: bytes, packed: bool, known: bool) -> None:
    page = Page(200, fields, gzip.compress(body) if packed else body)
    found = read(page, HERE, limits=LIMITS, token="x", now=0.0, sitemap=known)
    assert not (found.problem or "").startswith("our reader")


def test_a_reader_that_fails_is_a_problem_of_that_page() -> None:
    page = Page(200, (("content-type", "text/html"), ("x-robots-tag", "noindex")), b"<a href=/x>")
    found = read(page, HERE, limits=Limits(per="nonsense", max_links="many"), token="x", now=0.0)  # type: ignore[arg-type]
    assert found.kind == "other"
    assert found.problem is not None
    assert found.problem.startswith("our reader failed: TypeError")
    assert found.directives.noindex
