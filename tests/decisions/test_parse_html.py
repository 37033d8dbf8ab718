"""`comity.parse.html` and `.text`: what an HTML page holds (HTML-1 … HTML-8, REL-1 … REL-4)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from comity.model import Found, LinkKind, Page
from comity.parse import Limits, read
from comity.parse.html import refresh_target
from comity.parse.text import visible
from comity.url import parse, resolve

HERE = parse("http://a.example/dir/page?q")
HTML = ("content-type", "text/html; charset=utf-8")


def found_in(body: str | bytes, *fields: tuple[str, str], limits: Limits | None = None) -> Found:
    data = body.encode() if isinstance(body, str) else body
    page = Page(200, (HTML, *fields) if not any(name == "content-type" for name, _ in fields) else fields, data)
    return read(page, HERE, limits=limits or Limits(), token="ourbot", now=1.8e9)


def urls(found: Found) -> list[str]:
    return [link.url for link in found.links]


# --------------------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<a href=x>", [("http://a.example/dir/x", LinkKind.ANCHOR)]),
        ("<map><area href=/y></map>", [("http://a.example/y", LinkKind.AREA)]),
        ("<iframe src=//b.example/z></iframe>", [("http://b.example/z", LinkKind.FRAME)]),
        ("<frameset><frame src=f>", [("http://a.example/dir/f", LinkKind.FRAME)]),
        ("<link rel=next href=/2>", [("http://a.example/2", LinkKind.NEXT)]),
        ("<link rel='PREV' href=/0>", [("http://a.example/0", LinkKind.NEXT)]),
        ("<link rel=alternate hreflang=de href=/de>", [("http://a.example/de", LinkKind.ALTERNATE)]),
        ("<link rel=alternate type=application/rss+xml href=/f>", [("http://a.example/f", LinkKind.FEED)]),
        ("<link rel=alternate type=application/json+oembed href=/o>", []),
        ("<link rel='alternate stylesheet' href=/s.css>", []),
        ("<link rel=canonical href=/c>", [("http://a.example/c", LinkKind.CANONICAL)]),
        ("<link rel='preload dns-prefetch stylesheet icon' href=/p>", []),
        ("<svg><a xlink:href=/v></a></svg>", [("http://a.example/v", LinkKind.ANCHOR)]),
        ("<noscript><a href=/n></noscript>", [("http://a.example/n", LinkKind.ANCHOR)]),  # HTML-7
        ("<head><noscript><meta http-equiv=refresh content='0;url=/r'></noscript>",
         [("http://a.example/r", LinkKind.REFRESH)]),
        # not links of this page
        ("<!-- <a href=/x> -->", []),
        ("<script>'<a href=/x>'</script>", []),
        ("<textarea><a href=/x></textarea>", []),
        ("<template><a href=/x></template>", []),
        ("<iframe srcdoc='<a href=/x>'></iframe>", []),
        ("<img src=/i.png srcset='/j.png 2x'><script src=/k.js></script><form action=/l></form>", []),
        ("<a ping=/x>", []),
        # not URLs that we could ask for
        ("<a href=mailto:x@y><a href=javascript:x><a href=data:,x><a href='http://'><a href=tel:1>", []),
        # the page itself
        ("<a href><a href=''><a href=' '><a href=#top><a href='?q'><a href=page?q#x><a>", []),
    ],
)  # fmt: skip
def test_html_3_links(markup: str, expected: list[tuple[str, LinkKind]]) -> None:
    assert [(link.url, link.kind) for link in found_in(markup).links] == expected


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("/a&amp;b&#x2F;c", "http://a.example/a&b/c"),  # referenced once
        ("/a&amp;amp;b", "http://a.example/a&amp;b"),
        ("\n /x\t\n", "http://a.example/x"),  # B076
        ("../../../up", "http://a.example/up"),  # B075
        ("\\\\b.example\\x", "http://b.example/x"),
        ("HTTP://B.example:80/%7e", "http://b.example/%7e"),
        ("/é?é", "http://a.example/%C3%A9?%C3%A9"),
        ("http://u:p@b.example/", "http://b.example/"),
        ("/x#frag", "http://a.example/x"),
    ],
)
def test_html_5_references(href: str, url: str) -> None:
    (link,) = found_in(f'<a href="{href}">').links
    assert link.url == url
    resolved = resolve(HERE, url)
    assert resolved is not None
    assert link.key == resolved.key


def test_one_url_is_one_link_where_it_was_first_named() -> None:
    found = found_in("<a href=/x#1><a href=/y><area href=/x><a href=/%78><a href=/z><a href=/y#2>")
    assert [(link.url, link.kind) for link in found.links] == [
        ("http://a.example/x", LinkKind.ANCHOR),
        ("http://a.example/y", LinkKind.ANCHOR),
        ("http://a.example/z", LinkKind.ANCHOR),
    ]


@pytest.mark.parametrize(
    ("markup", "nofollow"),
    [
        ("<a href=/x>", False),
        ("<a href=/x rel=nofollow>", True),
        ('<a href=/x rel="UGC  nofollow">', True),
        ("<a href=/x rel=sponsored>", True),
        ("<a href=/x rel='noopener noreferrer external'>", False),
        ("<a href=/x rel=nofollowed>", False),
        ("<a href=/x rel=nofollow><a href=/x rel=ugc>", True),
        ("<a href=/x rel=nofollow><a href=/x>", False),  # once said plainly is said
        ("<a href=/x><a href=/x rel=nofollow>", False),
        ("<area href=/x rel=nofollow>", True),
    ],
)
def test_rel_1_nofollow(markup: str, nofollow: bool) -> None:
    (link,) = found_in(markup).links
    assert link.nofollow is nofollow


@pytest.mark.parametrize(
    ("markup", "url"),
    [
        ("<base href=/b/><a href=x>", "http://a.example/b/x"),
        ("<a href=x><base href=/b/>", "http://a.example/b/x"),  # wherever it stands
        ("<base href=/b/><base href=/c/><a href=x>", "http://a.example/b/x"),
        ("<base target=_top><base href=/c/><a href=x>", "http://a.example/c/x"),
        ("<base href=javascript:x><base href=/c/><a href=x>", "http://a.example/dir/x"),
        ("<base href='http://'><a href=x>", "http://a.example/dir/x"),
        ("<base href=https://b.example><a href=x>", "https://b.example/x"),
    ],
)
def test_html_2_base(markup: str, url: str) -> None:
    assert urls(found_in(markup)) == [url]


def test_the_host_of_a_link_is_its_host_key() -> None:
    markup = "<a href=http://WWW.b.example.co.uk./x>"
    assert [link.host for link in found_in(markup).links] == ["www.b.example.co.uk"]
    assert [link.host for link in found_in(markup, limits=Limits(per="domain")).links] == ["example.co.uk"]


def test_safe_3_links_are_bounded_and_the_rest_counted() -> None:
    page = "".join(f"<a href=/{number}>" for number in range(30))
    found = found_in(page, limits=Limits(max_links=20))
    assert urls(found) == [f"http://a.example/{number}" for number in range(20)]
    assert found.links_left_out == 10


def test_url_4_queries_follow_the_pages_encoding() -> None:
    found = found_in("<a href=/é?é>".encode("cp1252"), ("content-type", "text/html; charset=iso-8859-1"))
    assert urls(found) == ["http://a.example/%C3%A9?%E9"]
    assert found.charset == "windows-1252"


# ---------------------------------------------------------------------------------------------------- other statements


@pytest.mark.parametrize(
    ("markup", "fields", "canonical"),
    [
        ("<link rel=canonical href=/c>", [], "http://a.example/c"),
        ("<link rel=canonical href='page?q'>", [], "http://a.example/dir/page?q"),  # B083: itself
        ("<base href=/b/><link rel=canonical href=c>", [], "http://a.example/b/c"),
        ("<link rel=canonical href=/c><link rel=canonical href=/%63>", [], "http://a.example/c"),
        ("<link rel=canonical href=/c><link rel=canonical href=/d>", [], None),  # REL-3
        ("<body><link rel=canonical href=/c>", [], None),
        ("", [("link", "</h>; rel=canonical")], "http://a.example/h"),
        ("", [("link", "</h>; rel=canonical; anchor='/other'")], None),
        ("<link rel=canonical href=/c>", [("link", "</c>; rel=canonical")], "http://a.example/c"),
        ("<link rel=canonical href=/c>", [("link", "</h>; rel=canonical")], None),
    ],
)
def test_rel_2_canonical(markup: str, fields: list[tuple[str, str]], canonical: str | None) -> None:
    found = found_in(f"<head>{markup}", *fields)
    assert found.canonical == canonical


def test_rel_4_links_of_the_link_field() -> None:
    found = found_in("<base href=/b/><a href=/x>", ("link", "<2>; rel=next, </s.css>; rel=stylesheet"))
    assert [(link.url, link.kind) for link in found.links] == [
        ("http://a.example/x", LinkKind.ANCHOR),
        ("http://a.example/dir/2", LinkKind.NEXT),  # relative to the page, not to its base
    ]


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=/a", "/a"),
        ("0,url=/a", "/a"),
        ("0 url=/a", "/a"),
        ("0;/a", "/a"),
        ("0; URL = '/a' junk", "/a"),
        ('3.5;url="/a', "/a"),
        (".5;url=/a", "/a"),
        (" 5 ; url=/a ", "/a"),
        ("0;URL=\n http://e.example/i.php", "http://e.example/i.php"),  # B078
        ("0;url", "url"),
        ("5", None),
        ("5;", None),
        (";url=/a", None),
        ("-0;url=x", None),
        ("0/a", None),
        ("x;url=/a", None),
        ("", None),
    ],
)
def test_html_6_declared_refresh(content: str, target: str | None) -> None:
    assert refresh_target(content) == target


def test_html_6_the_first_valid_refresh_counts() -> None:
    metas = "".join(f"<meta http-equiv=Refresh content='{content}'>" for content in ("x", "0;/a", "0;/b"))
    found = found_in(metas)
    assert found.refresh == "http://a.example/a"
    assert [(link.url, link.kind) for link in found.links] == [("http://a.example/a", LinkKind.REFRESH)]
    assert found_in("<meta http-equiv=refresh content='0;url=javascript:x'>").refresh is None
    assert found_in("", ("refresh", "1; url=/h")).refresh == "http://a.example/h"  # RED-7


def test_pgr_1_wishes_of_the_page_and_of_the_message_join() -> None:
    markup = "<meta name=Robots content='NoIndex, FOLLOW'><body><meta name=ourbot content=noarchive>"
    found = found_in(markup, ("x-robots-tag", "otherbot: nosnippet"), ("x-robots-tag", "ourbot: nofollow"))
    wishes = found.directives
    assert (wishes.noindex, wishes.nofollow, wishes.noarchive, wishes.nosnippet) == (True, True, True, False)


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<title> A\n b &amp; c </title>", "A b & c"),
        ("<svg><title>drawing</title></svg>", None),
        ("<svg><title>drawing</title></svg><title>late</title>", "late"),
        ("<title>1</title><title>2</title>", "1"),
        ("<title></title>", None),
        ("", None),
    ],
)
def test_the_title(markup: str, title: str | None) -> None:
    assert found_in(markup).title == title


def test_the_language() -> None:
    assert found_in("<html lang=' de-CH '>").language == "de-CH"
    assert found_in("<p>", ("content-language", "fr")).language == "fr"
    assert found_in("<p>").language is None


# ---------------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>a</p><p>b</p>", "a\nb"),
        ("w<b>or</b>d", "word"),
        ("<div><p>a</p>b</div>c", "a\nb\nc"),
        ("a<br>b<hr>c", "a\nb\nc"),
        ("<ul><li>a<li>b</ul>", "a\nb"),
        ("<table><tr><td>a<td>b<tr><td>c</table>d", "a\nb\nc\nd"),
        ("<b><p>a</p></b>x", "a\nx"),
        ("one\n   two\t three", "one two three"),
        ("  <p>  a  </p>\n\n  <p> b </p> ", "a\nb"),
        ("a<script>no</script><style>no</style><noscript>no</noscript><template>no</template>b", "ab"),
        ("<iframe>no</iframe><!-- no -->a", "a"),
        ("<title>no</title>a", "a"),
        ("&lt;b&gt; &eacute;", "<b> é"),
        ("", ""),
    ],
)
def test_the_visible_text(markup: str, text: str) -> None:
    assert visible(LexborHTMLParser(markup)) == text


def test_text_is_left_out_on_demand() -> None:
    assert found_in("<p>a", limits=Limits(text=False)).text is None
    assert found_in("<p>a").text == "a"


# ---------------------------------------------------------------------------------------------------- kinds and bounds


def test_html_8_xhtml_is_read_as_what_it_means() -> None:
    page = """<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title>
        <script src="x.js"/></head><body><a id="top"/><p><a href="/x?a=1&amp;b=2">l</a><br/>
        <![CDATA[1 < 2 & 3]]></p></body></html>"""
    found = found_in(page, ("content-type", "application/xhtml+xml"))
    assert (found.kind, found.title, urls(found)) == ("html", "T", ["http://a.example/x?a=1&b=2"])
    assert found.text == "l\n1 < 2 & 3"


def test_safe_1_long_pages_are_cut() -> None:
    page = "<a href=/1>" + "x" * 1_000 + "<a href=/2>"
    found = found_in(page, limits=Limits(max_bytes=500))
    assert (urls(found), found.truncated) == (["http://a.example/1"], True)
    assert not found_in(page).truncated


def test_deep_pages_are_marked() -> None:
    found = found_in("<div>" * 20_000 + "<a href=/x>word")
    assert (found.deep, urls(found), found.text) == (True, ["http://a.example/x"], "word")


_PIECES = """<a <base <iframe src= href= <svg> <title> </title> <p> x // 0;url= ' " > é <!-- <script> <table> <frameset>
    <plaintext> <![CDATA[ # % javascript: &amp; &#0; </html>"""
PIECES = st.sampled_from(
    [
        *_PIECES.split(),
        " ",
        "\n",
        "\0",
        "<meta name=robots content=",
        "<meta http-equiv=refresh content=",
        "<link rel=next ",
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join).map(str.encode) | st.binary(), st.sampled_from(["html", "xhtml"]))
def test_any_markup_can_be_read(body: bytes, kind: str) -> None:
    media_type = "text/html" if kind == "html" else "application/xhtml+xml"
    found = found_in(body, ("content-type", media_type))
    assert found.kind == "html"
    assert found.problem is None
    assert len({link.key for link in found.links}) == len(found.links)
    for link in found.links:
        again = parse(link.url)
        assert (again.href, again.key) == (link.url, link.key)
