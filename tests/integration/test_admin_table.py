"""Every operation of Java's Admin: which of ours it is, and what each item comes to.

`JAVA` has the names, which are read from Kafka's jar. `CASES` has for each of ours what
succeeds, each error that an item can have, and both in one call. A case is a call and
the error codes of its items, in the order asked; 0 is a success. All of them run on one
broker, a real one or the embedded one.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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
)
from kafkaio.errors import BrokerError, KafkaError, UsageError
from kafkaio.protocol.error_codes import ErrorCode as E
from kafkaio.testing import Broker
from kafkaio.testing.kafka import Kafka
from kafkaio.testing.kafka.releases import find_release
from kafkaio.types import TopicPartition
from tests.support.java import Toolbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.kafka_versions("4.3"),
    pytest.mark.asyncio(loop_scope="module"),
]

PROGRAM = Path(__file__).parents[1] / "java" / "admin" / "Operations.java"
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
    """A broker, and what there is on it.

    Attributes:
        admin: asks it.
        node: the node id of the only broker.
        topic: two partitions with ten records each.
        topic_id: its id.
        group: has committed, and has no members.
        transactional_id: has an id and no open transaction.
    """

    admin: Admin
    node: int
    topic: str
    topic_id: UUID
    group: str
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
    """A call, and the error codes of its items.

    Attributes:
        name: the method.
        call: makes the call; with ``return_errors`` if it has that.
        codes: the codes of the items in the order asked, or of the whole.
        real: whether only a real broker has it.
    """

    name: str
    call: Callable[[World], Awaitable[object]]
    codes: tuple[int, ...]
    real: bool = False


NOWHERE = TopicPartition("no-such-topic", 0)
NO_TOPIC = ConfigResource(ConfigResourceType.TOPIC, "no-such-topic")
SHA = ScramMechanism.SCRAM_SHA_256
ALICE = QuotaEntity(user="alice")
ALL: Final[Mapping[str, Any]] = {"return_errors": True}
ACL = AclBinding(AclResourceType.TOPIC, "a", "User:a", AclOperation.READ)
WRONG_ACL = AclBinding(AclResourceType.CLUSTER, "a", "User:a", AclOperation.READ)
DOWN = FeatureUpgradeType.SAFE_DOWNGRADE


def new_topics(*topics: NewTopic) -> Callable[[World], Awaitable[object]]:
    return lambda w: w.admin.create_topics(topics, validate_only=True, **ALL)


async def deleted(w: World) -> object:
    name = f"gone-{uuid4().hex}"
    await w.admin.create_topics([NewTopic(name, 1, 1)])
    return await w.admin.delete_topics([UUID(int=7), "no-such-topic", name], **ALL)


async def deleted_group(w: World) -> object:
    name = f"gone-{uuid4().hex}"
    await w.admin.alter_consumer_group_offsets(name, {w.tp: 0})
    return await w.admin.delete_consumer_groups(["no-such-group", name], **ALL)


async def deleted_share_group(w: World) -> object:
    name = f"gone-{uuid4().hex}"
    await w.admin.alter_share_group_offsets(name, {w.tp: 0})
    return await w.admin.delete_share_groups(["no-such-group", name], **ALL)


async def share_group(w: World) -> str:
    name = f"share-{uuid4().hex}"
    await w.admin.alter_share_group_offsets(name, {w.tp: 0})
    return name


async def abort(w: World) -> object:
    with pytest.raises(UsageError, match="no open transaction that begins at offset 0"):
        await w.admin.abort_transaction(w.tp, 0)
    return await w.admin.list_transactions()


async def compacted(w: World) -> object:
    name = f"compacted-{uuid4().hex}"
    topic = NewTopic(name, 1, 1, configs={"cleanup.policy": "compact"})
    await w.admin.create_topics([topic])
    return await w.admin.delete_records({TopicPartition(name, 0): 0}, **ALL)


def configs(
    *changes: ConfigChange, name: str | None = None
) -> Callable[[World], Awaitable[object]]:
    def call(w: World) -> Awaitable[object]:
        resource = w.resource
        if name is not None:
            resource = ConfigResource(ConfigResourceType.BROKER, name)
        return w.admin.incremental_alter_configs(
            {resource: list(changes)}, validate_only=True, **ALL
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
    ),
    Case(
        "create_topics",
        lambda w: w.admin.create_topics([NewTopic(w.topic, 1, 1)], **ALL),
        (E.TOPIC_ALREADY_EXISTS,),
    ),
    Case(
        "delete_topics", deleted, (E.UNKNOWN_TOPIC_ID, E.UNKNOWN_TOPIC_OR_PARTITION, 0)
    ),
    Case("list_topics", lambda w: w.admin.list_topics(), (0,)),
    Case(
        "describe_topics",
        lambda w: w.admin.describe_topics([w.topic, "no", w.topic_id], **ALL),
        (0, E.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ),
    Case(
        "create_partitions",
        lambda w: w.admin.create_partitions(
            {w.topic: 3, "no": 3}, validate_only=True, **ALL
        ),
        (0, E.UNKNOWN_TOPIC_OR_PARTITION),
    ),
    Case(
        "create_partitions",
        lambda w: w.admin.create_partitions({w.topic: 2}, **ALL),
        (E.INVALID_PARTITIONS,),
    ),
    Case(
        "create_partitions",
        lambda w: w.admin.create_partitions({w.topic: NewPartitions(3, [[99]])}, **ALL),
        (E.INVALID_REPLICA_ASSIGNMENT,),
    ),
    # ---- partitions and replicas
    Case(
        "elect_leaders",
        lambda w: w.admin.elect_leaders("preferred", [w.tp, NOWHERE], **ALL),
        (0, E.UNKNOWN_TOPIC_OR_PARTITION),
    ),
    Case(
        "alter_partition_reassignments",
        lambda w: w.admin.alter_partition_reassignments(
            {w.tp: [w.node], w.other: [99], NOWHERE: [w.node]}, **ALL
        ),
        (0, E.INVALID_REPLICA_ASSIGNMENT, E.UNKNOWN_TOPIC_OR_PARTITION),
    ),
    Case(
        "alter_partition_reassignments",
        lambda w: w.admin.alter_partition_reassignments({w.tp: None}, **ALL),
        (E.NO_REASSIGNMENT_IN_PROGRESS,),
    ),
    Case(
        "list_partition_reassignments",
        lambda w: w.admin.list_partition_reassignments([w.tp]),
        (),
    ),
    Case("describe_log_dirs", lambda w: w.admin.describe_log_dirs(), (0,)),
    Case(
        "describe_replica_log_dirs",
        lambda w: w.admin.describe_replica_log_dirs([(w.tp, w.node)], **ALL),
        (0,),
    ),
    Case(
        "alter_replica_log_dirs",
        lambda w: w.admin.alter_replica_log_dirs({(w.tp, w.node): "/no"}, **ALL),
        (E.LOG_DIR_NOT_FOUND,),
    ),
    Case(
        "list_offsets",
        lambda w: w.admin.list_offsets(
            {w.tp: "latest", NOWHERE: "earliest", w.other: "max_timestamp"}, **ALL
        ),
        (0, E.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ),
    Case(
        "delete_records",
        lambda w: w.admin.delete_records({w.tp: 0, w.other: 11, NOWHERE: 0}, **ALL),
        (0, E.OFFSET_OUT_OF_RANGE, E.UNKNOWN_TOPIC_OR_PARTITION),
    ),
    Case("delete_records", compacted, (E.POLICY_VIOLATION,)),
    # ---- configs
    Case(
        "describe_configs",
        lambda w: w.admin.describe_configs([w.resource, NO_TOPIC], **ALL),
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
    ),
    Case(
        "incremental_alter_configs",
        configs(ConfigChange("retention.ms", "1", ConfigChangeType.APPEND)),
        (E.INVALID_CONFIG,),
    ),
    Case(
        "incremental_alter_configs",
        configs(ConfigChange("broker.id", "1"), name="1"),
        (E.INVALID_REQUEST,),
    ),
    Case(
        "incremental_alter_configs",
        lambda w: w.admin.incremental_alter_configs(
            {NO_TOPIC: [], w.resource: []}, **ALL
        ),
        (E.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ),
    Case("list_config_resources", lambda w: w.admin.list_config_resources(), (0,)),
    # ---- groups
    Case("list_groups", lambda w: w.admin.list_groups(types=["classic"]), (0,)),
    Case(
        "describe_consumer_groups",
        lambda w: w.admin.describe_consumer_groups(["no", w.group], **ALL),
        (E.GROUP_ID_NOT_FOUND, 0),
    ),
    Case(
        "describe_classic_groups",
        lambda w: w.admin.describe_classic_groups(["no", w.group], **ALL),
        (E.GROUP_ID_NOT_FOUND, 0),
    ),
    Case("delete_consumer_groups", deleted_group, (E.GROUP_ID_NOT_FOUND, 0)),
    Case(
        "remove_members_from_consumer_group",
        lambda w: w.admin.remove_members_from_consumer_group(w.group, ["no"], **ALL),
        (E.UNKNOWN_MEMBER_ID,),
    ),
    Case(
        "list_consumer_group_offsets",
        lambda w: w.admin.list_consumer_group_offsets([w.group, "no"], **ALL),
        (0, 0),
    ),
    Case(
        "alter_consumer_group_offsets",
        lambda w: w.admin.alter_consumer_group_offsets(w.group, {w.tp: 1}, **ALL),
        (0,),
    ),
    Case(
        "delete_consumer_group_offsets",
        lambda w: w.admin.delete_consumer_group_offsets(w.group, [w.other], **ALL),
        (0,),
    ),
    Case(
        "delete_consumer_group_offsets",
        lambda w: w.admin.delete_consumer_group_offsets("no", [w.tp], **ALL),
        (E.GROUP_ID_NOT_FOUND,),
    ),
    # ---- share groups and streams groups
    Case(
        "describe_share_groups",
        lambda w: w.admin.describe_share_groups(["no", w.group], **ALL),
        (E.GROUP_ID_NOT_FOUND, E.GROUP_ID_NOT_FOUND),
        real=True,
    ),
    Case(
        "delete_share_groups", deleted_share_group, (E.GROUP_ID_NOT_FOUND, 0), real=True
    ),
    Case(
        "list_share_group_offsets",
        lambda w: w.admin.list_share_group_offsets(["no"], **ALL),
        (0,),
        real=True,
    ),
    Case(
        "alter_share_group_offsets",
        lambda w: w.admin.alter_share_group_offsets(
            "share", {NOWHERE: 0, w.tp: 0}, **ALL
        ),
        (E.UNKNOWN_TOPIC_OR_PARTITION, 0),
        real=True,
    ),
    Case(
        "delete_share_group_offsets",
        lambda w: w.admin.delete_share_group_offsets(w.group, [w.topic], **ALL),
        (E.GROUP_ID_NOT_FOUND,),
        real=True,
    ),
    Case(
        "describe_streams_groups",
        lambda w: w.admin.describe_streams_groups([w.group], **ALL),
        (E.GROUP_ID_NOT_FOUND,),
        real=True,
    ),
    Case(
        "delete_streams_groups",
        lambda w: w.admin.delete_streams_groups(["no-such-group"], **ALL),
        (E.GROUP_ID_NOT_FOUND,),
    ),
    Case(
        "list_streams_group_offsets",
        lambda w: w.admin.list_streams_group_offsets(["no"], **ALL),
        (0,),
    ),
    Case(
        "alter_streams_group_offsets",
        lambda w: w.admin.alter_streams_group_offsets(w.group, {w.tp: 1}, **ALL),
        (0,),
    ),
    Case(
        "delete_streams_group_offsets",
        lambda w: w.admin.delete_streams_group_offsets("no", [w.tp], **ALL),
        (E.GROUP_ID_NOT_FOUND,),
    ),
    # ---- rights, quotas, users, tokens
    Case(
        "create_acls",
        lambda w: w.admin.create_acls([WRONG_ACL, ACL], **ALL),
        (E.INVALID_REQUEST, 0),
    ),
    Case("describe_acls", lambda w: w.admin.describe_acls(), (0,)),
    Case(
        "delete_acls", lambda w: w.admin.delete_acls([AclBindingFilter()], **ALL), (0,)
    ),
    Case(
        "alter_client_quotas",
        lambda w: w.admin.alter_client_quotas(
            {ALICE: {"no": 1.0}, QuotaEntity(user="b"): {"producer_byte_rate": 1.0}},
            validate_only=True,
            **ALL,
        ),
        (E.INVALID_REQUEST, 0),
    ),
    Case("describe_client_quotas", lambda w: w.admin.describe_client_quotas(), ()),
    Case(
        "alter_user_scram_credentials",
        lambda w: w.admin.alter_user_scram_credentials(
            [
                ScramUpsertion("alice", SHA, "secret", 4_096),
                ScramDeletion("nobody", SHA),
                ScramUpsertion("carol", SHA, "secret", 20_000),
            ],
            **ALL,
        ),
        (0, E.RESOURCE_NOT_FOUND, E.UNACCEPTABLE_CREDENTIAL),
    ),
    Case(
        "describe_user_scram_credentials",
        lambda w: w.admin.describe_user_scram_credentials(["nobody"], **ALL),
        (E.RESOURCE_NOT_FOUND,),
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
    # ---- the cluster
    Case("describe_cluster", lambda w: w.admin.describe_cluster(), (0,)),
    Case("describe_features", lambda w: w.admin.describe_features(), (0,)),
    Case(
        "update_features",
        lambda w: w.admin.update_features(
            {"group.version": FeatureUpdate(0, DOWN)}, validate_only=True
        ),
        (0,),
    ),
    Case(
        "update_features",
        lambda w: w.admin.update_features({"no.such": FeatureUpdate(1)}),
        (E.INVALID_UPDATE_VERSION,),
    ),
    Case(
        "describe_metadata_quorum", lambda w: w.admin.describe_metadata_quorum(), (0,)
    ),
    Case(
        "add_raft_voter",
        lambda w: w.admin.add_raft_voter(
            9, UUID(int=9), [RaftEndpoint("CONTROLLER", "localhost", 1)]
        ),
        (E.UNSUPPORTED_VERSION,),
        real=True,
    ),
    Case(
        "remove_raft_voter",
        lambda w: w.admin.remove_raft_voter(9, UUID(int=9)),
        (E.UNSUPPORTED_VERSION,),
        real=True,
    ),
    Case(
        "unregister_broker",
        lambda w: w.admin.unregister_broker(99),
        (E.BROKER_ID_NOT_REGISTERED,),
    ),
    # ---- transactions
    Case("list_transactions", lambda w: w.admin.list_transactions(), (0,)),
    Case(
        "list_transactions",
        lambda w: w.admin.list_transactions(pattern="("),
        (E.INVALID_REGULAR_EXPRESSION,),
    ),
    Case(
        "describe_transactions",
        lambda w: w.admin.describe_transactions(["no", w.transactional_id], **ALL),
        (E.TRANSACTIONAL_ID_NOT_FOUND, 0),
    ),
    Case(
        "describe_producers",
        lambda w: w.admin.describe_producers([NOWHERE, w.tp], **ALL),
        (E.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ),
    Case("abort_transaction", abort, (0,)),
    Case(
        "fence_producers",
        lambda w: w.admin.fence_producers([w.transactional_id], **ALL),
        (0,),
    ),
    Case(
        "force_terminate_transaction",
        lambda w: w.admin.force_terminate_transaction(w.transactional_id),
        (0,),
    ),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[World]:
    """One broker that checks rights, and whose plain listener is for everybody."""
    broker: Broker | Kafka
    if EMBEDDED:
        broker = Broker(first_node_id=1, acls=True)
    else:
        broker = Kafka(brokers=1, acls=True, version="4.3")
    async with (
        broker,
        kafkaio.Client(broker.bootstrap_servers) as client,
        Admin(client) as admin,
        kafkaio.Producer(client) as producer,
        kafkaio.Producer(client, transactional_id="table") as transactional,
    ):
        created = await admin.create_topics([NewTopic("table", 2, 1)])
        for number in range(20):
            await producer.send("table", b"x", partition=number % 2)
        async with transactional.transaction() as tx:
            await tx.send("table", b"x", partition=0)
        topic_id = created["table"].topic_id
        assert topic_id is not None
        world = World(admin, 1, "table", topic_id, "table-group", "table")
        offsets = {world.tp: 0, world.other: 0}
        await admin.alter_consumer_group_offsets(world.group, offsets)
        yield world


def code_of(result: object) -> int:
    return result.code if isinstance(result, BrokerError) else 0


async def codes_of(call: Awaitable[object]) -> tuple[int, ...]:
    """The codes of the items, or of the whole."""
    try:
        results = await call
    except BrokerError as error:
        return (error.code,)
    if isinstance(results, dict):
        for each in results.values():
            assert isinstance(each, BrokerError) or not isinstance(each, KafkaError)
        return tuple(map(code_of, results.values()))
    return (0,)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=f"{case.name}-{number}",
            marks=pytest.mark.not_embedded("it has no such API") if case.real else (),
        )
        for number, case in enumerate(CASES)
    ],
)
async def test_what_items_come_to(world: World, case: Case) -> None:
    codes = await codes_of(case.call(world))
    if case.codes == (0,) and codes:
        assert set(codes) == {0}
    else:
        assert codes == case.codes


def snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


@pytest.mark.not_embedded("it asks Java")
async def test_the_table_has_every_operation_of_java() -> None:
    output = await Toolbox(find_release("4.3")).program(PROGRAM).run()
    assert output.returncode == 0, output.stderr
    names = set(output.lines)
    assert len(names) >= 65
    assert names >= TELEMETRY
    ours = {OTHERS.get(name, snake(name)) for name in names - TELEMETRY}
    assert not {name for name in ours if not hasattr(Admin, name)}
    assert {case.name for case in CASES} == ours - LIFE
