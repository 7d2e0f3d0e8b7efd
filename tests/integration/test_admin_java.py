"""What `kafkaio.Admin` tells is what Java's Admin tells of the same cluster."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
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
    GroupMember,
    GroupState,
    GroupType,
    NewTopic,
    ProducerIdAndEpoch,
    StreamsGroupDescription,
    TransactionState,
    settled,
)
from kafkaio.errors import AdminErrors, BrokerError
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages import streams_group_heartbeat as streams_api
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.pytest_plugin import TopicFactory
from kafkaio.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from tests.integration.groups import StreamsMember, share_joined
from tests.support.java import Toolbox
from tests.support.raw_transactions import NEW, Cluster, RawProducer, loaded, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("newest"),
]

PROGRAMS = Path(__file__).parents[1] / "java" / "admin"
PROGRAM = PROGRAMS / "Describe.java"
SHARE_PROGRAM = PROGRAMS / "facts", "DescribeShareGroups"
STREAMS_PROGRAM = PROGRAMS / "facts", "DescribeStreamsGroups"
TRANSACTIONS_PROGRAM = PROGRAMS / "facts", "DescribeTransactions"
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


async def refused(call: Awaitable[object], *what: str) -> str:
    """Tell with which code a call is refused, by one broker or by all alike."""
    with pytest.raises((BrokerError, AdminErrors)) as caught:
        await call
    errors: list[Exception] = [caught.value]
    if isinstance(caught.value, AdminErrors):
        errors = list(caught.value.exceptions)
    (code,) = {int(each.code) for each in errors if isinstance(each, BrokerError)}
    return fact("refused", *what, code)


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
    described = await admin.describe_configs(
        [resource], include_synonyms=True, include_documentation=True
    )
    return [
        fact(
            *("config", resource.name, it.name, it.value, SOURCES[it.source]),
            *(it.is_read_only, it.is_sensitive, it.source is ConfigSource.DEFAULT),
            *(it.type.name, words(it.documentation)),
            [f"{s.name}={text(s.value)}@{SOURCES[s.source]}" for s in it.synonyms],
        )
        for it in described[resource].values()
    ]


def words(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())


def member(what: str, it: GroupMember) -> str:
    return fact(
        *(what, it.member_id, it.instance_id, it.rack, it.client_id, it.host),
        sorted_partitions(it.assignment),
        None
        if it.target_assignment is None
        else sorted_partitions(it.target_assignment),
        *(it.member_epoch, it.is_classic),
    )


async def groups(admin: Admin, described: GroupDescription) -> list[str]:
    facts = [
        fact(
            *("group", it.group_id, it.type.capitalize(), it.protocol_type, it.state),
            it.type is GroupType.CLASSIC and not it.protocol_type,
        )
        for it in (await admin.list_groups()).values()
    ]
    facts.append(
        fact(
            *("described", described.group_id, described.type.capitalize()),
            *(described.state, described.assignor, described.coordinator),
            *(described.group_epoch, described.assignment_epoch),
            not described.protocol_type,
            sorted(described.authorized_operations or ()),
        )
    )
    facts += [member("member", it) for it in described.members]
    name = described.group_id
    found = await settled(admin.describe_classic_groups([name]))
    for error in found.failed.values():
        assert isinstance(error, BrokerError)
        return [*facts, fact("classic", name, int(error.code))]
    classic = found.found[name]
    facts.append(
        fact(
            *("classic", name, classic.protocol_type, classic.assignor),
            *(not classic.protocol_type, classic.state, classic.coordinator),
        )
    )
    return facts + [member("classic member", it) for it in classic.members]


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
        it = found or OffsetAndTimestamp(-1, -1)
        facts.append(fact("offset", kind, it.offset, it.timestamp, it.leader_epoch))
    return facts


async def directories(admin: Admin, topic: str) -> list[str]:
    facts = []
    for node, found in (await admin.describe_log_dirs()).items():
        for path, it in found.items():
            size = -1 if it.total_bytes is None else it.total_bytes
            facts.append(
                fact(
                    *("directory", node, path, it.error is None, size),
                    *(it.usable_bytes is not None, it.is_cordoned),
                )
            )
            facts += [
                fact(
                    *("replica", node, f"{tp.topic}-{tp.partition}", replica.size),
                    *(replica.offset_lag, replica.is_future),
                )
                for tp, replica in it.replicas.items()
                if tp.topic == topic
            ]
    replicas = [(TopicPartition(topic, 0), node) for node in await nodes(admin)]
    for (_, node), place in (await admin.describe_replica_log_dirs(replicas)).items():
        lags = (place.current_offset_lag, place.future_offset_lag)
        current, future = (-1 if lag is None else lag for lag in lags)
        facts.append(fact("placed", node, place.current, current, place.future, future))
    return facts


async def nodes(admin: Admin) -> list[int]:
    return [it.node_id for it in (await admin.describe_cluster()).brokers]


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
            found = await admin.describe_consumer_groups(
                [group], include_authorized_operations=True
            )
            described = found[group]
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
            *[
                fact("resource", it.type.name, it.name)
                for it in await admin.list_config_resources()
            ],
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
                *("member", it.member_id, it.rack, it.client_id, it.host),
                *(it.member_epoch,),
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
    return [
        await refused(call, what, group)
        for what, group, call in (
            ("describe", "no", admin.describe_share_groups(["no"])),
            ("delete", busy, admin.delete_share_groups([busy])),
            ("delete", "no", admin.delete_share_groups(["no"])),
            ("alter", busy, admin.alter_share_group_offsets(busy, {there: 0})),
            ("alter", idle, admin.alter_share_group_offsets(idle, {missing: 0})),
            ("forget", busy, admin.delete_share_group_offsets(busy, [topic])),
            ("forget", idle, admin.delete_share_group_offsets(idle, ["no-such-topic"])),
            ("forget", "no", admin.delete_share_group_offsets("no", [topic])),
        )
    ]


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
        program = Toolbox(real_kafka_cluster.options.release).program(*SHARE_PROGRAM)
        output = await program.run(servers, topic, busy, idle)
        assert output.returncode == 0, output.stderr
    java = output.lines
    assert sorted(set(ours) - set(java)) == sorted(set(java) - set(ours)) == []
    assert len(ours) == len(java)
    kinds = {line.split("\t")[0] for line in ours}
    assert kinds == {"group", "described", "member", "offset", "refused"}


# ---- streams groups ------------------------------------------------------------------


def pairs(found: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(found.items())]


def subtopologies(group: StreamsGroupDescription) -> Iterator[str]:
    for it in group.subtopologies:
        place = (group.group_id, it.subtopology_id)
        yield fact("subtopology", *place, it.source_topics, it.repartition_sink_topics)
        for what, topics in (
            ("changelog", it.state_changelog_topics),
            ("repartition", it.repartition_source_topics),
        ):
            for name, topic in topics.items():
                yield fact(
                    *(what, *place, name, topic.partitions),
                    *(topic.replication_factor, pairs(topic.configs)),
                )


def streams_members(group: StreamsGroupDescription) -> Iterator[str]:
    for it in group.members:
        yield fact(
            *("member", group.group_id, it.member_id, it.instance_id, it.client_id),
            *(it.host, it.rack, it.member_epoch, it.topology_epoch, it.process_id),
            None if it.endpoint is None else f"{it.endpoint[0]}:{it.endpoint[1]}",
            *(pairs(it.client_tags), it.is_classic),
        )
        for what, tasks in (
            ("assigned", it.assignment),
            ("target", it.target_assignment),
        ):
            for kind, by_subtopology in (
                ("active", tasks.active),
                ("standby", tasks.standby),
                ("warmup", tasks.warmup),
            ):
                for subtopology, numbers in by_subtopology.items():
                    yield fact(what, it.member_id, kind, subtopology, numbers)
        for what, offsets in (
            ("task offset", it.task_offsets),
            ("task end", it.task_end_offsets),
        ):
            for task, offset in offsets.items():
                yield fact(what, it.member_id, *task, offset)


async def streams_groups(admin: Admin, names: list[str]) -> list[str]:
    facts = [
        fact(
            *("group", it.group_id, it.type.capitalize(), it.protocol_type, it.state),
            not it.protocol_type,
        )
        for it in (await admin.list_groups(types=["streams"])).values()
    ]
    described = await admin.describe_streams_groups(
        names, include_authorized_operations=True
    )
    for group in described.values():
        facts.append(
            fact(
                *("described", group.group_id, group.state, group.coordinator),
                *(group.group_epoch, group.assignment_epoch, group.topology_epoch),
                sorted(group.authorized_operations or ()),
            )
        )
        facts += subtopologies(group)
        facts += streams_members(group)
    return facts


async def streams_offsets(
    admin: Admin, what: str, names: list[str], tps: list[TopicPartition]
) -> list[str]:
    return [
        fact(
            *(kind, name, f"{tp.topic}-{tp.partition}"),
            *((it.offset, it.metadata, it.leader_epoch) if it else [None] * 3),
        )
        for kind, asked in (
            (what, dict.fromkeys(names)),
            (f"{what} of these", dict.fromkeys(names, tps)),
        )
        for name, found in (await admin.list_streams_group_offsets(asked)).items()
        for tp, it in found.items()
    ]


async def streams_refusals(admin: Admin, topic: str, busy: str, idle: str) -> list[str]:
    there, missing = TopicPartition(topic, 0), TopicPartition("no-such-topic", 0)
    return [
        await refused(call, what, group)
        for what, group, call in (
            ("describe", "no", admin.describe_streams_groups(["no"])),
            ("delete", busy, admin.delete_streams_groups([busy])),
            ("delete", "no", admin.delete_streams_groups(["no"])),
            ("alter", busy, admin.alter_streams_group_offsets(busy, {there: 0})),
            ("forget", busy, admin.delete_streams_group_offsets(busy, [there])),
            ("forget", idle, admin.delete_streams_group_offsets(idle, [missing])),
            ("forget", "no", admin.delete_streams_group_offsets("no", [there])),
        )
    ]


def topology(topic: str, group: str) -> streams_api.Topology:
    """Two subtopologies with a topic between them; the second one keeps state."""
    between = streams_api.TopicInfo(name=f"{group}-between-repartition", partitions=2)
    state = streams_api.TopicInfo(
        name=f"{group}-state-changelog",
        replication_factor=1,
        topic_configs=[
            streams_api.KeyValue(key="retention.ms", value="86400000"),
            streams_api.KeyValue(key="cleanup.policy", value="compact,delete"),
        ],
    )
    return streams_api.Topology(
        epoch=3,
        subtopologies=[
            streams_api.Subtopology(
                subtopology_id="first",
                source_topics=[topic],
                repartition_sink_topics=[between.name],
            ),
            streams_api.Subtopology(
                subtopology_id="second",
                repartition_source_topics=[between],
                state_changelog_topics=[state],
            ),
        ],
    )


async def streams_joined(
    client: kafkaio.Client, admin: Admin, group: str, topic: str
) -> list[StreamsMember]:
    """Two members of a streams group that keep each other's state."""
    resource = ConfigResource(ConfigResourceType.GROUP, group)
    changes = [ConfigChange("streams.num.standby.replicas", "1")]
    await admin.incremental_alter_configs({resource: changes})
    members = [StreamsMember(client, group) for _ in range(2)]
    for number, member in enumerate(members):
        await member.join(
            topology=topology(topic, group),
            process_id=f"process-{number}",
            rack_id=f"rack-{number}",
            rebalance_timeout_ms=10_000,
            # The second one answers no queries.
            user_endpoint=streams_api.StreamsGroupHeartbeatRequestEndpoint(
                host="here", port=80
            )
            if not number
            else None,
            client_tags=[
                streams_api.KeyValue(key="zone", value=str(number)),
                streams_api.KeyValue(key="cluster", value="x"),
            ],
        )
    while True:
        for member in members:
            await member.beat()
        found = (await admin.describe_streams_groups([group]))[group]
        if found.state is GroupState.STABLE and all(
            it.assignment == it.target_assignment and it.assignment.standby
            for it in found.members
        ):
            return members


@pytest.mark.not_embedded("it has no streams groups")
async def test_it_tells_of_streams_groups_what_javas_tells(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    topic = cluster_topic(partitions=3)
    busy, idle = f"busy-{uuid4().hex[:8]}", f"idle-{uuid4().hex[:8]}"
    tps = [TopicPartition(topic, number) for number in range(3)]
    servers = real_kafka_cluster.bootstrap_servers
    async with kafkaio.Client(servers) as client, Admin(client) as admin:
        for member in await streams_joined(client, admin, idle, topic):
            await member.leave()
        await admin.alter_streams_group_offsets(
            idle, {tps[0]: OffsetAndMetadata(3, "by us", 0), tps[1]: 4}
        )
        members = await streams_joined(client, admin, busy, topic)
        ours = [
            *await streams_groups(admin, [busy, idle]),
            *await streams_offsets(admin, "offset", [busy, idle], tps),
            *await streams_refusals(admin, topic, busy, idle),
        ]
        program = Toolbox(real_kafka_cluster.options.release).program(*STREAMS_PROGRAM)
        output = await program.run(servers, topic, busy, idle)
        assert output.returncode == 0, output.stderr
        ours += await streams_offsets(admin, "changed", [idle], tps)
        for member in members:
            await member.leave()
        assert await admin.delete_streams_groups([busy, idle]) == {
            busy: None,
            idle: None,
        }
    java = output.lines
    assert sorted(set(ours) - set(java)) == sorted(set(java) - set(ours)) == []
    assert len(ours) == len(java)
    kinds = {line.split("\t")[0] for line in ours}
    assert kinds == {
        *("group", "described", "subtopology", "changelog", "repartition", "member"),
        *("assigned", "target", "offset", "offset of these", "refused"),
        *("changed", "changed of these"),
    }


# ---- transactions --------------------------------------------------------------------


async def listings(admin: Admin, prefix: str, producer_id: int) -> list[str]:
    ended = [TransactionState.COMPLETE_ABORT, TransactionState.COMPLETE_COMMIT]
    filters: dict[str, dict[str, Any]] = {
        "all": {},
        "open": {"states": ["Ongoing"]},
        "ended": {"states": ended},
        "producer": {"producer_ids": [producer_id]},
        "any age": {"duration_ms": 0},
        "an hour": {"duration_ms": 3_600_000},
        "pattern": {"pattern": ".*-aborted"},
        "part": {"pattern": "aborted"},
        "several": {
            "states": ["Ongoing"],
            "duration_ms": 0,
            "pattern": f"{prefix}.*",
        },
        "none": {"states": ended, "producer_ids": [producer_id]},
    }
    return [
        fact(
            *("listed", name, it.coordinator, it.transactional_id),
            *(it.producer_id, it.state),
        )
        for name, options in filters.items()
        for it in await admin.list_transactions(**options)
        if it.transactional_id.startswith(prefix)
    ]


async def descriptions(admin: Admin, names: list[str]) -> list[str]:
    facts = []
    for it in (await admin.describe_transactions(names)).values():
        facts.append(
            fact(
                *("described", it.transactional_id, it.coordinator, it.state),
                *(it.producer_id, it.producer_epoch, it.timeout_ms),
                sorted_partitions(it.partitions),
            )
        )
        if it.start_time_ms is not None:
            facts.append(fact("began", it.transactional_id, it.start_time_ms))
    return facts


async def producer_states(
    admin: Admin, tps: list[TopicPartition], broker: int | None = None
) -> list[str]:
    what = "producer" if broker is None else f"at {broker}"
    return [
        fact(
            *(what, f"{tp.topic}-{tp.partition}", it.producer_id, it.producer_epoch),
            *(it.last_sequence, it.last_timestamp, it.coordinator_epoch),
            it.transaction_start_offset,
        )
        for tp, found in (await admin.describe_producers(tps, broker=broker)).items()
        for it in found
    ]


async def transaction_refusals(admin: Admin, elsewhere: TopicPartition) -> list[str]:
    return [
        await refused(call, what)
        for what, call in (
            ("producers", admin.describe_producers([elsewhere], broker=3)),
            ("describe", admin.describe_transactions(["no"])),
            ("pattern", admin.list_transactions(pattern="(")),
        )
    ]


class Transactions:
    """Transactional ids with a prefix: what they have done is in the rest of the name.

    Attributes:
        prefix: all names begin so.
        names: the names.
    """

    def __init__(self, cluster: Cluster, tps: list[TopicPartition]) -> None:
        self._cluster = cluster
        self._tps = tps
        self.prefix = f"txn-{uuid4().hex[:8]}"
        self.names: list[str] = []

    async def begin(self, rest: str, *, timeout_ms: int = 60_000) -> RawProducer:
        """Open a transaction with records and an offset."""
        name = f"{self.prefix}-{rest}"
        raw = RawProducer(self._cluster, name, NEW, timeout_ms)
        await raw.start()
        for tp in self._tps:
            await raw.send(tp, 0, [b"x"] * (tp.partition + 1))
        group = f"{name}-group"
        await loaded(self._cluster, [group])
        assert await raw.commit_offsets(group, {self._tps[0]: 1}) == [E.NONE]
        self.names.append(name)
        return raw

    async def end(self, rest: str, *, commit: bool) -> None:
        """Open one, and end it."""
        raw = await self.begin(rest)
        await raw.finish(commit=commit)

    async def start(self, rest: str) -> None:
        """Get a producer id, and do nothing else."""
        name = f"{self.prefix}-{rest}"
        await RawProducer(self._cluster, name, NEW).start()
        self.names.append(name)


def fenced(lines: Iterable[str]) -> dict[str, ProducerIdAndEpoch]:
    """What Java's Admin tells of fenced producers."""
    found = [line.split("\t") for line in lines if line.startswith("fenced")]
    return {
        name: ProducerIdAndEpoch(int(producer_id), int(epoch))
        for _, name, producer_id, epoch in found
    }


async def caught_up(
    admin: Admin, tps: list[TopicPartition], brokers: list[int]
) -> None:
    """Wait until all replicas know the same producers."""

    async def are_equal() -> bool:
        leaders = await admin.describe_producers(tps)
        found = [await admin.describe_producers(tps, broker=it) for it in brokers]
        return all(each == leaders for each in found)

    await until(are_equal)


async def ways(admin: Admin, names: list[str]) -> list[tuple[object, ...]]:
    """What transactional ids have come to, but for what differs from id to id."""
    found = await admin.describe_transactions(names)
    return [(it.state, len(it.partitions), it.producer_epoch) for it in found.values()]


@pytest.mark.not_embedded("its followers keep nothing of producers")
async def test_it_tells_of_transactions_what_javas_tells(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    topic, elsewhere = cluster_topic(partitions=3), f"elsewhere-{uuid4().hex[:8]}"
    tps = [TopicPartition(topic, number) for number in range(3)]
    servers = real_kafka_cluster.bootstrap_servers
    async with kafkaio.Client(servers) as client, Admin(client) as admin:
        await admin.create_topics([NewTopic(elsewhere, assignments={0: [1]})])
        transactions = Transactions(Cluster(client), tps)
        await transactions.start("started")
        await transactions.end("committed", commit=True)
        await transactions.end("aborted", commit=False)
        raw = await transactions.begin("open", timeout_ms=50_000)
        brokers, prefix = real_kafka_cluster.node_ids, transactions.prefix
        await caught_up(admin, tps, brokers)
        ours = [
            *await listings(admin, prefix, raw.who.producer_id),
            *await descriptions(admin, transactions.names),
            *await transaction_refusals(admin, TopicPartition(elsewhere, 0)),
        ]
        for broker in (None, *brokers):
            ours += await producer_states(admin, tps, broker)
        program = Toolbox(real_kafka_cluster.options.release).program(
            *TRANSACTIONS_PROGRAM
        )
        output = await program.run(
            *("describe", servers, topic, elsewhere, prefix, str(raw.who.producer_id)),
            *transactions.names,
        )
        assert output.returncode == 0, output.stderr
        java = output.lines
        assert await raw.end(commit=False) == E.NONE
    # Java's tells when the last transaction began where none is open, too.
    more = sorted(set(java) - set(ours))
    assert [line.split("\t")[:2] for line in more] == [
        ["began", f"{prefix}-aborted"],
        ["began", f"{prefix}-committed"],
    ]
    assert sorted(set(ours) - set(java)) == []
    assert len(ours) == len(java) - len(more)
    kinds = {line.split("\t")[0] for line in ours}
    assert kinds == {
        *("listed", "described", "began", "refused"),
        *("producer", "at 1", "at 2", "at 3"),
    }


async def test_it_fences_producers_as_javas_does(
    real_kafka_cluster: Kafka, cluster_topic: TopicFactory
) -> None:
    tps = [TopicPartition(cluster_topic(partitions=1), 0)]
    servers = real_kafka_cluster.bootstrap_servers
    async with kafkaio.Client(servers) as client, Admin(client) as admin:
        by_java, by_us = (
            Transactions(Cluster(client), tps),
            Transactions(Cluster(client), tps),
        )
        opened = []
        for transactions in (by_java, by_us):
            await transactions.start("started")
            await transactions.end("committed", commit=True)
            opened.append(await transactions.begin("open"))
        assert await ways(admin, by_us.names) == await ways(admin, by_java.names)
        before = await admin.describe_transactions([*by_us.names, *by_java.names])

        program = Toolbox(real_kafka_cluster.options.release).program(
            *TRANSACTIONS_PROGRAM
        )
        unknown = [f"{by_java.prefix}-unknown", f"{by_us.prefix}-unknown"]
        output = await program.run("fence", servers, *by_java.names, unknown[0])
        assert output.returncode == 0, output.stderr
        theirs = fenced(output.lines)
        ours = await admin.fence_producers([*by_us.names, unknown[1]])
        assert [it.epoch for it in ours.values()] == [
            it.epoch for it in theirs.values()
        ]
        for name, it in before.items():
            found = (ours if name in ours else theirs)[name]
            assert found.producer_id == it.producer_id
            assert found.epoch > it.producer_epoch
        assert await ways(admin, by_us.names) == await ways(admin, by_java.names)
        for raw in opened:
            assert await raw.end(commit=True) == E.PRODUCER_FENCED
