"""Reading HTTP fields, and the dates that are written in them.

Owns every question that is answered from a message's fields: what type and charset a body claims, how long to wait
before asking again, how long an answer stays good, what validates it, what it links to. Takes `comity.model.Headers`
as it stands (names in lower case, values as received) and never raises: a field that cannot be read was not sent.

Where a field is sent twice or contradicts itself the more restrictive reading counts: the longer wait, the shorter
freshness. Dates are read more widely than RFC 9110 5.6.7 writes them (servers do), but only where one instant can be
meant. Time is an argument, for the two places that need it: two-digit years, and dates turned into waits.

Refuses to know what follows from any of it; ceilings on a wait or on freshness belong to `politeness` and `recrawl`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import NamedTuple

from comity.model import Headers

_WHITE = " \t\r\n"
_MAX_DELTA_S = 1e12  # what more digits than this mean is "very long"; int() and float arithmetic stay exact below it


def get(headers: Headers, name: str) -> str | None:
    """The first value of that name (lower case), or None."""
    for key, value in headers:
        if key == name:
            return value
    return None


def get_all(headers: Headers, name: str) -> tuple[str, ...]:
    """Every value of that name, in order."""
    return tuple(value for key, value in headers if key == name)


# ------------------------------------------------------------------------------------------------------- what it claims

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_MEDIA_TYPE = re.compile(rf"[ \t\r\n]*({_TOKEN}/{_TOKEN})[ \t\r\n]*(?:;|$)")
_CONTENT_TYPE_PARAMETER = re.compile(
    rf"""\s*({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"?|([^;]*))[^;]*(?:;|$)|[^;]*(?:;|$)""", re.DOTALL
)


def content_type(headers: Headers) -> tuple[str | None, str | None]:
    """(media type, charset), both in lower case, each None when not named (RFC 9110 8.3; WHATWG MIME Sniffing 4.4).

    Of several field lines the last readable one counts, as in browsers; of a repeated parameter the first.
    """
    for value in reversed(get_all(headers, "content-type")):
        found = _MEDIA_TYPE.match(value)
        if found is not None:
            return found[1].lower(), _charset(value[found.end() :])
    return None, None


def _charset(parameters: str) -> str | None:
    position = 0
    while position < len(parameters):
        found = _CONTENT_TYPE_PARAMETER.match(parameters, position)
        if found is None or found.end() == position:
            return None
        position = found.end()
        if found[1] is not None and found[1].lower() == "charset":
            value = _unquote(found[2]) if found[2] is not None else found[3].strip(_WHITE).strip("'")
            return value.lower() or None
    return None


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


class LinkValue(NamedTuple):
    """One link of a Link field (RFC 8288): target as written, relation types in lower case, the other parameters."""

    target: str
    rels: tuple[str, ...]
    params: tuple[tuple[str, str], ...] = ()

    def param(self, name: str) -> str | None:
        return next((value for key, value in self.params if key == name), None)


_LINK_TARGET = re.compile(r"[,\s]*<([^>]*)>")
_LINK_PARAMETER = re.compile(rf"""\s*;\s*(?:({_TOKEN})\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"?|([^;,"\s]*)))?)?""", re.DOTALL)


def link_values(headers: Headers) -> tuple[LinkValue, ...]:
    """Every link named by Link fields, in order. A value that cannot be read ends its line."""
    links = []
    for line in get_all(headers, "link"):
        position = 0
        while (target := _LINK_TARGET.match(line, position)) is not None:
            position = target.end()
            params: list[tuple[str, str]] = []
            while (found := _LINK_PARAMETER.match(line, position)) is not None:
                position = found.end()
                if found[1] is not None:
                    value = _unquote(found[2]) if found[2] is not None else found[3] or ""
                    params.append((found[1].lower(), value))
            rels = next((value for name, value in params if name == "rel"), "")  # a second rel is ignored (3.3)
            others = tuple((name, value) for name, value in params if name != "rel")
            links.append(LinkValue(target[1].strip(_WHITE), tuple(rels.lower().split()), others))
            position = _next_value(line, position)
    return tuple(links)


def _next_value(line: str, position: int) -> int:
    comma = line.find(",", position)
    return len(line) if comma < 0 else comma


def robots_tags(headers: Headers) -> tuple[str, ...]:
    """Every X-Robots-Tag line, as received."""
    return get_all(headers, "x-robots-tag")


def validators(headers: Headers) -> tuple[str | None, str | None]:
    """(ETag, Last-Modified), verbatim: they are sent back byte for byte and never read (RFC 9111 4.3.1, CND-2)."""
    return get(headers, "etag") or None, get(headers, "last-modified") or None


# ----------------------------------------------------------------------------------------------------------- how long


def retry_after_s(headers: Headers, now: float) -> float | None:
    """Seconds to wait by Retry-After (RFC 9110 10.2.3), never negative; None: absent or unreadable.

    A date counts from the answer's own Date where there is one, so that a wrong clock on either side does no harm
    (THR-1). Sent several times, or as a list of numbers: the longest. Fractions are rounded up.
    """
    sent_at = parse_date(get(headers, "date") or "", now)
    waits = [_wait(value.strip(_WHITE), now, now if sent_at is None else sent_at) for value in _waits(headers)]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known else None


def _waits(headers: Headers) -> Iterator[str]:
    for value in get_all(headers, "retry-after"):
        if re.fullmatch(r"[0-9,. \t]+", value):
            yield from value.split(",")
        else:
            yield value


def _wait(value: str, now: float, sent_at: float) -> float | None:
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
        whole, _, fraction = value.partition(".")
        return _seconds(whole) + (1 if fraction.strip("0") else 0)
    at = parse_date(value, now)
    return None if at is None else max(0.0, at - sent_at)


def _seconds(digits: str) -> float:
    digits = digits.lstrip("0") or "0"
    return float(digits) if len(digits) <= 12 else _MAX_DELTA_S


_DIRECTIVE = re.compile(rf"""({_TOKEN})(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"?|([^,\s]*)))?[^,]*""", re.DOTALL)


def _cache_control(headers: Headers) -> list[tuple[str, str]]:
    line = ",".join(get_all(headers, "cache-control"))
    return [(name.lower(), _unquote(quoted) or plain) for name, quoted, plain in _DIRECTIVE.findall(line)]


def cache_lifetime_s(headers: Headers, received_at: float) -> float | None:
    """How long the answer stays good, counted from `received_at`, by its own word (RFC 9111 4.2); 0: not at all.

    max-age, else Expires − Date, less the age it already had. s-maxage is for shared caches and is not read. None:
    it does not say. No guess is made from Last-Modified.
    """
    directives = _cache_control(headers)
    names = {name for name, _ in directives}
    if "no-store" in names or "no-cache" in names:
        return 0.0
    sent_at = parse_date(get(headers, "date") or "", received_at)
    lifetimes = [
        _seconds(value) if re.fullmatch("[0-9]+", value) else 0.0 for name, value in directives if name == "max-age"
    ]
    if not lifetimes:
        start = received_at if sent_at is None else sent_at
        ends = [parse_date(value, received_at) for value in get_all(headers, "expires")]
        lifetimes = [0.0 if end is None else end - start for end in ends]  # "0" and the like: already over (5.3)
    if not lifetimes:
        return None
    ages = [_seconds(value.strip(_WHITE)) for value in get_all(headers, "age") if re.fullmatch(r"\s*[0-9]+\s*", value)]
    age = max([0.0, *ages, *([] if sent_at is None else [received_at - sent_at])])  # 4.2.3
    return max(0.0, min(lifetimes) - age)


def fresh_until_at(
    headers: Headers, received_at: float, *, floor_s: float = 0.0, cap_s: float = 7 * 86_400.0
) -> float | None:
    """Until when the answer need not be asked for again, by its own word; None: it may be asked for at once.

    A freshness shorter than `floor_s` is not worth keeping; `cap_s` cuts a long one, so that a page which claims a
    year is still seen to change (FRS-2).
    """
    lifetime_s = cache_lifetime_s(headers, received_at)
    if not lifetime_s or lifetime_s < floor_s:
        return None
    return received_at + min(lifetime_s, cap_s)


# --------------------------------------------------------------------------------------------------------------- dates

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_US_ZONES = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}  # RFC 822 5.1
_WEEKDAY = r"(?:[a-z]{3,9},?[ ]*)?"
_CLOCK = r"(?P<h>[0-9]{1,2}):(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2}))?"
_ZONE = r"(?:[ ]*(?P<zone>gmt|utc?|z|[ecmp][sd]t|[+-][0-9]{2}:?[0-9]{2}))?"
_DAY_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<day>[0-9]{{1,2}})[ -]+(?P<month>[a-z]{{3}})[a-z]*[ -]+(?P<year>[0-9]{{4}}|[0-9]{{2}})"
    rf"[ ]+{_CLOCK}{_ZONE}",
    re.IGNORECASE | re.ASCII,
)
_MONTH_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<month>[a-z]{{3}})[ ]+(?P<day>[0-9]{{1,2}})[ ]+{_CLOCK}{_ZONE}[ ]+(?P<year>[0-9]{{4}})",
    re.IGNORECASE | re.ASCII,
)
_W3C = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
    r"(?:(?:[Tt]|[ ]+)(?P<h>[0-9]{1,2}):(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2})(?:[.,](?P<f>[0-9]+))?)?"
    r"[ ]*(?P<zone>[Zz]|utc|gmt|[+-][0-9]{2}(?::?[0-9]{2})?)?)?)?)?",
    re.IGNORECASE | re.ASCII,
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def parse_date(text: str, now: float) -> float | None:
    """Seconds since the epoch of an HTTP-date (RFC 9110 5.6.7), or None.

    All three forms; and beyond the grammar whatever names one instant: any case, a missing or wrong weekday, numeric
    and US zones, none (read as GMT), one-digit days. `now` decides the century of two digits: never more than 50 years
    ahead.
    """
    text = text.strip(_WHITE)
    found = _DAY_FIRST.fullmatch(text) or _MONTH_FIRST.fullmatch(text)
    if found is None:
        return None
    month = _MONTHS.get(found["month"].lower())
    if month is None:
        return None
    year = int(found["year"])
    if len(found["year"]) == 4:
        return _instant(year, month, found)
    latest = datetime.fromtimestamp(now, UTC).year + 50
    year = latest - (latest - year) % 100
    at = _instant(year, month, found)
    if year == latest and at is not None and at > _years_later(now, 50):
        at = _instant(year - 100, month, found)
    return at


def parse_w3c_date(text: str) -> tuple[float, bool] | None:
    """(seconds since the epoch, is the time of day known) of a W3C Datetime or ISO 8601 date, or None.

    Six precisions (SMP-8): what is not written is the first of its kind (1 January, 1st, midnight), a missing zone is
    UTC, and a space may stand for the T.
    """
    found = _W3C.fullmatch(text.strip(_WHITE))
    if found is None:
        return None
    at = _instant(int(found["year"]), int(found["month"] or 1), found)
    if at is None:
        return None
    fraction = float(f"0.{found['f']}") if found["f"] else 0.0
    return at + fraction, found["h"] is not None


def _instant(year: int, month: int, found: re.Match[str]) -> float | None:
    hour, minute, second = (int(found[name] or 0) for name in "hms")
    if hour > 23 or minute > 59 or second > 60:
        return None
    try:
        day = date(year, month, int(found["day"] or 1)).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    offset_s = _offset_s(found["zone"] or "")
    return None if offset_s is None else float(day * 86_400 + hour * 3_600 + minute * 60 + second - offset_s)


def _offset_s(zone: str) -> int | None:
    if zone[:1] in {"+", "-"}:
        digits = zone[1:].replace(":", "")
        hours, minutes = int(digits[:2]), int(digits[2:] or 0)
        if hours > 24 or minutes > 59:
            return None
        return (hours * 3_600 + minutes * 60) * (-1 if zone[0] == "-" else 1)
    return _US_ZONES.get(zone.lower(), 0) * 3_600


def _years_later(at: float, years: int) -> float:
    """The same day and time, so many years on; 29 February becomes 1 March where there is none."""
    then = datetime.fromtimestamp(at, UTC)
    try:
        return then.replace(year=then.year + years).timestamp()
    except ValueError:
        return then.replace(year=then.year + years, month=3, day=1).timestamp()
