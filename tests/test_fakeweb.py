"""The fake web by itself: a plain client of a few lines asks, and everything that was done shows in the log and in the
judgement. No part of the crawler takes part."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvloop

from comity.clock import SystemClock, VirtualClock
from comity.fakeweb import (
    Answer,
    Asked,
    Child,
    FakeWeb,
    Line,
    Rules,
    Site,
    fixtures,
    in_thread,
    judge,
    packed,
    page,
    read,
    robots,
    robots_refused,
    robots_unreachable,
    seeded,
    sitemap,
    sitemap_index,
    throttled,
    together,
)
from conftest import StartWeb


@dataclass
class Got:
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """A raw HTTP/1.1 client: one connection, whatever fields it is told to send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, host: str, path: str, method: str = "GET", **fields: str) -> None:
        head = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
        head += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        self.writer.write(("\r\n".join(head) + "\r\n\r\n").encode())

    async def receive(self, method: str = "GET") -> Got:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        status, body = int(head[0].split(" ")[1]), b""
        if headers.get("transfer-encoding") == "chunked":
            while size := int(await self.reader.readline(), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()
        elif method != "HEAD":
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Got(status, headers, body)

    async def get(self, host: str, path: str, method: str = "GET", **fields: str) -> Got:
        self.send(host, path, method, **fields)
        return await asyncio.wait_for(self.receive(method), 5)


@asynccontextmanager
async def client(web: FakeWeb) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


A = "a.localhost"


# ------------------------------------------------------------------------------------------------------------ answers


async def test_one_port_serves_many_hosts_over_one_kept_connection(fakeweb: StartWeb) -> None:
    web = await fakeweb(
        Site(A, {"/": page(title="A")}),
        Site("b.localhost", {"/": page(title="B")}),
        Site("127.0.0.1", {"/": page(title="by address")}),
    )
    async with client(web) as c:
        for host, title in ((f"{A}:{web.port}", b"A"), ("B.Localhost", b"B"), (f"127.0.0.1:{web.port}", b"by address")):
            got = await c.get(host, "/")
            assert (got.status, re.findall(b"<title>(.*)</title>", got.body)) == (200, [title])
        assert (await c.get("unknown.localhost", "/")).status == 421
        assert (await c.get(A, "/nowhere?x=1")).status == 404
    assert web.url(A, "/x") == f"http://a.localhost:{web.port}/x"
    assert [(line.host, line.status) for line in web.lines] == [
        (A, 200),
        ("b.localhost", 200),
        ("127.0.0.1", 200),
        ("unknown.localhost", 421),
        (A, 404),
    ]


async def test_requests_sent_without_waiting_are_answered_in_order(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site(A, {"/slow": Answer(body=b"1", wait_s=0.02), "/fast": Answer(body=b"2")}))
    async with client(web) as c:
        c.send(A, "/slow")
        c.send(A, "/fast")
        c.send(A, "/post", "POST", Content_Length="3")
        c.writer.write(b"abc")
        c.send(A, "/fast")
        assert [(await c.receive()).body[:1] for _ in range(4)] == [b"1", b"2", b"<", b"2"]


async def test_a_sequence_plays_one_answer_a_request_and_the_last_repeats(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site(A, {"/": (Answer(503), Answer(503), page()), "/other": page()}))
    async with client(web) as c:
        assert [(await c.get(A, "/")).status for _ in range(4)] == [503, 503, 200, 200]
        assert (await c.get(A, "/other")).status == 200
    assert [line.number for line in web.asked(A, "/")] == [1, 2, 3, 4]


async def test_a_function_answers_from_the_request_and_the_round(fakeweb: StartWeb) -> None:
    def greet(asked: Asked) -> Answer:
        return Answer(body=f"{asked.method} {asked.headers['x-name']} {asked.number} {asked.round}".encode())

    site = Site(A, {"/": greet})
    web = await fakeweb(site)
    async with client(web) as c:
        assert (await c.get(A, "/", X_Name="one")).body == b"GET one 1 1"
        site.round = 2
        assert (await c.get(A, "/", X_Name="two")).body == b"GET two 2 2"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({}, 200),
        ({"If_None_Match": 'W/"weak"'}, 304),
        ({"If_None_Match": '"weak"'}, 200),  # the W/ was dropped: not what was received
        ({"If_None_Match": 'W/"old"', "If_Modified_Since": "Thu, 01 Jan 2026 00:00:00 GMT"}, 200),  # the tag decides
        ({"If_Modified_Since": "Thu, 01 Jan 2026 00:00:00 GMT"}, 304),
        ({"If_Modified_Since": "Thu, 1 Jan 2026 00:00:00 GMT"}, 200),  # written anew
    ],
)
async def test_only_validators_sent_back_verbatim_save_the_body(
    fakeweb: StartWeb, sent: dict[str, str], status: int
) -> None:
    web = await fakeweb(Site(A, {"/": page(etag='W/"weak"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT")}))
    async with client(web) as c:
        got = await c.get(A, "/", **sent)
    assert (got.status, bool(got.body), got.headers["etag"]) == (status, status == 200, 'W/"weak"')
    line = web.lines[0]
    assert (line.if_none_match, line.if_modified_since) == (sent.get("If_None_Match"), sent.get("If_Modified_Since"))
    assert line.bytes == len(got.body)


async def test_head_is_answered_without_a_body(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site(A, {"/": page(size_bytes=1000), "/drip": Answer(body=b"xyz", chunk_bytes=1)}))
    async with client(web) as c:
        got = await c.get(A, "/", "HEAD")
        assert (got.headers["content-length"], got.body) == ("1000", b"")
        assert (await c.get(A, "/drip", "HEAD")).body == b""
        assert (await c.get(A, "/")).body[-8:] == b"</html>\n"


async def test_bodies_huge_dripping_chunked_and_packed(fakeweb: StartWeb) -> None:
    huge = 5_000_001
    web = await fakeweb(
        Site(
            A,
            {
                "/huge": Answer(body=b"0123456789", size_bytes=huge),
                "/drip": Answer(body=b"drop by drop", chunk_bytes=5, pause_s=0.001),
                "/chunked": Answer(body=b"x" * 100_000, chunked=True),
                "/empty": Answer(chunked=True),
                "/packed": packed(page(title="packed")),
            },
        )
    )
    async with client(web) as c:
        got = await c.get(A, "/huge")
        assert (len(got.body), got.body[-3:]) == (huge, b"890")
        assert (await c.get(A, "/drip")).body == b"drop by drop"
        assert (await c.get(A, "/chunked")).body == b"x" * 100_000
        assert (await c.get(A, "/empty")).body == b""
        got = await c.get(A, "/packed")
        assert (got.headers["content-encoding"], b"packed" in gzip.decompress(got.body)) == ("gzip", True)
    assert [line.bytes for line in web.lines[:3]] == [huge, 12, 100_000]
    assert all(line.whole for line in web.lines)


@pytest.mark.parametrize(
    ("answer", "received"),
    [
        (Answer(body=b"whole body", cut_after_bytes=5), b"Content-Length: 10\r\n"),
        (Answer(body=b"whole body", cut_after_bytes=5, chunked=True), b"5\r\nwhole\r\n"),
        (Answer(raw=b"HTTP/1.1 200 OK\r\nbroken\r\n\r\n"), b"HTTP/1.1 200 OK\r\nbroken\r\n\r\n"),
        (Answer(raw=b"", status=0), b""),
        (Answer(close=True), b"Connection: close"),
    ],
    ids=["cut", "cut chunked", "broken head", "nothing", "close"],
)
async def test_an_answer_that_goes_wrong_ends_the_connection(
    fakeweb: StartWeb, answer: Answer, received: bytes
) -> None:
    web = await fakeweb(Site(A, {"/": answer}))
    async with client(web) as c:
        c.send(A, "/")
        everything = await asyncio.wait_for(c.reader.read(), 5)
    assert received in everything
    assert b"body" not in everything, "cut before"
    assert web.lines[0].whole is (answer.cut_after_bytes is None)
    assert web.lines[0].end_at is not None


async def test_latency_and_hanging(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site(A, {"/late": Answer(wait_s=0.03), "/never": Answer(hang=True)}))
    async with client(web) as c:
        await c.get(A, "/late")
        c.send(A, "/never")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(c.receive(), 0.05)
        late, never = web.lines
        assert late.end_at is not None
        assert late.end_at - late.start_at >= 0.029
        assert never.end_at is None, "still under way"
        assert web.judge().requests == 2
        c.writer.close()
        await asyncio.wait_for(web.when(lambda: never.end_at is not None), 5)
        assert (never.status, never.whole) == (0, False)


async def test_what_is_not_http_is_told_so(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site(A))
    async with client(web) as c:
        c.writer.write(b"HELO a.localhost\r\n\r\n")
        assert (await asyncio.wait_for(c.reader.read(), 5)).startswith(b"HTTP/1.1 400")
    assert web.lines == []


def test_sitemaps_and_robots_say_what_they_mean() -> None:
    assert (
        sitemap(["http://a/?x=1&y"], lastmod="2026-01-01").body.count(b"<loc>http://a/?x=1&amp;y</loc><lastmod>") == 1
    )
    assert b"<sitemapindex" in gzip.decompress(sitemap_index(["http://a/1.xml.gz"], gzipped=True).body)
    rules = robots(["/p/", "/q"], allowed=["/p/open"], delay_s=0.5, sitemaps=["http://a/s.xml"])
    assert rules.answer.body.decode().splitlines() == [
        "User-agent: *",
        "Disallow: /p/",
        "Disallow: /q",
        "Allow: /p/open",
        "Crawl-delay: 0.5",
        "",
        "Sitemap: http://a/s.xml",
    ]
    assert [rules.rules.forbids(path) for path in ("/p/x", "/p/open/1", "/p", "/quux")] == [True, False, False, True]
    assert robots_refused().rules.forbids("/")
    assert robots_unreachable().answer.status == 503


@pytest.mark.parametrize("size_bytes", [3035, 1000, 401])
def test_a_page_has_exactly_the_size_asked_for(size_bytes: int) -> None:
    assert len(page(["/a"], title="T", size_bytes=size_bytes).body) == size_bytes
    with pytest.raises(ValueError, match="does not fit"):
        page(["/a"], size_bytes=20)


# ------------------------------------------------------------------------------------------------------ log and judge


def a_line(seq: int, at: float, path: str = "/p", **fields: object) -> Line:
    known = {"host": A, "method": "GET", "number": 1, "open": 1, "open_here": 1, "robots_answer": 1, "status": 200}
    known |= {"end_at": at, "is_robots": path == "/robots.txt"}
    return Line(seq=seq, start_at=at, path=path, **(known | fields))  # type: ignore[arg-type]


def test_a_polite_visitor_is_found_polite() -> None:
    lines = [a_line(1, 0.0, "/robots.txt", robots_answer=0), a_line(2, 1.0), a_line(3, 1.9985), a_line(4, 4.0)]
    found = judge(lines, {A: (Rules(("/private/",)),)}, delay_s=1.0)
    assert (found.polite, found.early, found.peak) == (True, 0, 1)
    assert found.gap_min_s == pytest.approx(0.9985)
    assert (found.fullness, found.span_s, found.robots_requests) == (4 / 5, 4.0, 1)


@pytest.mark.parametrize(
    ("second", "rules", "early"),
    [
        (a_line(2, 0.5), Rules(), 1),
        (a_line(2, 0.5, "/robots.txt"), Rules(), 1),  # every kind of request counts
        (a_line(2, 0.5, host="b.localhost"), Rules(), 0),  # another host
        (a_line(2, 1.5), Rules(delay_s=2.0), 1),  # what the site asks for is what is owed
        (a_line(2, 0.5), Rules(delay_s=0.25), 0),
        (a_line(2, 0.9979), Rules(), 1),
        (a_line(2, 0.9981), Rules(), 0),
    ],
)
def test_early_requests(second: Line, rules: Rules, early: int) -> None:
    first = a_line(1, 0.0)
    assert judge([second, first], {A: (rules,)}, delay_s=1.0).early == early


def test_a_request_before_the_end_of_a_retry_after_is_early_once() -> None:
    lines = [a_line(1, 0.0, status=429, retry_after_s=60.0), a_line(2, 30.0), a_line(3, 59.0), a_line(4, 61.0)]
    found = judge(lines, {}, delay_s=1.0)
    assert found.early == 2
    assert found.breaches[0] == f"early: GET {A}/p (request 2): 30.0000 s before the end of a Retry-After"


def test_forbidden_is_judged_by_the_robots_txt_the_visitor_had() -> None:
    script = (Rules(("/",)), Rules(("/old/",)), Rules(("/new/",)))
    lines = [
        a_line(1, 0, "/x", robots_answer=0),  # none yet: before_robots, and forbidden by the first
        a_line(2, 1, "/x", robots_answer=1),
        a_line(3, 2, "/x", robots_answer=2),
        a_line(4, 3, "/old/x", robots_answer=2),
        a_line(5, 4, "/new/x", robots_answer=2),
        a_line(6, 5, "/new/x", robots_answer=7),
        a_line(7, 6, "/robots.txt", robots_answer=7),
    ]
    found = judge(lines, {A: script})
    assert (found.forbidden, found.before_robots) == (4, 1)
    assert [re.search(r"request (\d)", breach)[1] for breach in found.breaches] == ["1", "1", "2", "4", "6"]  # type: ignore[index]


def test_overlaps_repeats_and_peak() -> None:
    lines = [a_line(1, 0), a_line(2, 5, open=7, open_here=2, number=2), a_line(3, 9, "/robots.txt", number=3)]
    found = judge(lines, {})
    assert (found.overlaps, found.repeats, found.peak) == (1, 1, 7)
    assert together([found, found]) == {"forbidden": 0, "early": 0, "before_robots": 0}
    assert judge([], {}).polite


async def test_a_planted_fault_is_counted(fakeweb: StartWeb) -> None:
    """One early and one forbidden request among good ones, on a clock that stands still where it should not."""
    clock = VirtualClock(auto=False)
    web = await fakeweb(
        Site(A, dict.fromkeys(["/1", "/2", "/3", "/private/x"], page()), (robots(["/private/"], delay_s=1),)),
        now=clock.now,
    )
    async with client(web) as c:
        for at, path in ((0, "/robots.txt"), (1, "/1"), (1.5, "/2"), (3, "/private/x"), (4, "/3")):
            clock.advance_to(at)
            await c.get(A, path)
    found = web.judge()
    assert (found.early, found.forbidden, found.before_robots) == (1, 1, 0)
    assert [breach.partition(" (")[0] for breach in found.breaches] == [
        f"early: GET {A}/2",
        f"forbidden: GET {A}/private/x",
    ]


async def test_requests_before_robots_and_under_way_together_are_counted(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site(A, {"/": Answer(wait_s=0.3)}, (robots(),)))
    async with client(web) as one, client(web) as two:
        one.send(A, "/")
        await asyncio.wait_for(web.when(lambda: bool(web.lines)), 5)
        await two.get(A, "/robots.txt")
        await one.receive()
        await two.get(A, "/")
    found = web.judge()
    assert (found.before_robots, found.overlaps, found.peak) == (1, 1, 2)


async def test_a_robots_txt_that_was_never_answered_opens_nothing(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site(A, {"/": page()}, (robots_unreachable(Answer(hang=True)), robots())))
    async with client(web) as c:
        c.send(A, "/robots.txt")
        await asyncio.sleep(0.01)
    async with client(web) as c:
        await c.get(A, "/")
        await c.get(A, "/robots.txt")
        await c.get(A, "/")
    found = web.judge()
    assert (found.before_robots, found.forbidden) == (1, 1)


async def test_retry_after_reaches_the_judge(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site(A, {"/": (throttled(30), page())}, (robots(),)))
    async with client(web) as c:
        await c.get(A, "/robots.txt")
        await c.get(A, "/")
        await c.get(A, "/")
    assert web.lines[1].retry_after_s == 30
    assert web.judge().early == 1


async def test_the_log_file_is_judged_like_the_log_itself(tmp_path: Path) -> None:
    path = tmp_path / "log"
    clock = SystemClock()
    site = Site(A, {"/": page()}, (robots(["/x"], delay_s=5),))
    async with FakeWeb([site], now=clock.now, log_path=path) as web, client(web) as c:
        for wanted in ("/robots.txt", "/", "/x"):
            await c.get(A, wanted, User_Agent="comity/0 (+mail)")
        assert judge(*read(path)) == web.judge(), "readable while it grows"
    lines, rules = read(path)
    assert rules == {A: (Rules(("/x",), (), 5.0),)}
    assert lines == web.lines
    assert (lines[0].agent, lines[0].is_robots) == ("comity/0 (+mail)", True)
    assert judge(lines, rules).forbidden == 1


# ------------------------------------------------------------------------------------------------------ seeded, scenes


PLAN = seeded.Plan(hosts=3, pages=12, missing=0.1, moved=0.1, flaky=0.1, with_sitemap=True, crawl_delay_s=0.5)


def ask(sites: list[Site], host: int, path: str, number: int = 1, method: str = "GET") -> Answer:
    site = sites[host]
    return site.answer(Asked(method, site.host, path, {}, number, site.round))


def test_the_seeded_web_is_a_function_of_its_seed() -> None:
    def everything(plan: seeded.Plan, turn: int = 1) -> list[Answer]:
        sites = seeded.sites(plan, 80)
        seeded.turn(sites, turn)
        return [ask(sites, host, seeded.path_of(n)) for host in range(plan.hosts) for n in range(plan.pages)]

    first = everything(PLAN)
    assert everything(PLAN) == first
    assert everything(seeded.Plan(**{**{f: getattr(PLAN, f) for f in PLAN.__slots__}, "seed": 2})) != first
    changed = sum(a != b for a, b in zip(first, everything(PLAN, 2), strict=True))
    assert 0 < changed < len(first) / 2
    assert {answer.status for answer in first} == {200, 301, 404, 503}
    assert seeded.seeds(PLAN, 80)[2] == "http://h2.localhost:80/"


def test_every_seeded_page_can_be_reached_from_the_front_page() -> None:
    plan = seeded.Plan(hosts=1, pages=40, links=0, cross=0)
    sites, known, todo = seeded.sites(plan, 80), set[str](), ["/"]
    while todo:
        path = todo.pop()
        if path not in known and not path.startswith(("/private/", "/nofollow")):
            known.add(path)
            todo += [link.decode() for link in re.findall(rb'href="(/[^"]*)"', ask(sites, 0, path).body)]
    assert len(known) == 40
    assert ask(sites, 0, "/p/40").status == 404
    assert ask(sites, 0, "/p/0").status == 404, "the front page has one address"


def test_a_flaky_page_answers_at_the_second_request() -> None:
    sites = seeded.sites(seeded.Plan(hosts=1, pages=30, flaky=1.0), 80)
    assert [ask(sites, 0, "/p/3", number).status for number in (1, 2)] == [503, 200]


async def test_the_topology_is_the_table_of_field_notes_T_B(fakeweb: StartWeb) -> None:
    web = await fakeweb(fixtures.topology(slow_s=0.01))
    host = fixtures.TOPOLOGY_HOST
    async with client(web) as c:
        front = await c.get(host, "/")
        links = [link.decode() for link in re.findall(rb'href="([^"]*)"', front.body)]
        assert links == ["/a", "/mat", "/chap", "/cu", "/admin/x", "/cham"]
        assert b'href="/b"' in (await c.get(host, "/a")).body
        assert [(await c.get(host, "/chap")).status for _ in range(4)] == [503, 503, 200, 200]
        assert [(await c.get(host, path)).status for path in ("/b", "/mat", "/cham")] == [200, 404, 200]
        moved = await c.get(host, "/cu")
        assert (moved.status, moved.headers["location"]) == (301, "/b")
        assert (await c.get(host, "/robots.txt")).body.startswith(b"User-agent: *\nDisallow: /admin/\n")
    assert "etag" not in front.headers


async def test_the_conditional_site_is_the_table_of_field_notes_P8(fakeweb: StartWeb) -> None:
    site = fixtures.conditional()
    web = await fakeweb(site)
    validators: dict[str, dict[str, str]] = {}
    table = []
    async with client(web) as c:
        for site.round in (1, 2, 3, 4):
            row = {200: 0, 304: 0, "bytes": 0}
            for path in fixtures.page_paths():
                got = await c.get(site.host, path, **validators.get(path, {}))
                row[got.status] += 1
                row["bytes"] += len(got.body)
                names = {
                    "If_None_Match": got.headers.get("etag"),
                    "If_Modified_Since": got.headers.get("last-modified"),
                }
                validators[path] = {name: value for name, value in names.items() if value}
            table.append((row[200], row[304], row["bytes"]))
    assert table == [(6, 0, 18210), (0, 6, 0), (2, 4, 6070), (0, 6, 0)]
    tags = [fields.get("If_None_Match", "") for fields in validators.values()]
    assert [tag[:2] for tag in tags] == ['"1', "W/", "", "W/", '"5', "W/"]


async def test_the_listed_site_is_the_table_of_field_notes_P10(fakeweb: StartWeb) -> None:
    web = await fakeweb(lambda port: [fixtures.listed(port)])
    host = fixtures.LISTED_HOST
    async with client(web) as c:
        assert [(await c.get(host, path)).headers["location"] for path in ("/", "/home")] == ["/home", "/p/1"]
        rules = (await c.get(host, "/robots.txt")).body.decode()
        assert f"Sitemap: {web.url(host, '/sitemap.xml')}" in rules
        assert "Crawl-delay: 1\n" in rules
        listed = re.findall(rb"<loc>(.*?)</loc>", (await c.get(host, "/sitemap.xml")).body)
        assert [url.decode() for url in listed] == [
            web.url(host, path) for path in [*fixtures.page_paths(), "/private/admin"]
        ]
        sizes = [len((await c.get(host, path)).body) for path in fixtures.page_paths()]
        assert sizes == [3035] * 6


# ------------------------------------------------------------------------------------------------------------- running


def fetched(url: str, port: int) -> tuple[int, bytes]:
    """By urllib, which resolves no ``*.localhost`` everywhere: asked by address, named by field."""
    host = url.split("/")[2]
    request = urllib.request.Request(url.replace(host, f"127.0.0.1:{port}"), headers={"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_a_web_in_a_thread() -> None:
    with in_thread(lambda port: [fixtures.listed(port)]) as web:
        assert fetched(web.url(fixtures.LISTED_HOST, "/p/1"), web.port)[0] == 200
        assert fetched(web.url(fixtures.LISTED_HOST, "/private/admin"), web.port)[0] == 200
        assert web.judge().forbidden == 1
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", web.port), timeout=1)


def test_a_web_in_a_process(fakeweb_process: Callable[..., Child], tmp_path: Path) -> None:
    web = fakeweb_process("--hosts", "3", "--pages", "5", "--delay", "2", "--seeds", str(tmp_path / "seeds"))
    assert [url.rpartition(":")[0] for url in web.seeds] == [f"http://h{n}.localhost" for n in range(3)]
    assert (tmp_path / "seeds").read_text().split() == list(web.seeds)
    port = int(web.seeds[0].split(":")[2].strip("/"))
    assert fetched(web.seeds[1] + "robots.txt", port)[0] == 200
    assert fetched(web.seeds[1], port)[0] == 200
    web.process.terminate()
    assert web.process.wait(5) == 0  # a line is written when its answer has left: only now are all there
    found = web.judge()
    assert (found.requests, found.early, found.before_robots) == (2, 1, 0)
    told = subprocess.run(
        [sys.executable, "-m", "comity.fakeweb", "--judge", str(web.log_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(told.stdout)["early"] == 1


def test_a_process_that_cannot_start_says_why(fakeweb_process: Callable[..., Child]) -> None:
    with pytest.raises(RuntimeError, match="invalid int value"):
        fakeweb_process("--hosts", "many")


@pytest.mark.parametrize("name", ["topology", "conditional", "listed"])
def test_the_scenes_can_be_visited_by_another_process(fakeweb_process: Callable[..., Child], name: str) -> None:
    web = fakeweb_process("--scene", name)
    port = int(web.seeds[0].split(":")[2].split("/")[0])
    status, body = fetched(web.seeds[0], port)
    assert (status, len(web.seeds)) == (200, 6 if name == "conditional" else 1)
    assert body


# ------------------------------------------------------------------------------------------------------------ the guard


def test_nothing_here_reaches_the_real_web() -> None:
    with pytest.raises(PermissionError, match="loopback only"):
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)
    with pytest.raises(PermissionError, match="loopback only"):
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", ("192.0.2.53", 53))


def test_it_runs_on_uvloop_too() -> None:
    async def main() -> list[int]:
        site = Site(A, {"/": page(), "/huge": Answer(size_bytes=3_000_000), "/never": Answer(hang=True)})
        async with FakeWeb([site]) as web, client(web) as c, client(web) as other:
            other.send(A, "/never")
            return [len((await c.get(A, path)).body) for path in ("/huge", "/robots.txt", "/huge")]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(asyncio.wait_for(main(), 10)) == [3_000_000, 13, 3_000_000]


async def test_it_is_fast_enough_to_serve_a_crawl_at_full_speed(fakeweb: StartWeb) -> None:
    """Far under what it does (thousands a second): this only finds a server that waits for something."""
    web = await fakeweb(Site(A, {"/": page(size_bytes=3000)}))
    loop = asyncio.get_running_loop()
    async with client(web) as c:
        began = loop.time()
        for _ in range(300):
            c.send(A, "/")
        for _ in range(300):
            await c.receive()
        assert 300 / (loop.time() - began) > 300
