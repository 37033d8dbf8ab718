"""Values for tests, made with what the test is about and with plain stand-ins for everything else.

``from builders import an_entry``. Pure: made of words only, so that the tables of decisions may use them too.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from comity.model import Entry, HttpError, Link, LinkKind, NotModified, Outcome, Page, Redirect, Visit, Wire

NOW = 1_800_000_000.0
"""An instant to begin at: 2027-01-15 08:00:00 UTC."""

HTML = ("content-type", "text/html; charset=utf-8")


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def an_entry(url: str = "https://a.example/page", **fields: Any) -> Entry:
    """An entry never visited, due since its discovery at `NOW`. Key and host follow from the URL (which should be one
    that is its own key)."""
    all_fields: dict[str, Any] = {"key": url, "host": host_of(url), "due_at": NOW, "discovered_at": NOW} | fields
    return Entry(url=url, **all_fields)


def a_link(url: str = "https://a.example/other", kind: LinkKind = LinkKind.ANCHOR, **fields: Any) -> Link:
    return Link(**({"url": url, "key": url, "host": host_of(url), "kind": kind} | fields))


def a_page(body: bytes | str = b"<title>A page</title>", status: int = 200, **headers: str) -> Page:
    """A good answer. Header names in Python's spelling: ``a_page(etag='"1"', last_modified="…")``."""
    text = body.encode() if isinstance(body, str) else body
    return Page(status, _fields(headers), text)


def not_modified(**headers: str) -> NotModified:
    return NotModified(_fields(headers, html=False))


def an_error(status: int = 404, **headers: str) -> HttpError:
    return HttpError(status, _fields(headers))


def a_redirect(location: str | None = "/b", target: str | None = "https://a.example/b", status: int = 301) -> Redirect:
    headers = () if location is None else (("location", location),)
    return Redirect(status, headers, location, target)


def a_wire(at: float = NOW, *, took_s: float = 0.05, **fields: Any) -> Wire:
    all_fields: dict[str, Any] = {
        "heard_at": at + took_s / 2,
        "service_s": took_s,
        "address": "127.0.0.1",
        "port": 80,
    } | fields
    return Wire(
        request=b"GET /page HTTP/1.1\r\nHost: a.example\r\n\r\n",
        response=b"HTTP/1.1 200 OK\r\n\r\n",
        started_at=at,
        finished_at=at + took_s,
        **all_fields,
    )


def a_visit(entry: Entry | None = None, outcome: Outcome | None = None, after: Entry | None = None, **f: Any) -> Visit:
    """A visit at `NOW` that left its entry as it was, unless told otherwise."""
    entry = entry if entry is not None else an_entry()
    outcome = outcome if outcome is not None else a_page()
    fields: dict[str, Any] = {"at": NOW, "wire": a_wire()} | f
    return Visit(entry=entry, outcome=outcome, after=after if after is not None else entry, **fields)


def _fields(headers: dict[str, str], *, html: bool = True) -> tuple[tuple[str, str], ...]:
    given = tuple((name.replace("_", "-").lower(), value) for name, value in headers.items())
    return given if not html or any(name == "content-type" for name, _ in given) else (HTML, *given)
