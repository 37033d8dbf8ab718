"""`comity why`: one URL's story, for the person who wonders why it is as it is, and when that will change.

The page is laid out by the questions people ask: what is it, where did it come from, when is it next and who says so,
what does robots.txt say and in which line, what happened before. What is known comes from `telling`, the sentences from
`comity.wording`; this page only puts them in order. A URL that the crawl does not know is told as well: what the scope
and robots.txt would say of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from comity import wording
from comity.cli import terminal, verdicts
from comity.cli.arguments import Json
from comity.cli.exits import Exit, told
from comity.cli.faults import Trouble
from comity.cli.terminal import facts, instant, many, plain, size, span
from comity.model import Access

if TYPE_CHECKING:
    from comity.cli.places import Place
    from comity.cli.telling import Robots, Story
    from comity.model import Entry, PastVisit, RobotsState
    from comity.outputs.crawllog import Event
    from comity.scope import Ruling
    from comity.url import Url

END = told(
    ("comity why https://books.example/new/ -o books", "comity why https://books.example/new/ -o books --json"),
    Exit.USAGE,
    Exit.NOT_FOUND,
    Exit.FAILED,
    Exit.TOO_NEW,
    NOT_FOUND="no such crawl, or it does not know the URL",
)


def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="As it was crawled, or nearly so.", show_default=False)],
    directory: Annotated[
        Path, typer.Option("-o", "--out", parser=Path, metavar="DIR", help="The crawl's directory.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Tell one URL's story: its status in words, its next visit and the rule behind it, what robots.txt says and in
    which line, and its last visits."""
    from comity import seeds
    from comity.cli import places, telling
    from comity.config import policies

    place = places.find(directory)
    found = seeds.read([url], clean=policies.clean_ups(place.settings))
    if found.problems:
        raise Trouble(Exit.USAGE, found.problems[0].text)
    story = asyncio.run(ask(found.seeds[0].url, place))
    if as_json:
        terminal.data(telling.as_dict(story))
    else:
        terminal.show(lines(story))
    if story.entry is None:
        raise typer.Exit(Exit.NOT_FOUND)


async def ask(url: Url, place: Place) -> Story:
    """Raises what the store raises, and `Trouble` before there is one."""
    from comity.cli import places, telling
    from comity.clock import SystemClock
    from comity.frontier.ledger import SqliteLedger

    path = places.frontier_of(place)
    if path is None:
        raise Trouble(Exit.NOT_FOUND, f"the crawl in {place.directory.root} has not begun: nothing is known of any URL")
    ledger = await SqliteLedger.open(path, clock=SystemClock())
    try:
        return await telling.story(url, place, ledger)
    finally:
        await ledger.close()


# -- on a page ---------------------------------------------------------------------------------------------------------


def lines(story: Story) -> Iterator[Text]:
    yield Text(plain(story.entry.url if story.entry is not None else story.url.href), "bold")
    yield from facts(_rows(story))


def _rows(story: Story) -> Iterator[tuple[str, str | Text]]:
    entry = story.entry
    if entry is None:
        yield "status", Text("not known to this crawl", "yellow")
    else:
        yield from _what(entry)
        yield from _found(entry)
        yield from _next(story, entry)
    if entry is None or not story.ruling.keep:
        yield "scope", _scope(story.ruling)
    yield from _host(story)
    yield from _robots(story.robots)
    if entry is not None:
        yield from _visits(story, entry)


def _what(entry: Entry) -> Iterator[tuple[str, str | Text]]:
    names = [entry.cause.word] if entry.cause is not None else []
    names += [entry.failure.value] if entry.failure is not None else []
    yield "status", Text.assemble(terminal.status(entry.status.name), f" ({', '.join(names)})" if names else "")
    yield "", plain(wording.entry(entry))
    for number, (key, values) in enumerate(sorted(entry.metadata.items())):
        yield "metadata" if number == 0 else "", plain(f"{key}={', '.join(values)}")


def _scope(ruling: Ruling) -> str:
    return (
        "it would be kept" if ruling.keep else f"refused by {plain(ruling.rule)}: {plain(wording.refusal(ruling.rule))}"
    )


def _found(entry: Entry) -> Iterator[tuple[str, str]]:
    kinds = [kind for kind, is_one in (("a sitemap", entry.is_sitemap), ("a feed", entry.is_feed)) if is_one]
    where = "as a seed" if entry.via is None else f"through {plain(entry.via)}"
    deep = f"{many(entry.depth, 'link')} from a seed" if entry.depth else ""
    hops = f"{many(entry.hops, 'redirect')} in a row" if entry.hops else ""
    aside = ", ".join(part for part in (*kinds, deep, hops) if part)
    yield "found", f"{instant(entry.discovered_at)} {where}" + (f" ({aside})" if aside else "")


def _next(story: Story, entry: Entry) -> Iterator[tuple[str, str]]:
    at = story.ready_at
    yield "next", "never by itself" if at is None else instant(at)
    yield "", plain(f"{entry.next_rule}: {wording.rule(entry.next_rule)}" if entry.next_rule else wording.rule(None))
    if story.held and story.state is not None:
        held = f"its host may not be asked before {instant(story.state.not_before_at)}"
        yield "", f"{held}: {plain(story.state.hold_reason or 'held by another worker, or resting')}"


def _host(story: Story) -> Iterator[tuple[str, str]]:
    from comity import politeness
    from comity.model import HostState

    state = story.state or HostState()
    delay_s = politeness.delay_s(state, story.policy)
    line = story.robots.rules.delay_line if story.robots.rules is not None else None
    if state.wanted_s is not None and delay_s == state.wanted_s:
        by = f"as its robots.txt says, line {line}" if line is not None else "as its robots.txt says"
    elif state.widened_s and delay_s == state.widened_s:
        by = "more slowly than usual, since it asked for that by its answers"
    else:
        by = "as the settings say"
    pace = f"a request every {span(delay_s)}" if delay_s else "no pause between requests"
    yield "host", f"{plain(story.host)}: {pace}, {by}"
    if politeness.too_long(state, story.policy):
        yield (
            "",
            f"that is more than politeness.crawl_delay_limit_s ({span(story.policy.crawl_delay_limit_s)}): refused",
        )


def _robots(said: Robots) -> Iterator[tuple[str, str | Text]]:
    state = said.state
    if not said.obeyed:
        yield "robots", f'{plain(said.url)} is neither asked for nor obeyed: hosts."…".robots = "ignore"'
    elif state is None:
        yield "robots", f"{plain(said.url)}: not asked for yet"
    else:
        yield "robots", plain(said.url)
        yield from (("", line) for line in _copy(said, state))
        if said.verdict is not None:
            yield "", verdicts.sentence(said.verdict)
    if said.then is not None:
        yield "", verdicts.sentence(said.then, "at the last visit: ")


def _copy(said: Robots, state: RobotsState) -> Iterator[str]:
    """What was had, and when."""
    got = f"HTTP {state.http_status}" if state.http_status is not None else "no answer"
    if state.access is Access.RULES and state.fetched_at is not None:
        yield f"our copy is of {instant(state.fetched_at)} and speaks until {instant(state.expires_at)}"
        return
    asked = f"asked for at {instant(state.asked_at)}: {got}" if state.asked_at is not None else got
    why = f", {wording.failure(state.failure, state.http_status)}" if state.failure is not None else ""
    yield f"{asked}{why}; {verdicts.ACCESS[state.access]}"
    if said.rules is not None and state.fetched_at is not None:
        yield f"meanwhile our last good copy speaks, of {instant(state.fetched_at)}"
    yield f"asked for again from {instant(state.expires_at)}"


def _visits(story: Story, entry: Entry) -> Iterator[tuple[str, str | Text]]:
    logged = {event["at"]: event for event in story.events if event["event"] == "visit"}
    for number, past in enumerate(reversed(entry.history)):
        yield (
            "visits" if number == 0 else "",
            Text.assemble(
                f"{instant(past.at)}  ",
                terminal.status(f"{past.status.name:<11}"),
                f"  {_gave(past, logged.get(past.at, {}))}",
            ),
        )
    if not entry.history:
        yield "visits", "none yet"


def _gave(past: PastVisit, event: Event) -> str:
    """What a visit gave, as far as the history knows, and the log."""
    received = f", {size(event['bytes'])}" if event.get("bytes") else ""
    return plain(wording.past(past)) + received
