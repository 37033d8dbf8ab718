"""`comity.directives`: what a page asks, in both notations, the restrictive statement winning (PGR-1 … PGR-6)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.directives import from_headers, from_meta, union
from comity.model import Directives

NOW = 1_796_083_200.0
RESTRICTIONS = ("noindex", "nofollow", "noarchive", "nosnippet")


def asked(found: Directives) -> set[str]:
    return {name for name in RESTRICTIONS if getattr(found, name)}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], set()),
        (["noindex"], {"noindex"}),
        (["NoIndex, NOFOLLOW"], {"noindex", "nofollow"}),
        (["none"], {"noindex", "nofollow"}),
        (["all"], set()),
        (["index, follow"], set()),
        (["noarchive"], {"noarchive"}),
        (["nocache"], {"noarchive"}),
        (["nosnippet"], {"nosnippet"}),
        (["max-snippet:0"], {"nosnippet"}),
        (["max-snippet: -1"], set()),
        (["max-snippet:50, nosnippet"], {"nosnippet"}),
        (["otherbot: noindex"], set()),
        (["otherbot: noindex, nofollow"], set()),  # a prefix holds for the rest of its line
        (["ourbot: nofollow"], {"nofollow"}),
        (["OurBot/1.0: none"], {"noindex", "nofollow"}),
        (["*: noindex"], {"noindex"}),
        (["noindex, otherbot: nofollow"], {"noindex"}),
        (["otherbot: nofollow, ourbot: noindex, noarchive"], {"noindex", "noarchive"}),
        (["otherbot: noindex", "nofollow"], {"nofollow"}),
        (["noindex", "ourbot: index"], {"noindex"}),  # the restrictive one wins
        (["max-image-preview:none, noindex"], {"noindex"}),
        (["noindex nofollow"], {"noindex", "nofollow"}),  # the comma forgotten
        (["unknownrule, noindex"], {"noindex"}),
        ([""], set()),
        ([":"], set()),
        ([",,:,"], set()),
    ],
)
def test_pgr_3_header_lines(lines: list[str], expected: set[str]) -> None:
    assert asked(from_headers(lines, "ourbot", NOW)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", 1277506800.0),
        ("unavailable_after: Friday, 25-Jun-10 15:00:00 GMT", 1277478000.0),
        ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex", 1277478000.0),
        ("ourbot: unavailable_after: 2010-06-25T15:00:00Z", 1277478000.0),
        ("unavailable_after: 2010-06-25", 1277424000.0),
        ("unavailable_after: 2011-06-25, unavailable_after: 2010-06-25", 1277424000.0),
        ("unavailable_after: soon", None),
        ("otherbot: unavailable_after: 2010-06-25", None),
    ],
)
def test_pgr_4_unavailable_after(line: str, expected: float | None) -> None:
    found = from_headers([line], "ourbot", NOW)
    assert found.unavailable_after_at == expected
    assert found.noindex == ("noindex" in line)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("robots", "NoIndex, FOLLOW")], {"noindex"}),
        ([("ROBOTS", "none")], {"noindex", "nofollow"}),
        ([("OurBot", "nofollow")], {"nofollow"}),
        ([("otherbot", "nofollow")], set()),
        ([("description", "noindex")], set()),
        ([("robots", "index"), ("robots", "noindex")], {"noindex"}),
        ([("robots", "noindex;nofollow")], {"noindex", "nofollow"}),
        ([("", "noindex")], set()),
    ],
)
def test_pgr_1_meta_elements(pairs: list[tuple[str, str]], expected: set[str]) -> None:
    assert asked(from_meta(pairs, "ourbot", NOW)) == expected


def test_what_was_read_is_kept_for_the_record() -> None:
    found = from_headers(
        ["noindex, NoIndex, max-snippet: 20, otherbot: noarchive, ourbot: what-is-this"], "ourbot", NOW
    )
    assert found.seen == ("noindex", "max-snippet:20", "what-is-this")


def test_pgr_6_the_record_is_bounded() -> None:
    found = from_headers([", ".join(f"rule{i}" for i in range(1_000)), "x" * 10_000, "noindex"], "ourbot", NOW)
    assert found.noindex
    assert len(found.seen) <= 64
    assert all(len(rule) <= 100 for rule in found.seen)


DIRECTIVES = st.builds(
    Directives,
    noindex=st.booleans(),
    nofollow=st.booleans(),
    noarchive=st.booleans(),
    nosnippet=st.booleans(),
    unavailable_after_at=st.none() | st.floats(0, 4e9),
    seen=st.lists(st.text(max_size=3), max_size=3, unique=True).map(tuple),
)


@settings(deadline=None)
@given(DIRECTIVES, DIRECTIVES)
def test_a_union_allows_nothing_that_either_forbids(a: Directives, b: Directives) -> None:
    both = union(a, b)
    assert asked(both) == asked(a) | asked(b)
    assert msgspec.structs.replace(union(b, a), seen=()) == msgspec.structs.replace(both, seen=())
    assert union(both, a) == both
    ends = [end for end in (a.unavailable_after_at, b.unavailable_after_at) if end is not None]
    assert both.unavailable_after_at == min(ends, default=None)


ANYTHING = st.text() | st.lists(
    st.sampled_from(["noindex", "ourbot", "unavailable_after", ":", ",", " ", ";", "25 Jun 2010 15:00:00 PST", "0"])
).map("".join)


@settings(deadline=None)
@given(st.lists(ANYTHING, max_size=3))
def test_anything_can_be_read(lines: list[str]) -> None:
    found = union(from_headers(lines, "ourbot", NOW), from_meta([("robots", line) for line in lines], "ourbot", NOW))
    assert all(rule for rule in found.seen)


@settings(deadline=None)
@given(st.lists(ANYTHING, max_size=3), st.lists(ANYTHING, max_size=3))
def test_more_lines_never_allow_more(lines: list[str], more: list[str]) -> None:
    assert asked(from_headers(lines, "ourbot", NOW)) <= asked(from_headers([*lines, *more], "ourbot", NOW))
