"""`comity.headers`: what fields say, read widely, and never with an exception."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity import headers
from comity.headers import LinkValue
from comity.model import Headers

NOW = 1_796_083_200.0  # Tue, 01 Dec 2026 00:00:00 GMT
DATE = ("date", "Tue, 01 Dec 2026 00:00:00 GMT")


def test_the_first_value_and_all_of_them() -> None:
    fields = (("a", "1"), ("b", "2"), ("a", "3"))
    assert headers.get(fields, "a") == "1"
    assert headers.get(fields, "c") is None
    assert headers.get_all(fields, "a") == ("1", "3")
    assert headers.get_all(fields, "c") == ()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["Text/HTML; Charset=UTF-8"], ("text/html", "utf-8")),
        (['text/html;charset="u\\tf-8"'], ("text/html", "utf-8")),
        (['text/html;x="a;charset=no";charset=yes'], ("text/html", "yes")),
        (["text/html;;; charset=a;charset=b"], ("text/html", "a")),
        (["text/html; junk; charset=a"], ("text/html", "a")),
        (["text/html; charset='a'"], ("text/html", "a")),
        (["text/html; charset = a"], ("text/html", "a")),
        (['text/html; charset="a'], ("text/html", "a")),
        (["text/html; charset="], ("text/html", None)),
        (["text"], (None, None)),
        ([""], (None, None)),
        ([], (None, None)),
        (["text/html", "text/plain; charset=a"], ("text/plain", "a")),  # the last readable one, as in browsers
        (["text/html", "nonsense"], ("text/html", None)),
    ],
)
def test_content_type(values: list[str], expected: tuple[str | None, str | None]) -> None:
    assert headers.content_type(tuple(("content-type", value) for value in values)) == expected


def test_cnd_1_validators_are_verbatim() -> None:
    assert headers.validators((("etag", 'W/"a-gzip"'), ("last-modified", "yesterday"))) == ('W/"a-gzip"', "yesterday")
    assert headers.validators((("etag", ""), ("x", "y"))) == (None, None)


# ------------------------------------------------------------------------------------------------------------ how long


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([("retry-after", "7")], 7.0),
        ([("retry-after", "7.2")], 8.0),
        ([("retry-after", "7"), ("retry-after", "9")], 9.0),
        ([("retry-after", "7, 9")], 9.0),
        ([("retry-after", "abc"), ("retry-after", "9")], 9.0),
        ([("retry-after", "-1")], None),
        ([("retry-after", "٧")], None),
        ([("retry-after", "")], None),
        ([], None),
        ([("retry-after", "Tue, 01 Dec 2026 00:01:30 GMT")], 90.0),
        ([("retry-after", "Mon, 30 Nov 2026 00:00:00 GMT")], 0.0),
        ([("retry-after", "Tue, 01 Dec 2026 01:01:30 GMT"), ("date", "Tue, 01 Dec 2026 01:00:00 GMT")], 90.0),
    ],
)
def test_thr_1_retry_after(fields: list[tuple[str, str]], expected: float | None) -> None:
    assert headers.retry_after_s(tuple(fields), NOW) == expected


@pytest.mark.parametrize(
    ("fields", "lifetime"),
    [
        ([], None),
        ([("cache-control", "public")], None),
        ([("cache-control", "max-age=60")], 60.0),
        ([("cache-control", 'private, Max-Age="60"')], 60.0),
        ([("cache-control", "max-age=60"), ("cache-control", "max-age=30")], 30.0),
        ([("cache-control", "max-age=x")], 0.0),
        ([("cache-control", "max-age=99999999999999999999999")], 1e12),
        ([("cache-control", "s-maxage=60")], None),  # we are no shared cache
        ([("cache-control", "max-age=60, no-cache")], 0.0),
        ([("cache-control", "no-store")], 0.0),
        ([("cache-control", 'no-cache="set-cookie", max-age=60')], 0.0),
        ([("cache-control", 'x="a, no-store", max-age=60')], 60.0),
        ([("cache-control", "max-age=60"), ("age", "50")], 10.0),
        ([("cache-control", "max-age=60"), ("age", "70")], 0.0),
        ([("cache-control", "max-age=60"), ("date", "Mon, 30 Nov 2026 23:59:50 GMT")], 50.0),
        ([("cache-control", "max-age=60"), ("date", "Tue, 01 Dec 2026 00:10:00 GMT")], 60.0),  # its clock is ahead
        ([("expires", "Tue, 01 Dec 2026 00:01:00 GMT")], 60.0),
        ([("expires", "Tue, 01 Dec 2026 00:01:00 GMT"), DATE], 60.0),
        ([("expires", "Tue, 01 Dec 2026 00:01:00 GMT"), ("cache-control", "max-age=5")], 5.0),
        ([("expires", "Mon, 30 Nov 2026 00:01:00 GMT")], 0.0),
        ([("expires", "0")], 0.0),
        ([("expires", "-1")], 0.0),
        ([("last-modified", "Mon, 30 Nov 2020 00:00:00 GMT")], None),  # no guess
    ],
)
def test_frs_1_how_long_an_answer_stays_good(fields: list[tuple[str, str]], lifetime: float | None) -> None:
    assert headers.cache_lifetime_s(tuple(fields), NOW) == lifetime


def test_frs_2_freshness_is_kept_within_bounds() -> None:
    def until(value: str, **bounds: float) -> float | None:
        return headers.fresh_until_at((("cache-control", value),), NOW, **bounds)

    assert until("max-age=60") == NOW + 60
    assert until("max-age=31536000") == NOW + 7 * 86_400
    assert until("max-age=31536000", cap_s=100) == NOW + 100
    assert until("max-age=60", floor_s=61) is None
    assert until("max-age=0") is None
    assert until("no-cache") is None
    assert until("public") is None


# ---------------------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["</a>; rel=canonical"], [LinkValue("/a", ("canonical",))]),
        (['<b?x,y;z>; rel="Next  alternate"; title="c, \\"d\\""'],
         [LinkValue("b?x,y;z", ("next", "alternate"), (("title", 'c, "d"'),))]),
        (["<a>; rel=x, <b>; rel=y", "<c>"], [LinkValue("a", ("x",)), LinkValue("b", ("y",)), LinkValue("c", ())]),
        (["<a> ; rel = x ; REL=y ; anchor=\"#z\""], [LinkValue("a", ("x",), (("anchor", "#z"),))]),
        (["<a>;;rel=x;"], [LinkValue("a", ("x",))]),
        (["<a>; rel=x junk, <b>; rel=y"], [LinkValue("a", ("x",)), LinkValue("b", ("y",))]),
        ([""], []),
        (["a; rel=x"], []),
        (["<a"], []),
    ],
)  # fmt: skip
def test_rel_2_link_fields(lines: list[str], expected: list[LinkValue]) -> None:
    found = headers.link_values(tuple(("link", line) for line in lines))
    assert [(link.target, link.rels) for link in found] == [(link.target, link.rels) for link in expected]
    for link, other in zip(found, expected, strict=True):
        assert dict(link.params).items() >= dict(other.params).items()


def test_link_parameters_by_name() -> None:
    (link,) = headers.link_values((("link", "<a>; rel=x; hreflang=en; hreflang=de"),))
    assert (link.param("hreflang"), link.param("type")) == ("en", None)


# ---------------------------------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2014", (1388534400.0, False)),
        ("2014-06", (1401580800.0, False)),
        ("2014-06-03", (1401753600.0, False)),
        ("2014-06-03T10:30Z", (1401791400.0, True)),
        ("2014-06-03T10:30:45+02:00", (1401784245.0, True)),
        ("2014-06-03T10:30:45.25-0500", (1401809445.25, True)),
        ("2014-06-03 10:30", (1401791400.0, True)),  # no zone: UTC
        (" 2014-6-3 ", (1401753600.0, False)),
        ("2014-13-01", None),
        ("2014-02-30", None),
        ("2014-06-03T25:00", None),
        ("2014-06-03T10:30:45+99:00", None),
        ("0000-01-01", None),
        ("14-06-03", None),
        ("", None),
        ("٢٠١٤", None),
    ],
)
def test_smp_8_w3c_dates(text: str, expected: tuple[float, bool] | None) -> None:
    assert headers.parse_w3c_date(text) == expected


@settings(deadline=None)
@given(st.integers(0, 253402300799), st.floats(0, 4e9))
def test_every_instant_is_read_back_in_all_three_forms(at: int, now: float) -> None:
    then = datetime.fromtimestamp(at, UTC)
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    month, clock = months[then.month - 1], then.strftime("%H:%M:%S")
    assert headers.parse_date(f"Sun, {then.day:02} {month} {then.year:04} {clock} GMT", now) == at
    assert headers.parse_date(f"Sun {month} {then.day:2} {clock} {then.year:04}", now) == at
    assert headers.parse_w3c_date(f"{then.year:04}{then:-%m-%dT%H:%M:%SZ}") == (at, True)
    short = headers.parse_date(f"Sunday, {then.day:02}-{month}-{then.year % 100:02} {clock} GMT", now)
    if short is not None:  # 29 February is missing from some centuries
        assert -51 * 366 * 86_400 < short - now < 50 * 366 * 86_400


FIELD = st.tuples(
    st.sampled_from(
        ["content-type", "retry-after", "cache-control", "expires", "date", "age", "link", "etag", "last-modified"]
    ),
    st.text(st.characters(max_codepoint=255))
    | st.lists(st.sampled_from([*list("<>;,=\"\\ '*:/"), "max-age", "1", "rel", "text", "GMT", "Nov", "06", "charset"]))
    .map("".join),
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(FIELD, max_size=4).map(tuple), st.floats(0, 4e9))
def test_nothing_raises(fields: Headers, now: float) -> None:
    headers.content_type(fields)
    headers.link_values(fields)
    headers.validators(fields)
    waited = headers.retry_after_s(fields, now)
    assert waited is None or (waited >= 0 and math.isfinite(waited))
    lifetime = headers.cache_lifetime_s(fields, now)
    assert lifetime is None or (lifetime >= 0 and math.isfinite(lifetime))
    until = headers.fresh_until_at(fields, now)
    assert until is None or now < until <= now + 7 * 86_400


@pytest.mark.parametrize("piece", [';x="', '\\"', ",<", "a=b;", " ; ", '"', "=", "1, ", "max-age=1 "])
def test_long_fields_are_read_in_no_time(piece: str) -> None:
    """64 KiB is the longest line that the fetcher takes."""
    line = "text/html" + piece * (65_536 // len(piece))
    fields = tuple((name, line) for name in ("content-type", "link", "cache-control", "retry-after", "expires"))
    headers.content_type(fields)
    headers.link_values(fields)
    headers.link_values((("link", "<a>" + line), ("link", "<a>" + line[9:])))
    assert headers.retry_after_s(fields, NOW) is None
    headers.cache_lifetime_s(fields, NOW)
