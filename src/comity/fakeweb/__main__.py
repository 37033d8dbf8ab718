"""``python -m comity.fakeweb``: serve a seeded web, or one of the scenes, until told to stop; or judge a log.

Prints the seeds, one a line, then an empty line, and is ready. SIGTERM or SIGINT ends it. It is the same web that the
demo and the tests use, made reachable for a crawler in another process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from comity.fakeweb import fixtures, seeded
from comity.fakeweb.judge import judge
from comity.fakeweb.log import read
from comity.fakeweb.running import open_web
from comity.fakeweb.site import Site

Scene = tuple[Callable[[int], list[Site]], Callable[[int], list[str]]]


def scene(options: argparse.Namespace) -> Scene:
    """The sites and the seeds, both as functions of the port."""
    match options.scene:
        case "topology":
            return lambda port: [fixtures.topology()], lambda port: [f"http://{fixtures.TOPOLOGY_HOST}:{port}/"]
        case "conditional":
            host = fixtures.CONDITIONAL_HOST
            paths = fixtures.page_paths()
            return lambda port: [fixtures.conditional()], lambda port: [f"http://{host}:{port}{path}" for path in paths]
        case "listed":
            return lambda port: [fixtures.listed(port)], lambda port: [f"http://{fixtures.LISTED_HOST}:{port}/"]
    plan = seeded.Plan(
        hosts=options.hosts,
        pages=options.pages,
        seed=options.seed,
        links=options.links,
        cross=options.cross,
        size_bytes=options.size,
        crawl_delay_s=options.delay,
        with_sitemap=options.sitemap,
        latency_s=options.latency,
        missing=options.missing,
        moved=options.moved,
        flaky=options.flaky,
    )
    return lambda port: seeded.sites(plan, port), lambda port: seeded.seeds(plan, port)


async def serve(options: argparse.Namespace) -> None:
    sites, seeds = scene(options)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    web = await open_web(sites, log_path=options.log, port=options.port)
    names = seeds(web.port)
    if options.seeds:
        Path(options.seeds).write_text("".join(f"{name}\n" for name in names))  # noqa: ASYNC240  (before serving)
    sys.stdout.write("".join(f"{name}\n" for name in names) + "\n")
    sys.stdout.flush()
    await stop.wait()
    await web.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m comity.fakeweb", description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--judge", metavar="LOG", help="judge this log, print JSON, and end (--delay S: owed where robots names none)")
    add("--scene", choices=["seeded", "topology", "conditional", "listed"], default="seeded")
    add("--hosts", type=int, default=10)
    add("--pages", type=int, default=20, help="a host")
    add("--seed", type=int, default=1)
    add("--links", type=int, default=8, help="further links to the own host, a page")
    add("--cross", type=int, default=2, help="links to other hosts, a page")
    add("--size", type=int, default=None, metavar="BYTES", help="exact size of every page")
    add("--delay", type=float, default=None, metavar="S", help="Crawl-delay in robots.txt")
    add("--latency", type=float, default=0.0, metavar="S", help="before every page")
    add("--missing", type=float, default=0.0, metavar="SHARE", help="of pages that answer 404")
    add("--moved", type=float, default=0.0, metavar="SHARE", help="of pages that answer 301")
    add("--flaky", type=float, default=0.0, metavar="SHARE", help="of pages that first answer 503")
    add("--sitemap", action="store_true", help="robots.txt names a sitemap of all pages")
    add("--log", metavar="FILE", help="one JSON line a request")
    add("--seeds", metavar="FILE", help="write the seeds there too")
    add("--port", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.judge:
        sys.stdout.write(
            json.dumps(judge(*read(options.judge), delay_s=options.delay or 0.0).as_dict(), indent=1) + "\n"
        )
        return 0
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(serve(options))
    except OSError as error:  # a port that somebody has, a log that cannot be written
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
