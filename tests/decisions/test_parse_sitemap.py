"""`comity.parse.sitemap` and what it stands on: lists read leniently, in bounds (SMP-1 … SMP-12)."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.model import Found, LinkKind, Page
from comity.parse import Limits, inflate, read, salvage
from comity.url import parse

HERE = parse("https://a.example/s/map.xml")
NOW = 1_796_083_200.0  # 2026-12-01
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def found_in(
    body: str | bytes, media_type: str | None = "application/xml", *, known: bool = True, limits: Limits | None = None
) -> Found:
    data = body.encode() if isinstance(body, str) else body
    fields = (("content-type", media_type),) if media_type else ()
    return read(Page(200, fields, data), HERE, limits=limits or Limits(), token="x", now=NOW, sitemap=known)


def listed(found: Found) -> list[tuple[str, float | None]]:
    return [(link.url, link.hint_at) for link in found.links]


def test_smp_1_a_url_set() -> None:
    found = found_in(
        f"""<?xml version="1.0" encoding="UTF-8"?><urlset {NAMESPACE}>
        <url><loc> https://a.example/1 </loc><lastmod>2026-01-01</lastmod><priority>0.5</priority></url>
        <url><loc>https://a.example/2?a=1&amp;b=2</loc></url></urlset>"""
    )
    assert found.kind == "sitemap"
    assert listed(found) == [("https://a.example/1", 1_767_225_600.0), ("https://a.example/2?a=1&b=2", None)]
    assert {link.kind for link in found.links} == {LinkKind.SITEMAP_URL}
    assert (found.problem, found.truncated, found.charset) == (None, False, "utf-8")


def test_smp_4_an_index() -> None:
    found = found_in(
        f"<sitemapindex {NAMESPACE}><sitemap><loc>https://a.example/s/map.xml</loc></sitemap></sitemapindex>"
    )
    assert found.kind == "sitemapindex"
    assert [(link.url, link.kind) for link in found.links] == [("https://a.example/s/map.xml", LinkKind.SITEMAP)]


def test_smp_7_a_list_in_text() -> None:
    found = found_in("\ufeffhttps://a.example/1\r\n\n# no\nftp://a.example/2\rhttps://a.example/3#x\n", "text/plain")
    assert (found.kind, listed(found)) == (
        "text_sitemap",
        [("https://a.example/1", None), ("https://a.example/3", None)],
    )


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("<loc>https://a.example/x</loc>", ["https://a.example/x"]),
        ("<loc><![CDATA[https://a.example/?a=1&b=2]]></loc>", ["https://a.example/?a=1&b=2"]),  # B134
        ("<loc>\n https://a.example/ü?a=1&amp;b=2 \n</loc>", ["https://a.example/%C3%BC?a=1&b=2"]),
        ("<loc>https://a.example/?a=1&b=2&c</loc>", ["https://a.example/?a=1&b=2&c"]),  # bare ampersands
        ("<loc>/r</loc>", ["https://a.example/r"]),
        ("<loc>a.example/r</loc>", ["https://a.example/r"]),  # only the scheme forgotten
        ("<loc></loc>", []),
        ("<lastmod>2024-01-01</lastmod>", []),
        ("<loc>ftp://a.example/</loc>", []),
        ("<loc>https://a.example/&x;</loc>", []),  # an entity of anybody's making
        ("<loc>https://a.example/<b/>x</loc>", []),
        ("<loc>https://a.example/1</loc><loc>https://a.example/2</loc>", ["https://a.example/1"]),
        ('<x:loc xmlns:x="urn:x">https://a.example/no</x:loc><loc>https://a.example/x</loc>', ["https://a.example/x"]),
        ('<image:image xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><image:loc>https://a.example/i'
         "</image:loc></image:image><loc>https://a.example/x</loc>", ["https://a.example/x"]),
    ],
)  # fmt: skip
def test_smp_12_locations(url: str, expected: list[str]) -> None:
    found = found_in(f"<urlset {NAMESPACE}><url>{url}</url></urlset>")
    assert [link.url for link in found.links] == expected


@pytest.mark.parametrize(
    "namespace",
    [
        "",
        NAMESPACE,
        NAMESPACE.replace("http:", "https:"),
        NAMESPACE.replace('0.9"', '0.9/"'),
        'xmlns="http://www.google.com/schemas/sitemap/0.84"',
        'xmlns="urn:wrong"',
    ],
)
def test_smp_1_namespaces(namespace: str) -> None:  # B133
    page = f"<urlset {namespace}><url><loc>https://a.example/x</loc></url></urlset>"
    assert listed(found_in(page)) == [("https://a.example/x", None)]
    prefixed = page.replace("<", "<sm:").replace("<sm:/", "</sm:").replace("xmlns=", "xmlns:sm=")
    if namespace:
        assert listed(found_in(prefixed)) == [("https://a.example/x", None)]


@pytest.mark.parametrize(
    ("lastmod", "at"),
    [
        ("2014", 1388534400.0),
        ("2014-06", 1401580800.0),
        ("2014-06-03", 1401753600.0),
        ("2014-06-03T10:30+02:00", 1401784200.0),
        ("2014-06-03T10:30:45Z", 1401791445.0),
        ("2014-06-03T10:30:45.5Z", 1401791445.5),
        ("2014-06-03 10:30:45", 1401791445.0),
        ("Tue, 03 Jun 2014 10:30:45 GMT", 1401791445.0),
        ("2026-12-01T12:00:00Z", NOW + 43_200),  # clocks differ
        ("2026-12-03", None),  # but not by that much
        ("2014-13-45", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_smp_8_lastmod(lastmod: str, at: float | None) -> None:
    page = f"<urlset><url><loc>https://a.example/x</loc><lastmod> {lastmod} </lastmod></url></urlset>"
    assert listed(found_in(page)) == [("https://a.example/x", at)]


def test_smp_1_a_namespace_may_come_late() -> None:
    page = f"<urlset><url {NAMESPACE}><loc>https://a.example/x</loc></url></urlset>"
    assert listed(found_in(page)) == [("https://a.example/x", None)]


def test_nothing_leaks_into_the_next_entry() -> None:  # B135
    found = found_in(
        "<urlset><url><lastmod>2024-01-01</lastmod></url><url><loc>https://a.example/b</loc></url></urlset>"
    )
    assert listed(found) == [("https://a.example/b", None)]


BROKEN = {
    "cut between entries": ("<urlset><url><loc>https://a.example/1</loc></url>", 1),
    "cut inside a location": ("<urlset><url><loc>https://a.example/1</loc></url><url><loc>https://a.exam", 1),
    "cut inside an end tag": ("<urlset><url><loc>https://a.example/1</lo", 1),
    "entries not closed": ("<urlset><url><loc>https://a.example/1</loc><url><loc>https://a.example/2</loc>", 2),
    "tags out of order": ("<urlset><url><loc>https://a.example/1</url></loc><url><loc>https://a.example/2</loc>", 2),
    "stray end tags": ("<urlset></url><url><loc>https://a.example/1</loc></url></url></urlset>", 1),
    "a comment cut off": ("<urlset><url><loc>https://a.example/1</loc></url><!-- <loc>https://a.example/2</loc>", 1),
    "commented out": ("<urlset><!--<url><loc>https://a.example/2</loc></url>--><url><loc>https://a.example/1</loc>", 1),
    "an entity": ("<urlset><url><loc>https://a.example/&x;</loc></url><url><loc>https://a.example/1</loc>", 1),
    "a reference": ("<urlset><url><loc>https://a.example/&#49;?&amp;<![CDATA[&]]></loc>", 1),
    "foreign prefixes": ("<urlset><url><x:loc>https://a.example/2</x:loc><loc>https://a.example/1</loc>", 1),
}  # fmt: skip


@pytest.mark.parametrize(("page", "count"), BROKEN.values(), ids=BROKEN.keys())
def test_smp_12_what_is_whole_is_saved(page: str, count: int) -> None:
    found = found_in(page)
    assert [link.url.partition("?")[0] for link in found.links] == [f"https://a.example/{n + 1}" for n in range(count)]
    assert found.kind == "sitemap"
    assert found.problem is not None
    assert found.problem.startswith("not well-formed")


def test_a_lastmod_stays_with_its_own_entry_when_entries_are_not_closed() -> None:
    page = "<urlset><url><loc>https://a.example/1</loc><url><loc>https://a.example/2</loc><lastmod>2014</lastmod>"
    assert listed(found_in(page)) == [("https://a.example/1", None), ("https://a.example/2", 1388534400.0)]


def test_smp_12_no_entity_is_expanded_and_nothing_is_fetched() -> None:  # B138
    bomb = "".join(f'<!ENTITY e{n + 1} "{"&e" + str(n) + ";" * 1}{("&e" + str(n) + ";") * 9}">' for n in range(12))
    page = f"""<!DOCTYPE urlset [<!ENTITY e0 "lol">{bomb}<!ENTITY f SYSTEM "file:///etc/hostname">]>
        <urlset><url><loc>https://a.example/&e12;</loc></url><url><loc>https://a.example/&f;</loc></url>
        <url><loc>https://a.example/x</loc></url></urlset>"""
    assert [link.url for link in found_in(page).links] == ["https://a.example/x"]


def test_a_document_type_after_a_long_comment() -> None:  # B138
    page = f"<!-- {'x' * 5_000} --><!DOCTYPE urlset><urlset><url><loc>https://a.example/x</loc></url></urlset>"
    assert listed(found_in(page)) == [("https://a.example/x", None)]


# --------------------------------------------------------------------------------------------------------------- bounds


def test_smp_2_the_number_of_urls_is_bounded() -> None:
    entries = "".join(f"<url><loc>https://a.example/{n}</loc></url>" for n in range(3_000))
    for page in (f"<urlset>{entries}</urlset>", f"<urlset>{entries}"):
        found = found_in(page, limits=Limits(sitemap_max_urls=10))
        assert len(found.links) == 10
        assert found.links_left_out > 0
    lines = "".join(f"https://a.example/{n}\n" for n in range(30))
    found = found_in(lines, "text/plain", limits=Limits(sitemap_max_urls=10))
    assert (len(found.links), found.links_left_out) == (10, 20)


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_smp_3_gzip_by_its_first_bytes(layers: int) -> None:  # B130
    for page in (b"<urlset><url><loc>https://a.example/x</loc></url></urlset>", b"https://a.example/x\n"):
        body = page
        for _ in range(layers):
            body = gzip.compress(body)
        for media_type in ("application/gzip", "application/xml", "text/plain", "application/octet-stream", None):
            assert listed(found_in(body, media_type)) == [("https://a.example/x", None)]


def test_smp_3_size_counts_after_decompression() -> None:
    page = b"<urlset><url><loc>https://a.example/x</loc></url>" + b" " * 1_000_000
    found = found_in(gzip.compress(gzip.compress(page)), limits=Limits(sitemap_max_bytes=10_000))
    assert (listed(found), found.truncated) == ([("https://a.example/x", None)], True)


@pytest.mark.parametrize(
    ("body", "inside", "cut"),
    [
        (b"plain", b"plain", False),
        (gzip.compress(b"a"), b"a", False),
        (gzip.compress(b"a") + gzip.compress(b"b"), b"ab", False),
        (gzip.compress(b"a") + b"padding", b"a", False),
        (gzip.compress(b"") + gzip.compress(b"b"), b"b", False),
        (gzip.compress(b"a" * 100)[:-4], b"a" * 100, True),
        (gzip.compress(gzip.compress(b"a")), b"a", False),
        (gzip.compress(b"a" * 2_000), b"a" * 1_000, True),
        (b"a" * 2_000, b"a" * 1_000, True),
        (b"\x1f\x8bnonsense", b"\x1f\x8bnonsense", True),
        (b"\x1f\x8b", b"\x1f\x8b", True),
    ],
)
def test_unfolding(body: bytes, inside: bytes, cut: bool) -> None:
    assert inflate.whole(body, 1_000) == (inside, cut)


@settings(deadline=None)
@given(st.binary(), st.integers(0, 200), st.integers(1, 300))
def test_damaged_gzip_gives_a_beginning(data: bytes, cut: int, limit: int) -> None:
    packed = gzip.compress(data)[:cut]
    inside, _ = inflate.whole(packed, limit)
    assert len(inside) <= limit
    assert data.startswith(inside) or packed.startswith(inside)
    assert data.startswith(inflate.beginning(packed, 64)) or packed.startswith(inflate.beginning(packed, 64))


_PIECES = """<urlset> </urlset> <sitemapindex> <url> </url> <loc> </loc> <lastmod> </lastmod> 2014 https://a.example/x
    https://a.example/y & &amp; &x; &#x0; &#x110000; <![CDATA[ ]]> <!-- --> < > <x:loc> <!DOCTYPE ]> \0 é"""
PIECES = st.sampled_from([*_PIECES.split(), " ", "\n", "[", "<?xml version='1.0' encoding='koi8-r'?>"])
SITEMAPISH = st.binary() | st.lists(PIECES, max_size=30).map("".join).map(str.encode)


@settings(deadline=None)
@given(SITEMAPISH, st.sampled_from([None, "application/xml", "text/plain", "application/gzip", "text/html"]))
def test_anything_may_be_called_a_sitemap(body: bytes, media_type: str | None) -> None:
    for data in (body, gzip.compress(body)):
        found = found_in(data, media_type)
        assert found.kind in {"sitemap", "sitemapindex", "text_sitemap", "html", "other"}
        assert not (found.problem or "").startswith("our reader")
        assert len({link.key for link in found.links}) == len(found.links)


@settings(deadline=None)
@given(SITEMAPISH)
def test_salvage_never_fails(body: bytes) -> None:
    for entry in salvage.entries(body, "url"):
        assert entry.loc


@settings(deadline=None)
@given(st.lists(st.tuples(st.text("abc/é&<>'\"?=", max_size=8), st.booleans()), max_size=5), st.integers(0, 400))
def test_both_readers_agree_and_a_cut_file_gives_its_beginning(paths: list[tuple[str, bool]], cut: int) -> None:
    def quoted(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    entries = "".join(
        f"<url><loc>https://a.example/{quoted(path)}</loc>{'<lastmod>2014</lastmod>' if dated else ''}</url>"
        for path, dated in paths
    )
    page = f"<urlset>{entries}</urlset>"
    whole = listed(found_in(page))
    assert found_in(page).problem is None
    saved = [entry.loc for entry in salvage.entries(page.encode(), "url")]
    assert saved == [f"https://a.example/{path}" for path, _ in paths]
    part = [url for url, _ in listed(found_in(page.encode()[:cut]))]
    assert part == [url for url, _ in whole][: len(part)]
