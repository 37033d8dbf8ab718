"""Visits as JSON lines: the output most people read.

Owns: one file per worker, one row (`comity.outputs.rows`) a line.

Invariant: at every mark the file holds every settled visit exactly once, in the order settled. It is kept by cutting
the file back to the committed mark when it is opened; what lies beyond was written and never settled, and those visits
are made again.

Why the write is made in the loop: a batch goes to the page cache in one ``write(2)`` (64 rows of 7 KB: 1.1 ms
*measured*); a thread would let a virtual clock run on while it writes.

Refuses to know: when to settle, what other sinks do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from comity.model import Deletion, Mark, Visit
from comity.outputs import files, rows


class JsonlSink:
    """Mark: ``{"file": 0, "offset": bytes}``."""

    def __init__(
        self, path: Path, fields: rows.Fields = rows.ALL, *, name: str = "jsonl", write: files.Write = os.write
    ) -> None:
        self.name = name
        self.path = path
        self.opened = files.Opened()  # what `open` found, for people
        self._fields = fields
        self._write = write
        self._file: files.AppendFile | None = None

    async def open(self, mark: Mark | None) -> None:
        """Raises OSError when the file cannot be opened."""
        committed = None if mark is None else mark.get("offset", 0)
        self._file, self.opened = files.open_at(self.path, committed, write=self._write)

    async def write(self, visits: Sequence[Visit]) -> Mark:
        """All of them or, with `files.SinkFull` or another OSError, none."""
        self._append(b"".join([files.line(rows.row(visit, self._fields)) for visit in visits]))
        return self._mark()

    async def delete(self, deletions: Sequence[Deletion]) -> Mark:
        """One deletion row each: all of them or none, as above."""
        self._append(b"".join([files.line(rows.deletion_row(deletion, self._fields)) for deletion in deletions]))
        return self._mark()

    async def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, data: bytes) -> None:
        if data:
            self._open_file().append(data)

    def _mark(self) -> Mark:
        return {"file": 0, "offset": self._open_file().end}

    def _open_file(self) -> files.AppendFile:
        if self._file is None:
            raise RuntimeError(f"{self.name} is not open")
        return self._file
