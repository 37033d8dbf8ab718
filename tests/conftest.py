"""What every test may count on: a fake web, and a guard against the real one.

The guard is Python's own audit hook, not a patch: it cannot be undone by a test, and it sees every connection made
through the socket module. libcurl and c-ares open sockets of their own; what keeps those at home is that no test names
a host outside localhost and the reserved names.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from comity.fakeweb import Child, FakeWeb, Site, in_process, open_web


def at_home(address: Any) -> bool:
    """Is this address on this machine? (A path of a UNIX socket is.)"""
    if not isinstance(address, tuple):
        return True
    host = str(address[0]).partition("%")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in ("", "localhost") or host.endswith(".localhost")


def guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto") and not at_home(arguments[1]):
        raise PermissionError(f"tests talk to loopback only, not to {arguments[1]}")


sys.addaudithook(guard)


class StartWeb(Protocol):
    def __call__(
        self, *sites: Site | Callable[[int], list[Site]], now: Callable[[], float] | None = None
    ) -> Awaitable[FakeWeb]: ...


@pytest.fixture
async def fakeweb() -> AsyncIterator[StartWeb]:
    """``web = await fakeweb(Site("a.localhost", {"/": page(["/b"])}), now=clock.now)``: sites, served in the test's own
    event loop until it ends. Then ``web.url("a.localhost", "/")``, ``web.lines``, ``web.judge(delay_s=1)``. A function
    instead of a site is given the port and returns sites."""
    webs: list[FakeWeb] = []

    async def start(*sites: Site | Callable[[int], list[Site]], now: Callable[[], float] | None = None) -> FakeWeb:
        def all_sites(port: int) -> list[Site]:
            return [one for given in sites for one in ([given] if isinstance(given, Site) else given(port))]

        webs.append(await open_web(all_sites, now=now))
        return webs[-1]

    yield start
    for web in webs:
        await web.stop()


@pytest.fixture
def fakeweb_process(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    """``web = fakeweb_process("--hosts", "20", "--delay", "1")``: a fake web in a child process, for a crawl that is
    one too. Options are those of ``python -m comity.fakeweb``; then ``web.seeds``, ``web.lines()``, ``web.judge()``."""
    with ExitStack() as stack:
        count = iter(range(1000))

        def start(*options: str) -> Child:
            return stack.enter_context(in_process(tmp_path / f"fakeweb-{next(count)}.log", *options))

        yield start
