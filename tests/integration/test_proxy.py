"""Records and administration by a proxy: the brokers advertise their own addresses."""

from __future__ import annotations

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from tests.support.proxies import ForwardProxy, proxy_server

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "http"])
async def test_all_goes_through_it(
    real_kafka: Kafka, topic: TopicFactory, scheme: str
) -> None:
    name = topic()
    kind = "http" if scheme == "http" else "socks5"
    proxy = ForwardProxy(kind, ("alice", "alice-secret"))
    async with proxy_server(proxy):
        servers, url = (
            real_kafka.bootstrap_servers,
            proxy.url(scheme, "alice:alice-secret"),
        )
        async with kafkaio.Producer(servers, proxy=url) as producer:
            for number in range(100):
                await producer.enqueue(name, b"%d" % number)
        async with kafkaio.Consumer(
            servers, topics=name, group_id=name, auto_offset_reset="earliest", proxy=url
        ) as consumer:
            values = []
            async for record in consumer:
                values.append(record.value)
                if len(values) == 100:
                    break
            await consumer.commit()
        assert sorted(values) == sorted(b"%d" % number for number in range(100))
        async with kafkaio.Admin(servers, proxy=url) as admin:
            assert name in await admin.list_topics()
    assert len(proxy.asked) > 3
