"""The `Fetcher` port over libcurl, against a server that misbehaves: what is sent, what comes of every answer, caps,
time limits, and what is left behind. Limits are real time here; the clock is only asked for instants."""

from __future__ import annotations

import asyncio
import gc
import gzip
import ipaddress
import os
import socket
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import badserver
import brotli
import fakedns
import pycurl
import pytest
import uvloop
from badserver import Behaviour, answer, drip, endless, reset, send, serve, then_silence

from comity.clock import SystemClock
from comity.fetch import CurlFetcher, Guard, Limits, Resolver
from comity.fetch.driver import Driver
from comity.fetch.outcomes import failed
from comity.fetch.transfer import Transfer
from comity.fetch.trust import ca_file
from comity.model import Failed, Failure, HttpError, NotModified, Outcome, Page, Redirect, Request, Wire

AGENT = "comity/1.0 (+https://a.example/bot)"
HOME = Guard(allow_private=True)
QUICK = Limits(connect_s=1.0, between_bytes_s=1.0, total_s=5.0)
Make = Callable[..., CurlFetcher]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """A fetcher that may talk to loopback, closed when the test ends."""
    made: list[CurlFetcher] = []

    def new(**options: Any) -> CurlFetcher:
        made.append(CurlFetcher(**{"clock": SystemClock(), "user_agent": AGENT, "guard": HOME, **options}))
        return made[-1]

    yield new
    for fetcher in made:
        await fetcher.close()


async def ask(make: Make, behaviour: Behaviour, limits: Limits = QUICK, **facts: Any) -> tuple[Outcome, Wire]:
    async with serve({"/": behaviour}) as server:
        return await make(limits=limits).fetch(Request(server.url(), **facts))


async def failure(make: Make, behaviour: Behaviour, limits: Limits = QUICK) -> Failure:
    outcome, wire = await ask(make, behaviour, limits)
    assert isinstance(outcome, Failed), outcome
    assert outcome.detail and wire.finished_at >= wire.started_at > 0
    return outcome.failure


async def page(make: Make, behaviour: Behaviour, limits: Limits = QUICK, **facts: Any) -> Page:
    outcome, _ = await ask(make, behaviour, limits, **facts)
    assert isinstance(outcome, Page), outcome
    return outcome


# -------------------------------------------------------------------------------------------------------- what is sent


async def test_the_request_is_what_the_server_saw_byte_for_byte(make: Make) -> None:
    fetcher = make(mail="bot@a.example", accept_language="vi,en;q=0.5")
    async with serve({"/a//b;c=%7e|'": answer(b"x"), "/": answer(b"x")}) as server:
        targets = ["/a//b;c=%7e|'?", "/?q=1&&x=%2F[]|", "/"]
        for target in targets:
            _, wire = await fetcher.fetch(
                Request(server.url(target) + "#part", etag='W/"a\xe9"', last_modified="yesterday, about noon")
            )
            assert wire.request == server.requests[-1]
            assert wire.request.decode("latin-1").split("\r\n") == [
                f"GET {target} HTTP/1.1",
                f"Host: a.localhost:{server.port}",
                f"User-Agent: {AGENT}",
                "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                "Accept-Encoding: gzip, deflate, br",
                "Accept-Language: vi,en;q=0.5",
                "From: bot@a.example",
                'If-None-Match: W/"a\xe9"',
                "If-Modified-Since: yesterday, about noon",
                "",
                "",
            ]
        assert len(server.requests) == len(targets)


async def test_ssrf_10_b163_nothing_more_can_be_smuggled_in_and_no_secret_goes_out(make: Make) -> None:
    fetcher = make()
    async with serve({"/": answer(b"x", "200 OK", "Set-Cookie: a=1", "WWW-Authenticate: Basic realm=x")}) as server:
        url = server.url().replace("a.localhost", "user:secret@a.localhost")
        for _ in range(2):
            await fetcher.fetch(Request(url, etag='"a"\r\nX-Evil: 1\r\n\r\nGET /evil HTTP/1.1'))
        lines = b"".join(server.requests).decode().split("\r\n")
        names = {line.partition(":")[0] for line in lines}
        assert len(server.requests) == 2
        assert not names & {"Cookie", "Authorization", "X-Evil", "Referer", "Range"}
        assert "secret" not in "".join(lines)


async def test_the_environment_names_no_proxy(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await page(make, answer(b"direct"))).body == b"direct"


# ------------------------------------------------------------------------------------------------------ what came back


async def test_a_page_and_its_wire(make: Make) -> None:
    clock = SystemClock()
    head = (
        b"HTTP/1.1 200 Fine by me\r\nContent-Type:text/html; charset=utf-8 \r\nX-A: 1\r\nX-a: b\xe9\r\n"
        b"Content-Length: 5\r\n\r\n"
    )
    async with serve({"/": send(head, b"hel", b"lo")}) as server:
        fetcher = make(clock=clock)
        before = clock.now()
        outcome, wire = await fetcher.fetch(Request(server.url()))
        after = clock.now()
        assert outcome == Page(
            200,
            (("content-type", "text/html; charset=utf-8"), ("x-a", "1"), ("x-a", "b\xe9"), ("content-length", "5")),
            b"hello",
        )
        assert (wire.response, wire.body_bytes, wire.payload) == (head, 5, b"")
        assert (wire.address, wire.port, wire.http_version, wire.reused) == ("127.0.0.1", server.port, "1.1", False)
        assert wire.heard_at is not None
        assert before <= wire.started_at <= wire.heard_at <= wire.finished_at <= after
        assert 0 < wire.service_s <= wire.finished_at - wire.started_at
        _, again = await fetcher.fetch(Request(server.url()))
        assert again.reused and server.connections == 1


async def test_msg_3_a_connection_is_used_again_and_a_dead_one_replaced(make: Make) -> None:
    fetcher = make()
    async with serve({"/": answer(b"x"), "/close": send(b"HTTP/1.1 200 OK\r\n\r\nx", close=True)}) as server:
        reused = []
        for path in ("/", "/", "/close", "/", "/"):
            outcome, wire = await fetcher.fetch(Request(server.url(path)))
            assert isinstance(outcome, Page)
            reused.append(wire.reused)
        assert reused == [False, True, True, False, True] and server.connections == 2


async def test_heard_at_is_the_first_byte_and_not_the_last(make: Make) -> None:
    async def slow_body(streams: badserver.Streams) -> None:
        await send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")(streams)
        await asyncio.sleep(0.3)  # what is measured
        await send(b"x")(streams)

    _, wire = await ask(make, slow_body)
    assert wire.heard_at is not None and wire.finished_at - wire.heard_at >= 0.28
    assert wire.service_s >= 0.28


async def test_interim_answers_are_left_out(make: Make) -> None:
    final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    outcome, wire = await ask(make, send(b"HTTP/1.1 100 Continue\r\n\r\n" + early, early + final + b"ok"))
    assert outcome == Page(200, (("content-length", "2"),), b"ok")
    assert wire.response == final


async def test_trailer_fields_are_no_header_fields(make: Make) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"
    outcome, wire = await ask(make, send(chunked))
    assert isinstance(outcome, Page) and outcome.body == b"abc" and wire.body_bytes == 3
    assert {name for name, _ in outcome.headers} == {"transfer-encoding", "trailer"}
    assert b"X-T: 1" not in wire.response


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n", b"until closed"),
        (b"HTTP/1.1 200\r\nContent-Length: 4\r\n\r\n", b"bare"),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\n", b"lf"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 999\r\n\r\n2;x=y\r\n", b"ok"),  # MSG-1
        (b"HTTP/1.1 200 OK\r\nX-Folded: a\r\n  b\r\nContent-Length: 1\r\n\r\n", b"f"),  # MSG-1, obs-fold
    ],
    ids=["1.0", "no reason", "bare LF", "chunked beats length", "folded"],
)
async def test_odd_but_readable(make: Make, head: bytes, body: bytes) -> None:
    tail = b"\r\n0\r\n\r\n" if b"chunked" in head else b""
    got = await page(make, send(head + body + tail, close=True))
    assert got.body == body
    if b"Folded" in head:
        assert dict(got.headers)["x-folded"] == "a b"


async def test_b141_a_control_byte_costs_its_field_and_not_the_page(make: Make) -> None:
    outcome, wire = await ask(make, answer(b"good", "200 OK", "Set-Cookie: a=1\x01b", "X-Fine: a\tb"))
    assert isinstance(outcome, Page) and outcome.body == b"good"
    assert [name for name, _ in outcome.headers] == ["x-fine", "content-length"]
    assert b"Set-Cookie: a=1\x01b\r\n" in wire.response


@pytest.mark.parametrize("status", [200, 201, 202, 203, 299])
async def test_every_2xx_is_a_page(make: Make, status: int) -> None:
    assert await page(make, answer(b"x", f"{status} Yes")) == Page(status, (("content-length", "1"),), b"x")


@pytest.mark.parametrize("status", [204, 205])
async def test_b148_without_content(make: Make, status: int) -> None:
    assert (await page(make, send(f"HTTP/1.1 {status} None\r\nX: y\r\n\r\n".encode(), close=True))).body == b""


async def test_b148_a_206_that_nobody_asked_for_is_marked(make: Make) -> None:
    got = await page(make, answer(b"part", "206 Partial Content", "Content-Range: bytes 0-3/9"))
    assert (got.body, got.truncated) == (b"part", "unasked_206")


@pytest.mark.parametrize("status", [400, 401, 404, 410, 429, 500, 503, 600, 999])
async def test_everything_else_is_an_error_with_its_headers(make: Make, status: int) -> None:
    outcome, wire = await ask(make, answer(b"sorry", f"{status} No", "Retry-After: 7"))
    assert outcome == HttpError(status, (("retry-after", "7"), ("content-length", "5")))
    assert wire.body_bytes == 5


async def test_304_confirms_only_what_was_asked(make: Make) -> None:
    same = send(b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n')
    validators: list[dict[str, Any]] = [{"etag": '"a"'}, {"last_modified": "Sat, 01 Jan 2022 00:00:00 GMT"}]
    for facts in validators:
        assert (await ask(make, same, **facts))[0] == NotModified((("etag", '"a"'),))
    assert (await ask(make, same))[0] == HttpError(304, (("etag", '"a"'),))  # B148


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/b?c", "http://a.localhost:{port}/b?c"),
        (b"b", "http://a.localhost:{port}/b"),
        (b"https://b.example/x#y", "https://b.example/x#y"),
        (b"//b.example", "http://b.example/"),
        ("/số".encode(), "http://a.localhost:{port}/s%E1%BB%91"),
        (b"/caf\xe9", "http://a.localhost:{port}/caf%E9"),
        (b"http://user:secret@b.example/", "http://b.example/"),
        (b"file:///etc/hostname", None),
        (b"javascript:alert(1)", None),
        (b"data:text/html,x", None),
        (b"ftp://b.example/", None),
        (b"http://", None),
    ],
)
async def test_redirects_are_told_and_never_followed(make: Make, location: bytes, target: str | None) -> None:
    """RED-2, RED-3, B162."""
    head = b"HTTP/1.1 302 Found\r\nLocation:  " + location + b" \r\nContent-Length: 0\r\n\r\n"
    async with serve({"/": send(head)}) as server:
        outcome, _ = await make().fetch(Request(server.url()))
        assert isinstance(outcome, Redirect)
        assert outcome.location == location.decode("latin-1")
        assert outcome.target == (None if target is None else target.format(port=server.port))
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308, 399])
async def test_b148_any_3xx_is_a_redirect_with_or_without_location(make: Make, status: int) -> None:
    for fields in ((), ("Location:  ",)):
        outcome, _ = await ask(make, answer(b"x", f"{status} There", *fields))
        assert isinstance(outcome, Redirect)
        assert (outcome.status, outcome.location, outcome.target) == (status, None, None)


async def test_of_several_locations_the_first_counts(make: Make) -> None:
    outcome, _ = await ask(make, answer(b"", "301 Moved", "Location: /a", "Location: /b"))
    assert isinstance(outcome, Redirect) and outcome.location == "/a"


# ----------------------------------------------------------------------------------------------------- broken messages


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", close=True), Failure.CUT_OFF),
        (send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", close=True), Failure.CUT_OFF),
        (send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", close=True), Failure.CUT_OFF),
        (send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n", close=True), Failure.CUT_OFF),
        (reset(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"), Failure.CUT_OFF),
        (send(b"", close=True), Failure.RESET),
        (reset(), Failure.RESET),
        (send(b"HTTP/1.1 200 OK\r\nContent-Ty", close=True), Failure.PROTOCOL),
        (send(b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n", close=True), Failure.PROTOCOL),
        (send(b"hello, I am HTTP/0.9", close=True), Failure.PROTOCOL),
        (send(b"SSH-2.0-OpenSSH_9.2\r\n", close=True), Failure.PROTOCOL),
        (send(b"HTTP/1.1 abc OK\r\n\r\n", close=True), Failure.PROTOCOL),
        (send(b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", close=True), Failure.PROTOCOL),
        (send(b"HTTP/1.1 200 OK\r\nContent-Length: nonsense\r\n\r\nx", close=True), Failure.PROTOCOL),
        (send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", close=True), Failure.DECODE),
    ],
    ids=[
        "short", "chunk cut", "no last chunk", "broken chunk", "reset in body", "no byte", "reset", "header cut",
        "no colon", "0.9", "another service", "no status", "NUL", "length is nonsense", "transfer coding",
    ],
)  # fmt: skip
async def test_what_is_broken_is_named(make: Make, behaviour: Behaviour, expected: Failure) -> None:
    assert await failure(make, behaviour) is expected


async def test_a_status_counts_even_if_its_body_breaks(make: Make) -> None:
    for line, kind in (("429 Slow Down", HttpError), ("301 Moved", Redirect)):
        broken = send(f"HTTP/1.1 {line}\r\nRetry-After: 9\r\nContent-Length: 10\r\n\r\nx".encode(), close=True)
        outcome, _ = await ask(make, broken)
        assert isinstance(outcome, kind) and ("retry-after", "9") in outcome.headers


async def test_nobody_listens(make: Make) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, so that nobody else gets it; not listening
        outcome, wire = await make().fetch(Request(f"http://127.0.0.1:{taken.getsockname()[1]}/"))
    assert isinstance(outcome, Failed) and outcome.failure is Failure.REFUSED
    assert (wire.request, wire.response, wire.heard_at, wire.service_s) == (b"", b"", None, 0.0)


async def test_b181_the_second_address_is_tried_and_remembered(make: Make) -> None:
    async with serve({"/": answer(b"x")}) as server, fakedns.serve({"two.example": ["127.0.0.2", "127.0.0.1"]}) as dns:
        fetcher = make(resolver=Resolver(servers=[dns.place]))
        url = server.url(host="two.example")
        for _ in range(2):
            outcome, wire = await fetcher.fetch(Request(url))
            assert isinstance(outcome, Page) and wire.address == "127.0.0.1"
        assert await fetcher._resolver.resolve("two.example") == ("127.0.0.1", "127.0.0.2")
        assert len(dns.asked) == 2


@pytest.mark.parametrize(("said", "expected"), [("nxdomain", Failure.DNS), ("servfail", Failure.DNS_TEMPORARY)])
async def test_a_name_that_leads_nowhere(make: Make, said: str, expected: Failure) -> None:
    async with fakedns.serve({"a.example": said}) as dns:
        outcome, wire = await make(resolver=Resolver(servers=[dns.place])).fetch(Request("http://a.example/"))
        assert isinstance(outcome, Failed) and outcome.failure is expected
        assert wire.request == b"" and wire.address is None and wire.heard_at is None


# ------------------------------------------------------------------------------------------------------------- codings


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("gzip", gzip.compress(b"hello")),
        ("x-gzip", gzip.compress(b"hel") + gzip.compress(b"lo") + b"\0\0"),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")[2:-4]),
        ("br", brotli.compress(b"hello")),
        ("gzip, br", brotli.compress(gzip.compress(b"hello"))),
        ("gzip", b"hello"),
        ("", b"hello"),
        ("none", b"hello"),
        ("utf-8", b"hello"),
        ("identity", b"hello"),
        ("x-my-cdn", b"hello"),
    ],
)
async def test_msg_5_b146_content_codings(make: Make, field: str, body: bytes) -> None:
    outcome, wire = await ask(make, answer(body, "200 OK", f"Content-Encoding: {field}"))
    assert isinstance(outcome, Page) and outcome.body == b"hello" and outcome.truncated is None
    assert wire.body_bytes == len(body)


async def test_an_error_page_is_not_decoded(make: Make) -> None:
    outcome, _ = await ask(make, answer(b"\x1f\x8b\x08broken", "404 Not Found", "Content-Encoding: gzip, gzip, br"))
    assert isinstance(outcome, HttpError)


@pytest.mark.parametrize(
    ("field", "body"), [("zstd", b"\x28\xb5\x2f\xfd\x04\x00\x01"), ("gzip, gzip, gzip", b"x"), ("br", b"\xff\0" * 9)]
)
async def test_a_coding_that_cannot_be_undone(make: Make, field: str, body: bytes) -> None:
    assert await failure(make, answer(body, "200 OK", f"Content-Encoding: {field}")) is Failure.DECODE


async def test_msg_7_a_coding_that_breaks_off_leaves_a_page_marked(make: Make) -> None:
    whole = gzip.compress(os.urandom(5000))
    got = await page(make, answer(whole[:4000], "200 OK", "Content-Encoding: gzip"))
    assert got.truncated == "broken_coding" and len(got.body) > 3000


def bomb(field: str) -> bytes:
    """64 MiB of zeros, small."""
    if field == "br":
        return bytes(brotli.compress(bytes(64 << 20), quality=1))
    packed = zlib.compressobj(9, zlib.DEFLATED, 31 if field.startswith("gzip") else 15)
    once = b"".join([packed.compress(bytes(1 << 20)) for _ in range(64)]) + packed.flush()
    return gzip.compress(once) if field == "gzip, gzip" else once


@pytest.mark.parametrize("field", ["gzip", "deflate", "br", "gzip, gzip"])
async def test_safe_4_b117_a_bomb_is_stopped_early(make: Make, field: str) -> None:
    async with serve({"/": answer(bomb(field), "200 OK", f"Content-Encoding: {field}")}) as server:
        outcome, wire = await make().fetch(Request(server.url()))
    assert isinstance(outcome, Failed) and outcome.failure is Failure.BOMB
    unfolded = int(outcome.detail.split(" unfold to ")[1].split()[0])
    assert 1 << 20 < unfolded <= max(1 << 20, 200 * wire.body_bytes) + (1 << 18)


# ---------------------------------------------------------------------------------------------------------------- caps


@pytest.mark.parametrize(("size", "truncated"), [(999, None), (1000, None), (1001, "length"), (50_000, "length")])
async def test_safe_1_a_body_is_cut_at_its_cap(make: Make, size: int, truncated: str | None) -> None:
    got = await page(make, answer(b"x" * size), Limits(max_body_bytes=1000))
    assert (got.body, got.truncated) == (b"x" * min(size, 1000), truncated)


async def test_safe_2_encoded_and_decoded_size_are_capped_each(make: Make) -> None:
    noise = os.urandom(5000)
    coded = answer(gzip.compress(noise), "200 OK", "Content-Encoding: gzip")
    got = await page(make, coded, Limits(max_body_bytes=2000))
    assert got.truncated == "length" and 0 < len(got.body) <= 2000 and noise.startswith(got.body)
    long = answer(gzip.compress(b"x" * 5000), "200 OK", "Content-Encoding: gzip")
    assert await page(make, long, Limits(max_body_bytes=2000)) == Page(
        200, (("content-encoding", "gzip"), ("content-length", str(len(gzip.compress(b"x" * 5000))))),
        b"x" * 2000, "length",
    )  # fmt: skip


async def test_a_request_may_bring_its_own_cap(make: Make) -> None:
    got = await page(make, answer(b"x" * 5000), Limits(max_body_bytes=100), max_body_bytes=2000)
    assert (len(got.body), got.truncated) == (2000, "length")


async def test_a_body_without_end_is_cut(make: Make) -> None:
    got = await page(make, endless(b"x" * 10_000, b"HTTP/1.1 200 OK\r\n\r\n"), Limits(max_body_bytes=300_000))
    assert (len(got.body), got.truncated) == (300_000, "length")


async def test_the_body_of_an_error_is_drained_for_the_connections_sake_or_cut(make: Make) -> None:
    fetcher = make(limits=Limits(drain_bytes=1000, max_body_bytes=10))
    head = b"HTTP/1.1 404 Not Found\r\n\r\n"
    paths = {
        "/small": answer(b"x" * 1000, "404 No"),
        "/large": answer(b"x" * 1001, "404 No"),
        "/": endless(b"x" * 999, head),
    }
    async with serve(paths) as server:
        seen = []
        for path in ("/small", "/small", "/large", "/small", "/", "/small"):
            outcome, wire = await fetcher.fetch(Request(server.url(path)))
            assert isinstance(outcome, HttpError) and outcome.status == 404
            assert wire.body_bytes <= 1000 + 16_384  # a buffer of libcurl's beyond the cap
            assert path != "/large" or wire.body_bytes == 0  # it said how long it would be
            seen.append(wire.reused)
        assert seen == [False, True, True, False, True, False]


async def test_safe_3_b140_headers_have_caps(make: Make) -> None:
    assert (await page(make, answer(b"x", "200 OK", "X-Long: " + "a" * 12_000))).body == b"x"
    assert (await page(make, answer(b"x", "200 OK", *(f"X-{n}: b" for n in range(150))))).body == b"x"
    assert (await page(make, answer(b"x", "200 OK", *(f"X-{n}: {'b' * 50_000}" for n in range(5))))).body == b"x"
    for too_large in (
        answer(b"x", "200 OK", *(f"X-{n}: {'b' * 1000}" for n in range(300))),
        answer(b"x", "200 OK", "X-Long: " + "a" * 65_536),
        answer(b"x", "200 OK", "X-Long: " + "a" * 200_000),
        endless(b"a" * 10_000, b"HTTP/1.1 200 OK\r\nX-Endless: "),
        endless(b"X-Many: " + b"a" * 1000 + b"\r\n", b"HTTP/1.1 200 OK\r\n"),
        endless(b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", b""),
    ):
        assert await failure(make, too_large) is Failure.HEADERS_TOO_LARGE


async def test_the_payload_is_kept_as_received_when_asked_for(make: Make) -> None:
    coded = gzip.compress(b"hello")
    fields = ("Content-Encoding: gzip", "Transfer-Encoding: chunked")
    head = "\r\n".join(("HTTP/1.1 200 OK", *fields)).encode() + b"\r\n\r\n"
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(coded), coded)
    outcome, wire = await ask(make, send(head + chunked), Limits(keep_payload=True))
    assert isinstance(outcome, Page) and outcome.body == b"hello" and wire.payload == coded
    _, wire = await ask(make, answer(b"sorry", "404 No"), Limits(keep_payload=True))
    assert wire.payload == b"sorry"


# --------------------------------------------------------------------------------------------------------- time limits


@pytest.mark.parametrize(
    ("behaviour", "limits", "expected", "after_s"),
    [
        (then_silence(), Limits(1.0, 0.4, 5.0), Failure.TIMEOUT_READ, 0.4),
        (then_silence(b"HTTP/1.1 200 OK\r\n"), Limits(1.0, 0.4, 5.0), Failure.TIMEOUT_READ, 0.4),
        (then_silence(b"HTTP/1.1 200 OK\r\n\r\nabc"), Limits(1.0, 0.4, 5.0), Failure.TIMEOUT_READ, 0.4),
        (drip(b".", 0.1), Limits(1.0, 0.5, 0.9), Failure.TIMEOUT_TOTAL, 0.9),
        (drip(b"X: y\r\n", 0.1, b"HTTP/1.1 200 OK\r\n"), Limits(1.0, 0.5, 0.9), Failure.TIMEOUT_TOTAL, 0.9),
        # The digits of a chunk's size are libcurl's own: to us a drip of them is silence.
        (drip(b"0", 0.1, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Limits(1.0, 0.5, 0.9),
         Failure.TIMEOUT_READ, 0.5),
    ],
    ids=["no byte", "headers stop", "body stops", "body drips", "headers drip", "chunk size drips"],
)  # fmt: skip
async def test_every_time_limit_is_named_and_kept(
    make: Make, behaviour: Behaviour, limits: Limits, expected: Failure, after_s: float
) -> None:
    loop = asyncio.get_running_loop()
    async with serve({"/": behaviour}) as server:
        began = loop.time()
        outcome, wire = await make(limits=limits).fetch(Request(server.url()))
        took_s = loop.time() - began
    assert isinstance(outcome, Failed) and outcome.failure is expected, outcome
    assert after_s - 0.01 <= took_s < after_s + 0.4
    assert wire.request and wire.service_s >= after_s - 0.05


async def test_a_read_time_limit_of_one_second_takes_one_second(make: Make) -> None:
    loop = asyncio.get_running_loop()
    async with serve({"/": then_silence()}) as server:
        began = loop.time()
        outcome, _ = await make(limits=Limits(between_bytes_s=1.0)).fetch(Request(server.url()))
    assert isinstance(outcome, Failed) and outcome.failure is Failure.TIMEOUT_READ
    assert 1.0 <= loop.time() - began < 1.2


async def test_b187_a_stalled_handshake_ends_at_the_connect_limit(make: Make) -> None:
    async with serve({}) as server:  # waits for a request that never comes
        fetcher = make(limits=Limits(connect_s=0.3, between_bytes_s=5, total_s=5))
        # Its name has a second address, where nobody listens: what is told is how the first one failed.
        outcome, wire = await fetcher.fetch(Request(server.url().replace("http:", "https:")))
    assert isinstance(outcome, Failed) and outcome.failure is Failure.TIMEOUT_CONNECT
    assert wire.request == b"" and wire.heard_at is None and 0.3 <= wire.finished_at - wire.started_at < 0.6


async def test_a_slow_look_up_has_its_own_name_and_counts_in_the_total(make: Make) -> None:
    async with fakedns.serve({"a.example": "silent"}) as dns:
        for limits, resolver_s in ((Limits(connect_s=0.2), 0.2), (Limits(total_s=0.2), 10.0)):
            fetcher = make(limits=limits, resolver=Resolver(servers=[dns.place], limit_s=resolver_s))
            outcome, wire = await fetcher.fetch(Request("http://a.example/"))
            assert isinstance(outcome, Failed) and outcome.failure is Failure.TIMEOUT_DNS
            assert wire.finished_at - wire.started_at < 0.6


def test_a_busy_process_blames_no_server() -> None:
    """While we were held up the bytes came; the sweep that wakes late judges nobody. On uvloop, which runs its timers
    before it looks at its sockets."""

    async def hold_up(streams: badserver.Streams) -> None:
        await send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(streams)
        time.sleep(1.0)  # noqa: ASYNC251  # the loop itself stands still

    async def main() -> Outcome:
        fetcher = CurlFetcher(clock=SystemClock(), user_agent=AGENT, guard=HOME, limits=Limits(between_bytes_s=0.4))
        async with serve({"/": hold_up}) as server:
            outcome, _ = await fetcher.fetch(Request(server.url()))
        await fetcher.close()
        return outcome

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcome = runner.run(main())
    assert isinstance(outcome, Page) and outcome.body == b"ok"


# -------------------------------------------------------------------------------------------------------------- safety


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "2130706433", "0x7f.1", "017700000001", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
        "１２７.0.0.1", "0.0.0.0", "a.localhost", "localhost", "LOCALHOST.",
    ],
)  # fmt: skip
async def test_b158_b160_no_spelling_of_loopback_is_connected_to(make: Make, host: str) -> None:
    async with serve({"/": answer(b"x")}) as server:
        outcome, wire = await make(guard=Guard()).fetch(Request(server.url(host=host)))
        assert isinstance(outcome, Failed) and outcome.failure is Failure.FORBIDDEN_ADDRESS
        assert server.connections == 0 and wire.request == b""


@pytest.mark.parametrize("host", ["10.0.0.5", "169.254.169.254", "100.64.0.1", "[fd00::1]", "metadata.google.internal"])
async def test_b158_nor_any_other_inside(make: Make, host: str) -> None:
    outcome, _ = await make(guard=Guard()).fetch(Request(f"http://{host}/"))
    assert isinstance(outcome, Failed) and outcome.failure is Failure.FORBIDDEN_ADDRESS


async def test_ssrf_9_bad_ports_are_refused(make: Make) -> None:
    for guard, port in ((HOME, 25), (HOME, 6667), (Guard(allow_private=True, ports=frozenset({80})), 8080)):
        outcome, _ = await make(guard=guard).fetch(Request(f"http://127.0.0.1:{port}/"))
        assert isinstance(outcome, Failed) and outcome.failure is Failure.FORBIDDEN_PORT


@pytest.mark.parametrize("said", [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::1"], ["::ffff:127.0.0.1"]])
async def test_b159_a_public_name_with_an_address_inside_is_refused_whole(make: Make, said: list[str]) -> None:
    async with serve({"/": answer(b"x")}) as server, fakedns.serve({"evil.example": said}) as dns:
        fetcher = make(guard=Guard(), resolver=Resolver(servers=[dns.place]))
        outcome, wire = await fetcher.fetch(Request(server.url(host="evil.example")))
        assert isinstance(outcome, Failed) and outcome.failure is Failure.FORBIDDEN_ADDRESS
        assert server.connections == 0 and wire.address is None  # not even tried


async def test_ssrf_1_b159_the_address_judged_is_the_one_connected_to(make: Make) -> None:
    """The name leads elsewhere at every look-up; each answer is judged, and a connection goes where it was judged."""
    book: fakedns.Book = {"turn.example": ["127.0.0.1"]}
    only_one = Guard(allow=(ipaddress.ip_network("127.0.0.1/32"),))
    async with serve({"/": answer(b"x")}) as server, fakedns.serve(book) as dns:
        fetcher = make(guard=only_one, resolver=Resolver(servers=[dns.place], keep_s=0.0))
        url = server.url(host="turn.example")
        outcome, wire = await fetcher.fetch(Request(url))
        assert isinstance(outcome, Page) and wire.address == "127.0.0.1"
        book["turn.example"] = ["127.0.0.2"]
        outcome, _ = await fetcher.fetch(Request(url))
        assert isinstance(outcome, Failed) and outcome.failure is Failure.FORBIDDEN_ADDRESS  # kept connection or not
        assert len(server.requests) == 1


@pytest.mark.parametrize("guard", [Guard(), HOME], ids=["forbidden address", "another address"])
async def test_ssrf_1_a_socket_is_judged_once_more_when_it_is_opened(guard: Guard) -> None:
    loop = asyncio.get_running_loop()
    async with serve({"/": answer(b"x")}) as server:
        driver: Driver[Failure] = Driver(connections_kept=1, sweep_s=0.1)
        transfer = Transfer(QUICK, guard, SystemClock(), loop.time, None)
        origin = server.url("")
        transfer.prepare(origin, "/", "127.0.0.1", server.port, [], max_body_bytes=9, total_at=loop.time() + 5)
        if guard is HOME:
            transfer._address = "127.0.0.2"
        ended = await driver.perform(transfer.curl, transfer.overdue)
        assert ended.code == pycurl.E_COULDNT_CONNECT and transfer.failure is Failure.FORBIDDEN_ADDRESS
        assert server.connections == 0
        driver.close()


async def test_ipv6_works(make: Make) -> None:
    if not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    async with serve({"/": answer(b"six")}, host="::1") as server:
        outcome, wire = await make().fetch(Request(server.url(host="[::1]")))
        assert isinstance(outcome, Page) and wire.address == "::1"
        outcome, wire = await make().fetch(Request(server.url()))  # a.localhost: IPv4 refused, IPv6 next
        assert isinstance(outcome, Page) and wire.address == "::1"


# ----------------------------------------------------------------------------------------------------------------- TLS


async def over_tls(make: Make, folder: Path, certificate: str, host: str, *, trusted: bool = True) -> Outcome:
    async with serve({"/": answer(b"safe")}, tls=badserver.tls(folder, certificate)) as server:
        fetcher = make(**({"ca_file": str(folder / "ca.pem")} if trusted else {}))
        return (await fetcher.fetch(Request(server.url(host=host))))[0]


async def test_safe_5_a_good_certificate_is_accepted(make: Make, tmp_path: Path) -> None:
    outcome = await over_tls(make, tmp_path, badserver.CERTIFICATE, "a.localhost")
    assert isinstance(outcome, Page) and outcome.body == b"safe"


@pytest.mark.parametrize(
    ("certificate", "host", "trusted", "word"),
    [
        (badserver.EXPIRED, "a.localhost", True, "expired"),
        (badserver.CERTIFICATE, "b.localhost", True, "host name"),
        (badserver.CERTIFICATE, "a.localhost", False, "self-signed"),
    ],
    ids=["expired", "wrong name", "self-signed"],
)
async def test_safe_5_b187_a_bad_certificate_is_refused_and_said_why(
    make: Make, tmp_path: Path, certificate: str, host: str, trusted: bool, word: str
) -> None:
    outcome = await over_tls(make, tmp_path, certificate, host, trusted=trusted)
    assert isinstance(outcome, Failed) and outcome.failure is Failure.TLS
    assert word in outcome.detail.replace("self signed", "self-signed").replace("hostname", "host name")


async def test_b187_plain_http_where_tls_is_expected(make: Make) -> None:
    def in_the_clear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with await asyncio.start_server(in_the_clear, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        outcome, wire = await make(limits=QUICK).fetch(Request(f"https://a.localhost:{port}/"))
        assert isinstance(outcome, Failed) and outcome.failure is Failure.TLS and wire.request == b""


async def test_http_2_by_alpn(make: Make, tmp_path: Path) -> None:
    context = badserver.tls(tmp_path, alpn=("h2",))
    async with badserver.serve_http2(context) as port:
        fetcher = make(ca_file=str(tmp_path / "ca.pem"))
        for reused in (False, True):
            outcome, wire = await fetcher.fetch(Request(f"https://a.localhost:{port}/x?y"))
            assert isinstance(outcome, Page) and outcome.body == b"two"
            assert (wire.http_version, wire.reused) == ("2", reused)
            assert wire.request.startswith(b"GET /x?y HTTP/2\r\nHost: a.localhost:")
        await fetcher.close()


def test_a_bundle_that_cannot_be_read_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a readable file"):
        ca_file(str(tmp_path / "none.pem"))
    bundle = tmp_path / "own.pem"
    bundle.write_text(badserver.CERTIFICATE)
    assert ca_file(str(bundle)) == str(bundle)


def test_the_environment_may_name_the_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tmp_path / "own.pem"
    bundle.write_text(badserver.CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    assert ca_file() == str(bundle)


# --------------------------------------------------------------------------------------------------- ours, and endings


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://a.example/", "file:///etc/hostname", "http://"])
async def test_what_is_no_url_of_ours_is_our_own_fault(make: Make, url: str) -> None:
    outcome, _ = await make().fetch(Request(url))
    assert isinstance(outcome, Failed) and outcome.failure is Failure.SELF and outcome.detail.startswith("InvalidUrl")


class BrokenClock(SystemClock):
    """Fails when asked for the n-th time."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def now(self) -> float:
        self.left -= 1
        if self.left == 0:
            raise ZeroDivisionError("the clock broke")
        return super().now()


async def test_a_fault_of_ours_is_named_and_the_next_request_is_well(make: Make) -> None:
    async with serve({"/": answer(b"x")}) as server:
        for at in range(2, 6):  # in the coroutine, and in libcurl's callback
            fetcher = make(clock=BrokenClock(at))
            outcome, _ = await fetcher.fetch(Request(server.url()))
            assert outcome == Failed(Failure.SELF, "ZeroDivisionError: the clock broke"), at
            assert isinstance((await fetcher.fetch(Request(server.url())))[0], Page)


async def test_no_descriptors_left_is_our_own_fault(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    async with serve({"/": answer(b"x")}) as server:
        fetcher = make()
        with monkeypatch.context() as patched:
            patched.setattr("comity.fetch.transfer.socket.socket", none_left)
            outcome, _ = await fetcher.fetch(Request(server.url()))
        assert isinstance(outcome, Failed) and outcome.failure is Failure.SELF and "Too many" in outcome.detail
        assert isinstance((await fetcher.fetch(Request(server.url())))[0], Page)


class Busy(SystemClock):
    """Counts who works."""

    def __init__(self) -> None:
        super().__init__()
        self.working = self.most = 0

    def busy(self) -> AbstractContextManager[None]:
        clock = self

        class Counted(AbstractContextManager[None]):
            def __enter__(self) -> None:
                clock.working += 1
                clock.most = max(clock.most, clock.working)

            def __exit__(self, *_: object) -> None:
                clock.working -= 1

        return Counted()


async def test_the_clock_knows_that_work_is_under_way(make: Make) -> None:
    clock = Busy()
    async with serve({"/": answer(b"x")}) as server:
        fetcher = make(clock=clock)
        await asyncio.gather(*(fetcher.fetch(Request(server.url())) for _ in range(3)))
        await fetcher.fetch(Request("nonsense"))
    assert (clock.working, clock.most) == (0, 3)


async def test_a_cancelled_fetch_lets_go_of_its_connection_at_once(make: Make) -> None:
    fetcher = make()
    async with serve({"/": then_silence(), "/x": answer(b"x")}) as server:
        task = asyncio.create_task(fetcher.fetch(Request(server.url())))
        await server.heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert fetcher._driver is not None and not fetcher._driver._jobs
        await asyncio.wait_for(server.gone.wait(), 2)
        assert isinstance((await fetcher.fetch(Request(server.url("/x"))))[0], Page)


async def test_a_cancelled_look_up_or_connect_leaves_nothing(make: Make) -> None:
    async with fakedns.serve({"a.example": "silent"}) as dns, serve({}) as server:
        fetcher = make(resolver=Resolver(servers=[dns.place]))
        for url in ("http://a.example/", server.url().replace("http:", "https:")):
            task = asyncio.create_task(fetcher.fetch(Request(url)))
            await asyncio.sleep(0.05)  # somewhere on the way, wherever that is
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert fetcher._driver is not None and not fetcher._driver._jobs


async def test_close_ends_everything(make: Make) -> None:
    fetcher = make()
    async with serve({"/": then_silence()}) as server, fakedns.serve({"a.example": "silent"}) as dns:
        asking = make(resolver=Resolver(servers=[dns.place]))
        tasks = [asyncio.create_task(fetcher.fetch(Request(server.url()))) for _ in range(3)]
        tasks.append(asyncio.create_task(asking.fetch(Request("http://a.example/"))))
        await server.heard.wait()
        for _ in range(2):
            await fetcher.close()
            await asking.close()
        for outcome, _ in await asyncio.wait_for(asyncio.gather(*tasks), 2):
            assert isinstance(outcome, Failed) and outcome.failure is Failure.SELF and "closed" in outcome.detail
        outcome, _ = await fetcher.fetch(Request(server.url()))
        assert isinstance(outcome, Failed) and outcome.failure is Failure.SELF


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_five_hundred_requests_leak_no_descriptor(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> tuple[int, int]:
        paths = {"/": answer(b"x"), "/close": send(b"HTTP/1.1 200 OK\r\n\r\nx", close=True), "/reset": reset()}
        async with serve(paths) as server:
            fetcher = CurlFetcher(clock=SystemClock(), user_agent=AGENT, guard=HOME, connections_kept=4)
            counts = []
            for n in range(500):
                path = ("/", "/close", "/reset")[n % 3]
                await fetcher.fetch(Request(server.url(path, host=f"h{n % 50}.localhost")))
                if n in (99, 499):
                    counts.append(descriptors())
            await fetcher.close()
            return counts[0], counts[1]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.sleep(0))  # uvloop's first loop opens a pipe for good
    before = descriptors()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        early, late = runner.run(main())
    assert late <= early + 4
    assert descriptors() <= before


def test_connections_kept_are_bounded() -> None:
    async def main() -> int:
        async with serve({"/": answer(b"x")}) as server:
            fetcher = CurlFetcher(clock=SystemClock(), user_agent=AGENT, guard=HOME, connections_kept=8)
            before = descriptors()
            for n in range(60):
                await fetcher.fetch(Request(server.url(host=f"h{n}.localhost")))
            kept = descriptors() - before
            await fetcher.close()
            return kept

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(main()) <= 2 * 8 + 8  # both ends are in this process


async def test_many_at_once(make: Make) -> None:
    fetcher = make()
    async with serve({"/": answer(b"x" * 20_000)}) as server:
        asked = (fetcher.fetch(Request(server.url(host=f"h{n}.localhost"))) for n in range(200))
        for outcome, _ in await asyncio.gather(*asked):
            assert isinstance(outcome, Page) and len(outcome.body) == 20_000


# ------------------------------------------------------------------------------------------------------ libcurl's codes


@pytest.mark.parametrize(
    ("code", "os_errno", "in_body", "expected"),
    [
        (7, 111, False, Failure.REFUSED),
        (7, 101, False, Failure.UNREACHABLE),
        (7, 113, False, Failure.UNREACHABLE),
        (7, 110, False, Failure.TIMEOUT_CONNECT),
        (7, 24, False, Failure.SELF),
        (7, 0, False, Failure.UNREACHABLE),
        (18, 0, True, Failure.CUT_OFF),
        (35, 0, False, Failure.TLS),
        (52, 0, False, Failure.RESET),
        (56, 104, False, Failure.RESET),
        (56, 104, True, Failure.CUT_OFF),
        (60, 0, False, Failure.TLS),
        (77, 0, False, Failure.SELF),
        (92, 0, False, Failure.PROTOCOL),
        (92, 0, True, Failure.CUT_OFF),
        (27, 0, False, Failure.SELF),
    ],
)
@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="the numbers of errno are Linux's")
def test_what_libcurl_says_is_one_failure(code: int, os_errno: int, in_body: bool, expected: Failure) -> None:
    assert failed(code, "words", os_errno=os_errno, in_body=in_body).failure is expected


def test_every_code_of_libcurl_has_a_failure() -> None:
    codes = {number for name, number in vars(pycurl).items() if name.startswith("E_") and isinstance(number, int)}
    assert all(failed(code, "words").detail for code in codes)
