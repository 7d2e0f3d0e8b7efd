from __future__ import annotations

from kafkaio.types import RecordMetadata
from tests.unit.producer.broker_log import Logs
from tests.unit.producer.conftest import MakeProducer


async def test_send_returns_where_the_record_was_written(
    make: MakeProducer, logs: Logs
) -> None:
    async with make() as producer:
        first = await producer.send("one", b"a", timestamp=5)
        second = await producer.send("one", b"b", timestamp=6)
    assert first == RecordMetadata("one", 0, 0, 5)
    assert second == RecordMetadata("one", 0, 1, 6)
    assert logs.values("one") == [b"a", b"b"]
