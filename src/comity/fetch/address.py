"""Which addresses, names and ports may be connected to.

A crawler asks for URLs that strangers chose, so every address is an enemy until it is judged (SSRF-4 … SSRF-9). Owns
the judgement and nothing else: `judge` is a pure table over one address, `Guard` is what the operator allows beyond it.
The resolver finds addresses and the transfer connects to the one that was judged; a socket is judged once more when it
is opened, so that no path leads round this module.

Invariant: for IPv6 everything is refused that the table does not open (only 2000::/3 is in use); an IPv4 address that
stands inside an IPv6 one (mapped, compatible, translated, 6to4, Teredo, NAT64, ISATAP) is taken out and judged itself.

The table is our own because Python's `ipaddress.is_global` differs by patch release and opens multicast, 6to4 of
loopback and others (SSRF-7). Sources: IANA's special-purpose address registries; RFC 6890, 4291, 3056, 4380, 6052,
8215, 5214; ports from the Fetch standard, "bad port".

Refuses to know how a name was resolved.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from comity.url import is_loopback_name

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

IPV4_FORBIDDEN: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by carriers"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
    ("168.63.129.16/32", "a cloud's own services"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "6to4 relays"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarks"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
)
"""Network and reason; the first that holds the address names the reason."""

IPV6_OPEN = "2000::/3"

IPV6_FORBIDDEN: tuple[tuple[str, str], ...] = (
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("64:ff9b::/96", "NAT64"),
    ("64:ff9b:1::/48", "local NAT64"),
    ("100::/64", "discarded"),
    ("2001::/32", "Teredo"),
    ("2001::/23", "protocol assignments"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "6to4"),
    ("3fff::/20", "documentation"),
    ("5f00::/16", "segment routing"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)
"""Inside 2000::/3 these are refused; outside they only give the refusal a better reason."""

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

_BAD_PORTS = (
    "0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 "
    "123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 "
    "990 993 995 1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080"
)
BAD_PORTS = frozenset(map(int, _BAD_PORTS.split()))
"""Ports of other services, which an HTTP request could be made to speak to (Fetch standard, 2026-07-02)."""

FORBIDDEN_SUFFIXES = ("localhost", "local", "internal", "home.arpa", "onion")
"""Names that mean the inside of some network, or no network (RFC 6761, 6762, 7686, 8375; ICANN for .internal)."""


class _Row(NamedTuple):
    low: int
    high: int
    reason: str


def _rows(table: Sequence[tuple[str, str]]) -> tuple[_Row, ...]:
    networks = [(ipaddress.ip_network(text), text, reason) for text, reason in table]
    return tuple(
        _Row(int(network[0]), int(network[-1]), f"{reason} ({text})" if network.num_addresses > 1 else reason)
        for network, text, reason in networks
    )


_IPV4_ROWS = _rows(IPV4_FORBIDDEN)
_IPV6_ROWS = _rows(IPV6_FORBIDDEN)
_OPEN = ipaddress.IPv6Network(IPV6_OPEN)


@lru_cache(maxsize=16_384)
def judge(ip: str, nat64: bool = False) -> str | None:
    """Why this address must not be connected to, as a clause for people; None if it may be.

    `ip` without brackets. `nat64`: this machine reaches IPv4 through 64:ff9b::/96 (RFC 6052), so that such an address
    is as good as the IPv4 address in it. Text that is no address, or names an interface ("fe80::1%eth0"), is refused.
    """
    address = _read(ip)
    if address is None:
        return "no plain IP address"
    if isinstance(address, ipaddress.IPv4Address):
        return _reason(_IPV4_ROWS, int(address))
    return _judge_ipv6(address, nat64)


def _judge_ipv6(address: ipaddress.IPv6Address, nat64: bool) -> str | None:
    number = int(address)
    if number > 1:  # :: and ::1 are themselves, not IPv4-compatible forms
        for form, inner in embedded(address):
            reason = _reason(_IPV4_ROWS, int(inner))
            if reason is not None:
                return f"{reason}, as {inner} in {form} form"
            if form == "mapped" or (nat64 and form == "NAT64" and address in NAT64):
                return None
    reason = _reason(_IPV6_ROWS, number)
    return reason if reason is not None or address in _OPEN else f"outside {IPV6_OPEN}"


def _reason(rows: tuple[_Row, ...], number: int) -> str | None:
    for low, high, reason in rows:
        if low <= number <= high:
            return reason
    return None


def embedded(address: ipaddress.IPv6Address) -> tuple[tuple[str, ipaddress.IPv4Address], ...]:
    """Every IPv4 address that this IPv6 address carries, with the name of its form."""
    number = int(address)
    low, top = number & 0xFFFF_FFFF, number >> 32
    found: list[tuple[str, int]] = []
    if top == 0xFFFF:
        found.append(("mapped", low))
    elif top == 0:
        found.append(("compatible", low))
    elif top == 0xFFFF << 16:
        found.append(("translated", low))
    elif number >> 112 == 0x2002:
        found.append(("6to4", number >> 80 & 0xFFFF_FFFF))
    elif number >> 96 == 0x2001_0000:
        found.append(("Teredo", low ^ 0xFFFF_FFFF))  # the client's, stored inverted (RFC 4380 section 4)
        found.append(("Teredo server", number >> 64 & 0xFFFF_FFFF))
    elif address in NAT64 or number >> 80 == 0x0064_FF9B_0001:
        found.append(("NAT64", low))
    if number >> 32 & 0xFDFF_FFFF == 0x5EFE:  # the interface half; the "universal" bit may be set (RFC 5214 6.1)
        found.append(("ISATAP", low))
    return tuple((form, ipaddress.IPv4Address(inner)) for form, inner in found)


@lru_cache(maxsize=16_384)
def literal(host: str) -> str | None:
    """The address that a URL's host is ("127.0.0.1", "[::1]" → "::1"); None if it is a name."""
    if host.startswith("["):
        return host[1:-1]
    last = host.rpartition(".")[2]
    return host if last.isdigit() and _read(host) is not None else None


@dataclass(frozen=True)
class Guard:
    """What the operator allows, on top of the table.

    `allow_private`: every special address and inside name may be connected to. `allow`: these networks may, whatever
    the table says; names that mean the inside are then looked up, and only addresses in these networks will do.
    `deny`: these never, whatever else is said. `ports`: if there are any, only these; else all but `BAD_PORTS`.
    `mixed`: a name with good and forbidden addresses is refused whole, or its forbidden ones are dropped. `nat64`: see
    `judge`.
    """

    allow_private: bool = False
    allow: tuple[Network, ...] = ()
    deny: tuple[Network, ...] = ()
    ports: frozenset[int] = frozenset()
    mixed: Literal["refuse", "drop"] = "refuse"
    nat64: bool = False

    def port_problem(self, port: int) -> str | None:
        """Why this port is refused; None if it is not."""
        if self.ports:
            return None if port in self.ports else f"port {port} is not among the allowed ones"
        return f"port {port} belongs to another service" if port in BAD_PORTS else None

    def name_problem(self, host: str) -> str | None:
        """Why this name is refused unasked (SSRF-8); None if it may be looked up. Addresses have no name to judge."""
        return None if self.allow_private or self.allow else inside_name(host)

    def address_problem(self, ip: str) -> str | None:
        """Why this address is refused; None if it may be connected to. Asked again for every socket that is opened."""
        if self.deny and _within(ip, self.deny, every_form=True):
            return "denied by configuration"
        if self.allow_private or (self.allow and _within(ip, self.allow)):
            return None if _read(ip) is not None else "no plain IP address"
        return judge(ip, self.nat64)

    def choose(self, host: str, addresses: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
        """The addresses of `host` that may be connected to, in the order given, and why the others (or all) may not.

        The reason alone says nothing about success: an empty tuple means refused."""
        inside = None if self.allow_private else inside_name(host)
        good: list[str] = []
        problem: str | None = None
        for ip in addresses:
            why = self.address_problem(ip)
            if why is None and inside is not None and not _within(ip, self.allow):
                why = inside
            if why is None:
                good.append(ip)
            elif problem is None:
                problem = f"{ip}: {why}"
        if problem is not None and self.mixed == "refuse" and not is_loopback_name(host):
            return (), problem  # (localhost was answered by ourselves, in both families: one allowed is enough)
        return tuple(good), problem


def inside_name(host: str) -> str | None:
    """Why this name means the inside of a network; None for any other name, and for addresses."""
    if literal(host) is not None:
        return None
    name = host.lower().removesuffix(".")
    if "." not in name and name not in FORBIDDEN_SUFFIXES:
        return "a name of one label is a local one"
    for suffix in FORBIDDEN_SUFFIXES:
        if name == suffix or name.endswith("." + suffix):
            return f"names under .{suffix} are not on the internet"
    return None


@lru_cache(maxsize=16_384)
def _read(ip: str) -> _Address | None:
    if "%" in ip or not ip.isascii():
        return None
    try:
        return ipaddress.ip_address(ip)
    except ValueError:
        return None


def _within(ip: str, networks: tuple[Network, ...], every_form: bool = False) -> bool:
    """A mapped address is the IPv4 address in it; the other forms count only where that closes a way (`deny`)."""
    address = _read(ip)
    if address is None:
        return False
    same: list[_Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        same += [inner for form, inner in embedded(address) if every_form or form == "mapped"]
    return any(one in network for one in same for network in networks if one.version == network.version)
