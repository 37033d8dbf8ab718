"""Write the pages that say again what the code says.

Owns the list of generated pages. Each is a pure function of the code, so `tests/test_docs.py` can compare what is
committed with what would be written, and nobody has to remember to run this: a test says so. ``make docs`` runs it.

It refuses to hold a fact of its own: what a page says is written where it is true.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from pathlib import Path

import typer.main
from typer.testing import CliRunner

from comity import config, lifecycle
from comity.cli import app
from comity.model import Status
from comity.outputs import crawllog, rows

DOCS = Path(__file__).parent


def outputs() -> str:
    """The page as it is, with its tables written anew."""
    page = (DOCS / "outputs.md").read_text(encoding="utf-8")
    for name, columns, second in (
        ("row", rows.COLUMNS, "type"),
        ("deletion", rows.DELETION_COLUMNS, "type"),
        ("crawl log", crawllog.COLUMNS, "in"),
    ):
        before, mark, rest = page.partition(f"<!-- table: {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        page = before + mark + rows.table(columns, second) + end + after
    return page


def life() -> str:
    """The table of transitions, and the same as a diagram."""
    lines = [
        "# The life of a URL",
        "",
        "Generated from `src/comity/lifecycle.py#TRANSITIONS` (`make docs`). The first row that applies",
        "is the one. Which event an answer counts as, and how long the waits are, is the profile's to",
        "say: [configuration.md](configuration.md).",
        "",
        "| before | event | only if | status | cause | next visit | errors in a row | document |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in lifecycle.TRANSITIONS:
        cause = row.cause if isinstance(row.cause, str) else row.cause.word if row.cause else "none"
        cells = (
            row.before.name if row.before is not None else "any",
            row.event.value,
            row.condition.value if row.condition else "",
            row.status.name if row.status is not None else "as it was",
            "as it was" if row.status is None else "the refusal's" if cause == "refusal" else cause,
            row.rule.value,
            row.errors.value,
            "deleted" if row.deletes else "",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "```mermaid", "stateDiagram-v2", *_arrows(), "```", ""])


def _arrows() -> Iterator[str]:
    """One arrow a pair of statuses and a label; a row for any status is drawn once, from a crossroads."""
    yield "    state any <<choice>>"
    yield "    [*] --> DISCOVERED"
    yield from (f"    {status.name} --> any: visited" for status in Status)
    for row in lifecycle.TRANSITIONS:
        if row.status is not None:
            start = row.before.name if row.before is not None else "any"
            label = row.event.value + (f" ({row.condition.name.lower().replace('_', ' ')})" if row.condition else "")
            yield f"    {start} --> {row.status.name}: {label.replace(':', ',')}"


def setter() -> str:
    """The library that sets the help's lines; another release of it may break them elsewhere."""
    return "typer " + ".".join(importlib.metadata.version("typer").split(".")[:2])


def commands() -> str:
    """What `--help` says, of every command."""
    lines = ["# Commands", "", f"Generated from the commands' own `--help` (`make docs`), set by {setter()}.", ""]
    for name in ("", *typer.main.get_group(app).commands):
        said = CliRunner().invoke(app, [*name.split(), "--help"], prog_name="comity", terminal_width=100)
        lines += [f"## comity {name}".rstrip(), "", "```text", said.output.strip(), "```", ""]
    return "\n".join(lines)


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "configuration.md": config.reference,
    "life-of-a-url.md": life,
    "outputs.md": outputs,
}

if __name__ == "__main__":
    for name, text in PAGES.items():
        (DOCS / name).write_text(text(), encoding="utf-8")
