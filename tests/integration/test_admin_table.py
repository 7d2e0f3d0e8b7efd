"""Every operation of Java's Admin: which of ours it is, and what each item comes to.

The names of Java's operations are read from Kafka's jar. `CASES` has for each of ours
what succeeds, each error that an item can have, and both in one call. A case is a call
and the error codes of its items, in the order asked; 0 is a success. `DENIED` has what
each operation comes to for a user without any right.

All of them run on one broker: the embedded one with every change, a real one of each
version at night. A case says since which Kafka it comes to that, and what it comes to
before. At night they run on three brokers of the newest Kafka, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

import kafkaio
from kafkaio.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclResourceType,
    Admin,
    ConfigChange,
    ConfigChangeType,
    ConfigResource,
    ConfigResourceType,
    FeatureUpdate,
    FeatureUpgradeType,
    NewPartitions,
    NewTopic,
    QuotaEntity,
    RaftEndpoint,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    settled,
)
from kafkaio.errors import (
    BrokerError,
    KafkaError,
    RequestTimeout,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.testing import Broker
from kafkaio.testing.kafka._releases import DEFAULT_VERSION, find_release
from kafkaio.types import TopicPartition
from tests.integration.groups import share_heartbeat
from tests.support.java import Toolbox
from tests.support.kafka import Kafka
from tests.support.raw_transactions import OLD, Cluster, RawProducer
from tests.support.retries import Retries

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.asyncio(loop_scope="module"),
]

PROGRAM = Path(__file__).parents[1] / "java" / "admin" / "Operations.java"
POLICY = Path(__file__).parents[1] / "java" / "admin" / "Policy.java"
#: Names that are not the snake case of Java's.
OTHERS: Final = {
    "create": "from_properties",
    "listConsumerGroups": "list_groups",
    "listClientMetricsResources": "list_config_resources",
    "metrics": "statistics",
}
#: What is about the client's own telemetry; `Admin` has no part in these.
TELEMETRY: Final = frozenset(
    {
        "clientInstanceId",
        "registerMetricForSubscription",
        "unregisterMetricFromSubscription",
    }
)
#: What starts, ends and watches the client.
LIFE: Final = frozenset({"close", "from_properties", "statistics"})
EMBEDDED = os.environ.get("KAFKAIO_KAFKA") == "embedded"


@dataclass
class World:
    """Brokers, and what there is on them.

    Attributes:
        client: asks them, and may do everything.
        admin: the same.
        guest: asks them by a login, and has no rights.
        other_guest: the same by another login.
        node: the node id of the first broker, which leads `tp`.
        last: the node id of the last broker, which leads `other`.
        topic: two partitions with ten records and one replica each.
        topic_id: its id; an unknown one if the brokers give topics no ids.
        group: has committed, and has no members.
        busy: the ids of two groups with a member that reads the topic: a classic one,
            and one of KIP-848 where there is that.
        transactional_id: has an id and no open transaction.
    """

    client: kafkaio.Client
    admin: Admin
    guest: Admin
    other_guest: Admin
    node: int
    last: int
    topic: str
    topic_id: UUID
    group: str
    busy: tuple[str, str]
    transactional_id: str

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    @property
    def other(self) -> TopicPartition:
        return TopicPartition(self.topic, 1)

    @property
    def resource(self) -> ConfigResource:
        return ConfigResource(ConfigResourceType.TOPIC, self.topic)


@dataclass(frozen=True)
class Case:
    """A call, and what its items come to.

    Attributes:
        name: the method.
        call: makes the call.
        codes: the error codes of the items in the order asked, or of the whole. A
            single one is that of all items.
        real: whether only a real broker has it.
        since: the first Kafka that can do it; older ones come to UnsupportedVersion,
            which names this release.
        before: a release, and what it comes to on older ones that can do it, or a part
            of it. A text stands for UnsupportedVersion that names this release.
    """

    name: str
    call: Callable[[World], Awaitable[object]]
    codes: tuple[int, ...]
    real: bool = False
    since: str = "2.1"
    before: tuple[str, tuple[int | str, ...]] | None = None

    def on(self, version: str) -> tuple[int | str, ...]:
        """What it comes to on a Kafka."""
        if numbers(version) < numbers(self.since):
            return (self.since,)
        if self.before and numbers(version) < numbers(self.before[0]):
            return self.before[1]
        return self.codes


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


#: The first Kafka without ZooKeeper among those that the tests run on.
KRAFT: Final = "3.9"
NOWHERE = TopicPartition("no-such-topic", 0)
NO_TOPIC = ConfigResource(ConfigResourceType.TOPIC, "no-such-topic")
SHA = ScramMechanism.SCRAM_SHA_256
METRICS = ConfigResource(ConfigResourceType.CLIENT_METRICS, "table")
A_GROUP = ConfigResource(ConfigResourceType.GROUP, "table")
ALICE = QuotaEntity(user="alice")
ACL = AclBinding(AclResourceType.TOPIC, "a", "User:a", AclOperation.READ)
WRONG_ACL = AclBinding(AclResourceType.CLUSTER, "a", "User:a", AclOperation.READ)
DOWN = FeatureUpgradeType.SAFE_DOWNGRADE


def new_topics(*topics: NewTopic) -> Callable[[World], Awaitable[object]]:
    return lambda w: w.admin.create_topics(topics, validate_only=True)


async def deleted(w: World) -> object:
    name = f"gone-{uuid4().hex}"
    await w.admin.create_topics([NewTopic(name, 1, 1)])
    return await w.admin.delete_topics([UUID(int=7), "no-such-topic", name])


async def deleted_group(w: World) -> object:
    name = f"gone-{uuid4().hex}"
    await w.admin.alter_consumer_group_offsets(name, {w.tp: 0})
    return await w.admin.delete_consumer_groups(["no-such-group", name])


async def deleted_share_group(w: World) -> object:
    name = f"gone-{uuid4().hex}"
    await w.admin.alter_share_group_offsets(name, {w.tp: 0})
    return await w.admin.delete_share_groups(["no-such-group", name])


def while_shared(
    call: Callable[[World, str], Awaitable[object]],
) -> Callable[[World], Awaitable[object]]:
    """Make a call about a share group that has a member."""

    async def called(w: World) -> object:
        group, member = f"shared-{uuid4().hex}", str(uuid4())
        with suppress(UnsupportedVersion):  # the call comes to that, too
            await share_heartbeat(w.client, group, member, 0, [w.topic])
        try:
            return await call(w, group)
        finally:
            with suppress(UnsupportedVersion):
                await share_heartbeat(w.client, group, member, -1)

    return called


async def abort(w: World) -> object:
    with pytest.raises(UsageError) as caught:
        await w.admin.abort_transaction(w.tp, 0)
    if isinstance(caught.value, UnsupportedVersion):
        raise caught.value
    assert "no open transaction that begins at offset 0" in str(caught.value)
    return None


async def put_in_place(w: World) -> object:
    """Give replicas, one of which there is not, the directory that the broker has."""
    path = next(iter((await w.admin.describe_log_dirs([w.node]))[w.node]))
    places = {(w.tp, w.node): path, (NOWHERE, w.node): path}
    return await w.admin.alter_replica_log_dirs(places)


async def compacted(w: World) -> object:
    name = f"compacted-{uuid4().hex}"
    topic = NewTopic(name, 1, 1, configs={"cleanup.policy": "compact"})
    await w.admin.create_topics([topic])
    return await w.admin.delete_records({TopicPartition(name, 0): 0})


def configs(
    *changes: ConfigChange, name: str | None = None
) -> Callable[[World], Awaitable[object]]:
    def call(w: World) -> Awaitable[object]:
        resource = w.resource
        if name is not None:
            resource = ConfigResource(ConfigResourceType.BROKER, name)
        return w.admin.incremental_alter_configs(
            {resource: list(changes)}, validate_only=True
        )

    return call


CASES: Final = (
    # ---- topics
    Case("create_topics", new_topics(NewTopic("new", 1, 1)), (0,)),
    Case(
        "create_topics",
        new_topics(
            NewTopic("good", 1, 1),
            NewTopic("none", 0, 1),
            NewTopic("many", 1, 9),
            NewTopic("config", 1, 1, configs={"retention.ms": "soon"}),
            NewTopic("placed", assignments={0: [99]}),
        ),
        (
            *(0, E.INVALID_PARTITIONS, E.INVALID_REPLICATION_FACTOR),
            *(E.INVALID_CONFIG, E.INVALID_REPLICA_ASSIGNMENT),
        ),
        # ZooKeeper's controller looks for the brokers when it makes the topic.
        before=(
            KRAFT,
            (
                *(0, E.INVALID_PARTITIONS, E.INVALID_REPLICATION_FACTOR),
                *(E.INVALID_CONFIG, 0),
            ),
        ),
    ),
    Case(
        "create_topics",
        new_topics(NewTopic("defaults"), NewTopic("numbers", 1, 1)),
        (0, 0),
        before=("2.4", ("2.4", 0)),
    ),
    Case(
        "create_topics",
        lambda w: w.admin.create_topics([NewTopic(w.topic, 1, 1)]),
        (E.TOPIC_ALREADY_EXISTS,),
    ),
    Case(
        "delete_topics",
        deleted,
        (E.UNKNOWN_TOPIC_ID, E.UNKNOWN_TOPIC_OR_PARTITION, 0),
        before=("2.8", ("2.8", E.UNKNOWN_TOPIC_OR_PARTITION, 0)),
    ),
    Case("list_topics", lambda w: w.admin.list_topics(), (0,)),
    Case(
        "describe_topics",
        lambda w: w.admin.describe_topics([w.topic, "no", w.topic_id]),
        (0, E.UNKNOWN_TOPIC_OR_PARTITION, 0),
        before=("3.1", (0, E.UNKNOWN_TOPIC_OR_PARTITION, "3.1")),
    ),
    Case(
        "create_partitions",
        lambda w: w.admin.create_partitions({w.topic: 3, "no": 3}, validate_only=True),
        (0, E.UNKNOWN_TOPIC_OR_PARTITION),
    ),
    Case(
        "create_partitions",
        lambda w: w.admin.create_partitions({w.topic: 2}),
        (E.INVALID_PARTITIONS,),
    ),
    Case(
        "create_partitions",
        lambda w: w.admin.create_partitions({w.topic: NewPartitions(3, [[99]])}),
        (E.INVALID_REPLICA_ASSIGNMENT,),
    ),
    # ---- partitions and replicas
    Case(
        "elect_leaders",
        lambda w: w.admin.elect_leaders("preferred", [w.tp, NOWHERE]),
        (0, E.UNKNOWN_TOPIC_OR_PARTITION),
        since="2.2",
    ),
    Case(
        "elect_leaders",
        lambda w: w.admin.elect_leaders("unclean", [NOWHERE, w.tp]),
        (E.UNKNOWN_TOPIC_OR_PARTITION, 0),
        since="2.4",
    ),
    Case(
        "alter_partition_reassignments",
        lambda w: w.admin.alter_partition_reassignments(
            {w.tp: [w.node], w.other: [99], NOWHERE: [w.node]}
        ),
        (0, E.INVALID_REPLICA_ASSIGNMENT, E.UNKNOWN_TOPIC_OR_PARTITION),
        since="2.4",
    ),
    Case(
        "alter_partition_reassignments",
        lambda w: w.admin.alter_partition_reassignments(
            {w.tp: [], w.other: [w.last, w.last]}
        ),
        (E.INVALID_REPLICA_ASSIGNMENT, E.INVALID_REPLICA_ASSIGNMENT),
        since="2.4",
    ),
    Case(
        "alter_partition_reassignments",
        lambda w: w.admin.alter_partition_reassignments(
            {w.tp: [w.node]}, allow_replication_factor_change=False
        ),
        (0,),
        since="4.1",
    ),
    Case(
        "alter_partition_reassignments",
        lambda w: w.admin.alter_partition_reassignments({w.tp: None}),
        (E.NO_REASSIGNMENT_IN_PROGRESS,),
        since="2.4",
    ),
    Case(
        "list_partition_reassignments",
        lambda w: w.admin.list_partition_reassignments([w.tp]),
        (),
        since="2.4",
    ),
    Case("describe_log_dirs", lambda w: w.admin.describe_log_dirs(), (0,)),
    Case(
        "describe_replica_log_dirs",
        lambda w: w.admin.describe_replica_log_dirs([(w.tp, w.node)]),
        (0,),
    ),
    Case(
        "alter_replica_log_dirs",
        lambda w: w.admin.alter_replica_log_dirs({(w.tp, w.node): "/no"}),
        (E.LOG_DIR_NOT_FOUND,),
    ),
    Case(
        "alter_replica_log_dirs",
        lambda w: w.admin.alter_replica_log_dirs(
            {(w.tp, w.node): "/no", (NOWHERE, w.last): "/no"}
        ),
        (E.LOG_DIR_NOT_FOUND, E.LOG_DIR_NOT_FOUND),
    ),
    Case("alter_replica_log_dirs", put_in_place, (0, E.UNKNOWN_TOPIC_OR_PARTITION)),
    Case(
        "list_offsets",
        lambda w: w.admin.list_offsets(
            {w.tp: "latest", NOWHERE: "earliest", w.other: "max_timestamp"}
        ),
        (0, E.UNKNOWN_TOPIC_OR_PARTITION, 0),
        before=("3.0", (0, E.UNKNOWN_TOPIC_OR_PARTITION, "3.0")),
    ),
    Case(
        "list_offsets",
        lambda w: w.admin.list_offsets({w.tp: "earliest_local", w.other: 0}),
        (0, 0),
        before=("3.6", ("3.6", 0)),
    ),
    Case(
        "list_offsets",
        lambda w: w.admin.list_offsets({w.tp: "latest_tiered", w.other: 0}),
        (0, 0),
        before=("3.9", ("3.9", 0)),
    ),
    Case(
        "list_offsets",
        lambda w: w.admin.list_offsets({w.tp: "earliest_pending_upload", w.other: 0}),
        (0, 0),
        before=("4.2", ("4.2", 0)),
    ),
    Case(
        "delete_records",
        lambda w: w.admin.delete_records({w.tp: 0, w.other: 11, NOWHERE: 0}),
        (0, E.OFFSET_OUT_OF_RANGE, E.UNKNOWN_TOPIC_OR_PARTITION),
    ),
    Case("delete_records", compacted, (E.POLICY_VIOLATION,)),
    # ---- configs
    Case(
        "describe_configs",
        lambda w: w.admin.describe_configs([w.resource, NO_TOPIC]),
        (0, E.UNKNOWN_TOPIC_OR_PARTITION),
    ),
    Case("incremental_alter_configs", configs(ConfigChange("retention.ms", "1")), (0,)),
    Case(
        "incremental_alter_configs",
        configs(ConfigChange("no.such.config", "1")),
        (E.INVALID_CONFIG,),
    ),
    Case(
        "incremental_alter_configs",
        configs(ConfigChange("retention.ms", "soon")),
        (E.INVALID_CONFIG,),
        before=(KRAFT, (E.INVALID_REQUEST,)),
    ),
    Case(
        "incremental_alter_configs",
        configs(ConfigChange("retention.ms", "1", ConfigChangeType.APPEND)),
        (E.INVALID_CONFIG,),
        before=(KRAFT, (E.INVALID_REQUEST,)),
    ),
    Case(
        "incremental_alter_configs",
        configs(ConfigChange("broker.id", "1"), name="1"),
        (E.INVALID_REQUEST,),
    ),
    Case(
        "incremental_alter_configs",
        lambda w: w.admin.incremental_alter_configs({NO_TOPIC: [], w.resource: []}),
        (E.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ),
    Case(
        "incremental_alter_configs",
        lambda w: w.admin.incremental_alter_configs(
            {
                METRICS: [ConfigChange("interval.ms", "1")],
                A_GROUP: [ConfigChange("no.such.config", "1")],
            },
            validate_only=True,
        ),
        (E.INVALID_REQUEST, E.INVALID_CONFIG),
        since="2.3",
        # There are no such resources.
        before=("4.0", (E.INVALID_REQUEST, E.INVALID_REQUEST)),
    ),
    Case(
        "list_config_resources",
        lambda w: w.admin.list_config_resources(),
        (0,),
        since="4.1",
    ),
    Case(
        "list_config_resources",
        lambda w: w.admin.list_config_resources(["client_metrics"]),
        (0,),
        since="3.7",
    ),
    # ---- groups
    Case("list_groups", lambda w: w.admin.list_groups(types=["classic"]), (0,)),
    Case(
        "describe_consumer_groups",
        lambda w: w.admin.describe_consumer_groups(["no", w.group]),
        (E.GROUP_ID_NOT_FOUND, 0),
    ),
    Case(
        "describe_classic_groups",
        lambda w: w.admin.describe_classic_groups(["no", w.group]),
        (E.GROUP_ID_NOT_FOUND, 0),
    ),
    Case(
        "describe_consumer_groups",
        lambda w: w.admin.describe_consumer_groups([*w.busy, "no"]),
        (0, 0, E.GROUP_ID_NOT_FOUND),
    ),
    Case(
        "describe_classic_groups",
        lambda w: w.admin.describe_classic_groups(w.busy),
        (0, E.GROUP_ID_NOT_FOUND),
        before=("4.0", (0, 0)),
    ),
    Case("delete_consumer_groups", deleted_group, (E.GROUP_ID_NOT_FOUND, 0)),
    Case(
        "delete_consumer_groups",
        lambda w: w.admin.delete_consumer_groups([*w.busy, "no"]),
        (E.NON_EMPTY_GROUP, E.NON_EMPTY_GROUP, E.GROUP_ID_NOT_FOUND),
    ),
    Case(
        "remove_members_from_consumer_group",
        lambda w: w.admin.remove_members_from_consumer_group(w.group, ["no"]),
        (E.UNKNOWN_MEMBER_ID,),
        since="2.4",
    ),
    Case(
        "list_consumer_group_offsets",
        lambda w: w.admin.list_consumer_group_offsets([w.group, "no"]),
        (0, 0),
    ),
    Case(
        "alter_consumer_group_offsets",
        lambda w: w.admin.alter_consumer_group_offsets(w.group, {w.tp: 1}),
        (0,),
    ),
    *(
        Case(
            "alter_consumer_group_offsets",
            lambda w, number=number: w.admin.alter_consumer_group_offsets(
                w.busy[number], {w.tp: 1, w.other: 1}
            ),
            (E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID),
        )
        for number in range(2)
    ),
    Case(
        "delete_consumer_group_offsets",
        lambda w: w.admin.delete_consumer_group_offsets(w.group, [w.other]),
        (0,),
        since="2.4",
    ),
    *(
        Case(
            "delete_consumer_group_offsets",
            lambda w, number=number: w.admin.delete_consumer_group_offsets(
                w.busy[number], [w.tp, NOWHERE]
            ),
            (E.GROUP_SUBSCRIBED_TO_TOPIC, E.UNKNOWN_TOPIC_OR_PARTITION),
            since="2.4",
        )
        for number in range(2)
    ),
    Case(
        "delete_consumer_group_offsets",
        lambda w: w.admin.delete_consumer_group_offsets("no", [w.tp]),
        (E.GROUP_ID_NOT_FOUND,),
        since="2.4",
    ),
    # ---- share groups and streams groups
    Case(
        "describe_share_groups",
        lambda w: w.admin.describe_share_groups(["no", w.group]),
        (E.GROUP_ID_NOT_FOUND, E.GROUP_ID_NOT_FOUND),
        real=True,
        since="4.1",
    ),
    Case(
        "delete_share_groups",
        deleted_share_group,
        (E.GROUP_ID_NOT_FOUND, 0),
        real=True,
        since="4.1",
    ),
    Case(
        "delete_share_groups",
        while_shared(lambda w, group: w.admin.delete_share_groups([group])),
        (E.NON_EMPTY_GROUP,),
        real=True,
        before=("4.1", (E.GROUP_ID_NOT_FOUND,)),
    ),
    Case(
        "list_share_group_offsets",
        lambda w: w.admin.list_share_group_offsets(["no"]),
        (0,),
        real=True,
        since="4.1",
    ),
    Case(
        "alter_share_group_offsets",
        lambda w: w.admin.alter_share_group_offsets("share", {NOWHERE: 0, w.tp: 0}),
        (E.UNKNOWN_TOPIC_OR_PARTITION, 0),
        real=True,
        since="4.1",
    ),
    Case(
        "alter_share_group_offsets",
        while_shared(
            lambda w, group: w.admin.alter_share_group_offsets(group, {w.tp: 0})
        ),
        (E.NON_EMPTY_GROUP,),
        real=True,
        since="4.1",
    ),
    Case(
        "alter_share_group_offsets",
        lambda w: w.admin.alter_share_group_offsets(w.group, {w.tp: 0}),
        (E.GROUP_ID_NOT_FOUND,),
        real=True,
        since="4.1",
    ),
    Case(
        "delete_share_group_offsets",
        while_shared(
            lambda w, group: w.admin.delete_share_group_offsets(group, [w.topic])
        ),
        (E.NON_EMPTY_GROUP,),
        real=True,
        since="4.1",
    ),
    Case(
        "delete_share_group_offsets",
        lambda w: w.admin.delete_share_group_offsets(w.group, [w.topic]),
        (E.GROUP_ID_NOT_FOUND,),
        real=True,
        since="4.1",
    ),
    Case(
        "describe_streams_groups",
        lambda w: w.admin.describe_streams_groups([w.group]),
        (E.GROUP_ID_NOT_FOUND,),
        real=True,
        since="4.1",
    ),
    Case(
        "delete_streams_groups",
        lambda w: w.admin.delete_streams_groups(["no-such-group"]),
        (E.GROUP_ID_NOT_FOUND,),
    ),
    Case(
        "list_streams_group_offsets",
        lambda w: w.admin.list_streams_group_offsets(["no"]),
        (0,),
    ),
    Case(
        "alter_streams_group_offsets",
        lambda w: w.admin.alter_streams_group_offsets(w.group, {w.tp: 1}),
        (0,),
    ),
    Case(
        "delete_streams_group_offsets",
        lambda w: w.admin.delete_streams_group_offsets("no", [w.tp]),
        (E.GROUP_ID_NOT_FOUND,),
        since="2.4",
    ),
    # ---- rights, quotas, users, tokens
    Case(
        "create_acls",
        lambda w: w.admin.create_acls([WRONG_ACL, ACL]),
        (E.INVALID_REQUEST, 0),
    ),
    Case("describe_acls", lambda w: w.admin.describe_acls(), (0,)),
    Case("delete_acls", lambda w: w.admin.delete_acls([AclBindingFilter()]), (0,)),
    Case(
        "alter_client_quotas",
        lambda w: w.admin.alter_client_quotas(
            {ALICE: {"no": 1.0}, QuotaEntity(user="b"): {"producer_byte_rate": 1.0}},
            validate_only=True,
        ),
        (E.INVALID_REQUEST, 0),
        since="2.6",
    ),
    Case(
        "describe_client_quotas",
        lambda w: w.admin.describe_client_quotas(),
        (),
        since="2.6",
    ),
    Case(
        "alter_user_scram_credentials",
        lambda w: w.admin.alter_user_scram_credentials(
            [
                ScramUpsertion("alice", SHA, "secret", 4_096),
                ScramDeletion("nobody", SHA),
                ScramUpsertion("carol", SHA, "secret", 20_000),
            ]
        ),
        (0, E.RESOURCE_NOT_FOUND, E.UNACCEPTABLE_CREDENTIAL),
        since="2.7",
    ),
    Case(
        "describe_user_scram_credentials",
        lambda w: w.admin.describe_user_scram_credentials(["nobody"]),
        (E.RESOURCE_NOT_FOUND,),
        since="2.7",
    ),
    Case(
        "create_delegation_token",
        lambda w: w.admin.create_delegation_token(),
        (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,),
    ),
    Case(
        "renew_delegation_token",
        lambda w: w.admin.renew_delegation_token(b"no"),
        (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,),
    ),
    Case(
        "expire_delegation_token",
        lambda w: w.admin.expire_delegation_token(b"no"),
        (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,),
    ),
    Case(
        "describe_delegation_token",
        lambda w: w.admin.describe_delegation_token(),
        (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,),
    ),
    Case(
        "create_delegation_token",
        lambda w: w.guest.create_delegation_token(renewers=["Group:x"]),
        (E.INVALID_PRINCIPAL_TYPE,),
    ),
    Case(
        "create_delegation_token",
        lambda w: w.guest.create_delegation_token(owner="User:alice"),
        (E.DELEGATION_TOKEN_AUTHORIZATION_FAILED,),
        since="3.3",
    ),
    *(
        Case(
            name,
            lambda w, name=name: getattr(w.guest, name)(b"no"),
            (E.DELEGATION_TOKEN_NOT_FOUND,),
        )
        for name in ("renew_delegation_token", "expire_delegation_token")
    ),
    # ---- the cluster
    Case("describe_cluster", lambda w: w.admin.describe_cluster(), (0,)),
    Case(
        "describe_cluster",
        lambda w: w.admin.describe_cluster(include_fenced_brokers=True),
        (0,),
        since="4.0",
    ),
    Case(
        "describe_features",
        lambda w: w.admin.describe_features(),
        (0,),
        since="2.7",
    ),
    Case(
        "update_features",
        lambda w: w.admin.update_features(
            {"group.version": FeatureUpdate(0, DOWN)}, validate_only=True
        ),
        (0,),
        since="3.3",
    ),
    Case(
        "update_features",
        lambda w: w.admin.update_features({"no.such": FeatureUpdate(1)}),
        (E.INVALID_UPDATE_VERSION,),
        since="2.7",
        before=(KRAFT, (E.INVALID_REQUEST,)),
    ),
    Case(
        "describe_metadata_quorum",
        lambda w: w.admin.describe_metadata_quorum(),
        (0,),
        since="3.3",
    ),
    Case(
        "add_raft_voter",
        lambda w: w.admin.add_raft_voter(
            9, UUID(int=9), [RaftEndpoint("CONTROLLER", "localhost", 1)]
        ),
        (E.UNSUPPORTED_VERSION,),
        real=True,
        since="3.9",
    ),
    Case(
        "remove_raft_voter",
        lambda w: w.admin.remove_raft_voter(9, UUID(int=9)),
        (E.UNSUPPORTED_VERSION,),
        real=True,
        since="3.9",
    ),
    Case(
        "unregister_broker",
        lambda w: w.admin.unregister_broker(99),
        (E.BROKER_ID_NOT_REGISTERED,),
        since="2.8",
        before=(KRAFT, ("2.8",)),
    ),
    Case(
        "unregister_controller",
        lambda w: w.admin.unregister_controller(99),
        (E.CONTROLLER_ID_NOT_REGISTERED,),
        since="4.4",
    ),
    Case(
        "unregister_controller",
        lambda w: w.admin.unregister_controller(w.node),
        (E.INVALID_REQUEST,),
        since="4.4",
    ),
    # ---- transactions
    Case(
        "list_transactions",
        lambda w: w.admin.list_transactions(),
        (0,),
        since="3.0",
    ),
    Case(
        "list_transactions",
        lambda w: w.admin.list_transactions(duration_ms=1),
        (0,),
        since="3.8",
    ),
    Case(
        "list_transactions",
        lambda w: w.admin.list_transactions(pattern="("),
        (E.INVALID_REGULAR_EXPRESSION,),
        since="4.1",
    ),
    Case(
        "describe_transactions",
        lambda w: w.admin.describe_transactions(["no", w.transactional_id]),
        (E.TRANSACTIONAL_ID_NOT_FOUND, 0),
        since="3.0",
    ),
    Case(
        "describe_producers",
        lambda w: w.admin.describe_producers([NOWHERE, w.tp]),
        (E.UNKNOWN_TOPIC_OR_PARTITION, 0),
        before=("2.8", (E.UNKNOWN_TOPIC_OR_PARTITION, "2.8")),
    ),
    Case("abort_transaction", abort, (0,), since="2.8"),
    Case(
        "fence_producers",
        lambda w: w.admin.fence_producers([w.transactional_id]),
        (0,),
    ),
    Case(
        "force_terminate_transaction",
        lambda w: w.admin.force_terminate_transaction(w.transactional_id),
        (0,),
    ),
)


def denied(
    code: E,
    name: str,
    *arguments: object,
    since: str = "2.1",
    real: bool = False,
    **options: object,
) -> Case:
    """What a call of an operation comes to for a user without any right."""

    def call(w: World) -> Awaitable[object]:
        made: Awaitable[object] = getattr(w.guest, name)(*arguments, **options)
        return made

    return Case(name, call, (code,), real, since)


TP = TopicPartition("table", 0)
TOPIC = ConfigResource(ConfigResourceType.TOPIC, "table")
BROKER = ConfigResource(ConfigResourceType.BROKER, "1")
NO_TOPIC_RIGHT: Final = E.TOPIC_AUTHORIZATION_FAILED
NO_GROUP_RIGHT: Final = E.GROUP_AUTHORIZATION_FAILED
NO_CLUSTER_RIGHT: Final = E.CLUSTER_AUTHORIZATION_FAILED
NO_ID_RIGHT: Final = E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

#: Coordinators and leaders are looked for first: that is refused by brokers of any age.
DENIED: Final = (
    denied(NO_TOPIC_RIGHT, "create_topics", [NewTopic("new", 1, 1)]),
    denied(NO_TOPIC_RIGHT, "delete_topics", ["table"]),
    denied(NO_TOPIC_RIGHT, "describe_topics", ["table"]),
    denied(NO_TOPIC_RIGHT, "create_partitions", {"table": 3}),
    denied(NO_CLUSTER_RIGHT, "elect_leaders", "preferred", [TP], since="2.2"),
    denied(NO_CLUSTER_RIGHT, "alter_partition_reassignments", {TP: [1]}, since="2.4"),
    denied(NO_CLUSTER_RIGHT, "list_partition_reassignments", since="2.4"),
    denied(NO_CLUSTER_RIGHT, "describe_log_dirs", [1]),
    denied(NO_CLUSTER_RIGHT, "describe_replica_log_dirs", [(TP, 1)]),
    denied(NO_CLUSTER_RIGHT, "alter_replica_log_dirs", {(TP, 1): "/no"}),
    denied(NO_TOPIC_RIGHT, "list_offsets", {TP: "latest"}),
    denied(NO_TOPIC_RIGHT, "delete_records", {TP: 0}),
    denied(NO_TOPIC_RIGHT, "describe_configs", [TOPIC]),
    denied(NO_CLUSTER_RIGHT, "describe_configs", [BROKER]),
    denied(NO_TOPIC_RIGHT, "incremental_alter_configs", {TOPIC: []}),
    denied(NO_CLUSTER_RIGHT, "incremental_alter_configs", {BROKER: []}),
    denied(NO_CLUSTER_RIGHT, "list_config_resources", ["client_metrics"], since="3.7"),
    denied(NO_GROUP_RIGHT, "describe_consumer_groups", ["table-group"]),
    denied(NO_GROUP_RIGHT, "describe_classic_groups", ["table-group"]),
    denied(NO_GROUP_RIGHT, "delete_consumer_groups", ["table-group"]),
    denied(
        NO_GROUP_RIGHT,
        "remove_members_from_consumer_group",
        "table-group",
        ["x"],
    ),
    denied(NO_GROUP_RIGHT, "list_consumer_group_offsets", ["table-group"]),
    denied(NO_GROUP_RIGHT, "alter_consumer_group_offsets", "table-group", {TP: 0}),
    denied(
        NO_GROUP_RIGHT,
        "delete_consumer_group_offsets",
        "table-group",
        [TP],
    ),
    denied(NO_GROUP_RIGHT, "describe_share_groups", ["s"], real=True),
    denied(NO_GROUP_RIGHT, "delete_share_groups", ["s"]),
    denied(NO_GROUP_RIGHT, "list_share_group_offsets", ["s"], real=True),
    denied(
        NO_GROUP_RIGHT,
        "alter_share_group_offsets",
        "s",
        {TP: 0},
        real=True,
    ),
    denied(
        NO_GROUP_RIGHT,
        "delete_share_group_offsets",
        "s",
        ["table"],
        real=True,
    ),
    denied(NO_GROUP_RIGHT, "describe_streams_groups", ["s"], real=True),
    denied(NO_GROUP_RIGHT, "delete_streams_groups", ["s"]),
    denied(NO_GROUP_RIGHT, "list_streams_group_offsets", ["s"]),
    denied(NO_GROUP_RIGHT, "alter_streams_group_offsets", "s", {TP: 0}),
    denied(NO_GROUP_RIGHT, "delete_streams_group_offsets", "s", [TP]),
    denied(NO_CLUSTER_RIGHT, "create_acls", [ACL]),
    denied(NO_CLUSTER_RIGHT, "describe_acls"),
    denied(NO_CLUSTER_RIGHT, "delete_acls", [AclBindingFilter()]),
    denied(
        NO_CLUSTER_RIGHT,
        "alter_client_quotas",
        {ALICE: {"producer_byte_rate": 1.0}},
        since="2.6",
    ),
    denied(NO_CLUSTER_RIGHT, "describe_client_quotas", since="2.6"),
    denied(
        NO_CLUSTER_RIGHT,
        "alter_user_scram_credentials",
        [ScramDeletion("alice", SHA)],
        since="2.7",
    ),
    denied(NO_CLUSTER_RIGHT, "describe_user_scram_credentials", ["alice"], since="2.7"),
    denied(
        NO_CLUSTER_RIGHT,
        "update_features",
        {"group.version": FeatureUpdate(0, DOWN)},
        since="2.7",
    ),
    denied(NO_CLUSTER_RIGHT, "describe_metadata_quorum", since="3.3"),
    denied(
        NO_CLUSTER_RIGHT,
        "add_raft_voter",
        9,
        UUID(int=9),
        [RaftEndpoint("CONTROLLER", "localhost", 1)],
        since="3.9",
        real=True,
    ),
    denied(
        NO_CLUSTER_RIGHT, "remove_raft_voter", 9, UUID(int=9), since="3.9", real=True
    ),
    Case(
        "unregister_broker",
        lambda w: w.guest.unregister_broker(99),
        (NO_CLUSTER_RIGHT,),
        since="2.8",
        before=(KRAFT, ("2.8",)),
    ),
    denied(NO_CLUSTER_RIGHT, "unregister_controller", 99, since="4.4"),
    denied(NO_ID_RIGHT, "describe_transactions", ["table"]),
    denied(NO_TOPIC_RIGHT, "describe_producers", [TP]),
    denied(NO_TOPIC_RIGHT, "abort_transaction", TP, 0),
    denied(NO_ID_RIGHT, "fence_producers", ["table"]),
    denied(NO_ID_RIGHT, "force_terminate_transaction", "table"),
)
#: What needs no right: whoever has none sees less, or only what is theirs.
FREE: Final = frozenset(
    {
        "create_delegation_token",
        "describe_cluster",
        "describe_delegation_token",
        "describe_features",
        "expire_delegation_token",
        "list_groups",
        "list_topics",
        "list_transactions",
        "renew_delegation_token",
    }
)


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[
        pytest.param(1, id="one-broker"),
        pytest.param(
            3,
            id="three-brokers",
            marks=[
                pytest.mark.kafka_versions("newest"),
                pytest.mark.not_embedded("one node is enough with every change"),
            ],
        ),
    ],
)
async def world(
    request: pytest.FixtureRequest, kafka_version: str
) -> AsyncIterator[World]:
    """Brokers that check rights, and whose plain listener is for everybody."""
    count: int = request.param
    users = {"guest": "secret", "other": "secret"}
    broker: Broker | Kafka
    if EMBEDDED:
        broker = Broker(nodes=count, first_node_id=1, acls=True, sasl=True, users=users)
    else:
        broker = Kafka(
            brokers=count,
            acls=True,
            sasl=True,
            users=users,
            delegation_tokens=True,
            version=kafka_version,
            # Those that have expired are kept.
            config={"delegation.token.expiry.check.interval.ms": 3_600_000},
        )
    async with (
        broker,
        kafkaio.Client(broker.bootstrap_servers) as client,
        Admin(client) as admin,
        login(broker, "guest", "secret") as guest,
        login(broker, "other", "secret") as other,
        filled(client, admin, count) as topic_id,
        members_of(client, "table") as busy,
    ):
        world = World(
            *(client, admin, guest, other, 1, count, "table", topic_id, "table-group"),
            *(busy, "table"),
        )
        offsets = {world.tp: 0, world.other: 0}
        await admin.alter_consumer_group_offsets(world.group, offsets)
        yield world


def login(broker: Broker | Kafka, user: str, password: str) -> Admin:
    return Admin(
        broker.bootstrap("SASL"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=user,
        sasl_password=password,
    )


@asynccontextmanager
async def filled(
    client: kafkaio.Client, admin: Admin, last: int
) -> AsyncIterator[UUID]:
    """Topic ``table`` with records, some of them of a transaction; yields its id."""
    topic = NewTopic(
        "table",
        assignments={0: [1], 1: [last]},
        configs={"min.insync.replicas": "1"},
    )
    async with (
        kafkaio.Producer(client) as producer,
        kafkaio.Producer(client, transactional_id="table") as transactional,
    ):
        created = await admin.create_topics([topic])
        for number in range(20):
            await producer.send("table", b"x", partition=number % 2)
        async with transactional.transaction() as tx:
            await tx.send("table", b"x", partition=0)
        described = await admin.describe_topics(["table"])
        yield created["table"].topic_id or described["table"].topic_id or UUID(int=8)


@asynccontextmanager
async def members_of(
    client: kafkaio.Client, topic: str
) -> AsyncIterator[tuple[str, str]]:
    """Members of two groups that read a topic; yields the ids of the groups."""
    groups = ("table-classic", "table-auto")
    async with (
        kafkaio.Consumer(
            client, topics=topic, group_id=groups[0], group_protocol="classic"
        ) as classic,
        kafkaio.Consumer(
            client, topics=topic, group_id=groups[1], group_protocol="auto"
        ) as newest,
    ):
        for member in (classic, newest):
            while not member.assignment:
                await member.poll(timeout=0.1)
        yield groups


def code_of(result: object) -> int | str:
    """An error code; 0 for a success; or the release that is said to be needed."""
    if isinstance(result, UnsupportedVersion):
        named = re.search(r"needs Kafka ([\d.]+\d) ", str(result))
        assert named, result
        return named[1]
    if isinstance(result, BrokerError):
        return result.code
    assert not isinstance(result, KafkaError), result
    return 0


async def codes_of(call: Awaitable[object]) -> tuple[int | str, ...]:
    """What the items come to, those found first, or the whole."""

    async def by_item() -> dict[Any, object]:
        results = await call
        return results if isinstance(results, dict) else {None: results}

    try:
        items = await settled(by_item())
    except (BrokerError, UnsupportedVersion) as error:
        return (code_of(error),)
    found, failed = items.found.values(), items.failed.values()
    return (*map(code_of, found), *map(code_of, failed))


def each(cases: Sequence[Case]) -> list[Any]:
    return [
        pytest.param(
            case,
            id=f"{case.name}-{number}",
            marks=pytest.mark.not_embedded("it has no such API") if case.real else (),
        )
        for number, case in enumerate(cases)
    ]


@pytest.mark.parametrize("case", each([*CASES, *DENIED]))
async def test_what_items_come_to(world: World, case: Case, kafka_version: str) -> None:
    codes = await codes_of(case.call(world))
    wanted = case.on(DEFAULT_VERSION if EMBEDDED else kafka_version)
    wanted = (*(it for it in wanted if not it), *(it for it in wanted if it))
    assert codes == (wanted * len(codes) if codes and len(wanted) == 1 else wanted)


# ---- what needs several brokers ------------------------------------------------------


async def test_a_replica_that_is_elsewhere(real_kafka_cluster: Kafka) -> None:
    first, *_, last = real_kafka_cluster.node_ids
    name = f"elsewhere-{uuid4().hex}"
    tp = TopicPartition(name, 0)
    async with Admin(real_kafka_cluster.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic(name, assignments={0: [first]})])
        path = next(iter((await admin.describe_log_dirs([last]))[last]))
        call = admin.alter_replica_log_dirs({(tp, last): path})
        assert await codes_of(call) == (E.REPLICA_NOT_AVAILABLE,)
        while True:  # the broker makes the log a moment after it leads the partition
            found = await admin.describe_replica_log_dirs([(tp, last), (tp, first)])
            if found[tp, first].current is not None:
                break
        assert found[tp, last].current is None


@pytest.mark.kafka_versions("2.8+")
async def test_elections_without_a_candidate(real_kafka_cluster: Kafka) -> None:
    first, *_, last = real_kafka_cluster.node_ids
    alone, both = f"alone-{uuid4().hex}", f"both-{uuid4().hex}"
    here, gone = TopicPartition(alone, 0), TopicPartition(alone, 1)
    led = TopicPartition(both, 0)
    async with Admin(real_kafka_cluster.bootstrap_servers) as admin:
        await admin.create_topics(
            [
                NewTopic(alone, assignments={0: [first], 1: [last]}),
                NewTopic(both, assignments={0: [last, first]}),
            ]
        )
        await real_kafka_cluster.kill(last)

        async def leader_of(tp: TopicPartition) -> int | None:
            described = (await admin.describe_topics([tp.topic]))[tp.topic]
            return described.partitions[tp.partition].leader

        while await leader_of(gone) is not None or await leader_of(led) != first:
            pass
        preferred = await codes_of(admin.elect_leaders("preferred", [led, here, gone]))
        missing = E.PREFERRED_LEADER_NOT_AVAILABLE
        assert preferred == (0, missing, missing)
        unclean = await codes_of(admin.elect_leaders("unclean", [gone, NOWHERE, led]))
        assert unclean == (
            0,  # it has a leader: an election is not needed
            *(E.ELIGIBLE_LEADERS_NOT_AVAILABLE, E.UNKNOWN_TOPIC_OR_PARTITION),
        )


@pytest.mark.kafka_versions("2.8", "newest")
async def test_a_leader_that_has_moved(real_kafka_cluster: Kafka) -> None:
    """It is asked, says so, and the one that took its place answers."""
    nodes = [real_kafka_cluster.node_ids[0], real_kafka_cluster.node_ids[-1]]
    tp = TopicPartition(f"moves-{uuid4().hex}", 0)
    servers = real_kafka_cluster.bootstrap_servers
    observer = Retries()
    moved = {E.NOT_LEADER_OR_FOLLOWER, E.FENCED_LEADER_EPOCH}
    async with Admin(servers) as mover, Admin(servers, observer=observer) as admin:
        await mover.create_topics([NewTopic(tp.topic, assignments={0: nodes})])
        calls: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: admin.list_offsets({tp: "latest"}),
            lambda: admin.delete_records({tp: 0}),
            # DescribeProducers is no such call: followers answer it, too.
        )
        await codes_of(calls[0]())  # it knows the leader
        for call in calls:
            nodes.reverse()
            await mover.alter_partition_reassignments({tp: nodes})
            await mover.elect_leaders("preferred", [tp])
            while True:
                (found,) = (await mover.describe_topics([tp.topic])).values()
                if found.partitions[0].leader == nodes[0]:
                    break
            observer.codes.clear()
            # The former leader learns of it a moment later, and what it has begun
            # until then may time out: that is asked again, too.
            while moved.isdisjoint(observer.codes):
                assert await codes_of(call()) == (0,)


@pytest.mark.kafka_versions("2.8", "newest")
async def test_an_open_transaction_is_aborted_first(real_kafka_cluster: Kafka) -> None:
    """The coordinator says that it is busy, and is asked again."""
    name = f"fenced-{uuid4().hex}"
    observer = Retries()
    servers = real_kafka_cluster.bootstrap_servers
    async with (
        kafkaio.Client(servers, observer=observer) as client,
        Admin(client) as admin,
    ):
        await admin.create_topics([NewTopic(name, 1)])
        raw = RawProducer(Cluster(client), name, OLD)
        await raw.start()
        await raw.send(TopicPartition(name, 0), 0)
        observer.codes.clear()
        assert await codes_of(admin.fence_producers([name])) == (0,)
        assert set(observer.codes) == {E.CONCURRENT_TRANSACTIONS}


@pytest.mark.kafka_versions("2.8", "newest")
@pytest.mark.not_embedded("its followers cannot be paused")
async def test_a_follower_that_deletes_no_records(real_kafka_cluster: Kafka) -> None:
    first, *_, last = real_kafka_cluster.node_ids
    tp = TopicPartition(f"slow-{uuid4().hex}", 0)
    servers = real_kafka_cluster.bootstrap_servers
    async with kafkaio.Client(servers) as client, Admin(client) as admin:
        await admin.create_topics([NewTopic(tp.topic, assignments={0: [first, last]})])
        async with kafkaio.Producer(client) as producer:
            await producer.send(tp.topic, b"x", partition=0)
        await real_kafka_cluster.pause(last)
        # Before the broker that is paused counts as dead: then nobody waits for it.
        with pytest.raises(RequestTimeout, match="REQUEST_TIMED_OUT") as caught:
            await admin.delete_records({tp: 1}, timeout=1)
        assert isinstance(caught.value.__cause__, BrokerError)
        assert caught.value.__cause__.code == E.REQUEST_TIMED_OUT
        assert caught.value.item == tp


@pytest.mark.kafka_versions("2.8", "newest")
@pytest.mark.not_embedded("its controllers cannot be paused")
async def test_a_controller_that_is_none_any_more(
    real_kafka_cluster: Kafka, kafka_version: str
) -> None:
    """It is asked, says so, and the one that took its place does the work."""
    kafka = real_kafka_cluster
    is_kraft = kafka_version != "2.8"
    listener = "CONTROLLER" if is_kraft else "PLAINTEXT"
    name = "bootstrap_controllers" if is_kraft else "bootstrap_servers"
    addresses = dict(
        zip(kafka.node_ids, kafka.bootstrap(listener).split(","), strict=True)
    )
    observer = Retries()

    async def controller_of(asked: Admin) -> int | None:
        if is_kraft:
            return (await asked.describe_metadata_quorum()).leader
        return (await asked.describe_cluster()).controller

    where: dict[str, Any] = {name: ",".join(addresses.values())}
    async with Admin(**where, observer=observer) as admin:
        before = await controller_of(admin)
        assert before is not None
        del addresses[before]
        await kafka.pause(before)
        async with Admin(**{name: ",".join(addresses.values())}) as others:
            while await controller_of(others) in {before, None}:
                pass
        await kafka.resume(before)
        codes: tuple[int | str, ...] = ()
        while E.NOT_CONTROLLER not in observer.codes:  # it learns of it a moment later
            call = (
                admin.alter_partition_reassignments({NOWHERE: [1]})
                if is_kraft
                else admin.create_partitions({NOWHERE.topic: 3})
            )
            codes = await codes_of(call)
        assert codes == (E.UNKNOWN_TOPIC_OR_PARTITION,)


# ---- what depends on the brokers' own settings ---------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def strict(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kafka]:
    """A broker with policies, that deletes no topics and has no rights and tokens."""
    program = Toolbox(find_release()).program(POLICY)
    jar = await program.jar(tmp_path_factory.mktemp("policy") / "policy.jar")
    # A log directory that is a file cannot be used.
    offline = tmp_path_factory.mktemp("offline") / "file"
    offline.touch()
    config = {
        "log.dirs": f"data,{offline}",
        "delete.topic.enable": "false",
        "create.topic.policy.class.name": "Policy",
        "alter.config.policy.class.name": "Policy",
    }
    async with Kafka(sasl=True, plugins=[jar], config=config) as kafka:
        yield kafka


@pytest.mark.kafka_versions("newest")
@pytest.mark.not_embedded("it has no policies")
async def test_what_settings_refuse(strict: Kafka) -> None:
    async with (
        Admin(strict.bootstrap_servers) as admin,
        login(strict, "alice", "alice-secret") as alice,
    ):
        topics = [NewTopic("allowed", 1, 1), NewTopic("forbidden", 1, 1)]
        changes = {
            ConfigResource(ConfigResourceType.TOPIC, "allowed"): [
                ConfigChange("retention.ms", "1")
            ]
        }
        no_tokens = (E.DELEGATION_TOKEN_AUTH_DISABLED,)
        for call, codes in (
            (admin.create_topics(topics), (0, E.POLICY_VIOLATION)),
            (
                admin.incremental_alter_configs(changes),
                (E.POLICY_VIOLATION,),
            ),
            (admin.delete_topics(["allowed"]), (E.TOPIC_DELETION_DISABLED,)),
            (admin.describe_acls(), (E.SECURITY_DISABLED,)),
            (admin.create_acls([ACL]), (E.SECURITY_DISABLED,)),
            (admin.delete_acls([AclBindingFilter()]), (E.SECURITY_DISABLED,)),
            (alice.create_delegation_token(), no_tokens),
            (alice.renew_delegation_token(b"no"), no_tokens),
            (alice.expire_delegation_token(b"no"), no_tokens),
            (alice.describe_delegation_token(), no_tokens),
        ):
            assert await codes_of(call) == codes


@pytest.mark.kafka_versions("newest")
@pytest.mark.not_embedded("its log directories cannot fail")
async def test_a_log_directory_that_is_offline(strict: Kafka) -> None:
    tp = TopicPartition("stays", 0)
    (node,) = strict.node_ids
    async with Admin(strict.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic("stays", 1, 1)])
        while True:  # the broker makes the log a moment after it leads the partition
            found = (await admin.describe_log_dirs())[node]
            (good,) = (it for it in found.values() if it.error is None)
            if tp in good.replicas:
                break
        (bad,) = (it for it in found.values() if it.error is not None)
        assert bad.error is not None
        assert bad.error.code == E.KAFKA_STORAGE_ERROR
        assert bad.path.endswith("/file")
        assert (bad.replicas, bad.total_bytes, bad.usable_bytes) == ({}, None, None)
        moves = admin.alter_replica_log_dirs({(tp, node): bad.path})
        assert await codes_of(moves) == (E.KAFKA_STORAGE_ERROR,)


@pytest.mark.kafka_versions("newest")
@pytest.mark.not_embedded("it has no quota of changes")
async def test_a_topic_beyond_the_quota_is_made_later(strict: Kafka) -> None:
    """The quota lets 44 changes pass at once, and then four in a second (KIP-599)."""
    quota = {QuotaEntity(client_id="slow"): {"controller_mutation_rate": 4.0}}
    observer = Retries()
    async with (
        Admin(strict.bootstrap_servers) as admin,
        Admin(strict.bootstrap_servers, client_id="slow", observer=observer) as slow,
    ):
        await admin.alter_client_quotas(quota)
        while not await admin.describe_client_quotas():
            pass  # a broker learns of it a moment later
        await slow.create_topics([NewTopic("many", 56, 1)], wait=False)
        made = await slow.create_topics([NewTopic("later", 1, 1)])
    assert list(made) == ["later"]
    assert E.THROTTLING_QUOTA_EXCEEDED in observer.codes


def snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


async def test_a_token_of_somebody_else(world: World) -> None:
    token = await world.guest.create_delegation_token()
    for change in (
        world.other_guest.renew_delegation_token,
        world.other_guest.expire_delegation_token,
    ):
        unknown = (E.DELEGATION_TOKEN_NOT_FOUND,)
        while (codes := await codes_of(change(token.hmac))) == unknown:
            pass  # a broker learns of it a moment later
        assert codes == (E.DELEGATION_TOKEN_OWNER_MISMATCH,)
    await world.guest.expire_delegation_token(token.hmac)


async def test_a_token_that_has_expired(world: World) -> None:
    guest = world.guest
    token = await guest.create_delegation_token(max_lifetime=1)
    # A broker learns of it a moment later, and then it lives for another moment.
    passing = {(E.DELEGATION_TOKEN_NOT_FOUND,), (0,)}
    while (codes := await codes_of(guest.renew_delegation_token(token))) in passing:
        pass
    assert codes == (E.DELEGATION_TOKEN_EXPIRED,)
    later = guest.expire_delegation_token(token, period=1)
    assert await codes_of(later) == (E.DELEGATION_TOKEN_EXPIRED,)


async def test_what_is_free_shows_nothing_of_others(world: World) -> None:
    assert (await world.guest.describe_cluster()).brokers
    assert (await world.guest.list_topics()) == {}
    assert (await world.guest.list_groups()) == {}


@pytest.mark.kafka_versions("newest")
@pytest.mark.not_embedded("it asks Java")
async def test_the_table_has_every_operation_of_java() -> None:
    output = await Toolbox(find_release()).program(PROGRAM).run()
    assert output.returncode == 0, output.stderr
    names = set(output.lines)
    assert len(names) >= 65
    assert names >= TELEMETRY
    ours = {OTHERS.get(name, snake(name)) for name in names - TELEMETRY}
    assert not {name for name in ours if not hasattr(Admin, name)}
    assert {case.name for case in CASES} == ours - LIFE
    assert {case.name for case in DENIED} == ours - LIFE - FREE
