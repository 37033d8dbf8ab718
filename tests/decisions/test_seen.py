"""The seen cache errs one way only: it may forget, it never calls known what the store does not have as good."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.frontier.seen import DEEPEST, SeenCache
from comity.model import Entry


def entry(key: str, depth: int = 0, is_sitemap: bool = False, is_feed: bool = False) -> Entry:
    return Entry(key, key, "a.example", depth=depth, is_sitemap=is_sitemap, is_feed=is_feed)


@pytest.mark.parametrize(
    ("learned", "asked", "known"),
    [
        ((2, False, False), (2, False, False), True),
        ((2, False, False), (3, False, False), True),
        ((2, False, False), (1, False, False), False),
        ((2, False, False), (2, True, False), False),
        ((2, False, False), (2, False, True), False),
        ((2, True, False), (2, False, True), False),
        ((2, True, True), (2, True, False), True),
        ((2, True, True), (9, True, True), True),
        ((0, False, False), (0, False, False), True),
        ((DEEPEST - 1, False, False), (DEEPEST - 1, False, False), True),
        ((DEEPEST, False, False), (DEEPEST, False, False), False),
        ((DEEPEST + 5, False, False), (DEEPEST + 7, False, False), False),
    ],
)
def test_a_link_that_would_improve_its_entry_is_not_known(
    learned: tuple[int, bool, bool], asked: tuple[int, bool, bool], known: bool
) -> None:
    seen = SeenCache(16)
    seen.learn([entry("k", *learned)])
    assert seen.knows("k", *asked) is known


def test_nothing_is_known_at_first() -> None:
    assert not SeenCache().knows("k", 99)


def test_what_is_learned_adds_up_as_the_store_adds_it_up() -> None:
    seen = SeenCache(16)
    seen.learn([entry("k", 5, is_sitemap=True), entry("k", 1), entry("k", 7, is_feed=True)])
    assert seen.knows("k", 1, True, True)
    assert not seen.knows("k", 0)


KEYS = st.integers(0, 40).map(str)
ENTRIES = st.lists(st.builds(entry, KEYS, st.integers(0, 4), st.booleans(), st.booleans()), max_size=60)


@settings(deadline=None)
@given(ENTRIES, st.sampled_from([1, 2, 4, 16, 64]))
def test_known_means_that_the_store_has_it_as_good(learned: list[Entry], seats: int) -> None:
    """Whatever was pushed out by what; the dictionary below is the store."""
    seen = SeenCache(seats)
    stored: dict[str, tuple[int, bool, bool]] = {}
    for e in learned:
        depth, is_sitemap, is_feed = stored.get(e.key, (e.depth, False, False))
        stored[e.key] = (min(depth, e.depth), is_sitemap or e.is_sitemap, is_feed or e.is_feed)
        seen.learn([e])
        assert seen.knows(e.key, e.depth, e.is_sitemap, e.is_feed), "the newest is always known"
        for key in map(str, range(41)):
            for asked in [(depth, s, f) for depth in range(5) for s in (False, True) for f in (False, True)]:
                if seen.knows(key, *asked):
                    assert key in stored
                    depth, is_sitemap, is_feed = stored[key]
                    assert depth <= asked[0]
                    assert is_sitemap >= asked[1]
                    assert is_feed >= asked[2]


def test_most_keys_are_kept_while_they_fit() -> None:
    """Of N keys in 2 N seats about nine tenths, whatever the text."""
    seen = SeenCache(1 << 14)
    keys = [f"https://a.example/{n}" for n in range(1 << 13)]
    seen.learn([entry(key) for key in keys])
    assert sum(seen.knows(key, 0) for key in keys) > 0.8 * len(keys)


def test_memory_is_fixed_by_the_number_of_seats() -> None:
    seen = SeenCache(1000)
    before = seen.size_bytes
    seen.learn([entry(str(n)) for n in range(5_000)])
    assert seen.size_bytes == before == 1024 * 10
