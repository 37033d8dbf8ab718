"""What a run came to, said when it ends: for people on a page, for programmes as one JSON object.

The first half is this run, from the tally of its settled visits; the second is the crawl as a whole, from the
frontier's counters: what is left, and when it would be next. Both are told whatever ended the run, because an
interrupted or failed one is when somebody asks.

Names the contact that every request carried: who crawls answers for it, and should see what was said in their name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from comity import wording
from comity.cli.terminal import counted, facts, instant, many, plain, size, span
from comity.model import Cause, Failure, Status

if TYPE_CHECKING:
    from pathlib import Path

    from comity.assemble import Running
    from comity.model import Stats
    from comity.outputs.files import Opened
    from comity.tally import Tally

SHOWN = 10
NEVER = "never by itself"
AGAIN = "as soon as it is run again"


@dataclass(frozen=True)
class Summary:
    """Instants in seconds since the epoch."""

    directory: str
    named: str  # what a person calls it by: the directory, or its file of settings
    results: str | None  # the file of rows; None: none is written
    found: Opened  # what was not as it was left, in that file
    log: str
    contact: str | None
    user_agent: str
    ended: str  # why
    failed: bool
    began_at: float
    ended_at: float
    requests: int  # robots.txt included
    tally: Tally
    left: Stats

    @property
    def seconds(self) -> float:
        return self.ended_at - self.began_at

    @property
    def pages_per_s(self) -> float:
        return self.tally.pages / self.seconds if self.seconds > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "directory": self.directory,
            "results": self.results,
            "results_missing_bytes": self.found.missing_bytes,
            "results_aside": str(self.found.aside) if self.found.aside is not None else None,
            "log": self.log,
            "contact": self.contact,
            "user_agent": self.user_agent,
            "ended": self.ended,
            "failed": self.failed,
            "began_at": self.began_at,
            "ended_at": self.ended_at,
            "seconds": round(self.seconds, 3),
            "pages_per_s": round(self.pages_per_s, 3),
            **self.tally.as_dict(),
            "requests": self.requests,
            "left": as_data(self.left),
        }


def as_data(left: Stats) -> dict[str, Any]:
    """A frontier's counters, for programmes."""
    return {
        "urls": left.urls,
        "hosts": left.hosts,
        "visits": left.visits,
        "by_status": dict(left.by_status),
        "by_cause": dict(left.by_cause),
        "by_failure": dict(left.by_failure),
        "next_at": left.next_ready_at,
        "held": [{"host": host, "until_at": until_at, "why": why} for host, until_at, why in left.held],
    }


async def of(running: Running, *, named: Path | None = None, failed: bool = False) -> Summary:
    """`named`: unless it is the directory. To be asked after the run and before the crawl is closed."""
    assert running.directory is not None
    identity, place = running.identity, running.directory
    jsonl = running.settings.outputs.jsonl.enabled
    return Summary(
        directory=str(place.root),
        named=str(named or place.root),
        results=str(place.pages()) if jsonl else None,
        found=running.results,
        log=str(place.log),
        contact=identity.contact,
        user_agent=identity.user_agent,
        ended=running.crawl.why_ended,
        failed=failed,
        began_at=running.began_at,
        ended_at=running.clock.now(),
        requests=running.crawl.hosts.requests,
        tally=running.tally,
        left=await running.left(),
    )


def lines(summary: Summary) -> Iterator[Text]:
    yield Text.assemble(
        (many(summary.tally.pages, "page"), "bold green"),
        f" in {span(summary.seconds)}, {summary.pages_per_s:.1f}/s: ",
        plain(summary.ended),
    )
    yield from facts([*_run(summary), *_whole(summary)])


def _run(summary: Summary) -> Iterator[tuple[str, str]]:
    tally = summary.tally
    yield "this run", f"{many(tally.visits, 'visit')}, {many(summary.requests, 'request')}, {size(tally.bytes)}"
    if tally.not_modified:
        yield "", f"{tally.not_modified:,} not modified (304): {size(tally.bytes_saved)} saved"
    yield from ranked("became", tally.by_status, {status.name: wording.status(status) for status in Status})
    yield from causes(tally.by_cause)
    yield from failures(tally.by_failure)
    yield from ranked("left out", tally.by_rule, {rule: wording.refusal(rule) for rule in tally.by_rule}, "link")


def causes(counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    yield from ranked("causes", counts, {cause.word: wording.cause(cause) for cause in Cause})


def failures(counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    yield from ranked("failures", counts, {failure.value: wording.failure(failure) for failure in Failure})


def ranked(name: str, counts: Mapping[str, int], words: Mapping[str, str], of: str = "") -> Iterator[tuple[str, str]]:
    """The most frequent of what was counted, each with its words."""
    first = sorted(((key, count) for key, count in counts.items() if count), key=lambda c: (-c[1], c[0]))
    for number, (key, count) in enumerate(first[:SHOWN]):
        said = many(count, of) if of else f"{count:,}"
        yield name if number == 0 else "", plain(f"{said} {key}: {words.get(key, key)}")
    if len(first) > SHOWN:
        yield "", f"and {len(first) - SHOWN} more"


def _whole(summary: Summary) -> Iterator[tuple[str, str]]:
    yield from left(summary.left, AGAIN if summary.failed else NEVER)
    yield "contact", plain(summary.contact) if summary.contact else "none: every seed is on this machine"
    yield "results", plain(summary.results) if summary.results else "outputs.jsonl.enabled is false"
    if summary.found.missing_bytes:
        lost = size(summary.found.missing_bytes)
        yield "", f"{lost} that earlier runs wrote there are gone: somebody cut or changed the file"
    if summary.found.aside is not None:
        yield "", f"what was there and this crawl knows nothing of was set aside: {plain(str(summary.found.aside))}"
    yield "log", plain(summary.log)
    yield "more", f"comity status {plain(summary.named)}, comity why URL -o {plain(summary.named)}"


def left(stats: Stats, otherwise: str = NEVER) -> Iterator[tuple[str, str]]:
    """What a frontier holds, and when it would go on. `otherwise`: what to say when no host is scheduled that is in
    nobody's hands."""
    yield "known", f"{many(stats.urls, 'URL')} of {many(stats.hosts, 'host')}, {many(stats.visits, 'visit')} ever"
    waiting = {name: stats.by_status.get(name, 0) for name in ("DISCOVERED", "FETCH_ERROR")}
    open_ones = {name: count for name, count in waiting.items() if count}
    yield "left", counted(open_ones) if open_ones else "nothing: every URL known was visited or refused"
    next_at = stats.next_ready_at
    yield "next", otherwise if next_at is None else f"not before {instant(next_at)}"
    for number, (host, until_at, why) in enumerate(stats.held[:SHOWN]):
        reason = f" ({plain(why)})" if why else ""
        yield "held" if number == 0 else "", f"{plain(host)} until {instant(until_at)}{reason}"
    if len(stats.held) > SHOWN:
        yield "", f"and {len(stats.held) - SHOWN} more"
