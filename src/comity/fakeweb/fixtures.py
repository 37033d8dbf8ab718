"""The scenes: sites with a fixed script, each with a table of what a crawl of it must show.

* `topology`: one page of every fate, for the table of statuses (StormCrawler's words, four days of virtual time);
* `conditional`: six pages with validators, some weak, two of which are written anew before the third round;
* `listed`: six pages known from a sitemap that also lists a forbidden one, on a site that asks for a second between
  requests.

Sizes, orders and times are what the tables were made with: do not tidy them. The scenes do not know who plays them.
"""

from __future__ import annotations

from email.utils import formatdate

from comity.fakeweb.site import Answer, Asked, Site, page, redirect, robots, sitemap

PAGE_BYTES = 3035
PAGES = 6
ROUND_OF_CHANGE = 3
WRITTEN_AT = 1_767_225_600  # 2026-01-01

TOPOLOGY_HOST = "topology.localhost"
CONDITIONAL_HOST = "conditional.localhost"
LISTED_HOST = "listed.localhost"


def topology(*, slow_s: float = 3.0) -> Site:
    """`/` names its pages in this order; `/cham` answers after `slow_s`, to be asked with a shorter time limit. No
    validators, no freshness, no sitemap: every visit is a full answer."""
    return Site(
        TOPOLOGY_HOST,
        pages={
            "/": page(["/a", "/mat", "/chap", "/cu", "/admin/x", "/cham"], title="The front page"),
            "/a": page(["/b"], title="A"),
            "/b": page(title="B"),
            "/mat": Answer(404, b"<!doctype html><title>Lost</title>\n", (("Content-Type", "text/html"),)),
            "/chap": (
                Answer(503, b"<!doctype html><title>Down</title>\n"),
                Answer(503, b"<!doctype html><title>Down</title>\n"),
                page(title="Up again"),
            ),
            "/cu": redirect("/b"),
            "/admin/x": page(title="Nobody should read this"),
            "/cham": Answer(body=b"<!doctype html><title>Slow</title>\n", wait_s=slow_s),
        },
        robots=(robots(["/admin/"]),),
    )


def _six(asked: Asked) -> Answer:
    """Pages /p/1 … /p/6. The even ones have a weak tag, the third only a date; 2 and 5 change."""
    number = int(asked.path.removeprefix("/p/"))
    version = 2 if asked.round >= ROUND_OF_CHANGE and number in (2, 5) else 1
    tag = f'W/"{number}-{version}"' if number % 2 == 0 else f'"{number}-{version}"'
    return page(
        title=f"Page {number}, version {version}",
        size_bytes=PAGE_BYTES,
        etag=None if number == 3 else tag,
        last_modified=formatdate(WRITTEN_AT + 86400 * (version - 1) + number, usegmt=True),
    )


def _one_of_six(asked: Asked) -> Answer:
    """The same, but only the fourth page changes."""
    number = int(asked.path.removeprefix("/p/"))
    version = 2 if asked.round >= ROUND_OF_CHANGE and number == 4 else 1
    return page(
        title=f"Page {number}, version {version}",
        size_bytes=PAGE_BYTES,
        etag=f'"{number}-{version}"',
    )


def page_paths() -> list[str]:
    return [f"/p/{number}" for number in range(1, PAGES + 1)]


def conditional() -> Site:
    """Six seeds, no index page besides them. Four rounds: new 6/0/2/0, 304 0/6/4/6, bytes 18210/0/6070/0."""
    return Site(CONDITIONAL_HOST, dict.fromkeys(page_paths(), _six), robots=(robots(),))


def listed(port: int) -> Site:
    """The seed is `/`, which leads to the first page by way of `/home`; the others are known from the sitemap alone,
    which names a seventh that robots.txt forbids. Redirects and sitemap have had their turn when the first page has its
    own, so the six pages follow each other a second apart: five from first to last."""
    base = f"http://{LISTED_HOST}:{port}"
    return Site(
        LISTED_HOST,
        {
            "/": redirect("/home", 302),
            "/home": redirect("/p/1", 302),
            "/sitemap.xml": sitemap([*(base + path for path in page_paths()), f"{base}/private/admin"]),
            "/private/admin": page(title="Nobody should read this"),
            **dict.fromkeys(page_paths(), _one_of_six),
        },
        robots=(robots(["/private/"], delay_s=1, sitemaps=[f"{base}/sitemap.xml"]),),
    )
