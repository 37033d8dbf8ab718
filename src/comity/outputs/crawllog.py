"""The crawl log: evidence of every request, and of every decision not to make one.

Owns: one file of JSON lines per worker (``crawl-<worker>.jsonl``), the events in it, and their reading by place.

Theory. A complaint, an audit or ``comity why`` asks what was done, not what was stored; so the log is written at
other moments than the outputs. An ``ask`` is in the kernel before its request leaves; a ``visit`` (or an ``answer``,
for robots.txt and its redirects) before the visit is settled. A killed process therefore loses no event of a request
that a server may have seen, and a settled entry always has its event. The reverse is wanted too: an event whose visit
was never settled stays, because the request *was* made. So, unlike a data file, the log is never cut back to a mark;
only a torn last line goes (its request never left: the ask is written first). The visit will be made again, and the
``opened`` event between the two says how far the log was settled.

Every event has a *place*, ``worker:offset`` (of its first byte), and ``prev``, the place of the URL's event before:
``visit`` → ``ask`` → the visit before → … . The frontier keeps the newest place in `Entry.place`. A URL's story is read
by following them, without a search and without an index.

One ``write(2)`` an event, no ``fsync`` (*measured*: 6 µs an ask, 12 µs a visit, encoding included).

Refuses to know: what the events are good for, and the frontier.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from comity.model import (
    Deletion,
    Failed,
    HttpError,
    Mark,
    Outcome,
    Page,
    Redirect,
    Refused,
    Request,
    StillFresh,
    Verdict,
    Visit,
    Wire,
)
from comity.outputs import files
from comity.outputs.rows import Column, changed, http_status

VERSION = 1

Event: TypeAlias = dict[str, Any]

COLUMNS = (
    Column("event", "all", "`ask`, `answer`, `visit`, or a note's name: `opened`, `deleted`, and the engine's own"),
    Column("v", "all", "version of this table: 1"),
    Column("at", "all", "seconds since 1970-01-01T00:00:00Z: when the event happened"),
    Column("url", "ask answer visit", "what is asked, was asked, or would have been asked"),
    Column("key", "visit", "the form that is compared; left out when it is the URL"),
    Column("host", "ask answer visit", "the host key"),
    Column("kind", "ask answer visit", "`page` or `robots`"),
    Column("conditional", "ask", "true: validators were sent"),
    Column("verdict", "ask visit", "robots.txt: `allowed`, `access`, `group`, `line`, `rule`, `digest` of the file"),
    Column("outcome", "answer visit", "page, not_modified, still_fresh, redirect, http_error, failed, refused"),
    Column("rule", "visit", "a refusal: the rule that decided"),
    Column("fresh_until_at", "visit", "still_fresh: until when the last answer is good"),
    Column("old", "visit", "status before"),
    Column("new", "visit", "status after"),
    Column("cause", "visit", "why it is ERROR"),
    Column("failure", "answer visit", "what this attempt met"),
    Column("detail", "answer visit", "the failure in words"),
    Column("http", "answer visit", "status code of the answer"),
    Column("retry_after", "answer visit", "the Retry-After field as received"),
    Column("location", "answer visit", "the Location field as received"),
    Column("started_at", "answer visit", "the request was handed to the network"),
    Column("heard_at", "answer visit", "first byte of the answer"),
    Column("finished_at", "answer visit", "end of the request"),
    Column("service_s", "answer visit", "seconds the host worked for it, our own queueing left out"),
    Column("waited_s", "visit", "seconds waited for the host's clock and a free slot"),
    Column("address", "answer visit", "IP address connected to"),
    Column("bytes", "answer visit", "body bytes received, before content decoding"),
    Column("changed", "visit", "did the body differ from the visit before?"),
    Column("digest", "answer visit", "SHA-256 of the last body seen, in hex"),
    Column("depth", "visit", "links from a seed"),
    Column("hops", "visit", "redirects in a row before this URL"),
    Column("via", "visit", "the page that named it"),
    Column("errors", "visit", "FETCH_ERRORs in a row, after"),
    Column("version", "visit", "of the entry once settled"),
    Column("found", "visit", "how many URLs it sent to the frontier"),
    Column("refused", "visit", "how many links were not kept, by rule"),
    Column("deletion", "visit", "true: its document is to be removed"),
    Column("next_at", "visit", "the next visit; left out: never again by itself"),
    Column("next_rule", "visit", "the named rule that set it"),
    Column("prev", "ask answer visit", "place of this URL's event before"),
)

_WORKER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_decode = msgspec.json.Decoder().decode


class CrawlLog:
    """A `Journal` for the engine and a `Sink` for its mark, over one file.

    Every call raises `files.SinkFull` when the file cannot grow: what cannot be recorded must not be asked.
    """

    name = "crawllog"

    def __init__(self, folder: Path, worker: str, now: Callable[[], float], *, write: files.Write = os.write) -> None:
        """`now` (seconds since the epoch) dates the one event that nobody hands in: ``opened``. Raises ValueError for a
        worker name that no file name should hold."""
        self.path = path_of(folder, worker)
        self.worker = worker
        self.opened = files.Opened()
        self._now = now
        self._write = write
        self._file: files.AppendFile | None = None
        self._closed = False
        self._asked: dict[tuple[str, str], str] = {}  # (kind, URL) → place of its ask, for requests in flight

    # -- the sink ------------------------------------------------------------------------------------------------------

    async def open(self, mark: Mark | None) -> None:
        """Keeps all that was written, and notes how far it was settled. Raises OSError when it cannot be opened."""
        self._closed = False
        end = self._ready().end
        settled = 0 if mark is None else mark.get("offset", 0)
        self.note("opened", self._now(), settled=settled, end=end, torn_bytes=self.opened.cut_bytes or None)

    async def write(self, visits: Sequence[Visit]) -> Mark:
        """Only answers where the log stands: the journal wrote each visit's event when it happened, because the place
        of that event had to be known before."""
        return self._mark()

    async def delete(self, deletions: Sequence[Deletion]) -> Mark:
        for deletion in deletions:
            cause = None if deletion.cause is None else deletion.cause.word
            self.note("deleted", deletion.at, url=deletion.url, id=deletion.id, cause=cause, seq=deletion.seq)
        return self._mark()

    async def close(self) -> None:
        self._closed = True
        self._let_go()

    # -- the journal ---------------------------------------------------------------------------------------------------

    def asking(self, request: Request, host: str, at: float, verdict: Verdict | None, previous: str | None) -> str:
        """To be called, and to return, before the request leaves."""
        place = self._append(
            {
                "event": "ask",
                "v": VERSION,
                "at": at,
                "url": request.url,
                "host": host,
                "kind": request.kind,
                "conditional": True if request.etag or request.last_modified else None,
                "verdict": _verdict(verdict),
                "prev": previous,
            }
        )
        self._asked[request.kind, request.url] = place
        return place

    def heard(self, request: Request, host: str, outcome: Outcome, wire: Wire, **facts: Any) -> str:
        """`facts` are written as given, after the event's own fields; a fact of the same name as one is ignored."""
        event: Event = {
            "event": "answer",
            "v": VERSION,
            "at": wire.finished_at,
            "url": request.url,
            "host": host,
            "kind": request.kind,
            **_answer(outcome, wire),
            "digest": hashlib.sha256(outcome.body).hexdigest() if isinstance(outcome, Page) else None,
            "prev": self._asked.pop((request.kind, request.url), None),
        }
        return self._append(event | {name: fact for name, fact in facts.items() if name not in event})

    def visited(self, visit: Visit) -> str:
        """To be called before the visit is settled; the place returned belongs into `Entry.place`."""
        before, after, outcome = visit.entry, visit.after, visit.outcome
        event: Event = {
            "event": "visit",
            "v": VERSION,
            "at": visit.at,
            "url": after.url,
            "key": after.key if after.key != after.url else None,
            "host": after.host,
            "kind": "page",
            "old": before.status.name,
            "new": after.status.name,
            "cause": None if after.cause is None else after.cause.word,
            **_answer(outcome, visit.wire),
            "failure": after.failure,
            "detail": after.detail,
            "http": http_status(visit),
            "rule": outcome.rule if isinstance(outcome, Refused) else None,
            "fresh_until_at": outcome.until_at if isinstance(outcome, StillFresh) else None,
            "verdict": _verdict(visit.verdict),
            "waited_s": visit.waited_s or None,
            "changed": changed(visit),
            "digest": after.digest,
            "depth": after.depth,
            "hops": after.hops or None,
            "via": after.via,
            "errors": after.errors or None,
            "version": max(after.version, before.version + 1),
            "found": len(visit.discoveries) or None,
            "refused": visit.refused_links or None,
            "deletion": True if visit.deletion is not None else None,
            "next_at": after.due_at,
            "next_rule": after.next_rule,
            "prev": self._asked.pop(("page", before.url), before.place),
        }
        return self._append(event)

    def note(self, event: str, at: float, **facts: Any) -> str:
        return self._append({"event": event, "v": VERSION, "at": at} | facts)

    # ------------------------------------------------------------------------------------------------------------------

    def _append(self, event: Event) -> str:
        offset = self._ready().append(files.line({name: value for name, value in event.items() if value is not None}))
        if self._closed:
            self._let_go()
        return f"{self.worker}:{offset}"

    def _mark(self) -> Mark:
        return {"file": 0, "offset": self._ready().end}

    def _ready(self) -> files.AppendFile:
        # Opened by the first event, which may be the engine's before any sink is opened; one that comes after `close`
        # (how the crawl ended) opens the file for itself.
        if self._file is None:
            self._file, self.opened = files.open_whole(self.path, write=self._write)
        return self._file

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _answer(outcome: Outcome, wire: Wire | None) -> Event:
    """What came back and when, as far as anything did."""
    event: Event = {"outcome": outcome.__struct_config__.tag}
    match outcome:
        case Failed(failure=failure, detail=detail):
            event["failure"] = failure
            event["detail"] = detail or None
        case HttpError(status=status, headers=headers) | Redirect(status=status, headers=headers):
            event["http"] = status
            event["retry_after"] = next((value for name, value in headers if name == "retry-after"), None)
            if isinstance(outcome, Redirect):
                event["location"] = outcome.location
        case Page(status=status):
            event["http"] = status
        case _:
            pass
    if wire is not None:
        event["started_at"] = wire.started_at
        event["heard_at"] = wire.heard_at
        event["finished_at"] = wire.finished_at
        event["service_s"] = wire.service_s
        event["address"] = wire.address
        event["bytes"] = wire.body_bytes
    return event


def _verdict(verdict: Verdict | None) -> Event | None:
    if verdict is None:
        return None
    event: Event = {"allowed": verdict.allowed, "access": verdict.access}
    if verdict.group is not None:
        event["group"] = verdict.group
    if verdict.line is not None:
        event["line"] = verdict.line
        event["rule"] = verdict.rule
    if verdict.digest is not None:
        event["digest"] = verdict.digest
    return event


# -- reading -----------------------------------------------------------------------------------------------------------


def path_of(folder: Path, worker: str) -> Path:
    """The log file of a worker. Raises ValueError for a name that no file name should hold."""
    if not _WORKER.fullmatch(worker):
        raise ValueError(f"a worker's name may hold letters, digits, '-' and '_' only: {worker!r}")
    return folder / f"crawl-{worker}.jsonl"


def read_at(folder: Path, place: str) -> Event | None:
    """The event at a place; None if there is none (a power cut, a file moved away, no such worker)."""
    worker, _, offset = place.rpartition(":")
    try:
        with path_of(folder, worker).open("rb") as file:
            if int(offset) != 0:  # an event begins after a newline: anything else is no place
                file.seek(int(offset) - 1)  # ValueError when negative
                if file.read(1) != b"\n":
                    return None
            line = file.readline()
            event = _decode(line) if line.endswith(b"\n") else None
    except (OSError, ValueError):  # msgspec.DecodeError is a ValueError
        return None
    return event if isinstance(event, dict) and "event" in event else None


def story(folder: Path, place: str | None, limit: int = 20) -> tuple[Event, ...]:
    """A URL's events, newest first, from `place` backwards along `prev`; at most `limit`. Ends early where an event is
    lost. Each has its own place added as ``place``."""
    events: list[Event] = []
    seen: set[str] = set()
    while place is not None and place not in seen and len(events) < limit:
        seen.add(place)
        event = read_at(folder, place)
        if event is None:
            break
        events.append(event | {"place": place})
        previous = event.get("prev")
        place = previous if isinstance(previous, str) else None
    return tuple(events)


def events(folder: Path) -> Iterator[Event]:
    """Every event of every worker, a file at a time, in the order written, with its ``place``. A torn last line (a
    crawl may be writing it) and lines that are no events are left out."""
    for path in sorted(folder.glob("crawl-*.jsonl")):
        worker = path.stem.removeprefix("crawl-")
        offset = 0
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    try:
                        event = _decode(line)
                    except ValueError:
                        event = None
                    if isinstance(event, dict) and "event" in event:
                        yield event | {"place": f"{worker}:{offset}"}
                offset += len(line)
