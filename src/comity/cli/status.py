"""`comity status`: how a crawl stands, beside the crawl itself if one is at work.

Counts come from the frontier's counters, which are kept at every settle: looking costs the same for a thousand URLs and
for a hundred million. Nothing is locked and nothing is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from comity import __version__
from comity.cli import arguments, summary, terminal
from comity.cli.exits import Exit, told
from comity.cli.terminal import facts, plain, size

if TYPE_CHECKING:
    from comity.cli.places import Place
    from comity.crawldir import Versions
    from comity.model import Stats

END = told(
    ("comity status books", "comity status books --json"),
    Exit.USAGE,
    Exit.NOT_FOUND,
    Exit.FAILED,
    Exit.TOO_NEW,
)


@dataclass(frozen=True)
class Standing:
    """`process`: the crawl at work here; 0 if it has not said which; None if there is none."""

    directory: Path
    process: int | None
    stats: Stats | None  # None: it has not begun
    sizes: dict[str, int]  # bytes, by path in the directory
    versions: Versions


def status(where: arguments.Crawl, as_json: arguments.Json = False) -> None:
    """Show how a crawl stands: its URLs by status, cause and failure, what is due next, what is held, and its files."""
    from comity.cli import places

    standing = asyncio.run(look(places.find(where)))
    if as_json:
        terminal.data(as_dict(standing))
    else:
        terminal.show(lines(standing))


async def look(place: Place) -> Standing:
    """Raises what the frontier raises."""
    from comity.cli import places
    from comity.clock import SystemClock
    from comity.frontier.ledger import SqliteLedger
    from comity.frontier.lock import holder

    stats = None
    if (path := places.frontier_of(place)) is not None:
        ledger = await SqliteLedger.open(path, clock=SystemClock())
        try:
            stats = await ledger.stats()
        finally:
            await ledger.close()
    root = place.directory.root
    return Standing(root, holder(root), stats, _sizes(root), place.directory.versions())


def _sizes(root: Path) -> dict[str, int]:
    sizes = {}
    for path in sorted(root.rglob("*")):
        try:
            if path.is_file():
                sizes[path.relative_to(root).as_posix()] = path.stat().st_size
        except FileNotFoundError:  # the store's side files come and go
            continue
    return sizes


def as_dict(standing: Standing) -> dict[str, Any]:
    versions = standing.versions
    return {
        "directory": str(standing.directory),
        "running": standing.process is not None,
        "process": standing.process or None,
        "frontier": summary.as_data(standing.stats) if standing.stats is not None else None,
        "bytes": standing.sizes,
        "versions": {
            "comity": __version__,
            "frontier": versions.frontier,
            "rows": versions.rows,
            "log": versions.log,
        },
    }


def lines(standing: Standing) -> Iterator[Text]:
    yield Text(plain(str(standing.directory)), "bold")
    yield from facts(_rows(standing))


def _rows(standing: Standing) -> Iterator[tuple[str, str | Text]]:
    process = standing.process
    yield "crawl", "not at work" if process is None else f"at work (process {process})" if process else "at work"
    stats = standing.stats
    if stats is None:
        yield "known", "nothing: it has not begun"
    else:
        yield from summary.left(stats, _otherwise(stats, process))
        for name, count in stats.by_status.items():
            yield (
                "by status" if name == "DISCOVERED" else "",
                Text.assemble(terminal.status(f"{name:<12}"), f"{count:>12,}"),
            )
        yield from summary.causes(stats.by_cause)
        yield from summary.failures(stats.by_failure)
    for number, (name, bytes_) in enumerate(standing.sizes.items()):
        yield "files" if number == 0 else "", f"{plain(name)}  {size(bytes_)}"
    versions = standing.versions
    known = {"frontier": versions.frontier, "rows": versions.rows, "log": versions.log}
    parts = [f"comity {__version__}", *(f"{name} {number}" for name, number in known.items() if number is not None)]
    yield "versions", ", ".join(parts)


def _otherwise(stats: Stats, process: int | None) -> str:
    """When it goes on, while no host is scheduled that is in nobody's hands. A crawl that was killed held its hosts."""
    if process is not None:
        return "with the hosts that are at work now"
    return summary.AGAIN if stats.urls > stats.by_status.get("ERROR", 0) else summary.NEVER
