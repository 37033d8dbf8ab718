"""The form in which a rule and a URL are compared (RFC 9309, section 2.2.2).

Invariant: two spellings of the same octets have one form, whichever side they stand on; escapes are decoded once, never
twice. So a rule written `/b%C3%BCcher`, `/b%c3%bccher` or `/bücher` is one rule, and matches the
URL however the page that linked to it spelt it.

The form, octet by octet:

* outside ASCII, controls, and the characters that no URI may hold raw (space, quotes, `<>\\^{|}` and the back-tick):
  percent-encoded, hex in upper case;
* an escape of an unreserved character (letters, digits, `-._~`): decoded;
* an escape of a reserved character: decoded, because the RFC's own table lets `://` in a query equal its escapes. Left
  as they are: `%25` and `%23` everywhere, `%2F` and `%3F` before the first `?`, where a decoded one would be another
  path;
* any other escape stays, hex in upper case.

A `str` here holds one octet per character. Nothing here knows what a rule is, except that `*` and a last `$` in a
pattern are operators only when written raw: `segments` takes them out before escapes are decoded.
"""

from __future__ import annotations

import re

_RESERVED = ":/?#[]@!$&'()*+,;="
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

odd = re.compile(r"[^A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=]").search
"""Finds an octet that may have to change; None: the text is its own form, as nine URLs in ten are. About 0.2 µs."""

_item = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]").sub


def _table(kept: str) -> dict[str, str]:
    """Escape or raw octet → its form. `kept`: the reserved characters whose escapes stay."""
    decoded = set(_UNRESERVED) | set(_RESERVED) - set(kept)
    table: dict[str, str] = {}
    for code in range(256):
        octet, high, low = chr(code), f"{code:02X}"[0], f"{code:02X}"[1]
        form = octet if octet in decoded else f"%{code:02X}"
        for first in {high, high.lower()}:
            for second in {low, low.lower()}:
                table[f"%{first}{second}"] = form
        table[octet] = f"%{code:02X}"
    return table


_IN_PATH = _table(kept="#/?")
_IN_QUERY = _table(kept="#")
_KEEPING = _IN_PATH


def match_path(target: str) -> str:
    """The form of a URL's path and query (`Url.target`: no fragment)."""
    if odd(target) is None:
        return target
    path, mark, query = _octets(target).partition("?")
    return _in(path, _IN_PATH) + mark + _in(query, _IN_QUERY)


def literal_path(target: str) -> str | None:
    """A second form for URLs whose query holds `%2F` or `%3F`: the same, but those stay as written. None for others.

    A pattern such as `/*%2F` does not say whether its escape stands in a path or in a query. Read as written it matches
    `/x?u=a%2Fb`, so it must forbid it; read by the form alone it would not.
    """
    mark = target.find("?")
    if mark < 0 or "%" not in target:
        return None
    query = target[mark:].upper()
    if "%2F" not in query and "%3F" not in query:
        return None
    return _in(_octets(target), _KEEPING)


def segments(pattern: str) -> tuple[list[str], bool]:
    """A rule's value → its literal parts between the `*`s, each in its form, and whether a last `$` ties it to the end.

    `"/a*b$"` → `(["/a", "b"], True)`. A `$` elsewhere, and `%24` or `%2A` anywhere, are literals (section 2.2.3).
    """
    anchored = pattern.endswith("$")
    if anchored:
        pattern = pattern[:-1]
    if odd(pattern) is None:
        return pattern.split("*"), anchored
    path, mark, query = pattern.partition("?")
    parts = [_in(part, _IN_PATH) for part in path.split("*")]
    if mark:
        first, *rest = (_in(part, _IN_QUERY) for part in query.split("*"))
        parts[-1] += mark + first
        parts += rest
    return parts, anchored


def _octets(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")


def _in(text: str, table: dict[str, str]) -> str:
    return _item(lambda found: table[found.group()], text)
