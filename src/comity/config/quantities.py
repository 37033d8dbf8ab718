"""Durations and sizes as people write them: ``90s``, ``15m``, ``1h30m``, ``7d``; ``64KiB``, ``10MiB``.

Invariant: ``seconds(show_seconds(x)) == x`` and ``size(show_size(n)) == n``. A plain number is seconds, or bytes: the
option's name says which. Sizes are binary units only, because "kB" means 1,000 to some and 1,024 to others.
"""

from __future__ import annotations

import math
import re

UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
UNITS_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

_DURATION = re.compile(r"(?:\s*\d+(?:\.\d+)?\s*(?:ms|s|m|h|d|w))+\s*")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
_SIZE = re.compile(r"\s*(\d+)\s*(B|KiB|MiB|GiB)\s*")


def seconds(text: str) -> float:
    """Raises ValueError for a text that is no duration."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is no duration")
    total = math.fsum(float(number) * UNITS_S[unit] for number, unit in _PART.findall(text))
    if not math.isfinite(total):
        raise ValueError(f"{text!r} is too long a duration")
    return total


def size(text: str) -> int:
    """Raises ValueError for a text that is no size."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no size")
    return int(match[1]) * UNITS_BYTES[match[2]]


def show_seconds(value: float) -> str:
    """As one would write it in a file: ``1.5``, ``15m``, ``7d`` (in the greatest unit that leaves a whole number)."""
    for unit in ("d", "h", "m"):
        number = value / UNITS_S[unit]
        if number >= 1 and number == int(number) and number * UNITS_S[unit] == value:
            return f"{int(number)}{unit}"
    return repr(int(value)) if value == int(value) else repr(value)


def show_size(value: int) -> str:
    for unit in ("GiB", "MiB", "KiB"):
        if value and value % UNITS_BYTES[unit] == 0:
            return f"{value // UNITS_BYTES[unit]}{unit}"
    return repr(value)
