"""The URL vectors: web-platform-tests, RFC 3986, and what other crawlers' normalisers agree on.

What other projects call a normalised URL is our key; where their answer needs a clean-up that is off by default, the
clean-up is turned on for the vector.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import vectors
from ada_url import idna_to_ascii

from comity.url import CleanUps, InvalidUrl, parse, registrable_domain, resolve

WHATWG = vectors.load("urls/whatwg.json")["vectors"]
RESOLVE = vectors.load("urls/resolve.json")["vectors"]
NORMALIZE = vectors.load("urls/normalize.json")["vectors"]
ESCAPE = vectors.load("urls/safe_escape.json")["vectors"]
DOMAINS = vectors.load("urls/domains.json")["vectors"]


def params(found: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(vector, id=vector["id"]) for vector in found]


def binding(found: list[dict[str, Any]]) -> list[Any]:
    """Those that must or should pass; the optional ones only promise that nothing crashes."""
    return params([vector for vector in found if vector["level"] != "optional" and not vector.get("disputed")])


def href(text: str, base: str | None = None) -> str | None:
    if base is not None:
        found = resolve(base, text)
        return found.href if found else None
    try:
        return parse(text).href
    except InvalidUrl:
        return None


def key(text: str, clean: CleanUps) -> str | None:
    try:
        return parse(text, clean).key
    except InvalidUrl:
        return None


def expected(file: str, vector: dict[str, Any], answer: str | None) -> str | None:
    ours = vectors.difference(file, vector["id"])
    return ours["answer"] or None if ours else answer


def without_credentials(text: str | None) -> str | None:
    """What the vector expects, said as we say it: read back, so that credentials and spellings of the same URL go."""
    return href(text) if text is not None else None


@pytest.mark.parametrize("vector", params(WHATWG))
def test_url_1_whatwg(vector: dict[str, Any]) -> None:
    answer = None if vector.get("failure") else without_credentials(vector["href"])
    assert href(vector["input"], vector["base"]) == expected("whatwg", vector, answer)


@pytest.mark.parametrize("vector", binding(RESOLVE))
def test_resolving(vector: dict[str, Any]) -> None:
    assert href(vector["reference"], vector["base"]) == expected(
        "resolve", vector, without_credentials(vector["expected"])
    )


CLEAN_UPS = {
    "sort-query": {"sort_query": True},
    "drop-empty-query": {"drop_empty_query": True},
    "drop-empty-params": {"drop_empty_query": True},
    "collapse-slashes": {"collapse_slashes": True},
}


@pytest.mark.parametrize("vector", binding(NORMALIZE))
def test_keys(vector: dict[str, Any]) -> None:
    options: dict[str, Any] = {}
    for op in vector["ops"]:
        options |= CLEAN_UPS.get(op, {})
    clean = CleanUps(**options)
    # A vector's own answer may keep credentials; a key never does.
    answer = vector["expected"] if vector["expected"] is None else re.sub("//[^/@]*@", "//", vector["expected"])
    assert key(vector["input"], clean) == expected("normalize", vector, answer)


@pytest.mark.parametrize("vector", binding(ESCAPE))
def test_what_is_sent_is_safe_to_send(vector: dict[str, Any]) -> None:
    assert href(vector["input"]) == expected("safe_escape", vector, without_credentials(vector["expected"]))


@pytest.mark.parametrize("vector", params([*RESOLVE, *NORMALIZE, *ESCAPE]))
def test_nothing_crashes(vector: dict[str, Any]) -> None:
    text = vector.get("input", vector.get("reference", ""))
    found = href(text, vector.get("base"))
    assert found is None or href(found) == found


def in_ascii(host: str | None) -> str | None:
    return None if host is None else str(idna_to_ascii(host), "ascii") or host


@pytest.mark.parametrize("vector", binding(DOMAINS))
def test_url_8_registrable_domains(vector: dict[str, Any]) -> None:
    if vector["section"] == "icann":
        pytest.skip("comity reads the private section too")
    if "expected_registrable_domain" in vector:
        answer = in_ascii(vector["expected_registrable_domain"])
        assert registrable_domain(vector["host"]) == expected("domains", vector, answer)
    elif vector["expected_public_suffix"] is not None:
        # A public suffix is seen from outside as what a registrable domain has one label more than.
        suffix = in_ascii(vector["expected_public_suffix"])
        assert registrable_domain(f"label.{suffix}") == f"label.{suffix}"
        domain = registrable_domain(vector["host"])
        assert domain is None or domain.partition(".")[2] == suffix
