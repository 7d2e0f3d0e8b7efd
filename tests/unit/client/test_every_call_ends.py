"""Every public coroutine method ends within its limit of time, and says why.

The brokers accept connections and answer nothing, or they answer and demand that the
client pauses for 24 days. Time is virtual.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID

import anyio
import pyarrow as pa
import pytest

from kafkaio import admin as types
from kafkaio._client import Client, Leader
from kafkaio._config import ClientConfig, ConsumerConfig, ProducerConfig
from kafkaio._consumer import Consumer
from kafkaio._producer import Producer
from kafkaio._records.batch import encode_batch, read_batches
from kafkaio._records.raw import RawBatch
from kafkaio.admin import Admin
from kafkaio.errors import KafkaError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol.messages.api_versions import ApiVersionsRequest
from kafkaio.protocol.messages.list_groups import ListGroupsRequest
from kafkaio.testing import Broker, throttle
from kafkaio.types import TopicPartition

#: Seconds that each call has, and what it may take beyond.
LIMIT, MARGIN = 3.0, 0.5
DAYS = (2**31 - 1) / 1000
T = TopicPartition("t", 0)
G = ["g"]
ID = UUID(int=7)
TABLE = pa.table({"value": pa.array([b"1"])})
RAW = RawBatch(
    T, *read_batches(encode_batch([(0, None, b"1", ())], base_offset=0)), (0, 1), 7
)
TOPIC = types.ConfigResource(types.ConfigResourceType.TOPIC, "t")
ACL = types.AclBinding(
    types.AclResourceType.TOPIC, "t", "User:u", types.AclOperation.READ
)
WITHIN: dict[str, Any] = {"timeout": LIMIT}

Call = Callable[[Any], Awaitable[object]]

CLIENT: dict[str, Call] = {
    "close": lambda it: it.close(**WITHIN),
    "committed": lambda it: it.committed("g", [T], **WITHIN),
    "offsets": lambda it: it.offsets({T: "latest"}, **WITHIN),
    "partitions_for": lambda it: it.partitions_for("t", **WITHIN),
    "request": lambda it: it.request(ListGroupsRequest(), Leader(T), **WITHIN),
    "find_topics": lambda it: it.find_topics("t", **WITHIN),
}
PRODUCER: dict[str, Call] = {
    "client_instance_id": lambda it: it.client_instance_id(LIMIT),
    "close": lambda it: it.close(**WITHIN),
    "enqueue": lambda it: it.enqueue("other", b"1"),
    "enqueue_raw": lambda it: it.enqueue_raw(RAW, "other", 0),
    "enqueue_table": lambda it: it.enqueue_table("other", TABLE),
    "flush": lambda it: queued(it, it.flush(LIMIT - 1)),
    "partitions_for": lambda it: it.partitions_for("other", LIMIT),
    "send": lambda it: it.send("t", b"1"),
    "send_many": lambda it: it.send_many("t", [b"1"]),
    "send_raw": lambda it: it.send_raw(RAW, "t", 0),
    "send_table": lambda it: it.send_table("t", TABLE),
}
CONSUMER: dict[str, Call] = {
    "beginning_offsets": lambda it: it.beginning_offsets([T], LIMIT),
    "client_instance_id": lambda it: it.client_instance_id(LIMIT),
    "close": lambda it: it.close(LIMIT),
    "committed": lambda it: it.committed([T], LIMIT),
    "end_offsets": lambda it: it.end_offsets([T], LIMIT),
    "lag": lambda it: it.lag(T, timeout=LIMIT),
    "offsets_for_times": lambda it: it.offsets_for_times({T: 1}, LIMIT),
    "partitions_for_topic": lambda it: it.partitions_for_topic("t", LIMIT),
    "poll": lambda it: it.poll(timeout=LIMIT),
    "position": lambda it: sought(it, it.position(T, LIMIT)),
    "read_to_end": lambda it: it.read_to_end(LIMIT),
    "topics": lambda it: it.topics(LIMIT),
}
ADMIN: dict[str, Call] = {
    "abort_transaction": lambda it: it.abort_transaction(T, 0, **WITHIN),
    "add_raft_voter": lambda it: it.add_raft_voter(
        1, ID, [types.RaftEndpoint("CONTROLLER", "h", 1)], **WITHIN
    ),
    "alter_client_quotas": lambda it: it.alter_client_quotas(
        {types.QuotaEntity(user="u"): {"producer_byte_rate": 1.0}}, **WITHIN
    ),
    "alter_consumer_group_offsets": lambda it: it.alter_consumer_group_offsets(
        "g", {T: 0}, **WITHIN
    ),
    "alter_partition_reassignments": lambda it: it.alter_partition_reassignments(
        {T: [0]}, **WITHIN
    ),
    "alter_replica_log_dirs": lambda it: it.alter_replica_log_dirs(
        {(T, 0): "/x"}, **WITHIN
    ),
    "alter_share_group_offsets": lambda it: it.alter_share_group_offsets(
        "g", {T: 0}, **WITHIN
    ),
    "alter_streams_group_offsets": lambda it: it.alter_streams_group_offsets(
        "g", {T: 0}, **WITHIN
    ),
    "alter_user_scram_credentials": lambda it: it.alter_user_scram_credentials(
        [types.ScramDeletion("u", types.ScramMechanism.SCRAM_SHA_256)], **WITHIN
    ),
    "client_instance_id": lambda it: it.client_instance_id(LIMIT),
    "close": lambda it: it.close(**WITHIN),
    "create_acls": lambda it: it.create_acls([ACL], **WITHIN),
    "create_delegation_token": lambda it: it.create_delegation_token(**WITHIN),
    "create_partitions": lambda it: it.create_partitions({"t": 9}, **WITHIN),
    "create_topics": lambda it: it.create_topics([types.NewTopic("n", 1, 1)], **WITHIN),
    "delete_acls": lambda it: it.delete_acls([types.AclBindingFilter()], **WITHIN),
    "delete_consumer_group_offsets": lambda it: it.delete_consumer_group_offsets(
        "g", [T], **WITHIN
    ),
    "delete_consumer_groups": lambda it: it.delete_consumer_groups(G, **WITHIN),
    "delete_records": lambda it: it.delete_records({T: 0}, **WITHIN),
    "delete_share_group_offsets": lambda it: it.delete_share_group_offsets(
        "g", ["t"], **WITHIN
    ),
    "delete_share_groups": lambda it: it.delete_share_groups(G, **WITHIN),
    "delete_streams_group_offsets": lambda it: it.delete_streams_group_offsets(
        "g", [T], **WITHIN
    ),
    "delete_streams_groups": lambda it: it.delete_streams_groups(G, **WITHIN),
    "delete_topics": lambda it: it.delete_topics(["t"], **WITHIN),
    "describe_acls": lambda it: it.describe_acls(**WITHIN),
    "describe_classic_groups": lambda it: it.describe_classic_groups(G, **WITHIN),
    "describe_client_quotas": lambda it: it.describe_client_quotas(**WITHIN),
    "describe_cluster": lambda it: it.describe_cluster(**WITHIN),
    "describe_configs": lambda it: it.describe_configs([TOPIC], **WITHIN),
    "describe_consumer_groups": lambda it: it.describe_consumer_groups(G, **WITHIN),
    "describe_delegation_token": lambda it: it.describe_delegation_token(**WITHIN),
    "describe_features": lambda it: it.describe_features(**WITHIN),
    "describe_log_dirs": lambda it: it.describe_log_dirs(**WITHIN),
    "describe_metadata_quorum": lambda it: it.describe_metadata_quorum(**WITHIN),
    "describe_producers": lambda it: it.describe_producers([T], **WITHIN),
    "describe_replica_log_dirs": lambda it: it.describe_replica_log_dirs(
        [(T, 0)], **WITHIN
    ),
    "describe_share_groups": lambda it: it.describe_share_groups(G, **WITHIN),
    "describe_streams_groups": lambda it: it.describe_streams_groups(G, **WITHIN),
    "describe_topics": lambda it: it.describe_topics(["t"], **WITHIN),
    "describe_transactions": lambda it: it.describe_transactions(["x"], **WITHIN),
    "describe_user_scram_credentials": lambda it: it.describe_user_scram_credentials(
        **WITHIN
    ),
    "elect_leaders": lambda it: it.elect_leaders("preferred", [T], **WITHIN),
    "expire_delegation_token": lambda it: it.expire_delegation_token(b"h", **WITHIN),
    "fence_producers": lambda it: it.fence_producers(["x"], **WITHIN),
    "find_hanging_transactions": lambda it: it.find_hanging_transactions(
        topics="t", **WITHIN
    ),
    "force_terminate_transaction": lambda it: it.force_terminate_transaction(
        "x", **WITHIN
    ),
    "incremental_alter_configs": lambda it: it.incremental_alter_configs(
        {TOPIC: [types.ConfigChange("retention.ms", "1")]}, **WITHIN
    ),
    "lag": lambda it: it.lag(G, **WITHIN),
    "list_config_resources": lambda it: it.list_config_resources(**WITHIN),
    "list_consumer_group_offsets": lambda it: it.list_consumer_group_offsets(
        G, **WITHIN
    ),
    "list_groups": lambda it: it.list_groups(**WITHIN),
    "list_offsets": lambda it: it.list_offsets({T: "latest"}, **WITHIN),
    "list_partition_reassignments": lambda it: it.list_partition_reassignments(
        **WITHIN
    ),
    "list_share_group_offsets": lambda it: it.list_share_group_offsets(G, **WITHIN),
    "list_streams_group_offsets": lambda it: it.list_streams_group_offsets(G, **WITHIN),
    "list_topics": lambda it: it.list_topics(**WITHIN),
    "list_transactions": lambda it: it.list_transactions(**WITHIN),
    "remove_members_from_consumer_group": lambda it: (
        it.remove_members_from_consumer_group("g", **WITHIN)
    ),
    "remove_raft_voter": lambda it: it.remove_raft_voter(1, ID, **WITHIN),
    "renew_delegation_token": lambda it: it.renew_delegation_token(b"h", **WITHIN),
    "reset_offsets": lambda it: it.reset_offsets("g", "earliest", **WITHIN),
    "unregister_broker": lambda it: it.unregister_broker(1, **WITHIN),
    "unregister_controller": lambda it: it.unregister_controller(1, **WITHIN),
    "update_features": lambda it: it.update_features(
        {"group.version": types.FeatureUpdate(1)}, **WITHIN
    ),
    "wait_for_topics": lambda it: it.wait_for_topics("n", **WITHIN),
}
CALLS = {Client: CLIENT, Producer: PRODUCER, Consumer: CONSUMER, Admin: ADMIN}
#: Methods with tests of their own: `start` below; what else the docstrings say.
APART = {
    Consumer: {"commit", "rewind", "run", "start"},
    Producer: {"start"},
    Client: {"start"},
    Admin: {"start"},
}
#: What ends without an error, or needs no broker.
QUIET = {
    *("close", "poll", "enqueue", "enqueue_table", "client_instance_id"),
    *("add_raft_voter", "remove_raft_voter"),  # the embedded broker has no quorum
}
CASES = [
    pytest.param(
        kind,
        name,
        id=f"{kind.__name__}.{name}",
    )
    for kind, calls in CALLS.items()
    for name in calls
]


async def queued(producer: Producer, flush: Awaitable[object]) -> object:
    await producer.enqueue("t", b"1")
    return await flush


async def sought(consumer: Consumer, position: Awaitable[object]) -> object:
    consumer.seek_to_end(T)
    return await position


def coroutines(kind: type) -> set[str]:
    return {
        name
        for name, method in inspect.getmembers(kind, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize("kind", CALLS)
def test_no_method_is_left_out(kind: type) -> None:
    assert set(CALLS[kind]) | APART[kind] == coroutines(kind)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    topics = {"t": 2, "other": 1}
    made = Broker(nodes=2, topics=topics, telemetry=True, memory_transport=True)
    async with made as broker:
        yield broker


def made(kind: type, broker: Broker) -> Any:
    """A client of a kind that is not started."""
    options: dict[str, Any] = {
        "request_timeout_ms": 1_000,
        "default_api_timeout_ms": int(LIMIT * 1000),
        "log": False,
    }
    servers = broker.bootstrap_servers
    if kind is Producer:
        options |= {"delivery_timeout_ms": int(LIMIT * 1000), "linger_ms": 0}
        options |= {"max_block_ms": int(LIMIT * 1000)}
        return Producer.from_config(
            ProducerConfig.of(servers, options), dial=broker.dial
        )
    if kind is Consumer:
        return Consumer.from_config(
            ConsumerConfig.of(servers, {**options, "group_id": "g"}),
            dial=broker.dial,
            assign=[T],
        )
    return kind.from_config(ClientConfig.of(servers, options), dial=broker.dial)  # type: ignore[attr-defined]


def deafen(broker: Broker) -> None:
    for node_id in broker.nodes:
        broker.control.pause(node_id)


async def throttled(broker: Broker, using: Any) -> None:
    """Let each answer demand a pause, and pause each connection that is open."""
    await anyio.sleep(0.1)  # what the start has sent is answered
    for api in ApiKey:
        broker.faults.on(api, throttle(DAYS))
    cluster = getattr(using, "_cluster", None) or using._core.cluster
    for connection in list(cluster._pool._open.values()):
        await connection.call(ApiVersionsRequest(), timeout=1)


def text_of(error: BaseException) -> str:
    """All that is told of an error: its text, its causes, its parts."""
    parts = error.exceptions if isinstance(error, ExceptionGroup) else ()
    told = [str(error), *map(text_of, parts), *getattr(error, "__notes__", ())]
    return " | ".join(told)


async def ended(kind: type, name: str, using: Any) -> str:
    """Call a method; what it raised, which must be in time."""
    began = anyio.current_time()
    try:
        async with asyncio.timeout(10 * LIMIT):
            await CALLS[kind][name](using)
    except (KafkaError, ExceptionGroup) as error:
        told = text_of(error)
    else:
        told = ""
    assert anyio.current_time() - began <= LIMIT + MARGIN, told
    return told


@pytest.mark.parametrize(("kind", "name"), CASES)
async def test_brokers_that_do_not_answer(
    broker: Broker, kind: type, name: str
) -> None:
    async with made(kind, broker) as using:
        deafen(broker)
        told = await ended(kind, name, using)
        if name not in QUIET:
            assert "broker " in told or "127.0.0.1:" in told, told


@pytest.mark.parametrize(("kind", "name"), CASES)
async def test_brokers_that_throttle(broker: Broker, kind: type, name: str) -> None:
    async with made(kind, broker) as using:
        await throttled(broker, using)
        told = await ended(kind, name, using)
        if name not in QUIET:
            assert "throttles this client" in told, told


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("how", ["deaf", "throttled"])
async def test_start(broker: Broker, kind: type, how: str) -> None:
    if how == "deaf":
        deafen(broker)
    else:
        for api in ApiKey:
            broker.faults.on(api, throttle(DAYS))
    using = made(kind, broker)
    began = anyio.current_time()
    with pytest.raises(KafkaError, match=r"127\.0\.0\.1:") as caught:
        await using.start(LIMIT)
    assert anyio.current_time() - began <= LIMIT + MARGIN
    assert how == "deaf" or "throttles this client" in str(caught.value)
    await using.close()
