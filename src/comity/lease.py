"""How long the store takes our claims for granted: proved before each request, renewed well before the end.

Invariant: no request is started that could outlast the lease by our own monotonic clock, so that no other worker asks a
host while an answer to us may still be on its way. The store's lease is longer by the longest request than the one
counted here. A host's clock, its rules and who holds what are none of its business.
"""

from __future__ import annotations

import asyncio

from comity.ports import Clock, Frontier


class Lease:
    """The lease of one worker. Durations in seconds."""

    def __init__(self, store: Frontier, clock: Clock, worker: str, lease_s: float, longest_request_s: float) -> None:
        self._store, self._clock, self._worker = store, clock, worker
        self.lease_s = lease_s
        self._margin_s = longest_request_s
        self._until_at = float("-inf")
        self._renewing = asyncio.Lock()

    async def prove(self) -> None:
        """Return only while a request may be started: it would end before the lease does."""
        while self._clock.now() > self._until_at - self._margin_s:
            async with self._renewing:
                if self._clock.now() > self._until_at - self._margin_s:
                    await self._renew()

    async def keep(self) -> None:
        """Renew well before the end, for as long as the task lives."""
        while True:
            await self._clock.sleep_until(self._clock.now() + self.lease_s / 3, heartbeat=True)
            await self._renew()

    async def _renew(self) -> None:
        asked_at = self._clock.now()
        await self._store.renew(self._worker, self.lease_s + self._margin_s)
        self._until_at = asked_at + self.lease_s + self._margin_s
