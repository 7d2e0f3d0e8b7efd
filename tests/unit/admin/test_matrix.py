"""One broker, topic or coordinator fails: the other items of an operation do not.

Each cell is an operation on many items against three embedded nodes, of which node 2
fails in one way. What is asserted of all of them: the items of the other nodes have
their results, the call ends within its time, and each error names its own cause.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

import kafkaio
from kafkaio import Admin, AdminErrors, KafkaError, RequestTimeout, TopicPartition
from kafkaio._runtime.clock import now
from kafkaio.admin import (
    ConfigResource,
    ConfigResourceType,
    settled,
)
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker, drop, error, throttle
from kafkaio.testing._handlers import list_offsets

PARTS = [TopicPartition("t", number) for number in range(6)]
GROUPS = [f"g{number}" for number in range(6)]
IDS = [f"x{number}" for number in range(3)]
BROKERS = [ConfigResource(ConfigResourceType.BROKER, str(n)) for n in range(3)]
CONFIG = {"offsets.topic.num.partitions": 6, "transaction.state.log.num.partitions": 6}
LIMIT = 3.0

Ask: TypeAlias = Callable[..., Awaitable[Mapping[Any, Any]]]
#: Each operation, the API of its requests, and which of its items are those of node 2.
OPERATIONS: dict[str, tuple[Callable[[Admin], Ask], str, set[Any]]] = {
    "list_offsets": (
        lambda it: lambda **k: it.list_offsets(dict.fromkeys(PARTS, "latest"), **k),
        "ListOffsets",
        {PARTS[2], PARTS[5]},
    ),
    "delete_records": (
        lambda it: lambda **k: it.delete_records(dict.fromkeys(PARTS, 1), **k),
        "DeleteRecords",
        {PARTS[2], PARTS[5]},
    ),
    "describe_producers": (
        lambda it: lambda **k: it.describe_producers(PARTS, **k),
        "DescribeProducers",
        {PARTS[2], PARTS[5]},
    ),
    "describe_consumer_groups": (
        lambda it: lambda **k: it.describe_consumer_groups(GROUPS, **k),
        "DescribeGroups",
        {"g2", "g5"},
    ),
    "describe_classic_groups": (
        lambda it: lambda **k: it.describe_classic_groups(GROUPS, **k),
        "DescribeGroups",
        {"g2", "g5"},
    ),
    "list_consumer_group_offsets": (
        lambda it: lambda **k: it.list_consumer_group_offsets(GROUPS, **k),
        "OffsetFetch",
        {"g2", "g5"},
    ),
    "lag": (lambda it: lambda **k: it.lag(GROUPS, **k), "OffsetFetch", {"g2", "g5"}),
    "delete_consumer_groups": (
        lambda it: lambda **k: it.delete_consumer_groups(GROUPS, **k),
        "DeleteGroups",
        {"g2", "g5"},
    ),
    "describe_transactions": (
        lambda it: lambda **k: it.describe_transactions(IDS, **k),
        "DescribeTransactions",
        {"x2"},
    ),
    "fence_producers": (
        lambda it: lambda **k: it.fence_producers(IDS, **k),
        "InitProducerId",
        {"x2"},
    ),
    "describe_log_dirs": (
        lambda it: lambda **k: it.describe_log_dirs([0, 1, 2], **k),
        "DescribeLogDirs",
        {2},
    ),
    "describe_configs": (
        lambda it: lambda **k: it.describe_configs(BROKERS, **k),
        "DescribeConfigs",
        {BROKERS[2]},
    ),
}
#: Those that ask every broker, and raise with the results of the others.
LISTS: dict[str, tuple[Callable[[Admin], Ask], str]] = {
    "list_groups": (lambda it: it.list_groups, "ListGroups"),  # type: ignore[dict-item]
    "list_transactions": (
        lambda it: it.list_transactions,  # type: ignore[dict-item]
        "ListTransactions",
    ),
}
#: Whose brokers are named by their ids: nobody takes the place of node 2.
BY_ID = {"describe_log_dirs", "describe_configs"}


@asynccontextmanager
async def scene() -> AsyncIterator[tuple[Broker, Admin]]:
    """Nodes that lead two partitions each, and coordinate groups and transactions."""
    async with Broker(nodes=3, topics={"t": 6, "gone": 2}, config=CONFIG) as broker:
        for tp in PARTS:
            broker.control.move_leader(tp, tp.partition % 3)
        async with Admin(broker.bootstrap_servers) as admin:
            for group in GROUPS:
                await admin.alter_consumer_group_offsets(group, {PARTS[0]: 1})
        async with kafkaio.Producer(broker.bootstrap_servers) as producer:
            for tp in PARTS:
                for _ in range(2):
                    await producer.send("t", b"v", partition=tp.partition)
        for name in IDS:
            async with (
                kafkaio.Producer(
                    broker.bootstrap_servers, transactional_id=name
                ) as producer,
                producer.transaction() as transaction,
            ):
                await transaction.send("t", b"v", partition=0)
        for number, group in enumerate(GROUPS):
            broker.control.move_coordinator(group, number % 3)
        for number, name in enumerate(IDS):
            broker.control.move_transaction_coordinator(name, number % 3)
        async with Admin(broker.bootstrap_servers) as admin:
            yield broker, admin


async def asked(ask: Ask, **more: Any) -> tuple[dict[Any, Any], dict[Any, KafkaError]]:
    """Ask within the limit; what was found, and what failed."""
    began = now()
    results = await settled(ask(timeout=LIMIT, **more))
    assert now() - began < LIMIT + 0.5
    return results.found, results.failed


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_node_hangs(name: str) -> None:
    make, _, items = OPERATIONS[name]
    async with scene() as (broker, admin):
        broker.control.pause(2)
        found, failed = await asked(make(admin))
        broker.control.resume(2)
    assert set(failed) == items
    assert found
    for told in failed.values():
        assert isinstance(told, RequestTimeout)
        # Broker 2, by its id or its address, is what the error names.
        assert re.search(r"within [\d.]+ s; .*(broker 2|negotiate versions)", str(told))


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_node_is_gone(name: str) -> None:
    make, _, items = OPERATIONS[name]
    async with scene() as (broker, admin):
        if "delete" not in name:
            await asked(make(admin))
        await broker.control.kill(2)
        found, failed = await asked(make(admin))
        await broker.control.restart(2)
    assert set(failed) == (items if name in BY_ID else set())
    assert found
    for told in failed.values():
        assert "broker 2 is not in the cluster" in str(told)


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_request_is_never_answered(name: str) -> None:
    make, api, items = OPERATIONS[name]
    async with scene() as (broker, admin):
        broker.faults.on(api, drop(), node=2)
        if name == "describe_consumer_groups":
            broker.faults.on("ConsumerGroupDescribe", drop(), node=2)
        found, failed = await asked(make(admin))
    assert set(failed) == items
    assert found
    for told in failed.values():
        assert "broker 2" in str(told)


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_node_throttles(name: str) -> None:
    make, api, items = OPERATIONS[name]
    async with scene() as (broker, admin):
        broker.faults.on(api, throttle(60), node=2)
        if name == "describe_consumer_groups":
            broker.faults.on("ConsumerGroupDescribe", throttle(60), node=2)
        await asked(make(admin))
        found, failed = await asked(make(admin))
    if "delete" not in name:  # what is gone is not there the second time
        assert set(failed) == items
        assert found
    for item in items & failed.keys():
        assert re.search(r"broker 2 \S+ throttles this client", str(failed[item]))


@pytest.mark.parametrize("name", OPERATIONS)
async def test_leaders_and_coordinators_move(name: str) -> None:
    make, _, _ = OPERATIONS[name]
    async with scene() as (broker, admin):
        if "delete" not in name:
            await asked(make(admin))
        for tp in (PARTS[2], PARTS[5]):
            broker.control.move_leader(tp, 0)
        for group in ("g2", "g5"):
            broker.control.move_coordinator(group, 0)
        broker.control.move_transaction_coordinator("x2", 0)
        found, failed = await asked(make(admin))
    assert found
    assert not failed


REFUSED = {
    "list_offsets": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "delete_records": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "describe_producers": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "list_consumer_group_offsets": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    "fence_producers": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    "describe_log_dirs": ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}


@pytest.mark.parametrize("name", REFUSED)
async def test_rights_are_refused(name: str) -> None:
    make, api, items = OPERATIONS[name]
    async with scene() as (broker, admin):
        broker.faults.on(api, error(REFUSED[name]), node=2)
        began = now()
        found, failed = await asked(make(admin))
        assert now() - began < 1
    assert set(failed) == items
    assert found
    for told in failed.values():
        assert isinstance(told, kafkaio.AuthorizationError)
        assert told.operation


@pytest.mark.parametrize("name", ["list_offsets", "describe_producers"])
async def test_a_topic_is_gone(name: str) -> None:
    gone = [TopicPartition("gone", number) for number in range(2)]
    parts = [*PARTS, *gone]
    async with scene() as (broker, admin):

        def ask(**more: Any) -> Awaitable[Mapping[Any, Any]]:
            if name == "list_offsets":
                return admin.list_offsets(dict.fromkeys(parts, "latest"), **more)
            return admin.describe_producers(parts, **more)

        assert not (await asked(ask))[1]
        async with Admin(broker.bootstrap_servers) as other:
            await other.delete_topics(["gone"])
        found, failed = await asked(ask)
        assert set(found) == set(PARTS)
        assert set(failed) == set(gone)
        for told in failed.values():
            assert "gone" in str(told)
        # Asking for it has not brought it back.
        assert "gone" not in broker.topics


@pytest.mark.parametrize("name", LISTS)
async def test_a_list_has_what_the_others_said(name: str) -> None:
    make, api = LISTS[name]
    async with scene() as (broker, admin):
        broker.faults.on(api, drop(), node=2)
        began = now()
        with pytest.raises(RequestTimeout, match="broker 2 has not answered") as told:
            await make(admin)(timeout=LIMIT)
        assert now() - began < LIMIT + 0.5
    assert told.value.item == 2
    assert set(told.value.results) == {0, 1}
    assert all(told.value.results.values())


async def test_a_log_without_an_end_resets_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serve = list_offsets.handle._serve

    async def without_end(context: Any) -> Any:
        answer: Any = await serve(context)
        if context.request.topics[0].partitions[0].timestamp == -1:
            for partition in answer.topics[0].partitions:
                partition.offset = -1
        return answer

    async with scene() as (broker, admin):
        monkeypatch.setattr(list_offsets.handle, "_serve", without_end)
        with pytest.raises(kafkaio.errors.ProtocolError, match=r"t-0 .* no end"):
            await admin.reset_offsets("g0", "latest")
        assert broker.control.committed("g0", PARTS[0]) == 1


async def test_groups_of_kip_848_do_not_wait_for_a_coordinator_that_hangs() -> None:
    async with scene() as (broker, admin):
        async with kafkaio.Consumer(
            broker.bootstrap_servers,
            topics=["t"],
            group_id="new",
            group_protocol="consumer",
            auto_offset_reset="earliest",
        ) as consumer:
            await consumer.poll()
        broker.control.move_coordinator("new", 0)
        broker.faults.on("DescribeGroups", drop(), node=2)
        broker.faults.on("ConsumerGroupDescribe", drop(), node=2)
        began = now()
        found, failed = await asked(
            lambda **k: admin.describe_consumer_groups(["g0", "g2", "new"], **k)
        )
        assert now() - began < LIMIT + 0.5
    assert set(found) == {"g0", "new"}
    assert found["new"].group_epoch
    assert set(failed) == {"g2"}


async def test_what_hangs_in_the_partitions_of_the_others_is_found() -> None:
    async with scene() as (broker, admin):
        producer = kafkaio.Producer(broker.bootstrap_servers, transactional_id="hangs")
        broker.control.delay_markers(3600)
        async with producer, producer.transaction() as transaction:
            for number in (0, 1):
                await transaction.send("t", b"v", partition=number)
        broker.control.skip_time(1800)
        broker.faults.on("DescribeProducers", drop(), node=2)
        with pytest.raises((RequestTimeout, AdminErrors)) as told:
            await admin.find_hanging_transactions(
                topics=["t"], max_transaction_timeout_ms=1000, timeout=LIMIT
            )
        failed = getattr(told.value, "exceptions", [told.value])
        assert {one.item for one in failed} == {PARTS[2], PARTS[5]}
        assert set(told.value.results) <= {PARTS[0], PARTS[1]}
