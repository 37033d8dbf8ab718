"""Which rule decides: RFC 9309 sections 2.2.1 to 2.2.3, ROB-2, ROB-11…22, EXT-1…5, cases B002…B021, and the digest."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.model import Access, Verdict
from comity.robots import (
    Rules,
    compile,
    digest_without_rules,
    for_origin,
    parse,
    verdict,
    verdict_without_rules,
)
from comity.robots.delays import crawl_delay_s, seconds_per_request

ORIGIN = "https://a.example"


def rules(text: str | bytes, token: str | list[str] = "ourbot", origin: str = ORIGIN) -> Rules:
    return compile(parse(text.encode() if isinstance(text, str) else text), token, origin)


def star(*lines: str) -> Rules:
    return rules("\n".join(["User-agent: *", *lines]))


def allowed(of: Rules, target: str) -> bool:
    return verdict(of, target).allowed


A_OR_B = "user-agent: abot\ndisallow: /a\nuser-agent: bbot\ndisallow: /b\nuser-agent: *\ndisallow: /\n"


@pytest.mark.parametrize(
    ("text", "token", "target", "expected", "group"),
    [
        pytest.param("user-agent: OURBOT\ndisallow: /", "OurBot", "/x", False, "ourbot", id="ROB-11 case"),
        pytest.param("user-agent: bot\ndisallow: /", "ourbot", "/x", True, None, id="ROB-11 B011 no substring"),
        pytest.param("user-agent: ourbot-news\ndisallow: /", "ourbot", "/x", True, None, id="ROB-11 whole token"),
        pytest.param("user-agent: ourbot/2.1\ndisallow: /", "ourbot", "/x", False, "ourbot", id="ROB-11 version"),
        pytest.param(
            "user-agent: ourbot\ndisallow: /1\nuser-agent: x\ndisallow: /\nuser-agent: ourbot\ndisallow: /2",
            "ourbot",
            "/2",
            False,
            "ourbot",
            id="ROB-12 groups of one token are merged",
        ),
        pytest.param(
            "user-agent: *\ndisallow: /1\nuser-agent: x\ndisallow: /\nuser-agent: *\ndisallow: /2",
            "ourbot",
            "/1",
            False,
            "*",
            id="ROB-12 groups of * too",
        ),
        pytest.param(
            "user-agent: ourbot\ndisallow:\nuser-agent: *\ndisallow: /",
            "ourbot",
            "/x",
            True,
            "ourbot",
            id="ROB-13 B006",
        ),
        pytest.param(
            "user-agent: *\ndisallow: /\nuser-agent: ourbot", "ourbot", "/x", True, "ourbot", id="ROB-13 ROB-8"
        ),
        pytest.param("user-agent: x\ndisallow: /", "ourbot", "/x", True, None, id="ROB-14"),
        pytest.param(A_OR_B, ["abot", "bbot"], "/b", True, "abot", id="ROB-15 first token alone"),
        pytest.param(A_OR_B, ["cbot", "bbot"], "/b", False, "bbot", id="ROB-15 fallback"),
        pytest.param(A_OR_B, ["cbot", "dbot"], "/c", False, "*", id="ROB-15 then *"),
    ],
)
def test_group_choice(text: str, token: str | list[str], target: str, expected: bool, group: str | None) -> None:
    found = verdict(rules(text, token), target)
    assert (found.allowed, found.group) == (expected, group)


MATCHES = [
    # rule, target, matches, id
    ("/", "/", True, "ROB-16"),
    ("/fish", "/fish.html?a=b", True, "ROB-16 prefix"),
    ("/fish", "/Fish", False, "ROB-16 case"),
    ("/p?x", "/p?x=1", True, "ROB-16 query"),
    ("/p;a", "/p;a=1", True, "ROB-16 params"),
    ("/foo/bar/ツ", "/foo/bar/%E3%83%84", True, "ROB-17 table 1"),
    ("/foo/bar/%e3%83%84", "/foo/bar/ツ", True, "ROB-17 both sides"),
    ("/foo/bar/%62%61%7A", "/foo/bar/baz", True, "ROB-17 table 2"),
    ("/foo/bar/baz", "/foo/bar/%62%61%7A", True, "ROB-17 the other way"),
    ("/a%2Fb", "/a/b", False, "ROB-17 table 3"),
    ("/a/b", "/a%2fb", False, "ROB-17 slash"),
    ("/a%2fb", "/a%2Fb", True, "ROB-17 hex case"),
    ("/a%3Fb", "/a?b", False, "ROB-17 question mark"),
    ("/a%25b", "/a%b", False, "ROB-17 percent"),
    ("/a%2541", "/aA", False, "trap 8: decoded twice"),
    ("/100%", "/100%", True, "a stray percent"),
    ("/path/foo-%24", "/path/foo-$", True, "ROB-17 table 4"),
    ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True, "ROB-17 table 5"),
    ("/f-%2A.html", "/f-z.html", False, "B010"),
    ("/x-%24", "/x-", False, "B010 dollar"),
    ("/foo?u=http://x", "/foo?u=http%3A%2F%2Fx", True, "ROB-17 table 6, D5"),
    ("/foo?u=http://x", "/foo?u=http://x", True, "ROB-17 table 6 raw"),
    ("/foo?u=http%3a%2f%2fx", "/foo?u=http://x", True, "ROB-17 table 6, escaped rule"),
    ("/a:b", "/a%3Ab", True, "ROB-17 reserved"),
    ("/a b|c", "/a%20b%7Cc", True, "octets no URI may hold raw"),
    ("/*%2F*", "/a/b", False, "B008"),
    ("/*%2F*", "/a%2Fb", True, "B008"),
    ("/*%2F", "/x?u=a%2fb", True, "B008 as written, in a query"),
    ("/*%2F", "/x?u=a/b", False, "B008 a raw slash"),
    ("/find?*q=*rel*", "/find?q=%3Arel%3Atype%3AA%2BB", True, "B018"),
    ("/?", "/", False, "B013"),
    ("/?", "/a", False, "B013"),
    ("/?", "/?x=1", True, "B013"),
    ("/*.gif$", "/a/b.gif", True, "ROB-18"),
    ("/*.gif$", "/a/b.gif?x", False, "ROB-18 end"),
    ("/*.gif$", "/a.gif/b.gif", True, "ROB-18 the last one"),
    ("/a*b*c$", "/abbc", True, "ROB-18 leftmost is good enough"),
    ("/a*bc$", "/abc", True, "ROB-18 empty run"),
    ("/ab*b$", "/ab", False, "ROB-18 no overlap"),
    ("/a*/b", "/a?x=/b", True, "ROB-18 any octet"),
    ("/a$b", "/a$b", True, "ROB-18 a dollar in the middle"),
    ("/a$b", "/a", False, "ROB-18 is no anchor"),
    ("/a$", "/a", True, "ROB-18 exact"),
    ("/a$", "/ab", False, "ROB-18 exact"),
    ("/a*$", "/abc", True, "ROB-18 open end"),
    ("/a**b", "/axb", True, "ROB-18 many stars"),
    ("/a*", "/abc", True, "ROB-18 last star"),
    ("/a*", "/b", False, "ROB-18 last star"),
    ("*", "/", True, "ROB-22"),
    ("*/test", "/a/test", True, "ROB-22 B017"),
    ("*/test", "/test", True, "ROB-22 B017"),
    ("*/test", "/tes", False, "ROB-22 B017"),
    ("*.gif$", "/x.gif", True, "ROB-22 the RFC's own example"),
    ("a", "/a", False, "ROB-22 neither / nor *"),
    ("$", "/", False, "ROB-22"),
    ("", "/", False, "ROB-20"),
    ("http://a.example/x", "/http://a.example/x", False, "ROB-22 an absolute URL"),
]


@pytest.mark.parametrize(
    ("pattern", "target", "matches"), [m[:3] for m in MATCHES], ids=[f"{m[3]}: {m[0]}" for m in MATCHES]
)
def test_a_rule_matches(pattern: str, target: str, matches: bool) -> None:
    assert allowed(star(f"Disallow: {pattern}"), target) is not matches
    assert (
        allowed(star("Disallow: /", f"Allow: {pattern}{'*' if pattern == '*' else ''}"), target) is matches
        or target == "/"
    )


def test_b009_a_file_in_latin_1_keeps_its_rules() -> None:
    found = rules(b"User-agent: *\nDisallow: /b\xfccher/\nDisallow: /x\n")
    assert not allowed(found, "/b%FCcher/1")
    assert not allowed(found, "/x")
    assert verdict(found, "/b%fccher/").rule == "Disallow: /b\ufffdcher/"


def test_b009_a_file_in_utf_8() -> None:
    found = star("Disallow: /bücher/")
    assert not allowed(found, "/b%C3%BCcher/1")
    assert not allowed(found, "/bücher/1")
    assert verdict(found, "/b%c3%bccher/").rule == "Disallow: /bücher/"


def test_b021_only_what_normalisation_makes_equal_is_equal() -> None:
    found = star("Disallow: /closed/")
    assert allowed(found, "//closed/a")
    assert not allowed(found, "/%63losed/a")


@pytest.mark.parametrize("swap", [False, True], ids=["as written", "reversed"])
@pytest.mark.parametrize(
    ("lines", "target", "expected"),
    [
        pytest.param(["Allow: /p", "Disallow: /"], "/page", True, id="ROB-19 longest"),
        pytest.param(["Allow: /folder", "Disallow: /folder"], "/folder/x", True, id="ROB-19 tie"),
        pytest.param(["Allow: /page", "Disallow: /*.htm"], "/page.htm", False, id="ROB-19 star counts"),
        pytest.param(["Allow: /page", "Disallow: /*.ph"], "/page.php5", True, id="ROB-19 tie with a star"),
        pytest.param(["Allow: /$", "Disallow: /"], "/", True, id="ROB-19 dollar counts"),
        pytest.param(["Allow: /$", "Disallow: /"], "/page.htm", False, id="ROB-19 dollar ends"),
        pytest.param(["Allow: /a", "Disallow: /a$"], "/a", False, id="ROB-19 dollar is an octet"),
        pytest.param(
            ["Disallow: /a", "Allow: /ab", "Allow: /ac/x", "Allow: /ac/y"], "/ac/z", False, id="ROB-19 past longer"
        ),
        pytest.param(
            ["Disallow: /a*****", "Allow: /ab", "Allow: /abc"], "/abcd", False, id="ROB-19 a shorter head wins"
        ),
        pytest.param(["Allow: /ab", "Disallow: /a*"], "/abc", True, id="ROB-19 a last star counts, tie"),
        pytest.param(["Allow: /ab", "Disallow: /a**"], "/abc", False, id="ROB-19 two stars are two octets"),
        pytest.param(["Disallow: /gia-si/", "Allow: /gia-si/bang-gia"], "/gia-si/bang-gia", True, id="P3"),
        pytest.param(["Allow: /*/list/p=*/$", "Disallow: /"], "/9/list/p=5/", True, id="B002"),
        pytest.param(["Allow: /*/list/p=*/$", "Disallow: /"], "/9/list/p=5/x", False, id="B002"),
        pytest.param(["Disallow: /closed/", "Allow: /open/", "Disallow:"], "/closed/1", False, id="ROB-20 B004"),
        pytest.param(["Disallow: /é", "Allow: /%C3*"], "/%C3%A9", False, id="ROB-19 after normalisation"),
        pytest.param(["Allow: /x/index.html", "Disallow: /x"], "/x/", True, id="ROB-31 index"),
        pytest.param(["Allow: /x/index.html", "Disallow: /x"], "/x/y", False, id="ROB-31 index, that URL only"),
        pytest.param(["Allow: /x/index.htm$", "Disallow: /x"], "/x/", True, id="ROB-31 index.htm"),
        pytest.param(["Disallow: /x/index.html"], "/x/", True, id="ROB-31 not for Disallow"),
    ],
)
def test_the_most_specific_rule_decides(lines: list[str], target: str, expected: bool, swap: bool) -> None:
    assert allowed(star(*(reversed(lines) if swap else lines)), target) is expected


def test_rob_2_robots_txt_itself_is_always_allowed() -> None:
    assert verdict(star("Disallow: /"), "/robots.txt") == Verdict(
        True, Access.RULES, "*", digest=parse(b"User-agent: *\nDisallow: /").digest
    )
    assert not allowed(star("Disallow: /"), "/robots.txt2")
    assert not allowed(star("Disallow: /"), "/robots.txt?x")


def test_rob_33_a_verdict_names_group_line_text_and_body() -> None:
    body = b"# x\nUser-agent: ourbot\nDissallow /Secret # why\nAllow: /secret\n"
    found = rules(body)
    digest = parse(body).digest
    assert verdict(found, "/Secret/1") == Verdict(False, Access.RULES, "ourbot", 3, "Dissallow /Secret", digest)
    assert verdict(found, "/secret/1") == Verdict(True, Access.RULES, "ourbot", 4, "Allow: /secret", digest)
    assert verdict(found, "/") == Verdict(True, Access.RULES, "ourbot", None, None, digest)


def test_without_a_file() -> None:
    assert verdict_without_rules(Access.ALLOW, "/x") == Verdict(True, Access.ALLOW)
    assert verdict_without_rules(Access.DISALLOW, "/x") == Verdict(False, Access.DISALLOW)
    assert not verdict_without_rules(Access.UNREACHABLE, "/x").allowed
    assert verdict_without_rules(Access.DISALLOW, "/robots.txt").allowed


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        ("/" + "*a" * 40 + "*b", "/" + "a" * 8192),
        ("/" + "*aab" * 40 + "*c$", "/" + "aab" * 39 + "aa" * 4000 + "c"),
        ("/*a" + "*" * 40 + "b$", "/" + "ab" * 4096 + "a"),
    ],
)
def test_rob_21_forty_stars_against_8_kib(pattern: str, target: str) -> None:
    """A matcher that backtracks does not come back at all. The milliseconds are in bench/decisions.py."""
    assert allowed(star(f"Disallow: {pattern}"), target)


# --- an oracle: the plainest possible reading of section 2.2.2, over an alphabet small enough to collide -------------

PIECES = st.sampled_from(
    ["/", "a", "b", "*", "$", "?", "%61", "%2F", "%2f", "%3F", "%24", "%2A", "%C3", ":", "%3a", "é"]
)
PATTERNS = st.lists(PIECES, max_size=6).map("".join)
TARGETS = st.lists(PIECES, max_size=7).map(lambda pieces: "/" + "".join(pieces))


def form(text: str, in_query: bool) -> str:
    out, at = "", 0
    octets = text.encode().decode("latin-1")
    while at < len(octets):
        if re.match("%[0-9A-Fa-f]{2}", octets[at:]):
            escape = octets[at : at + 3].upper()
            octet = chr(int(escape[1:], 16))
            keep = octet not in ":/?[]@!$&'()*+,;=" and not (octet.isascii() and (octet.isalnum() or octet in "-._~"))
            out += escape if keep or (octet in "/?" and not in_query) else octet
            at += 3
        else:
            out += octets[at] if ord(octets[at]) < 128 else f"%{ord(octets[at]):02X}"
            at += 1
    return out


def url_forms(target: str) -> list[str]:
    path, mark, query = target.partition("?")
    return [form(path, False) + mark + form(query, True), form(path, False) + mark + form(query, False)]


def oracle(lines: list[tuple[bool, str]], target: str) -> bool:
    best: tuple[int, bool] = (-1, True)
    for allow, pattern in lines:
        if not pattern.startswith(("/", "*")):
            continue
        body, anchor = (pattern[:-1], "$") if pattern.endswith("$") else (pattern, "")
        regex, length, in_query = "", 0, False
        for piece in re.split(r"([*?])", body):
            text = piece if piece in "*?" else form(piece, in_query)
            regex += "(?s:.*)" if piece == "*" else re.escape(text)
            length += len(text)
            in_query = in_query or piece == "?"
        if any(re.match(regex + (r"\Z" if anchor else ""), each) for each in url_forms(target)):
            best = max(best, (length + len(anchor), allow))
    return best[1]


@given(st.lists(st.tuples(st.booleans(), PATTERNS), max_size=6), TARGETS)
@settings(deadline=None, max_examples=600)
def test_verdicts_are_those_of_the_plainest_reading(lines: list[tuple[bool, str]], target: str) -> None:
    found = star(*(f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in lines))
    assert allowed(found, target) is oracle(lines, target)


@given(st.lists(st.tuples(st.booleans(), PATTERNS), min_size=1, max_size=5), TARGETS, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_order_comments_and_others_change_neither_verdict_nor_digest(
    lines: list[tuple[bool, str]], target: str, random: object
) -> None:
    written = [f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in lines]
    shuffled = list(written)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one = rules("\n".join(["User-agent: ourbot", *written]))
    other = rules("\n".join(["User-agent: x", "Disallow: /", "# !", "User-agent: ourbot", *shuffled, "Crawl-delay: 9"]))
    assert one.digest == other.digest
    assert allowed(one, target) is allowed(other, target)


# --- the digest ----------------------------------------------------------------------------------------------------


def test_the_digest_changes_with_a_rule_and_with_the_origin() -> None:
    one = star("Disallow: /x")
    assert len(one.digest) == 32
    assert one.digest != star("Disallow: /y").digest
    assert one.digest != star("Allow: /x").digest
    assert one.digest != rules("User-agent: *\nDisallow: /x", origin="http://a.example").digest
    assert star("Disallow: /*").digest != star("Disallow: /%2A").digest
    assert star("Disallow: /x$").digest != star("Disallow: /x%24").digest


def test_the_digest_ignores_spelling_and_what_never_decides() -> None:
    one = star("Disallow: /x~")
    assert one.digest == star("disalow /x%7e", "Disallow:", "Disallow: x", "Disallow: /x~").digest
    assert star("Allow: /a").digest == star("Disallow: /a", "Allow: /a").digest


def test_the_digest_without_a_file_is_that_of_the_file_it_stands_for() -> None:
    assert digest_without_rules(Access.ALLOW, ORIGIN) == rules("").digest == star("Disallow:").digest
    assert digest_without_rules(Access.DISALLOW, ORIGIN) == star("Disallow: /").digest
    assert digest_without_rules(Access.ALLOW, ORIGIN) != digest_without_rules(Access.ALLOW, "http://a.example")


def test_one_body_at_many_origins_shares_its_tables() -> None:
    one = star("Disallow: /x", "Sitemap: /s.xml")
    two = for_origin(one, "http://b.example")
    assert two == rules("User-agent: *\nDisallow: /x\nSitemap: /s.xml", origin="http://b.example")
    assert two.heads is one.heads
    assert two.sitemaps == (("http://b.example/s.xml", 3),)


# --- extensions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 1.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("10.", 10.0),
        ("0", 0.0),
        ("999999999", 999999999.0),
        ("1e9", 1e9),
        ("10 s", 10.0),
        ("10sec", 10.0),
        ("1,5", None),
        ("abc", None),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("1_0", None),
        ("٣", None),
        ("", None),
    ],
)
def test_ext_1_b020_crawl_delay_values(text: str, seconds: float | None) -> None:
    assert crawl_delay_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1/10s", 10.0),
        ("100/15m", 9.0),
        ("400/1h", 9.0),
        ("9000/1d", 9.6),
        ("1/60", 60.0),
        ("90/180", 2.0),
        ("1/10s 1820-1940", 10.0),
        ("1/10 0600 0845", 10.0),
        ("0/10", None),
        ("1/x", None),
        ("1", None),
        ("1/10w", None),
        ("-1/10", None),
        ("", None),
    ],
)
def test_ext_2_request_rate_values(text: str, seconds: float | None) -> None:
    assert seconds_per_request(text) == seconds


@pytest.mark.parametrize(
    ("text", "wanted", "line"),
    [
        pytest.param("user-agent: *\ncrawl-delay: 2", 2.0, 2, id="EXT-1"),
        pytest.param("user-agent: *\ncrawl-delay: 2\nrequest-rate: 1/5", 5.0, 3, id="EXT-2 the larger of the two"),
        pytest.param("user-agent: *\ncrawl-delay: 9\nrequest-rate: 1/5", 9.0, 2, id="EXT-2 the larger of the two"),
        pytest.param("user-agent: *\nrequest-rate: 1/5", 5.0, 2, id="EXT-2 alone"),
        pytest.param("user-agent: *\ncrawl-delay: 2\nuser-agent: *\ncrawl-delay: 3", 3.0, 4, id="EXT-1 the slowest"),
        pytest.param("user-agent: *\ncrawl-delay: 0", None, None, id="EXT-1 B020 0 is none named"),
        pytest.param("user-agent: *\ncrawl-delay: x\ndisallow: /", None, None, id="EXT-1 B020 unreadable"),
        pytest.param(
            "user-agent: *\ncrawl-delay: 60\nuser-agent: ourbot\ndisallow: /", None, None, id="B037 D8 no leak"
        ),
        pytest.param("crawl-delay: 5\nuser-agent: *", None, None, id="EXT-1 of nobody"),
        pytest.param("user-agent: x\ncrawl-delay: 5", None, None, id="EXT-1 of another"),
    ],
)
def test_the_delay_that_binds_us(text: str, wanted: float | None, line: int | None) -> None:
    found = rules(text)
    assert (found.wanted_s, found.delay_line if wanted else None) == (wanted, line)


def test_ext_5_b129_sitemaps_are_absolute_and_once_each() -> None:
    found = rules(
        "Sitemap: https://b.example/s.xml\nSitemap: /t.xml\nSitemap: https://a.example/t.xml\nSitemap: ftp://x/"
    )
    assert found.sitemaps == (("https://b.example/s.xml", 1), ("https://a.example/t.xml", 2))


def test_rules_are_lean() -> None:
    """Ten thousand hosts at once: what a plain rule costs is its pattern, once, and its places in the tables."""
    found = star(*(f"Disallow: /section-{n}/" for n in range(50)))
    assert not found.texts
    assert not found.exact
    assert not found.wild
    assert {id(pattern) for pattern in found.patterns} == {id(head) for head in found.heads}
