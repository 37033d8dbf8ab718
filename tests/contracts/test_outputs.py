"""One suite over every sink, then what is particular to each.

A sink is named in `SINKS` with the two things in which file sinks may differ: whether lines that were never settled are
cut off at open, and how a visit comes to be written.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.model import (
    Access,
    Cause,
    Deletion,
    Directives,
    Entry,
    Failed,
    Failure,
    Found,
    HttpError,
    Kind,
    Link,
    Mark,
    NotModified,
    Outcome,
    Page,
    PastVisit,
    Redirect,
    Refused,
    Request,
    Status,
    StillFresh,
    Verdict,
    Visit,
    Wire,
)
from comity.outputs import crawllog, files, rows
from comity.outputs.crawllog import CrawlLog
from comity.outputs.files import SinkFull
from comity.outputs.jsonl import JsonlSink

DOCS = Path(__file__).parents[2] / "docs"


# ------------------------------------------------------------------------------------------------------------ builders


def a_visit(path: str = "/", *, outcome: Outcome | None = None, found: Found | None = None, **after: Any) -> Visit:
    url = f"https://a.example{path}"
    entry = Entry(url, url, "a.example", version=3, place="0:0")
    if outcome is None:
        outcome = Page(200, (), b"<p>hello")
        found = found or Found("html", title="A title", text="hello", media_type="text/html", charset="utf-8")
    after = {"status": Status.FETCHED, "due_at": 2000.0, "next_rule": "fetched"} | after
    wire = Wire(b"GET", b"HTTP/1.1", 99.5, 100.0, heard_at=99.75, service_s=0.5, address="192.0.2.1", body_bytes=8)
    return Visit(
        entry,
        outcome,
        msgspec.structs.replace(entry, **after),
        100.0,
        found=found,
        wire=None if isinstance(outcome, Refused | StillFresh) else wire,
    )


def a_deletion(seq: int) -> Deletion:
    return Deletion(id=f"{seq:064}", url=f"https://a.example/{seq}", at=5.0, cause=Cause.GONE, seq=seq, version=4)


def lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def urls(path: Path) -> list[str]:
    """The visited URLs' paths, in order."""
    return [
        row["url"].removeprefix("https://a.example")
        for row in lines(path)
        if row.get("event", "visit") == "visit" and not row.get("deleted")
    ]


class Disk:
    """`os.write` on a disk with room for so many bytes more, which takes them in pieces."""

    def __init__(self, room: int, piece: int = 10**9, code: int = errno.ENOSPC) -> None:
        self.room, self.piece, self.code = room, piece, code

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self.room <= 0:
            raise OSError(self.code, os.strerror(self.code))
        written = os.write(fd, data[: min(self.room, self.piece)])
        self.room -= written
        return written


AnySink = JsonlSink | CrawlLog


@dataclass(frozen=True)
class Sort:
    make: Callable[..., AnySink]
    keeps_unsettled: bool

    async def write(self, sink: AnySink, visits: Sequence[Visit]) -> Mark:
        if isinstance(sink, CrawlLog):
            for visit in visits:
                sink.visited(visit)
        return await sink.write(visits)


SINKS = {
    "jsonl": Sort(lambda folder, **options: JsonlSink(folder / "pages-0.jsonl", **options), keeps_unsettled=False),
    "crawllog": Sort(lambda folder, **options: CrawlLog(folder, "0", lambda: 1.0, **options), keeps_unsettled=True),
}


@pytest.fixture(params=list(SINKS.values()), ids=list(SINKS))
def sort(request: pytest.FixtureRequest) -> Sort:
    assert isinstance(request.param, Sort)
    return request.param


# ----------------------------------------------------------------------------------------------------------- every sink


async def test_the_mark_stands_just_after_the_visits(sort: Sort, tmp_path: Path) -> None:
    sink = sort.make(tmp_path)
    await sink.open(None)
    mark = await sort.write(sink, [a_visit("/1"), a_visit("/2")])
    assert mark == {"file": 0, "offset": sink.path.stat().st_size}
    assert urls(sink.path) == ["/1", "/2"]
    assert await sink.write([]) == mark
    assert await sink.delete([]) == mark
    await sink.close()


async def test_the_bytes_are_in_the_kernel_when_write_returns(sort: Sort, tmp_path: Path) -> None:
    sink = sort.make(tmp_path)
    await sink.open(None)
    await sort.write(sink, [a_visit("/1")])
    assert urls(sink.path) == ["/1"]  # not closed, not flushed by anybody


async def test_resuming_goes_on_after_the_mark(sort: Sort, tmp_path: Path) -> None:
    sink = sort.make(tmp_path)
    await sink.open(None)
    mark = await sort.write(sink, [a_visit("/1")])
    await sort.write(sink, [a_visit("/2")])  # never settled
    await sink.close()
    sink = sort.make(tmp_path)
    await sink.open(mark)
    await sort.write(sink, [a_visit("/2"), a_visit("/3")])
    assert urls(sink.path) == (["/1", "/2", "/2", "/3"] if sort.keeps_unsettled else ["/1", "/2", "/3"])


@pytest.mark.parametrize("torn", ['{"v":1', "x", "\x00" * 4096], ids=["half a line", "a byte", "a hole"])
async def test_a_torn_last_line_is_removed(sort: Sort, tmp_path: Path, torn: str) -> None:
    """B172."""
    sink = sort.make(tmp_path)
    await sink.open(None)
    mark = await sort.write(sink, [a_visit("/1")])
    await sink.close()
    with sink.path.open("a") as file:
        file.write(torn)
    sink = sort.make(tmp_path)
    await sink.open(mark)
    assert sink.opened.cut_bytes == len(torn)
    await sort.write(sink, [a_visit("/2")])
    assert urls(sink.path) == ["/1", "/2"]


async def test_a_file_shorter_than_its_mark_says_so_and_goes_on_with_whole_lines(sort: Sort, tmp_path: Path) -> None:
    """After a power cut the settled bytes may be missing; no line is torn and none runs into the next."""
    sink = sort.make(tmp_path)
    await sink.open(None)
    await sort.write(sink, [a_visit("/1")])
    mark = await sort.write(sink, [a_visit("/2")])
    await sink.close()
    os.truncate(sink.path, mark["offset"] - 5)
    sink = sort.make(tmp_path)
    await sink.open(mark)
    await sort.write(sink, [a_visit("/3")])
    assert urls(sink.path) == ["/1", "/3"]
    assert sink.opened.missing_bytes > 5 if not sort.keeps_unsettled else sink.opened.cut_bytes > 5


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT], ids=errno.errorcode.get)
@pytest.mark.parametrize("piece", [10**9, 7], ids=["whole writes", "short writes"])
async def test_a_full_disk_leaves_whole_lines_and_a_true_mark(
    sort: Sort, tmp_path: Path, code: int, piece: int
) -> None:
    disk = Disk(2000, piece, code)
    sink = sort.make(tmp_path, write=disk.write)
    await sink.open(None)
    visit, mark, written = a_visit("/1"), {"file": 0, "offset": 0}, 0
    full: SinkFull | None = None
    while full is None:
        try:
            mark = await sort.write(sink, [visit])
            written += 1
        except SinkFull as error:
            full = error
    assert full.path == sink.path
    assert full.reason == files.FULL[code]
    assert str(full) == f"cannot write {sink.path}: {files.FULL[code]}"
    assert isinstance(full, OSError)
    assert full.errno == code
    assert sink.path.stat().st_size == mark["offset"]
    assert len(urls(sink.path)) == written > 0
    disk.room = 10**9  # somebody made room
    await sort.write(sink, [a_visit("/2")])
    assert urls(sink.path) == ["/1"] * written + ["/2"]


@given(room=st.integers(0, 6000), piece=st.integers(1, 5000), batch=st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_a_batch_is_written_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, room: int, piece: int, batch: int
) -> None:
    disk = Disk(room, piece)
    file = files.AppendFile(tmp_path_factory.mktemp("x") / "f", write=disk.write)
    data = files.line({"n": "x" * 500}) * batch
    for count in range(1000):
        try:
            assert file.append(data) == count * len(data)
        except SinkFull:
            break
    assert file.path.read_bytes() == data * (room // len(data))
    assert file.end == file.path.stat().st_size
    file.close()


async def test_when_even_the_cut_fails_the_next_write_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(30)
    file = files.AppendFile(tmp_path / "f", write=disk.write)
    file.append(b"first\n")

    def no(*_: object) -> None:
        raise OSError(errno.EIO, "I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", no)
        with pytest.raises(SinkFull):
            file.append(b"x" * 50 + b"\n")
        assert file.path.read_bytes() == b"first\n" + b"x" * 24
    disk.room = 1000
    assert file.append(b"second\n") == 6
    assert file.path.read_bytes() == b"first\nsecond\n"


async def test_any_other_error_names_the_file_and_is_undone(sort: Sort, tmp_path: Path) -> None:
    disk = Disk(10**6, code=errno.EIO)
    sink = sort.make(tmp_path, write=disk.write)
    await sink.open(None)
    mark = await sort.write(sink, [a_visit("/1")])
    disk.room = 20
    with pytest.raises(OSError, match=r"pages-0|crawl-0") as error:
        await sort.write(sink, [a_visit("/2")])
    assert not isinstance(error.value, SinkFull)
    assert sink.path.stat().st_size == mark["offset"]


CHILD = """
    import asyncio, resource, sys
    sys.path[:0] = {path!r}
    from pathlib import Path
    from test_outputs import SINKS, a_visit

    async def main():
        sort = SINKS[{name!r}]
        sink = sort.make(Path({folder!r}))
        await sink.open(None)
        print("ready", flush=True)
        number = 0
        while True:
            number += 1
            mark = await sort.write(sink, [a_visit(f"/{{number}}"), a_visit(f"/{{number}}b")])
            print(mark["offset"], flush=True)

    if {limit}:
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    try:
        asyncio.run(main())
    except OSError as error:
        print(type(error).__name__, error.reason, flush=True)
"""


def a_child(name: str, folder: Path, limit: int = 0) -> subprocess.Popen[str]:
    program = CHILD.format(path=[str(Path(__file__).parent)], name=name, folder=str(folder), limit=limit)
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", SINKS)
def test_a_limit_on_file_size_stops_a_real_process_cleanly(name: str, tmp_path: Path) -> None:
    """RLIMIT_FSIZE: the kernel writes part of the batch, then answers EFBIG."""
    child = a_child(name, tmp_path, limit=5000)
    out, _ = child.communicate(timeout=60)
    *_, last_mark, end = out.splitlines()
    assert child.returncode == 0
    assert end == f"SinkFull {files.FULL[errno.EFBIG]}"
    path = next(tmp_path.iterdir())
    size = path.stat().st_size
    # The log's unit is the event: the first visit of the last pair may have found room.
    assert size == int(last_mark) if name == "jsonl" else int(last_mark) <= size < 5000
    assert len(urls(path)) >= 2


@pytest.mark.parametrize("name", SINKS)
def test_a_killed_process_loses_nothing_it_had_a_mark_for(name: str, tmp_path: Path) -> None:
    child = a_child(name, tmp_path)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    for _ in range(50):
        mark = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    mark = max([mark, *(int(line) for line in child.stdout.read().split("\n")[:-1])])
    child.wait()
    path = next(tmp_path.iterdir())
    assert path.stat().st_size >= mark
    file, _ = files.open_at(path, mark)
    file.close()
    assert len(urls(path)) >= 100
    assert len(urls(path)) % 2 == 0


async def test_text_that_utf_8_cannot_carry_costs_no_neighbour(sort: Sort, tmp_path: Path) -> None:
    """B174: a lone surrogate, NUL, line ends of all kinds, and a number that JSON does not have."""
    odd = "a\ud800b\u0000\u2028\u2029\u0085\nc\ud83d\ude00"
    metadata = {odd: (odd,)}
    bad = a_visit("/bad", found=Found("html", title=odd, text=odd), outcome=Page(200, (), b""), metadata=metadata)
    bad = msgspec.structs.replace(bad, after=msgspec.structs.replace(bad.after, detail=odd, due_at=float("inf")))
    sink = sort.make(tmp_path)
    await sink.open(None)
    await sort.write(sink, [a_visit("/1"), bad, a_visit("/2")])
    assert urls(sink.path) == ["/1", "/bad", "/2"]
    row = next(row for row in lines(sink.path) if row.get("url", "").endswith("/bad"))
    assert row["detail"] == "a\ufffdb\u0000\u2028\u2029\u0085\nc\U0001f600"
    assert row.get("next_at") is None


async def test_deletions_are_written_with_their_order(sort: Sort, tmp_path: Path) -> None:
    sink = sort.make(tmp_path)
    await sink.open(None)
    mark = await sink.delete([a_deletion(1), a_deletion(2)])
    assert mark["offset"] == sink.path.stat().st_size
    last = lines(sink.path)[-2:]
    assert [row["id"] for row in last] == [a_deletion(1).id, a_deletion(2).id]
    assert [row["cause"] for row in last] == ["gone", "gone"]


async def test_an_unwritable_place_is_an_error_that_names_it(sort: Sort, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sink = sort.make(tmp_path / "file")
    with pytest.raises(OSError, match="file"):
        await sink.open(None)


async def test_close_twice_is_once(sort: Sort, tmp_path: Path) -> None:
    sink = sort.make(tmp_path)
    await sink.open(None)
    await sink.close()
    await sink.close()
    assert sink.path.exists()


# ---------------------------------------------------------------------------------------------------------------- JSONL


async def test_nothing_settled_and_a_file_in_the_way_is_set_aside_never_destroyed(tmp_path: Path) -> None:
    """B173. The same happens to the first rows of a crawl that was killed before its first settle."""
    path = tmp_path / "pages-0.jsonl"
    for number in (1, 2):
        path.write_text(f"precious {number}\n")
        sink = JsonlSink(path)
        await sink.open(None)
        assert sink.opened.aside == tmp_path / f"pages-0.jsonl.unsettled-{number}"
        assert sink.opened.aside.read_text() == f"precious {number}\n"
        assert path.read_text() == ""
        await sink.close()


async def test_a_file_that_its_owner_moved_away_begins_anew(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "pages-0.jsonl")
    await sink.open({"file": 0, "offset": 12345})
    assert sink.opened == files.Opened()
    assert await sink.write([]) == {"file": 0, "offset": 0}
    mark = await sink.write([a_visit("/1")])
    await sink.close()
    await sink.open(mark)
    assert urls(sink.path) == ["/1"]


async def test_a_sink_that_is_not_open_says_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="jsonl is not open"):
        await JsonlSink(tmp_path / "x").write([a_visit()])


# ----------------------------------------------------------------------------------------------------------------- rows


def test_every_row_has_every_field_in_the_documented_order() -> None:
    row = rows.row(a_visit(), rows.Fields(body="html"))
    assert list(row) == [column.name for column in rows.COLUMNS]
    assert list(rows.row(a_visit())) == [column.name for column in rows.COLUMNS if column.name != "html"]
    assert list(rows.row(a_visit(), rows.Fields(body="none"))) == list(row)[:-2]
    assert list(rows.deletion_row(a_deletion(1))) == [column.name for column in rows.DELETION_COLUMNS]
    assert next(iter(row)) == next(iter(rows.deletion_row(a_deletion(1)))) == "v"


TYPES = {"string": str, "number": float, "integer": int, "boolean": bool, "object": dict, "null": type(None)}


@pytest.mark.parametrize(
    "visit",
    [
        a_visit(),
        a_visit(outcome=NotModified(())),
        a_visit(outcome=StillFresh(5.0)),
        a_visit(outcome=Redirect(301, (), "/b", "https://a.example/b"), status=Status.REDIRECTION),
        a_visit(outcome=HttpError(404, ()), failure=Failure.HTTP_404, status=Status.FETCH_ERROR),
        a_visit(outcome=Failed(Failure.DNS, "no such name"), failure=Failure.DNS, detail="no such name"),
        a_visit(outcome=Refused(Cause.ROBOTS, "Disallow: /"), status=Status.ERROR, cause=Cause.ROBOTS, due_at=None),
        a_visit(outcome=Page(206, (), b"", truncated="unasked_206")),
    ],
    ids=lambda visit: type(visit.outcome).__name__,
)
def test_every_value_has_the_documented_type(visit: Visit) -> None:
    row = json.loads(files.line(rows.row(visit, rows.Fields(body="html"))))
    for column in rows.COLUMNS:
        allowed = tuple(TYPES[word] for word in column.type.split(" or "))
        assert isinstance(row[column.name], allowed), column.name
        assert isinstance(row[column.name], bool) <= (bool in allowed)


def test_a_page_as_a_row() -> None:
    visit = a_visit(
        "/p",
        outcome=Page(200, (), "caffè".encode("latin-1")),
        found=Found(
            "html",
            links=(Link("https://a.example/x", "https://a.example/x", "a.example"),),
            links_left_out=2,
            title="T",
            text="caffè",
            language="it",
            charset="iso-8859-1",
            media_type="text/html",
            canonical="https://a.example/p",
            directives=Directives(noindex=True),
        ),
        depth=2,
        via="https://a.example/",
        digest="d" * 64,
        metadata={"source": ("catalogue", "x")},
        history=(PastVisit(100.0, Status.FETCHED, changed=True),),
    )
    row = json.loads(files.line(rows.row(visit, rows.Fields(body="html"))))
    assert row == {
        "v": 1,
        "id": hashlib.sha256(b"https://a.example/p").hexdigest(),  # T-L
        "url": "https://a.example/p",
        "key": "https://a.example/p",
        "host": "a.example",
        "at": 100.0,
        "status": "FETCHED",
        "cause": None,
        "failure": None,
        "detail": None,
        "http_status": 200,
        "redirect_to": None,
        "depth": 2,
        "hops": 0,
        "via": "https://a.example/",
        "kind": "html",
        "media_type": "text/html",
        "charset": "iso-8859-1",
        "language": "it",
        "title": "T",
        "canonical": "https://a.example/p",
        "noindex": True,
        "links": 3,
        "truncated": None,
        "digest": "d" * 64,
        "bytes": 8,
        "changed": True,
        "metadata": {"source": ["catalogue", "x"]},
        "next_at": 2000.0,
        "next_rule": "fetched",
        "version": 4,
        "deleted": False,
        "text": "caffè",
        "html": "caffè",
    }


@pytest.mark.parametrize("version", [3, 4], ids=["not counted up yet", "counted up"])
def test_the_version_grows_with_every_visit(version: int) -> None:
    assert rows.row(a_visit(version=version))["version"] == 4


@pytest.mark.parametrize(
    ("location", "target", "shown"),
    [
        ("/b", "https://a.example/b", "https://a.example/b"),
        ("javascript:1", None, "javascript:1"),
        (None, None, None),
    ],
)
def test_a_redirect_is_shown_resolved(location: str | None, target: str | None, shown: str | None) -> None:
    assert rows.row(a_visit(outcome=Redirect(301, (), location, target)))["redirect_to"] == shown


def test_the_status_code_is_this_visits_and_not_a_remembered_one() -> None:
    refused = a_visit(outcome=Refused(Cause.SCOPE, "depth"), http_status=200)
    assert rows.row(refused)["http_status"] is None
    assert rows.row(a_visit(outcome=NotModified(())))["http_status"] == 304


def test_unchanged_history_says_nothing_of_change() -> None:
    assert rows.row(a_visit())["changed"] is None
    past = (PastVisit(50.0, Status.FETCHED, changed=True),)
    visit = a_visit(history=past)
    visit = msgspec.structs.replace(visit, entry=msgspec.structs.replace(visit.entry, history=past))
    assert rows.row(visit)["changed"] is None  # it is the visit before that saw a change


def test_a_charset_python_does_not_know_is_read_as_utf_8() -> None:
    visit = a_visit(outcome=Page(200, (), "é".encode()), found=Found("html", charset="x-user-defined"))
    assert rows.row(visit, rows.Fields(body="html"))["html"] == "é"


# --------------------------------------------------------------------------------------------------------- field filter


def test_the_filter_is_off_by_default() -> None:
    """P15."""
    visit = a_visit(outcome=Page(200, (), b""), found=Found("html", text="write to me@a.example"))
    assert rows.row(visit)["text"] == "write to me@a.example"


def test_dropped_fields_are_in_no_row() -> None:
    fields = rows.Fields(drop=frozenset({"title", "url", "metadata"}))
    assert not {"title", "url", "metadata"} & rows.row(a_visit(), fields).keys()
    assert "url" not in rows.deletion_row(a_deletion(1), fields)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": frozenset({"tittle"})}, "no such field: tittle"),
        ({"drop": frozenset({"id"})}, "cannot be dropped: id"),
        ({"mask": frozenset({"name"})}, "no such mask: name"),
    ],
)
def test_a_filter_that_cannot_work_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows.Fields(**options)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to jane.doe+x@mail.a.example.", "write to [email]."),
        ("<a href=mailto:me@a.example>", "<a href=mailto:[email]>"),
        ("thư: hỏi@ví-dụ.example", "thư: [email]"),
        ("no@where", "no@where"),
        ("@handle and a@", "@handle and a@"),
        ("call +84 912 345 678 now", "call [phone] now"),
        ("(+44) 20 7946 0000", "[phone]"),
        ("tel 0912.345.678", "tel [phone]"),
        ("03-1234-5678", "[phone]"),
        ("(555) 123-4567", "[phone]"),
        ("13812345678", "[phone]"),
        ("0049 30 1234567", "[phone]"),
        ("2024-01-01 10:00", "2024-01-01 10:00"),
        ("1.000.000.000 đ", "1.000.000.000 đ"),
        ("ISBN 978-3-16-148410-0", "ISBN 978-3-16-148410-0"),
        ("order 4711, 12345 pieces", "order 4711, 12345 pieces"),
        ("0.123456789012", "0.123456789012"),
    ],
)
def test_masks_hide_what_they_name_and_leave_the_rest(text: str, masked: str) -> None:
    """P15."""
    visit = a_visit(outcome=Page(200, (), text.encode()), found=Found("html", title=text, text=text))
    row = rows.row(visit, rows.Fields(body="html", mask=frozenset({"email", "phone"})))
    assert [row["title"], row["text"], row["html"]] == [masked] * 3


@pytest.mark.parametrize("unit", ["a", "1", "0 ", "a@", "+1-", "a.", "@a.", "(0", "-"])
def test_no_page_makes_a_mask_slow(unit: str) -> None:
    """Linear in the text: 200,000 characters in the time of a blink, whatever they are."""
    import time

    text = unit * (200_000 // len(unit))
    began = time.process_time()
    rows.row(
        a_visit(outcome=Page(200, (), b""), found=Found("html", text=text)), rows.Fields(mask=frozenset(rows.MASKS))
    )
    assert time.process_time() - began < 3


# ------------------------------------------------------------------------------------------------------------ crawl log

RULE = Verdict(False, Access.RULES, "*", 3, "Disallow: /private/", "f" * 64)


def a_log(folder: Path, **options: Any) -> CrawlLog:
    return CrawlLog(folder, "0", lambda: 1.0, **options)


async def test_the_log_never_forgets_a_request_that_may_have_left(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    await log.open(None)
    mark = await log.write([])
    place = log.asking(Request("https://a.example/1", etag='W/"x"'), "a.example", 5.0, RULE, None)
    del log  # killed: no visit, no close
    log = a_log(tmp_path)
    await log.open(mark)
    event = crawllog.read_at(tmp_path, place)
    assert event is not None
    assert (event["event"], event["url"], event["conditional"]) == ("ask", "https://a.example/1", True)
    opened = lines(log.path)[-1]
    assert (opened["event"], opened["settled"]) == ("opened", mark["offset"])
    assert opened["end"] > mark["offset"]


def test_events_may_come_before_open_and_after_close(tmp_path: Path) -> None:
    """The engine notes its start before any sink is open, and how it ended when all are closed."""
    import asyncio

    async def run() -> None:
        log = a_log(tmp_path)
        log.note("start", 1.0)
        await log.open(None)
        await log.close()
        log.note("end", 2.0, why="done")

    asyncio.run(run())
    assert [event["event"] for event in crawllog.events(tmp_path)] == ["start", "opened", "end"]


async def test_a_closed_log_holds_no_file(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    await log.open(None)
    await log.close()
    log.note("end", 2.0)
    log.path.rename(tmp_path / "taken away")
    log.note("late", 3.0)
    assert [event["event"] for event in crawllog.events(tmp_path)] == ["late"]


def test_a_story_is_read_backwards_from_its_place(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    place: str | None = None
    for at in (10.0, 20.0, 30.0):
        log.note("hold", at, host="b.example")  # others' events lie between
        entry = Entry("https://a.example/", "https://a.example/", "a.example", place=place)
        asked = log.asking(Request(entry.url), "a.example", at, None, entry.place)
        entry = msgspec.structs.replace(entry, place=asked)
        after = msgspec.structs.replace(entry, status=Status.FETCHED)
        place = log.visited(Visit(entry, Page(200, (), b""), after, at + 1))
    story = crawllog.story(tmp_path, place)
    assert [(event["event"], event["at"]) for event in story] == [
        ("visit", 31.0),
        ("ask", 30.0),
        ("visit", 21.0),
        ("ask", 20.0),
        ("visit", 11.0),
        ("ask", 10.0),
    ]
    assert story[0]["place"] == place
    assert "prev" not in story[-1]
    assert crawllog.story(tmp_path, place, 2) == story[:2]
    assert crawllog.story(tmp_path, None) == ()


@pytest.mark.parametrize("moved", [False, True], ids=["entry holds its last visit", "entry holds its ask"])
def test_a_visit_follows_its_ask_however_the_entry_remembers_it(tmp_path: Path, moved: bool) -> None:
    log = a_log(tmp_path)
    first = log.note("x", 0.0)
    entry = Entry("https://a.example/", "https://a.example/", "a.example", place=first)
    asked = log.asking(Request(entry.url), "a.example", 1.0, None, entry.place)
    if moved:
        entry = msgspec.structs.replace(entry, place=asked)
    place = log.visited(Visit(entry, NotModified(()), entry, 2.0))
    events = crawllog.story(tmp_path, place)
    assert [event["event"] for event in events] == ["visit", "ask", "x"]


def test_a_refusal_needs_no_request_and_follows_the_visit_before(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    visit = a_visit(
        "/private/x",
        outcome=Refused(Cause.ROBOTS, "Disallow: /private/", RULE),
        status=Status.ERROR,
        cause=Cause.ROBOTS,
        due_at=None,
        next_rule="never",
    )
    visit = msgspec.structs.replace(visit, verdict=RULE, deletion=a_deletion(0), refused_links={"scope": 2})
    event = crawllog.read_at(tmp_path, log.visited(visit))
    assert event == {
        "event": "visit",
        "v": 1,
        "at": 100.0,
        "url": "https://a.example/private/x",
        "host": "a.example",
        "kind": "page",
        "old": "DISCOVERED",
        "new": "ERROR",
        "cause": "robots",
        "outcome": "refused",
        "rule": "Disallow: /private/",
        "verdict": {
            "allowed": False,
            "access": "rules",
            "group": "*",
            "line": 3,
            "rule": "Disallow: /private/",
            "digest": "f" * 64,
        },
        "depth": 0,
        "version": 4,
        "refused": {"scope": 2},
        "deletion": True,
        "next_rule": "never",
        "prev": "0:0",
    }


def test_robots_and_its_redirects_are_answers(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    request = Request("https://a.example/robots.txt", Kind.ROBOTS)
    wire = a_visit().wire
    assert wire is not None
    asked = log.asking(request, "a.example", 1.0, None, None)
    busy = HttpError(429, (("retry-after", "120"),))
    event = crawllog.read_at(tmp_path, log.heard(request, "a.example", busy, wire, origin="https://a.example", at=7))
    assert event == {
        "event": "answer",
        "v": 1,
        "at": 100.0,  # a fact never takes the place of the event's own field
        "url": "https://a.example/robots.txt",
        "host": "a.example",
        "kind": "robots",
        "outcome": "http_error",
        "http": 429,
        "retry_after": "120",
        "started_at": 99.5,
        "heard_at": 99.75,
        "finished_at": 100.0,
        "service_s": 0.5,
        "address": "192.0.2.1",
        "bytes": 8,
        "prev": asked,
        "origin": "https://a.example",
    }
    event = crawllog.read_at(tmp_path, log.heard(request, "a.example", Page(200, (), b""), wire))
    assert event is not None
    assert event["digest"] == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert "prev" not in event


def test_a_fact_of_any_type_can_be_noted(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    place = log.note("start", 1.0, folder=tmp_path, words={"a"}, number=2**70, verdict=RULE, none=None)
    event = crawllog.read_at(tmp_path, place)
    assert event is not None
    assert event["folder"] == str(tmp_path)
    assert event["verdict"]["line"] == 3
    assert event["number"] == 2**70


@pytest.mark.parametrize("place", ["", "0", "0:", "0:x", "0:-1", "0:1", "0:99999", "1:0", "../x:0", ":0", "0:²"])
def test_what_is_no_place_has_no_event(tmp_path: Path, place: str) -> None:
    a_log(tmp_path).note("start", 1.0)
    assert crawllog.read_at(tmp_path, "0:0") is not None
    assert crawllog.read_at(tmp_path, place) is None


def test_a_story_that_bites_its_tail_ends(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    place = log.note("x", 1.0, prev="0:0")
    assert len(crawllog.story(tmp_path, place)) == 1


def test_reading_while_the_log_is_written_leaves_out_the_torn_line(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    log.note("start", 1.0)
    with log.path.open("a") as file:
        file.write('{"event":"vis')
    assert [event["event"] for event in crawllog.events(tmp_path)] == ["start"]


@pytest.mark.parametrize("worker", ["", "a/b", "..", "a:b", "x" * 65])
def test_a_workers_name_is_fit_for_a_file_name(tmp_path: Path, worker: str) -> None:
    with pytest.raises(ValueError, match="worker"):
        CrawlLog(tmp_path, worker, lambda: 0.0)


def test_events_hold_documented_fields_only(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    documented = {
        kind: {column.name for column in crawllog.COLUMNS if kind in column.type or column.type == "all"}
        for kind in ("ask", "answer", "visit")
    }
    wire = a_visit().wire
    assert wire is not None
    for outcome in (
        Page(200, (), b""),
        Redirect(301, (), "/b", None),
        HttpError(503, (("retry-after", "1"),)),
        Failed(Failure.TLS, "no"),
        StillFresh(5.0),
        Refused(Cause.SCOPE, "x", RULE),
        NotModified(()),
    ):
        request = Request("https://a.example/", etag="x")
        log.asking(request, "a.example", 1.0, RULE, "0:0")
        log.heard(request, "a.example", outcome, wire)
        full = a_visit(outcome=outcome, key="https://a.example/K", hops=1, via="x", errors=2, digest="d", detail="d")
        log.visited(msgspec.structs.replace(full, waited_s=1.0, discoveries=(full.entry,), verdict=RULE))
    seen: dict[str, set[str]] = {"ask": set(), "answer": set(), "visit": set()}
    for event in crawllog.events(tmp_path):
        seen[event["event"]] |= event.keys() - {"place"}
    for kind, names in seen.items():
        assert names <= documented[kind]
    left = {kind: documented[kind] - names for kind, names in seen.items()}
    assert left == {"ask": set(), "answer": set(), "visit": {"cause", "changed", "refused", "deletion", "failure"}}


# ----------------------------------------------------------------------------------------------------------------- docs


@pytest.mark.parametrize(
    ("name", "columns"),
    [("row", rows.COLUMNS), ("deletion", rows.DELETION_COLUMNS), ("crawl log", crawllog.COLUMNS)],
)
def test_the_documented_tables_are_the_code(name: str, columns: tuple[rows.Column, ...]) -> None:
    page = (DOCS / "outputs.md").read_text()
    _, _, rest = page.partition(f"<!-- table: {name} -->\n")
    table, end, _ = rest.partition("<!-- end -->")
    assert end
    assert table == rows.table(columns, "in" if name == "crawl log" else "type"), (
        f"docs/outputs.md, table {name!r}, is not what comity.outputs says"
    )
