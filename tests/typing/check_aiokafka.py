"""Programs of aiokafka, moved by their imports; checked by `mypy tests/typing`."""

import asyncio
import ssl
from collections.abc import Collection, Iterable, Mapping
from typing import assert_type

import kafkaio
from kafkaio import aiokafka
from kafkaio.aiokafka import (
    AIOKafkaClient,
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    ConsumerRecord,
    errors,
)
from kafkaio.aiokafka.abc import AbstractTokenProvider
from kafkaio.aiokafka.admin import (
    AIOKafkaAdminClient,
    NewPartitions,
    NewTopic,
    RecordsToDelete,
)
from kafkaio.aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from kafkaio.aiokafka.admin.responses import (
    CreateTopicsResponse,
    DescribedGroup,
    TopicError,
)
from kafkaio.aiokafka.cluster import ClusterMetadata
from kafkaio.aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafkaio.aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafkaio.aiokafka.helpers import create_ssl_context
from kafkaio.aiokafka.partitioner import DefaultPartitioner, murmur2
from kafkaio.aiokafka.structs import (
    BrokerMetadata,
    OffsetAndMetadata,
    RecordMetadata,
    TopicPartition,
)


class Tokens(AbstractTokenProvider):
    async def token(self) -> str:
        return "token"


class Listener(ConsumerRebalanceListener):
    """What one method is, the other need not be."""

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Partitions go."""

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Partitions come."""


class Everything(AbstractPartitionAssignor):
    name = "everything"

    @classmethod
    def assign(
        cls,
        cluster: ClusterMetadata,
        members: Mapping[str, ConsumerProtocolMemberMetadata],
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        return {}

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        return ConsumerProtocolMemberMetadata(0, list(topics), b"")

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        assert_type(assignment.partitions(), list[TopicPartition])


async def consume() -> None:
    consumer = AIOKafkaConsumer(
        "t",
        group_id="g",
        partition_assignment_strategy=(Everything,),
        value_deserializer=lambda data: data.decode(),
    )
    consumer.subscribe(pattern="t.*", listener=Listener())
    async with consumer:
        async for record in consumer:
            assert_type(record.offset, int)
            await consumer.commit({record_partition(record): record.offset + 1})
        found = await consumer.getmany(timeout_ms=100, max_records=5)
        for tp, records in found.items():
            assert_type(tp, TopicPartition)
            assert_type(records[0].topic, str)
        assert_type(consumer.assignment(), set[TopicPartition])


def record_partition(record: ConsumerRecord[bytes, str]) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


async def produce() -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=["one:9092", "two:9092"],
        acks="all",
        partitioner=DefaultPartitioner(),
        security_protocol="SASL_SSL",
        ssl_context=create_ssl_context(cafile="ca.pem"),
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Tokens(),
    )
    async with producer:
        future: asyncio.Future[RecordMetadata] = await producer.send(
            "t", b"v", key=b"k", headers=[("h", b"x")]
        )
        assert_type((await future).topic_partition, TopicPartition)
        assert_type(await producer.send_and_wait("t", b"v"), RecordMetadata)


async def administer() -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers="one")
    await admin.start()
    created = await admin.create_topics([NewTopic("t", 1, 1)], timeout_ms=5_000)
    assert_type(created, CreateTopicsResponse)
    assert_type(created.topic_errors[0], TopicError)
    assert_type(await admin.create_partitions({"t": NewPartitions(3)}) is None, bool)
    assert_type(await admin.list_topics(), list[str])
    (topic,) = await admin.describe_topics(["t"])
    assert_type(topic["partitions"][0]["replicas"], list[int])
    cluster = await admin.describe_cluster()
    assert_type(cluster["brokers"][0]["host"], str)
    (described,) = await admin.describe_configs(
        [ConfigResource(ConfigResourceType.TOPIC, "t")]
    )
    assert_type(described.resources[0].config_entries[0].config_value, str | None)
    (groups,) = await admin.describe_consumer_groups(["g"])
    assert_type(groups.groups, list[DescribedGroup])
    tp = TopicPartition("t", 0)
    offsets = await admin.list_consumer_group_offsets("g", partitions=[tp])
    assert_type(offsets, dict[TopicPartition, OffsetAndMetadata])
    assert_type(
        await admin.delete_records({tp: RecordsToDelete(5)}), dict[TopicPartition, int]
    )
    await admin.close()


async def look(client: AIOKafkaClient) -> None:
    await client.bootstrap()
    assert_type(client.cluster.brokers(), set[BrokerMetadata])
    assert_type(await client.force_metadata_update(), bool)
    assert_type(client.native, kafkaio.Client | None)
    await client.close()


def read(record: ConsumerRecord[bytes, str]) -> None:
    assert_type(record.value, str | None)
    assert_type(murmur2(record.key or b""), int)


def fail(error: errors.BrokerResponseError) -> None:
    both: kafkaio.BrokerError = error
    assert_type(both.code, int)
    assert_type(error.errno, int)
    assert_type(errors.for_code(3), type[errors.BrokerResponseError])
    aiokafka.install()


def secure() -> None:
    assert_type(create_ssl_context(), ssl.SSLContext)
    create_ssl_context("ca.pem")  # type: ignore[call-arg]
    AIOKafkaClient(bootstrap_servers=1)  # type: ignore[arg-type]
    NewTopic("t")  # type: ignore[call-arg]
