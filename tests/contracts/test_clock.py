"""The `Clock` port over both clocks, and what the virtual one promises beyond it, on asyncio's loop and on uvloop's."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from comity.clock import SystemClock, VirtualClock
from comity.ports import Clock

LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
CLOCKS = pytest.mark.parametrize("new_clock", [SystemClock, lambda: VirtualClock(1000.0)], ids=["system", "virtual"])
NewLoop = Callable[[], asyncio.AbstractEventLoop]


def on(new_loop: NewLoop, main: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(asyncio.wait_for(main, 10))


@CLOCKS
@LOOPS
def test_a_sleeper_never_wakes_early_and_now_never_goes_back(new_clock: Callable[[], Clock], new_loop: NewLoop) -> None:
    async def main() -> None:
        clock, last = new_clock(), 0.0
        for wait_s in (0.0, -5.0, 0.0004, 0.003, 0.0011):
            at = clock.now() + wait_s
            await clock.sleep_until(at)
            assert clock.now() >= max(at, last)
            last = clock.now()

    on(new_loop, main())


@CLOCKS
@LOOPS
def test_sleepers_wake_in_the_order_of_their_instants(new_clock: Callable[[], Clock], new_loop: NewLoop) -> None:
    async def main() -> None:
        clock, woken = new_clock(), list[int]()
        start = clock.now()

        async def sleeper(n: int) -> None:
            await clock.sleep_until(start + n * 0.02)
            woken.append(n)

        await asyncio.gather(*(sleeper(n) for n in (3, 1, 2)))
        assert woken == [1, 2, 3]

    on(new_loop, main())


@CLOCKS
@LOOPS
def test_a_sleep_can_be_cancelled_and_busy_nested(new_clock: Callable[[], Clock], new_loop: NewLoop) -> None:
    async def main() -> None:
        clock = new_clock()
        task = asyncio.ensure_future(clock.sleep_until(clock.now() + 1e6))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with clock.busy(), clock.busy():
            pass
        await clock.sleep_until(clock.now() + 0.001)

    on(new_loop, main())


async def test_the_wall_clock_is_read_once_and_carried_by_the_monotonic_one() -> None:
    wall, steady = iter([1_700_000_000.0]), [50.0]
    clock = SystemClock(wall=lambda: next(wall), monotonic=lambda: steady[0])
    steady[0] = 53.5
    assert clock.now() == 1_700_000_003.5


async def test_a_loop_that_wakes_early_is_asked_again() -> None:
    readings = iter([0.0, 0.0, 0.0009, 0.0011])  # at the start, before the sleep, woken early, woken late enough
    clock = SystemClock(wall=lambda: 0.0, monotonic=lambda: next(readings))
    await clock.sleep_until(0.001)
    assert next(readings, None) is None


@LOOPS
def test_virtual_time_jumps_over_days_without_real_waiting(new_loop: NewLoop) -> None:
    async def main() -> list[float]:
        clock, seen = VirtualClock(), list[float]()

        async def host(delay_s: float) -> None:
            for n in range(1, 4):
                await clock.sleep_until(n * delay_s)
                seen.append(clock.now())

        await asyncio.gather(host(86400.0), host(50000.0))
        return seen

    assert on(new_loop, main()) == [50000.0, 86400.0, 100000.0, 150000.0, 172800.0, 259200.0]


@LOOPS
def test_virtual_time_stands_still_while_work_is_under_way(new_loop: NewLoop) -> None:
    async def main() -> None:
        clock = VirtualClock()
        waiter = asyncio.ensure_future(clock.sleep_until(10.0))
        with clock.busy():
            await asyncio.sleep(0.03)  # a request on the wire: real time passes
            assert (clock.now(), waiter.done()) == (0.0, False)
        await waiter
        assert clock.now() == 10.0

    on(new_loop, main())


@LOOPS
def test_virtual_time_waits_for_a_thread_and_for_what_follows_it(new_loop: NewLoop) -> None:
    async def main() -> None:
        clock = VirtualClock()
        seen = list[float]()

        async def worker() -> None:
            loop = asyncio.get_running_loop()
            for _ in range(20):
                with clock.busy():
                    await loop.run_in_executor(None, sum, range(1000))
                for _ in range(20):  # a chain of wake-ups after the thread's answer
                    await asyncio.sleep(0)
                seen.append(clock.now())

        await asyncio.gather(clock.sleep_until(5.0), worker())
        assert seen == [0.0] * 20
        assert clock.now() == 5.0

    on(new_loop, main())


@LOOPS
def test_a_long_chain_of_tasks_is_finished_before_time_moves(new_loop: NewLoop) -> None:
    """Forty queues in a row: none of them tells the clock anything, and still each item arrives at instant 0."""

    async def main() -> None:
        clock = VirtualClock()
        queues = [asyncio.Queue[int]() for _ in range(40)]

        async def hand_on(source: asyncio.Queue[int], to: asyncio.Queue[int]) -> None:
            to.put_nowait(await source.get())

        tasks = [asyncio.ensure_future(hand_on(a, b)) for a, b in itertools.pairwise(queues)]
        waiter = asyncio.ensure_future(clock.sleep_until(99.0))
        await asyncio.sleep(0)
        queues[0].put_nowait(1)
        await queues[-1].get()
        assert clock.now() == 0.0
        await asyncio.gather(waiter, *tasks)

    on(new_loop, main())


@LOOPS
def test_a_heartbeat_wakes_when_time_passes_it_and_is_never_a_reason_to_move(new_loop: NewLoop) -> None:
    async def main() -> None:
        clock, beats = VirtualClock(), list[float]()

        async def heart() -> None:
            while True:
                await clock.sleep_until(clock.now() + 10.0, heartbeat=True)
                beats.append(clock.now())

        beating = asyncio.ensure_future(heart())
        await clock.settled()
        assert (beats, clock.now(), clock.waiting) == ([], 0.0, 1)
        await clock.sleep_until(5.0)
        assert beats == []
        await clock.sleep_until(25.0)
        await clock.settled()
        assert (beats, clock.now()) == ([25.0], 25.0)
        beating.cancel()

    on(new_loop, main())


@LOOPS
def test_in_manual_mode_only_advance_to_moves_time(new_loop: NewLoop) -> None:
    async def main() -> None:
        clock = VirtualClock(60.0, auto=False)
        waiters = [asyncio.ensure_future(clock.sleep_until(at)) for at in (70.0, 80.0, 90.0)]
        await clock.settled()
        assert clock.now() == 60.0
        clock.advance_to(85.0)
        await clock.settled()
        assert ([waiter.done() for waiter in waiters], clock.now()) == ([True, True, False], 85.0)
        clock.advance_to(10.0)
        assert clock.now() == 85.0, "time never goes back"
        waiters[-1].cancel()

    on(new_loop, main())


async def test_one_virtual_clock_serves_several_loops_one_after_the_other() -> None:
    clock = VirtualClock()

    def run(main: Callable[[], Awaitable[None]]) -> None:
        with asyncio.Runner() as runner:
            runner.get_loop().run_until_complete(asyncio.wait_for(main(), 5))

    async def abandoned() -> None:
        asyncio.get_running_loop().create_task(clock.sleep_until(7.0))
        await asyncio.sleep(0)  # the loop ends with a probe on its way

    async def later() -> None:
        await clock.sleep_until(20.0)

    await asyncio.to_thread(run, abandoned)
    await asyncio.to_thread(run, later)
    assert clock.now() == 20.0


async def test_a_thousand_sleepers_of_a_thousand_jumps_are_quick() -> None:
    clock = VirtualClock()

    async def host(n: int) -> None:
        for step in range(3):
            await clock.sleep_until(step * 1000.0 + n)

    began = asyncio.get_running_loop().time()
    await asyncio.gather(*(host(n) for n in range(1000)))
    assert clock.now() == 2999.0
    assert asyncio.get_running_loop().time() - began < 10, "3,000 jumps"
