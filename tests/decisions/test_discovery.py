"""How a found URL becomes an entry: depth, hops, via, flags, metadata. T013, T020, T023, T038, T131–T133, P25."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, a_link, an_entry
from comity.discovery import LONGEST_CHAIN, discover, refuse_found, seed, sitemap_of_robots
from comity.metadata import Policy
from comity.model import Cause, Entry, Link, LinkKind, Status
from comity.profiles import COMITY, STORMCRAWLER, Profile
from comity.url import parse

PARENT = an_entry("https://a.example/", depth=3, hops=2, chain=("https://a.example/0",))


def child(kind: LinkKind = LinkKind.ANCHOR, profile: Profile = COMITY, parent: Entry = PARENT, **more: Any) -> Entry:
    return discover(parent, a_link(kind=kind), now=NOW + 60, profile=profile, **more)


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        (LinkKind.ANCHOR, (4, 0), (4, 0)),
        (LinkKind.CANONICAL, (4, 0), (4, 0)),
        (LinkKind.SITEMAP, (4, 0), (4, 0)),
        (LinkKind.SITEMAP_URL, (4, 0), (4, 0)),
        (LinkKind.FEED, (4, 0), (4, 0)),
        (LinkKind.REFRESH, (4, 0), (4, 3)),
        (LinkKind.REDIRECT, (3, 3), (4, 3)),
    ],
    ids=str,
)
def test_p25_t013_depth_and_hops(kind: LinkKind, ours: tuple[int, int], theirs: tuple[int, int]) -> None:
    assert (child(kind).depth, child(kind).hops) == ours
    assert (child(kind, STORMCRAWLER).depth, child(kind, STORMCRAWLER).hops) == theirs


@pytest.mark.parametrize("kind", LinkKind, ids=str)
@pytest.mark.parametrize("profile", [COMITY, STORMCRAWLER], ids=lambda profile: profile.name)
def test_a_discovery_is_due_at_once_and_has_no_past(kind: LinkKind, profile: Profile) -> None:
    old = an_entry("https://a.example/", status=Status.FETCHED, visited_at=NOW, etag="x", errors=2, place="1:2")
    entry = child(kind, profile, old)
    assert (entry.url, entry.key, entry.host) == ("https://a.example/other", "https://a.example/other", "a.example")
    assert (entry.status, entry.due_at, entry.next_rule) == (Status.DISCOVERED, NOW + 60, "discovered")
    assert (entry.discovered_at, entry.via) == (NOW + 60, "https://a.example/")
    assert (entry.visited_at, entry.etag, entry.errors, entry.place, entry.history) == (None, None, 0, None, ())


def test_flags_follow_the_link_and_survive_a_redirect() -> None:
    assert child(LinkKind.SITEMAP).is_sitemap and not child(LinkKind.SITEMAP_URL).is_sitemap
    assert child(LinkKind.FEED).is_feed and not child(LinkKind.ANCHOR).is_feed
    moved = an_entry("https://a.example/", is_sitemap=True, is_feed=True)
    target = child(LinkKind.REDIRECT, parent=moved)
    assert target.is_sitemap and target.is_feed  # T038
    link = child(LinkKind.SITEMAP_URL, parent=moved)
    assert not link.is_sitemap and not link.is_feed  # T133


def test_p27_a_redirects_target_knows_the_chain_that_led_to_it() -> None:
    assert child(LinkKind.REDIRECT).chain == ("https://a.example/0", "https://a.example/")
    assert child(LinkKind.ANCHOR).chain == ()
    entry = an_entry("https://a.example/0")
    for n in range(1, 40):
        entry = discover(entry, a_link(f"https://a.example/{n}", LinkKind.REDIRECT), now=NOW)
    assert entry.hops == 39
    assert entry.chain == tuple(f"https://a.example/{n}" for n in range(39 - LONGEST_CHAIN, 39))


def test_hints_are_handed_on() -> None:
    assert discover(PARENT, a_link(hint_at=5.0), now=NOW).hint_at == 5.0


def test_t020_t133_metadata_are_inherited_by_the_list() -> None:
    parent = an_entry("https://a.example/", metadata={"nguon": ("catalog",), "own": ("x",), "max.depth": ("2",)})
    policy = Policy(transfer=("nguon",), persist=("own",))
    for kind in (LinkKind.ANCHOR, LinkKind.REDIRECT):
        entry = child(kind, parent=parent, metadata_policy=policy)
        assert entry.metadata == {"nguon": ("catalog",), "max.depth": ("2",)}
    assert child(parent=parent).metadata == {"max.depth": ("2",)}


def test_a_refusal_when_found_is_stored_as_one() -> None:
    found = child()
    entry = refuse_found(found, "digest")
    assert (entry.status, entry.cause, entry.due_at) == (Status.ERROR, Cause.ROBOTS, None)
    assert (entry.next_rule, entry.rules_digest, entry.visited_at) == ("never.robots", "digest", None)
    assert (entry.url, entry.depth, entry.via) == (found.url, found.depth, found.via)
    assert refuse_found(found, None).rules_digest is None


def test_t001_t023_a_seed() -> None:
    url = parse("HTTPS://A.example/x%7e#top")
    entry = seed(url, "a.example", now=NOW, metadata={"nguon": ("catalog",)}, metadata_policy=Policy())
    assert (entry.url, entry.key) == ("https://a.example/x%7e#top", "https://a.example/x~")
    assert (entry.depth, entry.hops, entry.via, entry.due_at, entry.discovered_at) == (0, 0, None, NOW, NOW)
    assert entry.metadata == {}
    kept = seed(url, "a.example", now=NOW, metadata={"nguon": ("catalog",)}, metadata_policy=Policy(("nguon",)))
    assert kept.metadata == {"nguon": ("catalog",)}
    later = seed(url, "a.example", now=NOW, metadata={"nguon": ("catalog",)}, is_sitemap=True, is_feed=True)
    assert later.metadata == {"nguon": ("catalog",)} and later.is_sitemap and later.is_feed


def test_a_sitemap_named_by_robots_belongs_to_the_origin() -> None:
    link = a_link("https://a.example/sitemap.xml", LinkKind.SITEMAP)
    entry = sitemap_of_robots(link, "https://a.example/robots.txt", now=NOW)
    assert (entry.depth, entry.hops, entry.via) == (0, 0, "https://a.example/robots.txt")
    assert (entry.is_sitemap, entry.due_at, entry.next_rule, entry.metadata) == (True, NOW, "discovered", {})


LINKS = st.builds(a_link, st.sampled_from(["https://a.example/1", "https://b.example/2"]), st.sampled_from(LinkKind))


@settings(deadline=None)
@given(st.lists(LINKS, max_size=30), st.sampled_from([COMITY, STORMCRAWLER]))
def test_along_any_way_numbers_grow_by_one_or_begin_anew(links: list[Link], profile: Profile) -> None:
    entry = PARENT
    for link in links:
        found = discover(entry, link, now=NOW, profile=profile)
        assert found.depth - entry.depth in (0, 1)
        assert found.hops in (0, entry.hops + 1)
        assert (found.hops == 0) is (found.chain == ())
        assert len(found.chain) <= LONGEST_CHAIN
        entry = found
