"""A disk that fills up while writing stops the crawl cleanly, and a crawl resumed with room is as if it had not.

The file is an object that takes only so many bytes; the store's own limit (`PRAGMA max_page_count`) and a process's
(`RLIMIT_FSIZE`) are tried in tests/contracts/test_sqlite.py and tests/cli/test_cli_crawl.py.
"""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from comity.assemble import prepared
from comity.config import Settings, defaults, override
from comity.fakeweb import NO_ROBOTS, Site, page
from comity.model import Deletion, Mark, Visit
from comity.outputs.files import SinkFull
from comity.outputs.jsonl import JsonlSink
from conftest import StartWeb

PAGES = 60


class Room:
    """`os.write`, for as long as there is room."""

    def __init__(self, room_bytes: int) -> None:
        self.left = room_bytes

    def write(self, file: int, data: bytes | memoryview) -> int:
        if self.left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = os.write(file, data[: self.left])
        self.left -= taken
        return taken


class Plain:
    """A second sink, after the one that fails: it must not be ahead of it for good."""

    name = "plain"

    def __init__(self) -> None:
        self.settled: list[str] = []

    async def open(self, mark: Mark | None) -> None:
        del self.settled[(mark or {}).get("n", 0) :]

    async def write(self, visits: Sequence[Visit]) -> Mark:
        self.settled += [visit.entry.key for visit in visits]
        return {"n": len(self.settled)}

    async def delete(self, deletions: Sequence[Deletion]) -> Mark:
        return {"n": len(self.settled)}

    async def close(self) -> None: ...


def local() -> Settings:
    return override(
        defaults("comity"),
        {
            "address.allow_private": True,
            "politeness.delay_s": 0.0,
            "outputs.jsonl.enabled": False,
            "engine.batch": 8,
        },
    )


@pytest.mark.parametrize("room_bytes", [0, 1, 700, 5_000, 20_000])
async def test_nothing_is_lost_and_nothing_is_twice(fakeweb: StartWeb, tmp_path: Path, room_bytes: int) -> None:
    links = [f"/{n}" for n in range(PAGES - 1)]
    web = await fakeweb(Site("a.localhost", {"/": page(links)} | {link: page() for link in links}, (NO_ROBOTS,)))
    seeds = [web.url("a.localhost", "/")]
    rows, plain = tmp_path / "rows.jsonl", Plain()
    room = Room(room_bytes)
    full = JsonlSink(rows, write=room.write)
    running = await prepared(seeds, directory=tmp_path / "c", sinks=[plain, full], settings=local())
    try:
        with pytest.raises(SinkFull) as told:
            await running.run()
    finally:
        await running.close()
    assert "rows.jsonl" in str(told.value)
    roomy = JsonlSink(rows)
    running = await prepared(seeds, directory=tmp_path / "c", sinks=[plain, roomy], settings=local())
    try:
        await running.run()
    finally:
        await running.close()
    written = Counter(json.loads(line)["key"] for line in rows.read_text().splitlines())
    assert len(written) == PAGES
    assert set(written.values()) == {1}
    assert Counter(plain.settled) == written
