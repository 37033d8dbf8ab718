"""Which links the store has acknowledged, in fixed memory: an optimisation in meaning, not in practice.

Sending all 44 links of a page to the store costs 1.4 ms, sending the six it may not know costs 0.25 (measured). It owns
a lossy table from a key to the (depth, flags) with which the store certainly has it.

Invariant: it errs one way only. It may forget a key, which costs one insert that does nothing; it says "known" only of
a key that a commit has stored with a depth at least as small and with every flag asked for, so a link that would
improve its entry is always sent. A Bloom filter errs the other way, and each of its mistakes would lose a URL.

How: two arrays of fixed size, never grown, never rebuilt. The place comes from Python's own hash of the text (random
in each process, so nobody can aim at it; usually computed already), the word stored there is an independent 64-bit
hash: a comparison is wrong once in 2^64. Each place has two seats, the newest first; of N keys in 1.3 to 2.1 N seats,
81 to 91 % are kept (measured). "Known" never stands for "visited". It refuses to know the store.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import xxhash

from comity.model import Entry

DEEPEST = (1 << 14) - 1
"""A depth from which on depths are not told apart: such a key is never "known", which is the harmless side."""


class SeenCache:
    """See the module. Ten bytes a seat; `seats` is rounded up to a power of two (2^20: a million, 10 MB)."""

    def __init__(self, seats: int = 1 << 20) -> None:
        size = 1 << max(1, (seats - 1).bit_length())
        self._words = array("Q", bytes(8 * size))  # 0: empty
        self._facts = array("H", bytes(2 * size))  # depth << 2 | is_feed << 1 | is_sitemap
        self._mask = size - 2  # of the first seat of a pair

    @property
    def size_bytes(self) -> int:
        return len(self._words) * self._words.itemsize + len(self._facts) * self._facts.itemsize

    def knows(self, key: str, depth: int, is_sitemap: bool = False, is_feed: bool = False) -> bool:
        """Does the store have this key with at most this depth and at least these flags?"""
        word = xxhash.xxh3_64_intdigest(key.encode()) or 1
        seat = hash(key) & self._mask
        if self._words[seat] != word:
            seat += 1
            if self._words[seat] != word:
                return False
        facts = self._facts[seat]
        known_depth = facts >> 2
        return known_depth <= depth and known_depth < DEEPEST and (is_feed << 1 | is_sitemap) & ~facts & 3 == 0

    def learn(self, entries: Sequence[Entry]) -> None:
        """The store has these, as they are or better. Only after the commit that stored them."""
        words, facts, mask = self._words, self._facts, self._mask
        for entry in entries:
            word = xxhash.xxh3_64_intdigest(entry.key.encode()) or 1
            seat = hash(entry.key) & mask
            fact = min(entry.depth, DEEPEST) << 2 | entry.is_feed << 1 | entry.is_sitemap
            if words[seat] == word:
                facts[seat] = _both(facts[seat], fact)
            elif words[seat + 1] == word:
                facts[seat + 1] = _both(facts[seat + 1], fact)
            else:
                words[seat + 1], facts[seat + 1] = words[seat], facts[seat]
                words[seat], facts[seat] = word, fact


def _both(known: int, learned: int) -> int:
    """The store keeps the smaller depth and every flag of what it was told."""
    return min(known >> 2, learned >> 2) << 2 | (known | learned) & 3
