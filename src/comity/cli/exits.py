"""Exit codes, the same for every command and documented in every ``--help``.

0 is for "done", also when pages failed: a crawl that met 404s has done its work. Codes from 64 up are those of
sysexits.h where one fits, so that a script can tell what to mend from what to repeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    REFUSED = 1  # `comity robots`: a URL may not be fetched; `comity demo`: a server has something to hold against us
    USAGE = 2  # bad arguments, bad configuration, bad seeds and none good
    NOT_FOUND = 3  # no such crawl, no such URL in it
    NO_CONTACT = 64  # the crawl would be anonymous
    FAILED = 70  # a fault of ours, or of the store
    CANNOT_WRITE = 73  # the directory cannot be made or written
    DISK_FULL = 74  # nothing settled is lost; free some room and run again
    LOCKED = 75  # another crawl is at work in the directory
    TOO_NEW = 78  # the directory was written by a later comity
    INTERRUPTED = 130  # Ctrl-C: drained, resumes where it was


MEANINGS = {
    Exit.OK: "done",
    Exit.REFUSED: "a URL may not be fetched now",
    Exit.USAGE: "bad arguments, settings or seeds",
    Exit.NOT_FOUND: "no such crawl, or no such URL in it",
    Exit.NO_CONTACT: "no contact given",
    Exit.FAILED: "a fault of comity or of its store",
    Exit.CANNOT_WRITE: "the directory cannot be written",
    Exit.DISK_FULL: "disk full: nothing settled is lost, make room and run again",
    Exit.LOCKED: "another crawl is at work there",
    Exit.TOO_NEW: "written by a later comity",
    Exit.INTERRUPTED: "interrupted: all is safe, run again to go on",
}


def told(examples: Iterable[str], *codes: Exit, **others: str) -> str:
    """The end of a command's ``--help``: examples, and the codes it can exit with. `others` says by a code's name what
    it means for this command, where that is not what it means for most."""
    meanings = {code: others.get(code.name, MEANINGS[code]) for code in (Exit.OK, *codes)}
    lines = ["\b", "Examples:", *(f"  {example}" for example in examples), "", "\b", "Exit codes:"]
    return "\n".join([*lines, *(f"  {code.value:<3} {meaning}" for code, meaning in sorted(meanings.items()))])
