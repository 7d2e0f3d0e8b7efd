"""The engine of share consumers on an embedded broker, with faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping

import pytest

import kafkaio
from kafkaio._machines.share.ledger import AcquiredRange
from kafkaio._machines.share.session import TopicIdPartition
from kafkaio._records.batch import LOST, RELEASE, Acquired
from kafkaio._share import leader as leader_module
from kafkaio._share.messages import Answered, fetched
from kafkaio.errors import (
    AcknowledgeFailed,
    AuthorizationError,
    ClosedError,
    InternalError,
    KafkaError,
    LockLost,
    ProtocolError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafkaio.protocol._api_keys import ApiKey
from kafkaio.protocol._error_codes import ErrorCode as E
from kafkaio.protocol.messages.share_fetch import ShareFetchResponse
from kafkaio.testing import (
    Broker,
    delay,
    disconnect_after_write,
    disconnect_before_write,
    drop,
    error,
    throttle,
)
from kafkaio.types import TopicPartition
from tests.support.share import Engine, Held, engine

pytestmark = pytest.mark.timeout(60)
GROUP = "workers"
QUICK = {
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
    "group.share.min.session.timeout.ms": 1000,
    "group.share.session.timeout.ms": 3000,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.record.lock.duration.ms": 20_000,
    "group.share.assignment.interval.ms": 0,
}
#: Options of clients that notice soon.
SOON = {"retry_backoff_ms": 10, "retry_backoff_max_ms": 50, "fetch_max_wait_ms": 50}


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(nodes=3, topics={"jobs": 3}, config=QUICK) as broker:
        await earliest(broker)
        yield broker


async def earliest(broker: Broker, **configs: object) -> None:
    async with kafkaio.Admin(broker.bootstrap_servers) as admin:
        group = kafkaio.admin.ConfigResource(
            kafkaio.admin.ConfigResourceType.GROUP, GROUP
        )
        chosen = {"share.auto.offset.reset": "earliest", **configs}
        changes = [
            kafkaio.admin.ConfigChange(name, str(value))
            for name, value in chosen.items()
        ]
        await admin.incremental_alter_configs({group: changes})


async def produced(broker: Broker, count: int, *partitions: int) -> None:
    """Produce records to each of these partitions; to all three by default."""
    async with kafkaio.Producer(broker.bootstrap_servers, linger_ms=5) as producer:
        sent = [
            await producer.enqueue("jobs", b"%d" % number, partition=partition)
            for partition in partitions or (0, 1, 2)
            for number in range(count)
        ]
        for each in sent:
            await each


async def until(condition: Callable[[], object], limit: float = 20.0) -> None:
    async with asyncio.timeout(limit):
        while not condition():  # noqa: ASYNC110  (any of several objects may change)
            await asyncio.sleep(0.005)


def fetches(broker: Broker) -> int:
    return sum(each.api is ApiKey.SHARE_FETCH for each in broker.requests)


def places(records: list[Held]) -> set[tuple[int, int]]:
    return {each.place for each in records}


async def test_a_record_may_be_decided_in_the_thread_that_works_on_it(
    broker: Broker,
) -> None:
    await produced(broker, 3, 0)
    async with kafkaio.ShareConsumer(
        broker.bootstrap_servers, topics="jobs", group_id=GROUP, fetch_max_wait_ms=50
    ) as share:
        records = await share.poll(timeout=20)
        # The first one notifies the ledger, and the others find that done, perhaps.
        for record in records:
            await asyncio.to_thread(record.ack)
        for record in records:
            await asyncio.wait_for(record.acked, 10)
        assert share.statistics().accepted == len(records)


async def test_records_of_three_leaders_are_accepted(broker: Broker) -> None:
    await produced(broker, 20)
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        taken = await share.accept(60)
        assert len(places(taken)) == 60
        await share.core.flush(10)
        it = share.core.statistics()
        assert (it.accepted, it.in_flight, it.leaders, it.assigned) == (60, 0, 3, 3)
        assert (it.state, it.group, it.member_epoch > 0) == ("running", "STABLE", True)
    assert share.core.statistics().state == "closed"


@pytest.mark.parametrize("api", ["ShareFetch", "ShareAcknowledge"])
@pytest.mark.parametrize("fault", [disconnect_before_write, disconnect_after_write])
async def test_connections_that_break(
    broker: Broker, api: str, fault: Callable[..., kafkaio.testing.Fault]
) -> None:
    """What may not have counted comes again, if it did not; nothing is lost."""
    await produced(broker, 20)
    rule = broker.faults.on(api, fault(times=3))
    counts: dict[tuple[int, int], int] = {}
    failed = 0
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        while len(counts) < 60 or rule.count < 3:
            if len(counts) == 60:
                await produced(broker, 1)
            for held in await share.take(1):
                held.decide()
                counts[held.place] = counts.get(held.place, 0) + 1
            if api == "ShareAcknowledge":
                share.reader.stop()  # so that they go without a fetch
            try:
                await share.core.flush(10)
            except AcknowledgeFailed:
                failed += 1
            share.reader.resume()
        # What did not count is here before what is produced now.
        await produced(broker, 1)
        last: dict[int, int] = {}
        while len(last) < 3:
            for held in await share.take(1):
                held.decide()
                last[held.record.partition] = held.record.offset
                counts[held.place] = counts.get(held.place, 0) + 1
        with_twice = {place for place, count in counts.items() if count > 1}
    assert counts.keys() >= {(p, n) for p in range(3) for n in range(20)}
    if api == "ShareAcknowledge":
        assert failed
        # The broker had done what it did not answer.
        assert bool(with_twice) == (fault is disconnect_before_write)


async def test_an_answer_that_does_not_come_ends_the_connection(broker: Broker) -> None:
    await produced(broker, 5, 0)
    options = {**SOON, "request_timeout_ms": 300}
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **options) as share:
        taken = await share.take(5)
        rule = broker.faults.on("ShareAcknowledge", drop(times=1))
        share.reader.stop()
        for each in taken:
            each.decide()
        with pytest.raises(AcknowledgeFailed, match="no answer came"):
            await share.core.flush(10)
        assert rule.count == 1
        share.reader.resume()
        # It may have counted, or not: then they come again.
        await produced(broker, 1, 1)
        await share.accept(1)


async def test_a_session_that_is_gone_is_opened_anew(broker: Broker) -> None:
    await produced(broker, 10)
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        taken = await share.take(30)
        assert broker.control.end_share_sessions(GROUP) == 3
        for each in taken:
            if each.state != LOST:
                each.decide()
        await produced(broker, 1)
        await share.accept(3)


@pytest.mark.parametrize(
    "code",
    [
        E.SHARE_SESSION_LIMIT_REACHED,
        E.SHARE_SESSION_NOT_FOUND,
        E.INVALID_SHARE_SESSION_EPOCH,
        E.UNKNOWN_SERVER_ERROR,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
        E.REQUEST_TIMED_OUT,
        E.COORDINATOR_NOT_AVAILABLE,
    ],
)
async def test_errors_that_pass_are_waited_out(broker: Broker, code: E) -> None:
    rule = broker.faults.on("ShareFetch", error(code, times=4))
    await produced(broker, 10)
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        assert len(places(await share.accept(30))) == 30
        assert share.reader.errors == []
        await share.core.flush(10)
    assert rule.count == 4


async def test_a_topic_that_may_not_be_read_is_told_once(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, is_refused = 0, True

    def read(answer: ShareFetchResponse) -> Mapping[TopicIdPartition, Answered]:
        nonlocal refusals
        found = fetched(answer)
        for each, part in found.items():
            if each.partition == 1 and is_refused and not part.acquired:
                found[each] = part._replace(code=E.TOPIC_AUTHORIZATION_FAILED.value)
                refusals += 1
        return found

    # Each answer about a partition without records, which has no error to tell.
    code = E.TOPIC_AUTHORIZATION_FAILED
    broker.faults.on("ShareFetch", error(code, times=1), partition=("jobs", 1))
    monkeypatch.setattr(leader_module, "fetched", read)
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        await until(lambda: share.reader.errors)
        (told,) = share.reader.errors
        assert isinstance(told, AuthorizationError)
        share.reader.errors.clear()
        # The others are read meanwhile.
        await produced(broker, 10, 0, 2)
        assert {each.record.partition for each in await share.accept(20)} == {0, 2}
        assert share.reader.errors == []
        is_refused = False
        await produced(broker, 10, 1)
        assert len(await share.accept(10)) == 10


async def test_a_leader_that_moves_is_followed_without_metadata() -> None:
    """Answers name the new leader; metadata here is late by a minute."""
    async with Broker(
        nodes=2, topics={"jobs": 1}, config=QUICK, metadata_delay=0.0
    ) as broker:
        await earliest(broker)
        await produced(broker, 5, 0)
        rule = None
        async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
            taken = await share.take(5)
            for each in taken[:2]:
                each.decide()
            await share.core.flush(10)
            rule = broker.faults.on("Metadata", drop())
            old = broker.control.leader(("jobs", 0))
            broker.control.move_leader(("jobs", 0), 1 - old)
            again = await share.accept(3)
            assert places(again) == places(taken[2:])
            assert all(each.state == LOST for each in taken[2:])
            assert {each.acquired.node_id for each in again} == {1 - old}
            broker.faults.remove(rule)


async def test_a_leader_that_hangs_holds_up_neither_the_others_nor_the_end(
    broker: Broker,
) -> None:
    await produced(broker, 5)
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        await share.accept(15)
        await share.core.flush(10)
        member = share.core.statistics().coordinator
        victim = next(
            node
            for node in (broker.control.leader(("jobs", n)) for n in range(3))
            if node != member
        )
        broker.control.pause(victim)
        others = [n for n in range(3) if broker.control.leader(("jobs", n)) != victim]
        await produced(broker, 5, *others)
        await share.accept(10)
        begun = asyncio.get_running_loop().time()
        await share.core.close(1.0)
        assert asyncio.get_running_loop().time() - begun < 2.0
        broker.control.resume(victim)


async def test_a_leader_that_was_never_reached_does_not_hold_up_the_end(
    broker: Broker,
) -> None:
    async with kafkaio.Client(broker.bootstrap_servers) as client:
        coordinator = broker.control.coordinator(GROUP)
        victim = next(n for n in range(3) if n != coordinator)
        await produced(broker, 5)
        share = Engine(client, GROUP, ["jobs"])
        share.reader.wants = False  # so that no leader is connected to yet
        await share.core.start(10)
        broker.control.pause(victim)
        share.reader.resume()
        others = sum(broker.control.leader(("jobs", n)) != victim for n in range(3))
        await share.accept(5 * others)
        assert not share.core._leaders._leaders[victim].is_connected
        begun = asyncio.get_running_loop().time()
        await share.core.close(20)
        assert asyncio.get_running_loop().time() - begun < 3.0
        broker.control.resume(victim)


async def test_a_coordinator_that_hangs_does_not_hold_up_the_end(
    broker: Broker,
) -> None:
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        member = share.core.statistics().coordinator
        assert member is not None
        broker.control.pause(member)
        begun = asyncio.get_running_loop().time()
        await share.core.close(0.5)
        assert asyncio.get_running_loop().time() - begun < 1.5
        broker.control.resume(member)


async def test_a_throttle_delays_and_loses_nothing(broker: Broker) -> None:
    await produced(broker, 10)
    rule = broker.faults.on("ShareFetch", throttle(0.2, times=3))
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        assert len(places(await share.accept(30))) == 30
        await share.core.flush(10)
        assert share.core.statistics().redelivered == 0
    assert rule.count == 3


async def test_a_fetch_that_waits_does_not_make_a_consumer_ask_often(
    broker: Broker,
) -> None:
    options = {**SOON, "fetch_max_wait_ms": 400}
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **options) as share:
        before = fetches(broker)
        await asyncio.sleep(1.0)
        assert fetches(broker) - before <= 12
        # One record in hand: its leader is asked with growing waits.
        await produced(broker, 1, 0)
        (held,) = await share.take(1)
        before = fetches(broker)
        await asyncio.sleep(1.0)
        assert fetches(broker) - before <= 18
        held.decide()
        await share.core.flush(10)


async def test_nothing_is_fetched_while_nobody_reads(broker: Broker) -> None:
    await produced(broker, 10)
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        await until(lambda: share.reader.buffered == 30)
        share.reader.stop()
        await share.core.flush(10)
        it = share.core.statistics()
        assert (it.in_flight, it.released) == (0, 30)
        before = fetches(broker)
        await asyncio.sleep(0.3)
        assert fetches(broker) - before <= 3  # those that were in flight
        assert share.core.statistics().in_flight == 0


@pytest.mark.parametrize("mode", ["record_limit", "batch_optimized"])
async def test_no_more_is_locked_than_is_allowed(broker: Broker, mode: str) -> None:
    await produced(broker, 100)
    options = {**SOON, "max_in_flight": 7, "acquire_mode": mode}
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **options) as share:
        done, most = set[tuple[int, int]](), 0
        while len(done) < 300:
            held = await share.take(1)
            most = max(most, share.core.ledger.locked)
            for each in held:
                each.decide()
                done.add(each.place)
        await share.core.flush(10)
        if mode == "record_limit":
            assert most <= 7
        else:
            # The first fetches of the three leaders exceed their parts together.
            assert most <= 7 + 3 * 100


async def test_a_room_for_one_goes_around(broker: Broker) -> None:
    await produced(broker, 3, 2)
    options = {**SOON, "max_in_flight": 1, "acquire_mode": "record_limit"}
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **options) as share:
        assert places(await share.accept(3)) == {(2, 0), (2, 1), (2, 2)}
        await produced(broker, 3, 0)
        assert len(await share.accept(3)) == 3


async def test_what_is_taken_away_can_still_be_acknowledged(broker: Broker) -> None:
    await produced(broker, 10)
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        taken = await share.take(30)
        share.core.subscribe(frozenset())
        await until(lambda: not share.assigned)
        for each in taken:
            each.decide()
        await share.core.flush(10)
        it = share.core.statistics()
        assert (it.accepted, it.in_flight) == (30, 0)
        # With nothing left to do, the sessions are closed.
        await until(lambda: share.core.statistics().leaders == 0)
        share.core.subscribe(frozenset({"jobs"}))
        await produced(broker, 1)
        assert len(await share.accept(3)) == 3


async def test_a_member_that_is_fenced_stops_and_joins_again(broker: Broker) -> None:
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        rule = broker.faults.on(
            "ShareGroupHeartbeat", error(E.UNKNOWN_MEMBER_ID, times=1)
        )
        await until(lambda: rule.count == 1 and len(share.assigned) == 3)
        await produced(broker, 5)
        assert len(await share.accept(15)) == 15


async def test_a_group_that_refuses_for_good_leaves_what_is_in_hands(
    broker: Broker,
) -> None:
    await produced(broker, 5)
    share = Engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON)
    await share.core.start(10)
    taken = await share.take(15)
    refusal = KafkaError("refused for good")
    share.core._member.failure = refusal
    share.core._failed(refusal)
    with pytest.raises(KafkaError, match="refused for good"):
        share.core.check()
    assert share.reader.is_interrupted
    for each in taken:
        each.decide()
    await share.core.flush(10)
    assert share.core.statistics().accepted == 15
    await share.core.close(5)


async def test_clusters_without_share_groups_are_told_apart() -> None:
    async with Broker(as_version="4.3", features={"share.version": 0}) as broker:
        share = Engine(broker.bootstrap_servers, GROUP, ["jobs"])
        with pytest.raises(UnsupportedVersion, match=r"share\.version is 0"):
            await share.core.start(10)
    async with Broker(as_version="3.9") as broker:
        share = Engine(broker.bootstrap_servers, GROUP, ["jobs"])
        with pytest.raises(UnsupportedVersion):
            await share.core.start(10)
        assert share.core.state == "closed"


async def test_a_start_without_a_coordinator_ends_in_its_time(broker: Broker) -> None:
    broker.faults.on("FindCoordinator", error(E.COORDINATOR_NOT_AVAILABLE))
    share = Engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON)
    begun = asyncio.get_running_loop().time()
    with pytest.raises(RequestTimeout, match=r"gave no assignment in 0\.5 s"):
        await share.core.start(0.5)
    assert asyncio.get_running_loop().time() - begun < 3.0
    with pytest.raises(ClosedError):
        share.core.check()


async def test_a_start_that_is_put_off_for_ever_ends_in_the_time_of_the_option(
    broker: Broker,
) -> None:
    # A coordinator that answers each join, and accepts none.
    broker.faults.on("ShareGroupHeartbeat", error(E.COORDINATOR_LOAD_IN_PROGRESS))
    share = Engine(
        broker.bootstrap_servers, GROUP, ["jobs"], default_api_timeout_ms=500, **SOON
    )
    async with asyncio.timeout(20):
        with pytest.raises(RequestTimeout, match="COORDINATOR_LOAD_IN_PROGRESS"):
            await share.core.start(None)


async def test_a_start_that_is_cancelled_leaves_nothing(broker: Broker) -> None:
    rule = broker.faults.on("ShareGroupHeartbeat", delay(5.0))
    share = Engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON)
    starting = asyncio.create_task(share.core.start(None))
    await until(lambda: rule.count)
    starting.cancel()
    await asyncio.wait([starting], timeout=5)
    assert starting.cancelled()
    assert share.core.state == "closed"


async def test_one_that_is_abandoned_frees_its_locks(broker: Broker) -> None:
    await produced(broker, 5)
    one = Engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON)
    await one.core.start(10)
    await one.take(15)
    one.core.abandon()
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as two:
        assert len(await two.accept(15)) == 15


async def test_a_task_that_crashes_ends_everything_and_frees_the_locks(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await produced(broker, 5)
    share = Engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON)
    await share.core.start(10)
    taken = await share.take(15)
    waiting = [
        asyncio.ensure_future(share.core.acked(taken[0].acquired, 0)),
        asyncio.ensure_future(share.core.wait_for_news(None)),
    ]
    await asyncio.sleep(0)

    def crash(*given: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(leader_module.Leader, "_check_connection", crash)
    share.core.wake()
    await asyncio.wait(waiting, timeout=10)
    with pytest.raises(LockLost, match="the session was closed"):
        await waiting[0]
    await waiting[1]
    for call in (share.core.check, share.core.flush(1)):
        with pytest.raises(InternalError, match="a bug"):
            call() if callable(call) else await call
    assert share.core.state == "failed"
    assert share.reader.is_interrupted
    assert all(each.state == LOST for each in taken)
    monkeypatch.undo()
    await share.core.close(5)
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as other:
        assert len(await other.accept(15)) == 15


async def test_closing_again_waits_for_the_first(broker: Broker) -> None:
    share = Engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON)
    await share.core.start(10)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(share.core.close(None))
    assert share.core.state == "closed"
    await share.core.close(None)
    with pytest.raises(ClosedError):
        share.core.subscribe(frozenset({"jobs"}))
    with pytest.raises(ClosedError, match="cannot be started again"):
        await share.core.start(None)


async def test_handlers_are_waited_for(broker: Broker) -> None:
    await produced(broker, 5)
    share = Engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON)
    await share.core.start(10)
    taken = await share.take(15)

    class Handlers:
        most_records = 100
        max_processing = None

        def __init__(self) -> None:
            self.said: list[str] = []

        def lost(self, acquired: Acquired) -> None:
            pytest.fail(f"{acquired} was lost")

        def begin_draining(self) -> None:
            self.said.append("begin")

        async def drain(self) -> None:
            for each in taken[:10]:
                each.decide()
            await share.core.flush(5)  # also while it closes
            self.said.append("drained")
            await asyncio.Event().wait()

        def stop(self) -> None:
            self.said.append("stop")
            taken[10].decide(RELEASE)

    handlers = Handlers()
    share.core.begin_work(handlers)
    begun = asyncio.get_running_loop().time()
    await share.core.close(1.0)
    assert 0.7 < asyncio.get_running_loop().time() - begun < 2.0
    assert handlers.said == ["begin", "drained", "stop"]
    it = share.core.statistics()
    assert (it.accepted, it.released, it.in_flight) == (10, 5, 0)


def strange(
    change: Callable[[dict[TopicIdPartition, Answered]], None],
) -> Callable[[ShareFetchResponse], Mapping[TopicIdPartition, Answered]]:
    """Read answers, and change the first that has records."""
    has_changed = False

    def read(answer: ShareFetchResponse) -> Mapping[TopicIdPartition, Answered]:
        nonlocal has_changed
        found = fetched(answer)
        if not has_changed and any(part.acquired for part in found.values()):
            has_changed = True
            change(found)
        return found

    return read


def _foreign(found: dict[TopicIdPartition, Answered]) -> None:
    each = next(iter(found))
    found[each._replace(partition=77)] = found[each]


def _overlapping(found: dict[TopicIdPartition, Answered]) -> None:
    for each, part in found.items():
        found[each] = part._replace(acquired=(*part.acquired, *part.acquired))


def _reversed(found: dict[TopicIdPartition, Answered]) -> None:
    for each, part in found.items():
        found[each] = part._replace(acquired=(AcquiredRange(9, 3, 1),))


def _with_an_error(found: dict[TopicIdPartition, Answered]) -> None:
    for each, part in found.items():
        found[each] = part._replace(code=E.TOPIC_AUTHORIZATION_FAILED.value)


@pytest.mark.parametrize("change", [_foreign, _overlapping, _reversed, _with_an_error])
async def test_a_leader_that_breaks_the_protocol_is_told_and_asked_anew(
    broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[dict[TopicIdPartition, Answered]], None],
) -> None:
    monkeypatch.setattr(leader_module, "fetched", strange(change))
    await produced(broker, 10, 0)
    async with engine(broker.bootstrap_servers, GROUP, ["jobs"], **SOON) as share:
        await until(lambda: share.reader.errors)
        told = share.reader.errors.pop()
        assert isinstance(told, ProtocolError)
        assert told.retriable
        # The leader has freed them with the connection.
        again = await share.accept(10)
        assert {each.acquired.delivery_count for each in again} == {2}
        await share.core.flush(10)


async def test_a_program_that_keeps_all_records_is_told(broker: Broker) -> None:
    await earliest(broker, **{"share.record.lock.duration.ms": 1000})
    await produced(broker, 5, 0)
    told = asyncio.Event()

    class Told(kafkaio.Observer):
        def acknowledgements_missing(
            self, group: str, records: int, seconds: float
        ) -> None:
            assert (group, records) == (GROUP, 3)
            # Counted from when it had all of them, not from a decision before.
            assert 1.0 <= seconds < 10.0
            told.set()

    options = {**SOON, "max_in_flight": 3, "acquire_mode": "record_limit"}
    share = engine(
        broker.bootstrap_servers, GROUP, ["jobs"], observer=Told(), **options
    )
    async with share as it:
        await it.take(3)
        await asyncio.wait_for(told.wait(), 10)


async def test_observers_are_told_what_happens(broker: Broker) -> None:
    seen: list[tuple[object, ...]] = []
    counts: list[tuple[int, int]] = []

    class Seen(kafkaio.Observer):
        def started(self, kind: str, name: str, source: object) -> None:
            seen.append(("started", kind, name))

        def closed(self, kind: str, name: str, source: object) -> None:
            seen.append(("closed", kind, name))

        def rebalance(
            self,
            state: str,
            assigned: Collection[TopicPartition],
            revoked: Collection[TopicPartition],
            lost: Collection[TopicPartition],
        ) -> None:
            seen.append(("rebalance", state, set(assigned), set(revoked), set(lost)))

        def records_acquired(
            self,
            group: str,
            node_id: int,
            seconds: float,
            parts: Mapping[TopicPartition, kafkaio.AcquiredPart],
        ) -> None:
            counts.extend((it.records, it.redelivered) for it in parts.values())

    await produced(broker, 5, 0)
    share = engine(broker.bootstrap_servers, GROUP, ["jobs"], observer=Seen(), **SOON)
    async with share as it:
        (*_, last) = await it.take(5)
        last.decide(RELEASE)
        await it.accept(1)
    tps = {TopicPartition("jobs", n) for n in range(3)}
    mine = [each for each in seen if each[0] != "started" or each[1] != "client"]
    mine = [each for each in mine if each[0] != "closed" or each[1] != "client"]
    assert mine[0] == ("rebalance", "STABLE", tps, set(), set())
    assert mine[1] == ("started", "share_consumer", GROUP)
    assert counts == [(5, 0), (1, 1)]
    assert mine[-1] == ("closed", "share_consumer", GROUP)
