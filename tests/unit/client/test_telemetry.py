"""Pushing metrics, against the embedded broker; and that it never hurts the client."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from math import isnan
from typing import Any

import pytest
import pytest_asyncio

import kafkaio
from kafkaio import (
    Admin,
    Client,
    Consumer,
    Metric,
    Observer,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from kafkaio._client.client import cluster_of
from kafkaio._client.telemetry.collector import CONSUMER, SHARE_CONSUMER, Collector
from kafkaio._client.telemetry.samples import Naming, Samples
from kafkaio._runtime.observer import AcknowledgedPart, AcquiredPart
from kafkaio.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    LockLost,
    RequestTimeout,
    UnsupportedVersion,
    UsageError,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode
from kafkaio.testing import Broker, delay, drop, error, garbage
from kafkaio.testing._broker.faults import Fault
from tests.support.telemetry import Value, parsed

PUSH, GET = ApiKey.PUSH_TELEMETRY, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS
PREFIX = "org.apache.kafka."


class Ended(Observer):
    """Keeps why pushing has ended."""

    def __init__(self) -> None:
        self.causes: list[BaseException] = []

    def telemetry_ended(self, cause: BaseException) -> None:
        self.causes.append(cause)


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2}, telemetry=True) as broker:
        broker.telemetry.subscribe(interval_ms=100)
        yield broker


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


def asked(broker: Broker, *apis: ApiKey) -> int:
    return sum(request.api in apis for request in broker.requests)


def values(broker: Broker, number: int = -1) -> list[Value]:
    return parsed(broker.telemetry.pushes[number].metrics)[1]


def total(broker: Broker, name: str) -> float:
    """The sum of all increases that were pushed."""
    return sum(
        one.value
        for number in range(len(broker.telemetry.pushes))
        for one in values(broker, number)
        if one.name == PREFIX + name
    )


async def test_a_producer_pushes_what_it_does(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers, client_id="p") as producer:
        identity = await producer.client_instance_id(20)
        await until(lambda: broker.telemetry.pushes)
        for _ in range(10):
            await producer.send("t", b"x")
        number = len(broker.telemetry.pushes)
        await until(lambda: len(broker.telemetry.pushes) > number)
    pushes = broker.telemetry.pushes
    assert {push.client_instance_id for push in pushes} == {identity}
    assert {push.client_id for push in pushes} == {"p"}
    assert [push.is_terminating for push in pushes[-2:]] == [False, True]
    assert total(broker, "producer.record.send.total") == 10
    assert total(broker, "producer.topic.record.send.total") == 10
    assert total(broker, "producer.connection.creation.total") >= 1
    found = {one.name.removeprefix(PREFIX): one for one in values(broker)}
    assert found["producer.record.queue.time.max"].value >= 0
    latency = found["producer.node.request.latency.avg"]
    assert latency.value >= 0
    assert latency.attributes == {"node_id": "node-0"}
    assert not broker.telemetry.refused


async def test_a_consumer_pushes_what_it_does(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers, enable_metrics_push=False) as one:
        for _ in range(10):
            await one.send("t", b"x")
    async with Consumer(
        broker.bootstrap_servers,
        topics="t",
        group_id="g",
        group_instance_id="i",
        client_rack="r",
        auto_offset_reset="earliest",
    ) as consumer:
        await until(lambda: broker.telemetry.pushes)
        taken = 0
        while taken < 10:
            taken += len((await consumer.poll(timeout=1)).records)
        await consumer.commit()
        number = len(broker.telemetry.pushes)
        await until(lambda: len(broker.telemetry.pushes) > number + 1)
        identity = await consumer.client_instance_id()
    assert identity == broker.telemetry.pushes[0].client_instance_id
    about = parsed(broker.telemetry.pushes[number].metrics)[0]
    assert about.pop("group_member_id")
    assert about == {"client_rack": "r", "group_id": "g", "group_instance_id": "i"}
    assert total(broker, "consumer.coordinator.commit.total") >= 1
    found = {one.name.removeprefix(PREFIX): one.value for one in values(broker, number)}
    assert found["consumer.coordinator.assigned.partitions"] == 2
    assert 0 <= found["consumer.poll.idle.ratio.avg"] <= 1
    assert found["consumer.fetch.manager.fetch.latency.max"] >= 0
    # Without a topic and by topic.
    assert total(broker, "consumer.fetch.manager.records.consumed.total") == 20


async def test_a_share_consumer_pushes_what_it_does(broker: Broker) -> None:
    async with (
        Producer(broker.bootstrap_servers, enable_metrics_push=False) as producer,
        ShareConsumer(broker.bootstrap_servers, topics="t", group_id="s") as share,
    ):
        await until(lambda: broker.telemetry.pushes)
        reading = asyncio.ensure_future(anext(aiter(share)))
        while not reading.done():  # a new group begins at the end
            await producer.send("t", b"x")
        (await reading).ack()
        await share.flush()
        number = len(broker.telemetry.pushes)
        await until(lambda: len(broker.telemetry.pushes) > number + 1)
    about = parsed(broker.telemetry.pushes[number].metrics)[0]
    assert about.pop("group_member_id")
    assert about == {"group_id": "s"}
    fetched = "consumer.share.fetch.manager"
    assert total(broker, f"{fetched}.records.consumed.total") >= 1
    assert total(broker, f"{fetched}.acknowledgements.send.total") >= 1
    assert total(broker, "consumer.share.coordinator.heartbeat.total") >= 1
    found = {one.name.removeprefix(PREFIX): one.value for one in values(broker, number)}
    assert 0 <= found["consumer.share.poll.idle.ratio.avg"] <= 1
    assert found["consumer.connection.count"] >= 2


async def test_brokers_without_it_are_sent_nothing() -> None:
    async with (
        Broker(topics={"t": 1}) as broker,
        Producer(broker.bootstrap_servers, linger_ms=0) as producer,
    ):
        await producer.send("t", b"x")
        assert asked(broker, PUSH, GET) == 0
        with pytest.raises(UnsupportedVersion, match="KIP-714"):
            await producer.client_instance_id()


async def test_it_can_be_switched_off(broker: Broker) -> None:
    async with Admin(broker.bootstrap_servers, enable_metrics_push=False) as admin:
        await admin.list_topics()
        with pytest.raises(UsageError, match="enable_metrics_push"):
            await admin.client_instance_id()
    assert asked(broker, PUSH, GET) == 0


async def test_nothing_is_observed_before_a_broker_asks_for_metrics() -> None:
    async with (
        Broker(telemetry=True) as broker,
        Client(broker.bootstrap_servers, log=False) as client,
    ):
        cluster = cluster_of(client)
        await cluster.telemetry.instance_id(20)
        assert asked(broker, GET) == 1
        assert "request_sent" not in vars(cluster.observer)
    assert asked(broker, PUSH) == 0


async def not_offered() -> None:
    """Ask a broker that was restarted without telemetry."""
    raise UnsupportedVersion("the broker does not know it")


@pytest.mark.parametrize("why", ["nothing wanted", "refused", "not offered"])
async def test_nothing_is_observed_once_no_broker_asks(
    broker: Broker, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mine(Observer):
        def batch_sent(
            self, partition: kafkaio.TopicPartition, records: int, size: int
        ) -> None:
            seen.append(records)

    seen: list[int] = []
    options: Any = {"observer": Mine(), "log": False}
    async with Producer(broker.bootstrap_servers, **options) as producer:
        observer = producer._cluster.observer
        await producer.client_instance_id()
        await until(lambda: broker.telemetry.pushes)
        assert {"request_sent", "batch_acknowledged"} <= vars(observer).keys()
        if why == "nothing wanted":
            broker.telemetry.subscribe(metrics="", interval_ms=100)
        elif why == "refused":
            broker.faults.on("PushTelemetry", error(ErrorCode.INVALID_REQUEST))
        else:
            pusher = producer._cluster.telemetry._pusher
            monkeypatch.setattr(pusher, "_subscribe", not_offered)
            broker.telemetry.subscribe(interval_ms=200)  # so that it is asked for
        await until(lambda: "request_sent" not in vars(observer))
        heard = {name for name in vars(observer) if not name.startswith("_")}
        assert heard == {"batch_sent"}
        await producer.send("t", b"x")
    assert seen == [1]


async def test_a_consumer_reports_no_reads_once_no_broker_asks(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    async with kafkaio.Consumer(servers, topics="t", log=False) as consumer:
        progress = consumer._core.reader._progress
        await until(lambda: progress.on_handed is not None)
        broker.telemetry.subscribe(metrics="", interval_ms=100)
        await until(lambda: progress.on_handed is None)


async def test_a_later_subscription_counts_anew(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How often clients of no subscription ask for one: 5 minutes, as in Kafka.
    name = "kafkaio.testing._broker.telemetry._DEFAULT_INTERVAL_MS"
    monkeypatch.setattr(name, 100)
    async with Producer(broker.bootstrap_servers, linger_ms=0) as producer:
        observer = producer._cluster.observer
        await until(lambda: broker.telemetry.pushes)
        for _ in range(10):
            await producer.send("t", b"x")
        sent = "producer.record.send.total"
        await until(lambda: total(broker, sent) == 10)
        broker.telemetry.subscribe(metrics="", interval_ms=100)
        await until(lambda: "request_sent" not in vars(observer))
        await producer.send("t", b"nobody counts this")
        number = len(broker.telemetry.pushes)
        broker.telemetry.subscribe(interval_ms=100)
        await until(lambda: len(broker.telemetry.pushes) > number)
        for _ in range(3):
            await producer.send("t", b"x")
    assert total(broker, sent) == 13
    assert {*broker.telemetry.refused} == {ErrorCode.UNKNOWN_SUBSCRIPTION_ID}


async def test_only_what_is_asked_for(broker: Broker) -> None:
    broker.telemetry.subscribe(
        metrics=f"{PREFIX}producer.connection,com.mine", interval_ms=100
    )
    async with Producer(broker.bootstrap_servers) as producer:
        producer.register_metric(Metric(name="com.mine.a", read=lambda: 1.5))
        producer.register_metric(
            Metric(name="com.mine.b", read=lambda: 7, kind="sum", attributes={"x": "y"})
        )
        producer.register_metric(Metric(name="com.other", read=lambda: 1))
        await until(lambda: broker.telemetry.pushes)
    found = {one.name: one for one in values(broker, 0)}
    assert {name for name in found if name.startswith(PREFIX)} == {
        f"{PREFIX}producer.connection.{name}"
        for name in (
            *("creation.rate", "creation.total", "close.rate", "close.total"),
            "count",
        )
    }
    assert found["com.mine.a"].value == 1.5
    assert found["com.mine.b"].attributes == {"x": "y"}
    assert found["com.mine.b"].kind == "sum"
    assert "com.other" not in found


async def test_a_subscription_for_another_client(broker: Broker) -> None:
    broker.telemetry.subscribe(match="client_id=other.*")
    async with Client(broker.bootstrap_servers, client_id="this") as client:
        assert await cluster_of(client).telemetry.instance_id(20) is not None
    assert asked(broker, PUSH) == 0


async def test_a_changed_subscription_is_asked_for_at_once(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        identity = await producer.client_instance_id()
        await until(lambda: broker.telemetry.pushes)
        broker.telemetry.subscribe(metrics=f"{PREFIX}producer.node", interval_ms=100)
        first = broker.telemetry.pushes[0].subscription_id
        await until(lambda: broker.telemetry.pushes[-1].subscription_id != first)
        assert await producer.client_instance_id() == identity
    assert ErrorCode.UNKNOWN_SUBSCRIPTION_ID in broker.telemetry.refused
    assert all(one.name.startswith(f"{PREFIX}producer.node") for one in values(broker))


@pytest.mark.parametrize("limit", [300, 10])
async def test_what_fits_is_pushed(limit: int) -> None:
    config = {"telemetry.max.bytes": limit}
    async with Broker(topics={"t": 1}, telemetry=True, config=config) as broker:
        broker.telemetry.subscribe(interval_ms=100)
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send("t", b"x")
            await until(lambda: asked(broker, PUSH) > 1)
    assert ErrorCode.TELEMETRY_TOO_LARGE not in broker.telemetry.refused
    assert all(push.size <= limit for push in broker.telemetry.pushes)
    assert bool(broker.telemetry.pushes) is (limit > 10)


@pytest.mark.parametrize("code", [ErrorCode.INVALID_RECORD, ErrorCode.INVALID_REQUEST])
async def test_a_refusal_for_good_ends_it_and_nothing_else(
    broker: Broker, code: ErrorCode
) -> None:
    broker.faults.on("PushTelemetry", error(code))
    ended = Ended()
    async with Producer(broker.bootstrap_servers, observer=ended) as producer:
        await until(lambda: ended.causes)
        assert (await producer.send("t", b"x")).topic == "t"
        assert await producer.client_instance_id() is not None
    assert len(ended.causes) == 1
    assert asked(broker, PUSH) == 1


async def test_who_waits_for_an_id_hears_of_a_refusal(broker: Broker) -> None:
    broker.faults.on("GetTelemetrySubscriptions", error(ErrorCode.INVALID_REQUEST))
    async with Producer(broker.bootstrap_servers) as producer:
        with pytest.raises(kafkaio.KafkaError, match="INVALID_REQUEST"):
            await producer.client_instance_id(20)
        assert (await producer.send("t", b"x")).topic == "t"


async def test_a_broker_that_never_answers_delays_nothing(broker: Broker) -> None:
    broker.faults.on("GetTelemetrySubscriptions", drop())
    loop = asyncio.get_running_loop()
    async with Producer(broker.bootstrap_servers) as producer:
        with pytest.raises(RequestTimeout, match="instance id"):
            await producer.client_instance_id(0.05)
        assert (await producer.send("t", b"x")).topic == "t"
        began = loop.time()
    assert loop.time() - began < 2


async def test_garbage_is_no_answer(broker: Broker) -> None:
    broker.faults.on("GetTelemetrySubscriptions", garbage(b"\xff" * 40, times=1))
    ended = Ended()
    async with Producer(broker.bootstrap_servers, observer=ended) as producer:
        await until(lambda: asked(broker, GET))
        assert (await producer.send("t", b"x")).topic == "t"
        assert producer.statistics().state == "running"
    assert not broker.telemetry.pushes


async def test_a_last_push_that_is_never_answered_ends_in_time(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        await until(lambda: broker.telemetry.pushes)
        broker.faults.on("PushTelemetry", drop())
        await producer.send("t", b"x")
        loop = asyncio.get_running_loop()
        began = loop.time()
        await producer.close(timeout=0.2)
        assert loop.time() - began < 2


async def test_a_push_under_way_at_the_end_counts_once(broker: Broker) -> None:
    reads = itertools.count(1)
    metric = Metric(name="com.reads", read=lambda: next(reads), kind="sum")
    async with Producer(broker.bootstrap_servers) as producer:
        producer.register_metric(metric)
        await until(lambda: broker.telemetry.pushes)
        broker.faults.on("PushTelemetry", delay(0.3, times=1))
        number = asked(broker, PUSH)
        await until(lambda: asked(broker, PUSH) > number)
    pushes = broker.telemetry.pushes
    assert pushes[-1].is_terminating
    increases = [
        one.value
        for number in range(len(pushes))
        for one in values(broker, number)
        if one.name == "com.reads"
    ]
    assert increases == [1] * len(pushes)


@pytest.mark.parametrize("fault", [drop(times=1), garbage(b"\xff" * 40, times=1)])
@pytest.mark.parametrize("api", ["GetTelemetrySubscriptions", "PushTelemetry"])
async def test_no_answer_of_telemetry_disturbs_a_consumer(
    broker: Broker, api: str, fault: Fault
) -> None:
    async with Producer(broker.bootstrap_servers, enable_metrics_push=False) as one:
        await one.send("t", b"x")
    broker.faults.on(api, fault)
    async with Consumer(
        broker.bootstrap_servers, topics="t", auto_offset_reset="earliest"
    ) as consumer:
        number = PUSH if api == "PushTelemetry" else GET
        await until(lambda: asked(broker, number))
        assert (await anext(consumer)).value == b"x"
        assert consumer.statistics().state == "running"


async def test_a_bug_in_here_is_no_crash(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> bytes:
        raise ZeroDivisionError(str(len(args)))

    monkeypatch.setattr("kafkaio._client.telemetry.otlp.encode", broken)
    ended = Ended()
    async with Producer(broker.bootstrap_servers, observer=ended) as producer:
        await until(lambda: ended.causes)
        assert (await producer.send("t", b"x")).topic == "t"
        assert producer.statistics().state == "running"
    assert [type(cause) for cause in ended.causes] == [ZeroDivisionError]


# That of a future that it asks, which was cancelled.
@pytest.mark.parametrize("kind", [ValueError, asyncio.CancelledError])
async def test_a_metric_that_raises_is_left_out(
    broker: Broker, kind: type[BaseException]
) -> None:
    def broken() -> float:
        raise kind("no number")

    ended = Ended()
    async with Producer(broker.bootstrap_servers, observer=ended) as producer:
        producer.register_metric(Metric(name="com.bad", read=broken))
        await until(lambda: len(broker.telemetry.pushes) > 1)
        assert (await producer.send("t", b"x")).topic == "t"
    assert [type(cause) for cause in ended.causes] == [kind]
    assert "com.bad" not in {one.name for one in values(broker)}


async def test_a_shared_client_is_one_instance(broker: Broker) -> None:
    async with (
        Client(broker.bootstrap_servers) as client,
        Producer(client) as producer,
        Admin(client) as admin,
    ):
        identity = await producer.client_instance_id()
        assert await admin.client_instance_id() == identity
        async with Consumer(client, topics="t") as consumer:
            assert await consumer.client_instance_id() == identity
            number = len(broker.telemetry.pushes)
            await until(lambda: len(broker.telemetry.pushes) > number + 1)
    names = {one.name for one in values(broker)}
    for kind in ("producer", "consumer", "admin.client"):
        assert f"{PREFIX}{kind}.connection.count" in names


@pytest.mark.parametrize("name", ["", "org.apache.kafka.mine"])
def test_names_that_no_application_may_use(name: str) -> None:
    producer = Producer()
    with pytest.raises(ArgumentValueError, match="name"):
        producer.register_metric(Metric(name=name, read=lambda: 1))


@pytest.mark.parametrize("call", ["register_metric", "unregister_metric"])
def test_what_is_no_metric(call: str) -> None:
    method: Any = getattr(Admin(), call)
    with pytest.raises(ArgumentTypeError, match=r"kafkaio\.Metric"):
        method("com.x")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"name": 7}, ArgumentTypeError),
        ({"attributes": {"shop": 7}}, ArgumentTypeError),
        ({"attributes": {"shop": "\ud800"}}, ArgumentValueError),
        ({"kind": "counter"}, ArgumentValueError),
    ],
)
def test_a_metric_that_could_not_be_encoded(
    changed: dict[str, Any], error: type[Exception]
) -> None:
    producer = Producer()
    facts: dict[str, Any] = {"name": "com.x", "read": lambda: 1, **changed}
    with pytest.raises(error):
        producer.register_metric(Metric(**facts))


def test_an_unregistered_metric_may_be_unregistered() -> None:
    admin = Admin()
    metric = Metric(name="com.x", read=lambda: 1)
    admin.register_metric(metric)
    admin.unregister_metric(metric)
    admin.unregister_metric(metric)
    assert cluster_of(Client()).telemetry.is_offered is False


async def test_share_consumers_have_javas_metrics() -> None:
    collector = Collector(cluster_of(Client()).statistics)
    tp = TopicPartition("t", 0)
    for group in ("share", "other"):
        collector.heartbeat_answered(group, 0.25)
    collector.rebalance_completed("other", 0.5)
    collector.records_acquired("share", 1, 0.5, {tp: AcquiredPart(9, 900, 4)})
    collector.records_acquired("share", 1, 0.1, {})
    acknowledged = AcknowledgedPart(5, 2, 0, 1)
    collector.records_acknowledged("share", 1, 0.1, {tp: acknowledged})
    lost = LockLost("gone", topic_partition=tp, first_offset=7, last_offset=9)
    collector.acknowledgement_failed("share", tp, 7, 9, lost)
    collector.request_answered("ShareFetch", 2, 1, 0.5, 1000)
    collector.throttled(1, 0.5, "ShareFetch")
    points = collector.points([SHARE_CONSUMER, CONSUMER], (), {"share"})
    names = [point.name.removeprefix(PREFIX) for point in points]
    assert len(names) == len({*names})
    found = dict(zip(names, (point.value for point in points), strict=True))
    share = {
        name.removeprefix("consumer.share."): value
        for name, value in found.items()
        if name.startswith("consumer.share.") and not name.endswith(("rate", "hour"))
    }
    ago = share.pop("coordinator.last.heartbeat.seconds.ago")
    assert 0 <= ago < 60
    assert share.pop("fetch.manager.fetch.latency.avg") == pytest.approx(300)
    assert share == {
        "poll.idle.ratio.avg": 0,
        "coordinator.heartbeat.total": 1,
        "coordinator.heartbeat.response.time.max": 250,
        "fetch.manager.fetch.latency.max": 500,
        "fetch.manager.fetch.total": 2,
        "fetch.manager.fetch.size.avg": 900,
        "fetch.manager.fetch.size.max": 900,
        "fetch.manager.bytes.consumed.total": 900,
        "fetch.manager.records.consumed.total": 9,
        "fetch.manager.records.per.request.avg": 9,
        "fetch.manager.records.per.request.max": 9,
        "fetch.manager.fetch.throttle.time.avg": 500,
        "fetch.manager.fetch.throttle.time.max": 500,
        "fetch.manager.acknowledgements.send.total": 11,
        "fetch.manager.acknowledgements.error.total": 3,
    }
    # The groups of consumers beside it have their own.
    assert found["consumer.coordinator.heartbeat.total"] == 1
    assert found["consumer.coordinator.rebalance.total"] == 1
    alone = collector.points([SHARE_CONSUMER], (), {"share"})
    names = [point.name.removeprefix(PREFIX) for point in alone]
    assert "consumer.connection.count" in names
    assert not any(name.startswith("consumer.coordinator.") for name in names)


def test_samples_have_two_windows() -> None:
    samples = Samples()
    assert isnan(samples.average)
    assert isnan(samples.greatest)
    for value in (1.0, 3.0):
        samples.add(value)
    samples.turn()
    samples.add(8.0)
    assert (samples.recent_count, samples.recent_total) == (3, 12.0)
    assert (samples.average, samples.greatest) == (4.0, 8.0)
    samples.turn()
    samples.turn()
    assert (samples.recent_count, samples.all_count, samples.all_total) == (0, 3, 12.0)
    [rate, count] = Naming("g", 30.0).counted("x", samples)
    assert (rate.name, count.name, count.value) == ("g.x.rate", "g.x.total", 3)


async def test_the_pusher_is_made_when_it_is_needed() -> None:
    async with Broker() as broker:  # offers no telemetry
        async with Producer(broker.bootstrap_servers, log=False) as producer:
            telemetry = producer._cluster.telemetry
            await producer.send("t", b"x")
            assert "_pusher" not in vars(telemetry)
            producer.register_metric(Metric(name="app.load", read=lambda: 1))
            assert "_pusher" in vars(telemetry)
        with pytest.raises(kafkaio.ClosedError):
            await producer.client_instance_id(timeout=1)
