"""Decisions of one thread, and locks that end in another."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Iterator

import pytest

from kafkaio._records._acquired import ACCEPT, HELD, LOST, REJECT, RELEASE, STATE
from kafkaio._records._impl import accelerated
from kafkaio._records.batch import Acquired
from kafkaio._runtime.thread import LoopThread
from kafkaio._share.threaded.mirrors import Mirror, Mirrors
from kafkaio.errors import ConfigurationError, UsageError
from tests.unit.share.fake_engine import FakeLedger

needs_compiled = pytest.mark.skipif(not accelerated, reason="io_thread needs it")


@pytest.fixture
def switches_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def nothing(real: Acquired, first: int, last: int) -> None:
    """Hear of decisions that came too late."""


async def turn(thread: LoopThread) -> None:
    """Return when the thread has done what was asked of it before."""
    await thread.call(lambda: asyncio.sleep(0))


#: Offsets of the range of the test below, and how many of them are decided.
SIZE, DECIDED = 3_000, 2_900


def decide_most(shown: Acquired, dice: random.Random) -> Iterator[tuple[int, int]]:
    """Decide about most offsets in any order; yield what was not refused."""
    offsets = [*range(100, 100 + SIZE)]
    dice.shuffle(offsets)
    for offset in offsets[:DECIDED]:
        decision = dice.choice([ACCEPT, RELEASE, REJECT])
        try:
            shown.decide(offset, decision)
        except UsageError:
            assert shown.states[offset - 100] in {LOST, RELEASE}
        else:
            yield offset, decision


class BusyLedger:
    """Takes decisions, loses locks, and decides itself; in the I/O thread."""

    def __init__(self, thread: LoopThread, seed: int) -> None:
        self.real = Acquired("t", 0, 100, 99 + SIZE, 1, 1, FakeLedger())
        self.mirrors = Mirrors(thread, nothing)
        self.shown = self.real
        self.taken: list[int] = []
        self._dice = random.Random(-seed - 1)

    def take(self) -> None:
        for first, last, _ in self.real.take_decisions(10**6):
            self.taken += range(first, last + 1)

    async def show(self) -> None:
        self.shown = self.mirrors.show(self.real)

    async def work(self) -> None:
        for _ in range(150):
            self.take()
            at = 100 + self._dice.randrange(SIZE)
            if self._dice.random() < 0.2:
                self.real.lose(at, at + 3)
                self.mirrors.refresh(self.real)
            if self._dice.random() < 0.2:
                self.shown.decide_range(at, at + 2, RELEASE)
            await asyncio.sleep(0)


@needs_compiled
@pytest.mark.usefixtures("switches_often")
@pytest.mark.parametrize("seed", range(6))
async def test_every_decision_crosses(seed: int) -> None:
    dice, thread = random.Random(seed), LoopThread("test")
    thread.start()
    ledger = BusyLedger(thread, seed)
    await thread.call(ledger.show)
    real, shown = ledger.real, ledger.shown
    working = asyncio.create_task(thread.call(ledger.work))
    decided: dict[int, int] = {}
    for offset, decision in decide_most(shown, dice):
        decided[offset] = decision
        if dice.random() < 0.02:
            await asyncio.sleep(0)
    await working
    await turn(thread)
    ledger.take()
    await thread.aclose()
    for offset, decision in decided.items():
        assert real.states[offset - 100] & STATE in {decision, LOST}, offset
    # Each decision was taken once, and the numbers are right in both threads.
    assert len(ledger.taken) == len({*ledger.taken})
    assert real.held == real.states.count(HELD)
    assert shown.held == shown.states.count(HELD)


@needs_compiled
@pytest.mark.usefixtures("switches_often")
async def test_the_last_decision_of_a_range_crosses() -> None:
    # Many ranges with two decisions each: nothing that comes later would bring along
    # one that was missed.
    thread, ledger, count = LoopThread("test"), FakeLedger(), 400
    thread.start()
    mirrors = Mirrors(thread, nothing)
    reals = [Acquired("t", n, 0, 1, 1, 1, ledger) for n in range(count)]

    async def show() -> list[Acquired]:
        return [mirrors.show(real) for real in reals]

    for shown in await thread.call(show):
        shown.decide(0, ACCEPT)
        shown.decide(1, REJECT)
    await turn(thread)
    await thread.aclose()
    assert {bytes(real.states) for real in reals} == {bytes([ACCEPT, REJECT])}


class Elsewhere:
    """An I/O thread that is asked, and does nothing by itself."""

    is_inside = False

    def __init__(self) -> None:
        self.asked: list[Callable[[], object]] = []

    def tell(self, step: Callable[[], object]) -> None:
        self.asked.append(step)


class Interfering(FakeLedger):
    """A ledger that the other thread comes between."""

    def __init__(self) -> None:
        super().__init__()
        self.interfere: Callable[[], object] = lambda: None

    def decided(self, acquired: Acquired) -> None:
        self.interfere()


def test_a_decision_amid_the_collecting_asks_again() -> None:
    thread, ledger = Elsewhere(), Interfering()
    real = Acquired("t", 0, 0, 2, 1, 1, ledger)
    mirror = Mirror(real, thread, lambda _: None, nothing)  # type: ignore[arg-type]
    mirror.shown.decide(0, ACCEPT)
    mirror.shown.decide(2, ACCEPT)
    (collect,) = thread.asked  # one bundle
    ledger.interfere = lambda: mirror.shown.decide(1, REJECT)
    collect()
    assert bytes(real.states) == bytes([ACCEPT, HELD, ACCEPT])
    thread.asked[1]()
    assert bytes(real.states) == bytes([ACCEPT, REJECT, ACCEPT])
    assert len(thread.asked) == 2


def test_a_decision_that_comes_too_late_is_told() -> None:
    thread, late = Elsewhere(), list[tuple[int, int]]()
    real = Acquired("t", 0, 0, 5, 1, 1, FakeLedger())
    mirror = Mirror(
        real,
        thread,  # type: ignore[arg-type]
        lambda _: None,
        lambda _, first, last: late.append((first, last)),
    )
    mirror.shown.decide_range(1, 4, ACCEPT)
    real.lose(2, 5)  # the mirror has not heard of it yet
    thread.asked[0]()
    assert late == [(2, 4)]
    assert real.states[1] == ACCEPT
    mirror.refresh()
    # What was not decided is shown as lost.
    assert [mirror.shown.is_lost(n) for n in range(6)] == [*[False] * 5, True]


@needs_compiled
async def test_what_becomes_of_a_range_is_shown() -> None:
    thread, ledger = LoopThread("test"), FakeLedger()
    thread.start()
    mirrors = Mirrors(thread, nothing)
    real = Acquired("t", 0, 0, 9, 3, 1, ledger)
    real.deadline = 5.0

    async def show() -> Acquired:
        return mirrors.show(real)

    async def change() -> None:
        real.deadline = 9.0
        real.lost_because = "the lock ran out"
        real.lose(2, 3)
        mirrors.refresh(real)

    shown = await thread.call(show)
    assert (shown.delivery_count, shown.deadline) == (3, 5.0)
    shown.decide(2, ACCEPT)
    await thread.call(change)
    assert shown.deadline == 9.0
    assert (shown.is_lost(3), shown.is_lost(4)) == (True, False)
    with pytest.raises(UsageError, match="its lock is gone: the lock ran out"):
        shown.decide(3, ACCEPT)
    real.decide_range(0, 9, RELEASE)

    async def end() -> None:
        mirrors.end()

    await thread.call(end)
    with pytest.raises(UsageError, match=r"offset 4 .* it was released"):
        shown.decide(4, ACCEPT)
    await thread.aclose()


@pytest.mark.skipif(accelerated, reason="with the pure codec")
def test_the_pure_codec_is_refused() -> None:
    from kafkaio import ShareConsumer

    with pytest.raises(ConfigurationError, match="needs kafkaio's compiled codec"):
        ShareConsumer("a", topics="t", group_id="g", io_thread=True)


def test_a_shared_client_is_refused() -> None:
    from kafkaio import Client, ShareConsumer

    client = Client("a")
    with pytest.raises(UsageError, match="io_thread=True needs a client of its own"):
        ShareConsumer(client, topics="t", group_id="g", io_thread=True)
