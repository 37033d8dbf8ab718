"""Interrupted at any moment, by Ctrl-C or by SIGKILL, a crawl resumes and loses, repeats and hurries nothing.

One crawl of twenty hosts at one second is stopped ten times at random moments (seeded, and shown when it fails), then
run to its end. The frontier, the JSONL file and the server's log are then held against each other.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from comity.clock import SystemClock
from comity.fakeweb import Child
from comity.frontier.ledger import SqliteLedger
from comity.model import Entry, Status

HOSTS, PAGES, DELAY_S = 20, 18, 1.0
RESUMES_WITHIN_S = 2.0


def command(directory: Path, *more: str) -> list[str]:
    options = ["--scope", "any", "--delay", str(DELAY_S), "--allow-private", "-o", str(directory)]
    return [sys.executable, "-m", "comity", "crawl", *options, *more]


def entries(directory: Path) -> list[Entry]:
    async def read() -> list[Entry]:
        ledger = await SqliteLedger.open(directory / "frontier.sqlite", clock=SystemClock())
        try:
            found: list[Entry] = []
            while page := await ledger.find(after=found[-1].key if found else None, limit=100):
                found += page
            return found
        finally:
            await ledger.close()

    return asyncio.run(read())


def requests_after(child: Child, at: float) -> int:
    return sum(line.start_at > at for line in child.lines())


@pytest.mark.timeout(200)
def test_ten_interrupts_lose_repeat_and_hurry_nothing(fakeweb_process: Callable[..., Child], tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**9)
    chance = random.Random(seed)
    child = fakeweb_process("--hosts", str(HOSTS), "--pages", str(PAGES), "--cross", "1")
    directory = tmp_path / "crawl"
    how: Sequence[signal.Signals] = [signal.SIGINT] * 5 + [signal.SIGKILL] * 5
    order = chance.sample(how, len(how))
    first = True
    for number in order:
        started_at = time.time()
        seen = len(child.lines())
        more = child.seeds if first else ()
        process = subprocess.Popen(command(directory, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline_at = started_at + RESUMES_WITHIN_S + (DELAY_S if not first else 0.0) + 3.0
        while len(child.lines()) == seen and time.time() < deadline_at:
            time.sleep(0.02)  # waiting for another process: its log is the signal
        time.sleep(chance.uniform(0.0, 0.6))  # the random moment itself
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        if number is signal.SIGINT:
            assert process.returncode == 130, f"seed {seed}: {said}"
        first = False
    resumed_at = time.time()
    ended = subprocess.run(command(directory), capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, f"seed {seed}: {ended.stderr}"
    starts = [line.start_at for line in child.lines() if line.start_at > resumed_at]
    assert starts, f"seed {seed}: nothing was left to do, the moments were too late"
    assert min(starts) - resumed_at < RESUMES_WITHIN_S + DELAY_S

    known = entries(directory)
    expected = HOSTS * PAGES
    fetched = [entry for entry in known if entry.status is Status.FETCHED]
    assert len({entry.key for entry in known}) == len(known)
    assert len(fetched) == expected, f"seed {seed}"
    rows = [json.loads(line) for line in (directory / "out" / "pages-0.jsonl").read_text().splitlines()]
    settled = Counter({entry.key: entry.version for entry in known if entry.version})
    written = Counter(row["key"] for row in rows)
    assert written == settled, f"seed {seed}: a row for each settled visit, and none twice"
    verdict = child.judge(delay_s=DELAY_S)
    assert (verdict.early, verdict.forbidden, verdict.before_robots, verdict.overlaps) == (0, 0, 0, 0), (
        f"seed {seed}: {verdict.breaches}"
    )
