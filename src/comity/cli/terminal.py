"""What people and programmes read from us: two streams, and the forms of instants, spans, sizes and counts.

Results go to standard output; remarks, progress and errors to standard error, a line each that begins with ``comity:``.
Instants are UTC to the second, so that output is the same wherever and whenever it is made.

Invariant: nothing that came from the web reaches a terminal as it is. Characters that do not print (controls, escape
sequences, changes of direction, halves of surrogate pairs) are shown as escapes, and no markup is ever read in a text:
styles are given beside it. As JSON everything is ASCII.

Refuses to know what is being told.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from comity.model import Status

STATUS_STYLES = {
    Status.DISCOVERED.name: "cyan",
    Status.FETCHED.name: "green",
    Status.REDIRECTION.name: "blue",
    Status.FETCH_ERROR.name: "yellow",
    Status.ERROR.name: "red",
}
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


# -- streams -----------------------------------------------------------------------------------------------------------


def out() -> Console:
    """Standard output, as it is now. Colours on a terminal only, and not with NO_COLOR."""
    return Console(file=sys.stdout, markup=False, emoji=False, highlight=False, soft_wrap=True)


def err() -> Console:
    return Console(file=sys.stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def show(lines: Iterable[Text | str]) -> None:
    console = out()
    for line in lines:
        console.print(line)


def data(value: Any) -> None:
    """One JSON value, for programmes."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
    sys.stdout.flush()


def tell(text: str) -> None:
    """A remark or an error, in one line. Where nobody can hear (a log on a full disk, a pipe that was left) it is
    lost, and costs no crawl."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"comity: {plain(text)}\n")
        sys.stderr.flush()


def speak_anyhow() -> None:
    """A stream that cannot say a character says it as an escape, in whatever language the machine is set up."""
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")


def open_closed() -> None:
    """A stream that whoever started us has closed (``>&-``, some daemons) leads nowhere. Left closed, its number would
    be that of the next file opened, into which remarks would be written, and the event loop refuses to start so."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
            if getattr(sys, name) is None:
                setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def let_go() -> None:
    """The interpreter's own last flush must not complain of a remark that could not be written."""
    try:
        sys.stderr.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


# -- forms -------------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Others' text, safe for a terminal and in one line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def status(name: str) -> Text:
    return Text(name, STATUS_STYLES.get(name, ""))


def instant(at: float) -> str:
    """``2026-01-31T08:00:00Z``"""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{at:g} s after 1970-01-01"


def span(seconds: float) -> str:
    """A duration in its two greatest units: ``0.8 s``, ``12 s``, ``5 min 30 s``, ``2 h``, ``3 d 4 h``."""
    if seconds < 10:
        return f"{seconds:.3g} s"
    if seconds >= 1e12:  # thirty thousand years: nobody means that, and its digits fill the screen
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for unit_s, unit, part_s, part in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit_s:
            count, rest = divmod(whole, unit_s)
            return f"{count} {unit}" + (f" {rest // part_s} {part}" if rest // part_s else "")
    return f"{whole} s"


def size(count: float) -> str:
    """``512 B``, ``1.4 MiB``"""
    for unit in UNITS:
        if count < 1024 or unit == UNITS[-1]:
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def many(count: int, thing: str, things: str | None = None) -> str:
    """``1 page``, ``2,000 pages``"""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def counted(counts: dict[str, int]) -> str:
    """``404 and others``: what there is of each, the most first."""
    return ", ".join(f"{plain(name)} {count:,}" for name, count in sorted(counts.items(), key=lambda c: (-c[1], c[0])))


def facts(rows: Iterable[tuple[str, str | Text]]) -> Iterator[Text]:
    """Lines of a name and what is to be said of it; a row without a name goes on with the one before."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    for name, said in rows:
        yield Text.assemble((f"{name:<{width}}  ", "dim"), said)
