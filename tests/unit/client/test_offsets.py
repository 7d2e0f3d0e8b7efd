"""`Client.offsets`, `Client.partitions_for` and `Client.committed`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from kafkaio._client import Client, Controller
from kafkaio._client.offsets import EARLIEST, LATEST, times_of
from kafkaio._config import ClientConfig, ProducerConfig
from kafkaio._producer import Producer
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    AuthorizationError,
    BrokerError,
    ClosedError,
    InvalidTopic,
    RequestTimeout,
    UnknownTopicOrPartition,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafkaio.testing import Broker, disconnect_before_write, error
from kafkaio.testing._broker.versions import NEWEST
from kafkaio.types import (
    FoundTopic,
    GroupMetadata,
    OffsetAndMetadata,
    TopicPartition,
)

T = [TopicPartition("t", number) for number in range(4)]
OLD = "2.1"


@pytest.fixture(params=[NEWEST, OLD])
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[Broker]:
    """Three brokers of two releases: Fetch by topic id and by name."""
    made = Broker(
        nodes=3,
        topics={"t": 4, "other": 1},
        as_version=request.param,
        memory_transport=True,
        default_partitions=1,
    )
    async with made as broker:
        yield broker


def client_of(broker: Broker, **options: Any) -> Client:
    config = ClientConfig.of(broker.bootstrap_servers, options)
    return Client.from_config(config, dial=broker.dial)


def producer_of(broker: Broker, **options: Any) -> Producer:
    config = ProducerConfig.of(broker.bootstrap_servers, options)
    return Producer.from_config(config, dial=broker.dial)


async def produce(broker: Broker, times: list[int]) -> None:
    """Write a record with each timestamp to partition 0 of ``t``."""
    async with producer_of(broker) as producer:
        for time in times:
            await producer.send("t", b"v", partition=0, timestamp=time)


def asked(broker: Broker, api: ApiKey) -> int:
    return sum(request.api is api for request in broker.requests)


class TestOffsets:
    """Offsets in the logs, one request per leader."""

    async def test_each_kind_of_moment(self, broker: Broker) -> None:
        await produce(broker, [1_000, 2_000, 3_000])
        async with client_of(broker) as client:
            tp = T[0]
            [earliest] = (await client.offsets({tp: "earliest"})).values()
            assert earliest is not None
            assert (earliest.offset, earliest.timestamp) == (0, -1)
            [latest] = (await client.offsets({tp: "latest"})).values()
            assert latest is not None
            assert (latest.offset, latest.timestamp) == (3, -1)
            [found] = (await client.offsets({tp: 1_001})).values()
            assert found is not None
            assert (found.offset, found.timestamp) == (1, 2_000)
            moment = datetime.fromtimestamp(3, UTC)
            [found] = (await client.offsets({tp: moment})).values()
            assert found is not None
            assert found.offset == 2
            assert await client.offsets({tp: 3_001}) == {tp: None}

    async def test_one_request_goes_to_each_leader(self, broker: Broker) -> None:
        leaders = {broker.control.leader(tp) for tp in T}
        async with client_of(broker) as client:
            await client.offsets(dict.fromkeys(T, "latest"))  # learns the leaders
            before = asked(broker, ApiKey.LIST_OFFSETS)
            found = await client.offsets(dict.fromkeys(reversed(T), "latest"))
            assert asked(broker, ApiKey.LIST_OFFSETS) - before == len(leaders)
            assert list(found) == [*reversed(T)]
            assert await client.offsets({}) == {}

    async def test_a_leader_that_moves_is_found(self, broker: Broker) -> None:
        await produce(broker, [1_000])
        async with client_of(broker) as client:
            await client.offsets({T[0]: "latest"})
            leader = broker.control.leader(T[0])
            broker.control.move_leader(T[0], (leader + 1) % 3)
            [found] = (await client.offsets({T[0]: "latest"})).values()
            assert found is not None
            assert found.offset == 1

    async def test_a_lost_connection_is_repeated(self, broker: Broker) -> None:
        async with client_of(broker) as client:
            broker.faults.on("ListOffsets", disconnect_before_write(times=2))
            found = await client.offsets({T[0]: "latest"})
            assert found[T[0]] is not None

    async def test_what_cannot_be_found(self, broker: Broker) -> None:
        async with client_of(broker) as client:
            with pytest.raises(UnknownTopicOrPartition, match="no partition 9"):
                await client.offsets({TopicPartition("t", 9): "latest"}, timeout=2)
            with pytest.raises(UnknownTopicOrPartition, match="absent"):
                await client.offsets({TopicPartition("absent", 0): 5})
            assert "absent" not in broker.topics
            broker.faults.on("ListOffsets", error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            with pytest.raises(AuthorizationError):
                await client.offsets({T[0]: "earliest"})
            broker.faults.clear()
            broker.faults.on("ListOffsets", error(ErrorCode.LEADER_NOT_AVAILABLE))
            with pytest.raises(RequestTimeout, match="t-0") as caught:
                await client.offsets({T[0]: "earliest"}, timeout=1)
            assert isinstance(caught.value.__cause__, BrokerError)

    async def test_arguments(self, broker: Broker) -> None:
        async with client_of(broker) as client:
            with pytest.raises(ArgumentValueError, match="isolation_level"):
                await client.offsets({T[0]: "latest"}, isolation_level="dirty")  # type: ignore[arg-type]
            with pytest.raises(ArgumentTypeError, match="timeout"):
                await client.offsets({T[0]: "latest"}, timeout="5")  # type: ignore[arg-type]
        with pytest.raises(ClosedError):
            await client.offsets({T[0]: "latest"})

    async def test_the_last_stable_offset(self) -> None:
        async with Broker(topics={"t": 1}, memory_transport=True) as broker:
            await produce(broker, [1_000])
            producer = producer_of(broker, transactional_id="x")
            client = client_of(broker)
            async with client, producer, producer.transaction() as tx:
                await tx.send("t", b"open", partition=0)
                committed = await client.offsets(
                    {T[0]: "latest"}, isolation_level="read_committed"
                )
                assert committed[T[0]] is not None
                assert committed[T[0]].offset == 1
                [end] = (await client.offsets({T[0]: "latest"})).values()
                assert end is not None
                assert end.offset == 2


class TestTimes:
    """What a user may give for a place in a log."""

    def test_words_and_times(self) -> None:
        east = timezone(timedelta(hours=2))
        assert times_of({T[0]: "earliest", T[1]: "latest"}) == {
            T[0]: EARLIEST,
            T[1]: LATEST,
        }
        assert times_of({("t", 0): 5}) == {T[0]: 5}  # type: ignore[dict-item]
        assert times_of({T[0]: datetime(1970, 1, 1, 2, 0, 1, tzinfo=east)}) == {
            T[0]: 1_000
        }

    def test_microseconds_are_rounded_up(self) -> None:
        moment = datetime(1970, 1, 1, microsecond=1_001, tzinfo=UTC)
        assert times_of({T[0]: moment}) == {T[0]: 2}
        assert times_of({T[0]: moment.replace(microsecond=1_000)}) == {T[0]: 1}

    @pytest.mark.parametrize(
        ("moments", "kind", "words"),
        [
            ([T[0]], ArgumentTypeError, "must be a mapping"),
            ({"t": "latest"}, ArgumentTypeError, "TopicPartition"),
            ({T[0]: "newest"}, ArgumentValueError, "'newest' is not a place"),
            ({T[0]: 1.5}, ArgumentTypeError, "not float"),
            ({T[0]: True}, ArgumentTypeError, "not bool"),
            ({T[0]: -1}, ArgumentValueError, "before 1970"),
            ({T[0]: datetime(2026, 1, 1)}, ArgumentValueError, "no time zone"),  # noqa: DTZ001
            ({T[0]: datetime(1969, 1, 1, tzinfo=UTC)}, ArgumentValueError, "1970"),
        ],
    )
    def test_what_is_refused(
        self, moments: Any, kind: type[Exception], words: str
    ) -> None:
        with pytest.raises(kind, match=words):
            times_of(moments)


class TestPartitionsFor:
    """Partitions of topics, by name and by pattern."""

    async def test_names(self, broker: Broker) -> None:
        async with client_of(broker) as client:
            assert await client.partitions_for("t") == {"t": [0, 1, 2, 3]}
            assert await client.partitions_for(["t", "other", "t"]) == {
                "other": [0],
                "t": [0, 1, 2, 3],
            }
            assert await client.partitions_for([]) == {}

    async def test_patterns_match_whole_names(self, broker: Broker) -> None:
        broker.create_topic("t2", 1)
        broker.create_topic("__consumer_offsets", 1)
        async with client_of(broker) as client:
            assert list(await client.partitions_for(re.compile("t"))) == ["t"]
            assert list(await client.partitions_for(re.compile("t.?"))) == ["t", "t2"]
            found = await client.partitions_for(re.compile(".*"))
            assert list(found) == ["other", "t", "t2"]
            assert await client.partitions_for(re.compile("absent")) == {}

    async def test_a_missing_topic_is_told_at_once_and_not_created(
        self, broker: Broker
    ) -> None:
        async with client_of(broker) as client:
            began = asyncio.get_running_loop().time()
            with pytest.raises(UnknownTopicOrPartition, match="'absent'"):
                await client.partitions_for(["t", "absent"])
            assert asyncio.get_running_loop().time() < began + 1
            assert "absent" not in broker.topics
            with pytest.raises(InvalidTopic):
                await client.partitions_for("no/topic")
            with pytest.raises(ArgumentValueError):
                await client.partitions_for("")
            with pytest.raises(ArgumentTypeError):
                await client.partitions_for(5)  # type: ignore[arg-type]


class TestFindTopics:
    """The ids and partitions of topics, as a broker knows them now."""

    async def test_a_topic_that_is_made_again_has_another_id(self) -> None:
        made = Broker(topics={"t": 4, "other": 1}, memory_transport=True)
        async with made as broker, client_of(broker) as client:
            before = await client.find_topics(["t", "other"])
            assert list(before) == ["other", "t"]
            await client.offsets({T[0]: "latest"})  # the view knows it
            deletion = DeleteTopicsRequest(
                topics=[DeleteTopicState(name="t")], timeout_ms=1_000
            )
            await client.request(deletion, Controller)
            with pytest.raises(UnknownTopicOrPartition, match="'t'"):
                await client.find_topics("t")
            broker.create_topic("t", 4)
            after = await client.find_topics("t")
            assert after.keys() == {"t"}
            assert after["t"].topic_id != before["t"].topic_id
            assert await client.find_topics([]) == {}

    async def test_ids_and_partitions_at_once(self) -> None:
        made = Broker(topics={"t": 4, "other": 1}, memory_transport=True)
        async with made as broker, client_of(broker) as client:
            found = await client.find_topics(["t", "gone", "other"], skip_unknown=True)
            assert list(found) == ["other", "t"]
            assert isinstance(found["t"].topic_id, UUID)
            assert found["t"].partitions == [0, 1, 2, 3]
            assert await client.find_topics(re.compile("o.*")) == {
                "other": FoundTopic(found["other"].topic_id, [0])
            }
            with pytest.raises(UnknownTopicOrPartition, match="'gone'"):
                await client.find_topics(["t", "gone"])
            with pytest.raises(ArgumentValueError):
                await client.find_topics("")

    @pytest.mark.parametrize("broker", [OLD], indirect=True)
    async def test_brokers_without_ids(self, broker: Broker) -> None:
        async with client_of(broker) as client:
            found = await client.find_topics("t")
            assert found["t"].topic_id is None


class TestCommitted:
    """Offsets that a group has committed, for somebody who is no member."""

    async def test_what_is_committed_and_what_is_not(self, broker: Broker) -> None:
        await commit(broker, "g", {T[1]: OffsetAndMetadata(7, "note")})
        async with client_of(broker) as client:
            found = await client.committed("g", [T[1], T[0]])
            assert found == {T[0]: None, T[1]: OffsetAndMetadata(7, "note")}
            assert list(found) == [T[0], T[1]]
            assert await client.committed("unknown", [T[0]]) == {T[0]: None}
            assert await client.committed("g", []) == {}

    async def test_a_coordinator_that_moves_is_found(self, broker: Broker) -> None:
        await commit(broker, "g", {T[1]: OffsetAndMetadata(7)})
        async with client_of(broker) as client:
            await client.committed("g", [T[1]])
            coordinator = broker.control.coordinator("g")
            broker.control.move_coordinator("g", (coordinator + 1) % 3)
            broker.faults.on("OffsetFetch", disconnect_before_write(times=1))
            assert await client.committed("g", [T[1]]) == {T[1]: OffsetAndMetadata(7)}

    async def test_a_refusal(self, broker: Broker) -> None:
        async with client_of(broker) as client:
            broker.faults.on("OffsetFetch", error(ErrorCode.GROUP_AUTHORIZATION_FAILED))
            with pytest.raises(AuthorizationError, match="group 'g'"):
                await client.committed("g", [T[0]])

    async def test_unstable_offsets_are_waited_for(self) -> None:
        async with Broker(topics={"t": 4}, memory_transport=True) as broker:
            await commit(broker, "g", {T[0]: OffsetAndMetadata(1)})
            producer = producer_of(broker, transactional_id="x")
            async with client_of(broker) as client, producer:
                async with producer.transaction() as tx:
                    await tx.commit_offsets(
                        GroupMetadata("g"), {T[0]: OffsetAndMetadata(5)}
                    )
                    with pytest.raises(RequestTimeout, match="group 'g'") as caught:
                        await client.committed("g", [T[0]], timeout=1)
                    cause = caught.value.__cause__
                    assert isinstance(cause, BrokerError)
                    assert cause.code == ErrorCode.UNSTABLE_OFFSET_COMMIT
                    assert await client.committed(
                        "g", [T[0]], require_stable=False
                    ) == {T[0]: OffsetAndMetadata(1)}
                    assert await client.committed("g", [T[1]]) == {T[1]: None}
                    waiting = asyncio.ensure_future(client.committed("g", [T[0]]))
                    await asyncio.sleep(0.2)
                    assert not waiting.done()
                assert await waiting == {T[0]: OffsetAndMetadata(5)}

    async def test_arguments(self, broker: Broker) -> None:
        async with client_of(broker) as client:
            with pytest.raises(ArgumentValueError, match="group"):
                await client.committed("", [T[0]])
            with pytest.raises(ArgumentTypeError, match="group"):
                await client.committed(5, [T[0]])  # type: ignore[arg-type]
            with pytest.raises(ArgumentTypeError, match="partitions"):
                await client.committed("g", None)  # type: ignore[arg-type]
            with pytest.raises(ArgumentTypeError, match="TopicPartition"):
                await client.committed("g", ["t"])  # type: ignore[list-item]
        with pytest.raises(ClosedError):
            await client.committed("g", [])


async def commit(
    broker: Broker, group: str, offsets: dict[TopicPartition, OffsetAndMetadata]
) -> None:
    from kafkaio._config import ConsumerConfig
    from kafkaio._consumer import Consumer

    config = ConsumerConfig.of(broker.bootstrap_servers, {"group_id": group})
    async with Consumer.from_config(config, dial=broker.dial) as consumer:
        await consumer.commit(offsets)
