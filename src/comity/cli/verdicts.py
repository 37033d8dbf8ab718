"""What robots.txt says of a URL, in words: for `comity why` and `comity robots`, which must not tell it in two ways.

A verdict always names what decided: the line and its text, the group that speaks, or what the absence of a file means.
Clauses, as in `comity.wording`. Refuses to know where the file came from.
"""

from __future__ import annotations

from rich.text import Text

from comity.cli.terminal import plain
from comity.model import Access, Verdict

ACCESS = {
    Access.RULES: "robots.txt was read",
    Access.ALLOW: "there is no robots.txt, so everything may be asked for",
    Access.DISALLOW: "robots.txt may not be read, which counts as a no for everything",
    Access.UNREACHABLE: "robots.txt cannot be had, and nothing is asked for until it can",
}


def words(verdict: Verdict) -> str:
    """What decided."""
    if verdict.access is not Access.RULES:
        return ACCESS[verdict.access]
    if verdict.group is None:
        return "no rule matches: no group speaks to us"
    group = f"(group {plain(verdict.group)})"
    if verdict.line is None:
        return f"no rule matches {group}"
    return f'line {verdict.line}, "{plain(verdict.rule or "")}" {group}'


def sentence(verdict: Verdict, when: str = "") -> Text:
    """May it be fetched, and what says so."""
    may = ("may be fetched", "green") if verdict.allowed else ("may not be fetched", "red")
    return Text.assemble(when, may, f": {words(verdict)}")
