"""TLS to a real broker: with the right authority, with the wrong one, and mutual."""

import ssl

import pytest

import kafkaio
from kafkaio.testing.kafka import Kafka

pytestmark = [
    pytest.mark.kafka_versions("4.3"),
    pytest.mark.not_embedded("the embedded broker has no TLS yet"),
    pytest.mark.timeout(120),
]


async def test_tls() -> None:
    async with Kafka(tls=True) as kafka:
        name = await kafka.create_topic("secret", 1)
        trusting = kafka.certificates.client_context()
        async with kafkaio.Producer(
            kafka.bootstrap("SSL"), security_protocol="SSL", ssl_context=trusting
        ) as producer:
            assert (await producer.send(name, b"v")).offset == 0

        async with kafkaio.Consumer(
            kafka.bootstrap("SSL"),
            topics=name,
            auto_offset_reset="earliest",
            security_protocol="SSL",
            ssl_context=trusting,
        ) as consumer:
            async for record in consumer:
                assert record.value == b"v"
                break

        stranger = kafkaio.Client(
            kafka.bootstrap("SSL"),
            security_protocol="SSL",
            ssl_context=ssl.create_default_context(),
        )
        with pytest.raises(kafkaio.AuthenticationError, match="TLS handshake"):
            await stranger.start(timeout=20)
        await stranger.close()

        known = kafka.certificates.client_context("alice")
        async with kafkaio.Client(
            kafka.bootstrap("MTLS"), security_protocol="SSL", ssl_context=known
        ) as client:
            reply = await client.request(kafkaio.messages.MetadataRequest(topics=None))
            assert "secret" in {topic.name for topic in reply.topics}


async def test_plain_text_to_a_tls_port_is_explained() -> None:
    async with Kafka(tls=True) as kafka:
        client = kafkaio.Client(kafka.bootstrap("SSL"))
        with pytest.raises(kafkaio.NetworkError, match=r"127\.0\.0\.1:\d+"):
            await client.start(timeout=3)
        await client.close()
