import asyncio
from collections.abc import Callable

import pytest

from kafkaio._net.memory import MemoryNetwork, MemoryTransport
from kafkaio._net.transport import DialOptions
from kafkaio.errors import BrokerNotAvailable, ProtocolError
from kafkaio.protocol._message import Buffer

OPTIONS = DialOptions(timeout=1.0, max_frame_size=200_000)


class Sink:
    def __init__(self) -> None:
        self.events: list[object] = []

    def frame_received(self, frame: Buffer) -> None:
        self.events.append(bytes(frame))

    def connection_lost(self, cause: BaseException | None) -> None:
        self.events.append(cause)


class End:
    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.network.listen("h", 1, self.accept)
        self.server_sink, self.sink = Sink(), Sink()
        self.server: MemoryTransport

    def accept(self, server: MemoryTransport) -> Sink:
        self.server = server
        return self.server_sink

    async def dial(self) -> MemoryTransport:
        transport = await self.network.dial("h", 1, self.sink, OPTIONS)
        assert isinstance(transport, MemoryTransport)
        return transport


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


async def test_bytes_arrive_as_frames_in_order() -> None:
    end = End()
    client = await end.dial()
    big = bytes(100_000)
    client.write([framed(b"a")[:2], framed(b"a")[2:], framed(big)])
    client.write([framed(b"b")])
    assert end.server_sink.events == []
    await turns()
    assert end.server_sink.events == [b"a", big, b"b"]
    end.server.write([framed(b"c")])
    await turns()
    assert end.sink.events == [b"c"]
    assert client.received == 5
    client.close()
    await turns()


async def test_the_end_comes_after_the_bytes() -> None:
    end = End()
    client = await end.dial()
    client.write([framed(b"last")])
    client.close()
    client.write([framed(b"too late")])
    client.abort()
    await turns()
    assert end.server_sink.events == [b"last", None]
    assert end.sink.events == [None]
    assert not end.server.is_open


async def test_a_reset_has_a_cause_at_both_ends() -> None:
    end = End()
    client = await end.dial()
    cause = ConnectionResetError("cut")
    client.reset(cause)
    await turns()
    assert end.server_sink.events == [cause]
    assert end.sink.events == [cause]


async def test_a_stalled_end_lets_nothing_through_until_it_flows() -> None:
    end = End()
    client = await end.dial()
    end.server.stall()
    end.server.write([framed(b"1")])
    await turns()
    assert end.sink.events == []
    assert end.server.unsent == 5
    end.server.flow()
    end.server.write([framed(b"2")])
    await turns()
    assert end.sink.events == [b"1", b"2"]
    assert end.server.unsent == 0
    client.close()
    await turns()


async def test_a_frame_that_is_too_large_breaks_the_stream() -> None:
    end = End()
    await end.dial()
    end.server.write([b"\x7f\xff\xff\xff"])
    await turns()
    [cause] = end.sink.events
    assert isinstance(cause, ProtocolError)
    assert end.server_sink.events == [None]


async def test_nobody_listens() -> None:
    end = End()
    end.network.unlisten("h", 1)
    with pytest.raises(BrokerNotAvailable, match="h:1: connect: connection refused"):
        await end.dial()


async def test_a_carrier_decides_when_things_arrive() -> None:
    under_way: list[Callable[[], None]] = []
    network = MemoryNetwork()
    sink, server_sink = Sink(), Sink()
    network.listen("h", 1, lambda _: server_sink)
    client = MemoryTransport(100, under_way.append)
    network.join("h", 1, client, MemoryTransport(100), sink)
    client.write([framed(b"a")])
    client.close()
    await turns()
    assert (sink.events, server_sink.events) == ([None], [])
    for arrive in under_way:
        arrive()
    assert server_sink.events == [b"a", None]
