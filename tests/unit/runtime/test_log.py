import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

import kafkaio
from kafkaio import TopicPartition
from kafkaio._runtime import log
from kafkaio._runtime.log import Failing, Limiter, LogObserver, attach_log
from kafkaio._runtime.observer import (
    AcknowledgedPart,
    AcquiredPart,
    Observer,
    guarded,
)
from kafkaio.errors import (
    AcknowledgeFailed,
    AuthenticationError,
    BrokerNotAvailable,
    ConnectionLost,
    LockLost,
    RebalanceInProgress,
    RequestTimeout,
)
from kafkaio.testing import Broker
from tests.support.patience import HANGS, NEVER_MS

ONE = TopicPartition("one", 0)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Warnings, but for those of a loop that a busy machine has held up."""
    return [text for text in warnings(caplog) if "loop was blocked" not in text]


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == level]


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def observer(clock: Clock) -> LogObserver:
    return LogObserver("me", "a:1", clock)


# ---- what is left out ------------------------------------------------------------


def test_the_first_is_logged_at_once_and_then_one_in_an_interval() -> None:
    limiter = Limiter(30)
    assert limiter.admit("kind", "a", 0.0) == 0
    assert [limiter.admit("kind", "a", at) for at in (0.0, 10.0, 29.9)] == [None] * 3
    assert limiter.admit("kind", "b", 10.0) == 0
    assert limiter.admit("other", "a", 10.0) == 0
    assert limiter.admit("kind", "a", 30.0) == 3
    assert limiter.admit("kind", "a", 60.0) == 0


def test_what_is_left_out_is_counted_by_what_it_is() -> None:
    limiter = Limiter(30)
    assert limiter.admit("lost", "a", 0.0, 7) == 0
    assert limiter.admit("lost", "a", 1.0, 5) is None
    assert limiter.admit("lost", "a", 2.0, 6) is None
    assert limiter.admit("lost", "a", 31.0, 1) == 11


def test_subjects_are_not_remembered_for_ever() -> None:
    limiter = Limiter(30)
    for number in range(10 * log._MANY):
        assert limiter.admit("topic", number, number * 1.0) == 0
    assert len(limiter._last) <= log._MANY


# ---- what is logged, and how ---------------------------------------------------


def test_warnings_name_the_subject_and_the_cause(
    observer: LogObserver, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    refused = BrokerNotAvailable("h:1: connect: refused")
    observer.connection_lost(3, "shared", refused)
    observer.connection_lost(-1, "shared", AuthenticationError("h:2: TLS: bad CA"))
    observer.topic_unavailable("t!", ConnectionLost("no topic t!"))
    observer.rebalance("STABLE", (), (), [TopicPartition("t", p) for p in range(12)])
    observer.commit_failed("g", RequestTimeout("no answer"))
    observer.delivery_lost(ONE, RequestTimeout("too late"), 4)
    observer.loop_blocked(2.5, "in handler.py\n")
    observer.retrying("metadata", 1, 1.0, ConnectionLost("h:1: cut"))
    clock.at += 10
    observer.retrying("metadata", 6, 1.0, ConnectionLost("h:1: cut"))
    found = warnings(caplog)
    assert found[0] == "[me] cannot connect to broker 3: h:1: connect: refused"
    for text, told in zip(
        found[1:],
        (
            "authentication refused by bootstrap server 1: h:2: TLS: bad CA",
            "topic 't!' is not available: ",
            "partitions lost, others may own them already: t-0, t-1, t-2, t-3, t-4, "
            "t-5, t-6, t-7, t-8, t-9 and 2 more",
            "a commit of group 'g' failed: no answer",
            "one-0: 4 records were not delivered, and nobody awaited the delivery: "
            "too late",
            "the event loop was blocked for 2.5 s",
            "metadata: still failing after 10 s and 6 attempts: h:1: cut",
        ),
        strict=True,
    ):
        assert text.startswith(f"[me] {told}"), text
    assert "in handler.py" in found[6]
    names = [record.name for record in caplog.records]
    assert names == [
        *["kafkaio.client"] * 3,
        *["kafkaio.consumer"] * 2,
        "kafkaio.producer",
        *["kafkaio.client"] * 2,
    ]


def test_what_share_consumers_lose_is_a_warning(
    observer: LogObserver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafkaio")
    place = {"topic_partition": ONE, "first_offset": 5, "last_offset": 7}
    failed = AcknowledgeFailed("one-0 at offsets 5 to 7: no answer", **place)
    lost = LockLost("one-0 at offsets 5 to 7: the lock has run out", **place)
    observer.started("share_consumer", "s", Observer())
    observer.acknowledgement_failed("s", ONE, 5, 7, failed)
    observer.lock_lost("s", ONE, 5, 7, lost)
    observer.lock_lost("s", ONE, 8, 9, lost)  # of the same partition, too soon
    observer.acknowledgements_missing("s", 500, 31.0)
    assert lines(caplog, logging.INFO) == ["[me] share consumer 's' started"]
    assert warnings(caplog) == [
        "[me] group 's': an acknowledgement did not count, or that is unknown, so that "
        "the records may be delivered again: one-0 at offsets 5 to 7: no answer",
        "[me] group 's': locks of records without a decision were lost, so that they "
        "are delivered again: one-0 at offsets 5 to 7: the lock has run out",
        "[me] group 's': nothing is fetched: 500 records, as many as max_in_flight "
        "allows, were handed out without a decision, and none was acknowledged for "
        "31 s; call ack(), release() or reject() for each record",
    ]
    assert {record.name for record in caplog.records} == {"kafkaio.consumer"}


def test_warnings_are_rationed(
    observer: LogObserver, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    refused = BrokerNotAvailable("h:1: connect: refused")
    for _ in range(50):
        observer.connection_lost(3, "shared", refused)
        observer.connection_lost(4, "shared", refused)
        clock.at += 1
    found = [text for text in warnings(caplog) if "broker 3" in text]
    assert len(found) == 2
    assert found[1].endswith("refused (29 more since this was last logged)")
    assert len(warnings(caplog)) == 4


def test_one_failed_commit_hides_no_other_kind(
    observer: LogObserver, caplog: pytest.LogCaptureFixture
) -> None:
    for error in (RequestTimeout("late"), RequestTimeout("late"), OSError("refused")):
        observer.commit_failed("g", error)
    assert [text.rpartition(" ")[2] for text in warnings(caplog)] == ["late", "refused"]


def test_what_passes_by_itself_is_no_warning(
    observer: LogObserver, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kafkaio")
    observer.commit_failed("g", RebalanceInProgress("is rebalancing"))
    observer.connection_lost(1, "shared", ConnectionLost("reset"))
    observer.connection_lost(1, "shared", None)
    observer.loop_blocked(0.2, "")
    observer.retrying("metadata", 1, 1.0, ConnectionLost("cut"))
    clock.at += 9.9
    observer.retrying("metadata", 99, 1.0, ConnectionLost("cut"))
    clock.at += 0.1
    observer.retrying("metadata", 100, 1.0, BrokerNotAvailable("h:1: refused"))
    observer.rebalance("JOINING", (), (), ())
    assert len(caplog.records) == 8
    assert warnings(caplog) == []


def test_a_step_is_a_warning_by_how_long_it_has_failed(
    observer: LogObserver, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    missing = ConnectionLost("no leader")
    # Thousands of partitions get their leaders one after the other: what is left has
    # another name each time, and no warning.
    for attempt in range(1, 31):
        observer.retrying(f"look up t-0 and {99 - attempt} more", attempt, 0.0, missing)
        clock.at += 1
    # One operation after the other fails once.
    for _ in range(30):
        observer.retrying("commit", 1, 1.0, missing)
        clock.at += 1
    clock.at += 60
    # A name that comes back long after is another operation's.
    observer.retrying("look up t-0 and 98 more", 3, 0.0, missing)
    assert warnings(caplog) == []
    # What is left stays the same: a few attempts that take long suffice.
    for attempt in range(2, 5):
        observer.retrying("look up t-7", attempt, 0.0, missing)
        clock.at += 6
    (text,) = warnings(caplog)
    assert text == (
        "[me] look up t-7: still failing after 12 s and 4 attempts: no leader"
    )


def test_steps_are_not_remembered_for_ever() -> None:
    failing = Failing()
    for number in range(3 * log._MANY):
        assert failing.seconds(f"step {number}", 2, 0.0) == 0.0
    assert len(failing._times) <= log._MANY
    for number in range(10 * log._MANY):
        assert failing.seconds(f"step {number}", 2, 1000.0 + number) == 0.0
    assert len(failing._times) <= log._MANY


def test_a_broker_that_is_back_is_told(
    observer: LogObserver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafkaio")
    observer.connection_opened(3, "shared", "h", 1)
    assert caplog.records == []
    observer.connection_lost(3, "shared", BrokerNotAvailable("h:1: refused"))
    observer.connection_opened(3, "shared", "h", 1)
    observer.connection_opened(3, "fetch", "h", 1)
    assert lines(caplog, logging.INFO) == ["[me] connected to broker 3 at h:1 (shared)"]


def test_what_other_code_raised_is_not_quoted(
    observer: LogObserver, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kafkaio")
    observer.retrying("the handler", 1, 0.1, ValueError("card 4242"))
    clock.at += 10
    observer.retrying("the handler", 10, 0.1, ValueError("card 4242"))
    assert len(warnings(caplog)) == 1
    assert "ValueError" in caplog.text
    assert "4242" not in caplog.text


#: What metrics are made of, and what other events say in the log already.
FOR_METRICS = {
    "authentication_failed",
    "batch_acknowledged",
    "batch_retried",
    "batch_split",
    "fetch_answered",
    "records_handed_out",
    "heartbeat_answered",
    "rebalance_completed",
    "rebalance_failed",
    "transaction_step",
}


def test_every_event_has_its_line(
    observer: LogObserver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kafkaio")
    offset = kafkaio.OffsetAndMetadata(5)
    lost = LockLost("gone", topic_partition=ONE, first_offset=5, last_offset=7)
    given: dict[str, tuple[Any, ...]] = {
        "started": ("consumer", "g", None),
        "closed": ("producer", "p", None),
        "connection_opened": (1, "shared", "h", 9),
        "connection_lost": (1, "shared", None),
        "request_sent": ("Fetch", 17, 1, 100),
        "request_answered": ("Fetch", 17, 1, 0.0123, 100),
        "throttled": (1, 0.5, "Fetch"),
        "metadata_updated": (3, 7),
        "retrying": ("metadata", 1, 0.1, OSError("cut")),
        "topic_unavailable": ("t", OSError("x")),
        "partition_unavailable": (ONE, OSError("x")),
        "batch_sent": (ONE, 10, 1000),
        "record_failed": (ONE, OSError("x"), 3),
        "delivery_lost": (ONE, OSError("x"), 3),
        "rebalance": ("STABLE", (), (), ()),
        "assignment_changed": ((), (ONE,)),
        "group_protocol": ("g", "classic", OSError("too old")),
        "offsets_committed": ({ONE: offset}, 0.1),
        "commit_failed": ("g", OSError("x")),
        "new_partitions": ((ONE,),),
        "positions_missing": ({ONE: "it has no leader"},),
        "records_acquired": ("s", 1, 0.6, {ONE: AcquiredPart(9, 900, 4)}),
        "records_acknowledged": ("s", 1, 0.2, {ONE: AcknowledgedPart(5, 2, 3, 1)}),
        "acknowledgement_failed": ("s", ONE, 5, 7, lost),
        "lock_lost": ("s", ONE, 5, 7, lost),
        "locks_renewed": ("s", 1, ONE, 8),
        "acknowledgements_missing": ("s", 500, 31.0),
        "dead_letters_at_broker": ("s", "dlq.jobs"),
        "handler_failed": ("s", ONE, 5, 2, "released", OSError("cut")),
        "group_configs_unknown": ("s", OSError("x")),
        "query_lag": ("q", {ONE: 7}),
        "telemetry_ended": (ValueError("no"),),
        "authenticated": (1, "shared", "SCRAM-SHA-256", 3600.0, 0.2),
        "credentials_exposed": ("PLAIN", "far.example"),
        "loop_blocked": (0.5, ""),
    }
    events = {name for name in vars(Observer) if not name.startswith("_")}
    assert given.keys() | FOR_METRICS == events
    assert not FOR_METRICS & vars(LogObserver).keys()
    for name, arguments in given.items():
        before = len(caplog.records)
        more = {"is_renewal": False} if name == "authenticated" else {}
        getattr(observer, name)(*arguments, **more)
        [record] = caplog.records[before:]
        assert record.getMessage().startswith("[me] "), name
    assert "Fetch v17 answered by broker 1 after 12.3 ms" in caplog.text
    assert "committed one-0: 5" in caplog.text
    assert "because too old" in caplog.text
    for text in (
        "one-0: 9 records acquired for group 's', 4 of them delivered before; 900 b",
        "one-0: group 's' has accepted 5 records, released 2, rejected 3; 1 offsets",
        "one-0: the locks of 8 records of group 's' renewed",
        "the brokers write the dead letters of group 's' to topic 'dlq.jobs'",
    ):
        assert text in caplog.text
    assert "authenticated by SCRAM-SHA-256 at broker 1 (shared) for 3600.0 s" in (
        caplog.text
    )
    assert "PLAIN sends its secret to far.example without encryption" in caplog.text


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_frequent_events_are_heard_where_the_level_is_debug(
    level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level, "kafkaio")
    guard = guarded(None)
    is_debug = level == logging.DEBUG
    assert attach_log(guard, "me", "a:1") is is_debug
    heard = vars(guard).keys()
    for name in log._FREQUENT:
        assert (name in heard) is is_debug, name
    assert {"started", "closed", "connection_lost", "topic_unavailable"} <= heard


def test_no_handler_and_no_level_is_set() -> None:
    for name in ("kafkaio", *(logger.name for logger in log._LOGGERS.values())):
        assert logging.getLogger(name).handlers == []
        assert logging.getLogger(name).level == logging.NOTSET
        assert logging.getLogger(name).propagate


# ---- a client's life ---------------------------------------------------------------


async def work(servers: Any, **options: Any) -> None:
    """Produce and consume a record, by a shared client or by ones of their own."""
    async with kafkaio.Producer(servers, **options) as producer:
        await producer.send("one", b"s3cret", key=b"k3y", headers=[("h", b"h3ad")])
    async with kafkaio.Consumer(
        servers, topics="one", group_id="g", auto_offset_reset="earliest", **options
    ) as consumer:
        record = await anext(consumer)
        assert record.value == b"s3cret"
        await consumer.commit(record)


async def test_a_healthy_life_is_told_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "kafkaio")
    async with Broker(topics={"one": 1}) as broker:
        await work(broker.bootstrap_servers, client_id="mine")
    assert complaints(caplog) == []
    first, *_ = told_of = lines(caplog, logging.INFO)
    assert f"127.0.0.1:{broker.bootstrap_servers.split(':')[1]}" in first
    assert first.endswith(f"; kafkaio {kafkaio.__version__}")
    told = [text.split(";")[0] for text in told_of]
    assert told == [
        "[mine] client 'mine' started",
        "[mine] producer 'mine' started",
        "[mine] client 'mine' closed",
        "[mine] producer 'mine' closed",
        "[mine] client 'mine' started",
        "[mine] group 'g' is joined by the protocol 'consumer'",
        "[mine] partitions assigned: one-0",
        "[mine] consumer 'g' started",
        "[mine] partitions revoked: one-0",
        "[mine] client 'mine' closed",
        "[mine] consumer 'g' closed",
    ]


async def test_requests_are_told_as_debug_and_secrets_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "kafkaio")
    async with Broker(topics={"one": 1}) as broker:
        await work(broker.bootstrap_servers)
    assert complaints(caplog) == []
    debug = lines(caplog, logging.DEBUG)
    for told in ("Produce v", "Fetch v", "answered by broker", "one-0: a batch of 1"):
        assert any(told in line for line in debug), told
    assert "committed one-0: 1" in caplog.text
    for secret in ("s3cret", "k3y", "h3ad"):
        assert secret not in caplog.text


async def test_the_log_is_switched_off(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kafkaio")
    async with Broker(topics={"one": 1}) as broker:
        await work(broker.bootstrap_servers, log=False)
        async with kafkaio.Client(broker.bootstrap_servers, log=False) as client:
            assert vars(client._cluster.observer) == {}
            await work(client)
    assert caplog.records == []


class Heard:
    def __init__(self) -> None:
        self.kinds: list[str] = []

    def started(self, kind: str, name: str, source: object) -> None:
        self.kinds.append(kind)


async def test_a_shared_client_logs_once_and_observers_hear_beside_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "kafkaio")
    one, two = Heard(), Heard()
    async with (
        Broker(topics={"one": 1}) as broker,
        kafkaio.Client(broker.bootstrap_servers, observer=[one, two]) as client,
    ):
        await work(client)
    kinds = ["client", "producer", "consumer"]
    assert one.kinds == two.kinds == kinds
    started = [text for text in lines(caplog, logging.INFO) if " started" in text]
    assert [text.split()[1] for text in started] == kinds


async def test_a_consumer_in_a_thread_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafkaio")
    async with (
        Broker(topics={"one": 1}) as broker,
        kafkaio.Consumer(
            broker.bootstrap_servers, assign=[ONE], io_thread=True
        ) as consumer,
    ):
        assert consumer.assignment == {ONE}
    threads = {r.threadName for r in caplog.records if "consumer" in r.getMessage()}
    assert threads == {"kafkaio I/O"}
    assert "partitions assigned: one-0" in caplog.text
    assert warnings(caplog) == []


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
async def test_a_thread_watches_the_loop_only_for_debugging(
    level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level, "kafkaio")
    async with (
        Broker(topics={"one": 1}) as broker,
        kafkaio.Client(broker.bootstrap_servers),
    ):
        await asyncio.sleep(0)  # the turn in which the watchdog starts
        names = {thread.name for thread in threading.enumerate()}
        assert ("kafkaio watchdog" in names) is (level == logging.DEBUG)


@pytest.fixture
def unused_port() -> Iterator[int]:
    # Bound and not listening: nobody else can have it, and connecting is refused.
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.mark.parametrize("kind", [kafkaio.Producer, kafkaio.Consumer])
async def test_a_broker_that_is_down_is_told_at_once(
    kind: Any, unused_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kafkaio")
    client = kind(f"127.0.0.1:{unused_port}", default_api_timeout_ms=NEVER_MS)
    started = asyncio.create_task(client.start())
    async with asyncio.timeout(HANGS):
        while not warnings(caplog):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    started.cancel()
    with suppress(asyncio.CancelledError):
        await started
    [warning] = warnings(caplog)
    assert "] cannot connect to bootstrap server 1: " in warning
    assert warning.startswith(f"[kafkaio-{kind.__name__.lower()}-")
    assert f"127.0.0.1:{unused_port}: " in warning
    assert "connect: [Errno " in warning


def test_a_long_throttle_is_a_warning(
    observer: LogObserver, caplog: pytest.LogCaptureFixture
) -> None:
    observer.throttled(1, 4.9, "Fetch")
    assert not warnings(caplog)
    for _ in range(3):
        observer.throttled(1, 60.0, "Metadata")
    (line,) = warnings(caplog)
    assert line == (
        "[me] broker 1 throttles this client: nothing is sent to it for 60.0 s, "
        "because of a quota (the answer to Metadata says so)"
    )
