"""`comity.parse.nesting`: the cost of a page stays in proportion to its size, whatever the page tries (design, 8)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from comity.parse import nesting
from comity.parse.nesting import MAX_ATTRIBUTES, bound

LIMIT = 512
TIMES = 3_000


def depth(data: bytes) -> int:
    root = LexborHTMLParser(data).root
    deepest = 0
    waiting: list[tuple[LexborNode, int]] = [(root, 1)] if root is not None else []
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        child = node.first_child
        while child is not None:
            waiting.append((child, level + 1))
            child = child.next
    return deepest


# Each of these nests three thousand deep and more, or tries to; most try to make a reader believe that they do not.
DEEP = {
    "plain": b"<div>",
    "closed by another name": b"<div></b>",
    "closed across a cell": b"<div><table><td></div></td></table>",
    "closed across a button": b"<div><object></div></object>",
    "closed across a select": b"<div><select></div></select>",
    "closed by a cell without a table": b"<td><div></td>",
    "closed by a paragraph that was over": b"<p><b><div></p>",
    "closed by an inline element around it": b"<span><div></span></div>",
    "closed in a comment": b"<div><!--</div>-->",
    "closed in an attribute": b'<div a="</div>">',
    "closed in an unquoted attribute": b"<div a=x</div>",
    "closed in a title": b"<div><title></div></title>",
    "closed in a script": b"<div><script></div></script>",
    "closed in a script in a script": b"<div><script><!--<script></script></div>--></script>",
    "closed in a marked section": b"<svg><foreignObject><div><svg><![CDATA[></div>]]></svg>",
    "closed in a drawing's style": b"<svg><foreignObject><div><svg><style></div></style></svg>",
    "hidden behind a quote that is none": b'<x =" ><div></x>">',
    "links in between": b"<a href=x><div>",
    "templates": b"<div><template></div></template>",
    "cells of drawings": b"<desc><div><svg><td>",
}


@pytest.mark.parametrize("piece", DEEP.values(), ids=DEEP.keys())
@pytest.mark.parametrize("before", [b"", b"<svg>", b"<table><td>", b"<select>", b"<svg><title>", b"<p><i>"])
def test_no_page_nests_deeper_than_the_limit_by_much(piece: bytes, before: bytes) -> None:
    found = bound(before + piece * TIMES, LIMIT)
    assert depth(found.data) < 3 * LIMIT


def test_safe_3_the_page_is_marked_and_keeps_its_links_and_words() -> None:
    page = b"<div>" * 100_000 + b"<p>word<a href=/x>link</a>"
    found = bound(page, LIMIT)
    assert found.deep
    tree = LexborHTMLParser(found.data)
    assert [node.attributes["href"] for node in tree.css("a")] == ["/x"]
    assert tree.body is not None
    assert tree.body.text() == "wordlink"


def test_just_as_deep_as_the_limit_is_not_deep() -> None:
    page = b"<div>" * LIMIT + b"</div>" * LIMIT
    assert bound(page, LIMIT) == (page, False, False)
    assert bound(b"<div>" + page, LIMIT).deep


# Old ways of writing that leave tags open, and nest nothing.
FLAT = {
    "paragraphs": b"<p>x",
    "paragraphs in a block": b"<div><p>x</div>",
    "lists": b"<ul><li>x<li>y</ul>",
    "definitions": b"<dl><dt>a<dd>b</dl>",
    "cells": b"<tr><td>x<td><p>y",
    "tables": b"<table><tr><td>x<td><p>y<tr><td>z</table>",
    "options": b"<select><option>a<option>b</select>",
    "anchors": b"<a name=x>y",
    "void elements": b"<br><img src=x><input>",
    "balanced": b"<div><span>x</span></div>",
    "closed in its own tag": b"<svg><path d=x /></svg>",
    "scripts": b"<script>if (a<b) document.write('<div>')</script>",
    "comments": b"<!-- <div> -->",
}


@pytest.mark.parametrize("piece", FLAT.values(), ids=FLAT.keys())
def test_a_long_page_is_not_taken_for_a_deep_one(piece: bytes) -> None:
    page = b"<table>" + piece * TIMES if piece.startswith(b"<tr>") else piece * TIMES
    assert bound(page, LIMIT) == (page, False, False)


def test_safe_4_attributes_are_bounded() -> None:
    many = b" ".join(b"a%d=1" % number for number in range(100_000))
    found = bound(b"<p " + many + b"><a href=/x " + many + b">", LIMIT)
    nodes = LexborHTMLParser(found.data).css("p,a")
    assert [len(node.attributes) for node in nodes] == [MAX_ATTRIBUTES, MAX_ATTRIBUTES]
    assert nodes[1].attributes["href"] == "/x"


def test_formatting_left_open_is_not_rebuilt_for_ever() -> None:
    fonts = b"".join(b"<font a=%d>" % number for number in range(500))
    found = bound(b"<p>" + fonts + b"<p>x" * 300_000, LIMIT)
    assert found.cut
    assert len(found.data) < 100_000


@pytest.mark.parametrize(
    "piece",
    [b"<", b"<!", b"<!--", b"</", b'<a "', b"<a =", b"<title>", b"<script><!--", b"<svg><![CDATA[", b"<svg><title>",
     b"<table><td><span>", b"</div>", b"<a b='", b"<?"],
)  # fmt: skip
def test_the_filter_itself_takes_one_pass(piece: bytes) -> None:
    """A megabyte of each: the time limit of the suite would end a quadratic one."""
    page = piece * (1_000_000 // len(piece))
    assert len(bound(page, LIMIT).data) <= len(page) + 1


def test_looking_for_what_an_end_tag_closes_is_bounded() -> None:
    elements = nesting._Open()
    for name in [b"div", b"td", *[b"span"] * 500]:
        elements.open(name)
    for _ in range(20_000):
        elements.close(b"div")
    assert elements.steps <= nesting._MAX_STEPS + 20_000 + 500
    assert len(elements.names) == 502


TAGS = (
    "div",
    "p",
    "b",
    "span",
    "li",
    "ul",
    "table",
    "tr",
    "td",
    "a",
    "svg",
    "title",
    "select",
    "option",
    "dd",
    "button",
)
MARKUP = st.lists(
    st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + ["x", "<!--", "-->", "<br>", "'"]),
    min_size=1,
    max_size=8,
).map(lambda pieces: "".join(pieces).encode())


@settings(deadline=None, max_examples=60)
@given(MARKUP, MARKUP)
def test_no_repeated_markup_gets_through(before: bytes, piece: bytes) -> None:
    page = before + piece * 400
    assert depth(bound(page, 32).data) < 8 * 32


@settings(deadline=None)
@given(st.binary())
def test_short_pages_are_left_alone(page: bytes) -> None:
    assert bound(page, LIMIT) == (page, False, False)
