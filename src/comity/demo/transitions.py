"""The transition log: one row for each change of status, as an operator would want to read it a year later.

It is an ordinary sink, shown the visits that every sink is shown. A row says when, which URL, from which status to
which, when the next visit is, why, and which metadata were stored and which were let go, under the keys and values
that StormCrawler uses. A discovery is a row without an old status; a URL known already is no discovery.

What is kept and what is dropped is `metadata.report`'s to say; this sink knows the way from the seed to each URL, which
an entry alone does not, and turns dates into minutes of the scene.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from comity import metadata
from comity.model import Deletion, Entry, Mark, Status, Visit

REPORTED = (
    "nguon",
    "url.path",
    "depth",
    "max.depth",
    "discoveryDate",
    "lastProcessedDate",
    "fetch.exception",
    "fetch.error.count",
    "error.cause",
    "_redirTo",
    "isSitemap",
    "isFeed",
)
"""The keys that rows report. What else a crawl may store (content digests, validators) is not StormCrawler's."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One row. Minutes count from the scene's start; URLs are paths; `next_min` None means never."""

    at_min: int
    url: str
    old: str | None
    new: str
    next_min: int | None
    cause: str | None
    kept: Mapping[str, Sequence[str]] = field(default_factory=dict)
    dropped: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "at_min": self.at_min,
            "url": self.url,
            "old": self.old,
            "new": self.new,
            "next_min": self.next_min,
            "cause": self.cause,
            "kept": {key: list(values) for key, values in self.kept.items()},
            "dropped": list(self.dropped),
        }


class Transitions:
    """A sink that keeps rows. `base` is cut off URLs; `start_at` is minute 0."""

    name = "transitions"

    def __init__(self, policy: metadata.Policy, *, start_at: float, base: str) -> None:
        self.rows: list[Transition] = []
        self._policy, self._start_at, self._base = policy, start_at, base
        self._named_by: dict[str, str | None] = {}  # every URL known, and the page that named it first

    def seeded(self, entry: Entry, given: Mapping[str, Sequence[str]]) -> None:
        """A seed has been stored, with these metadata of its own."""
        self._discovered(entry, entry.discovered_at, given)

    async def open(self, mark: Mark | None) -> None:
        """Cut back what was never settled."""
        if mark is not None:
            del self.rows[mark["rows"] :]

    async def write(self, visits: Sequence[Visit]) -> Mark:
        for visit in visits:
            self._add(visit.entry.status, visit.after, visit.at, {})
            for entry in visit.discoveries:
                if entry.url not in self._named_by:
                    self._discovered(entry, visit.at, {})
        return {"rows": len(self.rows)}

    async def delete(self, deletions: Sequence[Deletion]) -> Mark:
        return {"rows": len(self.rows)}

    async def close(self) -> None:
        pass

    def _discovered(self, entry: Entry, at: float, given: Mapping[str, Sequence[str]]) -> None:
        self._named_by[entry.url] = entry.via
        self._add(None, entry, at, given)

    def _add(self, old: Status | None, entry: Entry, at: float, given: Mapping[str, Sequence[str]]) -> None:
        stored = metadata.report(entry, self._policy, path=self._path(entry), old=old, given=given)
        kept = {key: self._shown(key, entry, stored.kept[key]) for key in REPORTED if stored.kept.get(key)}
        self.rows.append(
            Transition(
                self._minute(at),
                self._short(entry.url),
                old.name if old is not None else None,
                entry.status.name,
                self._minute(entry.due_at) if entry.due_at is not None else None,
                entry.cause.word if entry.cause is not None else None,
                kept,
                [key for key in stored.dropped if key in REPORTED],
            )
        )

    def _path(self, entry: Entry) -> list[str]:
        """The pages on the way from a seed to this URL, in order: who named whom first."""
        names: list[str] = []
        via = entry.via
        while via is not None and via not in names:
            names.append(via)
            via = self._named_by.get(via)
        return names[::-1]

    def _shown(self, key: str, entry: Entry, values: Sequence[str]) -> tuple[str, ...]:
        if key == "discoveryDate":
            return (str(self._minute(entry.discovered_at)),)
        if key == "lastProcessedDate" and (at := metadata.processed_at(entry)) is not None:
            return (str(self._minute(at)),)
        return tuple(self._short(value) for value in values)

    def _minute(self, at: float) -> int:
        return round((at - self._start_at) / 60)

    def _short(self, url: str) -> str:
        return url.removeprefix(self._base) or "/"
