"""The arguments that commands share, and how a person's text becomes a value.

One spelling, one meaning and one help text each, whichever command takes it. What cannot be read is told in words of
our own, because those of the libraries below differ from release to release.

Durations are seconds, or texts such as ``15m`` and ``8h``, as in ``comity.toml``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer


def seconds(text: str) -> float:
    from comity.config import quantities

    try:
        value = float(text)
    except ValueError:
        try:
            value = quantities.seconds(text)
        except ValueError:
            value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise typer.BadParameter(f'{text!r} is no duration: give seconds, or a text such as "90s", "15m", "2h", "1d"')
    return value


def positive(text: str) -> int:
    return _whole(text, 1)


def natural(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise typer.BadParameter(f"{text!r} is not a whole number of {least} or more")
    return value


def mode(text: str) -> str:
    if text not in ("host", "domain", "any"):
        raise typer.BadParameter(f"{text!r} is not one of host, domain, any")
    return text


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress, only the summary and errors.")]
Contact = Annotated[
    str | None,
    typer.Option(
        metavar="URL|MAIL",
        help="How those whose sites you visit can reach you; sent with every request. Else COMITY_CONTACT, "
        "identity.contact in comity.toml, or the one remembered.",
        show_default=False,
    ),
]
AllowPrivate = Annotated[
    bool,
    typer.Option("--allow-private", help="Private and loopback addresses may be connected to. For your own network."),
]
Crawl = Annotated[
    Path, typer.Argument(parser=Path, metavar="DIR", help="The directory of a crawl.", show_default=False)
]
