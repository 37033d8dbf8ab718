"""What a site's operator would hold against a visitor, told from the server's log alone.

The judge reads lines and the plain rules of the sites, and nothing of the crawler's: not its log, not its parser, not
its idea of when a host was due. It is meant to be suspicious and simple; a breach is counted once and told in words.

* **forbidden**: a request for a path that the robots.txt then known to the visitor forbids (until the first answer to
  /robots.txt, the one it would have got);
* **early**: a request that starts sooner after the one before it, on the same host, than the delay owed, or before the
  end of a Retry-After. Requests of every kind count. `SLACK_S` is forgiven;
* **before_robots**: a request for anything else before an answer to /robots.txt had left;
* **overlaps**: a request that arrived while another of the same host was under way;
* **repeats**: a path asked for again (robots.txt left out). Not a breach: a crawl that revisits repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any

from comity.fakeweb.log import Line
from comity.fakeweb.site import Rules

SLACK_S = 0.002
"""Two milliseconds: what the reading of two clocks and the way through a loopback socket can differ by."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The counts, the figures, and the breaches in words."""

    requests: int = 0
    forbidden: int = 0
    early: int = 0
    before_robots: int = 0
    overlaps: int = 0
    repeats: int = 0
    hosts: int = 0
    robots_requests: int = 0
    peak: int = 0  # most requests under way at once
    bytes: int = 0  # of bodies
    span_s: float = 0.0  # first arrival to last departure
    gap_min_s: float | None = None  # between starts on one host; None: no host was asked twice
    gap_median_s: float | None = None
    fullness: float | None = None  # requests made / requests a polite visitor could have made; None: no delay owed
    by_status: dict[int, int] = field(default_factory=dict)
    breaches: tuple[str, ...] = ()  # the first hundred

    @property
    def polite(self) -> bool:
        return not (self.forbidden or self.early or self.before_robots)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(lines: Iterable[Line], rules: Mapping[str, Sequence[Rules]], *, delay_s: float = 0.0) -> Judgement:
    """Judge all requests of a log (`comity.fakeweb.log.rules_of` gives the rules). `delay_s` is owed to each host whose
    robots.txt names no Crawl-delay: the delay the visitor was told to keep."""
    lines = sorted(lines, key=attrgetter("seq"))
    if not lines:
        return Judgement()
    by_host: dict[str, list[Line]] = {}
    for line in lines:
        by_host.setdefault(line.host, []).append(line)
    told: list[str] = []
    counts: Counter[str] = Counter()
    gaps: list[float] = []
    possible = 0.0

    def breach(kind: str, line: Line, why: str) -> None:
        counts[kind] += 1
        told.append(f"{kind}: {line.method} {line.host}{line.path} (request {line.seq}): {why}")

    for host, theirs in by_host.items():
        script = rules.get(host) or (Rules(),)
        before: Line | None = None
        held_until_at = float("-inf")
        for line in theirs:
            now = script[min(max(line.robots_answer, 1), len(script)) - 1]
            owed_s = delay_s if now.delay_s is None or not line.robots_answer else now.delay_s
            if not line.is_robots:
                if not line.robots_answer:
                    breach("before_robots", line, "robots.txt had not been answered")
                if now.forbids(line.path):
                    breach("forbidden", line, "robots.txt says no")
                counts["repeats"] += line.number > 1
            if before is not None:
                gap_s = line.start_at - before.start_at
                gaps.append(gap_s)
                if gap_s < owed_s - SLACK_S:
                    breach("early", line, f"{gap_s:.4f} s after {before.path}, {owed_s:g} s are owed")
                elif line.start_at < held_until_at - SLACK_S:
                    breach("early", line, f"{held_until_at - line.start_at:.4f} s before the end of a Retry-After")
            if line.open_here > 1:
                breach("overlaps", line, f"{line.open_here} under way")
            if line.retry_after_s is not None and line.end_at is not None:
                held_until_at = max(held_until_at, line.end_at + line.retry_after_s)
            before = line
        if owed_s:
            possible += (theirs[-1].start_at - theirs[0].start_at) / owed_s + 1
    gaps.sort()
    ends = [line.end_at for line in lines if line.end_at is not None]
    return Judgement(
        requests=len(lines),
        forbidden=counts["forbidden"],
        early=counts["early"],
        before_robots=counts["before_robots"],
        overlaps=counts["overlaps"],
        repeats=counts["repeats"],
        hosts=len(by_host),
        robots_requests=sum(line.is_robots for line in lines),
        peak=max(line.open for line in lines),
        bytes=sum(line.bytes for line in lines),
        span_s=max(ends, default=lines[0].start_at) - min(line.start_at for line in lines),
        gap_min_s=gaps[0] if gaps else None,
        gap_median_s=gaps[len(gaps) // 2] if gaps else None,
        fullness=len(lines) / possible if possible else None,
        by_status=dict(sorted(Counter(line.status for line in lines).items())),
        breaches=tuple(told[:100]),
    )


def together(judgements: Iterable[Judgement]) -> dict[str, int]:
    """The three counts of several webs, added up."""
    judgements = tuple(judgements)
    return {
        "forbidden": sum(each.forbidden for each in judgements),
        "early": sum(each.early for each in judgements),
        "before_robots": sum(each.before_robots for each in judgements),
    }
