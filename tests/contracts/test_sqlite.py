"""What only the SQLite frontier promises: its file and schema, plans, crashes, full disks, and neighbours."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import re
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from comity.clock import SystemClock
from comity.frontier import Locked, SchemaTooNew, StoreFailed, StoreFull, rows
from comity.frontier.database import APPLICATION_ID, PAGE_BYTES, SCHEMA_VERSION, Database, prepare, script
from comity.frontier.ledger import SqliteLedger
from comity.frontier.lock import DirectoryLock, WriterLock, holder
from comity.frontier.sqlite import SqliteFrontier
from comity.frontier.writing import SQL
from comity.model import (
    Cause,
    Change,
    Claim,
    Entry,
    Failure,
    HostState,
    Mark,
    PastVisit,
    Settlement,
    Stats,
    Status,
)

CLOCK = SystemClock()


def found(n: int, host: str = "a.example") -> Entry:
    url = f"https://{host}/{n}"
    return Entry(url, url, host, due_at=1.0)


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


def visits(claim: Claim, due_at: float | None = None, **facts: Any) -> tuple[Change, ...]:
    return tuple(
        Change(entry, replace(entry, status=Status.FETCHED, due_at=due_at, visited_at=2.0, **facts))
        for entry in claim.entries
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.db"


# --------------------------------------------------------------------------------------------------------------- schema


def schema_of(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Every object with its definition, comments and white space left out."""
    listed = connection.execute("select name, sql from sqlite_schema where sql is not null order by name")
    return [(name, re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", sql)).replace(" )", ")")) for name, sql in listed]


def test_a_fresh_schema_and_a_migrated_one_are_the_same() -> None:
    with closing(sqlite3.connect(":memory:")) as fresh, closing(sqlite3.connect(":memory:")) as migrated:
        fresh.executescript(script("sqlite.sql"))
        for version in range(1, SCHEMA_VERSION + 1):
            migrated.executescript(script(f"sqlite_{version:04}.sql"))
        assert schema_of(fresh) == schema_of(migrated)
        for table, _ in schema_of(fresh):
            if table in {"total", "tally"}:
                rows_of = f"select * from {table} order by 1"
                assert fresh.execute(rows_of).fetchall() == migrated.execute(rows_of).fetchall()


def test_there_is_one_migration_for_each_version() -> None:
    names = {file.name for file in resources.files("comity.frontier").iterdir() if file.name.endswith(".sql")}
    migrations = {f"sqlite_{version:04}.sql" for version in range(1, SCHEMA_VERSION + 1)}
    assert names == {"sqlite.sql", "sqlite_statements.sql"} | migrations


async def test_a_fresh_file_is_what_it_should_be(path: Path) -> None:
    await (await SqliteFrontier.open(path, clock=CLOCK)).close()
    with closing(sqlite3.connect(path)) as connection:
        pragmas = {name: connection.execute(f"pragma {name}").fetchone()[0] for name in
                   ("user_version", "application_id", "journal_mode", "page_size")}  # fmt: skip
    assert pragmas == {
        "user_version": SCHEMA_VERSION,
        "application_id": APPLICATION_ID,
        "journal_mode": "wal",
        "page_size": PAGE_BYTES,
    }


@pytest.mark.parametrize("opener", [SqliteFrontier, SqliteLedger])
async def test_a_newer_schema_is_refused_and_not_touched(path: Path, opener: Any) -> None:
    await (await SqliteFrontier.open(path, clock=CLOCK)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"pragma user_version = {SCHEMA_VERSION + 1}")
        connection.execute("pragma wal_checkpoint(truncate)")
    before = bytes_of(path)
    with pytest.raises(SchemaTooNew) as refused:
        await opener.open(path, clock=CLOCK)
    assert (refused.value.found, refused.value.known) == (SCHEMA_VERSION + 1, SCHEMA_VERSION)
    assert str(path) in str(refused.value)
    assert "use a newer comity" in str(refused.value)
    assert bytes_of(path) == before


def make_text(path: Path) -> None:
    path.write_text("Not a database, but long enough to have a header.\n" * 9)


def make_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table t (x)")


@pytest.mark.parametrize("opener", [SqliteFrontier, SqliteLedger])
@pytest.mark.parametrize("make", [make_text, make_database, Path.mkdir], ids=["text", "database", "folder"])
async def test_what_is_no_frontier_is_refused(path: Path, opener: Any, make: Callable[[Path], None]) -> None:
    make(path)
    with pytest.raises(StoreFailed) as refused:
        await opener.open(path, clock=CLOCK)
    assert str(path) in str(refused.value)


async def test_a_ledger_makes_no_file(path: Path) -> None:
    with pytest.raises(StoreFailed, match="no such file"):
        await SqliteLedger.open(path, clock=CLOCK)
    assert list(path.parent.iterdir()) == []


async def test_a_frontier_in_no_folder_is_refused(path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot be written"):
        await SqliteFrontier.open(path / "deeper" / "frontier.db", clock=CLOCK)


# ----------------------------------------------------------------------------------------------------------------- rows


EVERYTHING = Entry(
    url="https://a.example/%7e",
    key="https://a.example/~",
    host="a.example",
    status=Status.ERROR,
    due_at=1.5,
    seq=3,
    version=4,
    discovered_at=5.5,
    depth=6,
    hops=7,
    via="via",
    is_sitemap=True,
    is_feed=True,
    hint_at=8.5,
    cause=Cause.BUDGET,
    failure=Failure.TLS,
    detail="détail",
    errors=9,
    first_error_at=10.5,
    visited_at=11.5,
    http_status=299,
    redirect_to="/there",
    etag='W/"ü"',
    last_modified="yesterday",
    fresh_until_at=12.5,
    digest="ab" * 32,
    changed_at=13.5,
    next_rule="rule",
    rules_digest="cd" * 16,
    metadata={"k": ("v", "w"), "empty": ()},
    history=(PastVisit(1.0, Status.FETCHED, None, True, 200, None), PastVisit(2.0, Status.ERROR, Cause.GONE)),
    place="1:2",
    size_bytes=14,
    chain=("https://a.example/first", "https://a.example/second"),
)


async def test_every_field_of_an_entry_is_kept(path: Path) -> None:
    """A field added to `Entry` fails here until a row holds it."""
    plain = Entry("u", "u", "h")
    for field in Entry.__struct_fields__:
        assert field in {"url", "key", "host"} or getattr(EVERYTHING, field) != getattr(plain, field), field
    frontier = await SqliteFrontier.open(path, clock=CLOCK)
    await frontier.add([EVERYTHING], 1.0)
    assert await frontier.get(EVERYTHING.key) == replace(EVERYTHING, seq=1, version=0)
    await frontier.close()


def test_a_tail_is_an_array_that_only_grows() -> None:
    """A row written before a field was added is read with that field's default."""
    short = b"\x94\x01\xcb@\x16\x00\x00\x00\x00\x00\x00\x07\xa3via"  # [1, 5.5, 7, "via"]
    entry = rows.entry((0, 1, "u", None, 0, None, None, 0, 0, 0, None, short), "h")
    assert (entry.discovered_at, entry.hops, entry.via, entry.metadata, entry.place) == (5.5, 7, "via", {}, None)


# ---------------------------------------------------------------------------------------------------------------- plans

SMALL = {"worker", "tally", "mark"}  # a row for each worker, counter or sink


def test_every_statement_is_used() -> None:
    text = "".join(file.read_text() for file in resources.files("comity.frontier").iterdir() if file.name[-3:] == ".py")
    assert not [name for name in SQL if f'SQL["{name}"]' not in text]


@pytest.mark.parametrize("name", sorted(SQL))
def test_every_statement_is_an_index_search(name: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script("sqlite.sql"))
        holes = {int(n or 0) for n in re.findall(r"\?(\d*)", SQL[name])}
        values = [None] * (max(holes) or SQL[name].count("?")) if holes else []
        plan = [row[3] for row in connection.execute(f"explain query plan {SQL[name]}", values)]
    scans = {line.split()[1] for line in plan if line.startswith("SCAN")}
    assert scans <= SMALL, plan
    assert not any("TEMP B-TREE" in line for line in plan), plan


def operations(connection: sqlite3.Connection, statement: str, values: tuple[Any, ...]) -> int:
    """How many steps SQLite's own machine takes."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(step, 1)
    connection.execute(statement, values).fetchall()
    connection.set_progress_handler(None, 1)
    return steps


@pytest.mark.slow
def test_claiming_costs_the_same_however_many_urls_there_are(path: Path) -> None:
    """The steps of each statement of a claim, with 10 URLs a host and with 10,000, and with ten times the hosts."""
    counted: list[list[int]] = []
    for hosts, urls in [(20, 10), (20, 10_000), (200, 10)]:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.executescript(script("sqlite.sql"))
            connection.execute("begin")
            connection.executemany("insert into host (key, next_due) values (?, 1)", ((str(n),) for n in range(hosts)))
            connection.executemany(
                SQL["url_insert"],
                ((h + 1, u, u, "u", None, 0, None, 1.0, 0, 0, None, b"") for h in range(hosts) for u in range(urls)),
            )
            connection.execute("commit")
            counted.append(
                [
                    operations(connection, SQL["host_claim"], (1, 2.0, 5)),
                    operations(connection, SQL["host_next_ready"], ()),
                    operations(connection, SQL["url_due"], (1, 2.0, 10)),
                    operations(connection, SQL["url_first_due"], (1,)),
                    operations(connection, SQL["url_next_rules"], (1, "")),
                ]
            )
    assert counted[0] == counted[1] == counted[2]


# ------------------------------------------------------------------------------------------------------------- restarts


async def test_holds_states_and_clocks_survive_a_restart(path: Path) -> None:
    frontier = await SqliteFrontier.open(path, clock=CLOCK)
    await frontier.add([found(1)], 1.0)
    (claim,) = (await frontier.claim("w", 2.0, 1, 9)).claims
    state = HostState(next_at=50.0, pages=3, wanted_s=2.0)
    await frontier.hold("a.example", 700.0)
    await frontier.settle(
        [Settlement("a.example", 1, visits(claim), state=state, give_back=True)], {"s": {"n": 1}}, 3.0
    )
    await frontier.close()

    frontier = await SqliteFrontier.open(path, clock=CLOCK)
    assert (await frontier.claim("v", 9e9, 1, 9)).next_ready_at is None
    await frontier.add([found(2)], 4.0)
    assert (await frontier.claim("v", 5.0, 1, 9)).next_ready_at == 700.0
    (claim,) = (await frontier.claim("v", 700.0, 1, 9)).claims
    assert (claim.token, claim.state) == (2, replace(state, not_before_at=700.0))
    assert claim.entries[0].seq == 2
    assert await frontier.marks() == {"s": {"n": 1}}
    await frontier.close()


async def test_a_host_row_that_promises_too_much_is_put_right(path: Path) -> None:
    frontier = await SqliteFrontier.open(path, clock=CLOCK)
    await frontier.add([replace(found(1), due_at=500.0)], 1.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("update host set next_due = 1")
    assert await frontier.check() == ("host a.example: next_due is 1.0, and should be 500.0",)
    claims = await frontier.claim("w", 100.0, 1, 9)
    assert (claims.claims, claims.next_ready_at) == ((), 500.0)
    assert await frontier.check() == ()
    await frontier.close()


# ------------------------------------------------------------------------------------------------------------ full disk


async def fill(frontier: SqliteFrontier, batch: int = 50) -> tuple[int, StoreFull]:
    """Settle one visit after another, each with discoveries, until there is no room. Says how many went in."""
    await frontier.add([found(0)], 1.0)
    n = 0
    while True:
        (claim,) = (await frontier.claim("w", 2.0, 1, 1)).claims
        new = tuple(found(1 + n * batch + i) for i in range(batch))
        settlement = Settlement(claim.host, claim.token, visits(claim), new, give_back=True, visits=1)
        try:
            await frontier.settle([settlement], {"sink": {"n": n + 1}}, 2.0)
        except StoreFull as error:
            return n, error
        n += 1


async def test_a_full_disk_is_a_clear_error_and_loses_nothing(path: Path) -> None:
    frontier = await SqliteFrontier.open(path, clock=CLOCK, max_bytes=400_000)
    settled, error = await fill(frontier)
    assert str(error) == f"the frontier {path} failed: there is no room left to write"
    assert settled > 5
    assert await frontier.check() == ()
    assert (await frontier.stats()).visits == settled
    assert await frontier.marks() == {"sink": {"n": settled}}
    await frontier.close()

    frontier = await SqliteFrontier.open(path, clock=CLOCK)
    assert await frontier.end_leases(2.0) in {0, 1}
    assert await frontier.check() == ()
    (claim,) = (await frontier.claim("v", 9e9, 1, 1)).claims
    new = tuple(found(10_000 + i) for i in range(2_000))
    done = await frontier.settle([Settlement(claim.host, claim.token, visits(claim), new, visits=1)], {}, 9.0)
    assert (done.stale, done.new) == ((), 2_000)
    await frontier.close()


FILL_UNDER_LIMIT = """
    import asyncio, resource, sys
    from test_sqlite import CLOCK, fill
    from comity.frontier.sqlite import SqliteFrontier

    async def main():
        frontier = await SqliteFrontier.open(sys.argv[1], clock=CLOCK)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
        settled, error = await fill(frontier)
        print(settled, error, flush=True)
        await frontier.close()

    asyncio.run(main())
"""


def test_a_limit_on_file_sizes_is_a_clear_error_and_loses_nothing(path: Path) -> None:
    done = subprocess.run(child(FILL_UNDER_LIMIT, path), capture_output=True, text=True, check=True, env=child_env())
    settled, _, said = done.stdout.partition(" ")
    assert said.strip() == f"the frontier {path} failed: this process may not write files any larger"
    stats, marks = asyncio.run(look(path))
    assert stats.visits == int(settled) > 2
    assert marks == {"sink": {"n": int(settled)}}


async def look(path: Path, *visited_keys: str) -> tuple[Stats, Mapping[str, Mark]]:
    """What a file holds, found to be consistent, with these URLs visited exactly once."""
    frontier = await SqliteFrontier.open(path, clock=CLOCK)
    stats, marks = await frontier.stats(), await frontier.marks()
    assert await frontier.check() == ()
    for key in visited_keys:
        entry = await frontier.get(key)
        assert entry is not None
        assert (entry.status, entry.version) == (Status.FETCHED, 1)
    await frontier.close()
    return stats, marks


def child(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]


def child_env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}


# --------------------------------------------------------------------------------------------------------------- killed

CRAWL_UNTIL_KILLED = """
    import asyncio, sys
    from test_sqlite import CLOCK, found, visits
    from comity.frontier.sqlite import SqliteFrontier
    from comity.model import Deletion, RobotsFile, Settlement

    async def main():
        frontier = await SqliteFrontier.open(sys.argv[1], clock=CLOCK, rest_s=lambda host, state: 0.0)
        await frontier.end_leases(0.0)
        await frontier.add([found(n, f"h{n}.example") for n in range(5)], 1.0)
        n = (await frontier.stats()).visits
        while True:
            claims = (await frontier.claim(sys.argv[2], 9e9, 3, 2)).claims
            settlements, done = [], []
            for claim in claims:
                n += len(claim.entries)
                done += [entry.key for entry in claim.entries]
                settlements.append(Settlement(
                    claim.host, claim.token, visits(claim),
                    tuple(found(100 + 3 * n + i, f"h{(n + i) % 7}.example") for i in range(5)),
                    deletions=(Deletion(f"{n}", "url", 1.0),), give_back=True, visits=len(claim.entries),
                ))
            await frontier.settle(settlements, {"sink": {"n": n}}, 2.0)
            print(n, *done, flush=True)

    asyncio.run(main())
"""


@pytest.mark.slow
def test_a_killed_crawl_loses_nothing_settled_and_half_does_nothing(path: Path) -> None:
    """kill -9 at random moments, again and again on one file: what the child was told is settled is there, marks tell
    exactly what the entries tell, and every counter is right."""
    chance = random.Random(7)
    keys: list[str] = []
    for turn in range(6):
        told = 0
        with subprocess.Popen(
            child(CRAWL_UNTIL_KILLED, path, f"w{turn}"), stdout=subprocess.PIPE, text=True, env=child_env()
        ) as crawl:
            assert crawl.stdout is not None
            lines = [crawl.stdout.readline() for _ in range(chance.randrange(1, 60))]
            crawl.kill()
            lines += crawl.stdout.readlines()  # settled before the kill reached it
        for line in lines:
            if line.endswith("\n"):
                n, *done = line.split()
                told = int(n)
                keys += done
        stats, marks = asyncio.run(look(path, *keys))
        assert 0 < told <= stats.visits <= told + 6
        assert stats.by_status["FETCHED"] == stats.visits
        assert marks == {"sink": {"n": stats.visits}}
    assert len(keys) == len(set(keys)) > 100


# ----------------------------------------------------------------------------------------------------------- neighbours


async def test_people_look_and_change_things_beside_a_crawl(path: Path) -> None:
    """Nobody sees a locked database, and everything done by either is there."""
    frontier = await SqliteFrontier.open(path, clock=CLOCK)
    await frontier.add([found(n, f"h{n % 5}.example") for n in range(300)], 1.0)
    ledger = await SqliteLedger.open(path, clock=CLOCK)

    async def crawl() -> int:
        done = 0
        while claims := (await frontier.claim("w", 5.0, 3, 2)).claims:
            await frontier.settle(
                [Settlement(c.host, c.token, visits(c), give_back=True, visits=len(c.entries)) for c in claims], {}, 5.0
            )
            done += sum(len(claim.entries) for claim in claims)
        return done

    async def people() -> int:
        changed = 0
        for n in range(0, 300, 10):
            assert await ledger.get(found(n, f"h{n % 5}.example").key) is not None
            changed += await ledger.requeue([found(n, f"h{n % 5}.example").key], 50.0)
            await ledger.set_next(found(n + 1, f"h{(n + 1) % 5}.example").key, None)
            await ledger.forget(found(n + 2, f"h{(n + 2) % 5}.example").key)
            await ledger.stats()
        return changed

    await asyncio.gather(crawl(), people())
    assert await ledger.check() == await frontier.check() == ()
    assert (await ledger.stats()).urls == 270
    await ledger.close()
    await frontier.close()


async def test_reading_in_pages_leaves_nothing_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that lie side by side, pages of two rows."""
    monkeypatch.setattr("comity.frontier.ledger.SCANNED_AT_ONCE", 2)
    frontier = await SqliteFrontier.open(path, clock=CLOCK, slot=lambda key: 0)
    await frontier.add([found(n, f"h{n % 3}.example") for n in range(21)], 1.0)
    assert len(await frontier.find(status=Status.DISCOVERED)) == len(await frontier.find()) == 21
    assert await frontier.check() == ()
    await frontier.close()


OPEN_AT_ONCE = """
    import asyncio, sys
    from test_sqlite import CLOCK, found, visits
    from comity.frontier.sqlite import SqliteFrontier
    from comity.model import Settlement

    async def main():
        sys.stdin.readline()
        frontier = await SqliteFrontier.open(sys.argv[1], clock=CLOCK)
        await frontier.add([found(n, f"h{n}.example") for n in range(100)], 1.0)
        while claims := (await frontier.claim(sys.argv[2], 5.0, 5, 9)).claims:
            await frontier.settle(
                [Settlement(c.host, c.token, visits(c), give_back=True, visits=len(c.entries)) for c in claims], {}, 5.0
            )
            print(*[entry.key for claim in claims for entry in claim.entries], flush=True)
        await frontier.close()

    asyncio.run(main())
"""


def test_four_processes_share_one_file_from_the_first_moment(path: Path) -> None:
    """B109: no "locked" error, nothing handed out twice."""
    crawls = [
        subprocess.Popen(
            child(OPEN_AT_ONCE, path, f"w{n}"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=child_env(),
        )
        for n in range(4)
    ]
    for crawl in crawls:
        assert crawl.stdin is not None
        crawl.stdin.write("go\n")
        crawl.stdin.flush()
    keys = [key for crawl in crawls for key in crawl.communicate()[0].split()]
    assert [crawl.returncode for crawl in crawls] == [0] * 4
    assert sorted(keys) == sorted(found(n, f"h{n}.example").key for n in range(100))
    assert asyncio.run(look(path, *keys))[0].visits == 100


# ------------------------------------------------------------------------------------------------------ thread and loop


class CountingClock(SystemClock):
    """Knows how many hold it."""

    def __init__(self) -> None:
        super().__init__()
        self.holders = 0
        self.holds = 0

    def busy(self) -> AbstractContextManager[None]:
        @contextmanager
        def held() -> Iterator[None]:
            self.holders += 1
            self.holds += 1
            try:
                yield
            finally:
                self.holders -= 1

        return held()


async def test_virtual_time_stands_still_while_the_store_works(path: Path) -> None:
    clock = CountingClock()
    frontier = await SqliteFrontier.open(path, clock=clock)
    before = clock.holds
    work = asyncio.create_task(frontier.add([found(1)], 1.0))
    await asyncio.sleep(0)
    assert clock.holders == 1
    await work
    assert (clock.holders, clock.holds) == (0, before + 1)
    await frontier.close()


def urls_in(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        count: int = connection.execute("select count(*) from url").fetchone()[0]
    return count


async def test_a_cancelled_settle_is_done_to_its_end_first(path: Path) -> None:
    clock = CountingClock()
    frontier = await SqliteFrontier.open(path, clock=clock)
    many = tuple(found(n) for n in range(2_000))
    work = asyncio.create_task(frontier.settle([Settlement("a.example", 0, discoveries=many)], {"s": {"n": 1}}, 1.0))
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert urls_in(path) == 2_000  # already, without waiting for anything
    assert clock.holders == 0
    assert await frontier.marks() == {"s": {"n": 1}}
    await frontier.close()


async def test_a_failed_settle_leaves_nothing_behind(path: Path) -> None:
    """Not even in the memory of the process: ids of hosts that were never committed are not used again."""
    frontier = await SqliteFrontier.open(path, clock=CLOCK)
    broken = replace(found(2, "c.example"), metadata={"k": (object(),)})
    with pytest.raises(TypeError):
        await frontier.settle([Settlement("x", 0, discoveries=(found(1, "b.example"), broken))], {"s": {"n": 1}}, 1.0)
    assert await frontier.marks() == {}
    await frontier.add([found(1, "d.example"), found(1, "b.example")], 1.0)
    assert await frontier.check() == ()
    assert {entry.host for entry in await frontier.find()} == {"b.example", "d.example"}
    await frontier.close()


def test_a_checkpoint_empties_the_log(path: Path) -> None:
    prepare(path)
    with closing(Database(path)) as writer, closing(Database(path)) as tidier:
        for n in range(50):
            with writer.writing():
                writer.run("insert into host (key) values (?)", (f"h{n}",))
        in_log, in_file = writer.run("pragma wal_checkpoint(passive)").fetchone()[1:]
        assert in_log == in_file > 50
        assert tidier.checkpoint()
        with writer.writing():
            writer.run("insert into host (key) values ('last')")
        assert writer.run("pragma wal_checkpoint(passive)").fetchone()[1] < 10


# ---------------------------------------------------------------------------------------------------------------- locks


def test_a_second_crawl_is_kept_off_a_directory_and_told_who_is_there(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path):
        assert holder(tmp_path) == os.getpid()
        with pytest.raises(Locked) as refused:
            DirectoryLock(tmp_path)
        assert refused.value.pid == os.getpid()
        assert str(refused.value) == f"another crawl (process {os.getpid()}) is at work in {tmp_path}"
    assert holder(tmp_path) is None
    with DirectoryLock(tmp_path):
        assert holder(tmp_path) == os.getpid()


HOLD_A_LOCK = """
    import sys
    from comity.frontier.lock import DirectoryLock
    lock = DirectoryLock(sys.argv[1])
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_a_killed_crawl_is_free(tmp_path: Path) -> None:
    with subprocess.Popen(
        child(HOLD_A_LOCK, tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as crawl:
        assert crawl.stdout is not None
        assert crawl.stdout.readline() == "held\n"
        with pytest.raises(Locked) as refused:
            DirectoryLock(tmp_path)
        assert refused.value.pid == holder(tmp_path) == crawl.pid
        crawl.kill()
    assert holder(tmp_path) is None
    DirectoryLock(tmp_path).release()


def test_asking_who_holds_a_directory_makes_nothing(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    assert holder(tmp_path / "nowhere") is None
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot be written"):
        DirectoryLock(tmp_path / "nowhere")


def test_writers_stand_in_line(tmp_path: Path) -> None:
    first, second = WriterLock(tmp_path / "w"), WriterLock(tmp_path / "w")
    with first, (tmp_path / "w").open() as probe, pytest.raises(BlockingIOError):
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with second, (tmp_path / "w").open() as probe, pytest.raises(BlockingIOError):
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    first.close()
    second.close()
    with (tmp_path / "w").open() as probe:
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
