"""A page written to be read for ever costs its own host a moment, and no other host anything."""

from __future__ import annotations

import pytest
from test_crawl import crawled

from comity.fakeweb import NO_ROBOTS, Answer, Site, page
from conftest import StartWeb

HTML = ("Content-Type", "text/html")
TRAPS = {
    "/refresh": Answer(200, b"<meta http-equiv=refresh content='" + b"1" * 100_000 + b"x'>", (HTML,)),
    "/sections": Answer(200, b"<![CDATA[" * 400_000, (("Content-Type", "application/xhtml+xml"),)),
    "/options": Answer(200, b"<select>" + b"<option>" * 130_000, (HTML,)),
    "/fields": Answer(200, b"", (HTML, ("Cache-Control", "," * 60_000))),
}


@pytest.mark.timeout(20)
async def test_pages_that_cannot_be_read_to_their_end_hold_up_nobody(fakeweb: StartWeb) -> None:
    links = [f"/{n}" for n in range(20)]
    good = {"/": page(links)} | {link: page() for link in links}
    web = await fakeweb(
        Site("a.localhost", {"/": page(list(TRAPS)), **TRAPS}, (NO_ROBOTS,)),
        Site("b.localhost", good, (NO_ROBOTS,)),
    )
    sink = await crawled([web.url("a.localhost", "/"), web.url("b.localhost", "/")])
    assert sorted(sink.paths(web)) == sorted(["/", "/", *TRAPS, *links])
    assert {visit.after.status.name for visit in sink.visits} == {"FETCHED"}
    assert [visit.found.problem for visit in sink.visits if visit.found is not None and visit.found.problem] == []
