"""Laws of the whole producer under any schedule of faults."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kafkaio._config import ProducerConfig
from kafkaio._net.memory import MAX_REQUEST_BYTES, MemoryTransport
from kafkaio._net.transport import Dial, DialOptions, FrameSinkPort, TransportPort
from kafkaio._producer import Producer, outcomes
from kafkaio._producer.delivery import Delivery
from kafkaio.errors import ClosedError, DeliveryTimeout, KafkaError
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.types import RecordMetadata
from tests.fakes.broker import DEFAULT, DISCONNECT, HANG, FakeCluster
from tests.unit.producer.broker_log import Logs
from tests.virtual_loop import VirtualClockLoop

REFUSALS = [
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.CORRUPT_MESSAGE,
]
FAULTS = st.sampled_from(
    ["fine"] * 3
    + ["cut", "write and cut", "hang", "write and hang", "refuse"]
    + ["refuse one", "move", "slow"]
)


class Chaos:
    """Treats each Produce request as the next fault of a schedule says."""

    def __init__(self, cluster: FakeCluster, logs: Logs, schedule: list[str]) -> None:
        self.cluster = cluster
        self.logs = logs
        self.schedule = list(schedule)
        self.dice = random.Random(len(schedule))
        cluster.on(ApiKey.PRODUCE, self.handle)

    def handle(self, node: Any, header: Any, request: Any) -> Any:
        fault = self.schedule.pop(0) if self.schedule else "fine"
        if fault == "slow":
            return self.slow()
        if fault == "move":
            for partition in range(2):
                self.cluster.move_leader("t", partition, self.dice.randrange(2))
        elif fault == "refuse":
            return self.refuse(node, header, request, lambda index: True)
        elif fault == "refuse one":
            chosen = self.dice.randrange(2)
            return self.refuse(node, header, request, lambda index: index == chosen)
        if fault.startswith("write"):
            self.logs.produce(node, header, request)
        if fault.endswith("cut"):
            return DISCONNECT
        return HANG if fault.endswith("hang") else DEFAULT

    async def slow(self) -> Any:
        await asyncio.sleep(self.dice.choice([0.01, 0.7, 2.5]))
        return DEFAULT

    def refuse(self, node: Any, header: Any, request: Any, which: Any) -> Any:
        code = self.dice.choice(REFUSALS)
        self.logs.refuse = lambda topic, index, batch: code if which(index) else 0
        try:
            return self.logs.produce(node, header, request)
        finally:
            self.logs.refuse = lambda *_: 0


def run(coroutine: Any) -> Any:
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(coroutine)


async def produce(
    schedule: list[str], pauses: list[float], **options: Any
) -> tuple[Logs, list[tuple[int, int, Delivery]]]:
    """Send numbered records to both partitions of a topic; return what became."""
    async with FakeCluster(nodes=2, topics={"t": 2}) as cluster:
        logs = Logs(cluster)
        Chaos(cluster, logs, schedule)
        config = ProducerConfig.of(
            cluster.bootstrap,
            {
                "batch_size": 120,  # one or two records each
                "request_timeout_ms": 1_000,
                "linger_ms": 5,
                **options,
            },
        )
        sent: list[tuple[int, int, Delivery]] = []
        async with Producer.from_config(config, dial=cluster.dial) as producer:
            for number, pause in enumerate(pauses):
                partition = number % 2
                value = b"%05d" % number
                delivery = await producer.enqueue("t", value, partition=partition)
                sent.append((number, partition, delivery))
                used = producer.statistics().buffer.used_bytes
                assert used <= config.buffer_memory
                if pause:
                    await asyncio.sleep(pause)
        assert producer.statistics().buffer.used_bytes == 0
        assert producer.statistics().buffer.batches_on_wire == 0
        return logs, sent


PAUSES = st.lists(
    st.sampled_from([0.0, 0.0, 0.0, 0.001, 0.02, 0.4]), min_size=1, max_size=40
)
RELAXED = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@RELAXED
@given(st.lists(FAULTS, max_size=25), PAUSES)
def test_idempotence_loses_repeats_and_reorders_nothing(
    schedule: list[str], pauses: list[float]
) -> None:
    logs, sent = run(produce(schedule, pauses))
    for partition in range(2):
        numbers = [number for number, where, _ in sent if where == partition]
        log = logs.log("t", partition)
        assert [int(value) for value in log.values] == numbers
        for number, where, delivery in sent:
            if where == partition:
                meta = delivery.result()
                assert meta.offset in {-1, numbers.index(number)}
        check_numbering(logs, partition)


def check_numbering(logs: Logs, partition: int) -> None:
    """Sequences per epoch are 0, 1, 2, ... and epochs only grow."""
    expected, epoch = 0, 0
    for batch in logs.log("t", partition).batches:
        if batch.producer_epoch != epoch:
            assert batch.producer_epoch > epoch
            epoch, expected = batch.producer_epoch, 0
        assert batch.base_sequence == expected
        expected += batch.count


@RELAXED
@given(st.lists(FAULTS, max_size=40), PAUSES, st.integers(1_100, 4_000))
def test_every_delivery_ends_once_and_in_time(
    schedule: list[str], pauses: list[float], timeout: int
) -> None:
    # The timeout is so short that batches expire while waiting and on the wire.
    logs, sent = run(produce(schedule, pauses, delivery_timeout_ms=timeout))
    for partition in range(2):
        written = [int(value) for value in logs.log("t", partition).values]
        assert written == sorted(set(written))  # in order, and none twice
        acked = {
            number
            for number, where, delivery in sent
            if where == partition and not isinstance(delivery.exception(), KafkaError)
        }
        assert acked <= set(written)


@RELAXED
@given(st.lists(FAULTS, max_size=25), PAUSES)
def test_without_idempotence_order_is_kept_all_the_same(
    schedule: list[str], pauses: list[float]
) -> None:
    logs, sent = run(produce(schedule, pauses, acks=1))
    for partition in range(2):
        numbers = [number for number, where, _ in sent if where == partition]
        written = [int(value) for value in logs.log("t", partition).values]
        # Whole batches may repeat, but what comes first, comes first.
        assert set(written) == set(numbers)
        first_seen = sorted(set(written), key=written.index)
        assert first_seen == numbers
    assert all(isinstance(d.result(), RecordMetadata) for _, _, d in sent)


@RELAXED
@given(st.lists(FAULTS, max_size=25), PAUSES, st.integers(400, 1_000))
def test_a_small_buffer_is_never_exceeded(
    schedule: list[str], pauses: list[float], memory: int
) -> None:
    logs, sent = run(produce(schedule, pauses, buffer_memory=memory))
    assert len(logs.values("t", 0)) + len(logs.values("t", 1)) == len(sent)


@RELAXED
@given(
    st.lists(st.sampled_from(["fine", "cut", "cut", "cut", "write and cut"])),
    PAUSES,
)
def test_what_is_divided_because_connections_break_is_never_written_twice(
    schedule: list[str], pauses: list[float]
) -> None:
    with patch.object(outcomes, "_SMALL", 0):
        logs, sent = run(produce(schedule, pauses, batch_size=400))
    for partition in range(2):
        written = [int(value) for value in logs.log("t", partition).values]
        assert written == sorted(set(written))
        for number, where, delivery in sent:
            if where == partition and delivery.exception() is None:
                assert number in written
            elif where == partition:
                assert "not known whether" in str(delivery.exception())


def limit_requests(cluster: FakeCluster, logs: Logs, limit: int) -> list[int]:
    """Close the connection on requests above a limit; return the sizes of all."""
    sizes: list[int] = []

    def handle(node: Any, header: Any, request: Any) -> Any:
        size = sum(len(p.records) for t in request.topic_data for p in t.partition_data)
        sizes.append(size)
        if size > limit:
            return DISCONNECT
        return logs.produce(node, header, request)

    cluster.on(ApiKey.PRODUCE, handle)
    return sizes


@pytest.mark.parametrize("options", [{}, {"acks": 1}])
def test_a_service_with_a_limit_of_its_own_gets_smaller_requests(
    options: dict[str, Any],
) -> None:
    async def send() -> None:
        async with FakeCluster(nodes=1, topics={"t": 3}) as cluster:
            logs = Logs(cluster)
            sizes = limit_requests(cluster, logs, 100_000)
            config = ProducerConfig.of(cluster.bootstrap, options)
            async with Producer.from_config(config, dial=cluster.dial) as producer:
                await producer.send("t", b"first", partition=0)
                deliveries = [
                    await producer.enqueue("t", b"%06d" % n * 100, partition=n % 3)
                    for n in range(1_500)
                ]
                places = [await delivery for delivery in deliveries]
                assert [place.partition for place in places[:3]] == [0, 1, 2]
                # What comes later is small enough at once.
                tries = sum(size > 100_000 for size in sizes)
                assert tries < 30
                await asyncio.gather(
                    *(producer.send("t", bytes(600)) for _ in range(1_500))
                )
                assert sum(size > 100_000 for size in sizes) == tries
            for partition in range(3):
                values = logs.values("t", partition)
                values = [value[:6] for value in values if len(value) == 600]
                numbers = [value for value in values if value != bytes(6)]
                assert numbers == [b"%06d" % n for n in range(partition, 1_500, 3)]

    run(send())


def test_the_size_of_a_request_under_which_connections_break_is_told() -> None:
    async def send() -> None:
        async with FakeCluster(nodes=1, topics={"t": 1}) as cluster:
            limit_requests(cluster, Logs(cluster), 100_000)
            options = {"delivery_timeout_ms": 40_000}
            config = ProducerConfig.of(cluster.bootstrap, options)
            async with Producer.from_config(config, dial=cluster.dial) as producer:
                with pytest.raises(
                    DeliveryTimeout, match=r"the request had 1200\d\d bytes of records"
                ):
                    await producer.send("t", bytes(120_000))
                await producer.send("t", bytes(90_000))

    run(send())


def distant(cluster: FakeCluster, round_trip: float) -> Dial:
    """The cluster's Dial, over connections of which each byte takes its time."""

    def carry() -> Callable[[Callable[[], None]], None]:
        # A queue: timers of the same time may fire in any order.
        under_way: deque[Callable[[], None]] = deque()

        def later(arrive: Callable[[], None]) -> None:
            under_way.append(arrive)
            loop = asyncio.get_running_loop()
            loop.call_later(round_trip / 2, lambda: under_way.popleft()())

        return later

    async def dial(
        host: str, port: int, sink: FrameSinkPort, options: DialOptions
    ) -> TransportPort:
        client = MemoryTransport(options.max_frame_size, carry(), options.large)
        server = MemoryTransport(MAX_REQUEST_BYTES, carry())
        cluster.network.join(host, port, client, server, sink)
        return client

    return dial


@pytest.mark.parametrize("limit", [10_000_000, 2_000_000])
def test_requests_to_a_distant_broker_grow_and_a_refused_size_is_remembered(
    limit: int,
) -> None:
    async def send() -> None:
        async with FakeCluster(nodes=1, topics={"t": 6}) as cluster:
            logs = Logs(cluster)
            sizes = limit_requests(cluster, logs, limit)
            config = ProducerConfig.of(cluster.bootstrap, {})
            dial = distant(cluster, 0.05)
            async with Producer.from_config(config, dial=dial) as producer:
                await producer.send("t", b"first", partition=0)
                for _ in range(120_000):
                    await producer.enqueue("t", bytes(1_000))
            written = [logs.values("t", partition) for partition in range(6)]
            assert sum(map(len, written)) == 120_001
            assert all(written)
            refused = sum(size > limit for size in sizes)
            if limit == 2_000_000:
                # Those in flight at once; a size that is refused is not tried again.
                assert 1 <= refused <= 5
                assert max(sizes[len(sizes) // 2 :]) <= limit
            else:
                assert refused == 0
                assert max(sizes) > 2_000_000

    run(send())


@RELAXED
@given(st.lists(st.sampled_from(["fine", "poison", "large"]), max_size=40), st.data())
def test_bad_records_fail_alone(kinds: list[str], data: Any) -> None:
    schedule = data.draw(st.lists(st.sampled_from(["fine", "cut", "write and cut"])))
    failures = run(produce_kinds(kinds, schedule))
    assert failures == {i for i, kind in enumerate(kinds) if kind != "fine"}


async def produce_kinds(kinds: list[str], schedule: list[str]) -> set[int]:
    async with FakeCluster(nodes=1, topics={"t": 2}) as cluster:
        logs = Logs(cluster)
        logs.max_message_bytes = 2_000
        # State exists before the first refusal, as on a partition written before.
        Chaos(cluster, logs, ["fine", *schedule])
        config = ProducerConfig.of(cluster.bootstrap, {"batch_size": 600})
        async with Producer.from_config(config, dial=cluster.dial) as producer:
            await producer.send("t", b"warm up", partition=0)
            deliveries = [
                await producer.enqueue(
                    "t",
                    {"fine": b"%d" % i, "poison": b"POISON", "large": b"x" * 3_000}[
                        kind
                    ],
                    partition=0,
                )
                for i, kind in enumerate(kinds)
            ]
        good = [b"%d" % i for i, kind in enumerate(kinds) if kind == "fine"]
        assert logs.values("t", 0) == [b"warm up", *good]
        return {i for i, d in enumerate(deliveries) if d.exception() is not None}


@pytest.mark.parametrize("turns", range(1, 60, 3))
def test_cancelling_a_send_anywhere_writes_the_record_at_most_once(turns: int) -> None:
    async def cancel() -> list[bytes]:
        async with FakeCluster(nodes=2, topics={"t": 2}) as cluster:
            logs = Logs(cluster)
            config = ProducerConfig.of(cluster.bootstrap, {})
            async with Producer.from_config(config, dial=cluster.dial) as producer:
                task = asyncio.create_task(producer.send("t", b"c", partition=0))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                await producer.send("t", b"d", partition=0)
            return logs.values("t", 0)

    assert run(cancel()) in ([b"c", b"d"], [b"d"])


@pytest.mark.parametrize("turns", range(1, 60, 3))
def test_closing_anywhere_ends_every_delivery(turns: int) -> None:
    async def close() -> list[Delivery]:
        async with FakeCluster(nodes=2, topics={"t": 2}) as cluster:
            Logs(cluster)
            config = ProducerConfig.of(cluster.bootstrap, {})
            async with Producer.from_config(config, dial=cluster.dial) as producer:
                deliveries = [producer.enqueue_nowait("t", b"c") for _ in range(10)]
                for _ in range(turns):
                    await asyncio.sleep(0)
                await producer.close(timeout=0)
            return deliveries

    for delivery in run(close()):
        assert delivery.is_done
        error = delivery.exception()
        assert error is None or isinstance(error, ClosedError)
