"""The sitemap vectors: files good and bad, and what is to be found in them.

Each file is read as the crawler reads it: a page known to be a sitemap. Feeds wait for their own issue, and so do the
extensions (images, news, videos), change frequencies and priorities: comity keeps none of them yet.
"""

from __future__ import annotations

import base64
import gzip
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import vectors

from comity.headers import content_type, parse_date, parse_w3c_date
from comity.model import Found, LinkKind, Page
from comity.parse import Limits, read, sniff
from comity.url import InvalidUrl, parse

INDEX = vectors.load("sitemaps/index.json")
MIME = vectors.load("mime.json")["vectors"]
NOW = 1_796_083_200.0  # 2026-12-01
KINDS = {"urlset": "sitemap", "sitemapindex": "sitemapindex", "text": "text_sitemap", None: "other"}


def folder() -> Path:
    where = vectors.folder()
    assert where is not None
    return where / "sitemaps"


def body_of(vector: dict[str, Any]) -> bytes:
    if "generate" in vector:
        made = vector["generate"]
        lines = (made["line"].replace("{i}", str(i)) for i in range(made["from"], made["to"] + 1))
        return "\n".join(lines).encode()
    body: bytes = (folder() / vector["file"]).read_bytes()
    for name in vector.get("placeholders", {}):
        body = body.replace(name.encode(), str(folder().resolve()).encode())
    return body


def cases() -> list[Any]:
    found = []
    for vector in INDEX["files"]:
        marks = []
        if vector["expected"].get("type") in {"rss", "atom"}:
            marks.append(pytest.mark.xfail(reason="feeds are read from issue 3 on", strict=True))
        elif vector["id"] in vectors.later("sitemaps"):
            marks.append(pytest.mark.xfail(reason="issue 3", strict=True))
        found.append(pytest.param(vector, id=vector["id"], marks=marks))
    return found


def found_in(body: bytes, vector: dict[str, Any], media_type: str | None) -> Found:
    fields = (("content-type", media_type),) if media_type else ()
    return read(
        Page(200, fields, body), parse(vector["sitemap_url"]), limits=Limits(), token="x", now=NOW, sitemap=True
    )


def key(text: str) -> str:
    try:
        return parse(text).key
    except InvalidUrl:
        return text


def instant(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None


@pytest.mark.parametrize("vector", cases())
def test_smp_1_to_12_files(vector: dict[str, Any]) -> None:
    body, expected = body_of(vector), vector["expected"]
    for media_type in [vector.get("content_type"), *vector.get("also_with_content_types", [])]:
        started = time.monotonic()
        found = found_in(body, vector, media_type)
        assert time.monotonic() - started < expected.get("max_seconds", 10)
        if "min_urls" in expected:
            assert expected["min_urls"] <= len(found.links) + found.links_left_out <= expected["max_urls"]
            continue
        listed = [(link.key, link.hint_at) for link in found.links]
        wanted = [
            (key(entry["loc"]), instant(entry.get("lastmod")))
            for entry in expected.get("urls") or expected.get("sitemaps") or []
        ]
        allowed = {key(entry["loc"]) for entry in expected.get("may_also", [])}
        ours = vectors.difference("sitemaps", vector["id"])
        if ours is not None:
            assert [address for address, _ in listed] == ours["answer"]
            continue
        if vector["level"] == "optional" or (expected.get("may_reject") and not listed):
            continue
        if found.kind == "html":  # not a sitemap, and read as what it is
            assert expected["type"] is None
            continue
        assert [one for one in listed if one[0] not in allowed or one in wanted] == wanted
        if expected["type"] is None:
            assert found.kind == "other"
        else:
            assert found.kind == KINDS[expected["type"]]
        kind = LinkKind.SITEMAP if expected["type"] == "sitemapindex" else LinkKind.SITEMAP_URL
        assert {link.kind for link in found.links} <= {kind}


# The reader unfolds two layers; a third is no sitemap any more.
ONE_MORE = [v for v in INDEX["files"] if "file" in v and v["expected"].get("urls") and "double" not in v["file"]]


@pytest.mark.parametrize("vector", ONE_MORE, ids=lambda vector: vector["id"])
def test_smp_3_compression_changes_nothing(vector: dict[str, Any]) -> None:
    body = body_of(vector)
    plain = found_in(body, vector, "application/xml")
    assert found_in(gzip.compress(body), vector, "application/gzip").links == plain.links


@pytest.mark.parametrize("vector", INDEX["dates"], ids=lambda vector: vector["id"])
def test_smp_8_dates(vector: dict[str, Any]) -> None:
    if vector["kind"] == "w3c":
        found = parse_w3c_date(vector["text"])
        at = found[0] if found is not None else None
    else:
        at = parse_date(vector["text"], NOW)
    assert at == instant(vector["expected_utc"])


def content_of(vector: dict[str, Any]) -> bytes:
    if "content_b64" in vector:
        return base64.b64decode(vector["content_b64"])
    return str(vector["content"]).encode()


@pytest.mark.parametrize(
    "vector", [v for v in MIME if v["kind"] in {"sniff", "sniff_sitemap"}], ids=lambda vector: vector["id"]
)
def test_html_9_what_a_body_looks_like(vector: dict[str, Any]) -> None:
    looks = sniff.category(content_of(vector))
    expected = vector.get("expected_category") or {
        "text/html": "html",
        "application/xhtml+xml": "xhtml",
        "text/plain": "text",
    }.get(vector["expected_mime"])
    assert looks == expected


READERS = {"html": {"html", "xhtml"}, "xml": {"other"}, "json": {"other"}, "binary": {"other"}}


@pytest.mark.parametrize(
    "vector",
    [v for v in MIME if v["kind"] == "content_type" and isinstance(v["content_type"], str)],
    ids=lambda vector: vector["id"],
)
def test_html_9_what_a_media_type_says(vector: dict[str, Any]) -> None:
    media_type, _ = content_type((("content-type", vector["content_type"]),))
    assert sniff.reader(media_type, b"\x00\x01") in READERS[vector["expected_category"]]
