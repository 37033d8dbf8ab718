"""Nothing that is found is let through or let go on some path only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from test_crawl import Collected, of, opened

from comity.fakeweb import NO_ROBOTS, Site, page, redirect
from comity.model import Cause, Status
from conftest import StartWeb


async def test_a_link_known_as_a_page_is_known_as_a_feed_once_it_is_named_one(fakeweb: StartWeb) -> None:
    feed = '<link rel="alternate" type="application/rss+xml" href="/news">'
    pages = {"/": page(["/b", "/c", "/news"]), "/b": page(more=feed), "/c": page(), "/news": page()}
    web = await fakeweb(Site("a.localhost", pages, (NO_ROBOTS,)))
    sink = Collected()
    options: dict[str, Any] = {"engine.batch": 1, "engine.per_host": 1}
    async with opened([web.url("a.localhost", "/")], sink, **options) as running:
        await running.run()
    assert sink.paths(web) == ["/", "/b", "/c", "/news"]
    assert of(sink.visits, "/news")[0].entry.is_feed


async def test_the_limit_on_hops_holds_when_its_turn_comes_too(fakeweb: StartWeb, tmp_path: Path) -> None:
    """A stricter option binds what was found before."""
    web = await fakeweb(Site("a.localhost", {"/": redirect("/b"), "/b": page()}, (NO_ROBOTS,)))
    seeds = [web.url("a.localhost", "/")]
    options: dict[str, Any] = {"directory": tmp_path / "c", "engine.max_pages": 1}
    async with opened(seeds, Collected(), **options) as running:
        await running.run()
    sink = Collected()
    stricter: dict[str, Any] = {"directory": tmp_path / "c", "scope.max_hops": 0}
    async with opened(seeds, sink, **stricter) as running:
        await running.run()
    (refused,) = of(sink.visits, "/b")
    assert (refused.after.status, refused.after.cause, refused.after.detail) == (
        Status.ERROR,
        Cause.SCOPE,
        "scope.hops",
    )
    assert [line.path for line in web.lines] == ["/robots.txt", "/"]
