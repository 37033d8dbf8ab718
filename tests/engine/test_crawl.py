"""Whole crawls on the fake web: what a site may count on, and what an operator may."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import comity
from comity.assemble import Running, prepared
from comity.clock import VirtualClock
from comity.config import defaults, override
from comity.fakeweb import (
    NO_ROBOTS,
    Answer,
    FakeWeb,
    Robots,
    Site,
    page,
    redirect,
    robots,
    robots_refused,
    robots_unreachable,
    sitemap,
    throttled,
)
from comity.model import Cause, Deletion, Failure, Mark, Status, Visit
from conftest import StartWeb

START_AT = 1_800_000_000.0
LOCAL: dict[str, Any] = {"address.allow_private": True, "scope.mode": "host"}


class Collected:
    """A sink that remembers, in memory."""

    name = "collected"

    def __init__(self) -> None:
        self.visits: list[Visit] = []
        self.deletions: list[Deletion] = []

    async def open(self, mark: Mark | None) -> None: ...

    async def write(self, visits: Sequence[Visit]) -> Mark:
        self.visits += visits
        return {"n": len(self.visits)}

    async def delete(self, deletions: Sequence[Deletion]) -> Mark:
        self.deletions += deletions
        return {"n": len(self.visits)}

    async def close(self) -> None: ...

    def paths(self, web: FakeWeb) -> list[str]:
        return [visit.entry.url.split(str(web.port), 1)[1] for visit in self.visits]


@asynccontextmanager
async def opened(
    seeds: Sequence[str],
    sink: Collected,
    *,
    clock: VirtualClock | None = None,
    directory: Path | None = None,
    **options: Any,
) -> AsyncIterator[Running]:
    settings = override(defaults("comity"), LOCAL | {"politeness.delay_s": 0.0} | options)
    running = await prepared(seeds, directory=directory, sinks=[sink], settings=settings, clock=clock)
    try:
        yield running
    finally:
        await running.close()


async def crawled(seeds: Sequence[str], **options: Any) -> Collected:
    sink = Collected()
    async with opened(seeds, sink, **options) as running:
        await running.run()
    return sink


def of(visits: Sequence[Visit], path: str) -> list[Visit]:
    return [visit for visit in visits if visit.entry.url.endswith(path)]


# ------------------------------------------------------------------------------------------------------------- robots


async def test_R1_a_refused_url_is_never_asked_for_wherever_it_comes_from(fakeweb: StartWeb) -> None:
    """Link, seed, redirect target and sitemap entry alike (ROB-32, P10)."""

    def sites(port: int) -> list[Site]:
        host = "a.localhost"
        listed = sitemap([f"http://{host}:{port}/p", f"http://{host}:{port}/private/listed"])
        pages = {
            "/": page(["/private/linked", "/go"]),
            "/go": redirect("/private/target"),
            "/p": page(),
            "/map.xml": listed,
        }
        return [Site(host, pages, (robots(["/private/"], sitemaps=[f"http://{host}:{port}/map.xml"]),))]

    web = await fakeweb(sites)
    sink = await crawled([web.url("a.localhost", "/"), web.url("a.localhost", "/private/seed")])
    assert [line for line in web.lines if line.path.startswith("/private/")] == []
    assert web.judge().forbidden == 0
    assert of(sink.visits, "/p")[0].after.status is Status.FETCHED
    refused = of(sink.visits, "/private/seed")[0]
    assert (refused.after.status, refused.after.cause) == (Status.ERROR, Cause.ROBOTS)
    assert refused.verdict is not None
    assert (refused.verdict.line, refused.verdict.rule) == (2, "Disallow: /private/")
    found = {entry.url.rpartition("/")[2]: entry for visit in sink.visits for entry in visit.discoveries}
    assert {found[name].cause for name in ("linked", "target", "listed")} == {Cause.ROBOTS}


@pytest.mark.parametrize("answer", [Answer(503), Answer(500), Answer(hang=False, raw=b""), Answer(429)])
async def test_ROB_26_27_an_unreachable_robots_txt_makes_the_host_wait_and_changes_nothing(
    fakeweb: StartWeb, answer: Answer
) -> None:
    clock = VirtualClock(START_AT)
    web = await fakeweb(Site("a.localhost", {"/": page()}, (robots_unreachable(answer),)), now=clock.now)
    sink = Collected()
    async with opened([web.url("a.localhost", "/")], sink, clock=clock) as running:
        await running.run()
        left = await running.left()
    assert sink.visits == []
    assert {line.path for line in web.lines} == {"/robots.txt"}
    assert (left.by_status["DISCOVERED"], left.urls) == (1, 1)
    assert [host for host, _, _ in left.held] == ["a.localhost"]


async def test_P14_a_site_whose_robots_txt_comes_back_is_crawled(fakeweb: StartWeb) -> None:
    clock = VirtualClock(START_AT)
    answers = (robots_unreachable(), robots_unreachable(), robots(["/private/"]))
    web = await fakeweb(Site("a.localhost", {"/": page(["/private/x"])}, answers), now=clock.now)
    sink = await crawled([web.url("a.localhost", "/")], clock=clock, **{"engine.patience_s": 1000.0})
    assert [visit.after.status for visit in of(sink.visits, "/")][:1] == [Status.FETCHED]
    assert web.judge().forbidden == 0


async def test_ROB_24_redirects_of_robots_txt_are_followed_across_hosts_by_the_other_hosts_clock(
    fakeweb: StartWeb,
) -> None:
    """P1: and an empty redirect is not "no rules"; the rules bind the host that was asked first."""
    clock = VirtualClock(START_AT)

    def sites(port: int) -> list[Site]:
        away = Robots(redirect(f"http://www.b.localhost:{port}/robots.txt"))
        here = Site("b.localhost", {"/": page(["/private/x", "/p"]), "/p": page()}, (away,))
        return [here, Site("www.b.localhost", {"/": page()}, (robots(["/private/"]),))]

    web = await fakeweb(sites, now=clock.now)
    seeds = [web.url("b.localhost", "/"), web.url("www.b.localhost", "/")]
    sink = await crawled(seeds, clock=clock, **{"politeness.delay_s": 5.0})
    assert not [line for line in web.lines if line.path.startswith("/private")]
    assert len(of(sink.visits, "/p")) == 1
    assert web.judge(delay_s=5.0).early == 0


async def test_D2_robots_403_disallows(fakeweb: StartWeb) -> None:
    web = await fakeweb(Site("a.localhost", {"/": page()}, (robots_refused(403),)))
    sink = await crawled([web.url("a.localhost", "/")])
    assert [line.path for line in web.lines] == ["/robots.txt"]
    assert sink.visits[0].after.cause is Cause.ROBOTS


async def test_a_crawl_delay_binds_the_very_next_request(fakeweb: StartWeb) -> None:
    clock = VirtualClock(START_AT)
    web = await fakeweb(Site("a.localhost", {"/": page(["/b"]), "/b": page()}, (robots(delay_s=120),)), now=clock.now)
    await crawled([web.url("a.localhost", "/")], clock=clock)
    starts = [line.start_at - START_AT for line in web.lines]
    assert starts == pytest.approx([0, 120, 240], abs=0.5)


async def test_refused_urls_are_judged_again_when_the_rules_change(fakeweb: StartWeb, tmp_path: Path) -> None:
    clock = VirtualClock(START_AT, auto=True)
    answers = (robots(["/secret/"]), robots(["/other/"]))
    site = Site("a.localhost", {"/": page(["/secret/x"]), "/secret/x": page()}, answers)
    web = await fakeweb(site, now=clock.now)
    seeds = [web.url("a.localhost", "/")]
    first = await crawled(seeds, clock=clock, directory=tmp_path / "c")
    assert of(first.visits, "/secret/x") == []
    clock.advance_to(START_AT + 2 * 86_400)
    second = await crawled(seeds, clock=clock, directory=tmp_path / "c")
    assert [visit.after.status for visit in of(second.visits, "/secret/x")][-1] is Status.FETCHED
    assert web.judge().forbidden == 0


# ------------------------------------------------------------------------------------------------------------- answers


async def test_THR_429_with_retry_after_holds_the_whole_host_and_burns_no_retry(fakeweb: StartWeb) -> None:
    clock = VirtualClock(START_AT)
    site = Site("a.localhost", {"/": [throttled(40), page(["/b"])], "/b": page()}, (NO_ROBOTS,))
    web = await fakeweb(site, now=clock.now)
    sink = await crawled([web.url("a.localhost", "/")], clock=clock)
    first, second = of(sink.visits, "/")[:2]
    assert (first.after.status, first.after.errors, first.after.failure) == (Status.DISCOVERED, 0, Failure.HTTP_429)
    assert second.after.status is Status.FETCHED
    asked = [line.start_at - START_AT for line in web.lines if line.path == "/"]
    assert asked[1] - asked[0] >= 40
    assert web.judge().early == 0


async def test_a_hold_longer_than_patience_is_left_and_told(fakeweb: StartWeb) -> None:
    clock = VirtualClock(START_AT)
    site = Site("a.localhost", {"/": throttled(3600)}, (NO_ROBOTS,))
    web = await fakeweb(site, now=clock.now)
    sink = Collected()
    async with opened([web.url("a.localhost", "/")], sink, clock=clock) as running:
        await running.run()
        left = await running.left()
    assert clock.now() < START_AT + 61
    assert [host for host, _, _ in left.held] == ["a.localhost"]
    assert "3600" in left.held[0][2]


async def test_A4_retries_are_due_times_and_end_after_three(fakeweb: StartWeb) -> None:
    clock = VirtualClock(START_AT)
    web = await fakeweb(Site("a.localhost", {"/": Answer(404)}, (NO_ROBOTS,)), now=clock.now)
    sink = await crawled([web.url("a.localhost", "/")], clock=clock, **{"engine.patience_s": 3600.0})
    assert [visit.after.status for visit in sink.visits] == [Status.FETCH_ERROR, Status.FETCH_ERROR, Status.ERROR]
    assert sink.visits[-1].after.cause is Cause.MAX_ERRORS
    assert [deletion.url for deletion in sink.deletions] == [web.url("a.localhost", "/")]


async def test_RED_each_hop_is_a_discovery_of_its_own(fakeweb: StartWeb) -> None:
    site = Site("a.localhost", {"/": redirect("/b"), "/b": redirect("/c"), "/c": page()}, (NO_ROBOTS,))
    web = await fakeweb(site)
    sink = await crawled([web.url("a.localhost", "/")])
    assert sink.paths(web) == ["/", "/b", "/c"]
    assert [(v.entry.depth, v.entry.hops) for v in sink.visits] == [(0, 0), (0, 1), (0, 2)]


async def test_nofollow_links_and_pages_are_not_followed(fakeweb: StartWeb) -> None:
    closed = Answer(
        body=b'<meta name=robots content=nofollow><a href="/hidden">x</a>', headers=(("Content-Type", "text/html"),)
    )
    more = '<a rel="nofollow" href="/nofollow">x</a>'
    web = await fakeweb(Site("a.localhost", {"/": page(["/closed"], more=more), "/closed": closed}, (NO_ROBOTS,)))
    sink = await crawled([web.url("a.localhost", "/")])
    assert sink.paths(web) == ["/", "/closed"]
    assert sink.visits[0].refused_links == {"rel.nofollow": 1}
    assert sink.visits[1].refused_links == {"directives.nofollow": 1}


async def test_A3_a_time_out_is_named_and_costs_no_other_host(fakeweb: StartWeb) -> None:
    slow = Site("slow.localhost", {"/": Answer(hang=True)}, (NO_ROBOTS,))
    good = Site("good.localhost", {"/": page()}, (NO_ROBOTS,))
    web = await fakeweb(slow, good)
    seeds = [web.url("slow.localhost", "/"), web.url("good.localhost", "/")]
    sink = await crawled(seeds, **{"fetch.total_timeout_s": 0.3, "engine.patience_s": 0.0})
    failed = of(sink.visits, web.url("slow.localhost", "/"))[0]
    assert failed.after.failure in (Failure.TIMEOUT_TOTAL, Failure.TIMEOUT_READ)
    assert of(sink.visits, web.url("good.localhost", "/"))[0].after.status is Status.FETCHED


# ------------------------------------------------------------------------------------------------------ limits and ends


@pytest.mark.parametrize("most", [1, 7, 30])
async def test_max_pages_asks_for_exactly_so_many(fakeweb: StartWeb, most: int) -> None:
    hosts = [f"h{n}.localhost" for n in range(5)]
    links = [f"/{n}" for n in range(20)]
    pages = {"/": page(links)} | {link: page() for link in links}
    web = await fakeweb(*(Site(host, pages, (NO_ROBOTS,)) for host in hosts))
    sink = Collected()
    settings = override(defaults("comity"), LOCAL | {"politeness.delay_s": 0.0})
    running = await prepared(
        [web.url(h, "/") for h in hosts], directory=None, sinks=[sink], settings=settings, max_pages=most
    )
    await running.run()
    await running.close()
    assert running.crawl.why_ended == f"{most} pages were asked for, as many as allowed"
    assert len(sink.visits) == most
    assert len([line for line in web.lines if line.path != "/robots.txt"]) == most


async def test_every_url_once_in_a_run_even_if_due_again(fakeweb: StartWeb) -> None:
    clock = VirtualClock(START_AT)
    links = [f"/{n}" for n in range(10)]
    pages = {"/": page(links)} | {link: page() for link in links}
    web = await fakeweb(Site("a.localhost", pages, (NO_ROBOTS,)), now=clock.now)
    sink = await crawled(
        [web.url("a.localhost", "/")], clock=clock, **{"politeness.delay_s": 10.0, "recrawl.fetched_s": 15.0}
    )
    assert Counter(sink.paths(web)) == Counter(["/", *links])


async def test_stop_lets_what_is_in_flight_end_and_gives_back_the_rest(fakeweb: StartWeb, tmp_path: Path) -> None:
    hosts = [f"h{n}.localhost" for n in range(4)]
    slow = Answer(body=b"<a href=/b>b</a>", headers=(("Content-Type", "text/html"),), wait_s=0.3)
    web = await fakeweb(*(Site(host, {"/": slow, "/b": page()}, (NO_ROBOTS,)) for host in hosts))
    seeds = [web.url(host, "/") for host in hosts]
    seen = 0
    async for _ in comity.crawl(seeds, delay_s=0.0, allow_private=True, directory=tmp_path / "c"):
        seen += 1
        break
    rest = [v async for v in comity.crawl(seeds, delay_s=0.0, allow_private=True, directory=tmp_path / "c")]
    assert seen == 1
    assert len({visit.entry.url for visit in rest}) == len(rest) == 2 * len(hosts)  # the one taken was not asked past


async def test_a_visit_counts_as_written_when_the_loop_asks_for_the_next(fakeweb: StartWeb, tmp_path: Path) -> None:
    links = [f"/{n}" for n in range(9)]
    pages = {"/": page(links)} | {link: page() for link in links}
    web = await fakeweb(Site("a.localhost", pages, (NO_ROBOTS,)))
    seeds = [web.url("a.localhost", "/")]
    taken: list[str] = []
    async for visit in comity.crawl(seeds, delay_s=0.0, allow_private=True, directory=tmp_path / "c"):
        if len(taken) == 4:
            break
        taken.append(visit.entry.url)
    rest = [v.entry.url async for v in comity.crawl(seeds, delay_s=0.0, allow_private=True, directory=tmp_path / "c")]
    assert len(taken) == 4
    assert not set(taken) & set(rest)
    assert len(taken) + len(rest) == 10


async def test_scope_holds_when_found_and_when_fetched(fakeweb: StartWeb) -> None:
    def sites(port: int) -> list[Site]:
        out = [f"http://b.localhost:{port}/", "/in"]
        return [Site("a.localhost", {"/": page(out), "/in": page()}), Site("b.localhost", {"/": page()})]

    web = await fakeweb(sites)
    sink = await crawled([web.url("a.localhost", "/")])
    assert sink.paths(web) == ["/", "/in"]
    assert sink.visits[0].refused_links == {"scope.host": 1}
    assert {line.host.partition(":")[0] for line in web.lines} == {"a.localhost"}
