"""robots.txt: what it says (RFC 9309), what its absence means, and what we may ask for.

Three rooms, one direction. `grammar` turns octets into facts with line numbers, for everybody. `rules` compiles the
facts for our token and judges URLs, over `paths` (the form in which both are compared) and `delays` (Crawl-delay,
Request-rate). `access` decides what an answer, or none, to the request for the file means. This page is all that the
rest of the crawler sees.
"""

from comity.robots.access import Policy, consult, follow, must_ask, parked, speaks
from comity.robots.grammar import File, parse
from comity.robots.grammar import token_problem as product_token_problem
from comity.robots.rules import (
    ROBOTS_PATH,
    Rules,
    compile,
    digest_without_rules,
    for_origin,
    verdict,
    verdict_without_rules,
)

__all__ = [
    "ROBOTS_PATH",
    "File",
    "Policy",
    "Rules",
    "compile",
    "consult",
    "digest_without_rules",
    "follow",
    "for_origin",
    "must_ask",
    "parked",
    "parse",
    "product_token_problem",
    "speaks",
    "verdict",
    "verdict_without_rules",
]
