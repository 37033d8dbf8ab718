"""Is this URL ours? The ordered, named rules; URL-7, B064, B067."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.scope import KEPT, Scope, from_seeds, judge
from comity.url import parse

HOST = "www.a.example"


def ruling(scope: Scope, url: str, host: str = HOST, depth: int = 0, **more: Any) -> str:
    found = judge(scope, url, host, depth, **more)
    assert found.keep is (found.rule == KEPT.rule)
    return found.rule


def span(mode: Any, *seeds: str, **more: Any) -> Scope:
    return from_seeds(mode, [parse(seed) for seed in seeds], **more)


@pytest.mark.parametrize(
    ("mode", "host", "expected"),
    [
        ("host", "www.a.co.uk", "scope.kept"),
        ("host", "a.co.uk", "scope.host"),
        ("host", "b.example", "scope.host"),
        ("domain", "www.a.co.uk", "scope.kept"),
        ("domain", "shop.a.co.uk", "scope.kept"),
        ("domain", "a.co.uk", "scope.kept"),
        ("domain", "b.co.uk", "scope.domain"),
        ("domain", "co.uk", "scope.domain"),
        ("domain", "nota.co.uk", "scope.domain"),
        ("domain", "me.github.io", "scope.kept"),
        ("domain", "you.github.io", "scope.domain"),
        ("domain", "127.0.0.1", "scope.kept"),
        ("domain", "127.0.0.2", "scope.domain"),
        ("domain", "localhost", "scope.kept"),
        ("any", "b.example", "scope.kept"),
    ],
)
def test_modes(mode: str, host: str, expected: str) -> None:
    scope = span(mode, "https://WWW.a.co.uk./x", "https://me.github.io/", "http://127.0.0.1:8080/", "http://localhost/")
    for _ in range(2):  # the second time from memory
        assert ruling(scope, f"https://{host}/", host) == expected


def test_domains_may_be_named_without_seeds() -> None:
    scope = Scope("domain", domains=frozenset({"a.example", "localhost"}))
    hosts = ["www.a.example", "localhost", "b.example", "127.0.0.1"]
    assert [ruling(scope, f"http://{host}/", host) for host in hosts] == ["scope.kept"] * 2 + ["scope.domain"] * 2


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://www.a.example/x", "scope.kept"),
        ("https://www.a.example:8443/x", "scope.kept"),
        ("https://shop.a.example/x", "scope.host"),
        ("https://shop.a.example:8443/x", "scope.host"),
        ("http://[::1]/", "scope.kept"),
        ("http://[::1]:81/", "scope.kept"),
        ("http://[::2]/", "scope.host"),
    ],
)
def test_one_host_stays_one_host_when_politeness_is_by_domain(url: str, expected: str) -> None:
    scope = span("host", "https://www.a.example/", "http://[::1]/", by_domain=True)
    assert ruling(scope, url, "a.example") == expected


@pytest.mark.parametrize(
    ("options", "url", "depth", "more", "expected"),
    [
        pytest.param({}, "https://www.a.example/" + "x" * 2026, 0, {}, "scope.kept", id="2,048 is not too long"),
        pytest.param({}, "https://www.a.example/" + "x" * 2027, 0, {}, "scope.url_length", id="URL-7"),
        pytest.param(
            {"max_url_length": None}, "https://www.a.example/" + "x" * 9000, 0, {}, "scope.kept", id="no limit"
        ),
        pytest.param({"max_depth": 2}, "https://www.a.example/", 2, {}, "scope.kept", id="depth at the limit"),
        pytest.param({"max_depth": 2}, "https://www.a.example/", 3, {}, "scope.depth", id="depth"),
        pytest.param({"max_depth": 0}, "https://www.a.example/", 1, {}, "scope.depth", id="seeds only"),
        pytest.param({}, "https://www.a.example/", 0, {"hops": 10}, "scope.kept", id="hops at the limit"),
        pytest.param({}, "https://www.a.example/", 0, {"hops": 11}, "scope.hops", id="hops"),
        pytest.param(
            {"exclude": (r"\.pdf$", r"/old/")}, "https://www.a.example/old/", 0, {}, "scope.exclude:/old/", id="exclude"
        ),
        pytest.param(
            {"exclude": (r"\.pdf$",)}, "https://www.a.example/a.pdf", 0, {}, r"scope.exclude:\.pdf$", id="pattern"
        ),
        pytest.param({"include": ("/en/", "/de/")}, "https://www.a.example/de/", 0, {}, "scope.kept", id="include"),
        pytest.param({"include": ("/en/",)}, "https://www.a.example/fr/", 0, {}, "scope.include", id="none of include"),
        pytest.param(
            {"include": ("/en/",), "exclude": ("x",)},
            "https://www.a.example/en/x",
            0,
            {},
            "scope.exclude:x",
            id="exclude first",
        ),
        pytest.param(
            {"max_pages_per_host": 5}, "https://www.a.example/", 0, {"pages_of_host": 4}, "scope.kept", id="budget"
        ),
        pytest.param(
            {"max_pages_per_host": 5},
            "https://www.a.example/",
            0,
            {"pages_of_host": 5},
            "scope.budget.host",
            id="budget spent",
        ),
        pytest.param(
            {}, "https://www.a.example/" + "a/b/c/d/e/f/g/h/i/j/" * 3, 0, {}, "scope.trap.segments", id="URL-7 deep"
        ),
        pytest.param({}, "https://www.a.example/?q=%25252525x", 0, {}, "scope.trap.escapes", id="B067"),
        pytest.param({}, "https://www.a.example/?u=%252525x", 0, {}, "scope.trap.escapes", id="B067 three deep"),
        pytest.param(
            {}, "https://www.a.example/?u=https%253A%252F%252Fb%2525", 0, {}, "scope.kept", id="a URL in a URL"
        ),
    ],
)
def test_rules(options: dict[str, Any], url: str, depth: int, more: dict[str, Any], expected: str) -> None:
    assert ruling(span("host", "https://www.a.example/", **options), url, depth=depth, **more) == expected


@pytest.mark.parametrize(
    ("path", "trap"),
    [
        ("a/a/a", False),
        ("a/a/a/a", True),
        ("x/a/a/a/a/y", True),
        ("a/b/a/b/a/b", False),
        ("a/b/a/b/a/b/a/b", True),
        ("a/b/a/b/a/b/a/b/page.html?x=1", True),
        ("a/b/c/a/b/c/a/b/c/a/b/c", True),
        ("a/b/c/a/b/c/a/b/c/a/b/x", False),
        ("a/x/a/y/a/z/a/w", False),
        ("a/a/b/a/a/b/a/a/b/a/a/b", True),
        ("2024/01/01/2024", False),
        ("event/www.partner.example/www.partner.example/www.partner.example/www.partner.example/p", True),
        ("p?next=/a/a/a/a/a", False),
        ("a/b/c/d/e/f/g/h/i/j/k/l", False),
        ("////", True),
    ],
)
def test_b064_repetition(path: str, trap: bool) -> None:
    scope = span("any", "https://www.a.example/", max_segments=None)
    assert ruling(scope, f"https://www.a.example/{path}") == ("scope.trap.repetition" if trap else "scope.kept")


def test_repetition_can_be_loosened_tightened_and_turned_off() -> None:
    url = "https://www.a.example/a/a/b"
    assert ruling(Scope("any", max_repeats=1), url) == "scope.trap.repetition"
    assert ruling(Scope("any", max_repeats=2), url) == "scope.kept"
    assert (
        ruling(Scope("any", max_repeats=None, max_segments=None), "https://www.a.example" + "/a" * 500) == "scope.kept"
    )
    assert ruling(Scope("any", max_segments=1), "https://www.a.example/a/b") == "scope.trap.segments"


def test_the_first_rule_that_refuses_is_named() -> None:
    scope = span("host", "https://www.a.example/", max_depth=0, max_pages_per_host=0, exclude=(".",))
    worst = "https://www.a.example" + "/a" * 1100
    order = [ruling(scope, worst, "b.example", 1, hops=99)]
    order.append(ruling(scope, worst[:99], "b.example", 1, hops=99))
    order.append(ruling(scope, worst[:99], "b.example", 0, hops=99))
    order.append(ruling(scope, worst[:99], "b.example", 0))
    order.append(ruling(scope, worst[:99], HOST, 0))
    assert order == ["scope.url_length", "scope.depth", "scope.hops", "scope.host", "scope.exclude:."]


@pytest.mark.parametrize(
    "bad",
    [
        {"include": ("(",)},
        {"exclude": ("[",)},
        {"mode": "site"},
        {"max_depth": -1},
        {"max_repeats": 0},
        {"max_url_length": -5},
    ],
    ids=str,
)
def test_what_means_nothing_is_refused_with_its_name(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="scope"):
        Scope(**bad)


@given(st.lists(st.sampled_from("ab"), max_size=14), st.integers(1, 4))
@settings(deadline=None, max_examples=400)
def test_repetition_is_what_it_says(segments: list[str], most: int) -> None:
    plain = any(
        segments[at : at + period] * (most + 1) == segments[at : at + period * (most + 1)]
        for period in range(1, 9)
        for at in range(len(segments) - period * (most + 1) + 1)
    )
    scope = Scope("any", max_repeats=most, max_segments=None)
    assert ruling(scope, "https://a.example/" + "/".join(segments)) == (
        "scope.trap.repetition" if plain else "scope.kept"
    )
