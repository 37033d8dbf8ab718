"""One URL, read once: what is sent, what is compared, whose it is.

Owns the only way from text to a `Url`: `parse` for a URL on its own, `resolve` for a reference found in a page. Both
read as browsers do (WHATWG URL Standard, by ada), because a link means what browsers make of it; every other module
takes the parsed value, never the text, so that robots, politeness, the frontier and the fetcher cannot read one link in
two ways (URL-10).

A URL has two forms. `href` is the WHATWG form of what was found, and is what is asked and shown. `key` is what the
frontier compares: the same without fragment, escapes in upper case, escapes of unreserved characters decoded (RFC 3986
6.2.2), the root dot of the host dropped, and nothing else, since every further equation (sorted queries, doubled
slashes, index pages) is false on some site. Named clean-ups may say more; they are off by default and change the key
only. Both forms are fixed points: ``parse(u.href).href == u.href`` and ``parse(u.key).key == u.key``.

Only http and https exist here. Credentials found in a URL are dropped at once, so that none can be sent, stored or
shown. The public suffix list comes with its package and is read once, when first asked for.

Refuses to know whether a URL is wanted, allowed, or safe to connect to.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec
from ada_url import idna_to_ascii, join_url, normalize_url


class InvalidUrl(ValueError):
    """The text names nothing we could ask for. `reason` is one plain clause for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Url(msgspec.Struct, frozen=True, gc=False):
    """A parsed http or https URL. Made by `parse` and `resolve` only."""

    href: str  # WHATWG form, fragment included, credentials left out
    key: str  # what is compared
    scheme: str  # "http" or "https"
    host: str  # as in href: ASCII, lower case, IPv6 in brackets
    port: int  # the effective one
    origin: str  # "https://a.example", ":8443" only when not the default
    target: str  # path and query as sent, no fragment: what robots rules are matched against
    had_credentials: bool = False


@dataclass(frozen=True)
class CleanUps:
    """What else two URLs may differ in and still be one entry. All off; each changes the key only.

    `drop_query_params`: names of parameters that do not count, in any case of letters; a name that ends in ``*`` is a
    prefix ("utm_*"). `sort_query`: the order of parameters does not count. `drop_empty_query`: neither do a lone ``?``
    and parameters without a name. `collapse_slashes`: nor do doubled slashes in the path.
    """

    drop_query_params: tuple[str, ...] = ()
    sort_query: bool = False
    drop_empty_query: bool = False
    collapse_slashes: bool = False


NONE = CleanUps()
_DEFAULT_PORTS = {"http": 80, "https": 443}


def parse(text: str, clean: CleanUps = NONE) -> Url:
    """Reads an absolute URL. Raises `InvalidUrl` when it is none, or not http(s)."""
    try:
        href = normalize_url(text)
    except ValueError:
        raise InvalidUrl(_why_not(text)) from None
    url = _split(href, clean)
    if url is None:
        raise InvalidUrl(_why_not(text))
    return url


def resolve(base: Url | str, reference: str, clean: CleanUps = NONE) -> Url | None:
    """Reads a reference as it stands in a page at `base` (a URL already in WHATWG form, if it is text).

    None when it names nothing we could ask for: another scheme, or no URL at all. About 2.5 µs, and 1 µs for a plain
    path on the base's own origin, which is what most links are.
    """
    if isinstance(base, Url) and clean is NONE and (href := plain(base, reference)) is not None:
        return Url(href, href, base.scheme, base.host, base.port, base.origin, href[len(base.origin) :])
    try:
        href = join_url(base.href if isinstance(base, Url) else base, reference)
    except ValueError:
        return None
    return _split(href, clean)


def plain(base: Url, reference: str) -> str | None:
    """The URL (and key) of a plain path on the base's own origin, which is what most links are: 0.4 µs. None: not one,
    see `resolve`."""
    origin = base.origin
    target = reference if reference[:1] == "/" else reference[len(origin) :] if reference.startswith(origin) else ""
    return origin + target if _PLAIN.fullmatch(target) and base.host[-1:] != "." else None


# A target in which the URL parser finds nothing to change: no dot segments, no escapes, nothing to be escaped.
_PLAIN = re.compile(
    r"(?:/|(?:/[A-Za-z0-9_~!$&()*+,;=:@\-][A-Za-z0-9_~!$&()*+,;=:@.\-]*)+/?)(?:\?[A-Za-z0-9_~!$&()*+,;=:@./?\-]*)?"
)


class _Authority(NamedTuple):
    scheme: str
    host: str
    port: int
    origin: str
    key_origin: str
    had_credentials: bool


@lru_cache(maxsize=16_384)
def _authority(head: str) -> _Authority:
    """Takes apart scheme and authority of a WHATWG href ("https://a.example:8443"). A crawl sees few of them."""
    scheme, _, rest = head.partition("://")
    credentials, _, place = rest.rpartition("@")
    host, colon, digits = place.rpartition(":")
    if not colon or digits.endswith("]"):  # no port; the colons of an IPv6 address are inside the brackets
        host, digits = place, ""
    port = int(digits) if digits else _DEFAULT_PORTS[scheme]
    origin = f"{scheme}://{place}"
    bare = _without_root_dot(host)
    key_origin = origin if bare == host else f"{scheme}://{bare}{colon if digits else ''}{digits}"
    return _Authority(scheme, host, port, origin, key_origin, bool(credentials))


def _without_root_dot(host: str) -> str:
    """ "a.example." is "a.example". A name of empty labels ("a..", ".") is no name, and stays what it is."""
    return host[:-1] if host.endswith(".") and not host[:-1].endswith(".") and len(host) > 1 else host


def _split(href: str, clean: CleanUps) -> Url | None:
    if not href.startswith(("http://", "https://")):
        return None
    # The path of such an href is never empty and the authority holds no slash: the first one after it starts the path.
    start = href.find("/", 8)
    scheme, host, port, origin, key_origin, had_credentials = _authority(href[:start])
    if had_credentials:
        href = origin + href[start:]
        start = len(origin)
    fragment = href.find("#", start)
    target = href[start:] if fragment < 0 else href[start:fragment]
    if fragment < 0 and key_origin is origin and "%" not in target and clean is NONE:
        key = href
    else:
        key = key_origin + _clean(_unescape(target), clean)
    return Url(href, key, scheme, host, port, origin, target, had_credentials)


# A "%" that starts no escape stands for itself in the WHATWG form. The escape right after one (and after a digit that
# follows it) keeps its form: decoded, it could complete a new escape, and a key would have a key of its own.
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|%[0-9A-Fa-f]?(?:%[0-9A-Fa-f]{2})?")
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_HEX = "0123456789ABCDEFabcdef"
_DECODED = {
    f"%{high}{low}": chr(int(high + low, 16)) if chr(int(high + low, 16)) in _UNRESERVED else f"%{high}{low}".upper()
    for high in _HEX
    for low in _HEX
}


def _unescape_one(match: re.Match[str]) -> str:
    text = match[0]
    decoded = _DECODED.get(text)
    return decoded if decoded is not None else text[:-3] + text[-3:].upper() if "%" in text[1:] else text


def _unescape(target: str) -> str:
    return _ESCAPE.sub(_unescape_one, target) if "%" in target else target


def _clean(target: str, clean: CleanUps) -> str:
    if clean is NONE:
        return target
    path, mark, query = target.partition("?")
    if clean.collapse_slashes:
        path = re.sub("//+", "/", path)
    parts = query.split("&") if mark else []
    if clean.drop_query_params:
        parts = [part for part in parts if not _names(clean.drop_query_params, part.partition("=")[0])]
        mark = mark if parts else ""
    if clean.drop_empty_query:
        parts = [part for part in parts if part.partition("=")[0]]
        mark = mark if parts else ""
    if clean.sort_query:
        parts.sort(key=lambda part: part.partition("="))
    return path + mark + "&".join(parts)


def _names(names: tuple[str, ...], name: str) -> bool:
    name = name.lower()
    return any(name.startswith(one[:-1].lower()) if one.endswith("*") else name == one.lower() for one in names)


_SCHEME = re.compile(r"[\x00-\x20]*([A-Za-z][A-Za-z0-9+.\-]*):")
_HOST_AND_PORT = re.compile(
    r"[\x00-\x20]*https?:[/\\]*(?:[^/\\?#]*@)?(\[[^\]/\\?#]*\]?|[^:/\\?#]*)(?::([^/\\?#]*))?", re.I
)


def _why_not(text: str) -> str:
    """Why a text is no URL of ours, in one clause. Only for people: the verdict was ada's."""
    if not text.strip():
        return "it is empty"
    text = text.encode("utf-8", "backslashreplace").decode()
    scheme = _SCHEME.match(text)
    if scheme is None or re.match(r"\d+([/?#]|$)", text[scheme.end() :]):  # "a.example:8080/x"
        return "it has no scheme: write https:// (or http://) before it"
    if scheme[1].lower() not in _DEFAULT_PORTS:
        return f"its scheme is {scheme[1].lower()}, and only http and https are crawled"
    place = _HOST_AND_PORT.match(text)
    host, port = (place[1], place[2]) if place is not None else ("", None)
    if not host:
        return "it has no host name"
    if port and not (port.isascii() and port.isdigit() and int(port) < 65_536):
        return f"its port is {port}, and a port is a number up to 65535"
    if host.startswith("["):
        return f"{host} is no IPv6 address"
    if re.fullmatch(r"[0-9A-Fa-fxX.]*[.]?(?:[0-9]+|0[xX][0-9A-Fa-f]*)[.]?", host):
        return f"{host} ends like an IPv4 address and is none"
    return f"{host} is no host name"


# ---------------------------------------------------------------------------------------------------------- whose it is


@lru_cache(maxsize=16_384)
def host_key(host: str, per: Literal["host", "domain"] = "host") -> str:
    """The unit of politeness, storage and ownership: the host itself, or its registrable domain where it has one.

    In lower case, without the root dot. An address is its own key either way.
    """
    host = _without_root_dot(host.lower())
    return registrable_domain(host) or host if per == "domain" else host


@lru_cache(maxsize=16_384)
def registrable_domain(host: str) -> str | None:
    """The public suffix of `host` and one label more, in ASCII: "www.example.co.uk" → "example.co.uk".

    By the Public Suffix List, private section included ("a.github.io" is a site of its own); a top-level domain that
    is not listed counts as one (publicsuffix.org, "if no rules match, the prevailing rule is *"). None for an address,
    for a public suffix itself, and for what is no host name.
    """
    labels = [_ascii_label(label) for label in _without_root_dot(host).split(".")]
    if "" in labels or _is_address(host):
        return None
    length = _suffix_length(labels)
    if len(labels) <= length:
        return None
    domain = labels[-length - 1 :]
    return ".".join(domain) if all(len(label) <= 63 for label in domain) else None


@lru_cache(maxsize=4_096)
def is_loopback_name(host: str) -> bool:
    """Does the name itself say that it is this machine? 127/8, ::1, localhost and all below it (RFC 6761 6.3)."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def document_id(key: str) -> str:
    """The id of a document in every output: SHA-256 of its key, hex."""
    return hashlib.sha256(key.encode()).hexdigest()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _ascii_label(label: str) -> str:
    if label.isascii():
        return label.lower()
    try:
        return str(idna_to_ascii(label), "ascii") or label
    except ValueError:
        return label


@lru_cache(maxsize=1)
def _suffix_rules() -> frozenset[str]:
    """Every rule of the list, in ASCII: "co.uk", "*.ck", "!www.ck"."""
    listed = importlib.resources.files("publicsuffixlist").joinpath("public_suffix_list.dat")
    with listed.open("r", encoding="utf-8") as lines:
        rules = [line.split()[0] for line in lines if line.strip() and not line.startswith("//")]
    return frozenset(
        rule if rule.isascii() else ".".join(_ascii_label(label) for label in rule.split(".")) for rule in rules
    )


def _suffix_length(labels: list[str]) -> int:
    """How many labels at the end are the public suffix (publicsuffix.org, "Formal Algorithm")."""
    rules = _suffix_rules()
    for start in range(len(labels)):
        name = ".".join(labels[start:])
        if f"!{name}" in rules:
            return len(labels) - start - 1
        parent = ".".join(labels[start + 1 :])
        if name in rules or (parent and f"*.{parent}" in rules):
            return len(labels) - start
    return 1
