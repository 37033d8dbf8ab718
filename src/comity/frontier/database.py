"""One SQLite file: how it is made and opened, which thread may touch it, when it is written and when it is tidied.

It owns the connections, the schema's version, the write transaction and the background checkpoint. Invariants:

* a connection lives in one thread (`Lane`) and is used in no other: nothing here ever runs in the event loop (in the
  loop the 99th percentile of its lateness was 58-86 ms, from a thread 3-22 ms: measured);
* whoever writes holds the writer lock, then BEGIN IMMEDIATE, then commits or rolls back all of it;
* `synchronous = NORMAL` in WAL mode: a killed process loses nothing committed; a power cut may lose the last moments,
  never the file;
* committing never waits for a checkpoint: automatic ones stall a commit by 0.1 to 1 s, a passive one every quarter of a
  second in a thread of its own keeps the longest near 0.1 s (measured).

What SQLite reports becomes one of the four errors of `comity.frontier`, here and nowhere else. It refuses to know what
is in the tables.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import ParamSpec, TypeVar

from comity.frontier import SchemaTooNew, StoreFailed, StoreFull
from comity.frontier.lock import WriterLock
from comity.ports import Clock

P = ParamSpec("P")
T = TypeVar("T")

SCHEMA_VERSION = 1
APPLICATION_ID = 0x636F6D79  # "comy": tells a frontier from any other SQLite file
OLDEST_SQLITE = (3, 37, 0)  # strict tables; generated columns and RETURNING are older
PAGE_BYTES = 4096  # 2 KB and 8 KB pages both cost more a visit (measured)
CACHE_KB = 64 * 1024
CHECKPOINT_S = 0.25
LOG_KEPT_BYTES = 64 << 20  # what a burst leaves of the log file; a steady crawl needs 12-33 MB (measured)
BUSY_S = 30.0  # for writers that do not know the lock, such as a person with the sqlite3 shell
READERS_BUSY_S = 0.1  # how long a checkpoint waits for a reader before it leaves the rest for the next


def script(name: str) -> str:
    return resources.files("comity.frontier").joinpath(name).read_text(encoding="utf-8")


def statements(name: str) -> Mapping[str, str]:
    """The statements of a file by the names above them (``-- name: host_claim``)."""
    named: dict[str, str] = {}
    for part in script(name).split("-- name: ")[1:]:
        title, _, text = part.partition("\n")
        named[title.split()[0]] = text.strip().rstrip(";")
    return named


class Database:
    """One connection, of the thread that made it."""

    def __init__(
        self, path: Path, *, read_only: bool = False, max_bytes: int | None = None, checkpoint_pages: int = 0
    ) -> None:
        self.path = path
        self._lock = None if read_only else WriterLock(f"{path}-writer")
        self.connection = _connect_reader(path) if read_only else _connect(path, "rw")
        self.run = self.connection.execute
        self.run(f"pragma cache_size = -{CACHE_KB}")
        if not read_only:
            self.run("pragma synchronous = normal")
            self.run(f"pragma wal_autocheckpoint = {checkpoint_pages}")
            self.run(f"pragma journal_size_limit = {LOG_KEPT_BYTES}")
            if max_bytes is not None:
                self.run(f"pragma max_page_count = {max_bytes // PAGE_BYTES}")

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """All of it or nothing."""
        assert self._lock is not None, "a reader does not write"
        with self._lock:
            self.run("begin immediate")
            try:
                yield
                self.run("commit")
            except BaseException:
                if self.connection.in_transaction:  # SQLite has rolled back some errors by itself
                    self.run("rollback")
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Everything read inside is of one moment. Keep it short: a reader holds up the tidying."""
        self.run("begin")
        try:
            yield
        finally:
            self.run("rollback")

    def checkpoint(self) -> bool:
        """Move what was committed from the log to the file, and start the log again. True: nothing is left."""
        assert self._lock is not None
        self.run("pragma wal_checkpoint(passive)").fetchall()  # the bulk, in nobody's way
        self.run("pragma wal_checkpoint(passive)").fetchall()  # what came meanwhile
        with self._lock:
            busy: int = self.run("pragma wal_checkpoint(restart)").fetchone()[0]
        return not busy

    def close(self) -> None:
        self.connection.close()
        if self._lock is not None:
            self._lock.close()


def prepare(path: Path) -> None:
    """Make the file, or bring an older one to the present schema. Safe from any number of processes at once."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreFailed(str(path), f"SQLite {sqlite3.sqlite_version} is too old; 3.37 is needed")
    try:
        lock = WriterLock(f"{path}-writer")
    except OSError as error:
        raise StoreFailed(str(path), f"it cannot be written ({error.strerror})") from error
    with lock, contextlib.closing(_connect(path, "rwc")) as connection:
        found = version(connection, path)
        if found == SCHEMA_VERSION:
            return
        if not found:
            connection.execute(f"pragma page_size = {PAGE_BYTES}")
            connection.execute("pragma journal_mode = wal")
        steps = [f"sqlite_{n:04}.sql" for n in range(found + 1, SCHEMA_VERSION + 1)] if found else ["sqlite.sql"]
        ends = f"pragma application_id = {APPLICATION_ID}; pragma user_version = {SCHEMA_VERSION}; commit;"
        try:
            connection.executescript("begin immediate;" + "".join(script(step) for step in steps) + ends)
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("rollback")
            raise
    lock.close()


def version(connection: sqlite3.Connection, path: Path) -> int:
    """The schema's version; 0 for an empty file. Raises for a file that is not a frontier, or of a newer comity."""
    found: int = connection.execute("pragma user_version").fetchone()[0]
    application: int = connection.execute("pragma application_id").fetchone()[0]
    tables: int = connection.execute("select count(*) from sqlite_schema").fetchone()[0]
    if application != APPLICATION_ID and (tables or found or application):
        raise StoreFailed(str(path), "it is a database, but not a frontier")
    if found > SCHEMA_VERSION:
        raise SchemaTooNew(str(path), found, SCHEMA_VERSION)
    return found


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_S,
        isolation_level=None,
        cached_statements=256,
    )


def _connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write. On a medium where nobody can, SQLite must be told that the file never changes,
    for it cannot make the shared memory by which readers and writers see each other."""
    connection = _connect(path, "ro")
    try:
        connection.execute("select count(*) from sqlite_schema").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        if Path(f"{path}-wal").exists():
            raise
        return _connect(path, "ro&immutable=1")
    return connection


def failure(path: Path, error: sqlite3.Error) -> StoreFailed:
    """What SQLite met, in our words."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF == sqlite3.SQLITE_FULL:
        return StoreFull(str(path), "there is no room left to write")
    if code in (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE) and _is_capped():
        return StoreFull(str(path), "this process may not write files any larger")
    if code & 0xFF == sqlite3.SQLITE_CANTOPEN and not path.exists():
        return StoreFailed(str(path), "there is no such file")
    if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreFailed(str(path), "another programme keeps it locked")
    return StoreFailed(str(path), f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})")


def _is_capped() -> bool:
    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY


class Lane:
    """One thread with one connection, opened at the first call. Calls are done one after another, each to its end."""

    def __init__(self, name: str, path: Path, clock: Clock, make: Callable[[], Database]) -> None:
        self._path = path
        self._clock = clock
        self._make = make
        self._database: Database | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work(…)`, run in the thread. Virtual time stands still meanwhile. If the caller is cancelled,
        the work is still done to its end before the caller is let go: no transaction is left in doubt."""
        with self._clock.busy():
            done = asyncio.get_running_loop().run_in_executor(
                self._thread, self._guarded, lambda: work(*args, **kwargs)
            )
            try:
                return await asyncio.shield(done)
            except asyncio.CancelledError:
                await asyncio.wait([done])
                done.cancelled() or done.exception()  # heard, though nobody is left to be told
                raise

    def database(self) -> Database:
        """The connection; only inside the thread."""
        if self._database is None:
            self._database = self._make()
        return self._database

    async def close(self) -> None:
        await self.do(self._close)
        self._thread.shutdown()

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            raise failure(self._path, error) from error
        except OSError as error:
            raise StoreFailed(str(self._path), f"{error.filename or 'it'}: {error.strerror or error}") from error


class Tidier:
    """The thread that checkpoints, every `CHECKPOINT_S` of real time in which something was written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="frontier-tidier", daemon=True)
        self._thread.start()

    def written(self) -> None:
        self._written.set()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        database: Database | None = None
        while not self._ended.wait(CHECKPOINT_S):
            if not self._written.is_set():
                continue
            self._written.clear()
            try:
                if database is None:
                    database = Database(self._path)
                    database.run(f"pragma busy_timeout = {int(READERS_BUSY_S * 1000)}")
                if not database.checkpoint():
                    self._written.set()
            except (sqlite3.Error, OSError):
                self._written.set()  # no room, or a reader in the way: the log keeps everything; the writer will tell
        if database is not None:
            database.close()
