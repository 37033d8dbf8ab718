"""`comity demo`: a polite crawl of a made-up web, which explains itself and is judged by its server.

    transitions  the transition log, a sink
    topology     one page of every fate, four virtual days, StormCrawler's table
    polite       two small sites visited day after day, and what each visit cost them
    speed        many hosts at full speed
    show         all of it for people

Nothing here is staged inside the crawler: every scene is a crawl as `comity.assemble` opens it, in a directory of its
own, with one more sink to count what happened. The judgement comes from the servers' logs alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from comity.demo import polite, speed, topology
from comity.demo.polite import Round
from comity.demo.show import show
from comity.demo.speed import ManyHosts
from comity.demo.transitions import Transition
from comity.fakeweb import Judgement, together

__all__ = ["Demo", "ManyHosts", "Round", "Transition", "play", "run", "show"]


@dataclass(frozen=True, slots=True)
class Demo:
    """All that the scenes showed."""

    topology: dict[str, list[Transition]]  # by configuration
    conditional: list[Round]
    sitemap: list[Round]
    many_hosts: ManyHosts
    judgements: Sequence[Judgement]

    @property
    def counts(self) -> dict[str, int]:
        """Forbidden, early, before robots.txt: over all servers."""
        return together(self.judgements)

    @property
    def polite(self) -> bool:
        return not any(self.counts.values())

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints. URLs are paths, minutes count from the scene's start, null is never or nothing."""
        return {
            "topology": {name: [row.as_dict() for row in rows] for name, rows in self.topology.items()},
            "polite": {
                "conditional": [row.as_dict() for row in self.conditional],
                "sitemap": [row.as_dict() for row in self.sitemap],
            },
            "many_hosts": self.many_hosts.as_dict(),
            "judgement": self.counts,
        }


async def play(tell: Callable[[str], None] = lambda what: None) -> Demo:
    """Play every scene. `tell` hears what is being played. About ten seconds, six of them a server's slowness."""
    tell("four days in the life of eight URLs (a page slower than the time limit is tried three times)")
    names = list(topology.CONFIGURATIONS)
    scenes = await asyncio.gather(*(topology.play(name) for name in names))
    tell("a polite visitor comes back")
    conditional, conditional_judgement = await polite.conditional()
    sitemap, sitemap_judgement = await polite.sitemap()
    tell("many hosts at full speed")
    many, many_judgement = await speed.play()
    return Demo(
        topology={name: rows for name, (rows, _) in zip(names, scenes, strict=True)},
        conditional=conditional,
        sitemap=sitemap,
        many_hosts=many,
        judgements=[*(seen for _, seen in scenes), conditional_judgement, sitemap_judgement, many_judgement],
    )


def run(*, as_json: bool = False, console: Console | None = None) -> int:
    """Play, and show on `console` (standard output unless given). Returns the exit code: 0, or 1 if a server has
    anything to hold against us."""
    import uvloop

    console = console or Console()
    notes = Console(stderr=True)
    with notes.status("") as status:
        found = uvloop.run(play(lambda what: status.update(f"[dim]{what}[/dim]")))
    if as_json:
        console.out(json.dumps(found.as_dict(), indent=1), highlight=False)
    else:
        show(found, console)
    return 0 if found.polite else 1
