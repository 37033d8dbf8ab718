"""What is remembered of a body: CND-2, CND-3, CND-5, FRS-2, B167–B169."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, a_page, an_entry, not_modified
from comity import body
from comity.model import Entry

DAY = 86_400.0


@pytest.mark.parametrize("etag", ['W/"a,b"', '"x"', "x", '"a-gzip"'])
def test_b167_validators_are_kept_byte_for_byte(etag: str) -> None:
    facts = body.seen(an_entry(), a_page("text", etag=etag, last_modified="  odd"), now=NOW, fresh_max_s=DAY)
    assert (facts["etag"], facts["last_modified"]) == (etag, "  odd")


def test_a_page_replaces_everything() -> None:
    entry = an_entry(etag='"1"', last_modified="Mon", digest="old", size_bytes=9, changed_at=5.0, fresh_until_at=6.0)
    digest = hashlib.sha256(b"text").hexdigest()
    assert body.seen(entry, a_page("text"), now=NOW, fresh_max_s=DAY) == {
        "etag": None,
        "last_modified": None,
        "digest": digest,
        "size_bytes": 4,
        "changed_at": NOW,
        "fresh_until_at": None,
    }
    same = an_entry(digest=digest, changed_at=5.0)
    assert body.seen(same, a_page("text"), now=NOW, fresh_max_s=DAY)["changed_at"] == 5.0


@pytest.mark.parametrize(
    ("had", "says", "etag"),
    [
        (('"1"', "Mon"), {}, '"1"'),
        (('"1"', "Mon"), {"etag": '"1"'}, '"1"'),
        (('W/"1"', "Mon"), {"etag": '"1"'}, '"1"'),
        (('W/"1"', "Mon"), {"etag": 'W/"2"'}, 'W/"2"'),
        (('"1"', "Mon"), {"etag": 'W/"2"'}, 'W/"2"'),
        ((None, "Mon"), {"etag": '"2"'}, '"2"'),
    ],
    ids=["says nothing", "the same", "the same, stronger", "weak", "weaker", "the first"],
)
def test_b168_a_304_merges_validators(had: tuple[str | None, str], says: dict[str, str], etag: str) -> None:
    entry = an_entry(etag=had[0], last_modified=had[1])
    facts = body.confirmed(entry, not_modified(**says), now=NOW, fresh_max_s=DAY)
    assert facts == {"etag": etag, "last_modified": "Mon", "fresh_until_at": None}
    later = body.confirmed(entry, not_modified(**says, last_modified="Tue"), now=NOW, fresh_max_s=DAY)
    assert later["last_modified"] == "Tue"


def test_cnd_3_a_304_that_speaks_of_another_body_is_asked_again_without_conditions() -> None:
    entry = an_entry(etag='"1"', last_modified="Mon", digest="d", size_bytes=3)
    facts = body.confirmed(entry, not_modified(etag='"2"', cache_control="max-age=60"), now=NOW, fresh_max_s=DAY)
    assert facts == {"etag": None, "last_modified": None, "fresh_until_at": None}


def test_frs_2_freshness_is_cut_at_the_limit() -> None:
    year = "max-age=31536000"
    facts = body.seen(an_entry(), a_page("", cache_control=year), now=NOW, fresh_max_s=DAY)
    assert facts["fresh_until_at"] == NOW + DAY
    facts = body.confirmed(an_entry(etag="x"), not_modified(cache_control=year), now=NOW, fresh_max_s=9)
    assert facts["fresh_until_at"] == NOW + 9


def test_all_facts_are_fields_of_an_entry_and_go_together() -> None:
    seen = body.seen(an_entry(), a_page("x"), now=NOW, fresh_max_s=DAY)
    assert seen.keys() <= set(Entry.__struct_fields__)
    assert body.NONE.keys() == seen.keys() - {"changed_at"}
    assert not any(body.NONE.values()) and not any(body.STALE.values())


@settings(deadline=None)
@given(st.lists(st.sampled_from([b"", b"a", b"b"]), min_size=1, max_size=9))
def test_cnd_5_a_change_is_a_change_of_bytes(bodies: list[bytes]) -> None:
    entry, changes = an_entry(), []
    for n, content in enumerate(bodies):
        facts = body.seen(entry, a_page(content.decode()), now=NOW + n, fresh_max_s=DAY)
        changes.append(facts["changed_at"] == NOW + n)
        entry = an_entry(digest=facts["digest"], changed_at=facts["changed_at"])
    assert changes == [True, *(before != after for before, after in pairwise(bodies))]
