"""Octets of a robots.txt become facts: RFC 9309 section 2.2, ROB-3…9, ROB-10, ROB-30, ROB-31, and traps 1.4."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.robots import parse, product_token_problem
from comity.robots.grammar import MAX_BYTES, MAX_LINE, Field, records


def groups(body: bytes) -> list[tuple[tuple[str, ...], list[tuple[int, bool, str]]]]:
    return [(group.agents, [(r.line, r.allow, r.pattern) for r in group.rules]) for group in parse(body).groups]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=["lf", "cr", "crlf"])
def test_rob_4_line_ends_white_space_comments_and_case(end: bytes) -> None:
    body = end.join([b"# hello", b"USER-agent:a#b", b"", b" \tDisallow \t: \t/x # why", b"allow:/y"])
    assert groups(body) == [(("a",), [(4, False, "/x"), (5, True, "/y")])]
    assert parse(body).groups[0].rules[0].text == "Disallow \t: \t/x"


def test_rob_4_line_ends_may_be_mixed_and_are_counted_as_lines() -> None:
    assert [line for line, *_ in records(b"allow: /a\r\rallow: /b\r\n\nallow: /c\n\rallow: /d")] == [1, 3, 5, 7]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            b"user-agent: a\n\ndisallow: /\n", [(("a",), [(3, False, "/")])], id="ROB-5: a blank line ends no group"
        ),
        pytest.param(
            b"user-agent: a\ndisallow: /1\nuser-agent: b\ndisallow: /2",
            [(("a",), [(2, False, "/1")]), (("b",), [(4, False, "/2")])],
            id="ROB-5: a User-agent line after a rule starts a group",
        ),
        pytest.param(
            b"user-agent: a\nsitemap: /s\nunknown: x\ncrawl-delay: 1\nhost: h\nuser-agent: b\ndisallow: /",
            [(("a", "b"), [(7, False, "/")])],
            id="ROB-6: other records end no group",
        ),
        pytest.param(b"disallow: /\nuser-agent: a", [(("a",), [])], id="ROB-7: rules before any group bind nobody"),
        pytest.param(
            b"user-agent: a\ndisallow: /\nuser-agent: b", [(("a",), [(2, False, "/")]), (("b",), [])], id="ROB-8"
        ),
        pytest.param(
            b"user-agent: a\n\xff\xfe\x00:\nnonsense\n: /x\nDisallow\ndisallow: /\n",
            [(("a",), [(6, False, "/")])],
            id="ROB-9: a broken line voids nothing",
        ),
        pytest.param(
            b"user-agent: a\ndisallow:\nuser-agent: b",
            [(("a",), [(2, False, "")]), (("b",), [])],
            id="ROB-20: an empty rule is a rule that matches nothing, and ends the run",
        ),
    ],
)
def test_groups(body: bytes, expected: list[tuple[tuple[str, ...], list[tuple[int, bool, str]]]]) -> None:
    assert groups(body) == expected


@pytest.mark.parametrize(
    ("value", "token"),
    [
        (b"FooBot", "foobot"),
        (b"FooBot/2.1", "foobot"),
        (b"FooBot*", "foobot"),
        (b"Foo Bar", "foo"),
        (b"foo_bar-baz", "foo_bar-baz"),
        (b"*", "*"),
        (b"* all of you", "*"),
        (b"*bot", ""),
        (b"1bot", ""),
        (b"b\xc3\xb6t", "b"),
        (b"", ""),
    ],
)
def test_rob_11_the_token_of_a_user_agent_line(value: bytes, token: str) -> None:
    assert parse(b"user-agent: " + value).groups[0].agents == (token,)


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"], ids=["whole", "two octets", "one octet"])
def test_rob_31_b007_a_byte_order_mark_is_skipped(prefix: bytes) -> None:
    assert groups(prefix + b"User-agent: *\nDisallow: /\n") == [(("*",), [(2, False, "/")])]


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_a_mark_is_read_not_ignored(codec: str) -> None:
    body = "\ufeffUser-agent: *\nDisallow: /é\n".encode(codec)
    assert groups(body) == [(("*",), [(2, False, "/\xc3\xa9")])]
    assert parse(body).digest == hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"useragent: a", Field.USER_AGENT),
        (b"user agent: a", Field.USER_AGENT),
        (b"dissallow: a", Field.DISALLOW),
        (b"dissalow: a", Field.DISALLOW),
        (b"disalow: a", Field.DISALLOW),
        (b"diasllow: a", Field.DISALLOW),
        (b"disallaw: a", Field.DISALLOW),
        (b"site-map: a", Field.SITEMAP),
        (b"Disallow /a", Field.DISALLOW),
        (b"user-agent a # two words, no colon", Field.USER_AGENT),
        (b"disallowed: a", None),
        (b"allowance: a", None),
    ],
)
def test_rob_31_misspellings_count_and_prefixes_do_not(line: bytes, field: Field | None) -> None:
    assert [found for _, found, _, _ in records(line)] == [field]


@pytest.mark.parametrize("line", [b"Disallow", b"disallow /a /b", b"some prose", b"# disallow: /", b""])
def test_rob_31_lines_without_a_colon_are_prose_unless_two_words(line: bytes) -> None:
    assert list(records(line)) == []


def test_rob_31_a_long_line_is_cut_not_lost() -> None:
    body = b"user-agent: a\ndisallow: /x" + b"y" * 20_000 + b"\nallow: /z"
    (long, short) = parse(body).groups[0].rules
    assert len("disallow: " + long.pattern) == MAX_LINE
    assert short.pattern == "/z"
    assert len(long.text) == 200
    assert long.text.endswith("…")


def test_rob_30_b027_the_rest_is_ignored_and_the_cut_line_dropped() -> None:
    start = b"user-agent: *\ndisallow: /first\n"
    body = start + b"#" * (MAX_BYTES - len(start) - 10) + b"\ndisallow: /private\ndisallow: /late"
    file = parse(body)
    assert file.truncated
    assert [rule.pattern for rule in file.groups[0].rules] == ["/first"]
    assert file.digest == hashlib.sha256(body).hexdigest()
    assert [rule.pattern for rule in parse(body, limit=10**6).groups[0].rules] == ["/first", "/private", "/late"]


def test_rob_30_at_least_500_kib_are_read() -> None:
    body = b"user-agent: *\n" + b"#" * (512_000 - 14 - 11) + b"\ndisallow:/"
    assert len(body) == 512_000
    assert len(parse(body).groups[0].rules) == 1


def test_b019_trap_7_a_page_served_as_robots_txt_has_no_rules_and_is_marked() -> None:
    file = parse(b" \n<!doctype html><html><title>User-agent: *</title>Disallow: /</html>")
    assert (file.groups, file.records, file.markup) == ((), 0, True)
    assert not parse(b"User-agent: *").markup


def test_ext_1_settings_belong_to_the_run_of_user_agent_lines_right_above() -> None:
    body = (
        b"user-agent: a\nuser-agent: b\ncrawl-delay: 5\nuser-agent: c\nrequest-rate: 1/9\ndisallow: /\ncrawl-delay: 7"
    )
    assert [(s.line, s.field, s.value, s.agents) for s in parse(body).settings] == [
        (3, Field.CRAWL_DELAY, "5", ("a", "b")),
        (5, Field.REQUEST_RATE, "1/9", ("c",)),
        (7, Field.CRAWL_DELAY, "7", ("c",)),
    ]
    assert parse(body).groups[0].agents == ("a", "b", "c")


def test_ext_5_sitemaps_count_anywhere_and_once() -> None:
    body = "Sitemap: https://é.example/s\nuser-agent: a\nsitemap: /t\nsitemap:\nsitemap: /t\n".encode()
    assert parse(body).sitemaps == (("https://é.example/s", 1), ("/t", 3))


@pytest.mark.parametrize("token", ["ourbot", "Our-Bot", "_", "A"])
def test_rob_10_product_tokens(token: str) -> None:
    assert product_token_problem(token) is None


@pytest.mark.parametrize("token", ["", "ourbot/2", "our bot", "bot2", "böt", "*", "ourbot\n"])
def test_rob_10_no_product_tokens(token: str) -> None:
    assert product_token_problem(token)


@given(st.binary(max_size=400))
@settings(deadline=None)
def test_parse_never_raises(body: bytes) -> None:
    assert parse(body).digest == hashlib.sha256(body).hexdigest()


LINES = st.lists(
    st.sampled_from(
        [
            b"User-agent: *",
            b"user-agent: a",
            b"Disallow: /x",
            b"Allow: /y",
            b"Sitemap: /s",
            b"Crawl-delay: 2",
            b"?",
            b"",
        ]
    ),
    max_size=12,
)


@given(LINES, st.binary(max_size=30).filter(lambda line: not set(line) & set(b"\r\n")), st.integers(0, 12))
@settings(deadline=None)
def test_rob_4_a_comment_never_changes_anything_but_line_numbers(lines: list[bytes], note: bytes, at: int) -> None:
    def without_lines(body: bytes) -> object:
        file = parse(body)
        return (
            [(group.agents, [(r.allow, r.pattern) for r in group.rules]) for group in file.groups],
            [(s.field, s.value, s.agents) for s in file.settings],
            [url for url, _ in file.sitemaps],
        )

    commented = [*lines[:at], b"#" + note, *lines[at:]]
    assert without_lines(b"\n".join(lines)) == without_lines(b"\r\n".join(commented))
