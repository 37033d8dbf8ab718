"""The octets of a robots.txt become facts with line numbers (RFC 9309, section 2.2).

Invariant: every octet string is a robots.txt. `parse` never raises, and a line that cannot be read never voids another
one (section 2.3.1.5). Nothing is decided here: groups of every crawler are kept, rules are kept as written, and which
of them speak to us is `rules.compile`'s business.

Text is handled as octets: a `str` in this package holds one octet per character (Latin-1), so that "octets" in the RFC
and `len` in Python mean the same thing and a file in a wrong encoding loses nothing. Only what is shown to people
(`Rule.text`) or resolved as a URL (sitemaps) is decoded, as UTF-8.

Two kinds of scope exist side by side, on purpose. Rules belong to all User-agent lines since the last rule: other
records never end a group (section 2.2.4). Settings that are no part of the RFC (Crawl-delay, Request-rate, Visit-time)
belong to the unbroken run of User-agent lines right above them, which is what their authors mean by
"User-agent: a / Crawl-delay: 5 / User-agent: b / Crawl-delay: 9".

Robustness follows Google's parser where the RFC is silent (its documentation and test-suite): a byte-order mark, even a
partial one, is skipped; a colon may be missing when the line is exactly two words; common misspellings of field names
count; a line ends after 16,663 octets. Its prefix match of field names ("disallowed: /") is left out: that guesses.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Iterator

import msgspec

MAX_BYTES = 524_288
"""What `parse` reads unless told otherwise: 512 KiB. RFC 9309 section 2.5 asks for 500 KiB (512,000 octets) or more."""

MAX_LINE = 16_663
"""Octets of a line that count, line end not included: one less than eight times 2,083, as in Google's parser."""

MAX_TEXT = 200
"""Characters of a rule kept for people. The whole line is in the stored body, under the number given with it."""


class Field(enum.StrEnum):
    """The fields that mean something to us."""

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    SITEMAP = "sitemap"
    CRAWL_DELAY = "crawl-delay"
    REQUEST_RATE = "request-rate"
    VISIT_TIME = "visit-time"


STANDARD = frozenset({Field.USER_AGENT, Field.ALLOW, Field.DISALLOW, Field.SITEMAP})
"""The fields of the RFC (sitemap by its example in section 2.2.4): a file that holds none of them is no robots.txt."""

_SPELLINGS: dict[bytes, Field] = {
    **{field.encode(): field for field in Field},
    b"useragent": Field.USER_AGENT,
    b"user agent": Field.USER_AGENT,
    b"dissallow": Field.DISALLOW,
    b"dissalow": Field.DISALLOW,
    b"disalow": Field.DISALLOW,
    b"diasllow": Field.DISALLOW,
    b"disallaw": Field.DISALLOW,
    b"site-map": Field.SITEMAP,
    b"crawl delay": Field.CRAWL_DELAY,
    b"crawldelay": Field.CRAWL_DELAY,
    b"request rate": Field.REQUEST_RATE,
}

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_TOKEN = re.compile(rb"[A-Za-z_-]*")


class Rule(msgspec.Struct, frozen=True, gc=False):
    """One Allow or Disallow line. `pattern` is its value as written, one octet per character; empty matches nothing.
    `text` is the line for people, comment left out, at most `MAX_TEXT` characters."""

    line: int
    allow: bool
    pattern: str
    text: str


class Group(msgspec.Struct, frozen=True, gc=False):
    """User-agent lines and the rules after them. `agents`: product tokens in lower case, "*", or "" for a value that
    names nobody."""

    agents: tuple[str, ...]
    rules: tuple[Rule, ...]


class Setting(msgspec.Struct, frozen=True, gc=False):
    """A Crawl-delay, Request-rate or Visit-time, as written, and the tokens it is written for."""

    line: int
    field: Field
    value: str
    agents: tuple[str, ...]


class File(msgspec.Struct, frozen=True, gc=False):
    """What a robots.txt says, to everybody."""

    digest: str  # SHA-256 of the body as given, hex
    groups: tuple[Group, ...] = ()
    settings: tuple[Setting, ...] = ()
    sitemaps: tuple[tuple[str, int], ...] = ()  # (value as written, decoded; line), repeats left out
    records: int = 0  # lines that hold a field of the RFC
    unknown: int = 0  # lines that hold a field unknown to us
    truncated: bool = False  # longer than the limit: its last, cut line was dropped
    markup: bool = False  # begins like HTML or XML: most likely an error page served with 200


def parse(body: bytes, limit: int = MAX_BYTES) -> File:
    """Read a robots.txt. Total: never raises. Octets after `limit` are ignored, and so is the line that the limit cuts:
    half of "Disallow: /private" would forbid the wrong thing, half of an Allow would open it (section 2.5)."""
    text, truncated = _readable(body, limit)
    groups: list[Group] = []
    settings: list[Setting] = []
    sitemaps: dict[str, int] = {}
    agents: list[str] = []  # of the group being read
    rules: list[Rule] = []
    run: list[str] = []  # the unbroken run of User-agent lines right above
    run_open = False
    written_for: tuple[str, ...] = ()  # the same, for all the settings below it to share
    standard = unknown = 0
    for number, field, value, line in records(text):
        if field is None:
            unknown += 1
            if run_open:
                run_open, written_for = False, tuple(run)
            continue
        if field is Field.USER_AGENT:
            standard += 1
            if rules:
                groups.append(Group(tuple(agents), tuple(rules)))
                agents, rules = [], []
            if not run_open:
                run, run_open = [], True
            token = _product(value)
            agents.append(token)
            run.append(token)
            continue
        if run_open:
            run_open, written_for = False, tuple(run)
        if field is Field.DISALLOW or field is Field.ALLOW:
            standard += 1
            if agents:  # rules before any User-agent line bind nobody (section 2.2.1)
                rules.append(Rule(number, field is Field.ALLOW, value.decode("latin-1"), _shown(line)))
        elif field is Field.SITEMAP:
            standard += 1
            if value:
                sitemaps.setdefault(value.decode("utf-8", "replace"), number)
        elif written_for:
            settings.append(Setting(number, field, value.decode("latin-1"), written_for))
    if agents:
        groups.append(Group(tuple(agents), tuple(rules)))
    return File(
        digest=hashlib.sha256(body).hexdigest(),
        groups=tuple(groups),
        settings=tuple(settings),
        sitemaps=tuple(sitemaps.items()),
        records=standard,
        unknown=unknown,
        truncated=truncated,
        markup=text[:64].lstrip()[:1] == b"<",
    )


def records(body: bytes) -> Iterator[tuple[int, Field | None, bytes, bytes]]:
    """Every line that holds a field: (1-based number, field or None if unknown to us, value, line without comment).

    Lines end in CR, LF or CRLF. White space around field and value is dropped; the value may be empty.
    """
    spellings = _SPELLINGS
    for number, raw in enumerate(body.splitlines(), 1):
        line = raw[:MAX_LINE].partition(b"#")[0].strip()
        if not line:
            continue
        name, colon, value = line.partition(b":")
        if not colon:
            words = line.split()
            if len(words) != 2:
                continue
            name, value = words
            if name.lower() not in spellings:
                continue  # two words of prose
        yield number, spellings.get(name.rstrip().lower()), value.strip(), line


def token_problem(token: str) -> str | None:
    """Why a product token cannot be used (RFC 9309 section 2.2.1: letters, "_" and "-" only); None if it can."""
    if not token:
        return "the product token is empty"
    if not re.fullmatch(r"[A-Za-z_-]+", token):
        odd = "".join(sorted(set(re.sub(r"[A-Za-z_-]", "", token))))
        return f"the product token {token!r} may hold letters, '_' and '-' only (RFC 9309 section 2.2.1), not {odd!r}"
    return None


def whole_lines(body: bytes) -> bytes:
    """The body without its last line, if that line has no end."""
    return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]


def _readable(body: bytes, limit: int) -> tuple[bytes, bool]:
    """The octets to be read, and whether some were left out."""
    truncated = len(body) > limit
    if truncated:
        body = whole_lines(body[:limit])
    if body[:2] in _UTF_16:  # section 2.2.2 lets us bridge other encodings; not to obey would be worse
        return body.decode("utf-16", "replace").encode(), truncated
    skip = 0
    while skip < len(_BOM) and body[skip : skip + 1] == _BOM[skip : skip + 1]:
        skip += 1
    return body[skip:], truncated


def _product(value: bytes) -> str:
    """The token that a User-agent value names: its leading letters, "_" and "-"; "*" if that stands alone."""
    if value[:1] == b"*" and not value[1:2].strip():
        return "*"
    found = _TOKEN.match(value)
    return found.group().decode().lower() if found else ""


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
