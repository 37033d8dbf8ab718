"""The server's own record: one line a request, as a site's operator would have it, and a little more.

A `Line` is made when the request arrives and completed when its answer has left; until then `end_at` is None. Its order
(`seq`) and what was open or known at its start (`open`, `open_here`, `robots_answer`) are noted live, because clock
readings cannot tell them: a virtual clock gives many events the same instant.

In a file, the first lines are the sites' rules, then one JSON object a request, written when it ends, so that a log can
be judged without the programme that wrote it, and at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from comity.fakeweb.site import Rules, Site


class Line(msgspec.Struct, omit_defaults=True):
    """One request as the server saw it. Instants by the clock given to the server."""

    seq: int  # order of arrival, over all hosts, from 1
    start_at: float  # first byte of the request
    host: str  # of the Host field, port dropped
    method: str
    path: str  # the target as sent
    number: int  # the how-many-th for this path of this host
    open: int  # requests under way when it arrived, itself included
    open_here: int  # the same, of this host
    robots_answer: int  # number of the request for this host's /robots.txt whose answer had left by then; 0: none
    is_robots: bool = False
    agent: str = ""
    if_none_match: str | None = None
    if_modified_since: str | None = None
    status: int = 0  # 0: none was sent
    bytes: int = 0  # of the body, as sent
    end_at: float | None = None  # the answer has left, or the visitor has
    whole: bool = False  # the answer was sent to its end
    retry_after_s: float | None = None  # asked for by the answer


class Host(msgspec.Struct):
    """A site's rules, in the order of its answers to /robots.txt."""

    site: str
    rules: tuple[Rules, ...]


_JSON = msgspec.json.Encoder()


def rules_of(sites: Iterable[Site]) -> dict[str, tuple[Rules, ...]]:
    return {site.host: tuple(answer.rules for answer in site.robots) for site in sites}


def encode(line: Line | Host) -> bytes:
    return _JSON.encode(line) + b"\n"


def read(path: Path | str) -> tuple[list[Line], dict[str, tuple[Rules, ...]]]:
    """The lines in order of arrival, and each site's rules. Raises `msgspec.MsgspecError` for what is no such log."""
    lines: list[Line] = []
    rules: dict[str, tuple[Rules, ...]] = {}
    with open(path, "rb") as file:
        for text in file:
            if text.startswith(b'{"site"'):
                host = msgspec.json.decode(text, type=Host)
                rules[host.site] = host.rules
            else:
                lines.append(msgspec.json.decode(text, type=Line))
    lines.sort(key=lambda line: line.seq)
    return lines, rules


def header(rules: Mapping[str, tuple[Rules, ...]]) -> bytes:
    return b"".join(encode(Host(host, theirs)) for host, theirs in rules.items())
