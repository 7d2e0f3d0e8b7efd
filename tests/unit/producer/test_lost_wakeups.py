"""No record waits without somebody who will look at it again."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from kafkaio._config import ProducerConfig
from kafkaio._producer import Producer
from kafkaio.errors import BufferFull
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from tests.fakes.broker import DEFAULT, DISCONNECT, FakeCluster
from tests.unit.producer.broker_log import Logs
from tests.virtual_loop import VirtualClockLoop

#: A record that nobody looks at waits this long, in ms: nothing here takes as long.
FOREVER = 600_000
#: Seconds within which all is acknowledged when nothing new happens.
SOON = 30.0

#: What befalls a request: the answer comes after so many seconds, or in another way.
ANSWERS = st.sampled_from([0.0, 0.0, 0.0, 0.001, 0.3, "cut", "refuse"])
STEPS = st.sampled_from(
    ["await"] * 6
    + ["leave"] * 3
    + ["wait for room"] * 4
    + ["turn", "pause", "many", "drop", "move", "cancel"]
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "acks": st.sampled_from([0, 1]),
        "batch_size": st.sampled_from([100, 1_000]),
        "max_in_flight_requests_per_connection": st.just(1),
        "buffer_memory": st.sampled_from([200, 2_000]),
    },
)


class Case:
    """A producer over two nodes, and what its user does, step by step."""

    def __init__(
        self, cluster: FakeCluster, producer: Producer, answers: list[float | str]
    ) -> None:
        self.cluster = cluster
        self.producer = producer
        self.answers = list(answers)
        self.waiting: list[asyncio.Task[object]] = []
        self.logs = Logs(cluster)
        cluster.on(ApiKey.PRODUCE, self.answer)
        cluster.delay(ApiKey.INIT_PRODUCER_ID, 0.1)

    def answer(self, node: Any, header: Any, request: Any) -> Any:
        answer = self.answers.pop(0) if self.answers else 0.0
        if answer == "cut":
            return DISCONNECT
        if answer == "refuse":
            self.logs.refuse = lambda *_: ErrorCode.NOT_ENOUGH_REPLICAS
            try:
                return self.logs.produce(node, header, request)
            finally:
                self.logs.refuse = lambda *_: 0
        return self.late(float(answer)) if answer else DEFAULT

    async def late(self, seconds: float) -> Any:
        await asyncio.sleep(seconds)
        return DEFAULT

    async def step(self, step: str, number: int) -> None:
        partition, value = number % 3, b"%05d" % number
        match step:
            case "await":
                async with asyncio.timeout(SOON):
                    await self.producer.send("t", value, partition=partition)
            case "leave":
                self.leave(value, partition)
            case "turn":
                await asyncio.sleep(0)
            case "pause":
                await asyncio.sleep(0.05)
            case "many":
                self.start(self.producer.send_many("t", [value] * 4))
            case "wait for room":
                self.start(self.producer.send("t", value))
            case "drop":
                self.cluster.drop_connections()
            case "move":
                self.cluster.move_leader("t", partition, number % 2)
            case "cancel":
                self.start(self.producer.send("t", value))
                await asyncio.sleep(0)
                self.waiting.pop().cancel()

    def leave(self, value: bytes, partition: int) -> None:
        try:
            delivery = self.producer.enqueue_nowait("t", value, partition=partition)
        except BufferFull:
            return

        async def acknowledged() -> object:
            return await delivery

        self.start(acknowledged())

    def start(self, coroutine: Any) -> None:
        self.waiting.append(asyncio.ensure_future(coroutine))


async def go_through(
    steps: list[str], answers: list[float | str], options: dict[str, Any]
) -> None:
    async with FakeCluster(nodes=2, topics={"t": 3}) as cluster:
        options = {
            "linger_ms": FOREVER,
            "delivery_timeout_ms": 2 * FOREVER,
            "max_block_ms": FOREVER,
            **options,
        }
        options["enable_idempotence"] = "acks" not in options
        config = ProducerConfig.of(cluster.bootstrap, options)
        async with Producer.from_config(config, dial=cluster.dial) as producer:
            case = Case(cluster, producer, answers)
            for number, step in enumerate(steps):
                await case.step(step, number)
            # Neither flushed nor closed: each has to leave by itself.
            async with asyncio.timeout(SOON):
                for task in case.waiting:
                    await task
            await asyncio.sleep(SOON)  # for those whose sender was cancelled
            buffer = producer.statistics().buffer
            assert (buffer.waiting_batches, buffer.batches_on_wire) == (0, 0)
            assert buffer.used_bytes == 0


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(STEPS, min_size=1, max_size=30),
    answers=st.lists(ANSWERS, max_size=12),
    options=OPTIONS,
)
def test_what_can_leave_does(
    steps: list[str], answers: list[float | str], options: dict[str, Any]
) -> None:
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(go_through(steps, answers, options))
