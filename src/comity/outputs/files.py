"""Append-only files of JSON lines, with an end that is always known.

Owns: how a line becomes bytes, how bytes reach the kernel, and where a file is cut.

Invariant: outside `AppendFile.append` the file ends where `end` says, after a whole line. An append that cannot be
completed (no space, a quota, a size limit) is undone before the error is raised, so that whoever resumes finds every
line whole and every mark true.

Why plain ``write(2)`` in the caller's thread and no ``fsync``: the page cache outlives a killed process, and a batch
costs microseconds where a thread hop costs more than the write. A power cut may lose the last moments; a file that is
shorter than its mark says so (`Opened.missing_bytes`) instead of pretending.

Refuses to know: what the lines mean, and who settled what.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

Write: TypeAlias = Callable[[int, "bytes | memoryview"], int]
"""The shape of `os.write`; tests pass one that fails after n bytes."""

FULL = {
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file may not grow further (size limit)",
}


class SinkFull(OSError):
    """A file cannot grow. What was asked to be written is not in it, not even in part."""

    def __init__(self, path: Path, reason: str, code: int = errno.ENOSPC) -> None:
        super().__init__(code, reason, str(path))
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot write {self.path}: {self.reason}"


_encode = msgspec.json.Encoder(enc_hook=str).encode


# Unicode's own line ends are legal inside a JSON string, but `str.splitlines` and its like would break a row there.
_LINE_ENDS = [("\u0085".encode(), rb"\u0085"), ("\u2028".encode(), rb"\u2028"), ("\u2029".encode(), rb"\u2029")]


def line(value: Any) -> bytes:
    """One JSON line, newline included; nothing else in it is a line end by anybody's reading. Text that UTF-8 cannot
    carry (a lone surrogate: RFC 8259 section 8.2) becomes U+FFFD, so that one odd page never costs its neighbours
    their rows."""
    try:
        data = _encode(value)
    except UnicodeEncodeError:
        data = _encode(_mended(value))
    if not data.isascii():  # a test that costs nothing beside the three searches (5 µs each on 7 KB, measured)
        for raw, escaped in _LINE_ENDS:
            data = data.replace(raw, escaped)
    return data + b"\n"


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_mended(k): _mended(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(v) for v in value]
    return value


@dataclass(frozen=True)
class Opened:
    """What opening found. All zeros after a clean end."""

    cut_bytes: int = 0  # beyond the mark, or a torn last line: removed
    missing_bytes: int = 0  # the mark says they were written, and they are not there
    aside: Path | None = None  # an unknown file stood in the way and was renamed to this


class AppendFile:
    """One open file, one writer. Not safe for two: a crawl directory has a lock of its own."""

    def __init__(self, path: Path, *, write: Write = os.write) -> None:
        """Opens, making the file and its folder if need be. Raises OSError (with the path) if it cannot."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._write = write
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.end = os.fstat(self._fd).st_size
        self._torn = False  # bytes beyond `end` that could not be cut off yet

    def append(self, data: bytes) -> int:
        """Hands whole lines to the kernel, normally in one ``write(2)``; returns the offset of their first byte.

        Raises `SinkFull` when the file cannot grow, any other OSError for what else the disk says; the file is then
        what it was before.
        """
        start = self.end
        rest: bytes | memoryview = data
        try:
            if self._torn:
                self.cut(start)
            while rest:
                written = self._write(self._fd, rest)
                if written <= 0:
                    raise OSError(errno.ENOSPC, "write(2) took nothing")
                rest = memoryview(rest)[written:]
        except OSError as error:
            self._undo()
            if error.errno in FULL:
                raise SinkFull(self.path, FULL[error.errno], error.errno) from error
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self.end = start + len(data)
        return start

    def cut(self, offset: int) -> None:
        """Makes `offset` the end."""
        os.ftruncate(self._fd, offset)
        self.end = offset
        self._torn = False

    def whole_lines(self, limit: int) -> int:
        """The end of the last whole line at or before `limit` (0 if there is none)."""
        at = min(limit, self.end)
        while at > 0:
            start = max(0, at - 65536)
            found = os.pread(self._fd, at - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            at = start
        return 0

    def close(self) -> None:
        """Twice is once."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _undo(self) -> None:
        # If even cutting fails, the next append tries again, and so does every way of opening the file.
        try:
            self.cut(self.end)
        except OSError:
            self._torn = True


def open_at(path: Path, committed: int | None, *, write: Write = os.write) -> tuple[AppendFile, Opened]:
    """Opens a file so that it holds exactly what was settled: everything beyond `committed` is cut off.

    `None` (nothing was ever settled) with a file that is not empty: these lines are either the first moments of a
    crawl that was killed, or a file that is not ours to destroy. It is set aside under another name, never deleted.
    """
    aside: Path | None = None
    if committed is None:
        if path.exists() and path.stat().st_size > 0:
            aside = _free_name(path)
            os.rename(path, aside)
        committed = 0
    file = AppendFile(path, write=write)
    was = file.end
    keep = min(committed, was)
    if keep < committed or not _ends_a_line(file, keep):
        keep = file.whole_lines(keep)  # after a power cut, or somebody else's hand: at least no torn line
    if keep < was:
        file.cut(keep)
    # A file that is gone was moved by its owner, who has the rows; one that is short has lost some.
    missing = committed - keep if was else 0
    return file, Opened(cut_bytes=max(0, was - committed), missing_bytes=missing, aside=aside)


def open_whole(path: Path, *, write: Write = os.write) -> tuple[AppendFile, Opened]:
    """Opens a file and keeps all of it but a torn last line."""
    file = AppendFile(path, write=write)
    was = file.end
    keep = file.whole_lines(was)
    if keep < was:
        file.cut(keep)
    return file, Opened(cut_bytes=was - keep)


def _ends_a_line(file: AppendFile, offset: int) -> bool:
    return file.whole_lines(offset) == offset


def _free_name(path: Path) -> Path:
    number = 1
    while (other := path.with_name(f"{path.name}.unsettled-{number}")).exists():
        number += 1
    return other
