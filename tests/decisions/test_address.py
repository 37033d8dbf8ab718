"""What may be connected to: every row of the tables (SSRF-4 to SSRF-9, B158, B160), and what an operator may change."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity.fetch.address import (
    BAD_PORTS,
    IPV4_FORBIDDEN,
    IPV6_FORBIDDEN,
    Guard,
    embedded,
    inside_name,
    judge,
    literal,
)

LOOPBACK = ipaddress.ip_network("127.0.0.0/8")
PUBLIC = ("8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::200e", "2400:cb00::1")


def edges(network: str) -> tuple[str, str]:
    parsed = ipaddress.ip_network(network)
    return str(parsed[0]), str(parsed[-1])


@pytest.mark.parametrize(("network", "reason"), IPV4_FORBIDDEN, ids=[row[0] for row in IPV4_FORBIDDEN])
def test_ssrf_5_every_row_is_refused_to_its_edges(network: str, reason: str) -> None:
    for ip in edges(network):
        assert judge(ip) is not None
    # The last address of 240/4 has a row of its own: broadcast.
    assert reason in (judge(edges(network)[0]) or "")


def test_ssrf_5_the_table_is_the_rule() -> None:
    assert {row[0] for row in IPV4_FORBIDDEN} == {
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32", "168.63.129.16/32",
    }  # fmt: skip


@pytest.mark.parametrize(
    "ip",
    [
        "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255",
        "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255",
        "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255",
        "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "1.0.0.0", "168.63.129.15", "168.63.129.17",
        *PUBLIC,
    ],
)  # fmt: skip
def test_the_neighbours_of_every_row_are_not_refused(ip: str) -> None:
    assert judge(ip) is None


@pytest.mark.parametrize(
    "ip",
    ["169.254.169.254", "169.254.170.2", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"],
)
def test_ssrf_5_where_clouds_keep_their_metadata(ip: str) -> None:
    assert judge(ip) is not None


@pytest.mark.parametrize(("network", "reason"), IPV6_FORBIDDEN, ids=[row[0] for row in IPV6_FORBIDDEN])
def test_ssrf_4_every_row_is_refused_to_its_edges(network: str, reason: str) -> None:
    for ip in edges(network):
        assert judge(ip) is not None


@pytest.mark.parametrize(
    "ip",
    ["1::1", "4000::1", "8000::1", "1fff:ffff::1", "e000::1", "fb00::1", "0100:0:0:1::1", "64:ff9b:2::1", "::2:0:0:1"],
)
def test_ssrf_4_everything_outside_2000_3_is_refused(ip: str) -> None:
    assert judge(ip) is not None


@pytest.mark.parametrize(
    "ip",
    ["2001:200::1", "2001:db7:ffff::1", "2001:db9::1", "2003::1", "3ffe:ffff::1", "3fff:1000::1", "2000::1"],
)
def test_ssrf_4_the_neighbours_inside_2000_3_are_not_refused(ip: str) -> None:
    assert judge(ip) is None


FORMS = {
    "mapped": "::ffff:{dotted}",
    "compatible": "::{dotted}",
    "translated": "::ffff:0:{dotted}",
    "6to4": "2002:{high:x}:{low:x}::1",
    "Teredo": "2001:0:808:808:0:0:{inverted_high:x}:{inverted_low:x}",
    "Teredo server": "2001:0:{high:x}:{low:x}:0:0:f7f7:f7f7",
    "NAT64": "64:ff9b::{dotted}",
    "local NAT64": "64:ff9b:1::{dotted}",
    "ISATAP": "2001:db9::5efe:{dotted}",
    "ISATAP, universal": "2001:db9::200:5efe:{dotted}",
}


def in_form(form: str, ip: str) -> str:
    number = int(ipaddress.IPv4Address(ip))
    high, low = number >> 16, number & 0xFFFF
    text = FORMS[form].format(
        dotted=ip, high=high, low=low, inverted_high=high ^ 0xFFFF, inverted_low=low ^ 0xFFFF
    )  # fmt: skip
    return str(ipaddress.IPv6Address(text))


@pytest.mark.parametrize("ip", ["127.0.0.1", "10.0.0.5", "169.254.169.254", "224.0.0.1"])
@pytest.mark.parametrize("form", FORMS)
def test_ssrf_6_what_is_wrapped_is_judged(form: str, ip: str) -> None:
    reason = judge(in_form(form, ip))
    assert reason is not None and ip in reason and f"in {form.partition(',')[0].removeprefix('local ')} form" in reason


@pytest.mark.parametrize(("form", "open_"), [(form, form in ("mapped",) or "ISATAP" in form) for form in FORMS])
def test_ssrf_4_6_wrapped_public_addresses_pass_only_where_they_are_reached_directly(form: str, open_: bool) -> None:
    """A mapped address is the IPv4 one; an ISATAP identifier may be chance. Tunnels and translators are refused."""
    assert (judge(in_form(form, "8.8.8.8")) is None) is open_


def test_ssrf_4_nat64_passes_only_where_it_is_configured_and_its_address_passes() -> None:
    assert judge("64:ff9b::8.8.8.8") is not None
    assert judge("64:ff9b::8.8.8.8", nat64=True) is None
    assert judge("64:ff9b::7f00:1", nat64=True) is not None
    assert judge("64:ff9b:1::808:808", nat64=True) is not None
    assert Guard(nat64=True).address_problem("64:ff9b::808:808") is None


@pytest.mark.parametrize(
    "ip",
    [
        "224.0.0.1", "ff02::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "fec0::1", "3fff::1", "5f00::1",
        "168.63.129.16", "192.88.99.1", "2002:7f00:1::", "64:ff9b:1::7f00:1", "100.64.0.1",
    ],
)  # fmt: skip
def test_ssrf_7_where_the_standard_library_is_not_enough(ip: str) -> None:
    assert judge(ip) is not None


@pytest.mark.parametrize("text", ["fe80::1%eth0", "2606:4700::1111%1", "", "a.example", "1.2.3", "١.1.1.1", "0x7f.1"])
def test_ssrf_6_what_is_no_plain_address_is_refused(text: str) -> None:
    assert judge(text) is not None
    assert Guard(allow_private=True).address_problem(text) is not None


@given(st.ip_addresses(v=4))
@settings(deadline=None)
def test_no_forbidden_ipv4_address_passes_in_any_form(ip: ipaddress.IPv4Address) -> None:
    for form in FORMS:
        if judge(str(ip)) is not None:
            assert judge(in_form(form, str(ip))) is not None


@given(st.ip_addresses(v=6))
@settings(deadline=None)
def test_what_passes_is_in_use_or_carries_an_address_that_passes(ip: ipaddress.IPv6Address) -> None:
    if judge(str(ip)) is None:
        assert ip in ipaddress.IPv6Network("2000::/3") or ip.ipv4_mapped is not None
        assert all(judge(str(inner)) is None for _, inner in embedded(ip))


# --------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST.", "a.localhost", "printer.local", "metadata.google.internal", "x.home.arpa", "home.arpa",
     "abc.onion", "intranet", "intranet.", "internal", "local"],
)  # fmt: skip
def test_ssrf_8_names_of_the_inside_are_refused(host: str) -> None:
    assert inside_name(host) is not None
    assert Guard().name_problem(host) is not None
    assert Guard(allow_private=True).name_problem(host) is None


@pytest.mark.parametrize(
    "host", ["a.example", "localhost.example", "notlocal.example", "mylocal.com", "8.8.8.8", "[::1]", "a.test."]
)
def test_ssrf_8_other_names_are_not(host: str) -> None:
    assert Guard().name_problem(host) is None


@pytest.mark.parametrize(
    ("host", "ip"),
    [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1"), ("a.example", None), ("a.1b", None), ("1.2.3.4.example", None)],
)
def test_literals(host: str, ip: str | None) -> None:
    assert literal(host) == ip


# --------------------------------------------------------------------------------------------------------------- ports


@pytest.mark.parametrize("port", sorted(BAD_PORTS))
def test_ssrf_9_bad_ports_are_refused(port: int) -> None:
    assert str(port) in (Guard().port_problem(port) or "")


def test_ssrf_9_the_list_is_the_fetch_standards() -> None:
    assert len(BAD_PORTS) == 83
    assert {0, 22, 25, 6000, 6665, 6669, 10080} < BAD_PORTS


@pytest.mark.parametrize("port", [80, 443, 8080, 8443, 3000, 65535, 24, 6670])
def test_ssrf_9_other_ports_are_not(port: int) -> None:
    assert Guard().port_problem(port) is None


def test_ssrf_9_a_list_of_ports_narrows() -> None:
    guard = Guard(ports=frozenset({80, 443}))
    assert guard.port_problem(443) is None and guard.port_problem(8443) is not None


# --------------------------------------------------------------------------------------------------------------- guard


def test_b159_one_forbidden_address_refuses_the_whole_set() -> None:
    assert Guard().choose("a.example", PUBLIC) == (PUBLIC, None)
    for mixed in (("8.8.8.8", "127.0.0.1"), ("127.0.0.1", "8.8.8.8"), ("8.8.8.8", "::1")):
        good, problem = Guard().choose("a.example", mixed)
        assert good == () and problem is not None and "loopback" in problem


def test_ssrf_3_or_only_the_forbidden_ones_are_dropped() -> None:
    guard = Guard(mixed="drop")
    good, problem = guard.choose("a.example", ("127.0.0.1", "8.8.8.8"))
    assert good == ("8.8.8.8",) and problem is not None
    assert guard.choose("a.example", ("127.0.0.1",))[0] == ()


def test_ssrf_11_allowed_networks_are_allowed_and_no_others() -> None:
    guard = Guard(allow=(ipaddress.ip_network("10.1.0.0/16"),))
    assert guard.address_problem("10.1.2.3") is None
    assert guard.address_problem("::ffff:10.1.2.3") is None
    assert guard.address_problem("10.2.0.1") is not None
    assert guard.address_problem("2002:a01:203::1") is not None  # a tunnel to an allowed address is not that address
    assert guard.address_problem("8.8.8.8") is None


def test_ssrf_11_a_name_of_the_inside_may_then_be_asked_for_and_must_lead_to_an_allowed_network() -> None:
    guard = Guard(allow=(ipaddress.ip_network("10.1.0.0/16"),))
    assert guard.name_problem("wiki.internal") is None
    assert guard.choose("wiki.internal", ("10.1.2.3",)) == (("10.1.2.3",), None)
    assert guard.choose("wiki.internal", ("8.8.8.8",))[0] == ()
    assert guard.choose("wiki.internal", ("169.254.169.254",))[0] == ()


def test_localhost_with_one_of_its_two_addresses_allowed() -> None:
    guard = Guard(allow=(LOOPBACK,))
    assert guard.choose("a.localhost", ("127.0.0.1", "::1"))[0] == ("127.0.0.1",)
    assert guard.choose("a.example", ("127.0.0.1", "::1"))[0] == ()


def test_deny_wins_over_everything_in_every_form() -> None:
    guard = Guard(allow_private=True, allow=(LOOPBACK,), deny=(LOOPBACK, ipaddress.ip_network("8.8.8.8/32")))
    for ip in ("127.0.0.1", "8.8.8.8", *(in_form(form, "127.0.0.1") for form in FORMS)):
        assert guard.address_problem(ip) == "denied by configuration"
    assert guard.address_problem("10.0.0.1") is None


def test_allow_private_allows_every_special_address() -> None:
    guard = Guard(allow_private=True)
    assert all(guard.address_problem(edges(network)[0]) is None for network, _ in IPV4_FORBIDDEN + IPV6_FORBIDDEN)
    assert guard.choose("a.localhost", ("127.0.0.1", "::1")) == (("127.0.0.1", "::1"), None)
