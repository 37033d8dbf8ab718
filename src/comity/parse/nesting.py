"""Keeping the cost of an HTML page in proportion to its size.

The HTML parser is exact and fast, but for a few things its time grows with the square of the page (measured, lexbor
2.5): blocks nested n deep (20,000 `<div>`: 0.8 s; 1,000,000: over half an hour), n different attributes of one element
(100,000: 19 s; `<html>` and `<body>` gather those of all their tags), n options of one page (64,000: 15 s), and
formatting elements left open, which come back in every block after them (500 `<font>` and 3,000 `<p>`: 1.3 s, and half
a gigabyte for ten times as many). Owns the filter that takes such pages apart beforehand: start tags beyond `max_depth`
open ones are left out of the bytes, so are attributes beyond the 256th of a tag, the 17th `<html>` and `<body>`, and
options beyond 20,000, and a page whose formatting would be rebuilt more than a million times ends there. Links, text
and whatever switches the tokenizer stay. A tree is 350 bytes a tag, so a page ends at its millionth, too.

Almost no page is touched, so almost none may pay: a count of tags clears small pages, a count by pieces clears
well-formed ones, and only the rest are read tag by tag. Reading tag by tag must not be talked into seeing an element
closed that the parser holds open. It therefore tokenizes exactly (comments, attribute values, raw text), lets an end
tag close one element only, and only where the parser would look for it; wherever it cannot be sure it counts an element
as open. Broken old pages may so be taken for deep, which costs them a few container tags; the other mistake would cost
an hour. The cheap counts can be fooled, but only by a page of at most 2,000 tags, whose worst is half a second.

Refuses to know what the page says.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_ATTRIBUTES = 256
MAX_TAGS = 1_000_000  # of all kinds; dense pages of 10 MB have a third of that
_MAX_OPTIONS = 20_000
_MAX_ROOTS = 16  # tags of <html> and of <body>, each
_CERTAIN_TAGS = 2_000  # from here on the cheap counts are not trusted
_PIECE_BYTES = 4_096
_MAX_REBUILT = 1_000_000  # formatting elements that may come back, all together
_MAX_STEPS = 4_000_000  # of looking for what an end tag closes; then none closes anything

_WS = rb"\t\n\f\r "
_ATTRIBUTE = (
    rb"[^" + _WS + rb"/>][^" + _WS + rb"/>=]*+(?:[" + _WS + rb"]*+=[" + _WS + rb"]*+"
    rb"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^""" + _WS + rb""">"'][^""" + _WS + rb""">]*+)?+)?+"""
)
_TOKEN = re.compile(
    rb"<(?:!--(?:-?>|.*?(?:--!?>|\Z))"
    rb"|(?P<cdata>!\[CDATA\[)"
    rb"|[!?][^>]*+(?:>|\Z)"
    rb"|/[^A-Za-z>][^>]*+(?:>|\Z)"
    rb"|(?P<end>/?)(?P<name>[A-Za-z][^"
    + _WS
    + rb"/>]*+)(?P<rest>(?:["
    + _WS
    + rb"/]++|"
    + _ATTRIBUTE
    + rb")*+)(?:>|\Z))",
    re.DOTALL,
)
_ATTRIBUTES = re.compile(_ATTRIBUTE, re.DOTALL)


def _names(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


_VOID = _names(
    "area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr"
    " html head body"  # a second one is ignored
)
_RAW = _names("iframe noembed noframes script style textarea title xmp")
_FORMATTING = _names("a b big code em font i nobr s small strike strong tt u")
_KEPT = _RAW | _names("a plaintext")  # links, and what changes how the bytes after it are read
_UNSURE = _names("frameset math select svg")  # inside these, names and raw text mean other things
_FOREIGN = _names("math svg")
_SCOPE = _names("annotation-xml applet caption desc foreignobject marquee mi mn mo ms mtext object select table td"
                " template th title")  # fmt: skip
_TABLE = _names("caption colgroup table tbody td tfoot th thead tr")
_TABLE_SCOPE = _names("table template")
_SPECIAL = _SCOPE | _TABLE | _names(
    "address article aside blockquote button center dd details dir div dl dt fieldset figcaption figure footer form"
    " frameset h1 h2 h3 h4 h5 h6 header hgroup li listing main menu nav noscript ol p plaintext pre search section"
    " summary ul"
)  # fmt: skip
_PHRASES = _names("p li dd dt option optgroup")  # end tags of these may be left out
_IMPLIED = {
    b"li": _names("p li"), b"dd": _names("p dd dt"), b"dt": _names("p dd dt"), b"option": _names("option"),
    b"optgroup": _names("option optgroup"), b"td": _names("p li td th"), b"th": _names("p li td th"),
    b"tr": _names("p li td th tr"), b"tbody": _names("p li td th tr tbody thead tfoot"),
    b"thead": _names("p li td th tr tbody thead tfoot"), b"tfoot": _names("p li td th tr tbody thead tfoot"),
}  # fmt: skip
_CLOSES_P = (_SPECIAL - _SCOPE - _TABLE - _names("button noscript frameset")) | _names("xmp")
_BELOW_TABLE = _TABLE - {b"table"}
_IN_TABLE = _PHRASES | _BELOW_TABLE
_NOTHING: frozenset[bytes] = frozenset()
_P = frozenset({b"p"})


class Bounded(NamedTuple):
    data: bytes
    deep: bool = False  # start tags were left out
    cut: bool = False  # the end was left out


def bound(data: bytes, max_depth: int) -> Bounded:
    """The page with its cost bounded: itself, unless it nests more than `max_depth` elements deep, or worse."""
    kept = _beginning(data)
    bounded = _filter(kept, max_depth) if _may_be_costly(kept, max_depth) else Bounded(kept)
    return bounded if len(kept) == len(data) else bounded._replace(cut=True)


def _beginning(data: bytes) -> bytes:
    """The page up to its millionth tag or so."""
    tags = 0
    for at in range(0, len(data) if data.count(b"<") > MAX_TAGS else 0, _PIECE_BYTES):
        tags += data.count(b"<", at, at + _PIECE_BYTES)
        if tags > MAX_TAGS:
            return data[:at]
    return data


def _may_be_costly(data: bytes, max_depth: int) -> bool:
    size = len(data)
    tags = data.count(b"<")
    if tags > max_depth:
        if tags - data.count(b"</") > _CERTAIN_TAGS:
            return True
        if _may_be_deep(data, max_depth):
            return True
    # A tag of many attributes is long: somewhere there is a piece without ">".
    return any(data.find(b">", at, at + _PIECE_BYTES) < 0 for at in range(0, size - _PIECE_BYTES, _PIECE_BYTES))


def _may_be_deep(data: bytes, max_depth: int) -> bool:
    """Counts open elements by pieces, as if every end tag, and every tag that ends in "/>", closed one: too many?"""
    depth = 0
    for at in range(0, len(data), _PIECE_BYTES):
        end = at + _PIECE_BYTES
        ends = data.count(b"</", at, end)
        starts = data.count(b"<", at, end) - ends
        if depth + starts > max_depth // 2:
            depth -= data.count(b"/>", at, end)
        if depth + starts > max_depth:
            return True
        depth = max(0, depth + starts - ends)
    return False


class _Open:
    """The elements that may be open, outermost first."""

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self.formatting = 0
        self.unsure = 0  # how many inside which names and raw text mean other things
        self.foreign = 0  # of these, drawings and formulas
        self.steps = 0

    def open(self, name: bytes) -> None:
        self.names.append(name)
        self.formatting += name in _FORMATTING
        self.unsure += name in _UNSURE
        self.foreign += name in _FOREIGN

    def close(self, name: bytes) -> None:
        """Takes out the one element that an end tag of that name closes, if it closes any, and what ends with it."""
        at = self._find(name)
        if at is None:
            return
        self.formatting -= name in _FORMATTING
        self.unsure -= name in _UNSURE
        self.foreign -= name in _FOREIGN
        del self.names[at]
        if name in _SPECIAL:
            self.end_implied(_IN_TABLE if name in _TABLE else _PHRASES, at)

    def end_implied(self, names: frozenset[bytes], down_to: int = 0) -> None:
        while len(self.names) > down_to and self.names[-1] in names:
            self.names.pop()

    def _find(self, name: bytes) -> int | None:
        if name in _TABLE:
            stops = _TABLE_SCOPE
        elif name not in _SPECIAL and name not in _FORMATTING:
            stops = _SPECIAL
        else:
            stops = _SCOPE
        for at in range(len(self.names) - 1, -1, -1):
            self.steps += 1
            if self.names[at] == name:
                return at
            if self.names[at] in stops or self.steps > _MAX_STEPS:
                return None
        return None


class _Ahead:
    """Where things come next. Each search starts where the last one of its kind ended, so that all take one pass."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.found: dict[bytes, int] = {}

    def mark(self, mark: bytes, position: int) -> int:
        """The next such mark, or the end of the page."""
        at = self.found.get(mark, -1)
        if at < position:
            at = self.data.find(mark, position)
            self.found[mark] = at = len(self.data) if at < 0 else at
        return at

    def end_tag(self, name: bytes, position: int) -> int:
        """The end tag of a raw-text element, or the end of the page."""
        at = self.found.get(name, -1)
        if at < position:
            found = re.compile(rb"</" + name + rb"[\t\n\f\r />]", re.IGNORECASE).search(self.data, position)
            self.found[name] = at = len(self.data) if found is None else found.start()
        return at

    def end_of_script(self, start: int, end: int) -> int:
        """A script may open a comment and in it another script; its first end tag is then none. Until where is it
        unsure?"""
        opened = self.data.rfind(b"<!--", start, end)
        return self.mark(b"-->", end) if opened >= 0 and self.data.find(b"-->", opened, end) < 0 else 0


def _filter(data: bytes, max_depth: int) -> Bounded:
    elements, ahead = _Open(), _Ahead(data)
    kept: list[bytes] = []  # pieces of the result
    done = 0  # up to where `data` has been copied or left out
    position = 0
    hushed = 0  # end tags before this place may be no end tags
    rebuilt = 0
    many = {b"option": _MAX_OPTIONS, b"html": _MAX_ROOTS, b"body": _MAX_ROOTS}  # how many more may stay
    deep = False
    while (token := _TOKEN.search(data, position)) is not None:
        position = token.end()
        name = token["name"]
        if name is None:
            if token["cdata"] is not None and elements.unsure:
                hushed = max(hushed, ahead.mark(b"]]>", position))
            continue
        name = name.lower()
        if token["end"]:
            if token.start() >= hushed:
                elements.close(name)
            continue
        if len(token["rest"]) > MAX_ATTRIBUTES and (cut := _too_many(token["rest"])) is not None:
            kept += data[done : token.start("rest") + cut], b">"
            done = position
        if (left := many.get(name)) is not None:
            if left == 0:
                kept += data[done : token.start()], b"\n"
                done = position
                continue
            many[name] = left - 1
        if name in _VOID or (name in _BELOW_TABLE and elements.names.count(b"table") == 0 == elements.unsure):
            continue
        if elements.foreign:
            if token["rest"].endswith(b"/") and name not in _SPECIAL and name not in _FORMATTING:
                continue  # closed in its own tag
        else:
            elements.end_implied(_IMPLIED.get(name, _NOTHING))
        if name in _CLOSES_P:
            elements.end_implied(_P)
            rebuilt += elements.formatting
            if rebuilt > _MAX_REBUILT:
                return Bounded(b"".join([*kept, data[done : token.start()]]), True, True)
        elif name == b"a" and not elements.foreign:  # an open one ends here
            elements.close(name)
        if len(elements.names) < max_depth:
            elements.open(name)
        elif name not in _KEPT:
            kept.append(data[done : token.start()])
            done = position
            deep = True
        elif name == b"a":  # the link stays, and holds nothing
            kept += data[done:position], b"</a>"
            done = position
            deep = True
        if name in _RAW:
            end = ahead.end_tag(name, position)
            if elements.unsure:
                hushed = max(hushed, end)
            else:
                hushed = max(hushed, ahead.end_of_script(position, end) if name == b"script" else 0)
                position = end
    if not kept:
        return Bounded(data)
    return Bounded(b"".join([*kept, data[done:]]), deep)


def _too_many(rest: bytes) -> int | None:
    """Where the attribute after the last that may stay begins, if there is one."""
    for number, attribute in enumerate(_ATTRIBUTES.finditer(rest)):
        if number == MAX_ATTRIBUTES:
            return attribute.start()
    return None
