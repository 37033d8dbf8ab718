"""The rules for our crawler: compiled once, asked for every URL (RFC 9309, sections 2.2.1 to 2.2.3).

Invariant: `verdict` gives the answer of the most specific matching rule (the one with the most octets, Allow on a tie),
and names it. No order of lines, comment, or other crawler's group can change an answer, nor the rules digest.

Rules stand in order of strength, so that "most specific" is "first": rule 0 is the longest. Three tables lead to them.
`exact` holds patterns without `*` that end in `$`. `heads` holds plain prefixes, sorted; the greatest head not above
the path, or one of its own prefixes, is the longest head that the path begins with, so one bisection finds it, and
`head_best` knows the strongest rule among it and all its prefixes. Patterns with a `*` are tried one by one, strongest
first, until what is left is weaker than what was found; most are passed over because a literal part of theirs does not
occur in the path. A match is greedy, segment by segment: leftmost is always good enough, so a hostile pattern costs
O(pattern × path) and no backtracking (ROB-21; measured in bench/decisions.py).

Refuses to know how the file was fetched, whether it is still valid, and what time it is.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from comity.model import Access, Verdict
from comity.robots import delays, paths
from comity.robots.grammar import Field, File, Rule, parse
from comity.url import resolve

ROBOTS_PATH = "/robots.txt"

_Wild = tuple[int, str, str, tuple[str, ...], str | None]
"""(strength, a literal that must occur, head, segments to be found in order, tail at the very end or None)"""


class Rules(msgspec.Struct, frozen=True, gc=False):
    """What a robots.txt says to us about one origin. Make it with `compile`; share it (`for_origin`) where the body is
    the same.

    Lean on purpose, for ten thousand hosts at once: about 200 bytes a rule (measured), and the patterns of plain rules
    are the very strings of the table that finds them.
    """

    origin: str
    digest: str  # the rules digest: of the compiled rules, origin included; 32 hex digits
    bare_digest: str  # the same, whatever the origin
    body_digest: str  # SHA-256 of the file
    group: str | None  # our token, "*", or None: no group speaks to us
    crawl_delay_s: float | None = None
    crawl_delay_line: int | None = None
    request_rate_s: float | None = None  # seconds per request
    request_rate_line: int | None = None
    sitemap_values: tuple[tuple[str, int], ...] = ()  # (as written, line)
    patterns: tuple[str, ...] = ()  # as written, by strength; shown as written where `texts` has no other
    allows: tuple[bool, ...] = ()
    lines: tuple[int, ...] = ()
    texts: dict[int, str] = {}  # lines not spelt "Allow: pattern" or "Disallow: pattern"
    exact: dict[str, int] = {}
    heads: tuple[str, ...] = ()
    head_best: tuple[int, ...] = ()
    head_parent: tuple[int, ...] = ()  # the longest other head that this one begins with; -1: none
    wild: tuple[_Wild, ...] = ()

    @property
    def wanted_s(self) -> float | None:
        """The delay the file names: the larger of Crawl-delay and Request-rate. None: it names none."""
        if self.crawl_delay_s is None or self.request_rate_s is None:
            return self.request_rate_s if self.crawl_delay_s is None else self.crawl_delay_s
        return max(self.crawl_delay_s, self.request_rate_s)

    @property
    def delay_line(self) -> int | None:
        """The line behind `wanted_s`."""
        wanted = self.wanted_s
        return self.crawl_delay_line if wanted == self.crawl_delay_s else self.request_rate_line

    @property
    def sitemaps(self) -> tuple[tuple[str, int], ...]:
        """(absolute URL, line), in order, once each. A relative one is no URL by the protocol; it is resolved all the
        same against the file's own URL."""
        found: dict[str, int] = {}
        for value, line in self.sitemap_values:
            url = resolve(self.origin + ROBOTS_PATH, value)
            if url is not None:
                found.setdefault(url.href, line)
        return tuple(found.items())

    def rule(self, strength: int) -> str:
        """The line of a rule, for people."""
        word = "Allow" if self.allows[strength] else "Disallow"
        return self.texts.get(strength) or f"{word}: {self.patterns[strength]}"


class _Compiled(msgspec.Struct, frozen=True, gc=False):
    """A rule on its way into the tables. Sorting by `order` gives the strength."""

    order: tuple[int, bool, int]  # (-octets, is a Disallow, line)
    form: str  # the pattern in its form: what the digest counts
    parts: tuple[str, ...]
    anchored: bool
    source: Rule


def compile(file: File, token: str | Sequence[str], origin: str) -> Rules:
    """The rules of `file` that bind a crawler of that product token at `origin` ("https://a.example").

    Several tokens are an order of preference: the first that has a group speaks alone, groups of different tokens are
    never merged (ROB-15). All groups of one token are (section 2.2.1). Only without a group of our own does "*" speak.
    """
    group, chosen = _choose(file, [token] if isinstance(token, str) else token)
    compiled = _strongest_first(_compiled(rule) for rule in chosen)
    delay = delays.slowest(file, group, Field.CRAWL_DELAY)
    rate = delays.slowest(file, group, Field.REQUEST_RATE)
    texts = {}
    for strength, each in enumerate(compiled):
        word = "Allow" if each.source.allow else "Disallow"
        if each.source.text != f"{word}: {each.source.pattern}":
            texts[strength] = each.source.text
    heads, best, parent = _heads(compiled)
    bare = _bare_digest(compiled)
    return Rules(
        origin=origin,
        digest=_digest(bare, origin),
        bare_digest=bare,
        body_digest=file.digest,
        group=group,
        crawl_delay_s=delay[0],
        crawl_delay_line=delay[1],
        request_rate_s=rate[0],
        request_rate_line=rate[1],
        sitemap_values=file.sitemaps,
        patterns=tuple(
            each.parts[0] if each.parts[0] == each.source.pattern else each.source.pattern for each in compiled
        ),
        allows=tuple(each.source.allow for each in compiled),
        lines=tuple(each.source.line for each in compiled),
        texts=texts,
        exact=_exact(compiled),
        heads=heads,
        head_best=best,
        head_parent=parent,
        wild=_wild(compiled),
    )


def for_origin(rules: Rules, origin: str) -> Rules:
    """The same body at another origin (a mirror, a farm of hosts): shares every table with `rules`."""
    return msgspec.structs.replace(rules, origin=origin, digest=_digest(rules.bare_digest, origin))


def verdict(rules: Rules, target: str) -> Verdict:
    """May we ask for `target` (`Url.target`: path and query, no fragment)? Names group, line and rule. No rule matches:
    allowed, and `line` is None. `/robots.txt` itself is always allowed (section 2.2.2)."""
    if paths.odd(target) is None:
        form = target
        best = _strongest(rules, form)
    else:
        form = paths.match_path(target)
        best = _strongest(rules, form)
        as_written = paths.literal_path(target)
        if as_written is not None:
            best = min(best, _strongest(rules, as_written))
    if best == len(rules.lines) or form == ROBOTS_PATH:
        return Verdict(True, Access.RULES, rules.group, None, None, rules.body_digest)
    return Verdict(
        rules.allows[best], Access.RULES, rules.group, rules.lines[best], rules.rule(best), rules.body_digest
    )


def verdict_without_rules(access: Access, target: str = "") -> Verdict:
    """The verdict when no file speaks: ALLOW allows, DISALLOW and UNREACHABLE do not (the latter means: wait)."""
    return Verdict(access is Access.ALLOW or target == ROBOTS_PATH, access)


def digest_without_rules(access: Access, origin: str) -> str:
    """The rules digest when no file speaks: ALLOW counts as an empty file, the others as "Disallow: /" for all. So a
    site that replaces its 404 by an empty file has changed nothing."""
    body = b"" if access is Access.ALLOW else b"User-agent: *\nDisallow: /\n"
    return compile(parse(body), "any", origin).digest


def _strongest(rules: Rules, path: str) -> int:
    """The strongest rule that matches `path` (in its form); the number of rules if none does."""
    none = len(rules.lines)
    best = rules.exact.get(path, none) if rules.exact else none
    heads = rules.heads
    if heads:
        at = bisect_right(heads, path) - 1
        while at >= 0:
            if path.startswith(heads[at]):
                if rules.head_best[at] < best:
                    best = rules.head_best[at]
                break
            at = rules.head_parent[at]
    for strength, needle, head, middle, tail in rules.wild:
        if strength > best:
            break
        if needle not in path or not path.startswith(head):
            continue
        at = len(head)
        for part in middle:
            at = path.find(part, at)
            if at < 0:
                break
            at += len(part)
        else:
            if tail is None or (len(path) - len(tail) >= at and path.endswith(tail)):
                return strength
    return best


def _choose(file: File, tokens: Sequence[str]) -> tuple[str | None, list[Rule]]:
    for token in (*(each.lower() for each in tokens), "*"):
        groups = [group for group in file.groups if token in group.agents]
        if groups:
            return token, [rule for group in groups for rule in group.rules]
    return None, []


def _compiled(rule: Rule) -> Iterable[_Compiled]:
    """What a rule compiles to: nothing if it can never match, itself, or itself and its twin."""
    pattern = rule.pattern
    if pattern[:1] not in ("/", "*"):  # empty, or no path: matches nothing (section 2.2.2; Google's parser)
        return
    yield _ready(rule, *paths.segments(pattern))
    # Google's parser: an Allow of a folder's index page allows the folder's own URL too, and that URL only.
    folder, slash, name = pattern.rpartition("/")
    if rule.allow and slash and name.startswith("index.htm"):
        yield _ready(rule, paths.segments(folder + slash)[0], True)


def _ready(rule: Rule, parts: list[str], anchored: bool) -> _Compiled:
    form = "*".join(part.replace("*", "%2A").replace("$", "%24") for part in parts) + ("$" if anchored else "")
    octets = sum(map(len, parts)) + len(parts) - 1 + anchored
    if len(parts) > 2:  # "**" is "*"
        parts = [parts[0], *filter(None, parts[1:-1]), parts[-1]]
    return _Compiled((-octets, not rule.allow, rule.line), form, tuple(parts), anchored, rule)


def _strongest_first(compiled: Iterable[Iterable[_Compiled]]) -> list[_Compiled]:
    """By strength; of rules with one form only the first stays: the others could never decide."""
    ordered = sorted((each for some in compiled for each in some), key=lambda each: each.order)
    kept: dict[str, _Compiled] = {}
    for each in ordered:
        kept.setdefault(each.form, each)
    return list(kept.values())


def _bare_digest(compiled: list[_Compiled]) -> str:
    rules = sorted(f"{'+' if each.source.allow else '-'}{each.form}" for each in compiled)
    return hashlib.blake2b("\n".join(rules).encode(), digest_size=16).hexdigest()


def _digest(bare: str, origin: str) -> str:
    return hashlib.blake2b(f"{origin}\n{bare}".encode(), digest_size=16).hexdigest()


def _exact(compiled: list[_Compiled]) -> dict[str, int]:
    return {each.parts[0]: strength for strength, each in enumerate(compiled) if len(each.parts) == 1 and each.anchored}


def _heads(compiled: list[_Compiled]) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """Plain prefixes ("/a", and "/a*", which matches the same) → sorted heads, strongest rule, parent."""
    own: dict[str, int] = {}
    for strength, each in enumerate(compiled):
        if not each.anchored and (len(each.parts) == 1 or not any(each.parts[1:])):
            own.setdefault(each.parts[0], strength)
    heads = sorted(own)
    best: list[int] = []
    parent: list[int] = []
    for at, head in enumerate(heads):
        above = at - 1
        while above >= 0 and not head.startswith(heads[above]):
            above = parent[above]
        parent.append(above)
        best.append(own[head] if above < 0 else min(own[head], best[above]))
    return tuple(heads), tuple(best), tuple(parent)


def _wild(compiled: list[_Compiled]) -> tuple[_Wild, ...]:
    wild: list[_Wild] = []
    for strength, each in enumerate(compiled):
        head, *rest = each.parts
        if not rest or (not each.anchored and not any(rest)):
            continue
        tail = rest.pop() if each.anchored else None
        middle = tuple(part for part in rest if part)
        wild.append((strength, max(head, *middle, tail or "", key=len), head, middle, tail))
    return tuple(wild)
