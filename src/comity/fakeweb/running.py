"""Where the fake web runs: in the caller's event loop (`comity.fakeweb.server.FakeWeb` itself), in a thread with a loop
of its own (`in_thread`), or as a child process (`in_process`), for a crawler that is itself a process.

The child prints its seeds, one a line, and an empty line when it is ready; it ends by SIGTERM or SIGINT. Its log is a
file that may be read and judged while it runs.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from comity.fakeweb.judge import Judgement, judge
from comity.fakeweb.log import Line, read
from comity.fakeweb.server import FakeWeb
from comity.fakeweb.site import Site


@contextmanager
def in_thread(sites: Iterable[Site] | Callable[[int], Iterable[Site]]) -> Iterator[FakeWeb]:
    """A running web, served by a thread of its own. Its log may be read at any time; its sites belong to that thread,
    but for `Site.round`. `sites` may be a function of the port, for sites that name absolute URLs."""
    started: list[FakeWeb] = []
    ready, end = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        try:
            web = await open_web(sites)
            started.append(web)
        finally:
            ready.set()
        await end.wait()
        await web.stop()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="fakeweb", daemon=True)
    thread.start()
    ready.wait()
    if not started:
        thread.join()
        raise RuntimeError("the fake web could not start")
    try:
        yield started[0]
    finally:
        loops[0].call_soon_threadsafe(end.set)
        thread.join()


async def open_web(
    sites: Iterable[Site] | Callable[[int], Iterable[Site]],
    *,
    now: Callable[[], float] | None = None,
    log_path: Path | str | None = None,
    port: int = 0,
) -> FakeWeb:
    """A started web. If `sites` is a function, it is given the port once that is known, and only then does the first
    request find anything."""
    known: list[Site] = [] if callable(sites) else list(sites)
    web = FakeWeb(known, port=port, log_path=log_path, **({} if now is None else {"now": now}))
    await web.start()
    if callable(sites):
        web.add(sites(web.port))
    return web


@dataclass(frozen=True, slots=True)
class Child:
    """A fake web in a process of its own."""

    process: subprocess.Popen[str]
    seeds: tuple[str, ...]
    log_path: Path

    def lines(self) -> list[Line]:
        return read(self.log_path)[0]

    def judge(self, *, delay_s: float = 0.0) -> Judgement:
        return judge(*read(self.log_path), delay_s=delay_s)


@contextmanager
def in_process(log_path: Path, *options: str) -> Iterator[Child]:
    """``python -m comity.fakeweb --log LOG_PATH OPTIONS…``, running. Raises RuntimeError with its words if it ends
    before it is ready."""
    command: Sequence[str] = (sys.executable, "-m", "comity.fakeweb", "--log", str(log_path), *options)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            if not line.strip():
                break
            said.append(line.strip())
        else:
            raise RuntimeError(f"the fake web could not start: {' '.join(said)}")
        yield Child(process, tuple(said), log_path)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()
