"""What `kafkaio.Admin` tells is what Java's Admin tells of the same cluster."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import pytest

import kafkaio
from kafkaio.admin import (
    Admin,
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    GroupDescription,
    GroupState,
)
from kafkaio.errors import BrokerError
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import TopicPartition
from tests.integration.groups import share_joined
from tests.support.java import Toolbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("4.3"),
]

PROGRAMS = Path(__file__).parents[1] / "java" / "admin"
PROGRAM = PROGRAMS / "Describe.java"
SHARE_PROGRAM = PROGRAMS / "DescribeShareGroups.java"
SOURCES = {
    ConfigSource.TOPIC: "DYNAMIC_TOPIC_CONFIG",
    ConfigSource.BROKER: "DYNAMIC_BROKER_CONFIG",
    ConfigSource.BROKER_DEFAULT: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    ConfigSource.STATIC: "STATIC_BROKER_CONFIG",
    ConfigSource.DEFAULT: "DEFAULT_CONFIG",
}


def fact(*parts: object) -> str:
    return "\t".join(text(part) for part in parts)


def text(part: object) -> str:
    if part is None:
        return "null"
    if isinstance(part, bool):
        return str(part).lower()
    if isinstance(part, tuple | list):
        return ";".join(map(str, part))
    return str(part)


def sorted_partitions(partitions: Iterable[TopicPartition]) -> list[str]:
    return sorted(f"{tp.topic}-{tp.partition}" for tp in partitions)


def java_id(topic: kafkaio.TopicListing | kafkaio.TopicDescription) -> str:
    """The id of a topic as Java prints it."""
    assert topic.topic_id is not None
    return base64.urlsafe_b64encode(topic.topic_id.bytes).decode().rstrip("=")


async def topics(admin: Admin, name: str) -> list[str]:
    facts = [
        fact("listed", it.name, java_id(it), it.is_internal)
        for it in (await admin.list_topics(internal=True)).values()
    ]
    described = await admin.describe_topics([name], include_authorized_operations=True)
    topic = described[name]
    operations = sorted(topic.authorized_operations or ())
    facts.append(fact("topic", name, java_id(topic), topic.is_internal, operations))
    facts += [
        fact(
            *("partition", it.partition, it.leader, it.replicas, it.isr),
            *(it.elr, it.last_known_elr),
        )
        for it in topic.partitions
    ]
    return facts


async def configs(admin: Admin, resource: ConfigResource) -> list[str]:
    described = await admin.describe_configs([resource], include_synonyms=True)
    return [
        fact(
            *("config", resource.name, it.name, it.value, SOURCES[it.source]),
            *(it.is_read_only, it.is_sensitive, it.type.name),
            [f"{s.name}={text(s.value)}@{SOURCES[s.source]}" for s in it.synonyms],
        )
        for it in described[resource].values()
    ]


async def groups(admin: Admin, described: GroupDescription) -> list[str]:
    facts = [
        fact("group", it.group_id, it.type.capitalize(), it.protocol_type, it.state)
        for it in (await admin.list_groups()).values()
    ]
    facts.append(
        fact(
            *("described", described.group_id, described.type.capitalize()),
            *(described.state, described.assignor, described.coordinator),
            *(described.group_epoch, described.assignment_epoch),
        )
    )
    facts += [
        fact(
            *("member", it.member_id, it.instance_id, it.client_id, it.host),
            sorted_partitions(it.assignment),
            None
            if it.target_assignment is None
            else sorted_partitions(it.target_assignment),
            *(it.member_epoch, it.is_classic),
        )
        for it in described.members
    ]
    return facts


async def offsets(admin: Admin, topic: str, group: str) -> list[str]:
    committed = (await admin.list_consumer_group_offsets([group]))[group]
    facts = [
        fact(
            *("committed", f"{tp.topic}-{tp.partition}"),
            *(it.offset, it.metadata, it.leader_epoch),
        )
        for tp, it in committed.items()
        if it is not None
    ]
    tp = TopicPartition(topic, 0)
    for kind, place in (
        ("EarliestSpec", "earliest"),
        ("LatestSpec", "latest"),
        ("MaxTimestampSpec", "max_timestamp"),
        ("TimestampSpec", 0),
        ("TimestampSpec", 2**63 - 1),
    ):
        found = (await admin.list_offsets({tp: place}))[tp]  # type: ignore[dict-item]
        pair = (-1, -1) if found is None else (found.offset, found.timestamp)
        facts.append(fact("offset", kind, *pair))
    return facts


async def directories(admin: Admin, topic: str) -> list[str]:
    facts = []
    for node, found in (await admin.describe_log_dirs()).items():
        for path, it in found.items():
            size = -1 if it.total_bytes is None else it.total_bytes
            facts.append(
                fact("directory", node, path, it.error is None, size, it.is_cordoned)
            )
            facts += [
                fact(
                    *("replica", node, f"{tp.topic}-{tp.partition}", replica.size),
                    *(replica.offset_lag, replica.is_future),
                )
                for tp, replica in it.replicas.items()
                if tp.topic == topic
            ]
    return facts


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_it_tells_what_javas_tells(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory, protocol: str
) -> None:
    topic, group = cluster_topic(partitions=3), f"java-{uuid4().hex[:8]}"
    servers = real_kafka_cluster.bootstrap_servers
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    async with (
        kafkaio.Client(servers) as client,
        Admin(client) as admin,
        kafkaio.Producer(client) as producer,
        kafkaio.Consumer(
            client,
            topics=[topic],
            group_id=group,
            auto_offset_reset="earliest",
            group_protocol=protocol,  # type: ignore[arg-type]  # one of two
        ) as consumer,
    ):
        await producer.send_many(topic, [b"x"] * 100)
        changes = [ConfigChange("retention.ms", "3600000")]
        await admin.incremental_alter_configs({resource: changes})
        count = 0
        while count < 100:
            count += len((await consumer.poll()).records)
        await consumer.commit()
        while True:
            described = (await admin.describe_consumer_groups([group]))[group]
            if described.state is GroupState.STABLE:
                break
        broker = ConfigResource(
            ConfigResourceType.BROKER, str(min(client.cluster.brokers))
        )
        ours = [
            *await topics(admin, topic),
            *await configs(admin, resource),
            *await configs(admin, broker),
            *await groups(admin, described),
            *await offsets(admin, topic, group),
            *await directories(admin, topic),
        ]
        program = Toolbox(real_kafka_cluster.options.release).program(PROGRAM)
        output = await program.run(servers, topic, group, broker.name)
        assert output.returncode == 0, output.stderr
        java = output.lines
    assert sorted(set(ours) - set(java)) == sorted(set(java) - set(ours)) == []
    assert len(ours) == len(java)


# ---- share groups --------------------------------------------------------------------


async def share_groups(admin: Admin, names: list[str]) -> list[str]:
    facts = [
        fact("group", it.group_id, it.type.capitalize(), it.protocol_type, it.state)
        for it in (await admin.list_groups(types=["share"])).values()
    ]
    described = await admin.describe_share_groups(
        names, include_authorized_operations=True
    )
    for group in described.values():
        facts.append(
            fact(
                *("described", group.group_id, group.state, group.coordinator),
                *(group.group_epoch, group.assignment_epoch),
                sorted(group.authorized_operations or ()),
            )
        )
        facts += [
            fact(
                *("member", it.member_id, it.client_id, it.host, it.member_epoch),
                sorted_partitions(it.assignment),
            )
            for it in group.members
        ]
    facts += [
        fact(
            *("offset", name, f"{tp.topic}-{tp.partition}"),
            *((it.start_offset, it.leader_epoch, it.lag) if it else [None] * 3),
        )
        for name, offsets in (await admin.list_share_group_offsets(names)).items()
        for tp, it in offsets.items()
    ]
    return facts


async def share_refusals(admin: Admin, topic: str, busy: str, idle: str) -> list[str]:
    there, missing = TopicPartition(topic, 0), TopicPartition("no-such-topic", 0)
    facts = []
    for what, group, call in (
        ("describe", "no", admin.describe_share_groups(["no"])),
        ("delete", busy, admin.delete_share_groups([busy])),
        ("delete", "no", admin.delete_share_groups(["no"])),
        ("alter", busy, admin.alter_share_group_offsets(busy, {there: 0})),
        ("alter", idle, admin.alter_share_group_offsets(idle, {missing: 0})),
        ("forget", busy, admin.delete_share_group_offsets(busy, [topic])),
        ("forget", idle, admin.delete_share_group_offsets(idle, ["no-such-topic"])),
        ("forget", "no", admin.delete_share_group_offsets("no", [topic])),
    ):
        with pytest.raises(BrokerError) as caught:
            await call
        facts.append(fact("refused", what, group, int(caught.value.code)))
    return facts


@pytest.mark.not_embedded("it has no share groups")
async def test_it_tells_of_share_groups_what_javas_tells(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=3)
    busy, idle = f"busy-{uuid4().hex[:8]}", f"idle-{uuid4().hex[:8]}"
    tps = [TopicPartition(topic, number) for number in range(3)]
    servers = real_kafka_cluster.bootstrap_servers
    async with (
        kafkaio.Client(servers) as client,
        Admin(client) as admin,
        kafkaio.Producer(client) as producer,
    ):
        for tp in tps:
            for _ in range(10):
                await producer.send(topic, b"x", partition=tp.partition)
        # The member stays although nobody sends heartbeats while Java is asked.
        resource = ConfigResource(ConfigResourceType.GROUP, busy)
        changes = [ConfigChange("share.session.timeout.ms", "45000")]
        await admin.incremental_alter_configs({resource: changes})
        await share_joined(client, busy, str(uuid4()), topic)
        await admin.alter_share_group_offsets(
            idle, {tp: 3 * tp.partition for tp in tps}
        )
        while True:  # the group's own topic learns of it a moment later
            offsets = (await admin.list_share_group_offsets([idle]))[idle]
            if len(offsets) == len(tps):
                break
        ours = [
            *await share_groups(admin, [busy, idle]),
            *await share_refusals(admin, topic, busy, idle),
        ]
        program = Toolbox(real_kafka_cluster.options.release).program(SHARE_PROGRAM)
        output = await program.run(servers, topic, busy, idle)
        assert output.returncode == 0, output.stderr
    java = output.lines
    assert sorted(set(ours) - set(java)) == sorted(set(java) - set(ours)) == []
    assert len(ours) == len(java)
    kinds = {line.split("\t")[0] for line in ours}
    assert kinds == {"group", "described", "member", "offset", "refused"}
