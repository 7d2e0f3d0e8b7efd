import asyncio
from collections.abc import Sequence

import pytest

from kafkaio._net.memory import MemoryTransport
from kafkaio._net.transport import DialOptions, TransportPort
from kafkaio.errors import BrokerNotAvailable
from kafkaio.protocol._message import Buffer
from tests.sim.network import Latency, Network, Wire

OPTIONS = DialOptions(timeout=1.0, max_frame_size=1000)


class Sink:
    def __init__(self) -> None:
        self.events: list[tuple[float, object]] = []

    def frame_received(self, frame: Buffer) -> None:
        self.events.append((asyncio.get_running_loop().time(), bytes(frame)))

    def connection_lost(self, cause: BaseException | None) -> None:
        self.events.append((asyncio.get_running_loop().time(), cause))

    @property
    def what(self) -> list[object]:
        return [event for _, event in self.events]


class World:
    def __init__(self, seed: int = 1) -> None:
        self.told: list[tuple[str, int]] = []
        self.network = Network(seed, Latency(0.1, 0.2), self.hear, self.ignore)
        self.server, self.client = Sink(), Sink()
        self.far: MemoryTransport
        self.network.listen("h", 1, self.accept)

    def hear(self, wire: Wire, parts: Sequence[Buffer]) -> None:
        del parts
        assert wire.end is not None
        assert wire.end.is_open
        self.told.append((wire.client, wire.port))

    def ignore(self, wire: Wire, frame: Buffer) -> None:
        del wire, frame

    def accept(self, far: MemoryTransport) -> Sink:
        self.far = far
        return self.server

    async def dial(self, client: str = "c") -> TransportPort:
        return await self.network.dial_of(client)("h", 1, self.client, OPTIONS)


def framed(data: bytes) -> list[bytes]:
    return [len(data).to_bytes(4, "big") + data]


async def test_what_is_written_arrives_later_and_in_order() -> None:
    world = World()
    near = await world.dial()
    began = asyncio.get_running_loop().time()
    for number in range(50):
        near.write(framed(b"%d" % number))
    await asyncio.sleep(1)
    assert world.server.what == [b"%d" % number for number in range(50)]
    assert all(0.1 <= at - began < 0.21 for at, _ in world.server.events)
    assert world.told == [("c", 1)] * 50


async def test_the_same_seed_takes_the_same_time() -> None:
    async def times(seed: int) -> list[float]:
        world = World(seed)
        near = await world.dial()
        began = asyncio.get_running_loop().time()
        for _ in range(10):
            near.write(framed(b"x"))
            await asyncio.sleep(1)
        return [round(at - began, 9) for at, _ in world.server.events]

    assert await times(1) == await times(1) != await times(2)


@pytest.mark.parametrize("cut", ["c", ""])
async def test_nothing_gets_through_a_cut_until_it_heals(cut: str) -> None:
    world = World()
    near = await world.dial()
    world.network.cut(cut, 1)
    world.network.cut("c", 1)
    near.write(framed(b"a"))
    world.far.write(framed(b"b"))
    await asyncio.sleep(5)
    world.network.heal(cut, 1)
    await asyncio.sleep(5)
    assert world.server.what == world.client.what == []
    world.network.heal("c", 1)
    await asyncio.sleep(1)
    assert (world.server.what, world.client.what) == ([b"a"], [b"b"])


async def test_who_dials_through_a_cut_waits() -> None:
    world = World()
    world.network.cut("c", 1)
    asyncio.get_running_loop().call_later(7, world.network.heal, "c", 1)
    await world.dial("another")
    await world.dial()
    assert 7 <= asyncio.get_running_loop().time() < 9


async def test_a_reset_tells_both_ends_why() -> None:
    world = World()
    await world.dial()
    assert world.network.open_links == ["c to 1"]
    world.network.reset("c")
    await asyncio.sleep(1)
    assert [type(cause) for cause in world.server.what] == [ConnectionResetError]
    assert [type(cause) for cause in world.client.what] == [ConnectionResetError]
    assert world.network.open_links == []


async def test_a_node_that_is_down_refuses() -> None:
    world = World()
    world.network.unlisten("h", 1)
    with pytest.raises(BrokerNotAvailable, match="refused"):
        await world.dial()


async def test_who_is_removed_is_gone_for_good() -> None:
    world = World()
    await world.dial()
    world.network.remove("c")
    await asyncio.sleep(1)
    assert world.network.open_links == []
    with pytest.raises(BrokerNotAvailable, match="c is gone"):
        await world.dial()


async def test_a_way_can_be_slowed_down() -> None:
    world = World()
    world.network.slow_down("c", 1, 1000.0)
    near = await world.dial()
    near.write(framed(b"a"))
    await asyncio.sleep(1)
    assert world.server.what == []
    await asyncio.sleep(1000)
    world.network.slow_down("c", 1, 0.0)
    near.write(framed(b"b"))
    await asyncio.sleep(1)
    assert world.server.what == [b"a", b"b"]


async def test_some_things_straggle() -> None:
    world = World()
    latency = Latency(0.1, 0.2, stragglers=0.2)
    world.network = Network(1, latency, world.hear, world.ignore)
    world.network.listen("h", 1, world.accept)
    near = await world.dial()
    late = 0
    for number in range(100):
        began = asyncio.get_running_loop().time()
        near.write(framed(b"%d" % number))
        await asyncio.sleep(2)
        late += world.server.events[-1][0] - began > 0.2
    assert 5 < late < 30
