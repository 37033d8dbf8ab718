"""`comity demo`: the door to `comity.demo`, which plays, shows and judges.

Nothing is decided here: the demo itself says whether its servers were content, and that is the exit code. Its modules
are loaded only when it is asked for, because they bring a web server of their own.
"""

from __future__ import annotations

import typer

from comity.cli import arguments
from comity.cli.exits import Exit, told

END = told(
    ("comity demo", "comity demo --json"),
    Exit.REFUSED,
    Exit.USAGE,
    Exit.FAILED,
    Exit.INTERRUPTED,
    REFUSED="a server has something to hold against the crawl",
    INTERRUPTED="interrupted",
)


def demo(as_json: arguments.Json = False) -> None:
    """Crawl a made-up web on this machine, show what became of every URL, and let the server judge.

    Four days in the life of eight URLs, two polite sites visited day after day, and many hosts at full speed. It needs
    no network and no contact, takes about ten seconds and leaves nothing behind.
    """
    from comity.demo import run

    code = run(as_json=as_json)
    if code:
        raise typer.Exit(code)
