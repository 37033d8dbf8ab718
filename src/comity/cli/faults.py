"""What went wrong, in one line and with one exit code.

Every error that comity means to raise has a sentence of its own and is in the table below; anything else is a fault of
ours, which says how to see more. Nobody is ever shown a traceback who did not ask for one.

The table names errors by where they are defined, and is read only when there is one: the modules behind it are heavy,
and `comity --help` needs none of them.
"""

from __future__ import annotations

import errno
import sys

from comity.cli.exits import Exit

VARIABLE = "COMITY_TRACEBACK"

KNOWN: tuple[tuple[str, str, Exit], ...] = (
    ("comity.config", "ConfigError", Exit.USAGE),
    ("comity.seeds", "SeedsUnreadable", Exit.USAGE),
    ("comity.identity", "BadIdentity", Exit.USAGE),
    ("comity.identity", "NoContact", Exit.NO_CONTACT),
    ("comity.url", "InvalidUrl", Exit.USAGE),
    ("comity.frontier", "Locked", Exit.LOCKED),
    ("comity.frontier", "SchemaTooNew", Exit.TOO_NEW),
    ("comity.frontier", "StoreFull", Exit.DISK_FULL),
    ("comity.frontier", "StoreFailed", Exit.FAILED),
    ("comity.outputs.files", "SinkFull", Exit.DISK_FULL),
    ("comity.crawldir", "NotACrawl", Exit.NOT_FOUND),
    ("comity.crawldir", "DirTooNew", Exit.TOO_NEW),
    ("comity.crawldir", "DirError", Exit.CANNOT_WRITE),
)
"""The more special ones come first."""

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
AFTERWARDS = {
    Exit.DISK_FULL: "; everything settled is safe: make room and run the same command again",
    Exit.LOCKED: "; wait for its end, or choose another directory",
}
BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
MEND = "; bring back a copy of the file, or move it away to begin anew (results that are there are set aside, not lost)"


class Trouble(Exception):
    """Something to tell, and to exit with. One line."""

    def __init__(self, code: Exit, text: str) -> None:
        super().__init__(text)
        self.code = code


def explained(error: BaseException) -> tuple[Exit, str] | None:
    """The code and the line of an error that was meant; None for a fault of ours."""
    if isinstance(error, Trouble):
        return error.code, str(error)
    for module, name, code in KNOWN:
        kind = getattr(sys.modules.get(module), name, None)  # one that was raised has been imported
        if kind is not None and isinstance(error, kind):
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in FULL:
                code = Exit.DISK_FULL
            line = _line(error)
            return code, line + (MEND if any(word in line for word in BROKEN) else AFTERWARDS.get(code, ""))
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        line = f"{where}{error.strerror or error}"
        if error.errno in FULL:
            return Exit.DISK_FULL, line + AFTERWARDS[Exit.DISK_FULL]
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return Exit.CANNOT_WRITE, line
    return None


def ours(error: BaseException) -> str:
    """The line of an error that nobody meant."""
    return (
        f"a fault of ours: {type(error).__name__}: {_line(error) or 'without a word'} "
        f"(run it again with --traceback or {VARIABLE}=1 to see where)"
    )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
