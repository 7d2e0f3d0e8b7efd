"""Topics by `kafkaio.Admin`, on real brokers and on the embedded one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

import kafkaio
from kafkaio.admin import (
    Admin,
    NewTopic,
    settled,
)
from kafkaio.errors import (
    AdminErrors,
    BrokerError,
    InvalidTopic,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from kafkaio.protocol._error_codes import ErrorCode as E
from tests.support.kafka import Kafka
from tests.support.raw_transactions import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
async def admin(real_kafka_cluster: Kafka) -> AsyncIterator[Admin]:
    async with Admin(real_kafka_cluster.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def name() -> str:
    return f"admin-{uuid4().hex[:12]}"


def codes(errors: AdminErrors) -> dict[object, int]:
    return {
        each.item: each.code
        for each in errors.exceptions
        if isinstance(each, BrokerError)
    }


async def test_a_topic_from_its_creation_to_its_end(admin: Admin, name: str) -> None:
    created = await admin.create_topics(
        [NewTopic(name, 6, 3, configs={"retention.ms": "60000"})]
    )
    # It can be used at once: each leader is asked, and none says that it is not.
    places = [kafkaio.TopicPartition(name, number) for number in range(6)]
    async with kafkaio.Client.from_config(admin.config) as client:
        ends = await client.offsets(dict.fromkeys(places, "latest"))
    assert [end and end.offset for end in ends.values()] == [0] * 6

    described = (await admin.describe_topics([name]))[name]
    assert described.name == name
    assert described.is_internal is False
    assert [it.partition for it in described.partitions] == list(range(6))
    assert {len(it.replicas) for it in described.partitions} == {3}
    assert all(it.leader in it.isr for it in described.partitions)
    assert described.authorized_operations is None
    listing = (await admin.list_topics())[name]
    assert (listing.partitions, listing.is_internal) == (6, False)
    assert listing.topic_id == described.topic_id
    assert created[name].topic_id == described.topic_id  # None before Kafka 2.8
    if (configs := created[name].configs) is not None:  # Kafka 2.4
        assert created[name].partitions == 6
        assert created[name].replication_factor == 3
        assert configs["retention.ms"].value == "60000"
        assert configs["retention.ms"].source == "topic"
    assert await admin.delete_topics([name]) == {name: None}
    while True:  # brokers learn of it a moment later
        left = (await settled(admin.describe_topics([name]))).failed.get(name)
        if isinstance(left, UnknownTopicOrPartition):
            break
    assert left.item == name


@pytest.mark.kafka_versions("2.8", "3.9", "newest")  # 2.1 waits for a partition 1
async def test_each_topic_is_created_for_itself(admin: Admin, name: str) -> None:
    wanted = [
        NewTopic(f"{name}-0", 1, 1),
        NewTopic(f"{name}-1", 0, 1),
        NewTopic(f"{name}-2", 1, 99),
        NewTopic(f"{name}-3", 1, 1, configs={"no.such.config": "1"}),
        NewTopic(f"{name}-4", assignments={0: [0], 2: [0]}),
        NewTopic(f"{name}-5", 2, 1),
    ]
    with pytest.raises(AdminErrors, match="create topics: 4 of 6 failed") as caught:
        await admin.create_topics(wanted)
    assert list(caught.value.results) == [f"{name}-0", f"{name}-5"]
    failed = codes(caught.value)
    assert failed[f"{name}-1"] == E.INVALID_PARTITIONS
    assert failed[f"{name}-2"] == E.INVALID_REPLICATION_FACTOR
    assert failed[f"{name}-3"] == E.INVALID_CONFIG
    assert failed[f"{name}-4"] == E.INVALID_REPLICA_ASSIGNMENT
    again = await settled(admin.create_topics([wanted[5], wanted[0]]))
    assert list(again.failed) == [f"{name}-5", f"{name}-0"]
    assert all(
        isinstance(error, BrokerError) and error.code == E.TOPIC_ALREADY_EXISTS
        for error in again.failed.values()
    )
    with pytest.raises(UnknownTopicOrPartition) as alone:
        await admin.delete_topics([f"{name}-0", f"{name}-x", f"{name}-5"])
    assert alone.value.item == f"{name}-x"
    assert dict(alone.value.results) == {f"{name}-0": None, f"{name}-5": None}


async def test_a_check_creates_nothing(admin: Admin, name: str) -> None:
    checked = await admin.create_topics([NewTopic(name, 3, 1)], validate_only=True)
    assert checked[name].topic_id is None
    assert checked[name].partitions in {3, None}
    assert name not in await admin.list_topics()


async def test_replicas_by_hand(admin: Admin, name: str) -> None:
    nodes = sorted(admin._cluster.view.brokers)  # test-only look inside
    assigned = {0: nodes[:2], 1: nodes[1:3]}
    await admin.create_topics([NewTopic(name, assignments=assigned)])
    described = (await admin.describe_topics([name]))[name]
    assert [list(it.replicas) for it in described.partitions] == [*assigned.values()]
    await admin.delete_topics([name])


@pytest.mark.kafka_versions("3.9", "newest")
async def test_defaults_and_ids(admin: Admin, name: str) -> None:
    await admin.create_topics([NewTopic(name)])
    described = await admin.describe_topics([name], include_authorized_operations=True)
    topic_id = described[name].topic_id
    assert topic_id is not None
    operations = described[name].authorized_operations
    assert operations is not None
    assert (await admin.describe_topics([topic_id]))[topic_id].name == name
    assert {"READ", "WRITE", "DELETE", "ALTER_CONFIGS"} <= operations
    unknown = uuid4()
    found = await settled(admin.describe_topics([unknown, topic_id]))
    assert list(found.found) == [topic_id]
    assert isinstance(found.failed[unknown], UnknownTopicOrPartition)
    with pytest.raises(UnknownTopicOrPartition) as caught:
        await admin.delete_topics([unknown, topic_id])
    assert caught.value.item == unknown
    assert dict(caught.value.results) == {topic_id: None}


@pytest.mark.kafka_versions("2.1")
@pytest.mark.not_embedded("is about what an old broker cannot do")
async def test_what_old_brokers_cannot_do(admin: Admin, name: str) -> None:
    with pytest.raises(UnsupportedVersion, match=r"needs Kafka 2\.4.*: partitions:"):
        await admin.create_topics([NewTopic(name)])
    with pytest.raises(UnsupportedVersion, match=r"needs Kafka 3\.1"):
        await admin.describe_topics([UUID(int=7)])
    with pytest.raises(UnsupportedVersion, match=r"needs Kafka 2\.8"):
        await admin.delete_topics([UUID(int=7)])


@pytest.mark.kafka_versions("3.9", "newest")
async def test_thousands_of_partitions_come_in_pages(admin: Admin, name: str) -> None:
    names = [f"{name}-{number}" for number in range(3)]
    await admin.create_topics([NewTopic(each, 700, 1) for each in names])
    described = await settled(
        admin.describe_topics([names[2], names[0], "no-such", names[1]])
    )
    assert list(described.found) == [names[2], names[0], names[1]]
    for topic in described.found.values():
        assert [it.partition for it in topic.partitions] == list(range(700))
    assert isinstance(described.failed["no-such"], UnknownTopicOrPartition)
    await admin.delete_topics(names)


async def test_names_that_brokers_refuse_are_not_sent(admin: Admin) -> None:
    for name in (".", "..", "a/b", "ö", "x" * 250):
        with pytest.raises(InvalidTopic):
            await admin.create_topics([NewTopic(name, 1, 1)])
    for empty in (
        await admin.create_topics([]),
        await admin.delete_topics([]),
        await admin.describe_topics([]),
    ):
        assert empty == {}


@pytest.mark.not_embedded("it elects no leaders among replicas that are not in sync")
@pytest.mark.kafka_versions("newest")
async def test_eligible_leaders_are_told() -> None:
    """A replica that is down is none in sync, and may lead without a loss (KIP-966)."""
    async with Kafka(3) as kafka, Admin(kafka.bootstrap_servers) as admin:
        strict = {"min.insync.replicas": "3"}
        await admin.create_topics(
            [NewTopic("strict", 1, 3, configs=strict), NewTopic("lax", 1, 1)]
        )
        whole = (await admin.describe_topics(["strict"]))["strict"].partitions[0]
        assert (len(whole.isr), whole.elr) == (3, ())
        down = next(node for node in kafka.node_ids if node != whole.leader)
        await kafka.stop(down)

        async def is_told() -> bool:
            found = await admin.describe_topics(["strict", "lax"])
            return found["strict"].partitions[0].elr == (down,)

        await until(is_told)
        (it,) = (await admin.describe_topics(["strict"]))["strict"].partitions
    assert down not in it.isr
    assert len(it.isr) == 2
