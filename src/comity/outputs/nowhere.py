"""A journal that keeps nothing, for crawls that have no directory.

Invariant: it takes whatever `ports.Journal` takes and writes nothing anywhere. A crawl in memory leaves no evidence by
its user's choice; every crawl in a directory has a `crawllog`, and there is no option to turn that off.
"""

from __future__ import annotations

from typing import Any

from comity.model import Outcome, Request, Verdict, Visit, Wire

NO_PLACE = ""


class NoJournal:
    """Satisfies `ports.Journal`."""

    def asking(self, request: Request, host: str, at: float, verdict: Verdict | None, previous: str | None) -> str:
        return NO_PLACE

    def heard(self, request: Request, host: str, outcome: Outcome, wire: Wire, **facts: Any) -> str:
        return NO_PLACE

    def visited(self, visit: Visit) -> str:
        return NO_PLACE

    def note(self, event: str, at: float, **facts: Any) -> str:
        return NO_PLACE
