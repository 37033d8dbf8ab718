"""A made-up web on loopback, with a log of its own from which politeness is judged.

It is part of the product: `comity demo` shows it, the tests stand on it, and whoever writes a sink or a scope rule of
their own can crawl it. What a crawler claims about itself is never evidence here; only what the server saw is.

    site      what a site is: scripted answers, and its rules in plain words
    log       one line a request
    judge     the log against the rules
    server    one port, many hosts, exact in its stamps and in its faults
    seeded    a web of any size, a pure function of a seed
    fixtures  the scenes with a known table
    running   in this loop, in a thread, or as a child process
"""

from comity.fakeweb.judge import Judgement, judge, together
from comity.fakeweb.log import Line, read, rules_of
from comity.fakeweb.running import Child, in_process, in_thread, open_web
from comity.fakeweb.server import FakeWeb
from comity.fakeweb.site import (
    NO_ROBOTS,
    Answer,
    Asked,
    Robots,
    Rules,
    Script,
    Site,
    html,
    packed,
    page,
    redirect,
    robots,
    robots_refused,
    robots_unreachable,
    sitemap,
    sitemap_index,
    throttled,
)

__all__ = [
    "NO_ROBOTS",
    "Answer",
    "Asked",
    "Child",
    "FakeWeb",
    "Judgement",
    "Line",
    "Robots",
    "Rules",
    "Script",
    "Site",
    "html",
    "in_process",
    "in_thread",
    "judge",
    "open_web",
    "packed",
    "page",
    "read",
    "redirect",
    "robots",
    "robots_refused",
    "robots_unreachable",
    "rules_of",
    "sitemap",
    "sitemap_index",
    "throttled",
    "together",
]
