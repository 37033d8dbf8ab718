"""Profiles are data: what differs is named here, once more, in full."""

from __future__ import annotations

import dataclasses
import math

import pytest

from comity.profiles import COMITY, PROFILES, STORMCRAWLER, Profile

DIFFERENCES = {
    "name": ("comity", "stormcrawler"),
    "success": ({200, 201, 203, 204, 205, 206}, {200}),
    "min_error_span_s": (86_400, 0),
    "retry_base_s": (30, 7200),
    "retry_factor": (4, 1),
    "retry_max_s": (21_600, 7200),
    "jitter": (True, False),
    "recount_after_error": (False, True),
    "gone": ({410}, set()),
    "host_answers": (True, False),
    "forgive_ours": (True, False),
    "refuse_forbidden": (True, False),
    "conditional_304": (True, False),
    "redirect_needs_target": (True, False),
    "max_hops": (10, None),
    "redirect_adds_depth": (False, True),
    "refresh_redirects": (False, True),
    "unreadable_ends": (False, True),
}


def test_the_profiles_differ_in_these_options_and_no_other() -> None:
    values = {
        field.name: (getattr(COMITY, field.name), getattr(STORMCRAWLER, field.name))
        for field in dataclasses.fields(Profile)
    }
    assert {name: pair for name, pair in values.items() if pair[0] != pair[1]} == DIFFERENCES
    assert values["max_fetch_errors"] == (3, 3)


def test_they_are_found_by_name() -> None:
    assert PROFILES == {"comity": COMITY, "stormcrawler": STORMCRAWLER}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("min_error_span_s", -1.0),
        ("retry_base_s", -0.1),
        ("retry_max_s", math.inf),
        ("retry_factor", 0.5),
        ("retry_factor", math.nan),
        ("max_hops", -1),
    ],
)
def test_options_that_mean_nothing_are_refused(option: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"lifecycle\.{option}"):
        dataclasses.replace(COMITY, **{option: value})  # type: ignore[arg-type]
