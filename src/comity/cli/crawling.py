"""`comity crawl` and `comity run`: a crawl from the first argument to the closing summary.

The order is the promise. Everything that can be refused (arguments, settings, seeds, an anonymous start) is refused
before anything is made; the directory is made before it is locked; seeds given later are written down only by the one
who holds the lock. Options given when a directory is new become its settings, so that the same crawl goes on when it is
named again; given later they hold for that run, and that is said.

Ctrl-C asks nothing more and lets requests under way end; a second one ends those too; a third ends the programme. All
three lose nothing that was settled. SIGTERM and SIGHUP count as Ctrl-C.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comity.cli import arguments, terminal
from comity.cli.exits import Exit, told
from comity.cli.faults import Trouble, ours
from comity.cli.terminal import tell

if TYPE_CHECKING:
    from comity.assemble import Running
    from comity.config import Settings
    from comity.crawldir import CrawlDir
    from comity.identity import Identity
    from comity.seeds import Seed, Seeds
    from comity.url import CleanUps

CODES = (
    Exit.USAGE,
    Exit.NO_CONTACT,
    Exit.FAILED,
    Exit.CANNOT_WRITE,
    Exit.DISK_FULL,
    Exit.LOCKED,
    Exit.TOO_NEW,
    Exit.INTERRUPTED,
)
CRAWL_END = told(
    (
        "comity crawl -o books --contact you@your.site https://books.example/",
        "comity crawl -o books                      # go on, and visit what is due again",
        "comity crawl --seeds list.txt --scope any --max-pages 1000 -o wide",
        "comity crawl --delay 5 --max-depth 2 https://books.example/new/",
    ),
    *CODES,
)
RUN_END = told(
    (
        "comity run books                           # for ever; Ctrl-C stops it, and nothing is lost",
        "comity run books --until 8h",
        "comity run magazine/comity.toml --json",
    ),
    Exit.NOT_FOUND,
    *CODES,
)


# -- the commands ------------------------------------------------------------------------------------------------------


def crawl(
    urls: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL", help="Where to begin. None: go on with the crawl in -o DIR.", show_default=False),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            parser=Path,
            metavar="DIR",
            help="The crawl's directory, made if it is not there. Unless given: crawl-HOST, by the first URL.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        list[str] | None,
        typer.Option(
            "--seeds",
            metavar="FILE|-",
            help="A file of URLs, one a line, metadata after a tab; - is standard input. May be given again.",
            show_default=False,
        ),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            parser=arguments.mode,
            metavar="host|domain|any",
            help="Stay on the seeds' hosts, within their domains (the default), or follow every link.",
            show_default=False,
        ),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(
            parser=arguments.seconds,
            metavar="S",
            help="From one request to a host to the next (1 unless given), where its robots.txt names no other.",
            show_default=False,
        ),
    ] = None,
    max_pages: Annotated[
        int | None,
        typer.Option(
            parser=arguments.positive, metavar="N", help="Fetch at most N pages in a run.", show_default=False
        ),
    ] = None,
    max_depth: Annotated[
        int | None,
        typer.Option(
            parser=arguments.natural, metavar="N", help="Follow at most N links from a seed.", show_default=False
        ),
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(
            parser=arguments.seconds,
            metavar="S",
            help="Wait so long (1m unless given) for what is held or due later; leave the rest for another run.",
            show_default=False,
        ),
    ] = None,
    contact: arguments.Contact = None,
    allow_private: arguments.AllowPrivate = False,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Crawl from some URLs until every page found was visited once.

    Politely: robots.txt first, one request at a time and one a second for each host, with your contact in each. The
    directory keeps everything; the same command goes on where it was, and visits again what is due.

    Options given for a new directory are written into its comity.toml. Given for one that is there, they win over it
    for this run only.
    """
    given = _given(urls or [], seeds or [])
    if directory is None and not given.seeds:
        raise Trouble(
            Exit.USAGE, "there is nothing to crawl: give a URL, --seeds FILE, or -o DIR of a crawl that is there"
        )
    from comity.assemble import flag_settings

    flags = flag_settings(scope, delay, max_depth, patience, allow_private)
    flags |= {"engine.max_pages": max_pages} if max_pages is not None else {}
    _finish(_work(_order(directory, given, flags, contact), quiet=quiet, as_json=as_json))


def run(
    where: Annotated[
        Path,
        typer.Argument(parser=Path, metavar="DIR|FILE.toml", help="A crawl's directory, or its file of settings."),
    ],
    until: Annotated[
        float | None,
        typer.Option(
            parser=arguments.seconds,
            metavar="DURATION",
            help='Stop after this long: seconds, or "90s", "8h", "7d". Unless given: never.',
            show_default=False,
        ),
    ] = None,
    contact: arguments.Contact = None,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Crawl for ever: visit what is found, and visit it again when its schedule says so.

    Stop it with Ctrl-C or SIGTERM; run it again and it goes on. `comity init` or `comity crawl` makes the directory.
    """
    from msgspec.structs import replace as changed

    from comity.cli import asking, places

    place = places.find(where)
    place.directory.check()
    stored = places.stored_seeds(place)
    _remark(stored)
    settings = changed(place.settings, engine=changed(place.settings.engine, max_pages=None))  # an option of `crawl`
    _seeded(place.directory, stored.seeds)
    who = asking.identity(settings, contact, local=stored.local)
    _in_reach(settings, stored.seeds)
    _in_reach(settings, stored.seeds)
    named = None if place.config == place.directory.config else place.config
    order = Order(place.directory, settings, who, stored.seeds, once=False, until_s=until, named=named)
    _finish(_work(order, quiet=quiet, as_json=as_json))


REFUSED_TOLD = 5


# -- what is to be done ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Order:
    """A crawl that has been agreed to; nothing is made or changed yet, but for a new directory."""

    directory: CrawlDir
    settings: Settings
    identity: Identity
    seeds: tuple[Seed, ...]
    once: bool = True
    until_s: float | None = None
    named: Path | None = None  # what a person calls the crawl by, unless it is the directory
    later: tuple[Seed, ...] = ()  # to be written down beside those that are known


def _given(urls: Sequence[str], files: Sequence[str]) -> Seeds:
    """The seeds of the command line. A line that cannot be read is told and costs no other; none that can is an
    error."""
    from comity import seeds

    found = seeds.read(urls, files, stdin=sys.stdin.buffer if "-" in files else None)
    _remark(found)
    if found.problems and not found.seeds:
        raise Trouble(Exit.USAGE, "none of the seeds can be crawled")
    return found


def _remark(found: Seeds) -> None:
    for remark in (*found.problems, *found.notes):
        tell(str(remark))


def _order(directory: Path | None, given: Seeds, flags: dict[str, object], contact: str | None) -> Order:
    from comity import crawldir
    from comity.cli import asking, places
    from comity.config import defaults, dumps_commented, override, policies

    root = directory or places.default_directory(given.seeds[0])
    if crawldir.is_crawl(root):
        place = places.find(root)
        place.directory.check()
        settings = override(place.settings, flags)
        stored = places.stored_seeds(place)
        _remark(stored)
        seeds = places.together(stored.seeds, _keyed(given.seeds, policies.clean_ups(settings)))
        _seeded(place.directory, seeds)
        who = asking.identity(settings, contact, local=_local(seeds))
        _in_reach(settings, seeds)
        if now := [*flags, *(["identity.contact"] if contact is not None else [])]:
            tell(f"{root} keeps its settings: {', '.join(now)} as given for this run only")
        return Order(place.directory, settings, who, seeds, later=seeds[len(stored.seeds) :])
    if not given.seeds:
        raise Trouble(
            Exit.USAGE, f"{root} is no crawl yet, and there is nothing to begin with: give a URL or --seeds FILE"
        )
    settings = override(defaults(), flags)
    who = asking.identity(settings, contact, local=_local(given.seeds))
    _in_reach(settings, given.seeds)
    if contact is not None:
        settings = override(settings, {"identity.contact": who.contact})
    try:
        made = crawldir.create(
            root, dumps_commented(settings), "".join(f"{line}\n" for line in places.lines(given.seeds))
        )
    except crawldir.NotACrawl as error:
        raise Trouble(Exit.CANNOT_WRITE, str(error)) from error
    return Order(made, settings, who, given.seeds)


def _seeded(directory: CrawlDir, seeds: Sequence[Seed]) -> None:
    if not seeds:
        raise Trouble(Exit.USAGE, f"{directory.root} has no seeds to begin with: write some into {directory.seeds}")


def _in_reach(settings: Settings, seeds: Sequence[Seed]) -> None:
    """A seed that may not be asked whatever anybody answers is told now; if that is all of them, nothing starts."""
    from comity.config import policies

    refused = policies.out_of_reach(settings, [seed.url for seed in seeds])
    if refused and len(refused) == len(seeds):
        raise Trouble(Exit.USAGE, policies.nothing_in_reach(refused))
    for url, problem in refused[:REFUSED_TOLD]:
        tell(f"{url.href} will not be asked: {problem}")
    if len(refused) > REFUSED_TOLD:
        tell(f"and {len(refused) - REFUSED_TOLD} seeds more")


def _keyed(seeds: Sequence[Seed], clean: CleanUps) -> list[Seed]:
    """The seeds, compared as this crawl compares URLs."""
    from comity.url import parse

    return [replace(seed, url=parse(seed.url.href, clean)) for seed in seeds]


def _local(seeds: Sequence[Seed]) -> bool:
    from comity.seeds import Seeds

    return Seeds(tuple(seeds)).local


# -- doing it ----------------------------------------------------------------------------------------------------------


def _finish(work: Coroutine[Any, Any, Exit]) -> None:
    import uvloop

    code = uvloop.run(work)
    if code is not Exit.OK:
        raise typer.Exit(code)


async def _work(order: Order, *, quiet: bool, as_json: bool) -> Exit:
    from comity import seeds
    from comity.assemble import open_crawl
    from comity.cli import places, summary
    from comity.cli.progress import Progress, manner

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_unheard)
    running = await open_crawl(
        order.settings,
        directory=order.directory,
        identity=order.identity,
        seeds=order.seeds,
        once=order.once,
        until_s=order.until_s,
    )
    failure: Exception | None = None
    try:
        if order.later:
            seeds.append(order.directory.seeds, places.lines(order.later))
        _introduce(order, quiet=quiet or as_json)
        async with Progress(running, manner(quiet=quiet or as_json), order.directory.root.resolve().name) as progress:
            with Interrupts(running, progress.tell).listening(loop) as interrupts:
                try:
                    await running.run()
                except Exception as error:
                    failure = error
        with contextlib.suppress(*(() if failure is None else (Exception,))):  # the first failure is the one to tell
            said = await summary.of(running, named=order.named, failed=failure is not None)
            if as_json:
                terminal.data(said.as_dict())
            else:
                terminal.show(summary.lines(said))
    finally:
        try:
            await running.close()
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return Exit.INTERRUPTED if interrupts.heard else Exit.OK


def _introduce(order: Order, *, quiet: bool) -> None:
    for name, host in order.settings.hosts.items():
        if host.robots == "ignore":
            tell(f'{name}: robots.txt is neither asked for nor obeyed (hosts."{name}".robots = "ignore")')
    if not quiet:
        tell(f"crawling into {order.directory.root} as {order.identity.user_agent}")


class Interrupts:
    """What signals do: the first drains, the second halts, the third is the system's own again."""

    def __init__(self, running: Running, tell: Callable[[str], None]) -> None:
        self.heard = 0
        self._running = running
        self._tell = tell

    @contextlib.contextmanager
    def listening(self, loop: asyncio.AbstractEventLoop) -> Iterator[Interrupts]:
        """For as long as the block lasts. A hang-up that was to be ignored (nohup) still is."""
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        if threading.current_thread() is not threading.main_thread():
            numbers = []  # only a main thread hears signals

        def hear() -> None:
            self.heard += 1
            if self.heard == 1:
                self._running.stop("interrupted")
                self._tell("stopping: requests under way end first (Ctrl-C again stops at once; nothing is lost)")
            else:
                self._running.halt()
                for number in numbers:
                    loop.remove_signal_handler(number)

        for number in numbers:
            loop.add_signal_handler(number, hear)
        try:
            yield self
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def _unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An error that nobody waited for: one line of ours, not pages of the library's."""
    error = context.get("exception")
    tell(ours(error) if error is not None else f"a fault of ours: {context.get('message')}")
