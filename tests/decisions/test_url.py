"""`comity.url`: one reading of every URL, and a key that says exactly what it promises (URL-1 … URL-10)."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comity.url import (
    CleanUps,
    InvalidUrl,
    Url,
    document_id,
    host_key,
    is_loopback_name,
    parse,
    registrable_domain,
    resolve,
)

# --------------------------------------------------------------------------------------------------------- what is sent


@pytest.mark.parametrize(
    ("text", "href"),
    [
        (r"http:\\evil.com\x", "http://evil.com/x"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://017700000001/", "http://127.0.0.1/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://ex%41mple.com/", "http://example.com/"),
        ("HTTP://EXAMPLE.com:80/%7Efoo/../a b", "http://example.com/a%20b"),
        ("ht\ntp://a/b", "http://a/b"),
        ("http://a/%2e%2e/b", "http://a/b"),
        ("http://a/x^y?q='z'", "http://a/x%5Ey?q=%27z%27"),
        ("https://a:443/B//c/?d", "https://a/B//c/?d"),
        ("https://a/?", "https://a/?"),
    ],
)
def test_url_1_urls_are_read_as_browsers_read_them(text: str, href: str) -> None:
    assert parse(text).href == href


def test_the_parts_of_a_url() -> None:
    assert parse("https://a.example:8443/p%20q?r=s#t") == Url(
        href="https://a.example:8443/p%20q?r=s#t",
        key="https://a.example:8443/p%20q?r=s",
        scheme="https",
        host="a.example",
        port=8443,
        origin="https://a.example:8443",
        target="/p%20q?r=s",
    )


@pytest.mark.parametrize(
    ("text", "host", "port", "origin"),
    [
        ("http://a", "a", 80, "http://a"),
        ("https://a", "a", 443, "https://a"),
        ("http://a:443", "a", 443, "http://a:443"),
        ("http://a:/", "a", 80, "http://a"),
        ("http://[::1]/", "[::1]", 80, "http://[::1]"),
        ("http://[::1]:8080/", "[::1]", 8080, "http://[::1]:8080"),
        ("http://a.:81/", "a.", 81, "http://a.:81"),
        ("http://はじめよう.みんな/", "xn--p8j9a0d9c9a.xn--q9jyb4c", 80, "http://xn--p8j9a0d9c9a.xn--q9jyb4c"),
    ],
)
def test_r2_origin_is_scheme_host_and_port(text: str, host: str, port: int, origin: str) -> None:
    url = parse(text)
    assert (url.host, url.port, url.origin) == (host, port, origin)


@pytest.mark.parametrize("userinfo", ["u:p@", "u@", ":p@", "a%40b:c%2Fd@", "@@"])
def test_url_3_credentials_are_dropped_from_every_form(userinfo: str) -> None:
    url = parse(f"http://{userinfo}h.example:81/x#y")
    assert (url.href, url.key) == ("http://h.example:81/x#y", "http://h.example:81/x")
    assert (url.host, url.origin, url.target) == ("h.example", "http://h.example:81", "/x")


def test_credentials_are_noticed() -> None:
    assert parse("http://u:p@h/").had_credentials
    assert not parse("http://h/a@b").had_credentials


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ("example.com", "it has no scheme: write https:// (or http://) before it"),
        ("localhost:8000/x", "it has no scheme: write https:// (or http://) before it"),
        ("//a.example/", "it has no scheme: write https:// (or http://) before it"),
        ("mailto:a@b.example", "its scheme is mailto, and only http and https are crawled"),
        ("FTP://a.example/", "its scheme is ftp, and only http and https are crawled"),
        ("http://", "it has no host name"),
        ("https:///?", "it has no host name"),
        ("http://a:b/", "its port is b, and a port is a number up to 65535"),
        ("http://a:65536/", "its port is 65536, and a port is a number up to 65535"),
        ("http://[::x]/", "[::x] is no IPv6 address"),
        ("http://1.2.3.400/", "1.2.3.400 ends like an IPv4 address and is none"),
        ("http://a b/", "a b is no host name"),
    ],
)
def test_what_is_no_url_says_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        parse(text)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("reference", "href"),
    [
        ("", "http://a/b/c?d"),
        ("#f", "http://a/b/c?d#f"),
        ("?x", "http://a/b/c?x"),
        ("g", "http://a/b/g"),
        ("../../../g", "http://a/g"),
        ("//h/i", "http://h/i"),
        (" \t/j\n", "http://a/j"),
        ("http:k", "http://a/b/k"),
        ("mailto:x@y", None),
        ("javascript:void(0)", None),
        ("data:text/html,x", None),
        ("ftp://h/", None),
        ("http://", None),
        ("//", None),
        ("http://h:99999/", None),
        ("\ud800", None),
    ],
)
def test_references(reference: str, href: str | None) -> None:
    base = parse("http://a/b/c?d")
    found = resolve(base, reference)
    assert (found.href if found else None) == href
    assert resolve(base.href, reference) == found


# ----------------------------------------------------------------------------------------------------- what is compared


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("http://a/b#c", "http://a/b"),
        ("http://a./b", "http://a/b"),
        ("http://a.:81/", "http://a:81/"),
        ("http://a/%7eb/%c3%a9", "http://a/~b/%C3%A9"),
        ("http://a/?q=%7E%2f", "http://a/?q=~%2F"),
        ("http://a/%2F%3f%23%25", "http://a/%2F%3F%23%25"),
        ("http://a/100%", "http://a/100%"),
        ("http://a/%zz", "http://a/%zz"),
        ("http://a/%%34%31", "http://a/%%341"),  # decoding both would spell an escape that was not there
        ("http://a/%4%31", "http://a/%4%31"),
        ("http://a/%25%34%31", "http://a/%2541"),
        # nothing else
        ("http://a/B", "http://a/B"),
        ("http://a//b", "http://a//b"),
        ("http://a/b/", "http://a/b/"),
        ("http://a/?b=1&a=2&", "http://a/?b=1&a=2&"),
        ("http://a/?", "http://a/?"),
        ("http://www.a/index.html", "http://www.a/index.html"),
        ("http://a../", "http://a../"),
    ],
)
def test_the_key(text: str, key: str) -> None:
    assert parse(text).key == key


def test_the_key_of_a_plain_url_is_the_same_object() -> None:
    """A crawl keeps millions of both."""
    url = parse("http://a.example/b?c=d")
    assert url.key is url.href


@pytest.mark.parametrize(
    ("clean", "text", "key"),
    [
        (CleanUps(drop_query_params=("utm_*", "gclid")), "http://a/?UTM_source=x&b=1&gclid=2", "http://a/?b=1"),
        (CleanUps(drop_query_params=("utm_*",)), "http://a/b?utm_source=x", "http://a/b"),
        (CleanUps(drop_query_params=("b",)), "http://a/b?", "http://a/b?"),
        (CleanUps(sort_query=True), "http://a/?c=1&a=2&b", "http://a/?a=2&b&c=1"),
        (CleanUps(drop_empty_query=True), "http://a/?", "http://a/"),
        (CleanUps(drop_empty_query=True), "http://a/?&b=&=1&c", "http://a/?b=&c"),
        (CleanUps(collapse_slashes=True), "http://a//b///c?d=//e", "http://a/b/c?d=//e"),
    ],
)
def test_url_6_clean_ups_change_the_key_only(clean: CleanUps, text: str, key: str) -> None:
    url = parse(text, clean)
    assert url.key == key
    assert (url.href, url.target) == (parse(text).href, parse(text).target)
    assert parse(url.key, clean).key == key


def test_a_document_id_is_the_sha_256_of_the_key() -> None:
    assert document_id("http://a/") == "282a35d7a0da6ae48eee116ad6193fa861bd88958a4c38a8042f6712ed9474f7"


# Strings that look like URLs more often than arbitrary text does.
_PIECES = (
    """http:// https: // / a.example A é % %4 %41 %7e %2F %2e . .. ? & = # @ : 81 [::1] 1.2.3.4 ^ | [ ' 日 xn-- +"""
)
PIECES = st.sampled_from(_PIECES.split(" ")) | st.sampled_from(' \t\0\\"')
URLISH = st.one_of(
    st.text(),
    st.lists(PIECES, max_size=12).map("".join),
    st.lists(PIECES, max_size=12).map(lambda pieces: "http://a.example/" + "".join(pieces)),
)
CLEAN = st.builds(
    CleanUps,
    st.lists(st.sampled_from(["a", "utm_*", "*", ""]), max_size=2).map(tuple),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@settings(deadline=None)
@given(URLISH, CLEAN)
@example("http://a/%%34%31", CleanUps())
@example("http://a/%4%4%31%31", CleanUps())
@example("http://a/%%%%341%31", CleanUps())
@example("http://u:p@a.:81/%7e?#%7e", CleanUps())
def test_both_forms_are_fixed_points(text: str, clean: CleanUps) -> None:
    try:
        url = parse(text, clean)
    except InvalidUrl:
        return
    again = parse(url.href, clean)
    assert (again.href, again.key) == (url.href, url.key)
    assert parse(url.key, clean).key == url.key
    assert url.href.isascii()
    assert url.href.startswith(url.origin + url.target)


@settings(deadline=None)
@given(URLISH, URLISH)
def test_resolving_never_raises_and_agrees_with_parsing(base: str, reference: str) -> None:
    try:
        start = parse(base)
    except InvalidUrl:
        start = parse("http://a.example/b/c?d")
    found = resolve(start, reference)
    if found is not None:
        assert found == parse(found.href)


PLAIN = st.text("abZ0-_.~!$&()*+,;=:@/?", max_size=12)


@settings(deadline=None, max_examples=500)
@given(st.sampled_from(["http://a.example", "https://a.example:81", "http://a.example.", "http://[::1]"]), PLAIN)
def test_the_short_way_for_plain_paths_leads_to_the_same_place(origin: str, path: str) -> None:
    base = parse(f"{origin}/b/c?d")
    for reference in (f"/{path}", f"{origin}/{path}", f"{origin}{path}", path):
        assert resolve(base, reference) == resolve(base.href, reference)


SEGMENT = st.text(string.ascii_letters + string.digits + "-_~!$'()*,;:@/", max_size=20)


@settings(deadline=None)
@given(SEGMENT, st.data())
def test_escaping_what_needs_no_escape_does_not_make_another_url(path: str, data: st.DataObject) -> None:
    """Whichever unreserved characters a page escapes, and in whichever case of hex (RFC 3986 6.2.2)."""

    def spell(character: str) -> str:
        if character not in string.ascii_letters + string.digits + "-_~" or not data.draw(st.booleans()):
            return character
        escape = f"%{ord(character):02x}"
        return escape.upper() if data.draw(st.booleans()) else escape

    plain = parse(f"http://a.example/x{path}?q={path}")
    spelt = parse("http://a.example/x" + "".join(map(spell, path)) + "?q=" + "".join(map(spell, path)))
    assert spelt.key == plain.key


@settings(deadline=None)
@given(URLISH)
def test_the_case_of_escapes_does_not_make_another_url(text: str) -> None:
    try:
        url = parse(text)
    except InvalidUrl:
        return
    swapped = re.sub(r"%[0-9A-Fa-f]{2}", lambda match: match[0].swapcase(), url.key)
    assert parse(swapped).key == url.key


# ---------------------------------------------------------------------------------------------------------- whose it is


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.com", "example.com"),
        ("WWW.Example.COM.", "example.com"),
        ("example.com", "example.com"),
        ("com", None),
        ("a.b.example.co.uk", "example.co.uk"),
        ("a.github.io", "a.github.io"),  # private section
        ("github.io", None),
        ("www.ck", "www.ck"),  # an exception to *.ck
        ("a.b.ck", "a.b.ck"),
        ("b.ck", None),
        ("a.unlisted-tld", "a.unlisted-tld"),
        ("localhost", None),
        ("192.0.2.1", None),
        ("[2001:db8::1]", None),
        ("食狮.公司.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("a..b", None),
        ("", None),
        (".", None),
        ("a" * 64 + ".com", None),
    ],
)
def test_url_8_registrable_domain(host: str, domain: str | None) -> None:
    assert registrable_domain(host) == domain


@pytest.mark.parametrize(
    ("host", "by_host", "by_domain"),
    [
        ("www.Example.com", "www.example.com", "example.com"),
        ("a.example.", "a.example", "a.example"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]", "[::1]"),
        ("localhost", "localhost", "localhost"),
        ("co.uk", "co.uk", "co.uk"),
    ],
)
def test_host_key(host: str, by_host: str, by_domain: str) -> None:
    assert host_key(host) == by_host
    assert host_key(host, "domain") == by_domain


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.8.7", "[::1]", "::1", "localhost", "A.LOCALHOST.", "[::ffff:7f00:1]"]
)
def test_loopback_names(host: str) -> None:
    assert is_loopback_name(host)


@pytest.mark.parametrize("host", ["128.0.0.1", "localhost.example", "notlocalhost", "[::2]", "0.0.0.0", "", "10.0.0.1"])
def test_names_that_are_not_loopback(host: str) -> None:
    assert not is_loopback_name(host)


@settings(deadline=None)
@given(st.text())
def test_any_text_has_a_host_key(host: str) -> None:
    for per in ("host", "domain"):
        key = host_key(host, per)
        assert host_key(key, per) == key
    is_loopback_name(host)
