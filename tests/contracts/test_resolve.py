"""The resolver, against a name server of our own: one look-up a name, both families, failures by kind."""

from __future__ import annotations

import asyncio
import socket
import threading

import fakedns
import pytest
import uvloop

from comity.fetch import resolve
from comity.fetch.resolve import LOOPBACK, ResolveError, Resolver
from comity.model import Failure

A, AAAA = 1, 28


async def failure(resolver: Resolver, name: str) -> Failure:
    with pytest.raises(ResolveError) as caught:
        await resolver.resolve(name)
    assert caught.value.detail
    return caught.value.failure


async def test_both_families_are_asked_and_ipv4_comes_first() -> None:
    async with fakedns.serve({"a.example": ["2001:db8::1", "192.0.2.1", "192.0.2.2"]}) as dns:
        resolver = Resolver(servers=[dns.place])
        assert await resolver.resolve("a.example") == ("192.0.2.1", "192.0.2.2", "2001:db8::1")
        assert sorted(dns.asked) == [("a.example", A), ("a.example", AAAA)]
        await resolver.close()


async def test_one_family_is_enough() -> None:
    async with fakedns.serve({"four.example": ["192.0.2.1"], "six.example": ["2001:db8::1"]}) as dns:
        resolver = Resolver(servers=[dns.place])
        assert await resolver.resolve("four.example") == ("192.0.2.1",)
        assert await resolver.resolve("six.example") == ("2001:db8::1",)
        await resolver.close()


async def test_one_look_up_at_a_time_per_name_and_the_answer_is_kept() -> None:
    async with fakedns.serve({"a.example": ["192.0.2.1"]}, delay_s=0.05) as dns:
        resolver = Resolver(servers=[dns.place])
        answers = await asyncio.gather(*(resolver.resolve(name) for name in ("a.example", "A.EXAMPLE", "a.example.")))
        assert answers == [("192.0.2.1",)] * 3
        assert await resolver.resolve("a.example") == ("192.0.2.1",)
        assert len(dns.asked) == 2  # A and AAAA, once
        await resolver.close()


async def test_one_who_gives_up_waiting_takes_the_answer_from_nobody() -> None:
    async with fakedns.serve({"a.example": ["192.0.2.1"]}, delay_s=0.05) as dns:
        resolver = Resolver(servers=[dns.place])
        impatient, patient = (asyncio.create_task(resolver.resolve("a.example")) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        assert await patient == ("192.0.2.1",)
        with pytest.raises(asyncio.CancelledError):
            await impatient
        assert len(dns.asked) == 2
        await resolver.close()


async def test_b181_a_new_address_is_seen_when_the_answer_is_no_longer_kept() -> None:
    book: fakedns.Book = {"a.example": ["192.0.2.1"]}
    async with fakedns.serve(book) as dns:
        resolver = Resolver(servers=[dns.place], keep_s=0.05)
        assert await resolver.resolve("a.example") == ("192.0.2.1",)
        book["a.example"] = ["192.0.2.2"]
        assert await resolver.resolve("a.example") == ("192.0.2.1",)
        await asyncio.sleep(0.06)  # the time it is kept, which is what is tested
        assert await resolver.resolve("a.example") == ("192.0.2.2",)
        await resolver.close()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("nxdomain", Failure.DNS),
        ("empty", Failure.DNS),
        ("servfail", Failure.DNS_TEMPORARY),
        ("refused", Failure.DNS_TEMPORARY),
        ("silent", Failure.TIMEOUT_DNS),
    ],
)
async def test_b183_failures_are_told_apart_and_kept_briefly(said: str, expected: Failure) -> None:
    async with fakedns.serve({"a.example": said}) as dns:
        resolver = Resolver(servers=[dns.place], limit_s=0.3, try_s=0.1)
        assert await failure(resolver, "a.example") is expected
        asked = len(dns.asked)
        assert await failure(resolver, "a.example") is expected
        assert len(dns.asked) == asked
        await resolver.close()


async def test_the_limit_holds_for_a_look_up_as_a_whole() -> None:
    loop = asyncio.get_running_loop()
    async with fakedns.serve({"a.example": "silent"}) as dns:
        resolver = Resolver(servers=[dns.place], limit_s=0.2, try_s=30.0)
        began = loop.time()
        assert await failure(resolver, "a.example") is Failure.TIMEOUT_DNS
        assert 0.19 <= loop.time() - began < 0.5
        await resolver.close()


async def test_b179_slow_names_delay_no_others() -> None:
    book: fakedns.Book = {f"slow{n}.example": "silent" for n in range(40)}
    async with fakedns.serve(book | {"quick.example": ["192.0.2.1"]}) as dns:
        resolver = Resolver(servers=[dns.place], limit_s=20)
        slow = [asyncio.create_task(resolver.resolve(name)) for name in book]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(resolver.resolve("quick.example"), 1) == ("192.0.2.1",)
        assert not any(task.done() for task in slow)
        await resolver.close()
        assert all(isinstance(end, ResolveError) for end in await asyncio.gather(*slow, return_exceptions=True))


@pytest.mark.parametrize("name", ["a..b.example", f"{'a' * 64}.example", ".example", "a" * 63 + ".a" * 100 + ".x", "."])
async def test_b185_what_cannot_be_a_name_fails_without_a_question(name: str) -> None:
    async with fakedns.serve({}) as dns:
        resolver = Resolver(servers=[dns.place])
        assert await failure(resolver, name) is Failure.DNS
        assert dns.asked == []
        await resolver.close()


@pytest.mark.parametrize("name", ["my_shop.example", "r4---x.example", "xn--bcher-kva.example", "a" * 63 + ".example"])
async def test_b184_unusual_names_are_asked_for(name: str) -> None:
    async with fakedns.serve({name: ["192.0.2.1"]}) as dns:
        resolver = Resolver(servers=[dns.place])
        assert await resolver.resolve(name) == ("192.0.2.1",)
        await resolver.close()


async def test_literals_and_localhost_need_no_dns_and_no_channel() -> None:
    threads = threading.active_count()
    resolver = Resolver(servers=["192.0.2.53"])
    assert await resolver.resolve("127.0.0.1") == ("127.0.0.1",)
    assert await resolver.resolve("[2001:db8::1]") == ("2001:db8::1",)
    for name in ("localhost", "a.localhost", "A.b.LOCALHOST."):
        assert await resolver.resolve(name) == LOOPBACK == ("127.0.0.1", "::1")
    assert resolver._channel is None and threading.active_count() == threads
    await resolver.close()


async def test_search_domains_are_not_used() -> None:
    async with fakedns.serve({}) as dns:
        resolver = Resolver(servers=[dns.place])
        assert await failure(resolver, "intranet") is Failure.DNS
        assert {name for name, _ in dns.asked} == {"intranet"}
        await resolver.close()


async def test_the_memory_is_bounded() -> None:
    async with fakedns.serve({f"h{n}.example": ["192.0.2.1"] for n in range(20)}) as dns:
        resolver = Resolver(servers=[dns.place], capacity=5)
        for n in range(20):
            await resolver.resolve(f"h{n}.example")
        assert list(resolver._known) == [f"h{n}.example" for n in range(15, 20)]
        await resolver.close()


async def test_channels_are_replaced_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "LOOK_UPS_PER_CHANNEL", 3)
    async with fakedns.serve({f"h{n}.example": ["192.0.2.1"] for n in range(20)}, delay_s=0.01) as dns:
        resolver = Resolver(servers=[dns.place])
        answers = await asyncio.gather(*(resolver.resolve(f"h{n}.example") for n in range(20)))
        assert answers == [("192.0.2.1",)] * 20
        assert len(resolver._users) == 1
        await resolver.close()
        assert not resolver._users


async def test_a_channel_that_finds_no_server_is_replaced_before_it_is_believed() -> None:
    async with fakedns.serve({"a.example": ["192.0.2.1"], "b.example": ["192.0.2.2"]}) as dns:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unheard:
            unheard.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{unheard.getsockname()[1]}"
        resolver = Resolver(servers=[place], limit_s=2)  # nobody listens there any more
        assert await failure(resolver, "b.example") is Failure.DNS_TEMPORARY
        resolver._servers = (dns.place,)
        assert await resolver.resolve("a.example") == ("192.0.2.1",)
        assert resolver._refusals == 0 and len(resolver._users) == 1
        await resolver.close()


async def test_an_address_that_worked_is_named_first() -> None:
    async with fakedns.serve({"a.example": ["192.0.2.1", "192.0.2.2"]}) as dns:
        resolver = Resolver(servers=[dns.place])
        await resolver.resolve("a.example")
        resolver.prefer("a.example", "192.0.2.2")
        resolver.prefer("a.example", "198.51.100.1")  # not an address of it
        resolver.prefer("b.example", "192.0.2.2")  # not known
        assert await resolver.resolve("a.example") == ("192.0.2.2", "192.0.2.1")
        await resolver.close()


async def test_a_closed_resolver_says_so() -> None:
    resolver = Resolver()
    await resolver.close()
    await resolver.close()
    assert await failure(resolver, "a.example") is Failure.SELF


def test_it_works_on_uvloop() -> None:
    async def main() -> tuple[str, ...]:
        async with fakedns.serve({"a.example": ["192.0.2.1"]}) as dns:
            resolver = Resolver(servers=[dns.place])
            try:
                return await resolver.resolve("a.example")
            finally:
                await resolver.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(main()) == ("192.0.2.1",)
