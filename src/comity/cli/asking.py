"""Who crawls: the identity from what was given, set, or remembered; asked for once where a person sits at a terminal.

The rules are `comity.identity`'s. This page only knows where on this machine the answers are, and how to ask:
on standard error, so that standard output stays what it is for, and never when standard input is a file or a pipe.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from comity import identity as identities

if TYPE_CHECKING:
    from comity.config import Settings
    from comity.identity import Identity


def identity(settings: Settings, contact: str | None, *, local: bool) -> Identity:
    """`contact`: the flag. `local`: nothing beyond this machine will be asked. Raises `identity.NoContact`,
    `identity.BadIdentity`."""
    chosen = settings.identity
    try:
        memory = identities.memory_path(os.environ, Path.home(), sys.platform)
    except RuntimeError:  # no home at all: nothing is remembered
        memory = None
    return identities.find(
        flag=contact,
        environment=os.environ,
        configured=chosen.contact,
        memory=memory,
        local=local,
        ask=_ask if somebody_is_there() else None,
        tell=lambda text: print(text, file=sys.stderr),
        product=chosen.product,
        version=chosen.version,
        mail=chosen.from_,
    )


def somebody_is_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    if not (answer := sys.stdin.readline()):
        raise EOFError
    return answer
