"""`comity init`: a directory whose settings are to be edited before anything is crawled.

The file holds every option with its meaning and default, as comments: `comity.config` writes it from the options
themselves. Nothing that is there is ever overwritten.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from comity.cli.exits import Exit, told
from comity.cli.faults import Trouble

END = told(
    (
        "comity init magazine",
        "comity run magazine                         # once its seeds.txt and comity.toml are right",
    ),
    Exit.USAGE,
    Exit.CANNOT_WRITE,
    CANNOT_WRITE="the directory cannot be written, is a crawl already, or holds other things",
)
SEEDS = "# One URL a line; your own metadata may follow, each after a tab: key=value\n"


def init(
    directory: Annotated[
        Path, typer.Argument(parser=Path, metavar="DIR", help="Made if it is not there.", show_default=False)
    ],
) -> None:
    """Make a directory for a crawl: a comity.toml with every option explained, and a seeds.txt to fill."""
    from comity import crawldir
    from comity.cli import terminal
    from comity.config import defaults, dumps_commented

    if crawldir.is_crawl(directory):
        raise Trouble(Exit.CANNOT_WRITE, f"{directory} is a crawl already: nothing was changed")
    try:
        made = crawldir.create(directory, dumps_commented(defaults()), SEEDS)
    except crawldir.NotACrawl as error:
        raise Trouble(Exit.CANNOT_WRITE, str(error)) from error
    terminal.show(
        [
            f"{made.config}: every option, with its meaning and default",
            f"{made.seeds}: write here where to begin, one URL a line",
            f"then: comity crawl -o {directory} (once), or comity run {directory} (for ever)",
        ]
    )
