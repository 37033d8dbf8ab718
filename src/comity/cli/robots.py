"""`comity robots`: what sites allow, before anything else is asked of them.

Each origin's robots.txt is obtained as a crawl would obtain it: by the same wrapper, at the same pace, under the same
name and with the same guard against private addresses. `--agent` asks what the file says to *another* crawler; the
request still carries our own name, for to ask under another's would be to pretend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from comity import wording
from comity.cli import arguments, terminal, verdicts
from comity.cli.exits import Exit, told
from comity.cli.faults import Trouble
from comity.cli.terminal import facts, instant, plain, span, tell
from comity.model import Access

if TYPE_CHECKING:
    from comity.assemble import RobotsAnswer

END = told(
    (
        "comity robots https://books.example/new/ https://books.example/admin/",
        "comity robots --agent Googlebot --json https://books.example/",
        "comity robots --allow-private http://localhost:8000/",
    ),
    Exit.REFUSED,
    Exit.USAGE,
    Exit.NO_CONTACT,
    Exit.FAILED,
    Exit.INTERRUPTED,
    OK="every URL may be fetched",
    REFUSED="at least one may not, or not now",
    INTERRUPTED="interrupted",
)


def robots(
    urls: Annotated[list[str], typer.Argument(metavar="URL", help="What you would like to fetch.", show_default=False)],
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="Judge for this product token instead of comity's. The request itself still says who we are.",
            show_default=False,
        ),
    ] = None,
    contact: arguments.Contact = None,
    allow_private: arguments.AllowPrivate = False,
    as_json: arguments.Json = False,
) -> None:
    """Show what robots.txt says of some URLs: the verdict, the delay and the sitemaps, each with its line."""
    from comity import seeds as seeding
    from comity.assemble import ask_robots, flag_settings
    from comity.cli import asking
    from comity.config import defaults, override, policies
    from comity.robots import product_token_problem

    found = seeding.read(urls)
    for remark in (*found.problems, *found.notes):
        tell(str(remark))
    if found.problems:
        raise Trouble(Exit.USAGE, "not every URL can be read, so none was asked for")
    if agent is not None and (problem := product_token_problem(agent)):
        raise Trouble(Exit.USAGE, f"--agent {agent!r} is no product token: {problem}")
    settings = override(defaults(), flag_settings(allow_private=allow_private))
    who = asking.identity(settings, contact, local=found.local)
    if agent is not None:
        who = replace(who, token=agent)
    if refused := policies.out_of_reach(settings, [seed.url for seed in found.seeds]):
        tell(policies.nothing_in_reach(refused))
    answers = asyncio.run(ask_robots(settings, who, [seed.url for seed in found.seeds]))
    if as_json:
        terminal.data([as_dict(answer, who.token) for answer in answers])
    else:
        for number, answer in enumerate(answers):
            terminal.show([*([""] if number else []), *lines(answer)])
    if not all(answer.verdict is not None and answer.verdict.allowed for answer in answers):
        raise typer.Exit(Exit.REFUSED)


def as_dict(answer: RobotsAnswer, token: str) -> dict[str, Any]:
    verdict, rules = answer.verdict, answer.rules
    return {
        "url": answer.url.href,
        "token": token,
        "allowed": verdict is not None and verdict.allowed,
        "access": answer.access.value,
        "group": verdict.group if verdict is not None else None,
        "line": verdict.line if verdict is not None else None,
        "rule": verdict.rule if verdict is not None else None,
        "delay_s": answer.delay_s,
        "delay_line": rules.delay_line if rules is not None else None,
        "sitemaps": [{"url": url, "line": line} for url, line in rules.sitemaps] if rules is not None else [],
        "robots_url": answer.robots_url,
        "http_status": answer.http_status,
        "failure": answer.failure,
        "expires_at": answer.expires_at,
    }


def lines(answer: RobotsAnswer) -> Iterator[Text]:
    yield Text(plain(answer.url.href), "bold")
    yield from facts(_rows(answer))


def _rows(answer: RobotsAnswer) -> Iterator[tuple[str, str | Text]]:
    verdict, rules = answer.verdict, answer.rules
    if verdict is None:
        yield "verdict", Text(f"may not be fetched now: {verdicts.ACCESS[answer.access]}", "yellow")
    else:
        yield "verdict", verdicts.sentence(verdict)
    got = f"HTTP {answer.http_status}" if answer.http_status is not None else "no answer"
    if answer.failure is not None:
        got += f", {wording.failure(answer.failure, answer.http_status)}"
    again = "to be asked for again from" if answer.access is Access.UNREACHABLE else "good until"
    yield "robots", f"{plain(answer.robots_url)}: {got}; {again} {instant(answer.expires_at)}"
    named = rules is not None and rules.wanted_s == answer.delay_s
    by = f"line {rules.delay_line}" if named and rules is not None else "as the settings say"
    yield "delay", f"a request every {span(answer.delay_s)}, {by}"
    for number, (url, line) in enumerate(rules.sitemaps if rules is not None else ()):
        yield "sitemaps" if number == 0 else "", f"{plain(url)} (line {line})"
