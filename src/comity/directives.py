"""What a page itself asks of crawlers: meta robots and X-Robots-Tag, made into one value.

Owns the reading of both notations, and the rule that the restrictive statement wins: whatever any general or
personally addressed statement forbids is forbidden, whoever else is allowed it (PGR-2). Statements to other agents are
not ours to read.

The two notations differ in how they name an agent. A meta element does by its own name; a header line by a prefix
("otherbot: noindex"), which holds until the next prefix on that line. A prefix and a rule with a value
("max-snippet: 20") look alike, and so the rules with values are known by name (PGR-3).

Refuses to know what is done about a wish.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from comity.headers import parse_date, parse_w3c_date
from comity.model import Directives

_WITH_VALUE = frozenset({"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"})
_EVERYBODY = frozenset({"*", "robots"})
_MAX_SEEN = 64  # rules kept for the record; a page may carry any number
_MAX_RULE = 100  # characters of each


def from_headers(values: Sequence[str], token: str, now: float) -> Directives:
    """Reads X-Robots-Tag lines, as received, for the agent `token` (our product token) and for everybody."""
    rules: list[str] = []
    for line in values:
        ours = True
        for item in _items(line):
            name, colon, rest = item.partition(":")
            if colon and name.strip().lower() not in _WITH_VALUE:
                ours = _is_ours(name, token)
                item = rest
            if ours:
                rules.append(item)
    return _read(rules, now)


def from_meta(pairs: Sequence[tuple[str, str]], token: str, now: float) -> Directives:
    """Reads (name, content) of a page's meta elements; those with other names are ignored."""
    rules = [item for name, content in pairs if name and _is_ours(name, token) for item in _items(content)]
    return _read(rules, now)


def union(a: Directives, b: Directives) -> Directives:
    """What either forbids is forbidden; the earlier end counts."""
    ends = [end for end in (a.unavailable_after_at, b.unavailable_after_at) if end is not None]
    return Directives(
        noindex=a.noindex or b.noindex,
        nofollow=a.nofollow or b.nofollow,
        noarchive=a.noarchive or b.noarchive,
        nosnippet=a.nosnippet or b.nosnippet,
        unavailable_after_at=min(ends) if ends else None,
        seen=tuple(dict.fromkeys(a.seen + b.seen))[:_MAX_SEEN],
    )


def _is_ours(name: str, token: str) -> bool:
    agent = name.strip().lower().partition("/")[0]
    return agent in _EVERYBODY or agent == token.lower()


def _items(text: str) -> Iterable[str]:
    """The parts between commas; a comma inside a date ("Friday, 25-Jun-10 …") parts nothing."""
    parts = text.split(",")
    position = 0
    while position < len(parts):
        item = parts[position]
        position += 1
        if re.search(r"unavailable_after\s*:\s*[A-Za-z]{3,9}\s*$", item, re.IGNORECASE) and position < len(parts):
            item += "," + parts[position]
            position += 1
        yield item


def _read(items: Iterable[str], now: float) -> Directives:
    rules: list[tuple[str, str]] = []
    for item in items:
        name, colon, value = item.partition(":")
        if colon:
            rules.append((name.strip().lower(), value.strip()))
        else:  # commas are often forgotten: "noindex nofollow", "noindex; nofollow"
            rules += [(word, "") for word in re.split(r"[\s;]+", name.lower()) if word]
    names = {name for name, _ in rules}
    ends = [_end(value, now) for name, value in rules if name == "unavailable_after"]
    known_ends = [end for end in ends if end is not None]
    no_length = ("max-snippet", "0") in rules
    seen = dict.fromkeys((f"{name}:{value}" if value else name)[:_MAX_RULE] for name, value in rules if name)
    return Directives(
        noindex=not names.isdisjoint({"noindex", "none"}),
        nofollow=not names.isdisjoint({"nofollow", "none"}),
        noarchive=not names.isdisjoint({"noarchive", "nocache"}),
        nosnippet="nosnippet" in names or no_length,
        unavailable_after_at=min(known_ends) if known_ends else None,
        seen=tuple(seen)[:_MAX_SEEN],
    )


def _end(value: str, now: float) -> float | None:
    """RFC 822, RFC 850 or ISO 8601; what cannot be read was not said."""
    at = parse_date(value, now)
    if at is None:
        read = parse_w3c_date(value)
        at = read[0] if read is not None else None
    return at
