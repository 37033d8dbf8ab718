"""The plan of a run: the settings, dissolved into the small policies that the decisions take.

`comity.assemble` makes it once, from the settings; the engine reads it and nothing else. It owns no default that the
settings own too, and it refuses to know where a policy came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from comity import metadata, parse, profiles, recrawl, scope
from comity.url import NONE, CleanUps


@dataclass(frozen=True)
class Plan:
    """Everything that a run is told. Durations in seconds."""

    worker: str
    token: str
    scope: scope.Scope
    profile: profiles.Profile
    schedule: recrawl.Schedule
    metadata: metadata.Policy
    limits: parse.Limits
    clean: CleanUps = NONE
    host_per: Literal["host", "domain"] = "host"
    judge_links: bool = True  # links to origins whose rules are at hand are judged when found
    reopen: bool = True  # refused URLs are judged again when the rules change
    trust_freshness: bool = True  # an answer fresh by its own word is not asked for again
    follow_sitemaps: bool = True  # those that robots.txt names
    max_hosts: int = 10_000
    per_host: int = 20
    max_pages: int | None = None  # page requests in this run, in flight included
    once: bool = True  # every URL once in this run, then end; else for ever
    patience_s: float = 60.0  # with `once`: wait for what is held or due within this, leave the rest
    until_at: float | None = None
