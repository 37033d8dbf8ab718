"""A crawl is a directory: one place that can be looked at, moved, resumed and thrown away.

    comity.toml           the settings, yours to edit; a directory is a crawl once it is there
    seeds.txt             where the crawl began
    frontier.sqlite       every URL's life story
    crawl.lock            keeps a second crawl off
    out/pages-0.jsonl     the results, one file per worker
    log/crawl-0.jsonl     the evidence, one file per worker

Owns: these names, and how a directory becomes a crawl. Invariant: ``comity.toml`` is written last and appears whole,
so that a directory is a crawl or is not, whenever the process that makes it dies; of two that make it at once, one wins
and both open the same. Nothing that was there before is overwritten: a directory with other things in it is refused.

Refuses to know what the files contain, but for the version numbers that say whether this comity may touch them.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec

from comity.outputs import crawllog, rows

CONFIG, SEEDS, FRONTIER, LOCK, OUT, LOG = "comity.toml", "seeds.txt", "frontier.sqlite", "crawl.lock", "out", "log"
ASIDE = ".new"
OURS = frozenset({SEEDS, LOCK, OUT, LOG})
"""What may already be there when a directory becomes a crawl: left by one that died while it made it."""


class DirError(Exception):
    """The directory cannot be made, written, or read as a crawl. One line, with its path."""


class NotACrawl(DirError):
    """There is no crawl in the directory."""


class DirTooNew(DirError):
    """A later comity has written there in a way that this one does not know."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Of what lies in a crawl's directory. None: not there yet, or nothing in it."""

    frontier: int | None = None  # the schema
    rows: int | None = None  # of the results
    log: int | None = None


@dataclass(frozen=True, slots=True)
class CrawlDir:
    """The paths of one crawl. Made by `create` and `at`."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / CONFIG

    @property
    def seeds(self) -> Path:
        return self.root / SEEDS

    @property
    def frontier(self) -> Path:
        return self.root / FRONTIER

    @property
    def lock(self) -> Path:
        return self.root / LOCK

    @property
    def out(self) -> Path:
        return self.root / OUT

    @property
    def log(self) -> Path:
        return self.root / LOG

    def pages(self, worker: str = "0") -> Path:
        """The results of one worker."""
        return self.out / f"pages-{worker}.jsonl"

    def versions(self) -> Versions:
        """Reads what is there without changing or locking anything."""
        return Versions(
            frontier=_schema(self.frontier),
            rows=_last_version(self.out.glob("pages-*.jsonl")),
            log=_last_version(self.log.glob("crawl-*.jsonl")),
        )

    def check(self) -> None:
        """Raises `DirTooNew` where this comity would append to files of a later one (the frontier checks itself), and
        `DirError` where it may not write."""
        found = self.versions()
        for what, version, known in (("results", found.rows, rows.VERSION), ("log", found.log, crawllog.VERSION)):
            if version is not None and version > known:
                raise DirTooNew(
                    f"{self.root} was written by a later comity: its {what} are of version {version}, and this comity "
                    f"knows up to {known}"
                )
        for folder in (self.root, self.out, self.log):
            if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
                raise DirError(f"{folder} cannot be written: permission denied")


def is_crawl(root: Path) -> bool:
    return (root / CONFIG).is_file()


def at(root: Path) -> CrawlDir:
    """The crawl in a directory. Raises `NotACrawl`."""
    if is_crawl(root):
        return CrawlDir(root)
    if not root.exists():
        raise NotACrawl(f"there is no {root}")
    if not root.is_dir():
        raise NotACrawl(f"{root} is a file: a crawl is a directory")
    raise NotACrawl(f"{root} is no crawl: it has no {CONFIG}")


def create(root: Path, config: str, seeds: str = "") -> CrawlDir:
    """Makes the directory (and its parents) into a crawl, or opens the crawl that is there, which keeps its settings
    and seeds. `config` and `seeds` are the texts of the two files.

    Raises `NotACrawl` for a directory with other things in it, `DirError` when it cannot be made or written.
    """
    crawl = CrawlDir(root)
    if is_crawl(root):
        return crawl
    try:
        root.mkdir(parents=True, exist_ok=True)
        if others := sorted(name for name in os.listdir(root) if name not in OURS and not name.endswith(ASIDE)):
            if is_crawl(root):  # made by another process just now
                return crawl
            shown = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
            raise NotACrawl(f"{root} is not empty and no crawl (it holds {shown}): choose another directory")
        with _alone(crawl) as ours:
            if ours:
                crawl.out.mkdir(exist_ok=True)
                crawl.log.mkdir(exist_ok=True)
                _write(crawl.seeds, seeds)
                _write(crawl.config, config)
    except FileExistsError as error:  # mkdir: a file is in the way
        raise NotACrawl(f"{error.filename} is a file: a crawl is a directory") from error
    except NotADirectoryError as error:
        raise NotACrawl(f"{root} cannot be made: part of its path is a file") from error
    except OSError as error:
        raise DirError(f"{root} cannot be made or written: {error.strerror or error}") from error
    return crawl


@contextlib.contextmanager
def _alone(crawl: CrawlDir) -> Iterator[bool]:
    """Nobody else makes this directory meanwhile. False: somebody else has made it."""
    file = os.open(crawl.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if is_crawl(crawl.root):  # and perhaps it runs already, with the lock
                    break
                threading.Event().wait(0.01)
            else:
                break
        yield not is_crawl(crawl.root)
    finally:
        os.close(file)


def _write(path: Path, text: str) -> None:
    """Appears whole or not at all."""
    aside = path.with_name(path.name + ASIDE)
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)


def _schema(path: Path) -> int | None:
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            version: int = database.execute("pragma user_version").fetchone()[0]
    except sqlite3.Error:
        return None
    return version or None


def _last_version(paths: Iterable[Path]) -> int | None:
    """The greatest ``v`` of the files' last whole lines: versions only grow within a file."""
    return max((version for path in paths if (version := _version(_last_line(path))) is not None), default=None)


def _last_line(path: Path) -> bytes:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return b""
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            end = max(0, text.rfind(b"\n"))
            return text[text.rfind(b"\n", 0, end) + 1 : end]


def _version(line: bytes) -> int | None:
    try:
        row = msgspec.json.decode(line)
    except ValueError:
        return None
    version = row.get("v") if isinstance(row, dict) else None
    return version if isinstance(version, int) else None
