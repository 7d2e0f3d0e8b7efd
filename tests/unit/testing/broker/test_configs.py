"""Configs of topics, brokers and groups: described, refused, stored, in effect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages import (
    alter_configs as whole,
    incremental_alter_configs as single,
)
from kafkaio.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from kafkaio.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaio.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from kafkaio.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kafkaio.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaio.testing import Broker, GroupConfig
from kafkaio.testing._broker.settings import Setting, mismatch
from tests.unit.testing.broker.calls import Caller, batch, connect, produced, started

TOPIC, BROKER, GROUP = 2, 4, 32
NONE = ErrorCode.NONE
INVALID_CONFIG = ErrorCode.INVALID_CONFIG
INVALID_REQUEST = ErrorCode.INVALID_REQUEST
INVALID_TOPIC = ErrorCode.INVALID_TOPIC_EXCEPTION
UNKNOWN_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
RETENTION = ("retention.ms", "5")
MIN_ISR = ("min.insync.replicas", "1")
SESSION = "consumer.session.timeout.ms"

Asked = tuple[int, str, Sequence[tuple[str, str | None]]]

#: Resources of one request with their configs, and the errors of both APIs.
REFUSED: list[tuple[list[Asked], list[ErrorCode]]] = [
    ([(TOPIC, "t", [RETENTION]), (TOPIC, "t", [])], [INVALID_REQUEST] * 2),
    ([(TOPIC, "t", [RETENTION, RETENTION])], [INVALID_REQUEST]),
    ([(TOPIC, "t", [("retention.ms", None)])], [INVALID_REQUEST]),
    ([(TOPIC, "", [RETENTION])], [INVALID_REQUEST]),
    ([(TOPIC, "a/b", [("retention.ms", "soon")])], [INVALID_TOPIC]),
    ([(TOPIC, "none", [("retention.ms", "soon")])], [INVALID_CONFIG]),
    ([(TOPIC, "none", [RETENTION])], [UNKNOWN_TOPIC]),
    ([(BROKER, "1", [])], [INVALID_REQUEST]),
    ([(BROKER, "", [MIN_ISR]), (BROKER, "0", [])], [NONE] * 2),
    ([(GROUP, "", [])], [INVALID_REQUEST]),
    ([(BROKER, "0", [("num.partitions", "3")])], [INVALID_REQUEST]),
    ([(BROKER, "", [MIN_ISR, ("advertised.listeners", "x")])], [INVALID_REQUEST]),
    ([(BROKER, "0", [("listeners", "PLAINTEXT://:1")])], [INVALID_REQUEST]),
    ([(BROKER, "0", [("message.max.bytes", "much")])], [INVALID_REQUEST]),
    ([(BROKER, "0", [("message.max.bytes", None)])], [INVALID_REQUEST]),
    ([(BROKER, "0", [("message.max.bytes", "-1")])], [INVALID_REQUEST]),
    ([(BROKER, "0", [("log.cleanup.policy", "burn")])], [INVALID_REQUEST]),
    ([(BROKER, "0", [("ssl.key.password", "x")])], [INVALID_REQUEST]),
    ([(BROKER, "", [MIN_ISR, ("ssl.client.auth", "none")])], [INVALID_REQUEST]),
    ([(BROKER, "0", [("num.io.threads", "17")])], [INVALID_REQUEST]),
    ([(BROKER, "0", [("num.io.threads", "16")])], [NONE]),
    ([(BROKER, "0", [("log.cleaner.threads", "2")])], [NONE]),
    ([(BROKER, "0", [("log.cleaner.dedupe.buffer.size", "9")])], [INVALID_REQUEST]),
    ([(BROKER, "0", [("no.such.config", "1")])], [NONE]),
    ([(BROKER, "0", [MIN_ISR])], [INVALID_CONFIG]),
    ([(GROUP, "g", [("no.such.config", "1")])], [INVALID_CONFIG]),
    ([(GROUP, "g", [("share.auto.offset.reset", "by_duration:P1D")])], [NONE]),
    ([(GROUP, "g", [("share.auto.offset.reset", "by_duration:P")])], [INVALID_CONFIG]),
    ([(GROUP, "g", [("streams.num.standby.replicas", "3")])], [INVALID_CONFIG]),
    ([(GROUP, "g", [(SESSION, "1")])], [INVALID_CONFIG]),
    ([(GROUP, "g", [(SESSION, "60001")])], [INVALID_CONFIG]),
    ([(GROUP, "g", [(SESSION, "60000")]), (9, "x", [])], [NONE, INVALID_REQUEST]),
]


def resources(api: ModuleType, asked: list[Asked]) -> list[Any]:
    """The resources of a request in the form of one of the two APIs."""
    return [
        api.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[api.AlterableConfig(name=n, value=v) for n, v in new],
        )
        for kind, name, new in asked
    ]


@pytest.mark.parametrize(("asked", "codes"), REFUSED)
async def test_configs_that_cannot_be_set(
    asked: list[Asked], codes: list[ErrorCode]
) -> None:
    async with started(topics={"t": 1}, nodes=2) as (broker, caller):
        some = single.IncrementalAlterConfigsRequest(resources=resources(single, asked))
        answer = await caller.call(some, 1)
        assert [one.error_code for one in answer.responses] == codes
        all_ = whole.AlterConfigsRequest(resources=resources(whole, asked))
        told = await caller.call(all_, 2)
        assert [one.error_code for one in told.responses] == codes
        assert broker.topics["t"].settings.values == {}
        # As in Kafka, there is no message where there is no error, and one else.
        for asked_once in answer.responses:
            assert (asked_once.error_message is None) == (asked_once.error_code == NONE)
        for asked_whole in told.responses:
            assert (asked_whole.error_message is None) == (
                asked_whole.error_code == NONE
            )


async def described(caller: Caller, *asked: tuple[int, str]) -> list[int]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            for kind, name in asked
        ]
    )
    return [one.error_code for one in (await caller.call(request, 4)).results]


async def test_configs_that_cannot_be_looked_up() -> None:
    async with started(topics={"t": 1}, nodes=2) as (_, caller):
        asked = [(TOPIC, "t"), (TOPIC, ""), (TOPIC, "none"), (BROKER, "1"), (GROUP, "")]
        assert await described(caller, *asked) == [
            NONE,
            INVALID_TOPIC,
            UNKNOWN_TOPIC,
            INVALID_REQUEST,
            INVALID_REQUEST,
        ]
        # A kind of resource that is not there fails the whole request.
        assert await described(caller, (TOPIC, "t"), (9, "x")) == [INVALID_REQUEST] * 2


async def configs_of(
    caller: Caller, kind: int, name: str, *keys: str
) -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (answer,) = (await caller.call(request, 4)).results
    assert (answer.error_code, answer.error_message) == (NONE, "")
    return {one.name: one for one in answer.configs}


async def alter(caller: Caller, kind: int, name: str, config: str, value: str) -> int:
    changed = resources(single, [(kind, name, [(config, value)])])
    request = single.IncrementalAlterConfigsRequest(resources=changed)
    return (await caller.call(request, 1)).responses[0].error_code


async def test_everything_that_kafka_knows_of_brokers_and_groups_is_described() -> None:
    async with started() as (broker, caller):
        found = await configs_of(caller, BROKER, "0")
        assert len(found) == 350
        told = found["group.min.session.timeout.ms"]
        assert (told.value, told.config_source, told.config_type) == ("6000", 5, 3)
        assert told.read_only
        assert not found["log.cleaner.threads"].read_only
        assert found["ssl.key.password"].is_sensitive
        assert (found["node.id"].value, found["node.id"].config_source) == ("0", 4)
        address = f"PLAINTEXT://{broker.bootstrap_servers}"
        assert found["advertised.listeners"].value == address
        # Of the whole cluster, only what was set is told.
        assert list(await configs_of(caller, BROKER, "")) == ["min.insync.replicas"]
        groups = await configs_of(caller, GROUP, "g")
        assert len(groups) == 21
        assert groups["share.auto.offset.reset"].value == "latest"
        synonyms = groups["consumer.session.timeout.ms"].synonyms
        assert [(one.name, one.value, one.source) for one in synonyms] == [
            ("group.consumer.session.timeout.ms", "45000", 5)
        ]


async def test_a_change_of_a_brokers_config_reaches_the_topics() -> None:
    async with started(topics={"t": 1}) as (_, caller):
        for name, value in [("", "300"), ("0", "200")]:
            assert await alter(caller, BROKER, name, "message.max.bytes", value) == NONE
        told = (await configs_of(caller, TOPIC, "t"))["max.message.bytes"]
        assert (told.value, told.config_source) == ("200", 2)
        assert [(one.value, one.source) for one in told.synonyms] == [
            ("200", 2),
            ("300", 3),
            ("1048588", 5),
        ]
        large = batch([bytes(200)])
        refused = await produced(caller, "t", 0, large)
        assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert await alter(caller, TOPIC, "t", "max.message.bytes", "900") == NONE
        assert (await produced(caller, "t", 0, large)).error_code == NONE


async def test_hours_of_retention_are_described_in_milliseconds() -> None:
    config = {"log.retention.hours": 2, "log.roll.ms": 5000}
    async with started(topics={"t": 1}, config=config) as (broker, caller):
        found = await configs_of(caller, TOPIC, "t", "retention.ms", "segment.ms")
        values = {name: one.value for name, one in found.items()}
        assert values == {"retention.ms": "7200000", "segment.ms": "5000"}
        log = broker.topics["t"].settings.log_config
        assert (log.retention_ms, log.segment_ms) == (7_200_000, 5000)


async def test_cluster_configs_can_be_removed() -> None:
    async with started() as (_, caller):
        assert await alter(caller, BROKER, "", "log.cleaner.threads", "2") == NONE
        changed = resources(single, [(BROKER, "", [("log.cleaner.threads", None)])])
        changed[0].configs[0].config_operation = 1
        request = single.IncrementalAlterConfigsRequest(resources=changed)
        assert (await caller.call(request, 1)).responses[0].error_code == NONE
        told = (await configs_of(caller, BROKER, "0"))["log.cleaner.threads"]
        assert (told.value, told.config_source) == ("1", 5)


async def test_an_unknown_config_is_stored_as_sensitive() -> None:
    async with started() as (_, caller):
        assert await alter(caller, BROKER, "0", "my.plugin.key", "word") == NONE
        told = (await configs_of(caller, BROKER, "0"))["my.plugin.key"]
        assert (told.value, told.is_sensitive, told.config_source) == (None, True, 2)


async def heartbeat(caller: Caller, group: str) -> int:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    answer = await caller.call(request, 1)
    assert answer.error_code == NONE
    return answer.heartbeat_interval_ms


async def test_a_groups_config_reaches_its_members() -> None:
    async with started(topics={"t": 1}) as (broker, caller):
        assert await heartbeat(caller, "g") == 5000
        for name, value in [
            ("consumer.heartbeat.interval.ms", "7000"),
            ("consumer.session.timeout.ms", "50000"),
        ]:
            assert await alter(caller, GROUP, "g", name, value) == NONE
        assert await heartbeat(caller, "g") == 7000
        assert await heartbeat(caller, "other") == 5000
        broker.control.skip_time(47)
        assert broker.control.members("g") == ["m"]
        assert broker.control.members("other") == []
        broker.control.skip_time(4)
        assert broker.control.members("g") == []


async def test_static_configs_have_an_effect() -> None:
    config: dict[str, str | float] = {
        "num.partitions": 3,
        "default.replication.factor": "2",
        "auto.create.topics.enable": False,
        "group.min.session.timeout.ms": "100",
        "group.max.session.timeout.ms": "200",
        "offsets.topic.num.partitions": 7,
        "broker.rack": "north",
        "log.cleaner.threads": 4,
        "my.own": "1",
    }
    async with started(nodes=2, config=config) as (broker, caller):
        free = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1)
        made = await caller.call(CreateTopicsRequest(topics=[free]), 7)
        assert made.topics[0].error_message is None
        partitions = broker.topics["t"].partitions
        assert [len(one.replicas) for one in partitions] == [2, 2, 2]
        wish = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
        found = await caller.call(wish, 12)
        assert found.topics[0].error_code == UNKNOWN_TOPIC
        assert [one.rack for one in found.brokers] == ["north"] * 2
        assert list(broker.topics) == ["t"]
        node = broker.nodes[broker.control.coordinator("g")]
        coordinator = await connect(broker, node.node_id)
        for timeout, code in [(99, ErrorCode.INVALID_SESSION_TIMEOUT), (150, NONE)]:
            join = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=timeout,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range")],
            )
            assert (await coordinator.call(join, 1)).error_code == code
        assert len(broker.topics["__consumer_offsets"].partitions) == 7
        told = await configs_of(caller, BROKER, "0")
        threads = told["log.cleaner.threads"]
        assert (threads.value, threads.config_source) == ("4", 4)
        assert told["my.own"].config_source == 4


@pytest.mark.parametrize(
    "config",
    [
        {"num.partitions": "many"},
        {"num.partitions": 0},
        {"auto.create.topics.enable": "perhaps"},
        {"listeners": "SSL://:9092"},
        {"listeners": "localhost"},
        {"advertised.listeners": "PLAINTEXT://localhost:99999"},
    ],
)
def test_invalid_static_configs(config: dict[str, str | float]) -> None:
    with pytest.raises(ValueError, match=next(iter(config))):
        Broker(config=config)


async def test_listeners_set_the_addresses_of_the_nodes() -> None:
    config: dict[str, str | float] = {
        "listeners": "CONTROLLER://:9093,PLAINTEXT://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://kafka.example:19092",
        "node.id": 5,
    }
    async with Broker(nodes=2, config=config) as broker:
        assert list(broker.nodes) == [5, 6]
        assert broker.bootstrap_servers == "kafka.example:19092,kafka.example:19093"


async def test_settings_of_groups_are_described_under_kafkas_names() -> None:
    groups = GroupConfig(min_session_timeout=0.5, migration_policy="upgrade")
    async with started(groups=groups) as (_, caller):
        told = await configs_of(caller, BROKER, "0")
        session = told["group.min.session.timeout.ms"]
        assert (session.value, session.config_source) == ("500", 4)
        assert told["group.consumer.migration.policy"].value == "upgrade"
        assert told["group.max.session.timeout.ms"].config_source == 5


async def test_dynamic_configs_survive_a_restart(tmp_path: Path) -> None:
    async with started(data_dir=tmp_path) as (_, caller):
        assert await alter(caller, GROUP, "g", SESSION, "50000") == NONE
        assert await alter(caller, BROKER, "", "message.max.bytes", "300") == NONE
    async with started(data_dir=tmp_path, topics={"t": 1}) as (_, caller):
        assert (await configs_of(caller, GROUP, "g"))[SESSION].value == "50000"
        limit = (await configs_of(caller, TOPIC, "t"))["max.message.bytes"]
        assert (limit.value, limit.config_source) == ("300", 3)


@pytest.mark.parametrize(
    ("setting", "good", "bad"),
    [
        (
            Setting("int", "1", least=1),
            ["1", " 7 "],
            ["0", "x", "", "1_0", "2147483648"],
        ),
        (Setting("short", "1"), ["32767"], ["32768"]),
        (Setting("long", "1", most=9), ["-9"], ["10", "1.5"]),
        (Setting("double", "1", least=0, most=1), ["0.5", "1"], ["1.1", "x"]),
        (Setting("boolean", "true"), ["true", "FALSE"], ["1", ""]),
        (Setting("list", "a", ("a", "b")), ["a", "b, a", ""], ["c", "a,"]),
        (Setting("string", "a", ("a", "b")), ["b"], ["c", ""]),
        (Setting("string", None), ["", "x"], []),
        (
            Setting("string", "latest", ("latest", "by_duration:PnDTnHnMn.nS")),
            ["latest", "by_duration:PT1.5S", "by_duration:p2dt3h"],
            ["by_duration:PnDTnHnMn.nS", "by_duration:P", "by_duration:P1DT"],
        ),
    ],
)
def test_values_that_fit(setting: Setting, good: list[str], bad: list[str]) -> None:
    assert [value for value in good if mismatch(setting, value) is not None] == []
    assert [value for value in bad if mismatch(setting, value) is None] == []
