"""The frontier: every URL's life story, and whose turn it is.

The contract is `comity.ports.Frontier` (the engine's side) and `comity.ports.Ledger` (the people's and the sinks'
side); one suite, tests/contracts/test_frontier.py, holds every store to it. The stores are modules beside this one
(`memory`, `sqlite`); they do not know each other. What they must decide alike is in `contract`.

This page owns only the errors of a store, so that whoever reports one need not know which store it was. Each message
is one plain sentence for people, and names the path.
"""

from __future__ import annotations


class StoreFailed(Exception):
    """The store could not do what was asked. Nothing settled before is lost, and nothing was half done."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the frontier {path} failed: {reason}")
        self.path = path
        self.reason = reason


class StoreFull(StoreFailed):
    """There is no room to write. Everything settled before is safe; the same call may be made again once there is."""


class SchemaTooNew(StoreFailed):
    """The file was written by a later comity than this one. It was not touched."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            path, f"its schema is version {found}, and this comity knows versions up to {known}: use a newer comity"
        )
        self.found = found
        self.known = known


class Locked(Exception):
    """Another crawl is at work in the directory. `pid` is its process, None if it had no time to write it down."""

    def __init__(self, path: str, pid: int | None) -> None:
        who = "another crawl" if pid is None else f"another crawl (process {pid})"
        super().__init__(f"{who} is at work in {path}")
        self.path = path
        self.pid = pid
