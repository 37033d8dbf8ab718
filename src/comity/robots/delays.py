"""The delays that a robots.txt names: Crawl-delay and Request-rate. Neither is part of RFC 9309.

Invariant: what cannot be read is none named, and what can be read is never shortened. Of several values for one group
the slowest counts. 0 is none named: it cannot make us faster than our own minimum. Nothing is cut off at some largest
value here: whether a month between two requests is obeyed or the host refused is `politeness`'s question.
"""

from __future__ import annotations

import math
import re

from comity.robots.grammar import Field, File

# Possessive: a line may hold 16,000 digits and a file thirty such lines.
_NUMBER = r"(\d++(?:\.\d*+)?|\.\d++)"
_SECONDS = re.compile(rf"{_NUMBER}(e\+?\d++)?(?:\s*+s(?:ec(?:ond)?s?)?)?", re.IGNORECASE | re.ASCII)
_RATE = re.compile(
    rf"(\d++)\s*+/\s*+{_NUMBER}(?:\s*+([smhd]))?(?:\s++\d{{4}}\s*+-?\s*+\d{{4}})?", re.IGNORECASE | re.ASCII
)
_UNIT_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def slowest(file: File, group: str | None, field: Field) -> tuple[float | None, int | None]:
    """The largest delay that `field` (CRAWL_DELAY or REQUEST_RATE) names for a group, in seconds, and its line.

    A Request-rate for certain hours of the day is kept at all hours: slower than asked, never faster.
    """
    read = crawl_delay_s if field is Field.CRAWL_DELAY else seconds_per_request
    largest: tuple[float | None, int | None] = (None, None)
    agents: tuple[str, ...] = ()
    ours = False
    for setting in file.settings:
        if setting.agents is not agents:  # settings of one run share theirs: thousands of each are looked at once
            agents, ours = setting.agents, group in setting.agents
        if setting.field is field and ours:
            value = read(setting.value)
            if value is not None and value > (largest[0] or 0.0):
                largest = (value, setting.line)
    return largest


def crawl_delay_s(text: str) -> float | None:
    """`"0.5"`, `"10"`, `"10 sec"`, `"1e9"` → seconds; None for anything else (`"1,5"`, `"-3"`, `"nan"`, `"inf"`)."""
    found = _SECONDS.fullmatch(text)
    value = float(found[1] + (found[2] or "")) if found else math.inf
    return value if math.isfinite(value) else None


def seconds_per_request(text: str) -> float | None:
    """`"1/10s"` → 10, `"100/15m"` → 9, `"1/60"` → 60, `"1/10s 1820-1940"` → 10; None for anything else."""
    found = _RATE.fullmatch(text)
    if not found or not float(found[1]):
        return None
    value = float(found[2]) * _UNIT_S[(found[3] or "").lower()] / float(found[1])
    return value if math.isfinite(value) else None
