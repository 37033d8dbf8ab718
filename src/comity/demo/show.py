"""The demo for people: what each scene showed, and the verdict in one line.

It formats and nothing else: every figure was counted by a sink or by a server. Eighty columns without colour must be
enough to read all of it, since a demo is also what people paste into a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from comity.demo.polite import Round
from comity.demo.transitions import Transition

if TYPE_CHECKING:
    from comity.demo import Demo

STATUS_COLOURS = {
    "DISCOVERED": "cyan",
    "FETCHED": "green",
    "REDIRECTION": "blue",
    "FETCH_ERROR": "yellow",
    "ERROR": "red",
}


def show(demo: Demo, console: Console) -> None:
    """Print all of it."""
    _heading(console, "Life of eight URLs", "by StormCrawler's schedule; a virtual day has 1440 minutes")
    _transitions(demo.topology["default"], "metadata as configured by default", console)
    _transitions(demo.topology["b"], "metadata: nguon is handed on, dates and exceptions are kept", console)
    _heading(console, "A polite visitor comes back", "one crawl a day; pages of 3,035 bytes")
    console.print(_rounds(demo.conditional, "pages with validators, two of which change before the third round"))
    console.print(_rounds(demo.sitemap, "pages from a sitemap that also lists /private/admin; Crawl-delay: 1"))
    _heading(console, "Many hosts at full speed", "all kept on disk; the sites are in this process too")
    found = demo.many_hosts
    console.print(
        f"\n{found.pages:,} pages of {found.hosts} hosts in {found.seconds:.2f} s: "
        f"[bold]{found.pages_per_s:,.0f} pages a second[/bold]"
    )
    _heading(console, "What the servers saw", "judged from their own logs, by plain prefixes")
    _judgement(demo, console)


def _heading(console: Console, title: str, what: str) -> None:
    console.print()
    console.print(f"[bold]{title}[/bold]  [dim]{what}[/dim]")


def _table(title: str, *columns: str) -> Table:
    """Columns whose name begins with # hold numbers."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="italic", pad_edge=False)
    for column in columns:
        table.add_column(
            column.removeprefix("#"), justify="right" if column.startswith("#") else "left", overflow="fold"
        )
    return table


def _transitions(rows: Sequence[Transition], title: str, console: Console) -> None:
    """Two lines a row, so that eighty columns are enough."""
    console.print(f"\n[italic]{title}[/italic]")
    console.print(f"[bold]minute  {'URL':10}{'old → new':27}{'next visit':>10}  cause[/bold]", highlight=False)
    for row in rows:
        old = row.old or "·"
        change = f"{_coloured(old)} → {_coloured(row.new)}" + " " * max(0, 24 - len(old) - len(row.new))
        later = "never" if row.next_min is None else f"+{row.next_min - row.at_min}"
        console.print(f"{row.at_min:6}  {row.url:10}{change}{later:>10}  {row.cause or ''}", highlight=False)
        kept = " ".join(f"{key}={_values(values)}" for key, values in row.kept.items())
        facts = [f"kept {kept}"] if kept else []
        facts += [f"dropped {' '.join(row.dropped)}"] if row.dropped else []
        if facts:
            console.print(Padding(f"[dim]{', '.join(facts)}[/dim]", (0, 0, 0, 8), expand=False), highlight=False)


def _coloured(status: str) -> str:
    return f"[{STATUS_COLOURS.get(status, 'dim')}]{status}[/]"


def _values(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


def _rounds(rows: Sequence[Round], title: str) -> Table:
    table = _table(title, "#round", "#new", "#304", "#errors", "#bytes", "#first to last", "refused", "#asked")
    for number, row in enumerate(rows, start=1):
        table.add_row(
            str(number),
            str(row.new),
            str(row.not_modified),
            str(row.errors),
            f"{row.bytes:,}",
            f"{row.span_s:.1f} s",
            " ".join(row.refused),
            str(row.private_requests),
        )
    return table


def _judgement(demo: Demo, console: Console) -> None:
    table = _table("", "#requests", "#forbidden", "#early", "#before robots.txt")
    table.add_row(f"{sum(each.requests for each in demo.judgements):,}", *map(str, demo.counts.values()))
    console.print(table)
    for judgement in demo.judgements:
        for breach in judgement.breaches[:10]:
            console.print(f"[red]{breach}[/red]", highlight=False)
    if demo.polite:
        console.print("[bold green]Polite: nothing forbidden was asked for, and nothing before its time.[/bold green]")
    else:
        console.print("[bold red]Not polite.[/bold red]")
