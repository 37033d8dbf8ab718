"""The vectors for HTTP-date, Retry-After and Content-Type."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
import vectors

from comity.headers import content_type, parse_date, retry_after_s

DATES = vectors.load("http_dates.json")["vectors"]
WAITS = vectors.load("retry_after.json")["vectors"]
TYPES = [vector for vector in vectors.load("mime.json")["vectors"] if vector["kind"] == "parse_content_type"]
NOW = 1_796_083_200.0  # 2026-12-01


def params(found: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(vector, id=vector["id"]) for vector in found]


def instant(vector: dict[str, Any]) -> float:
    return datetime.fromisoformat(vector["now"]).timestamp() if "now" in vector else NOW


@pytest.mark.parametrize("vector", params(DATES))
def test_cnd_10_dates(vector: dict[str, Any]) -> None:
    answers = [vector["expected_epoch"], vector.get("lenient_epoch", vector["expected_epoch"])]
    assert parse_date(vector["text"], instant(vector)) in answers


@pytest.mark.parametrize("vector", params(WAITS))
def test_thr_1_retry_after(vector: dict[str, Any]) -> None:
    values = vector["value"] if isinstance(vector["value"], list) else [vector["value"]]
    fields = [("retry-after", value) for value in values if value is not None]
    if "date_header" in vector:
        fields.append(("date", vector["date_header"]))
    waited = retry_after_s(tuple(fields), instant(vector))
    least = vector.get("expected_min_seconds", vector.get("lenient_min_seconds"))
    if least is not None:
        assert waited is not None
        assert waited >= least
    else:
        assert waited in [vector["expected_seconds"], vector.get("lenient_seconds", vector["expected_seconds"])]


@pytest.mark.parametrize("vector", params(TYPES))
def test_content_types(vector: dict[str, Any]) -> None:
    found = content_type((("content-type", vector["content_type"]),))
    if vector["level"] != "optional":
        assert found == (vector["expected_media_type"], vector["expected_charset"])
    assert len(found) == 2
