"""Bodies and fields written to be read for ever, or to fill the memory: each is read once, in bounds (SAFE-4).

Every one of these once held up the whole crawl: a regular expression that goes back over what it has read does not let
go of the interpreter, in whichever thread it runs. The time limit is far above what they take, and far below what they
took.
"""

from __future__ import annotations

import gzip
import sys

import pytest

from comity import headers, robots
from comity.model import Found, Headers, Page
from comity.parse import Limits, html, nesting, read, salvage
from comity.url import parse

HERE = parse("http://a.example/dir/")
MEGABYTE = 1_000_000
pytestmark = pytest.mark.timeout(10)


def found_in(body: bytes, media_type: str = "text/html", *fields: tuple[str, str], sitemap: bool = False) -> Found:
    page = Page(200, (("content-type", media_type), *fields), body)
    return read(page, HERE, limits=Limits(), token="ourbot", now=1e9, sitemap=sitemap)


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/xhtml+xml", b"<html/>" + b"<![CDATA[" * 400_000),
        ("application/xhtml+xml", b"<![CDATA[]]>" + b"<![CDATA[" * 400_000),
        ("application/xhtml+xml", b"<html/><a " + b"x" * 3 * MEGABYTE),
        ("application/xhtml+xml", b"<html/><a " + b"/" * 3 * MEGABYTE),
        ("application/xhtml+xml", b"<html/>" + b"<a '" * MEGABYTE),
        ("text/html", b"<meta http-equiv=refresh content='" + b"1" * MEGABYTE + b"x'>"),
        ("text/html", b"<meta http-equiv=refresh content='1" + b"." * MEGABYTE + b"x'>"),
        ("text/html", b"<meta http-equiv=refresh content='0" + b" " * MEGABYTE + b"x'>"),
        ("text/html", b"<select>" + b"<option>" * 130_000),
        ("text/html", b"<select>" + b"<option></option>" * 130_000),
        ("text/html", b"<select>" + b"<optgroup><option>" * 130_000),
        ("text/html", b"".join(b"<html a%d>" % n for n in range(150_000))),
        ("text/html", b"".join(b"<body a%d>" % n for n in range(150_000))),
    ],
    ids=lambda value: value[:40].decode() if isinstance(value, bytes) else None,
)
def test_a_page_is_read_once(media_type: str, body: bytes) -> None:
    found = found_in(body, media_type)
    assert found.kind == "html"
    assert found.problem is None


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE x [" + b"]" * 64_000,
        gzip.compress(b"", mtime=0) * 500_000,
        gzip.compress(b"a", mtime=0) * 480_000,
    ],
    ids=["doctype", "empty members", "small members"],
)
def test_a_sitemap_is_read_once(body: bytes) -> None:
    assert found_in(body, "application/xml", sitemap=True).links_left_out >= 0


def test_what_is_no_xml_is_searched_for_a_million_tags() -> None:
    found = list(salvage.entries(b"<urlset>" + b"<url><loc>x</loc>" * 400_000, "url"))
    assert len(found) == 333_333


def test_members_of_a_gzip_file_end_where_they_should() -> None:
    pieces = [b"<urlset>", *(b"<url><loc>http://a.example/%d</loc></url>" % n for n in range(900)), b"</urlset>"]
    packed = b"".join(gzip.compress(piece, mtime=0) for piece in pieces)
    found = found_in(packed, "application/gzip", sitemap=True)
    assert (len(found.links), found.truncated, found.problem) == (900, False, None)
    assert found_in(packed[:-1], "application/gzip", sitemap=True).truncated


@pytest.mark.parametrize("field", ["1" * 64_000 + "x", "0" + "." * 64_000 + "x"])
def test_a_refresh_field_is_read_once(field: str) -> None:
    assert found_in(b"", "text/html", ("refresh", field)).refresh is None


@pytest.mark.parametrize("value", ["," * 64_000, "a=" + " " * 64_000, 'a="' + "\\" * 64_000, ", " * 32_000 + '"'])
def test_fields_of_a_quarter_of_a_megabyte_are_read_once(value: str) -> None:
    fields: Headers = (("cache-control", value),) * 4
    assert headers.cache_lifetime_s(fields, 1e9) is None
    assert headers.cache_lifetime_s((*fields, ("cache-control", '"x, max-age=60')), 1e9) == 60


@pytest.mark.parametrize(
    "line",
    [
        b"Crawl-delay: " + b"1" * 16_000 + b"x\n",
        b"Crawl-delay: 1" + b" " * 16_000 + b"x\n",
        b"Request-rate: 1/" + b"1" * 16_000 + b"x\n",
        b"Request-rate: " + b"1" * 16_000 + b"\n",
    ],
)
def test_b020_a_delay_of_any_length_is_read_once(line: bytes) -> None:
    body = b"User-agent: *\nCrawl-delay: 3\n" + line * 31 + b"Disallow: /x\n"
    rules = robots.compile(robots.parse(body), "ourbot", "http://a.example")
    assert rules.wanted_s == 3
    assert not robots.verdict(rules, "/x").allowed


def test_thousands_of_agents_and_of_settings_below_them_share_one_list() -> None:
    agents = b"".join(b"User-agent: %s\n" % str(n).translate(LETTERS).encode() for n in range(12_000))
    file = robots.parse(agents + b"User-agent: ourbot\n" + b"Crawl-delay: 7\n" * 18_000)
    assert len({id(setting.agents) for setting in file.settings}) == 1
    assert robots.compile(file, "ourbot", "http://a.example").wanted_s == 7


LETTERS = str.maketrans("0123456789", "abcdefghij")


def test_a_long_base_stands_in_no_link() -> None:
    """Five thousand links under a base of a megabyte would be five gigabytes."""
    links = b"".join(b"<a href='x%d?%%25'>" % n for n in range(5_000))
    found = found_in(b"<base href='/" + b"y/" * 500_000 + b"'>" + links)
    assert len(found.links) == 5_000
    assert sum(sys.getsizeof(link.url) for link in found.links) < MEGABYTE


def test_what_is_kept_of_a_page_is_bounded() -> None:
    long = b"x" * MEGABYTE
    found = found_in(
        b"<html lang=" + long + b"><title>" + long + b"</title><link rel=canonical href=/" + long + b"><a href=/"
        + long + b"></a><a href=/a></a><meta http-equiv=refresh content='0;url=/" + long + b"'>",
        "text/html", ("content-language", "x" * 64_000), ("link", f"</{'x' * 60_000}>; rel=next"),
    )  # fmt: skip
    assert [link.url for link in found.links] == ["http://a.example/a"]
    assert found.canonical is None
    assert found.refresh is None
    assert len(found.title or "") <= 4_096
    assert len(found.language or "") <= 64
    sitemap = b"<urlset><url><loc>http://a.example/" + long + b"</loc></url></urlset>"
    assert found_in(sitemap, "application/xml", sitemap=True).links == ()
    assert html.LONGEST_URL > 8_000  # RFC 9110 4.1


def test_a_page_ends_at_its_millionth_tag() -> None:
    page = b"x<p>" * nesting.MAX_TAGS
    assert nesting.bound(page, 512) == nesting.Bounded(page)
    cut = nesting.bound(page + b"<p><a href=/far>", 512)
    assert cut.cut
    assert nesting.MAX_TAGS - 4_096 <= cut.data.count(b"<") <= nesting.MAX_TAGS
    assert page.startswith(cut.data)


def test_options_and_roots_beyond_many_leave_their_text() -> None:
    page = b"<select>" + b"<option>a b" * 30_000 + b"</select><a href=/x>" + b"<html><body>" * 100
    bounded = nesting.bound(page, 512)
    assert bounded.data.count(b"<option>") == 20_000
    assert bounded.data.count(b"a b") == 30_000
    assert bounded.data.count(b"<html>") == bounded.data.count(b"<body>") == 16
    assert b"<a href=/x>" in bounded.data
